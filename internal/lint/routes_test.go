package lint_test

import (
	"strings"
	"testing"

	"apograph/internal/lint"
)

// TestRoutesOfSeveralFlows: topics that two flows would bring together, or that a
// way over several flows would bring back, and clusters of two aliases.
func TestRoutesOfSeveralFlows(t *testing.T) {
	const three = "clusters = a, b, c\nbootstrap.servers = x:9092\n"
	const fan = three + "a->c.enabled = true\nb->c.enabled = true\n"
	tests := []struct {
		name, lines string
		topics      map[string]string // by alias
		ids         map[string]string // where it is not that of the alias
		want        string            // code and a part of the message; "": neither AP0706 nor AP0709
	}{
		{"the same name in two", fan + identity, map[string]string{"a": "orders", "b": "orders"}, nil, "AP0709 orders of a and orders of b would both be orders on c"},
		{"several names", fan + identity, map[string]string{"a": "orders pay ship", "b": "pay orders x"}, nil, "AP0709 orders of a and orders of b would both be orders on c; so it is with 1 more topic"},
		{"different names", fan + identity, map[string]string{"a": "orders", "b": "pay"}, nil, ""},
		{"prefixes", fan, map[string]string{"a": "orders", "b": "orders"}, nil, ""},
		{"a prefix that is a name there", three + "a->c.enabled = true\nb->c.enabled = true\nb->c." + identity, map[string]string{"a": "orders", "b": "a.orders"}, nil, "AP0709 orders of a and a.orders of b would both be a.orders on c"},
		{"rules of two flows", fan + "apograph.policy = map\napograph.policy.map = orders=all, pay=all\na->c.topics = orders\nb->c.topics = pay\n", map[string]string{"a": "orders", "b": "pay"}, nil, "AP0709 orders of a and pay of b would both be all on c"},
		{"a chain beside a direct flow", three + "a->b.enabled = true\nb->c.enabled = true\na->c.enabled = true\n" + identity, map[string]string{"a": "orders"}, nil, "AP0709 orders of a and orders of b would both be orders on c"},
		{"a chain alone", three + "a->b.enabled = true\nb->c.enabled = true\n" + identity, map[string]string{"a": "orders"}, nil, ""},
		{"a ring by rules that patterns alone do not show", three + "a->b.enabled = true\nb->a.enabled = true\na->b.apograph.policy = default\nb->a.apograph.policy = map\nb->a.topics = a.*\n" +
			`b->a.apograph.policy.map = a\\.(.*)=$1` + "\n", map[string]string{"a": "orders"}, nil, "AP0709 a.orders of b is a copy of orders of a, and would be copied back to it"},
		{"rings that patterns show are told once", three + "a->b.enabled = true\nb->a.enabled = true\n" + identity, map[string]string{"a": "orders", "b": "orders"}, nil, ""},
		{"two ways with prefixes", three + "a->b.enabled = true\nb->a.enabled = true\n", map[string]string{"a": "orders b.orders a.b.x", "b": "orders a.orders heartbeats"}, nil, ""},
		{"one cluster under two aliases of two flows", three + "a->b.enabled = true\na->c.enabled = true\n", map[string]string{"a": "orders"}, map[string]string{"c": "id-b"}, "AP0706 b and c are one cluster"},
		{"one cluster of which neither flow has both", "clusters = a, b, c, d\nbootstrap.servers = x:9092\na->b.enabled = true\nc->d.enabled = true\n", nil, map[string]string{"d": "id-a"}, "AP0706 a and d are one cluster"},
		{"names that grow without end", three + "a->b.enabled = true\nb->a.enabled = true\napograph.policy = map\napograph.policy.map = (.*)=x-$1\n", map[string]string{"a": "orders"}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			known := lint.Facts{Clusters: map[string]*lint.ClusterFacts{}}
			for _, alias := range []string{"a", "b", "c", "d"} {
				about := &lint.ClusterFacts{ID: "id-" + alias, Brokers: 3, Rights: lint.RightsUnknown}
				if id, ok := tt.ids[alias]; ok {
					about.ID = id
				}
				for _, name := range strings.Fields(tt.topics[alias]) {
					about.Topics = append(about.Topics, lint.TopicFacts{Name: name, Rights: lint.RightsUnknown})
				}
				known.Clusters[alias] = about
			}
			r := check(tt.lines)
			r.CheckClusters(known)
			found := append(of(r, "AP0706"), of(r, "AP0709")...)
			code, part, _ := strings.Cut(tt.want, " ")
			if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || found[0].Code != code || !strings.Contains(found[0].Message, part) || found[0].Line == 0) {
				t.Errorf("found %v, want %q", found, tt.want)
			}
			if code == "AP0709" && len(of(r, "AP0503")) > 0 {
				t.Errorf("told twice: %v", r.Findings)
			}
		})
	}
}
