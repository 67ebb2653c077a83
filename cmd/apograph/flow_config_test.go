package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
	"apograph/replicate"
)

// mustFlow returns the flow a->b of a file with these lines.
func mustFlow(t *testing.T, lines ...string) mm2.FlowConfig {
	t.Helper()
	text := "clusters=a, b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n" + strings.Join(lines, "\n")
	file, err := javaprops.Parse("mm2.properties", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := mm2.ParseConfig(file, mm2.ConfigOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Flows()[0]
}

// TestDutiesOfAFile: what a file says about a flow reaches the copier, and where
// it says nothing MirrorMaker 2's default does, or ours if that is better.
func TestDutiesOfAFile(t *testing.T) {
	type duties struct {
		refresh       time.Duration
		known         bool
		factor        int
		settings      replicate.SettingsMode
		settingsEvery time.Duration
		fromSource    bool
		exclude       string
		acls          bool
		aclsEvery     time.Duration
	}
	defaults := duties{settings: replicate.SettingsOfAll, exclude: mustFlow(t).Get("config.properties.exclude").Value, acls: true, aclsEvery: 600 * time.Second}
	with := func(change func(*duties)) duties {
		d := defaults
		change(&d)
		return d
	}
	tests := []struct {
		lines string
		want  duties
	}{
		{"", defaults},
		{"refresh.topics.interval.seconds=60", with(func(d *duties) { d.refresh = time.Minute })},
		{"refresh.topics.interval.seconds=60\napograph.refresh.interval=5s", with(func(d *duties) { d.refresh = 5 * time.Second })},
		{"a->b.refresh.topics.enabled=false", with(func(d *duties) { d.known = true })},
		{"refresh.topics.interval.seconds=-1", with(func(d *duties) { d.known = true })},
		{"replication.factor=3", with(func(d *duties) { d.factor = 3 })},
		{"replication.factor=3\na->b.replication.factor=-1", with(func(d *duties) { d.factor = -1 })},
		{"sync.topic.configs.enabled=false", with(func(d *duties) { d.settings = replicate.SettingsOff })},
		{"sync.topic.configs.interval.seconds=7", with(func(d *duties) { d.settingsEvery = 7 * time.Second })},
		{"sync.topic.configs.interval.seconds=-7", with(func(d *duties) { d.settings = replicate.SettingsOff })},
		{"config.properties.exclude=retention.*", with(func(d *duties) { d.exclude = "retention.*" })},
		{"config.properties.blacklist=retention.*", with(func(d *duties) { d.exclude = "retention.*" })},
		{"a->b.use.defaults.from=source", with(func(d *duties) { d.fromSource = true })},
		{"sync.topic.acls.enabled=false", with(func(d *duties) { d.acls, d.aclsEvery = false, 0 })},
		{"sync.topic.acls.interval.seconds=9", with(func(d *duties) { d.aclsEvery = 9 * time.Second })},
	}
	for _, tt := range tests {
		var c replicate.Config
		f := mustFlow(t, tt.lines)
		if err := applyRefresh(&c, f); err != nil {
			t.Fatalf("%s: %v", tt.lines, err)
		}
		if err := applyDuties(&c, f, true); err != nil {
			t.Fatalf("%s: %v", tt.lines, err)
		}
		got := duties{
			c.RefreshInterval, c.KnownTopics, c.ReplicationFactor, c.Settings.Mode, c.Settings.Interval, c.Settings.FromSource,
			strings.Join(c.Settings.Exclude, "|"), c.ACLs.Enabled, c.ACLs.Interval,
		}
		if got != tt.want {
			t.Errorf("%q:\n%+v, want\n%+v", tt.lines, got, tt.want)
		}
		c.Source.Alias, c.Target.Alias, c.LedgerPath, c.Topics = "a", "b", "f", []string{"t"}
		c.Source.Bootstrap, c.Target.Bootstrap = []string{"h:1"}, []string{"h:2"}
		if err := c.Validate(); err != nil {
			t.Errorf("%q: %v", tt.lines, err)
		}
	}
}

// TestStartsOfAFile: for a topic before those for all, for the flow before those
// for the file, and all before what the consumer has.
func TestStartsOfAFile(t *testing.T) {
	now := time.Date(2026, 5, 7, 12, 0, 0, 0, time.UTC)
	tests := []struct{ lines, want string }{
		{"", "earliest"},
		{"a.consumer.auto.offset.reset=latest", "latest"},
		{"a.consumer.auto.offset.reset=by_duration:PT1H", "2026-05-07T11:00:00Z"},
		{"a.consumer.auto.offset.reset=latest\napograph.start=earliest", "earliest"},
		{"apograph.start=latest\na->b.apograph.start=group:g", "group:g"},
		{"a->b.apograph.start=latest\napograph.start.orders=2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"},
		{"apograph.start.orders=earliest\na->b.apograph.start.orders=latest", "latest"},
		{"apograph.start.other=latest", "earliest"},
	}
	for _, tt := range tests {
		if got := startOf(mustFlow(t, tt.lines), "orders", now); got.String() != tt.want {
			t.Errorf("%q: %v, want %s", tt.lines, got, tt.want)
		}
	}
}

// TestCommandLineWinsOverTheFile, wherever the file says it.
func TestCommandLineWinsOverTheFile(t *testing.T) {
	tests := []struct {
		file, over, key, want string
	}{
		{"topics=a", "topics=x", "topics", "x"},
		{"a->b.topics=a", "topics=x", "topics", "x"},
		{"a->b.topics=a", "a->b.topics=x", "topics", "x"},
		{"topics=a", "a->b.topics=x", "topics", "x"},
		{"a->b.topics.blacklist=a", "topics.exclude=x", "topics.exclude", "x"},
		{"a->b.replication.policy.separator=_", "replication.policy.separator=-", "replication.policy.separator", "-"},
		{"a->b.apograph.start.orders=latest", "apograph.start=earliest", "apograph.start.orders", ""},
		{"a.consumer.security.protocol=SSL", "a.security.protocol=PLAINTEXT", "source:security.protocol", "PLAINTEXT"},
		{"a.security.protocol=SSL\na.consumer.security.protocol=SSL", "security.protocol=PLAINTEXT", "source:security.protocol", "PLAINTEXT"},
		{"a.consumer.client.id=x", "security.protocol=PLAINTEXT", "source:client.id", "x"},
	}
	for _, tt := range tests {
		key, value, _ := strings.Cut(tt.over, "=")
		layer := javaprops.New(overX, map[string]string{key: value})
		text := "clusters=a, b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n" + tt.file
		file, err := javaprops.Parse("mm2.properties", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c, err := mm2.ParseConfig(file.With(layer, func(k string) bool { return isShadow(k, layer) }), mm2.ConfigOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f := c.Flows()[0]
		got := f.Get(tt.key)
		if name, ok := strings.CutPrefix(tt.key, "source:"); ok {
			got = f.SourceClient()[name]
		}
		if got.Value != tt.want {
			t.Errorf("%q with %s: %s is %q, want %q", tt.file, tt.over, tt.key, got.Value, tt.want)
		}
		if fmt.Sprint(got.Origin.At) != overX && tt.want == value {
			t.Errorf("%q with %s: it comes from %v", tt.file, tt.over, got.Origin)
		}
	}
}
