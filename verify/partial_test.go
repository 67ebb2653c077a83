package verify_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// fine cuts books into blocks of 20 offsets and parts of two blocks.
func fine(c *verify.Config) { c.SetGrain(1<<40, 20, 2, 10) }

func sample(i, n int) func(*verify.Config) {
	return func(c *verify.Config) {
		fine(c)
		c.Sample = verify.Slice{Index: i, Of: n}
	}
}

func resume(c *verify.Config) {
	fine(c)
	c.Resume = true
}

// mixed returns a flow of several partitions with all that a log may hold.
func mixed(t *testing.T, seed uint64) *flow {
	t.Helper()
	f := newFlow(t, seed)
	f.joined, f.apart = 15, true
	f.must(kafkatest.Load{Seed: seed, Topics: []string{"t"}, Partitions: 3, Records: 600, MaxValueBytes: 300}.Run(f.ctx, f.pair.Source.Bootstrap))
	f.copy(nil, "t")
	return f
}

// TestSamples: n samples verify everything together, and no record twice; what
// lies outside of one is not verified, and nothing of it is read.
func TestSamples(t *testing.T) {
	f := mixed(t, 11)
	whole := f.verify(verify.ModeFull)
	expect(t, whole, verify.Complete, "")
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		for _, n := range []int{1, 2, 7} {
			equal, read := int64(0), int64(0)
			for i := 1; i <= n; i++ {
				var last verify.Progress
				report := f.verify(mode, sample(i, n), func(c *verify.Config) { c.Progress = func(p verify.Progress) { last = p } })
				s := &report.Summary
				equal += s.Equal
				read += last.Records
				if s.Equal+s.NotVerified != s.Copied || s.Copied != whole.Summary.Copied || n > 1 && s.Equal == 0 {
					t.Errorf("sample %d/%d: counts are %+v", i, n, *s)
				}
				want := verify.Inconclusive
				if n == 1 {
					want = verify.Complete
				}
				if report.Verdict != want {
					t.Errorf("sample %d/%d: verdict is %s", i, n, report.Verdict)
				}
				for _, found := range report.Findings {
					if found.Kind != verify.NotVerified || found.Reason != verify.Sample {
						t.Errorf("sample %d/%d: finding %+v", i, n, found)
					}
				}
			}
			if equal != whole.Summary.Copied {
				t.Errorf("mode %s, %d samples: %d records are equal, of %d", mode, n, equal, whole.Summary.Copied)
			}
			if sides := map[verify.Mode]int64{verify.ModeFull: 2, verify.ModeTarget: 1}[mode]; n == 7 && read > 2*sides*whole.Summary.SourceOffsets+300 {
				t.Errorf("mode %s: %d samples read %d records of %d", mode, n, read, sides*whole.Summary.SourceOffsets)
			}
		}
	}
}

// TestSabotageInSamples: damage is found by the one sample that has it, where it
// is; records that stand elsewhere than booked are noticed by each.
func TestSabotageInSamples(t *testing.T) {
	f := newFlow(t, 5)
	f.joined, f.apart = 9, true
	f.created("t", 1, nil)
	for i := range 20 {
		f.plain(f.pair.Source, "t", i*10, 10)
	}
	f.copy(nil, "t")
	s := newSaboteur(f, "t")
	for _, sabotage := range []kafkatest.Sabotage{
		{Damage: kafkatest.MutateValue, Offset: 0}, {Damage: kafkatest.MutateValue, Offset: 77}, {Damage: kafkatest.Drop, Offset: 100},
		{Damage: kafkatest.Swap, Offset: 130}, {Damage: kafkatest.Drop, Offset: 199}, {Damage: kafkatest.Duplicate, Offset: 50, Shift: true},
		{Damage: kafkatest.Drop, Offset: 60, Shift: true}, {Damage: kafkatest.Insert, Offset: 199},
	} {
		sabotage.Topic = "t"
		done, err := f.pair.Target.Sabotage(sabotage)
		f.must(err)
		t.Run(fmt.Sprintf("%v at %d", done.Damage, done.Offset), func(t *testing.T) {
			var exact, moved []string
			for i := 1; i <= 3; i++ {
				report := f.verify(verify.ModeFull, sample(i, 3))
				for _, found := range report.Findings {
					line := strings.TrimSpace(fmt.Sprintf("%s %v %v", found.Kind, found.Source, found.Target))
					switch {
					case strings.Contains(found.Detail, "lies before this place"):
						moved = append(moved, line)
					case found.Fault:
						exact = append(exact, fmt.Sprintf("%s t-0 source %v target %v\n", found.Kind, found.Source, found.Target))
					}
				}
			}
			if got, want := strings.Join(exact, ""), strings.TrimSpace(s.want(done))+"\n"; got != want {
				t.Errorf("the samples find\n%swant\n%s", got, want)
			}
			if shifts := done.Shift && done.Offset < 180; (len(moved) > 0) != shifts {
				t.Errorf("records moved: %t; told %v", shifts, moved)
			}
		})
		s.restore()
	}
}

// TestSampleLeavesTail: what the target holds behind the books is looked at by
// the sample with their last block; the others say that they have not.
func TestSampleLeavesTail(t *testing.T) {
	f := newFlow(t, 1)
	f.joined, f.apart = 5, true
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 100)
	f.copy(nil, "t")
	f.plain(f.pair.Target, "t", 500, 1)
	found := map[string]int{}
	for i := 1; i <= 4; i++ {
		for line := range strings.Lines(findings(f.verify(verify.ModeFull, sample(i, 4)))) {
			if strings.HasSuffix(line, "target 100\n") {
				found[line]++
			}
		}
	}
	if len(found) != 2 || found["extra t-0 source [100, 100) target 100\n"] != 1 || found["not_verified(sample) no fault t-0 source [100, 100) target 100\n"] != 3 {
		t.Errorf("findings %v", found)
	}
}

// TestSamplesAccumulate: with resume the proofs of earlier samples count, until
// they are a whole proof; what grew meanwhile has to be read.
func TestSamplesAccumulate(t *testing.T) {
	f := mixed(t, 12)
	begin := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	total := f.verify(verify.ModeBooks).Summary.Copied
	for i := 1; i <= 5; i++ {
		night := begin.AddDate(0, 0, i-1)
		report := f.verify(verify.ModeFull, sample(i, 5), func(c *verify.Config) {
			c.Resume = true
			c.Now = func() time.Time { return night }
		})
		want := verify.Inconclusive
		if i == 5 {
			want = verify.Complete
		}
		s := &report.Summary
		if report.Verdict != want || s.Equal+s.NotVerified != total || i == 1 != (s.ProvenEarlier == 0) {
			t.Errorf("night %d: verdict %s, %+v, findings\n%s", i, report.Verdict, *s, findings(report))
		}
		if i > 1 && !report.OldestProof.Equal(begin) || i == 1 && !report.OldestProof.IsZero() {
			t.Errorf("night %d: the oldest proof is of %v", i, report.OldestProof)
		}
	}
	// Without resume a sample is read anew and replaces what was proven of it.
	report := f.verify(verify.ModeFull, sample(1, 5), func(c *verify.Config) { c.Now = func() time.Time { return begin.AddDate(0, 0, 7) } })
	if report.Verdict != verify.Inconclusive || report.Summary.ProvenEarlier != 0 {
		t.Errorf("verdict %s, %+v", report.Verdict, report.Summary)
	}
	report = f.verify(verify.ModeFull, resume)
	if report.Verdict != verify.Complete || report.Summary.ProvenEarlier != total || !report.OldestProof.Equal(begin.AddDate(0, 0, 1)) {
		t.Errorf("verdict %s, %+v, oldest proof %v", report.Verdict, report.Summary, report.OldestProof)
	}
	// Another mode has proofs of its own.
	report = f.verify(verify.ModeTarget, resume)
	if report.Verdict != verify.Complete || report.Summary.ProvenEarlier != 0 {
		t.Errorf("verdict %s, %+v", report.Verdict, report.Summary)
	}
	f.must(kafkatest.Load{Seed: 99, Topics: []string{"t"}, Partitions: 3, Records: 60}.Run(f.ctx, f.pair.Source.Bootstrap))
	f.copy(nil, "t")
	report = f.verify(verify.ModeFull, resume)
	if report.Verdict != verify.Complete || report.Summary.ProvenEarlier != total || report.Summary.Copied == total {
		t.Errorf("verdict %s, %+v", report.Verdict, report.Summary)
	}
}

// TestMaxBytes: reading stops when as many bytes were read, the rest is not
// verified; with resume, run after run, it comes to an end.
func TestMaxBytes(t *testing.T) {
	f := mixed(t, 13)
	bytes := int64(0)
	f.edit(func(l *ledger.Ledger) error {
		for _, p := range l.Pairs() {
			bytes += l.Totals(p.ID).Bytes
		}
		return nil
	})
	limit := 2 * bytes / 5
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		var last verify.Progress
		report := f.verify(mode, fine, func(c *verify.Config) {
			c.MaxBytes, c.Parallel = limit, 1
			c.Progress = func(p verify.Progress) { last = p }
		})
		s := &report.Summary
		if report.Verdict != verify.Inconclusive || s.Equal == 0 || s.NotVerified == 0 {
			t.Errorf("mode %s: verdict %s, %+v", mode, report.Verdict, *s)
		}
		for _, found := range report.Findings {
			if found.Reason != verify.NotRead {
				t.Errorf("mode %s: finding %+v", mode, found)
			}
		}
		const around = 2 * 20 * 400 // an entry and what is read around it, on both sides
		if last.Bytes < limit*8/10 || last.Bytes > limit+around {
			t.Errorf("mode %s: %d bytes were read, the limit is %d", mode, last.Bytes, limit)
		}
	}
	if _, err := os.Stat(verify.StatePath(f.path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nobody asked for proofs to be kept, and there is a state: error %v", err)
	}
	runs, proven := 0, int64(-1)
	for report := (*verify.Report)(nil); runs < 20 && (report == nil || report.Verdict != verify.Complete); runs++ {
		report = f.verify(verify.ModeFull, resume, func(c *verify.Config) { c.MaxBytes = limit })
		if report.Summary.Equal <= proven {
			t.Errorf("run %d: %d records are equal, %d were", runs, report.Summary.Equal, proven)
		}
		proven = report.Summary.Equal
	}
	if runs < 4 || runs > 9 {
		t.Errorf("it took %d runs to read everything", runs)
	}
	expect(t, f.verify(verify.ModeFull, func(c *verify.Config) { c.MaxBytes = 1 << 30 }), verify.Complete, "")
}

// TestMaxBytesBehindBooks: a limit holds for what stands behind the books, too.
func TestMaxBytesBehindBooks(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	for range 40 {
		f.must(f.pair.Target.Append(f.ctx, kafkatest.None, plainRecords("t", 100, 1000)...))
	}
	report := f.verify(verify.ModeFull, func(c *verify.Config) { c.MaxBytes = 20000 })
	if s := &report.Summary; s.Equal != 10 || s.Extra == 0 || s.Extra > 30000 {
		t.Errorf("counts are %+v", *s)
	}
	reasons := map[verify.Reason]bool{}
	for _, found := range report.Findings {
		reasons[found.Reason] = true
	}
	if !reasons[verify.NotRead] || reasons[verify.Unreadable] {
		t.Errorf("findings\n%s", findings(report))
	}
}

// TestRateLimit: reading takes the time that it must take. The arithmetic is
// tested in package pace.
func TestRateLimit(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 2, nil)
	f.plain(f.pair.Source, "t", 0, 500)
	f.copy(nil, "t")
	started := time.Now()
	var last verify.Progress
	report := f.verify(verify.ModeFull, func(c *verify.Config) {
		c.BytesPerSecond, c.Patience = 20_000, 500*time.Millisecond
		c.Progress = func(p verify.Progress) { last = p }
	})
	expect(t, report, verify.Complete, "")
	if took, least := time.Since(started), time.Duration(last.Bytes-5_000)*time.Second/20_000; took < least || least < time.Second {
		t.Errorf("%d bytes took %v, want at least %v", last.Bytes, took, least)
	}
}

// TestSamplesOfNotes: what the ledger names on the target belongs to the block of
// the copy behind it, and is looked for by one sample.
func TestSamplesOfNotes(t *testing.T) {
	f := newFlow(t, 1)
	f.joined, f.apart = 5, true
	f.created("t", 1, nil)
	for i := range 6 {
		f.plain(f.pair.Source, "t", i*20, 20)
		f.copy(nil, "t")
		f.plain(f.pair.Target, "t", 500+i, 2)
		f.edit(func(l *ledger.Ledger) error {
			pair := pairsOf(l, "t")[0]
			end := l.End(pair.ID)
			f.append(l, pair, ledger.Entry{Tile: ledger.Orphan, Source: ledger.Range{Start: end.Source, End: end.Source}, Target: ledger.Range{Start: end.Target, End: end.Target + 2}})
			return nil
		})
	}
	s := newSaboteur(f, "t")
	expect(t, f.verify(verify.ModeFull, resume), verify.Complete, "")
	expect(t, f.verify(verify.ModeFull, resume), verify.Complete, "")
	for _, gone := range []int64{20, 43, 130} {
		f.must(os.Remove(verify.StatePath(f.path)))
		_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "t", Offset: gone})
		f.must(err)
		var faults []string
		for i := 1; i <= 3; i++ {
			for line := range strings.Lines(findings(f.verify(verify.ModeFull, sample(i, 3)))) {
				if strings.HasPrefix(line, "missing") {
					faults = append(faults, line)
				}
			}
		}
		if len(faults) != 1 || !strings.HasSuffix(faults[0], fmt.Sprintf("target %d\n", gone)) {
			t.Errorf("without %d: findings %q", gone, faults)
		}
		s.restore()
	}
}
