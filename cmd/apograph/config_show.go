package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"apograph/internal/connect"
	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

func configCommand() command {
	return command{
		path:    "config",
		summary: "look at a configuration",
	}
}

func configShowCommand() command {
	return command{
		path:    "config show",
		summary: "print the settings that hold for each flow",
		details: "Reads an mm2.properties and prints, for each flow that is enabled, every setting\n" +
			"that holds for it: its own, those of the top level, and defaults. With --origin,\n" +
			"also where each comes from. Secrets are not shown.\n" +
			"What MirrorMaker 2 needs and apograph does not, and with --origin what apograph\n" +
			"does better by default, and which internal topics of Kafka Connect there are not,\n" +
			"is told once, at the end.",
		examples: []string{"apograph config show --config mm2.properties", "apograph config show --config mm2.properties --flow 'a->b' --origin"},
		formats:  []format{formatTable, formatWide, formatJSON},
		flags: append(configFlags(overFlag()),
			&cli.BoolFlag{Name: "origin", Usage: "say where each setting comes from", EnvVars: []string{envVar("origin")}},
		),
		run: runConfigShow,
	}
}

// A configReport is the answer of `apograph config show`.
type configReport struct {
	envelope
	File  string            `json:"file"`
	Flows []configFlow      `json:"flows"`
	Notes map[string]string `json:"notes"` // of keys that are ignored, not needed, or have another default: why
}

type configFlow struct {
	Source   string          `json:"source"`
	Target   string          `json:"target"`
	Enabled  bool            `json:"enabled"`
	Settings []configSetting `json:"settings"`
}

// A configSetting is one setting of a flow. Client is "source" or "target" of
// what the client of that cluster has, and empty of what the flow has.
type configSetting struct {
	Client string        `json:"client"`
	Key    string        `json:"key"`
	Value  string        `json:"value"`
	Origin *configOrigin `json:"origin,omitempty"` // with --origin
}

type configOrigin struct {
	Kind   mm2.OriginKind `json:"kind"`
	Key    string         `json:"key"`
	File   string         `json:"file"`
	Line   int            `json:"line"` // 0: it does not stand in the file
	Column int            `json:"column"`
}

func runConfigShow(_ context.Context, inv *invocation) error {
	config, flows, err := configuredFlows(inv)
	if err != nil {
		return err
	}
	report := configReport{envelope: newEnvelope("ConfigReport", "config"), File: config.File().Name, Notes: map[string]string{}}
	for _, f := range flows {
		report.add(f, inv.Bool("origin"))
	}
	report.unused(config)
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, report)
	}
	return writeConfigText(inv, report)
}

// configuredFlows returns the configuration that --config names and the flows
// that are asked for, which need not be enabled.
func configuredFlows(inv *invocation) (*mm2.Config, []mm2.FlowConfig, error) {
	c := &configuration{path: inv.String("config")}
	if c.path == "" {
		return nil, nil, usagef("--config is needed").withHint("name an mm2.properties")
	}
	if err := c.read(inv); err != nil {
		return nil, nil, err
	}
	var flows []mm2.FlowConfig
	for _, name := range inv.StringSlice("flow") {
		flow, err := namedFlow(c.file, name)
		if err != nil {
			return nil, nil, err
		}
		flows = append(flows, flow)
	}
	if flows == nil {
		flows = c.file.Flows()
	}
	return c.file, flows, nil
}

// namedFlow returns the flow of a configuration that --flow names.
func namedFlow(config *mm2.Config, name string) (mm2.FlowConfig, error) {
	source, target, ok := strings.Cut(name, "->")
	if !ok {
		return mm2.FlowConfig{}, usagef("--flow %s is not written as A->B", quoteArg(name))
	}
	flow, ok := config.Flow(strings.TrimSpace(source), strings.TrimSpace(target))
	if !ok {
		var names []string
		for _, f := range config.Flows() {
			names = append(names, f.String())
		}
		return mm2.FlowConfig{}, usagef("--flow: there is no flow %s", quoteArg(name)).withHint("enabled are %s", strings.Join(names, ", "))
	}
	return flow, nil
}

// add adds a flow, its own settings first, then those of its two clients.
func (r *configReport) add(f mm2.FlowConfig, origin bool) {
	flow := configFlow{Source: f.Source, Target: f.Target, Enabled: f.Enabled()}
	show := func(client string, s mm2.Setting) {
		shown := configSetting{Client: client, Key: s.Key, Value: shownValue(s)}
		if origin {
			shown.Origin = &configOrigin{s.Origin.Kind, s.Origin.Key, s.Origin.At.File, s.Origin.At.Line, s.Origin.At.Column}
		}
		flow.Settings = append(flow.Settings, shown)
	}
	table := map[string]mm2.Key{}
	for _, k := range mm2.Keys() {
		table[k.Name] = k
	}
	for _, s := range f.Effective() {
		k, inFile := table[s.Key], s.Origin.Key != ""
		if k.Treatment == mm2.Ignored && !inFile {
			continue // a default that has no effect
		}
		show("", s)
		if inFile || origin && k.Treatment == mm2.Better {
			r.note(k)
		}
	}
	if origin {
		for _, k := range f.Silent() {
			r.Notes[k.Name] = k.Ours + "; MirrorMaker 2: " + k.Default
		}
		r.noteTopics(f)
	}
	for _, side := range []struct {
		name  string
		props map[string]mm2.Setting
	}{{"source", f.SourceClient()}, {"target", f.TargetClient()}} {
		for _, key := range keys(side.props) {
			show(side.name, side.props[key])
		}
	}
	r.Flows = append(r.Flows, flow)
}

// unused notes the keys of the file that are for Kafka Connect alone, of which no flow
// has anything: its internal topics, its workers, its REST server.
func (r *configReport) unused(config *mm2.Config) {
	for _, p := range config.Problems() {
		if p.Kind != mm2.IgnoredKey && p.Kind != mm2.BetterKey {
			continue
		}
		k, rest, found := mm2.Key{}, p.Key, true
		for known := false; found && !known; _, rest, found = strings.Cut(rest, ".") {
			k, known = mm2.LookupKey(rest)
		}
		if k.Name == "" { // a key of a family, such as topic.creation.x.include
			r.Notes[p.Key] = "ignored: it belongs to what is not run here"
		}
		r.note(k)
	}
}

// noteTopics notes Connect's internal topics, which MirrorMaker 2 makes for a flow
// whether its file names them or not.
func (r *configReport) noteTopics(f mm2.FlowConfig) {
	worker := f.Worker()
	for _, of := range []string{"config", "offset", "status"} {
		if s := worker[of+".storage.topic"]; s.Origin.Key == "" {
			k, _ := mm2.LookupKey(s.Key)
			note := cmp.Or(r.Notes[s.Key], "no such topic is made: "+k.Reason+"; MirrorMaker 2 makes")
			if !strings.HasSuffix(note, " "+s.Value) {
				note += " " + s.Value
			}
			r.Notes[s.Key] = note
		}
	}
}

// shownValue returns a value for people's eyes. Of a key that looks like a misspelt
// one of a secret it is hidden as well.
func shownValue(s mm2.Setting) string {
	if _, known := connect.Lookup(s.Key); !known && s.Value != "" && javaprops.Secret(connect.Nearest(s.Key)) {
		return hidden
	}
	return hideSecrets(s.Shown())
}

// note keeps what apograph does with a key that is in the file, if that is not
// what it says.
func (r *configReport) note(k mm2.Key) {
	switch k.Treatment {
	case mm2.Better:
		r.Notes[k.Name] = "not needed: " + k.Reason
	case mm2.Ignored:
		r.Notes[k.Name] = "ignored: " + k.Reason
	}
}

func writeConfigText(inv *invocation, r configReport) error {
	for _, f := range r.Flows {
		if err := inv.writeText(f.title()); err != nil {
			return err
		}
		if err := inv.writeTable(f.table()); err != nil {
			return err
		}
		if err := inv.writeText(""); err != nil {
			return err
		}
	}
	if len(r.Notes) == 0 {
		return nil
	}
	notes := &textTable{header: []string{"KEY", "WHAT APOGRAPH DOES WITH IT"}}
	for _, key := range keys(r.Notes) {
		notes.add(key, r.Notes[key])
	}
	return inv.writeTable(notes)
}

func (f configFlow) title() string {
	if !f.Enabled {
		return f.Source + "->" + f.Target + " (not enabled)"
	}
	return f.Source + "->" + f.Target
}

func (f configFlow) table() *textTable {
	table := &textTable{header: []string{"CLIENT", "KEY", "VALUE"}}
	if slices.ContainsFunc(f.Settings, func(s configSetting) bool { return s.Origin != nil }) {
		table.header = append(table.header, "ORIGIN")
	}
	for _, s := range f.Settings {
		cells := []string{s.Client, s.Key, s.Value}
		if s.Origin != nil {
			cells = append(cells, s.Origin.text())
		}
		table.add(cells...)
	}
	return table
}

func (o *configOrigin) text() string {
	if o.Line == 0 {
		return string(o.Kind)
	}
	return fmt.Sprintf("%s (%s)", placeText(o.File, o.Line, o.Column), o.Key)
}
