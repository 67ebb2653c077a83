package mm2_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

type raw = json.RawMessage

func decode[T any](t *testing.T, from raw) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(from, &v); err != nil {
		t.Fatalf("%s: %v", from, err)
	}
	return v
}

// parsed returns the configuration, whatever is wrong with it.
func parsed(properties map[string]string) *mm2.Config {
	c, _ := mm2.ParseConfig(javaprops.New("mm2.properties", properties), mm2.ConfigOptions{LookupEnv: noEnv})
	return c
}

func noEnv(string) (string, bool) { return "", false }

func TestHerdersOfMirrorMaker(t *testing.T) {
	for _, v := range vectors[raw, raw](t, "config/flows.json") {
		given := decode[struct{ Properties map[string]string }](t, v.Given)
		want := decode[[]string](t, v.Expect)
		got := map[string]bool{}
		for _, pair := range parsed(given.Properties).Herders() {
			got[pair.String()] = true
		}
		set := map[string]bool{}
		for _, pair := range want {
			set[pair] = true
		}
		if !reflect.DeepEqual(got, set) {
			t.Errorf("%s: herders %v, want %v", v.ID, got, want)
		}
	}
}

func TestSettingsThatArriveInMirrorMaker(t *testing.T) {
	classes := map[string]string{"source": "MirrorSourceConnector", "checkpoint": "MirrorCheckpointConnector", "heartbeat": "MirrorHeartbeatConnector"}
	for _, v := range vectors[raw, raw](t, "config/traps.json") {
		given := decode[struct {
			Flow, Of   string
			Properties map[string]string
			Keys       []string
		}](t, v.Given)
		want := decode[map[string]*string](t, v.Expect)
		source, target, _ := strings.Cut(given.Flow, "->")
		c := parsed(given.Properties)
		got := c.Worker(source, target)
		if given.Of != "worker" {
			got = c.Connector(source, target, classes[given.Of])
		}
		for _, key := range given.Keys {
			s, ok := got[key]
			if ok != (want[key] != nil) || ok && s.Value != *want[key] {
				t.Errorf("%s: %s = %v (%v), want %v", v.ID, key, s, ok, want[key])
			}
		}
	}
}

// TestDefaultsOfKeys: "null" in the vectors stands for no default as well as for
// no key. Those of classes are named without their package.
func TestDefaultsOfKeys(t *testing.T) {
	ofConnectors := mm2.AllConnectors
	for _, v := range vectors[raw, raw](t, "config/defaults.json") {
		name := decode[struct{ Key string }](t, v.Given).Key
		k, ok := mm2.LookupKey(name)
		ok = ok && k.HasDefault && !k.Removed() && k.On&ofConnectors != 0
		var got any
		if ok {
			got = k.Default
		}
		if ok && k.Type == mm2.ClassKey {
			got = k.Default[strings.LastIndex(k.Default, ".")+1:]
		}
		if ok && k.Type == mm2.ListKey {
			list := []any{}
			for _, e := range (mm2.Setting{Value: k.Default}).List() {
				list = append(list, e)
			}
			got = list
		}
		if want := decode[any](t, v.Expect); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: default of %s = %v, want %v", v.ID, name, got, want)
		}
	}
}

// TestFiltersOfConfig puts the lists into a file: what apograph takes of them. An
// empty element is refused by 4.3.1, while here it is a warning and counts for
// nothing, as in 3.9.2.
func TestFiltersOfConfig(t *testing.T) {
	keys := map[string][2]string{"topic": {"topics", "topics.exclude"}, "group": {"groups", "groups.exclude"}, "config": {"", "config.properties.exclude"}}
	for _, v := range vectors[raw, raw](t, "config/filters.json") {
		given := decode[struct {
			Filter, Name     string
			Include, Exclude *string
		}](t, v.Given)
		properties := map[string]string{"clusters": "A, B", "A->B.enabled": "true"}
		if given.Include != nil {
			properties[keys[given.Filter][0]] = *given.Include
		}
		if given.Exclude != nil {
			properties[keys[given.Filter][1]] = *given.Exclude
		}
		c := parsed(properties)
		if want, ok := decode[any](t, v.Expect).(bool); !ok {
			if !hasProblem(c, mm2.EmptyElement) && !hasProblem(c, mm2.DoubleElement) {
				t.Errorf("%s: no problem of an empty element", v.ID)
			}
		} else if got := chosen(t, c.Flows()[0], keys[given.Filter], given.Name); got != want {
			t.Errorf("%s: %s chosen = %v, want %v", v.ID, given.Name, got, want)
		}
	}
}

func chosen(t *testing.T, f mm2.FlowConfig, keys [2]string, name string) bool {
	t.Helper()
	exclude, err := f.Patterns(keys[1])
	if err != nil {
		t.Fatal(err)
	}
	if keys[0] == "" {
		return !exclude.Matches(name)
	}
	include, err := f.Patterns(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	return include.Matches(name) && !exclude.Matches(name)
}

func hasProblem(c *mm2.Config, kind mm2.ProblemKind) bool {
	for _, p := range c.Problems() {
		if p.Kind == kind {
			return true
		}
	}
	return false
}

func TestValidationOfMirrorMaker(t *testing.T) {
	connectors := map[string]mm2.Connectors{"source": mm2.SourceConnector, "checkpoint": mm2.CheckpointConnector, "heartbeat": mm2.HeartbeatConnector}
	for _, v := range vectors[raw, raw](t, "config/validation.json") {
		given := decode[struct {
			Connector  string
			Properties map[string]string
		}](t, v.Given)
		got := mm2.MM2Refuses(connectors[given.Connector], given.Properties)
		if want := decode[[]string](t, v.Expect); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v is refused for %v, want %v", v.ID, given.Properties, got, want)
		}
	}
}

func TestNumbersBelowTheLeast(t *testing.T) {
	for value, want := range map[string]int{"0": 1, "1": 0, " 2 ": 0, "2147483648": 1} {
		if got := mm2.MM2Refuses(mm2.HeartbeatConnector, map[string]string{"tasks.max": value}); len(got) != want {
			t.Errorf("tasks.max=%s: refused are %v, want %d", value, got, want)
		}
	}
}

func TestExactlyOnceSupportOfMirrorMaker(t *testing.T) {
	for _, v := range vectors[raw, raw](t, "config/exactly-once.json") {
		given := decode[struct{ Properties map[string]string }](t, v.Given)
		if got, want := mm2.ReadsCommitted(given.Properties), decode[bool](t, v.Expect); got != want {
			t.Errorf("%s: %v: %v, want %v", v.ID, given.Properties, got, want)
		}
	}
}
