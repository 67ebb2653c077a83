package replicate_test

import (
	"fmt"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// TestTakeoverOfCompacted: what was compacted away on either side is told from what
// is missing. Of 60 records with 25 keys, ten at a time, the last of each key stays.
func TestTakeoverOfCompacted(t *testing.T) {
	tests := []struct {
		name           string
		source, target bool
		copies         [][2]int64
	}{
		{"the target", false, true, [][2]int64{{0, 60}}},
		{"the source", true, false, [][2]int64{{0, 60}}},
		{"both", true, true, [][2]int64{{0, 60}}},
		{"the target, with a second copy", false, true, [][2]int64{{0, 30}, {20, 60}}},
		{"the source, with a second copy", true, false, [][2]int64{{0, 30}, {20, 60}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMirrored(t)
			m.config.Topics = []string{"c"}
			m.Topic, m.TargetTopic = "c", "c"
			for _, c := range []*kafkatest.Cluster{m.pair.Source, m.pair.Target} {
				mustTopic(t, c, "c", map[string]string{"cleanup.policy": "compact"})
			}
			for i := range 6 {
				records := on("c", 0, 10*i, 10)
				for k, r := range records {
					r.Key = fmt.Appendf(nil, "k%d", (10*i+k)%25)
				}
				mustAppend(t, m.Source, records...)
			}
			for _, c := range tt.copies {
				m.copies(c[0], c[1])
			}
			before := m.read(m.Target)
			for clean, c := range map[*kafkatest.Cluster]bool{m.pair.Source: tt.source, m.pair.Target: tt.target} {
				if !c {
					continue
				}
				if err := clean.Clean("c", 0, kafkatest.Cleaner{}); err != nil {
					t.Fatal(err)
				}
			}
			p := m.attach(replicate.Attached)
			if lost := int64(len(before) - len(m.read(m.Target))); (lost > 0) != tt.target || p.Unprovable.ByPlace != lost {
				t.Errorf("%d records are gone from the target: %+v", lost, p.Unprovable)
			}
			if (p.Unprovable.Foreign > 0) != (tt.source && !tt.target) || p.Unprovable.NotOnTarget > 0 {
				t.Errorf("%+v", p)
			}
			m.places(before)
			mustAppend(t, m.Source, on("c", 0, 1000, 10)...)
			if got := mustRun(t, m.config); got.Tiles[ledger.Copied] != 10 || got.Tiles[ledger.Lost]+got.Tiles[ledger.Unexplained] > 0 {
				t.Errorf("the next run: %+v", got)
			}
		})
	}
}

// TestTakeoverRepeatedFromCompacted: what the source lacked in front of all that was
// copied is in no doubt, though it was copied twice.
func TestTakeoverRepeatedFromCompacted(t *testing.T) {
	var doubts []int64
	for _, copies := range [][][2]int64{{{0, 40}}, {{0, 25}, {0, 40}}} {
		m := newMirrored(t)
		m.config.Topics = []string{"c"}
		m.Topic, m.TargetTopic = "c", "c"
		for _, c := range []*kafkatest.Cluster{m.pair.Source, m.pair.Target} {
			mustTopic(t, c, "c", map[string]string{"cleanup.policy": "compact"})
		}
		for i := range 4 {
			records := on("c", 0, 10*i, 10)
			for k, r := range records {
				r.Key = fmt.Appendf(nil, "k%d", max((10*i+k)%37, 5)) // 0 to 4, and 37 to 39 come again
			}
			mustAppend(t, m.Source, records...)
		}
		if err := m.pair.Source.Clean("c", 0, kafkatest.Cleaner{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range copies {
			m.copies(c[0], c[1])
		}
		p := m.attach(replicate.Attached)
		t.Logf("%+v", p)
		doubts = append(doubts, p.Unprovable.StaleKeys)
		m.lastCopies()
	}
	if doubts[0] != doubts[1] {
		t.Errorf("copied once and twice %d offsets are in doubt", doubts)
	}
}

func (m *mirrored) read(b kafkatest.Bootstrap) []kafkatest.Record {
	m.t.Helper()
	records, err := b.ReadUncommitted(m.t.Context(), m.Topic, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	return records
}

// places expects each record that is on both sides where the books say, and of the
// source's others that the books have none of it where the target, as it was, had
// another one, unless a second copy was there.
func (m *mirrored) places(before []kafkatest.Record) {
	m.t.Helper()
	l := kafkatest.OpenLedger(m.t, m.config.LedgerPath, ledger.Options{ReadOnly: true})
	defer l.Close()
	pair := l.Pairs()[0]
	now := map[int64]string{}
	for _, r := range m.read(m.Target) {
		now[r.Offset] = string(r.Value)
	}
	copied := 0
	for _, r := range m.read(m.Source) {
		e, err := l.FindSource(pair.ID, r.Offset)
		if err != nil {
			m.t.Fatal(err)
		}
		at := e.TargetOf(r.Offset)
		if value, ok := now[at]; ok && value != string(r.Value) {
			m.t.Errorf("source offset %d, %q, is said to be at %d, where %q is", r.Offset, r.Value, at, value)
		}
		copied++
	}
	if copied == 0 || len(before) == 0 {
		m.t.Error("nothing to compare")
	}
}

// TestTakeoverLacksInCompacted: a hole has room for as many records as it has
// offsets.
func TestTakeoverLacksInCompacted(t *testing.T) {
	m := newMirrored(t)
	for i := range 3 {
		records := numbered(10*i, 10)
		for k, r := range records {
			r.Key = fmt.Appendf(nil, "k%d", k)
		}
		if i == 0 {
			records[0].Key = []byte("stays")
		}
		mustAppend(t, m.Source, records...)
	}
	m.copies(0, 8)
	m.copies(10, 30) // not 8 and 9
	if err := m.pair.Target.Clean("t", 0, kafkatest.Cleaner{}); err != nil {
		t.Fatal(err)
	}
	// Behind a hole there are the last ones, and it has room for two too few.
	if p := m.attach(replicate.AttachRefused); !strings.HasPrefix(p.Detail, "the target lacks source offsets [1, ") {
		t.Errorf("%+v", p)
	}
}

// TestTakeoverWentBackBeforeItsStart: MirrorMaker brought over later what lies in
// front of where it began. The books begin where more is in order, or where a hint
// says, and name the rest.
func TestTakeoverWentBackBeforeItsStart(t *testing.T) {
	for _, hint := range []bool{false, true} {
		m := newMirrored(t)
		m.history()
		m.copies(28, 45)
		m.copies(15, 60)
		start, copied, unproven := int64(15), int64(38), replicate.Unprovable{NotOnTarget: 15, Foreign: 16}
		if hint {
			m.withPredecessor(nil)
			mustAppend(t, m.Source, kafkatest.MirrorSync(syncsTopic, "t", 0, 28, 0), kafkatest.MirrorSync(syncsTopic, "t", 0, 15, 16))
			start, copied, unproven = 28, 31, replicate.Unprovable{NotOnTarget: 22, Foreign: 12}
		}
		if p := m.attach(replicate.Attached); p.BeforeStart != start || p.Copied != copied || p.Unprovable != unproven {
			t.Errorf("%+v", p)
		}
		m.config.Now = nil
		goesOn(t, m.pair, m.config)
	}
}
