package lint

import (
	"cmp"
	"slices"
)

// A Level says how much a finding matters.
type Level string

// The levels, the worst first.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Notice  Level = "notice"
)

// A Finding is one thing to know about one place of a file.
type Finding struct {
	File       string `json:"file"`
	Line       int    `json:"line"`   // from 1; 0: the file as a whole
	Column     int    `json:"column"` // from 1, in characters of the line; 0 with Line 0
	Level      Level  `json:"level"`
	Code       string `json:"code"`       // one of [Codes]
	Key        string `json:"key"`        // the key that it is about; empty for none
	Message    string `json:"message"`    // one line for a person, without a period
	Suggestion string `json:"suggestion"` // what to do or to write instead; may be empty
}

// Levels counts findings.
type Levels struct{ Errors, Warnings, Notices int }

// Count returns how many findings there are of each level.
func Count(findings []Finding) (n Levels) {
	for _, f := range findings {
		switch f.Level {
		case Error:
			n.Errors++
		case Warning:
			n.Warnings++
		case Notice:
			n.Notices++
		}
	}
	return n
}

// Clean reports whether there is nothing but notices.
func (n Levels) Clean() bool { return n.Errors == 0 && n.Warnings == 0 }

// sorted returns findings in the order of the file, what is about the file as a
// whole last.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Code, b.Code))
	})
	return findings
}
