package mm2_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"apograph/internal/mm2"
)

// The files below testdata/vectors hold questions and the answers of the classes
// of Kafka 4.3.1 to them.

// A vector is one question and its answer.
type vector[Given, Expect any] struct {
	ID     string `json:"id"`
	Given  Given  `json:"given"`
	Expect Expect `json:"expect"`
}

func vectors[Given, Expect any](t *testing.T, file string) []vector[Given, Expect] {
	t.Helper()
	return vectorItems[vector[Given, Expect]](t, file)
}

// vectorItems returns the items of a file, whatever they look like.
func vectorItems[Item any](t *testing.T, file string) []Item {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Items []Item `json:"items"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(all.Items) == 0 {
		t.Fatalf("%s is empty", file)
	}
	return all.Items
}

// policyOf is what questions about a policy have in common.
type policyOf struct {
	Policy     string            `json:"policy"`
	Properties map[string]string `json:"properties"`
}

func (o policyOf) parse(t *testing.T) mm2.Policy {
	t.Helper()
	settings := map[string]string{}
	for key, value := range o.Properties {
		settings[key] = value
	}
	class := map[string]string{"default": "DefaultReplicationPolicy", "identity": "IdentityReplicationPolicy"}[o.Policy]
	if class != "" && settings[mm2.PolicyClassKey] == "" {
		settings[mm2.PolicyClassKey] = "org.apache.kafka.connect.mirror." + class
	}
	p, err := mm2.ParsePolicy(settings)
	if err != nil {
		t.Fatalf("policy %+v: %v", o, err)
	}
	return p
}

type naming struct {
	Remote       string  `json:"remote_topic"`
	Source       *string `json:"source"`
	Upstream     *string `json:"upstream_topic"`
	Original     string  `json:"original_topic"`
	IsHeartbeats bool    `json:"is_heartbeats"`
	IsCheckpoint bool    `json:"is_checkpoints"`
	IsMM2        bool    `json:"is_mm2_internal"`
	IsInternal   bool    `json:"is_internal"`
}

func TestVectorsOfNaming(t *testing.T) {
	type given struct {
		policyOf
		Alias, Topic string
	}
	optional := func(s string, ok bool) *string {
		if !ok {
			return nil
		}
		return &s
	}
	for _, file := range []string{"names/naming.json", "names/naming-more.json"} {
		for _, v := range vectors[given, naming](t, file) {
			p, topic := v.Given.parse(t), v.Given.Topic
			got := naming{
				Remote: p.Remote(v.Given.Alias, topic), Source: optional(p.Source(topic)), Upstream: optional(p.Upstream(topic)), Original: p.Original(topic),
				IsHeartbeats: p.IsHeartbeats(topic), IsCheckpoint: p.IsCheckpoints(topic), IsMM2: p.IsMM2Internal(topic), IsInternal: p.IsInternal(topic),
			}
			wantSame(t, v.ID, v.Given, got, v.Expect)
		}
	}
}

// wantSame compares by what the values look like as JSON.
func wantSame(t *testing.T, id string, given, got, want any) {
	t.Helper()
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("%s: %+v\n got %s\nwant %s", id, given, a, b)
	}
}

func TestVectorsOfInternalTopics(t *testing.T) {
	type given struct {
		policyOf
		OffsetSyncsFor string `json:"offset_syncs_for"`
		CheckpointsOf  string `json:"checkpoints_of"`
	}
	type expect struct {
		OffsetSyncs string `json:"offset_syncs"`
		Checkpoints string `json:"checkpoints"`
		Heartbeats  string `json:"heartbeats"`
	}
	refused := 0
	for _, v := range vectors[given, expect](t, "names/internal-topics.json") {
		if s, ok := v.Given.Properties[mm2.PolicySeparatorKey]; ok && s == "" {
			refused++ // see ParsePolicy
			continue
		}
		p := v.Given.parse(t)
		got := expect{p.OffsetSyncsTopic(v.Given.OffsetSyncsFor), p.CheckpointsTopic(v.Given.CheckpointsOf), p.HeartbeatsTopic()}
		wantSame(t, v.ID, v.Given, got, v.Expect)
	}
	if refused != 2 {
		t.Errorf("%d questions about an empty separator, want 2", refused)
	}
}

func TestVectorsOfOffsetSyncsLocation(t *testing.T) {
	type given struct {
		policyOf
		Source, Target string
	}
	type expect struct {
		OffsetSyncs string `json:"offset_syncs"`
		Reads       string `json:"checkpoint_task_reads"`
	}
	for _, v := range vectors[given, expect](t, "names/offset-syncs-location.json") {
		name := v.Given.parse(t).OffsetSyncsOf(v.Given.Source, v.Given.Target, v.Given.Properties["offset-syncs.topic.location"] == "target")
		wantSame(t, v.ID, v.Given, expect{name, name}, v.Expect)
	}
}

func TestVectorsOfCycles(t *testing.T) {
	type given struct {
		policyOf
		Source, Target, Topic string
	}
	for _, v := range vectors[given, bool](t, "names/cycles.json") {
		wantSame(t, v.ID, v.Given, v.Given.parse(t).Cycle(v.Given.Source, v.Given.Target, v.Given.Topic), v.Expect)
	}
}

// selectionOf returns the lists of a topic filter by the names of the vectors.
func selectionOf(t *testing.T, filter string) mm2.Selection {
	t.Helper()
	lists, ok := map[string][2]string{
		"": {".*", mm2.DefaultTopicsExclude}, "default": {".*", mm2.DefaultTopicsExclude},
		"all": {".*", ""}, "none": {}, "default_unconfigured": {},
	}[filter]
	if !ok {
		t.Fatalf("topic filter %q", filter)
	}
	s, err := mm2.ParseSelection([]string{lists[0]}, []string{lists[1]})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVectorsOfReplicated(t *testing.T) {
	type given struct {
		policyOf
		Source, Target, Topic string
		Filter                string `json:"topic_filter"`
		Heartbeats            *bool  `json:"heartbeats_replication_enabled"`
	}
	for _, v := range vectors[given, bool](t, "names/replicated.json") {
		rules := mm2.TopicRules{
			Selection: selectionOf(t, v.Given.Filter), Policy: v.Given.parse(t), Source: v.Given.Source, Target: v.Given.Target,
			Heartbeats: v.Given.Heartbeats == nil || *v.Given.Heartbeats,
		}
		by, got := rules.Match(v.Given.Topic)
		wantSame(t, v.ID, v.Given, got, v.Expect)
		if rule, in := rules.Explain(v.Given.Topic); in != got || rule == "" || got == (by == "") {
			t.Errorf("%s: Explain says %t by %q, Match %t by %q", v.ID, in, rule, got, by)
		}
	}
}

func TestVectorsOfFilters(t *testing.T) {
	type given struct {
		Filter, Name     string
		Include, Exclude *string
	}
	or := func(s *string, otherwise string) string {
		if s == nil {
			return otherwise
		}
		return *s
	}
	exclude := map[string]string{"topic": mm2.DefaultTopicsExclude, "group": mm2.DefaultGroupsExclude, "config": mm2.DefaultConfigPropertiesExclude}
	for _, v := range vectors[given, any](t, "config/filters.json") {
		include := or(v.Given.Include, ".*")
		if _, refused := v.Expect.(map[string]any); refused {
			if !slices.ContainsFunc(mm2.SplitList(include), func(e mm2.ListElement) bool { return e.Text == "" }) {
				t.Errorf("%s: %+v: %v", v.ID, v.Given, v.Expect)
			}
			continue
		}
		s, err := mm2.ParseSelection([]string{include}, []string{or(v.Given.Exclude, exclude[v.Given.Filter])})
		if err != nil {
			t.Fatalf("%s: %v", v.ID, err)
		}
		_, got := s.Match(v.Given.Name)
		wantSame(t, v.ID, v.Given, got, v.Expect)
	}
}

func TestVectorsOfTopicConfigs(t *testing.T) {
	type given struct {
		Entry struct {
			Name, Source string
			ReadOnly     bool `json:"read_only"`
		}
		DefaultsFrom string  `json:"use_defaults_from"`
		Exclude      *string `json:"config_properties_exclude"`
		Use          string
	}
	origins := map[string]mm2.SettingOrigin{
		"DYNAMIC_TOPIC_CONFIG": mm2.OriginTopic, "DEFAULT_CONFIG": mm2.OriginKafkaDefault, "DYNAMIC_DEFAULT_BROKER_CONFIG": mm2.OriginBroker,
	}
	for _, v := range vectors[given, string](t, "config/topic-configs.json") {
		list := mm2.DefaultConfigPropertiesExclude
		if v.Given.Exclude != nil {
			list = *v.Given.Exclude
		}
		exclude, err := mm2.ParsePatterns([]string{list})
		if err != nil {
			t.Fatal(err)
		}
		rules := mm2.SettingRules{Exclude: exclude, SourceDefaults: v.Given.DefaultsFrom == "source"}
		s := mm2.TopicSetting{Name: v.Given.Entry.Name, Origin: origins[v.Given.Entry.Source], ReadOnly: v.Given.Entry.ReadOnly}
		got := map[mm2.SettingAction]string{mm2.LeaveSetting: "left out", mm2.SetSetting: "SET", mm2.DeleteSetting: "DELETE"}[rules.AtSync(s)]
		if v.Given.Use == "creation" {
			got = map[bool]string{true: "included", false: "left out"}[rules.AtCreation(s)]
		}
		wantSame(t, v.ID, v.Given, got, v.Expect)
	}
}

func TestVectorsOfACLs(t *testing.T) {
	type entry struct {
		Resource   string `json:"resource"`
		Name       string `json:"name"`
		Pattern    string `json:"pattern"`
		Operation  string `json:"operation"`
		Permission string `json:"permission"`
	}
	type given struct {
		policyOf
		Source, Target string
		Binding        entry
	}
	for _, v := range vectors[given, *entry](t, "config/acls.json") {
		rules := mm2.TopicRules{Selection: selectionOf(t, "default"), Policy: v.Given.parse(t), Source: v.Given.Source, Target: v.Given.Target, Heartbeats: true}
		b := v.Given.Binding
		var got *entry
		a := mm2.ACL{Resource: b.Resource, Pattern: b.Pattern, Name: b.Name, Operation: b.Operation, Permission: b.Permission, Principal: "User:a", Host: "h"}
		if made, ok := rules.TargetACL(a); ok {
			got = &entry{made.Resource, made.Name, made.Pattern, made.Operation, made.Permission}
			if made.Principal != a.Principal || made.Host != a.Host {
				t.Errorf("%s: %+v becomes %+v", v.ID, a, made)
			}
		}
		wantSame(t, v.ID, v.Given, got, v.Expect)
	}
}

func TestVectorsOfClients(t *testing.T) {
	type given struct {
		policyOf
		Call, Topic, Alias string
		Topics             []string
	}
	sorted := func(s []string) any { return slices.Sorted(slices.Values(s)) }
	for _, v := range vectors[given, any](t, "client/topics.json") {
		p, g := v.Given.parse(t), v.Given
		var got any
		switch g.Call {
		case "hops_of_topic":
			got = p.Hops(g.Topic, g.Alias)
		case "replication_hops":
			got = p.ReplicationHops(g.Topics, g.Alias)
		case "upstream_clusters":
			got = p.UpstreamClusters(g.Topics)
		case "remote_topics":
			got = sorted(p.RemoteTopics(g.Topics))
		case "format_remote_topic":
			got = p.Remote(g.Alias, g.Topic)
		case "heartbeat_topics":
			got = sorted(slices.DeleteFunc(slices.Clone(g.Topics), func(t string) bool { return !p.IsHeartbeats(t) }))
		default:
			t.Fatalf("%s asks for %s", v.ID, g.Call)
		}
		wantSame(t, v.ID, g, got, v.Expect)
	}
}
