// Command apograph copies Kafka topics from one cluster to another and proves
// the copy.
//
// The package is the only place that knows the command line, the terminal and
// exit codes. It turns flags into the configuration of one package function,
// calls it, and renders what comes back. Nothing here decides anything about
// records, offsets or books.
//
// # The frame
//
// One frame carries every command and keeps the promises that they share:
// flags stand anywhere; what is not understood is refused before anything is
// attempted (exit 2, nothing on standard output, a suggestion); standard output
// is the answer and nothing else; a failed write to it is an error; exit codes
// come from one table. The argument parser of urfave/cli stops at the first
// argument and would silently ignore a flag behind it. Therefore the frame
// parses the command line itself (argv.go) and hands cli a canonical one, which
// leaves cli the types of the values, the environment and the dispatch.
//
// # Adding a command
//
// Write one file, named after the command, with a function that returns its
// [command], and add one line to the table in commands. The file holds:
//
//   - the description: path, arguments, one sentence, details, at least one
//     example, and the exit codes beyond 0, 1 and 2; help is made from it;
//   - the output formats, the default first; --output comes from them, and
//     [invocation.format] is one of them;
//   - its flags: shared ones from flags.go, so that a name means the same
//     everywhere. A flag from stringFlag, listFlag or durationFlag can also be
//     given as APOGRAPH_NAME. One that permits something dangerous (--execute)
//     is written as a plain cli flag, which has no variable; help and README
//     name those that have none;
//   - the action: it builds a Config, calls one function, and renders to
//     [invocation.stdout]. It returns an error, a [verdict] if the report is
//     written and the code is all that is left to say, or nil. What belongs
//     together is joined with errors.Join; the frame picks the code.
//
// A command about a ledger takes its path from [ledgerPath] or [flagLedger], which
// know --config as well; one about clusters asks [invocation.configuration] first,
// and answers about several flows where the contract says so.
//
// A command that reads a ledger asks the process that holds it first, see
// [askFirst]; [freshLedger] is a copy for work that takes its time. What a
// running copier answers itself has a path in protocol.go.
//
// A new class of error gets its code in codeOf and its advice in hintFor; an
// error type of another package may bring its advice along in a method
// Hint() string. An action that was interrupted returns context.Cause(ctx), or
// an error that wraps it.
//
// Then describe its behaviour as a script in testdata/script and run the tests
// once with UPDATE_GOLDEN=1, which also brings the goldens of help up to date.
package main
