package lint

import (
	"maps"
	"slices"

	"apograph/internal/connect"
	"apograph/internal/mm2"
)

// A Connection is a cluster that a file describes.
type Connection struct {
	Alias    string // of a client.properties: "cluster"
	Settings []connect.Setting
	// Unresolved is the first key in whose value what looks like a variable was not
	// replaced; with the text of that nobody should log in. Empty if there is none.
	Unresolved string
}

// Connections returns the clusters that the file is about: of flows that run,
// each once, as its reader where it is a source.
func (r *Report) Connections() []Connection {
	if r.checker == nil {
		return nil
	}
	if r.Kind == Client {
		return []Connection{connection("cluster", r.checker.clientSettings())}
	}
	var all []Connection
	known := map[string]bool{}
	add := func(alias string, settings map[string]mm2.Setting) {
		if !known[alias] {
			known[alias] = true
			all = append(all, connection(alias, placed(settings)))
		}
	}
	for _, f := range r.checker.running {
		add(f.Source, f.SourceClient())
	}
	for _, f := range r.checker.running {
		add(f.Target, f.TargetClient())
	}
	return all
}

func connection(alias string, byKey map[string]clientSetting) Connection {
	c := Connection{Alias: alias, Settings: connectSettings(byKey)}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		if byKey[key].Unresolved && c.Unresolved == "" {
			c.Unresolved = byKey[key].whole
		}
	}
	return c
}

// Registry returns the schema registry of a flow's target, which may hold a
// password; empty if none is named.
func (r *Report) Registry(flow Flow) string {
	f, ok := r.checker.config.Flow(flow.Source, flow.Target)
	if !ok {
		return ""
	}
	return f.Text(registryKey)
}
