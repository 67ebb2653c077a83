package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// A command is one row of the table of commands: what help says about it, what
// it accepts, and what it does.
type command struct {
	path     string // how it is called, without "apograph": "ledger inspect"
	args     string // its arguments as help shows them; empty for none
	maxArgs  int    // how many arguments it takes at most
	summary  string // one line for the list of commands, lower case, no period
	details  string // paragraphs for its own help, wrapped at 78 columns
	examples []string
	formats  []format   // what --output may ask for, the default first
	flags    []cli.Flag // beside --output and --help
	exits    []exitCode // beside 0, 1 and 2
	run      func(ctx context.Context, inv *invocation) error
}

// A commandTable holds all commands in the order in which help lists them. A
// row without run is a group: its path is the first word of its members' paths.
type commandTable []command

// commands returns the table. It is built anew for every run, because cli keeps
// state in the flags.
func commands() commandTable {
	return commandTable{
		demoCommand(),
		replicateCommand(),
		statusCommand(),
		pauseCommand(),
		resumeCommand(),
		verifyCommand(),
		translateCommand(),
		attachCommand(),
		lintCommand(),
		configCommand(),
		configShowCommand(),
		mm2Command(),
		mm2OffsetSyncsCommand(),
		mm2CheckpointsCommand(),
		mm2HeartbeatsCommand(),
		ledgerCommand(),
		ledgerInspectCommand(),
		ledgerCheckCommand(),
		ledgerExportCommand(),
		ledgerSnapshotCommand(),
		ledgerMigrateCommand(),
		ledgerAcceptCommand(),
		versionCommand(),
		helpCommand(),
	}
}

// An invocation is what an action works with: the command line in typed form,
// and the three streams.
type invocation struct {
	*cli.Context // flag values: String, StringSlice, Bool, Duration, IsSet

	table  commandTable
	row    *command    // of the command that runs
	line   commandLine // what was typed, where it matters that it was no variable
	args   []string    // at most maxArgs
	format format      // one of the command's formats; empty if it has none

	stdin  io.Reader
	stdout *output
	stderr *console

	warned map[string]bool // what was told, see warnOnce
}

// find returns the row with exactly this path, or nil.
func (t commandTable) find(path string) *command {
	i := slices.IndexFunc(t, func(c command) bool { return c.path == path })
	if i < 0 {
		return nil
	}
	return &t[i]
}

// resolve returns the command that the first words name and the words behind
// its path, which are its arguments. A group is returned only with
// allowGroup, as help needs it; otherwise it is refused like any unknown word.
func (t commandTable) resolve(words []string, allowGroup bool) (*command, []string, error) {
	if len(words) == 0 {
		return nil, nil, usagef("no command given").withHint("`apograph help` lists the commands")
	}
	c := t.find(words[0])
	if c == nil {
		return nil, nil, t.unknownCommand(words)
	}
	if c.run != nil || (allowGroup && len(words) == 1) {
		return c, words[1:], nil
	}
	if len(words) == 1 {
		return nil, nil, usagef("%s needs a subcommand: %s", c.path, orList(t.members(c.path))).
			withHint("`apograph help %s` describes them", c.path)
	}
	member := t.find(c.path + " " + words[1])
	if member == nil {
		return nil, nil, t.unknownCommand(words)
	}
	return member, words[2:], nil
}

// members returns the second words of the commands in a group.
func (t commandTable) members(group string) []string {
	var members []string
	for _, c := range t {
		if member, ok := strings.CutPrefix(c.path, group+" "); ok {
			members = append(members, member)
		}
	}
	return members
}

// unknownCommand returns the usage error for words that name no command, with
// the nearest one as a suggestion. A subcommand given without its group
// ("inspect") is near as well.
func (t commandTable) unknownCommand(words []string) *usageError {
	name := words[0]
	candidates := map[string]string{} // what may have been meant -> the path to suggest
	group := t.find(name)
	if group != nil {
		name = words[1]
	}
	for _, c := range t {
		first, last, nested := strings.Cut(c.path, " ")
		switch {
		case !nested && group == nil:
			candidates[first] = c.path
		case nested && group != nil && group.path == first,
			nested && group == nil && candidates[last] == "":
			candidates[last] = c.path
		}
	}
	what := "command"
	if group != nil {
		what = group.path + " subcommand"
	}
	err := usagef("unknown %s %s", what, quoteArg(name))
	if best, ok := nearest(name, keys(candidates)); ok {
		return err.withHint("did you mean `apograph %s`?", candidates[best])
	}
	return err.withHint("`apograph help` lists the commands")
}

// flag returns the flag of c with this full name, or nil.
func (c *command) flag(name string) cli.Flag {
	for _, f := range c.allFlags() {
		if f.Names()[0] == name {
			return f
		}
	}
	return nil
}

// allFlags returns the flags that c accepts, --help apart.
func (c *command) allFlags() []cli.Flag {
	if len(c.formats) == 0 {
		return c.flags
	}
	return append([]cli.Flag{outputFlag(c.formats)}, c.flags...)
}
