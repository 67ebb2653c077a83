package main

import (
	"slices"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"
)

// A commandLine is what the user typed, sorted into words and flags.
type commandLine struct {
	words   []string    // the command's path and its arguments
	flags   []flagValue // in the order given, by their full names
	unknown string      // the first flag that no command has; empty if none
	help    bool        // --help or -h was given
}

// A flagValue is one flag as it was given.
type flagValue struct {
	name  string // the full name, without dashes
	typed string // the name as it was typed: "-o" for output
	value string // "true" for a flag that takes none
}

// A flagSpec is what the parser must know of a flag.
type flagSpec struct {
	name       string // the full name
	takesValue bool
	repeatable bool
}

// A flagIndex holds the flags of all commands by each of their names. A name
// that several commands use takes a value in all of them or in none: only so
// can the command be found before its own flags are known.
type flagIndex map[string]flagSpec

// flagIndex returns the index of t's flags.
func (t commandTable) flagIndex() flagIndex {
	help := flagSpec{name: "help"}
	index := flagIndex{"help": help, "h": help}
	for _, c := range t {
		for _, f := range c.allFlags() {
			for _, name := range f.Names() {
				index[name] = specOf(f)
			}
		}
	}
	return index
}

func specOf(f cli.Flag) flagSpec {
	spec := flagSpec{name: f.Names()[0]}
	if documented, ok := f.(cli.DocGenerationFlag); ok {
		spec.takesValue = documented.TakesValue()
	}
	_, spec.repeatable = f.(*cli.StringSliceFlag)
	return spec
}

// parse sorts argv, which does not hold the program's name, into words and
// flags, wherever they stand. These are flags:
//
//	--name value   --name=value   --name     (the last if it takes no value)
//	-n value       -n=value   -nvalue   -n
//
// Behind "--" everything is a word; "-" alone and a negative number always are.
// A value that begins with a dash must be attached with "=": otherwise a
// forgotten value would swallow the flag that follows. The first word may be
// --version, which stands for the command of that name.
func (x flagIndex) parse(argv []string) (commandLine, error) {
	var line commandLine
	for len(argv) > 0 {
		word := argv[0]
		argv = argv[1:]
		switch {
		case word == "--":
			line.words = append(line.words, argv...)
			return line, nil
		case !looksLikeFlag(word):
			line.words = append(line.words, word)
		case word == "--version" && len(line.words) == 0:
			line.words = []string{"version"}
		default:
			taken, err := x.parseFlag(&line, word, argv)
			if err != nil {
				return line, err
			}
			argv = argv[taken:]
		}
	}
	return line, nil
}

// parseFlag adds the flag in word to line and returns how many of the words
// that follow belong to it.
func (x flagIndex) parseFlag(line *commandLine, word string, rest []string) (taken int, err error) {
	name, value, attached := x.cutFlag(word)
	spec, ok := x[name]
	if !ok {
		if line.unknown == "" {
			line.unknown = word
		}
		return 0, nil
	}
	switch {
	case attached:
	case !spec.takesValue:
		value = "true"
	case len(rest) == 0:
		return 0, usagef("%s needs a value", dashed(name))
	case looksLikeFlag(rest[0]):
		return 0, usagef("%s needs a value, and %s looks like a flag", dashed(name), quoteArg(rest[0])).
			withHint("a value that begins with a dash is written %s=VALUE", dashed(name))
	default:
		value, taken = rest[0], 1
	}
	if spec.name == "help" {
		line.help = value == "true"
		return taken, nil
	}
	return taken, line.add(spec, dashed(name), value)
}

// add appends a flag. One that takes a single value may be repeated only with
// the same value: which of two ledgers was meant is not for us to guess.
func (line *commandLine) add(spec flagSpec, typed, value string) error {
	if !spec.repeatable {
		for _, f := range line.flags {
			if f.name == spec.name && f.value != value {
				return usagef("%s is given twice: %s and %s", typed, quoteArg(f.value), quoteArg(value))
			}
		}
	}
	line.flags = append(line.flags, flagValue{name: spec.name, typed: typed, value: value})
	return nil
}

// cutFlag splits a flag into name and attached value. The name is empty if word
// has no form that a flag can have, as a long name behind a single dash, or a
// dash that a text processor has made typographic.
func (x flagIndex) cutFlag(word string) (name, value string, attached bool) {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		name, value, attached = strings.Cut(long, "=")
		if len(name) == 1 {
			return "", "", false
		}
		return name, value, attached
	}
	short, ok := strings.CutPrefix(word, "-")
	if !ok {
		return "", "", false
	}
	if long, _, _ := strings.Cut(short, "="); len(long) > 1 && x[long].name != "" {
		return "", "", false
	}
	name, value = short[:1], short[1:]
	if value == "" {
		return name, "", false
	}
	if !x[name].takesValue && value[0] != '=' {
		return "", "", false
	}
	return name, strings.TrimPrefix(value, "="), true
}

// looksLikeFlag reports whether a word is meant as a flag.
func looksLikeFlag(word string) bool {
	first, rest := firstRune(word)
	switch {
	case rest == "" || first == '-' && rest[0] >= '0' && rest[0] <= '9':
		return false
	default:
		return unicode.Is(unicode.Dash, first)
	}
}

func firstRune(s string) (first rune, rest string) {
	for i, r := range s {
		if i > 0 {
			return first, s[i:]
		}
		first = r
	}
	return first, ""
}

// dashed returns a flag's name as the user types it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// has reports whether a flag was given on the line, by its full name.
func (line *commandLine) has(name string) bool { return line.typed(name) != "" }

// typed returns how a flag was typed on the line, by its full name; empty if it
// was not.
func (line *commandLine) typed(name string) string {
	for _, f := range line.flags {
		if f.name == name {
			return f.typed
		}
	}
	return ""
}

// check refuses the flags on the line that c does not have.
func (line *commandLine) check(c *command) error {
	var names []string
	for _, f := range c.allFlags() {
		names = append(names, f.Names()...)
	}
	if line.unknown != "" {
		return unknownFlag(line.unknown, c, names)
	}
	for _, f := range line.flags {
		if !slices.Contains(names, f.name) {
			return unknownFlag(f.typed, c, names)
		}
	}
	return nil
}

// unknownFlag returns the usage error for a flag that c does not have, which
// may be nil if no command is known, with the nearest of names as a suggestion.
func unknownFlag(word string, c *command, names []string) *usageError {
	word, _, _ = strings.Cut(word, "=")
	err := usagef("unknown flag %s", quoteArg(word))
	bare := strings.TrimLeftFunc(word, func(r rune) bool { return unicode.Is(unicode.Dash, r) })
	long := slices.DeleteFunc(append([]string{"help"}, names...), func(n string) bool { return len(n) == 1 })
	if best, ok := nearest(bare, long); ok {
		return err.withHint("did you mean %s?", dashed(best))
	}
	if c == nil {
		return err.withHint("`apograph help` lists the commands")
	}
	return err.withHint("`apograph help %s` lists its flags", c.path)
}

// canonical returns the line as cli parses it without surprises: the path of c,
// every flag with its value attached, "--", and the arguments.
func (line *commandLine) canonical(c *command, args []string) []string {
	argv := append([]string{"apograph"}, strings.Fields(c.path)...)
	for _, f := range line.flags {
		argv = append(argv, "--"+f.name+"="+f.value)
	}
	return append(append(argv, "--"), args...)
}
