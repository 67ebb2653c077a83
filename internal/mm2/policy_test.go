package mm2_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"apograph/internal/mm2"
)

// TestPoliciesThatAreNone: each names its key.
func TestPoliciesThatAreNone(t *testing.T) {
	tests := []struct {
		key, why string
		settings map[string]string
	}{
		{mm2.PolicyClassKey, "is a class that cannot be run here", map[string]string{mm2.PolicyClassKey: "com.example.Policy"}},
		{mm2.PolicyClassKey, "is a class that cannot be run here", map[string]string{mm2.PolicyClassKey: "DefaultReplicationPolicy"}},
		{mm2.PolicySeparatorKey, "empty", map[string]string{mm2.PolicySeparatorKey: ""}},
		{mm2.PolicyKey, "is none of default, identity, map", map[string]string{mm2.PolicyKey: "keep"}},
		{mm2.PolicyMapKey, "there is no rule", map[string]string{mm2.PolicyKey: "map"}},
		{mm2.PolicyMapKey, "rules for names need apograph.policy=map", map[string]string{mm2.PolicyMapKey: "a=b"}},
		{mm2.PolicyMapKey, "a rule is old=new", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "a"}},
		{mm2.PolicyMapKey, "no name for a topic", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "a=b c"}},
		{mm2.PolicyMapKey, "cannot be empty", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "a="}},
		{mm2.PolicyMapKey, "cannot be empty", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "=a"}},
		{mm2.PolicyMapKey, "replacement is empty", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "a.*="}},
		{mm2.PolicyMapKey, "no group for", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "(a).*=$2"}},
		{mm2.PolicyMapKey, "no group for", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "(a).*=$x"}},
		{mm2.PolicyMapKey, `no group "x"`, map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "(a).*=${x}"}},
		{mm2.PolicyMapKey, "ends with a backslash", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: `(a).*=b\`}},
		{mm2.PolicyMapKey, "write $1", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: `(a).*=b\1`}},
		{mm2.PolicyMapKey, `"/x" in the replacement is no name`, map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: `(a).*=$1/x`}},
		{mm2.PolicyMapKey, "look-ahead", map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "(?!a).*=b"}},
	}
	for _, tt := range tests {
		var bad *mm2.PolicyError
		if _, err := mm2.ParsePolicy(tt.settings); !errors.As(err, &bad) || bad.Key != tt.key || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%v: error %v, want %s with %q", tt.settings, err, tt.key, tt.why)
		}
	}
}

func policy(t *testing.T, settings ...string) mm2.Policy {
	t.Helper()
	m := map[string]string{}
	for i := 0; i < len(settings); i += 2 {
		m[settings[i]] = settings[i+1]
	}
	p, err := mm2.ParsePolicy(m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestMap: the first rule counts; names are meant literally, dots among them;
// groups are as in Java.
func TestMap(t *testing.T) {
	p := policy(t, mm2.PolicyKey, "map", mm2.PolicyMapKey,
		`a.b=first, a[.-]b=second, (\w+)-v(\d)=$2x.$1, (?<team>t\d)_.*=all-${team}0, (x)(y)?z=$1$2, q(.*)=\_$1$10, heartbeats\d=h`)
	for topic, want := range map[string]string{
		"a.b": "first", "a-b": "second", "aXb": "aXb", "orders-v7": "7x.orders", "t1_x": "all-t10", "xz": "x", "xyz": "xy", "qa": "_aa0",
		"other": "other", "heartbeats": "S.heartbeats", "S.heartbeats": "S.S.heartbeats", "myheartbeats": "myheartbeats", "heartbeats1": "h", "orders-v7x": "orders-v7x",
	} {
		if got := p.Remote("S", topic); got != want {
			t.Errorf("%s becomes %s, want %s", topic, got, want)
		}
	}
	for topic, want := range map[string]string{"a.b": "", "S.heartbeats": "S"} {
		if got, ok := p.Source(topic); got != want || ok != (want != "") {
			t.Errorf("%s came from %q, %t", topic, got, ok)
		}
	}
	if !p.Cycle("S", "T", "T.heartbeats") || p.Cycle("S", "T", "T.x") {
		t.Error("the map policy sees no cycle, or one that is none")
	}
}

// TestKeep: without a policy every name stays, and none tells of an origin.
func TestKeep(t *testing.T) {
	var p mm2.Policy
	for _, topic := range []string{"a.b", "heartbeats", "myheartbeats", "A.heartbeats"} {
		_, remote := p.Source(topic)
		if got := p.Remote("A", topic); got != topic || remote || p.Cycle("B", "A", topic) {
			t.Errorf("%s becomes %s, remote %t", topic, got, remote)
		}
	}
	if p.Kind() != mm2.PolicyKeep || p.Separator() != "." || p.CheckpointsTopic("A") != "A.checkpoints.internal" {
		t.Errorf("%q %q %q", p.Kind(), p.Separator(), p.CheckpointsTopic("A"))
	}
}

// TestNamesOfInternalTopics of a flow from east to west.
func TestNamesOfInternalTopics(t *testing.T) {
	tests := []struct {
		settings           []string
		onTarget           bool
		syncs, checkpoints string
	}{
		{nil, false, "mm2-offset-syncs.west.internal", "east.checkpoints.internal"},
		{[]string{mm2.PolicySeparatorKey, "-"}, false, "mm2-offset-syncs-west-internal", "east-checkpoints-internal"},
		{nil, true, "mm2-offset-syncs.east.internal", "east.checkpoints.internal"},
		{[]string{mm2.PolicySeparatorKey, "_", mm2.PolicyInternalSeparatorKey, "false"}, false, "mm2-offset-syncs.west.internal", "east.checkpoints.internal"},
	}
	for _, tt := range tests {
		p := policy(t, tt.settings...)
		if got := p.OffsetSyncsOf("east", "west", tt.onTarget); got != tt.syncs || p.CheckpointsTopic("east") != tt.checkpoints {
			t.Errorf("%v: %s and %s", tt.settings, got, p.CheckpointsTopic("east"))
		}
	}
}

// TestCopiesThatCameBack: a name with the source's own alias is copied, as
// 4.3.1 does, but not for ever.
func TestCopiesThatCameBack(t *testing.T) {
	p := policy(t)
	for topic, want := range map[string]bool{"A.x": false, "A.A.x": true, "A.A.A.x": true, "C.A.A.x": true, "A.C.A.x": false, "B.x": true, "A.A": false, "A.A.": false} {
		if got := p.Cycle("A", "B", topic); got != want {
			t.Errorf("%s: %t", topic, got)
		}
	}
	rules := mm2.TopicRules{Selection: mustSelect(t, ".*", ""), Policy: p, Source: "A", Target: "B"}
	for topic, want := range map[string]string{
		"B.x": "cycle: by its name it came from B", "A.A.x": "cycle: by its name it is a copy of a topic of A that came back", "A.x": "matched by .*",
		"A.checkpoints.internal": "internal: MirrorMaker 2's, *.checkpoints.internal",
	} {
		if got, in := rules.Explain(topic); got != want || in != (topic == "A.x") {
			t.Errorf("%s: %q, %t, want %q", topic, got, in, want)
		}
	}
}

func mustSelect(t *testing.T, include, exclude string) mm2.Selection {
	t.Helper()
	s, err := mm2.ParseSelection([]string{include}, []string{exclude})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLists: the selection with what Lists adds chooses the topics that the rules
// choose, over names made of what matters to them.
func TestLists(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, seed))
	policies := map[string]mm2.Policy{
		"keep": {}, "default": policy(t), "dash": policy(t, mm2.PolicySeparatorKey, "-"),
		"identity": policy(t, mm2.PolicyKey, "identity", mm2.PolicySourceAliasKey, "A"),
		"map":      policy(t, mm2.PolicyKey, "map", mm2.PolicyMapKey, "x=y"),
		"dots":     policy(t, mm2.PolicySeparatorKey, "_", mm2.PolicyInternalSeparatorKey, "false"),
	}
	pieces := []string{"A", "B", "x", ".", ".", "-", "_", "heartbeats", "mm2", "checkpoints", "internal", "my"}
	internal := []string{"A-checkpoints-internal", "mm2-x-internal", "A_checkpoints_internal", "x-checkpoints-internal", "xmm2-internal"}
	for kind, p := range policies {
		for _, heartbeats := range []bool{false, true} {
			for _, include := range []string{".*", "x.*"} {
				rules := mm2.TopicRules{Selection: mustSelect(t, include, "xx.*"), Policy: p, Source: "A", Target: "B", Heartbeats: heartbeats}
				in, out := rules.Lists()
				lists, err := mm2.ParseSelection(append(in, include), append(out, "xx.*"))
				if err != nil {
					t.Fatal(err)
				}
				chosen := 0
				for i := range 4000 {
					var name string
					for range 1 + r.IntN(7) {
						name += pieces[r.IntN(len(pieces))]
					}
					if i < len(internal) {
						name = internal[i]
					}
					_, want := rules.Match(name)
					_, got := lists.Match(name)
					if mm2.IsInternal(name) || rules.Exclude.Matches(name) {
						continue // whoever reads lists leaves these out by themselves; see Lists of what is excluded
					}
					if chosen++; got != want {
						t.Fatalf("seed %d: %s policy, heartbeats %t, topics %s: %s is copied: %t, by the lists %t: %q without %q", seed, kind, heartbeats, include, name, want, got, in, out)
					}
				}
				if chosen < 1000 {
					t.Errorf("%s: only %d names compared", kind, chosen)
				}
			}
		}
	}
}

// TestTopicNames: which names a topic can have.
func TestTopicNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "A.b_c-9": true, "...": true, strings.Repeat("x", 249): true,
		"": false, ".": false, "..": false, "a b": false, "ä": false, "a:b": false, strings.Repeat("x", 250): false,
	} {
		if err := mm2.CheckTopicName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}
