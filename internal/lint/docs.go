package lint

import (
	"fmt"
	"strings"
)

// Markdown returns the page that describes every code, docs/lint.md.
func Markdown() string {
	var page strings.Builder
	page.WriteString(preface)
	for _, g := range groups() {
		fmt.Fprintf(&page, "\n## %s\n\n| code | level | what is found |\n| --- | --- | --- |\n", g.title)
		for _, c := range g.codes {
			fmt.Fprintf(&page, "| [%s](#%s) | %s | %s |\n", c.ID, strings.ToLower(c.ID), c.Level, c.Title)
		}
		for _, c := range g.codes {
			page.WriteString(c.markdown())
		}
	}
	return page.String()
}

const preface = `# What apograph lint finds

` + "`apograph lint FILE`" + ` reads an mm2.properties or a client.properties and tells what in it does not do what its author thinks.
Each finding has a place, a level and a code. Codes keep their meaning: a script may rely on them.

- **error**: apograph refuses it; a run ends with exit code 2 before anything is written. Of what clusters say: a run comes to no good end.
- **warning**: it works, and most likely not as it was meant.
- **notice**: good to know. With nothing but notices the command exits 0, else 3.

This page is made from the table in the code, and each example is run by a test. Examples of flows stand for a file that also has
` + "`clusters = a, b`" + `, the addresses of both, and ` + "`a->b.enabled = true`" + `, where they do not say otherwise.
`

func (c Code) markdown() string {
	text := fmt.Sprintf("\n### %s\n\n%s: %s.\n\n%s\n", c.ID, strings.ToUpper(string(c.Level[:1]))+string(c.Level[1:]), c.Title, c.Meaning)
	if c.Example != "" {
		text += "\n" + block(c.Example)
	}
	text += "\n**What to do:** " + c.Do + "\n"
	if c.Better != "" {
		text += "\n" + block(c.Better)
	}
	return text
}

// block returns lines of a properties file as they are shown: what cannot be
// seen has a sign of its own.
func block(lines string) string {
	lines = strings.ReplaceAll(lines, "\ufeff", "[U+FEFF]")
	var shown strings.Builder
	for line := range strings.SplitSeq(lines, "\n") {
		kept := strings.TrimRight(line, " ")
		shown.WriteString(kept + strings.Repeat("␠", len(line)-len(kept)) + "\n")
	}
	return "```properties\n" + shown.String() + "```\n"
}
