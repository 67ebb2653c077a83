package lint

import (
	"errors"
	"slices"
	"strings"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// A Kind says what a file is read as.
type Kind string

// The kinds of files.
const (
	MirrorMaker2 Kind = "mm2.properties"    // clusters and flows
	Client       Kind = "client.properties" // one Java client
)

// A Report is what is to be said about a file.
type Report struct {
	File     string
	Kind     Kind
	Findings []Finding // in the order of the file
	Flows    []Flow    // that would run

	checker *checker // nil if Java cannot read the file
}

// A Flow is one that would run, by its aliases.
type Flow struct{ Source, Target string }

// Check looks at a file. name is what findings call it. Options say where
// variables are taken from.
func Check(name string, data []byte, options mm2.ConfigOptions) *Report {
	file, err := javaprops.Parse(name, data)
	var syntax *javaprops.SyntaxError
	if errors.As(err, &syntax) {
		return unreadable(name, data, syntax)
	}
	c := newChecker(file, data)
	c.kind = c.fileKind()
	c.configure(data, options)
	r := &Report{File: name, Kind: c.kind, checker: c}
	c.format()
	if c.kind == MirrorMaker2 {
		c.mirrorMaker()
		for _, f := range c.running {
			r.Flows = append(r.Flows, Flow{f.Source, f.Target})
		}
	} else {
		c.connections()
	}
	r.Findings = sorted(c.findings)
	return r
}

// configure reads the file as a configuration, which is there even if it is
// refused. Where a mm2.properties lacks clusters, what it would be with them is
// looked at: a part of a file has more to be found than that.
func (c *checker) configure(data []byte, options mm2.ConfigOptions) {
	c.config, _ = mm2.ParseConfig(c.file, options)
	c.hidden = newHidden(c.config.Entries(), data)
	if c.kind == MirrorMaker2 && len(c.config.Clusters()) == 0 {
		likely := strings.Join(likelyAliases(c.file), ", ")
		c.add("AP0401", c.place("clusters"), "clusters", "clusters names no aliases: MirrorMaker 2 does not start", "clusters = "+likely)
		whole, err := javaprops.Parse(c.file.Name, append(slices.Clone(data), "\nclusters = "+likely+"\n"...))
		if err == nil {
			c.config, _ = mm2.ParseConfig(whole, options)
		}
	}
	c.aliases, c.running = c.config.Clusters(), c.config.Flows()
}

// likelyAliases returns the aliases that keys look as if they had.
func likelyAliases(f *javaprops.File) []string {
	var aliases []string
	add := func(alias string) {
		if alias != "" && !slices.Contains(aliases, alias) {
			aliases = append(aliases, alias)
		}
	}
	for _, e := range f.Entries {
		if s := takeApart(e.Key, nil); s.level == flowLevel {
			add(strings.TrimSpace(s.source))
			add(strings.TrimSpace(s.target))
		} else if alias, ok := strings.CutSuffix(e.Key, ".bootstrap.servers"); ok {
			add(alias)
		}
	}
	if aliases == nil {
		return []string{"A", "B"}
	}
	return aliases
}

// mirrorMaker looks at what the entries of a mm2.properties mean.
func (c *checker) mirrorMaker() {
	c.arrows()
	c.problems()
	c.flows()
	for _, s := range c.config.Entries() {
		at := takeApart(s.Key, c.aliases)
		if at.level != clusterLevel {
			c.setting(s, at.key)
		}
	}
	c.combinations()
	c.topics()
	c.rings()
	c.connections()
	c.defaults()
	c.unused()
}

// unused turns errors about values into warnings where no flow that runs has the
// value: such a file is not refused.
func (c *checker) unused() {
	refused := map[string]bool{}
	for _, p := range c.config.Problems() {
		refused[p.Key] = refused[p.Key] || p.Level == mm2.LevelError
	}
	for i, f := range c.findings {
		if f.Level == Error && f.Code >= "AP0301" && f.Code < "AP0401" && !refused[f.Key] {
			c.findings[i].Code, c.findings[i].Level = "AP0305", c.levels["AP0305"]
			c.findings[i].Message += "; no flow that is enabled has the value"
		}
	}
	c.withoutCauses()
}

// withoutCauses puts a remark or quotes that are part of a value together with the
// error that they make of it.
func (c *checker) withoutCauses() {
	causes := map[string]Finding{} // by key
	for _, f := range c.findings {
		if f.Code == "AP0105" || f.Code == "AP0106" {
			causes[f.Key] = f
		}
	}
	told := map[string]bool{}
	for i, f := range c.findings {
		if cause, ok := causes[f.Key]; ok && f.Level == Error {
			told[f.Key] = true
			c.findings[i].Message += "; " + cause.Message
			c.findings[i].Suggestion = cause.Suggestion
		}
	}
	c.findings = slices.DeleteFunc(c.findings, func(f Finding) bool {
		return told[f.Key] && (f.Code == "AP0105" || f.Code == "AP0106")
	})
}

// setting looks at one setting of a connector. key is without its level.
func (c *checker) setting(s mm2.Setting, key string) {
	if isPatternKey(key) {
		c.patterns(s, key)
	}
	c.traps(s, key)
}

// unreadable returns the report on a file that is none for Java.
func unreadable(name string, data []byte, err *javaprops.SyntaxError) *Report {
	c := newChecker(&javaprops.File{Name: name}, data)
	c.add("AP0101", err.At, "", err.What+": Java refuses the whole file", "double the backslash, or write a slash in a path")
	kind := Client
	if text := string(data); strings.Contains(text, "->") || strings.Contains(text, "clusters") {
		kind = MirrorMaker2
	}
	return &Report{File: name, Kind: kind, Findings: c.findings}
}

// physicalLines returns the lines of a file as Java numbers them.
func physicalLines(data []byte) []string {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	return strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
}

// fileKind tells the two kinds of files apart: a client's has neither clusters
// nor arrows, and what it has are keys of clients.
func (c *checker) fileKind() Kind {
	clients := 0
	for _, e := range c.file.Entries {
		if e.Key == "clusters" || strings.Contains(e.Key, "->") || strings.HasPrefix(strings.TrimSpace(e.Value), "->") {
			return MirrorMaker2
		}
		if c.keys.ofClient(e.Key) {
			clients++
		} else if c.keys.ofMirrorMaker(e.Key) {
			clients--
		}
	}
	if slices.ContainsFunc(c.file.Entries, func(e javaprops.Entry) bool { return strings.HasSuffix(e.Key, ".bootstrap.servers") }) || clients <= 0 {
		return MirrorMaker2
	}
	return Client
}
