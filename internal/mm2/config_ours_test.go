package mm2_test

import (
	"strings"
	"testing"

	"apograph/internal/mm2"
)

// TestEffective: what holds where a file is silent, and what tells of it.
func TestEffective(t *testing.T) {
	const topics, settings, factor = "refresh.topics.interval.seconds", "sync.topic.configs.interval.seconds", "replication.factor"
	tests := []struct {
		lines            string
		topics, settings string // value and origin
		factor, silent   string
	}{
		{"", "30 apograph", "30 apograph", "that of the source's topic apograph", topics + " " + factor + " " + settings},
		{"refresh.topics.interval.seconds=60", "60 top level", "60 top level", "that of the source's topic apograph", factor},
		{"sync.topic.configs.interval.seconds=60\nreplication.factor=-1", "30 apograph", "60 top level", "-1 top level", topics},
		{"A->B.apograph.refresh.interval=1500\nrefresh.topics.interval.seconds=60", "1.5 flow", "1.5 flow", "that of the source's topic apograph", factor},
		{"apograph.refresh.interval=5s\nsync.topic.configs.interval.seconds=60", "5 top level", "60 top level", "that of the source's topic apograph", factor},
		{"refresh.topics.interval.seconds=-1", "-1 top level", "30 apograph", "that of the source's topic apograph", factor},
		{"A->B.replication.factor=2", "30 apograph", "30 apograph", "2 flow", topics + " " + settings},
	}
	for _, tt := range tests {
		f := flowOf(t, oneFlow+tt.lines+"\n")
		got := map[string]string{}
		for _, s := range f.Effective() {
			got[s.Key] = s.Value + " " + string(s.Origin.Kind)
		}
		if got[topics] != tt.topics || got[settings] != tt.settings || got[factor] != tt.factor {
			t.Errorf("%q: %s, %s, %s", tt.lines, got[topics], got[settings], got[factor])
		}
		var silent []string
		for _, k := range f.Silent() {
			silent = append(silent, k.Name)
		}
		if strings.Join(silent, " ") != tt.silent {
			t.Errorf("%q: silent about %v, want %s", tt.lines, silent, tt.silent)
		}
		if len(f.Effective()) != len(f.Settings()) {
			t.Errorf("%q: %d settings of %d", tt.lines, len(f.Effective()), len(f.Settings()))
		}
	}
	if d := mm2.DefaultRefresh.Seconds(); d != 30 {
		t.Errorf("%v", d)
	}
}
