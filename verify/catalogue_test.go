package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// A damage is one way to spoil a copy behind everyone's back.
type damage struct {
	name string
	kind string // of the finding
	// change changes a record; nil for those that change the log.
	change func(r *kafkatest.BatchRecord)
	ofTime bool // nothing but the time
}

// catalogue returns every way to spoil one record.
func catalogue() []damage {
	flip := func(b []byte, at int) []byte {
		out := slices.Clone(b)
		out[at] ^= 1
		return out
	}
	return []damage{
		{name: "missing", kind: "missing"},
		{name: "extra", kind: "extra"},
		{name: "duplicate", kind: "duplicate"},
		{name: "swapped", kind: "reordered"},
		{name: "first byte of the value", kind: "changed", change: func(r *kafkatest.BatchRecord) { r.Value = flip(r.Value, 0) }},
		{name: "last byte of the value", kind: "changed", change: func(r *kafkatest.BatchRecord) { r.Value = flip(r.Value, len(r.Value)-1) }},
		{name: "byte of the key", kind: "changed", change: func(r *kafkatest.BatchRecord) { r.Key = flip(r.Key, len(r.Key)/2) }},
		{name: "header dropped", kind: "changed", change: func(r *kafkatest.BatchRecord) { r.Headers = slices.Delete(slices.Clone(r.Headers), 1, 2) }},
		{name: "two headers swapped", kind: "changed", change: func(r *kafkatest.BatchRecord) {
			r.Headers = slices.Clone(r.Headers)
			r.Headers[0], r.Headers[1] = r.Headers[1], r.Headers[0]
		}},
		{name: "header null to empty", kind: "changed", change: func(r *kafkatest.BatchRecord) {
			r.Headers = slices.Clone(r.Headers)
			r.Headers[2].Value = []byte{}
		}},
		{name: "timestamp + 1 ms", kind: "changed", ofTime: true, change: func(r *kafkatest.BatchRecord) { r.Timestamp++ }},
		{name: "value to null", kind: "changed", change: func(r *kafkatest.BatchRecord) { r.Value = nil }},
		{name: "value to empty", kind: "changed", change: func(r *kafkatest.BatchRecord) { r.Value = []byte{} }},
		{name: "key to null", kind: "changed", change: func(r *kafkatest.BatchRecord) { r.Key = nil }},
		{name: "byte moved from key to value", kind: "changed", change: func(r *kafkatest.BatchRecord) {
			last := len(r.Key) - 1
			r.Value = append([]byte{r.Key[last]}, r.Value...)
			r.Key = r.Key[:last]
		}},
	}
}

// A damaged is a damage of the record at a target offset.
type damaged struct {
	damage
	at int64
}

// A vandal spoils the target's only partition of a topic by writing it anew from
// a list of records.
type vandal struct {
	*saboteur
	records []kafkatest.BatchRecord
	stamped bool // the target stamps its own times
}

func newVandal(s *saboteur, stamped bool) *vandal {
	v := &vandal{saboteur: s, stamped: stamped}
	for _, raw := range s.pristine {
		b, err := kafkatest.DecodeBatch(raw)
		s.must(err)
		v.records = append(v.records, b.Records...)
	}
	return v
}

// spoil spoils the records of several places, which are not near each other, and
// returns the findings that this must lead to.
func (v *vandal) spoil(cases ...damaged) string {
	v.t.Helper()
	var out []kafkatest.BatchRecord
	var want []string
	next := int64(0)
	for _, c := range cases {
		out = append(out, v.records[next:c.at]...)
		r := v.records[c.at]
		next = c.at + 1
		source := v.source[c.at]
		switch c.name {
		case "missing":
			want = append(want, v.line("missing", c.at, c.at+1))
		case "extra":
			out = append(out, r, kafkatest.BatchRecord{Timestamp: 1, Value: []byte("nobody copied this")})
			behind := v.source[next]
			want = append(want, fmt.Sprintf("extra t-0 source [%d, %d) target %d", behind, behind, len(out)-1))
		case "duplicate":
			out = append(out, r, r)
			want = append(want, fmt.Sprintf("duplicate t-0 source %d target %d", source, len(out)-1))
		case "swapped":
			out = append(out, v.records[next], r)
			next++
			want = append(want, v.line("reordered", c.at, c.at+2))
		default:
			c.change(&r)
			out = append(out, r)
			if !c.ofTime || !v.stamped {
				want = append(want, v.line("changed", c.at, c.at+1))
			}
		}
	}
	v.write(append(out, v.records[next:]...))
	return strings.Join(want, "\n")
}

// write writes the target's log.
func (v *vandal) write(records []kafkatest.BatchRecord) {
	v.t.Helper()
	v.must(v.pair.Target.EditLog(v.topic, 0, func(l *kafkatest.Log) error {
		l.Batches = nil
		for at := 0; at < len(records); at += 7 {
			b := kafkatest.NewBatch(int64(at), slices.Clone(records[at:min(at+7, len(records))])...)
			if v.stamped {
				b.Attributes |= kafkatest.AttrLogAppendTime
				b.MaxTimestamp = 1_800_000_000_000 + int64(at)
			}
			raw, err := b.Encode()
			if err != nil {
				return err
			}
			l.Batches = append(l.Batches, raw)
		}
		l.End = int64(len(records))
		return nil
	}))
}

// TestSabotageCatalogue spoils the first, a middle and the last record of a
// partition in every way, one at a time and several at once: mode full reports
// the exact offset and kind, mode target the damaged entries, and neither
// anything else. The same on a target that stamps its own times, where times are
// not compared, and counted.
func TestSabotageCatalogue(t *testing.T) {
	for _, stamped := range []bool{false, true} {
		t.Run(fmt.Sprintf("own times %t", stamped), func(t *testing.T) {
			v := catalogued(t, stamped)
			places := []int64{0, v.end / 2, v.end - 1}
			all := catalogue()
			for i, d := range all {
				var together []damaged
				for _, at := range places {
					if d.name == "swapped" {
						at = min(at, v.end-2) // with the next one
					}
					together = append(together, damaged{d, at})
					v.check(t, together[len(together)-1])
				}
				v.check(t, together...)
				// Another kind in each place.
				v.check(t, together[0], damaged{all[(i+4)%len(all)], v.end / 2}, damaged{all[(i+9)%len(all)], v.end - 2})
			}
			v.write(v.records)
			for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
				expect(t, v.verify(mode), verify.Complete, "")
			}
		})
	}
}

// catalogued copies a topic whose records have everything that can be damaged.
func catalogued(t *testing.T, stamped bool) *vandal {
	t.Helper()
	f := newFlow(t, 21)
	f.joined, f.apart = 9, true
	f.created("t", 1, nil)
	record := func(i int) *kgo.Record {
		return &kgo.Record{
			Topic: "t", Key: fmt.Appendf(nil, "key-%d", i), Value: fmt.Appendf(nil, "value-%d", i), Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i)),
			Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: fmt.Appendf(nil, "%d", i)}, {Key: "n"}},
		}
	}
	for i := 0; i < 120; i += 10 {
		var batch []*kgo.Record
		for k := range 10 {
			batch = append(batch, record(i+k))
		}
		if i%30 == 20 { // markers, so that the offsets of both sides differ
			f.must(f.pair.Source.AppendTransaction(f.ctx, "x", i%60 == 20, batch...))
		} else {
			f.must(f.pair.Source.Append(f.ctx, kafkatest.None, batch...))
		}
	}
	f.replaced["t"] = stamped
	f.copy(nil, "t")
	v := newVandal(newSaboteur(f, "t"), stamped)
	v.write(v.records)
	return v
}

// check spoils the target, and verifies it in both modes.
func (v *vandal) check(t *testing.T, cases ...damaged) {
	t.Helper()
	var names []string
	for _, c := range cases {
		names = append(names, fmt.Sprintf("%s at %d", c.name, c.at))
	}
	t.Run(strings.Join(names, ", "), func(t *testing.T) {
		want := v.spoil(cases...)
		verdict := verify.Faults
		if want == "" {
			verdict = verify.Complete
		}
		report := v.verify(verify.ModeFull)
		expect(t, report, verdict, want)
		v.expectCounts(t, report, cases)
		v.expectEntries(t, v.verify(verify.ModeTarget), cases, want)
	})
}

// expectCounts checks that everything that was not damaged is equal.
func (v *vandal) expectCounts(t *testing.T, report *verify.Report, cases []damaged) {
	t.Helper()
	var want verify.Counts
	for _, c := range cases {
		switch {
		case c.kind == "missing":
			want.Missing++
		case c.kind == "extra":
			want.Extra++
		case c.kind == "duplicate":
			want.Duplicates++
		case c.kind == "reordered":
			want.Reordered += 2
		case !c.ofTime || !v.stamped:
			want.Changed++
		}
	}
	got := report.Summary.Counts
	want.Equal = v.end - want.Missing - want.Reordered - want.Changed
	if got.Missing != want.Missing || got.Extra != want.Extra || got.Duplicates != want.Duplicates || got.Reordered != want.Reordered ||
		got.Changed != want.Changed || got.Equal != want.Equal || got.NotVerified != 0 {
		t.Errorf("counts are %+v, want %+v", got, want)
	}
	if stamped := map[bool]int64{true: v.end - want.Missing}[v.stamped]; got.TimestampsReplaced < stamped-want.Reordered || got.TimestampsReplaced > stamped {
		t.Errorf("%d times were not compared, want %d", got.TimestampsReplaced, stamped)
	}
}

// expectEntries checks a report of mode target: each damaged entry is found, and
// nothing else.
func (v *vandal) expectEntries(t *testing.T, report *verify.Report, cases []damaged, want string) {
	t.Helper()
	if want == "" {
		expect(t, report, verify.Complete, "")
		return
	}
	var hurt []ledger.Entry
	for _, c := range cases {
		if c.ofTime && v.stamped {
			continue
		}
		hurt = append(hurt, v.entryAt(c.at))
		if c.name == "extra" { // it is in front of the next record, which may be behind markers
			hurt[len(hurt)-1].Source.End = max(hurt[len(hurt)-1].Source.End, v.source[c.at+1])
		}
		if c.name == "swapped" {
			hurt = append(hurt, v.entryAt(c.at+1))
		}
	}
	found := make([]bool, len(hurt))
	records := int64(0)
	for i := range hurt {
		if i == 0 || hurt[i].Source != hurt[i-1].Source {
			records += hurt[i].Target.Len()
		}
	}
	for _, finding := range report.Findings {
		inside := false
		for i := range hurt {
			if finding.Source.Start >= hurt[i].Source.Start && finding.Source.End <= hurt[i].Source.End+1 {
				inside, found[i] = true, true
			}
		}
		if !finding.Fault || !inside {
			t.Errorf("mode target: finding %+v", finding)
		}
	}
	for i := range found {
		neighbour := i > 0 && found[i-1] || i+1 < len(found) && found[i+1] // of an exchange across a border
		if !found[i] && !neighbour {
			t.Errorf("mode target: nothing is found in entry %v; findings\n%s", hurt[i].Source, findings(report))
		}
	}
	if report.Verdict != verify.Faults || report.Summary.Copied-report.Summary.Equal > records {
		t.Errorf("mode target: verdict %s, %+v", report.Verdict, report.Summary)
	}
}
