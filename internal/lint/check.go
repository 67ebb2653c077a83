package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// A checker collects findings about one file.
type checker struct {
	file     *javaprops.File
	kind     Kind
	lines    []string // physical lines, for looks at what became part of another line
	levels   map[string]Level
	keys     *keyTable
	config   *mm2.Config
	aliases  []string
	running  []mm2.FlowConfig
	findings []Finding
	codes    map[string][]string // of findings, by key
	singles  map[Finding]bool    // what [checker.single] has told

	hidden   hidden                      // what config providers gave
	ruled    map[mm2.Pair]mm2.TopicRules // what was found out of flows
	branched map[mm2.Pair][]branch
	automata map[string]*automaton
	searched map[string]searched // and of names
	looks    int                 // what searches for names may still cost
}

func newChecker(file *javaprops.File, data []byte) *checker {
	return &checker{
		file: file, lines: physicalLines(data), levels: levels(), keys: newKeyTable(),
		codes: map[string][]string{}, singles: map[Finding]bool{},
		ruled: map[mm2.Pair]mm2.TopicRules{}, branched: map[mm2.Pair][]branch{}, automata: map[string]*automaton{}, searched: map[string]searched{}, looks: maxLooks,
	}
}

// add adds a finding with the level of its code.
func (c *checker) add(code string, at javaprops.Position, key, message, suggestion string) {
	level, ok := c.levels[code]
	if !ok {
		panic("lint: code " + code + " is not in the table")
	}
	f := c.hidden.in(Finding{
		File: c.file.Name, Line: at.Line, Column: at.Column, Level: level, Code: code,
		Key: key, Message: message, Suggestion: suggestion,
	})
	c.findings = append(c.findings, f)
	c.codes[f.Key] = append(c.codes[f.Key], code)
}

// told reports whether there is a finding about a key already that has one of the
// codes, or of the groups of codes that begin so.
func (c *checker) told(key string, codes ...string) bool {
	return slices.ContainsFunc(c.codes[key], func(told string) bool {
		return slices.ContainsFunc(codes, func(code string) bool { return strings.HasPrefix(told, code) })
	})
}

// once adds a finding about a setting of a flow, which several flows may share,
// unless it is there. A default has no place in the file: then the flow's switch
// stands for it.
func (c *checker) once(code string, s mm2.Setting, f mm2.FlowConfig, message, suggestion string) {
	origin := s.Origin
	if origin.At.IsZero() {
		origin = f.Get("enabled").Origin
	}
	told := slices.ContainsFunc(c.findings, func(f Finding) bool {
		return f.Code == code && f.Line == origin.At.Line && f.Column == origin.At.Column
	})
	if !told {
		c.add(code, origin.At, origin.Key, message, suggestion)
	}
}

// place returns where a key stands that is written like this; nowhere if it does
// not.
func (c *checker) place(key string) javaprops.Position {
	e, _ := c.file.Get(key)
	return e.At
}

// secret reports whether the value of an entry is not to be shown. Of a key that
// nobody knows it is not either: it may be a misspelt one.
func (c *checker) secret(e *javaprops.Entry) bool {
	key := takeApart(e.Key, c.aliases).key
	_, name := clientRole(key)
	known := c.keys.ofMirrorMaker(key) || c.keys.ofClient(name) || isPatternKey(key)
	return !known || javaprops.Secret(e.Key) || strings.Contains(e.Value, "${")
}

// brief returns a value as a message repeats it: quoted, and cut where it is
// long.
func brief(value string) string {
	const most = 60
	if len(value) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(value[cut]) {
			cut--
		}
		value = value[:cut] + "..."
	}
	return fmt.Sprintf("%q", value)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// listed returns names in a sentence, at most a handful of them.
func listed(names []string) string {
	const most = 6
	if n := len(names) - most; n > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}
