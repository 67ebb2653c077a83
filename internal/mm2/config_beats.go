package mm2

import "slices"

// Beats returns the flows whose heartbeats the process of a flow writes, that one
// first: as MirrorMaker 2 does for all that it starts a worker for (see
// [Config.Herders]). Those of a pair that is no enabled flow are written by the
// first enabled flow to its target, or else from it, so that over all processes
// of a file each pair is written once. What neither does is left out: there is no
// connection to that cluster.
func (c *Config) Beats(f FlowConfig) []FlowConfig {
	beats := []FlowConfig{f}
	for _, pair := range c.Herders() {
		if !c.enabled(pair) && c.beaten(pair) == f.Pair() {
			beats = append(beats, c.flow(pair.Source, pair.Target))
		}
	}
	return beats
}

// beaten returns the enabled flow that writes the heartbeats of a pair that is
// none; zero if no flow does.
func (c *Config) beaten(pair Pair) Pair {
	for _, side := range []func(FlowConfig) string{
		func(f FlowConfig) string { return f.Target },
		func(f FlowConfig) string { return f.Source },
	} {
		if i := slices.IndexFunc(c.flows, func(f FlowConfig) bool { return side(f) == pair.Target }); i >= 0 {
			return c.flows[i].Pair()
		}
	}
	return Pair{}
}
