package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// exitCodesTopic is the help topic that is no command.
const exitCodesTopic = "exit-codes"

func helpCommand() command {
	return command{
		path:    "help",
		args:    "[COMMAND | " + exitCodesTopic + "]",
		maxArgs: 2,
		summary: "describe a command, or the exit codes",
		details: "Without an argument, lists the commands. `apograph COMMAND --help` is the same\n" +
			"as `apograph help COMMAND`.",
		examples: []string{"apograph help ledger export", "apograph help " + exitCodesTopic},
		run: func(_ context.Context, inv *invocation) error {
			return writeHelp(inv.stdout, inv.table, inv.args)
		},
	}
}

// help answers --help for the command that words begin with.
func (f *frame) help(words []string) error {
	if len(words) == 0 {
		return writeHelp(f.stdout, f.table, nil)
	}
	c, _, err := f.table.resolve(words, true)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f.stdout, f.table.describe(c))
	return err
}

// writeHelp writes the help that `apograph help` with these arguments gives.
func writeHelp(w io.Writer, t commandTable, args []string) error {
	text, err := helpText(t, args)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

func helpText(t commandTable, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return t.overview(), nil
	case len(args) == 1 && args[0] == exitCodesTopic:
		return exitCodesText(), nil
	}
	c, rest, err := t.resolve(args, true)
	if _, ok := nearest(args[0], []string{exitCodesTopic}); ok && err != nil {
		return "", usagef("unknown command %s", quoteArg(args[0])).withHint("did you mean `apograph help %s`?", exitCodesTopic)
	}
	if err != nil {
		return "", err
	}
	if len(rest) > 0 {
		return "", usagef("%s has no subcommand %s", c.path, quoteArg(rest[0])).
			withHint("`apograph help %s` describes it", c.path)
	}
	return t.describe(c), nil
}

func (t commandTable) overview() string {
	table := &textTable{}
	for _, c := range t {
		if c.run != nil {
			table.add("", c.path, c.summary)
		}
	}
	return "apograph copies Kafka topics from one cluster to another and proves the copy.\n\n" +
		"Usage:\n  apograph COMMAND [ARGUMENT...] [FLAG...]\n" +
		section("Commands", table) +
		"\nFlags stand before or behind arguments. `apograph help COMMAND` describes a\n" +
		"command and its flags, `apograph help " + exitCodesTopic + "` the exit codes.\n" +
		wrap(t.environmentText(), "") +
		"\nExample:\n  apograph ledger inspect --ledger orders.ledger -o json\n"
}

// environmentText says which flags can be given in the environment.
func (t commandTable) environmentText() string {
	return "A flag can also be given in the environment, as APOGRAPH_TOPICS_EXCLUDE for --topics-exclude; on the command line it wins. " +
		"These cannot, as each use of them is a decision: " + strings.Join(t.flagsWithoutVariable(), ", ") + ", and --output where it is a file."
}

// flagsWithoutVariable returns the flags that have no environment variable in
// any command, as they are typed, in alphabetical order.
func (t commandTable) flagsWithoutVariable() []string {
	has := map[string]bool{}
	for _, c := range t {
		for _, f := range c.allFlags() {
			name := dashed(f.Names()[0])
			has[name] = has[name] || len(f.(cli.DocGenerationFlag).GetEnvVars()) > 0
		}
	}
	return slices.DeleteFunc(keys(has), func(name string) bool { return has[name] })
}

func exitCodesText() string {
	codes := &textTable{header: []string{"CODE", "MEANING"}, right: []bool{true, false}}
	for _, e := range exitCodes() {
		codes.add(strconv.Itoa(int(e.code)), e.meaning)
	}
	var order []string
	for _, code := range exitPrecedence() {
		order = append(order, strconv.Itoa(int(code)))
	}
	return codes.text(0) + "\nIf several apply, the first of " + strings.Join(order, ", ") + " wins.\n" +
		"Treat a code that is not in this table as a failure.\n"
}

// describe returns the help for c, which may be a group.
func (t commandTable) describe(c *command) string {
	text := "apograph " + c.path + ": " + c.summary + "\n\nUsage:\n  " + c.usage() + "\n"
	if c.details != "" {
		text += "\n" + c.details + "\n"
	}
	return text +
		section("Commands", t.membersTable(c)) +
		c.flagsSection() +
		c.exitsSection() +
		section("Examples", c.examplesTable())
}

// section returns a table under a title; nothing if the table is empty. The
// first column of the table is empty and indents the others.
func section(title string, table *textTable) string {
	if len(table.rows) == 0 {
		return ""
	}
	return "\n" + title + ":\n" + table.text(0)
}

func (c *command) usage() string {
	words := []string{"apograph", c.path}
	switch {
	case c.run == nil:
		words = append(words, "COMMAND [ARGUMENT...] [FLAG...]")
	case c.args != "":
		words = append(words, c.args)
	}
	if len(c.allFlags()) > 0 {
		words = append(words, "[FLAG...]")
	}
	return strings.Join(words, " ")
}

func (t commandTable) membersTable(group *command) *textTable {
	table := &textTable{}
	for _, name := range t.members(group.path) {
		member := t.find(group.path + " " + name)
		table.add("", member.path, member.summary)
	}
	return table
}

func (c *command) flagsSection() string {
	if len(c.allFlags()) == 0 {
		return ""
	}
	text := "\nFlags:\n"
	for _, f := range c.allFlags() {
		documented := f.(cli.DocGenerationFlag)
		placeholder, usage := splitUsage(documented.GetUsage())
		if variables := documented.GetEnvVars(); len(variables) > 0 {
			usage += " [$" + variables[0] + "]"
		}
		text += "  " + flagSynopsis(f.Names(), placeholder) + "\n" + wrap(usage, "        ")
	}
	return text
}

// flagSynopsis returns a flag as it is typed: "-o, --output FORMAT".
func flagSynopsis(names []string, placeholder string) string {
	synopsis := "    " + dashed(names[0])
	if len(names) > 1 {
		synopsis = dashed(names[1]) + ", " + dashed(names[0])
	}
	return strings.TrimRight(synopsis+" "+placeholder, " ")
}

// splitUsage returns the name of a flag's value, which stands between
// backquotes in its usage, and the usage without the backquotes.
func splitUsage(usage string) (placeholder, plain string) {
	before, rest, _ := strings.Cut(usage, "`")
	placeholder, after, ok := strings.Cut(rest, "`")
	if !ok {
		return "", usage
	}
	return placeholder, before + placeholder + after
}

func (c *command) exitsSection() string {
	if c.run == nil {
		return ""
	}
	text := "\nExit codes:\n"
	for _, e := range exitCodes() {
		if e.code <= exitUsage || slices.Contains(c.exits, e.code) {
			text += fmt.Sprintf("  %2d  %s", e.code, strings.TrimLeft(wrap(e.meaning, "      "), " "))
		}
	}
	return text
}

// helpColumns is the width of help texts.
const helpColumns = 78

// wrap returns s in lines of at most helpColumns, each of them indented.
func wrap(s, indent string) string {
	text, width := "", helpColumns
	for _, word := range strings.Fields(s) {
		if width+1+len(word) > helpColumns {
			text, width = strings.TrimSuffix(text, " ")+"\n"+indent, len(indent)-1
		} else {
			text += " "
		}
		text += word
		width += 1 + len(word)
	}
	return strings.TrimPrefix(text, "\n") + "\n"
}

func (c *command) examplesTable() *textTable {
	table := &textTable{}
	for _, example := range c.examples {
		for line := range strings.SplitSeq(example, "\n") {
			table.add("", line)
		}
	}
	return table
}
