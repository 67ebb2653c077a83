package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A docPage is a page of the documentation whose commands are run.
type docPage struct {
	name  string
	steps []docStep
	unit  string // what the page's systemd unit starts; "" without one
	spans []docStep
}

// A docStep is a block of commands of a page, and what the page says of it.
type docStep struct {
	place   string // file and line
	heading string // the nearest above
	script  string
	exit    int
	stated  bool     // the page names the exit code
	repeat  bool     // the reader is told to repeat it until it is as shown
	output  []string // lines of standard output as shown; nil where nothing is
}

var (
	docExit   = regexp.MustCompile(`\bExit code (\d+)`)
	docInline = regexp.MustCompile("`(apograph [^`]*)`")
)

// mustReadPage reads a page. Commands are the blocks marked as sh, and where
// indented is set those that are indented by four blanks, one command each.
func mustReadPage(t *testing.T, path string, indented bool) *docPage {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &docPage{name: filepath.Base(path)}
	r := pageReader{page: p, indented: indented}
	for line := range strings.Lines(string(text)) {
		r.line(strings.TrimRight(line, "\n"))
	}
	if r.fence != "" || len(p.steps) == 0 {
		t.Fatalf("%s: a block does not end, or there is none", path)
	}
	return p
}

// A pageReader takes a page apart, line by line.
type pageReader struct {
	page     *docPage
	indented bool
	at       int
	heading  string
	fence    string // what the block is marked as that the line is in; "" in prose
	goesOn   bool   // the last indented line ended with a backslash
}

func (r *pageReader) line(line string) {
	r.at++
	mark, isFence := strings.CutPrefix(line, "```")
	switch {
	case isFence && r.fence == "":
		r.open(mark)
	case isFence:
		r.fence = ""
	case r.fence != "":
		r.inBlock(line)
	case r.indented && strings.HasPrefix(line, "    "):
		r.command(line)
	default:
		r.prose(line)
	}
}

func (r *pageReader) open(mark string) {
	r.fence = mark
	switch last := r.last(); {
	case mark == "":
		r.fence = "unmarked"
	case mark == "sh":
		r.add("")
	case mark == "text" && last != nil && last.output == nil:
		last.output = []string{}
	}
}

func (r *pageReader) add(script string) {
	r.page.steps = append(r.page.steps, docStep{place: r.place(), heading: r.heading, script: script})
}

func (r *pageReader) place() string { return fmt.Sprintf("%s:%d", r.page.name, r.at) }

// last returns the step that is spoken of; nil in front of the first.
func (r *pageReader) last() *docStep {
	if len(r.page.steps) == 0 {
		return nil
	}
	return &r.page.steps[len(r.page.steps)-1]
}

func (r *pageReader) inBlock(line string) {
	switch last := r.last(); r.fence {
	case "sh":
		last.script += line + "\n"
	case "text":
		last.output = append(last.output, line)
	case "ini":
		if command, ok := strings.CutPrefix(line, "ExecStart="); ok {
			r.page.unit = command
		}
	}
}

// command takes an indented line, which is a command that exits with 0 if nothing
// else is said. One that ends with a backslash goes on in the next.
func (r *pageReader) command(line string) {
	line = strings.TrimSpace(line)
	if r.goesOn {
		r.last().script += line + "\n"
	} else {
		r.add(line + "\n")
		r.last().stated = true
	}
	r.goesOn = strings.HasSuffix(line, `\`)
}

func (r *pageReader) prose(line string) {
	if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
		r.heading = title
	}
	for _, m := range docInline.FindAllStringSubmatch(line, -1) {
		r.page.spans = append(r.page.spans, docStep{place: r.place(), script: m[1]})
	}
	last := r.last()
	if last == nil || last.heading != r.heading {
		return
	}
	if m := docExit.FindStringSubmatch(line); m != nil && (!last.stated || r.indented) {
		last.stated = true
		last.exit, _ = strconv.Atoi(m[1])
	}
	last.repeat = last.repeat || strings.Contains(line, "Repeat it until")
}

// shownAs returns an expression for the output that a page shows: blanks do not
// count, and ... stands for anything, as a line for any number of lines.
func shownAs(lines []string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`^`)
	for _, line := range lines {
		words := regexp.QuoteMeta(strings.Join(strings.Fields(line), " "))
		if words == `\.\.\.` {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		words = strings.ReplaceAll(words, ` \.\.\.`, `(?: .*)?`)
		words = strings.ReplaceAll(words, `\.\.\. `, `(?:.* )?`)
		b.WriteString(strings.ReplaceAll(words, `\.\.\.`, `.*`) + `\n`)
	}
	b.WriteString(`$`)
	return regexp.MustCompile(b.String())
}

// evenBlanks makes all blanks of a text single ones.
func evenBlanks(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

// TestShownAs: the comparison of outputs can fail.
func TestShownAs(t *testing.T) {
	for _, tt := range []struct {
		shown, got string
		want       bool
	}{
		{"a b", "a   b\n", true},
		{"a b", "a c\n", false},
		{"a b", "a b\nc\n", false},
		{"a ...", "a\n", true},
		{"a ... d", "a b c d\n", true},
		{"a ... d", "a b c\n", false},
		{"...\nlast", "one\ntwo\nlast\n", true},
		{"...\nlast", "one\nlast\ntwo\n", false},
		{"one\n...", "one\n", true},
		{"x...z", "xyz\n", true},
	} {
		if got := shownAs(strings.Split(tt.shown, "\n")).MatchString(evenBlanks(tt.got)); got != tt.want {
			t.Errorf("%q shown as %q: %v, want %v", tt.got, tt.shown, got, tt.want)
		}
	}
}
