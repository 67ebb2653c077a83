package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// envVar returns the environment variable that stands for a flag:
// APOGRAPH_TOPICS_EXCLUDE for --topics-exclude. A flag on the command line wins
// over its variable.
func envVar(flag string) string {
	return "APOGRAPH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// stringFlag returns a flag that takes one value. In usage, the name of the
// value stands between backquotes, as cli has it.
func stringFlag(name, usage string, aliases ...string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Aliases: aliases, Usage: usage, EnvVars: []string{envVar(name)}}
}

// listFlag returns a flag that may be repeated and whose values are kept whole:
// commas in them mean nothing to the command line.
func listFlag(name, usage string) *cli.StringSliceFlag {
	return &cli.StringSliceFlag{Name: name, Usage: usage, KeepSpace: true, EnvVars: []string{envVar(name)}}
}

// durationFlag returns a flag that takes a duration such as 1m30s.
func durationFlag(name, usage string, value time.Duration) *cli.DurationFlag {
	return &cli.DurationFlag{Name: name, Usage: usage, Value: value, EnvVars: []string{envVar(name)}}
}

// outputFlag returns --output for a command that writes these formats, the
// default first. The frame adds it and checks its value.
func outputFlag(formats []format) cli.Flag {
	return stringFlag("output", "write the answer as `FORMAT`: "+orList(formatNames(formats))+
		" (default "+string(formats[0])+")", "o")
}

// ledgerFlag returns --ledger.
func ledgerFlag() cli.Flag {
	return stringFlag("ledger", "the `FILE` of the ledger (with --config A-to-B.ledger in apograph.ledger.dir)")
}

// ledgerFlags returns the flags that say which ledger a command is about that
// needs no cluster, see [ledgerPath].
func ledgerFlags() []cli.Flag { return append([]cli.Flag{ledgerFlag()}, configFlags(overFlag())...) }

// overFlag returns -X for commands that set nothing else by it.
func overFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "X", KeepSpace: true, Usage: "set `KEY=VALUE` instead of what the file of --config says, may be repeated"}
}

// selectionFlags returns --topics and --topics-exclude, see [newSelection].
func selectionFlags() []cli.Flag {
	return []cli.Flag{
		listFlag("topics", "only source topics that match a `LIST` of regular expressions, separated by commas; matches whole names"),
		listFlag("topics-exclude", "leave out source topics that match a `LIST` of regular expressions, even if --topics has them"),
	}
}

// statsFlag returns --stats, see [invocation.withProgress].
func statsFlag() cli.Flag {
	return durationFlag("stats", "tell the progress every `INTERVAL`, where it is not shown live on a terminal; 0 for never (default 30s)",
		30*time.Second)
}
