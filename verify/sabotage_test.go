package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// A saboteur spoils a target partition in one way at a time.
type saboteur struct {
	*flow
	topic    string
	pristine [][]byte
	end      int64 // of the target's log
	source   []int64
}

func newSaboteur(f *flow, topic string) *saboteur {
	s := &saboteur{flow: f, topic: topic}
	f.must(f.pair.Target.EditLog(topic, 0, func(l *kafkatest.Log) error {
		for _, b := range l.Batches {
			s.pristine = append(s.pristine, slices.Clone(b))
		}
		s.end = l.End
		return nil
	}))
	f.edit(func(l *ledger.Ledger) error {
		id := pairsOf(l, topic)[0].ID
		for o := range s.end {
			e, err := l.FindTarget(id, o)
			f.must(err)
			s.source = append(s.source, e.SourceOf(o))
		}
		s.source = append(s.source, l.End(id).Source)
		return nil
	})
	return s
}

func (s *saboteur) restore() {
	s.t.Helper()
	s.must(s.pair.Target.EditLog(s.topic, 0, func(l *kafkatest.Log) error {
		l.Batches = nil
		for _, b := range s.pristine {
			l.Batches = append(l.Batches, slices.Clone(b))
		}
		l.End = s.end
		return nil
	}))
}

// line is a finding about the copied records at target offsets.
func (s *saboteur) line(kind string, start, end int64) string {
	text := ""
	for o := start; o < end; o++ {
		text += fmt.Sprintf("%s %s-0 source %d target %d\n", kind, s.topic, s.source[o], o)
	}
	if s.source[end-1]-s.source[start] == end-1-start && end-start > 1 {
		return fmt.Sprintf("%s %s-0 source [%d, %d) target [%d, %d)\n", kind, s.topic, s.source[start], s.source[end-1]+1, start, end)
	}
	return text
}

// want returns the findings that a sabotage must lead to in mode full.
func (s *saboteur) want(done kafkatest.Sabotaged) string {
	switch done.Damage {
	case kafkatest.Drop, kafkatest.Truncate:
		return s.line("missing", done.Start, done.End)
	case kafkatest.Duplicate:
		return fmt.Sprintf("duplicate %s-0 source %d target %d", s.topic, s.source[done.Offset], done.Start)
	case kafkatest.Insert:
		place := s.source[min(done.Start, s.end)]
		return fmt.Sprintf("extra %s-0 source [%d, %d) target %d", s.topic, place, place, done.Start)
	case kafkatest.Swap:
		return s.line("reordered", done.Start, done.End)
	default:
		return s.line("changed", done.Start, done.End)
	}
}

// TestSabotage spoils one record of a copy in every way, in the first, the last
// and other places: each must lead to exactly that finding, and no other.
func TestSabotage(t *testing.T) {
	f := newFlow(t, 7)
	f.must(kafkatest.Load{Seed: 7, Topics: []string{"t"}, Records: 250, MaxValueBytes: 2000}.Run(f.ctx, f.pair.Source.Bootstrap))
	f.copy(nil, "t")
	expect(t, f.verify(verify.ModeFull), verify.Complete, "")
	s := newSaboteur(f, "t")
	for _, damage := range kafkatest.Damages() {
		if damage == kafkatest.Truncate {
			continue
		}
		offsets, shifts := []int64{0, s.end / 2, s.end - 1}, []bool{false}
		if slices.Contains([]kafkatest.Damage{kafkatest.Drop, kafkatest.Duplicate, kafkatest.Insert}, damage) {
			offsets, shifts = []int64{0, 1, s.end / 2, s.end - 2, s.end - 1}, []bool{false, true}
		}
		for _, shift := range shifts {
			for _, offset := range offsets {
				if damage == kafkatest.Swap { // with the next one
					offset = min(offset, s.end-2)
				}
				s.try(kafkatest.Sabotage{Damage: damage, Topic: "t", Offset: offset, Shift: shift})
			}
		}
	}
	for count := range 4 {
		s.try(kafkatest.Sabotage{Damage: kafkatest.Truncate, Topic: "t", Count: 1 + count*count*count})
	}
}

// try spoils the target, verifies it, and restores it.
func (s *saboteur) try(sabotage kafkatest.Sabotage) {
	s.t.Helper()
	done, err := s.pair.Target.Sabotage(sabotage)
	if err != nil {
		s.t.Fatalf("%v at %d: %v", sabotage.Damage, sabotage.Offset, err)
	}
	s.t.Run(fmt.Sprintf("%v shift=%t at %d", done.Damage, done.Shift, done.Start), func(t *testing.T) {
		report := s.verify(verify.ModeFull)
		expect(t, report, verify.Faults, s.want(done))
		s.compareFaultCounts(t, report, done)
		moved := done.Shift && done.Offset < s.end-1
		if told := strings.Contains(report.Findings[0].Detail, "translated offsets are wrong"); told != moved {
			t.Errorf("records behind it have moved: %t; detail %q", moved, report.Findings[0].Detail)
		}
		s.expectBlind(t, done)
	})
	s.restore()
}

// compareFaultCounts checks that everything else is equal.
func (s *saboteur) compareFaultCounts(t *testing.T, report *verify.Report, done kafkatest.Sabotaged) {
	t.Helper()
	n, c := done.End-done.Start, report.Summary.Counts
	got := [...]int64{c.Missing, c.Changed, c.Reordered, c.NotVerified, c.Extra, c.Duplicates}
	var want [6]int64
	switch done.Damage {
	case kafkatest.Drop, kafkatest.Truncate:
		want[0] = n
	case kafkatest.Swap:
		want[2] = n
	case kafkatest.Insert:
		want[4] = n
	case kafkatest.Duplicate:
		want[5] = n
	default:
		want[1] = n
	}
	if got != want {
		t.Errorf("missing, changed, reordered, not verified, extra, duplicates are %v, want %v", got, want)
	}
	if c.Equal != s.end-want[0]-want[1]-want[2] {
		t.Errorf("%d records are equal, want all %d others", c.Equal, s.end-want[0]-want[1]-want[2])
	}
}

// expectBlind verifies the target alone: the same findings, but where the digest
// cannot tell which record of an entry is concerned there is one finding of the
// entry.
func (s *saboteur) expectBlind(t *testing.T, done kafkatest.Sabotaged) {
	t.Helper()
	report := s.verify(verify.ModeTarget)
	if !s.entryOnly(done) {
		expect(t, report, verify.Faults, s.want(done))
		return
	}
	if report.Verdict != verify.Faults || len(report.Findings) != 1 {
		t.Fatalf("mode target: verdict %s, findings\n%s", report.Verdict, findings(report))
	}
	kind := verify.Changed
	if done.Damage == kafkatest.Drop || done.Damage == kafkatest.Truncate {
		kind = verify.Missing
	}
	f := report.Findings[0]
	entry := s.entryAt(done.Start)
	if f.Kind != kind || *f.Source != (verify.Range{Start: entry.Source.Start, End: entry.Source.End}) ||
		*f.Target != (verify.Range{Start: entry.Target.Start, End: entry.Target.End}) {
		t.Errorf("mode target: finding is %s, want %s of entry %v", findings(report), kind, entry.Source)
	}
	if hurt := report.Summary.Copied - report.Summary.Equal; hurt != entry.Target.Len() {
		t.Errorf("mode target: %d records are not equal, the entry has %d", hurt, entry.Target.Len())
	}
}

// entryOnly reports whether a digest cannot tell the record: one that is another
// or was taken out, unless it leaves a hole or is alone in its entry.
func (s *saboteur) entryOnly(done kafkatest.Sabotaged) bool {
	entry := s.entryAt(min(done.Start, s.end-1))
	switch done.Damage {
	case kafkatest.Duplicate, kafkatest.Insert, kafkatest.Swap:
		return false
	case kafkatest.Truncate:
		return done.Start > entry.Target.Start
	case kafkatest.Drop:
		return done.Shift && entry.Target.Len() > 1
	default:
		return true
	}
}

func (s *saboteur) entryAt(target int64) ledger.Entry {
	s.t.Helper()
	var entry ledger.Entry
	s.edit(func(l *ledger.Ledger) (err error) {
		entry, err = l.FindTarget(pairsOf(l, s.topic)[0].ID, target)
		return err
	})
	return entry
}
