package lint

import "slices"

// A Code is one row of the table of findings.
type Code struct {
	ID      string // AP and four digits, of which the first two are the group
	Level   Level
	Title   string // what is found, lower case, no period
	Meaning string // why it matters
	Do      string // what to do about it
	Example string // lines of a file in which it is found; empty where clusters have to say it
	Better  string // the same lines, so that it is found no more; empty if there is no one way
}

// A group is the codes that begin with the same two digits.
type group struct {
	title string
	codes []Code
}

// groups returns the table of findings.
func groups() []group {
	return []group{
		{"How Java reads the file", formatCodes()},
		{"Keys", slices.Concat(keyCodes(), classCodes())},
		{"Values and patterns", slices.Concat(valueCodes(), patternCodes(), trapCodes())},
		{"Clusters and flows", slices.Concat(flowCodes(), aliasCodes())},
		{"Topics and policies", topicCodes()},
		{"Connections and logins", clientCodes()},
		{"What the clusters say", clusterCodes()},
	}
}

// Codes returns the table of findings, in order.
func Codes() []Code {
	var all []Code
	for _, g := range groups() {
		all = append(all, g.codes...)
	}
	return all
}

// levels returns the level of each code.
func levels() map[string]Level {
	of := map[string]Level{}
	for _, c := range Codes() {
		of[c.ID] = c.Level
	}
	return of
}
