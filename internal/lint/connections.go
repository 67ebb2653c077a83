package lint

import (
	"apograph/internal/connect"
	"apograph/internal/mm2"
)

// A Connection is a cluster that a file describes.
type Connection struct {
	Alias    string // of a client.properties: "cluster"
	Settings []connect.Setting
}

// Connections returns the clusters that the file is about: of flows that run,
// each once, as its reader where it is a source.
func (r *Report) Connections() []Connection {
	if r.checker == nil {
		return nil
	}
	if r.Kind == Client {
		return []Connection{{"cluster", connectSettings(r.checker.clientSettings())}}
	}
	var all []Connection
	known := map[string]bool{}
	add := func(alias string, settings map[string]mm2.Setting) {
		if !known[alias] {
			known[alias] = true
			all = append(all, Connection{alias, connectSettings(placed(settings))})
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

// Registry returns the schema registry of a flow's target, which may hold a
// password; empty if none is named.
func (r *Report) Registry(flow Flow) string {
	f, ok := r.checker.config.Flow(flow.Source, flow.Target)
	if !ok {
		return ""
	}
	return f.Text(registryKey)
}
