package verify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/verify"
)

// interrupt verifies until the partition with the gate is read, then ends it;
// meanwhile is called before.
func (f *flow) interrupt(topic string, meanwhile func(), change ...func(*verify.Config)) {
	f.t.Helper()
	gate := make(chan struct{})
	handle := f.pair.Source.MustFault(f.t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Topic: topic, Gate: gate})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(f.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if handle.Wait(f.ctx, 1) == nil {
			meanwhile()
			cancel(why)
		}
	}()
	config := verify.Config{LedgerPath: f.path, Source: cluster(f.source), Target: cluster(f.target), Parallel: 1}
	for _, c := range change {
		c(&config)
	}
	report, err := verify.Run(ctx, config)
	close(gate)
	<-done
	if report != nil || !errors.Is(err, why) {
		f.t.Fatalf("report %v, error %v", report, err)
	}
}

// leaping returns a clock that goes on by ten seconds with each look.
func leaping() func() time.Time {
	var looks atomic.Int64
	return func() time.Time {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(looks.Add(1)) * 10 * time.Second)
	}
}

// TestResumeAfterInterruption: what was proven before counts, whether the run
// could end in order or was killed.
func TestResumeAfterInterruption(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			f := newFlow(t, 2)
			for _, topic := range []string{"a", "b"} {
				f.created(topic, 1, nil)
				f.plain(f.pair.Source, topic, 0, 1500) // too many to be read together
			}
			f.joined, f.apart = 90, true
			f.copy(nil, "a", "b")
			var then []byte
			f.interrupt("b", func() { then, _ = os.ReadFile(verify.StatePath(f.path)) }, resume, func(c *verify.Config) { c.Now = leaping() })
			if killed {
				f.must(os.WriteFile(verify.StatePath(f.path), then, 0o600))
			}
			report := f.verify(verify.ModeFull, resume)
			expect(t, report, verify.Complete, "")
			a, b := report.Partitions[0], report.Partitions[1]
			if a.ProvenEarlier < 1400 || a.Equal != 1500 || b.ProvenEarlier != 0 || b.Equal != 1500 || report.OldestProof.IsZero() {
				t.Errorf("rows are %+v and %+v", a, b)
			}
			report = f.verify(verify.ModeFull)
			if report.Summary.ProvenEarlier != 0 || !report.OldestProof.IsZero() {
				t.Errorf("without resume: %+v", report.Summary)
			}
		})
	}
}

// TestPartsAfterCutover: what others write behind the books is counted, whatever is
// read of the books, and is not looked at.
func TestPartsAfterCutover(t *testing.T) {
	f := copied(t)
	f.plain(f.pair.Target, "t", 900, 3)
	toBook := func(c *verify.Config) { c.Until = verify.UntilBook }
	for _, change := range []func(*verify.Config){resume, resume, sample(1, 2), sample(2, 2), func(c *verify.Config) { c.MaxBytes = 100 }} {
		report := f.verify(verify.ModeFull, change, toBook)
		if s := &report.Summary; s.AfterBook != 3 || s.Extra != 0 || s.Equal == 0 || report.Verdict == verify.Faults {
			t.Errorf("verdict %s, %+v", report.Verdict, *s)
		}
	}
}

// TestUnreadableIsNoProof: what could not be read is read by the next run.
func TestUnreadableIsNoProof(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := copied(t)
	for _, c := range []*kafkatest.Cluster{f.pair.Source, f.pair.Target} {
		handle := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Fetch, Topic: "t", Count: -1, Err: kerr.LeaderNotAvailable})
		if report := f.verify(verify.ModeFull, resume, quick); report.Verdict != verify.Inconclusive || report.Summary.Equal != 0 {
			t.Errorf("verdict %s, %+v", report.Verdict, report.Summary)
		}
		handle.Remove()
	}
	report := f.verify(verify.ModeFull, resume)
	expect(t, report, verify.Complete, "")
	if report.Summary.ProvenEarlier != 0 {
		t.Errorf("counts are %+v", report.Summary)
	}
}

// TestSampleWithinProof: a sample that is read anew leaves what was proven around
// it.
func TestSampleWithinProof(t *testing.T) {
	f := copied(t)
	begin := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	at := func(day int) func(*verify.Config) {
		return func(c *verify.Config) { c.Now = func() time.Time { return begin.AddDate(0, 0, day) } }
	}
	f.verify(verify.ModeFull, resume, at(0))
	for i := 1; i <= 2; i++ {
		report := f.verify(verify.ModeFull, sample(i, 2), at(i))
		if s := &report.Summary; s.ProvenEarlier != 0 || s.Equal == 0 || s.NotVerified == 0 {
			t.Errorf("sample %d: %+v", i, *s)
		}
		report = f.verify(verify.ModeFull, resume, at(9))
		if report.Verdict != verify.Complete || report.Summary.ProvenEarlier != 100 || !report.OldestProof.Equal(begin.AddDate(0, 0, i-1)) {
			t.Errorf("after sample %d: verdict %s, %+v, oldest proof %v", i, report.Verdict, report.Summary, report.OldestProof)
		}
	}
}

// TestResumeReportsFaults: what was found in earlier runs is reported again, and
// not looked for again.
func TestResumeReportsFaults(t *testing.T) {
	f := newFlow(t, 2)
	f.joined, f.apart = 9, true
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 200)
	f.copy(nil, "t")
	s := newSaboteur(f, "t")
	for _, sabotage := range []kafkatest.Sabotage{
		{Damage: kafkatest.MutateValue, Topic: "t", Offset: 50},
		{Damage: kafkatest.Drop, Topic: "t", Offset: 100, Shift: true},
		{Damage: kafkatest.Insert, Topic: "t", Offset: 120},
	} {
		_, err := f.pair.Target.Sabotage(sabotage)
		f.must(err)
	}
	first := f.verify(verify.ModeFull, resume)
	expect(t, first, verify.Faults, `
		changed t-0 source 50 target 50
		missing t-0 source 100 target 100
		extra t-0 source [200, 200) target 199`)
	again := f.verify(verify.ModeFull, resume)
	if findings(first) != findings(again) || again.Verdict != verify.Faults {
		t.Errorf("findings were\n%sand are\n%s", findings(first), findings(again))
	}
	a, b := first.Summary.Counts, again.Summary.Counts
	if b.ProvenEarlier != 200 || a.ProvenEarlier != 0 {
		t.Errorf("%d and %d were proven earlier", a.ProvenEarlier, b.ProvenEarlier)
	}
	b.ProvenEarlier = 0
	if a != b {
		t.Errorf("counts were %+v and are %+v", a, b)
	}
	s.restore()
	if report := f.verify(verify.ModeFull, resume); report.Summary.Changed != 1 {
		t.Errorf("findings\n%s", findings(report))
	}
	f.must(os.Remove(verify.StatePath(f.path)))
	expect(t, f.verify(verify.ModeFull, resume), verify.Complete, "")
}

// TestProofOfALogThatWasCut: either side was cut, and has grown again to where it
// was, by other records. What was proven is read again.
func TestProofOfALogThatWasCut(t *testing.T) {
	for _, side := range []string{"source", "target"} {
		f := newFlow(t, 3)
		f.joined, f.apart = 1, true
		f.created("t", 1, nil)
		write := func(c *kafkatest.Cluster, what string) {
			for i := range 10 {
				f.must(c.Append(t.Context(), kafkatest.None, &kgo.Record{Topic: "t", Value: fmt.Appendf(nil, "%s %d", what, i), Timestamp: time.UnixMilli(1000)}))
			}
		}
		write(f.pair.Source, "kept")
		write(f.pair.Source, "cut")
		f.copy(nil, "t")
		expect(t, f.verify(verify.ModeFull, resume), verify.Complete, "")
		c := map[string]*kafkatest.Cluster{"source": f.pair.Source, "target": f.pair.Target}[side]
		f.must(c.LoseTail("t", 0, 10))
		write(c, "other")
		f.unused(t, "the leader has changed since", verify.Faults)
	}
}

// unused verifies with resume and expects that nothing of what was proven is
// used, that the reason is told, and the verdict.
func (f *flow) unused(t *testing.T, why string, verdict verify.Verdict, change ...func(*verify.Config)) *verify.Report {
	t.Helper()
	var log bytes.Buffer
	report := f.verify(verify.ModeFull, append(change, resume, func(c *verify.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })...)
	if report.Verdict != verdict || report.Summary.ProvenEarlier != 0 || !report.OldestProof.IsZero() {
		t.Errorf("verdict %s, %+v, findings\n%s", report.Verdict, report.Summary, findings(report))
	}
	if !strings.Contains(log.String(), why) {
		t.Errorf("log is %q, want %q in it", log.String(), why)
	}
	return report
}

// copied returns a flow with a copy of 100 records.
func copied(t *testing.T) *flow {
	t.Helper()
	f := newFlow(t, 3)
	f.joined, f.apart = 9, true
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 100)
	f.copy(nil, "t")
	return f
}

// proven returns a flow with a copy that was proven.
func proven(t *testing.T) *flow {
	t.Helper()
	f := copied(t)
	expect(t, f.verify(verify.ModeFull, resume), verify.Complete, "")
	return f
}

// TestStateOfAnother: a state that is damaged, or about another ledger or another
// state of it, is not used.
func TestStateOfAnother(t *testing.T) {
	t.Run("damaged", func(t *testing.T) {
		f := proven(t)
		raw, err := os.ReadFile(verify.StatePath(f.path))
		f.must(err)
		for _, broken := range [][]byte{{}, raw[:len(raw)-1], bytes.Replace(raw, []byte(`"records":1`), []byte(`"records":2`), 1)} {
			f.must(os.WriteFile(verify.StatePath(f.path), broken, 0o600))
			f.unused(t, "damaged", verify.Complete)
		}
	})
	t.Run("another file", func(t *testing.T) {
		f := copied(t)
		f.must(os.WriteFile(verify.StatePath(f.path), []byte("my notes"), 0o600))
		_, err := verify.Run(f.ctx, verify.Config{LedgerPath: f.path, Source: cluster(f.source), Target: cluster(f.target), Resume: true})
		var usage *verify.UsageError
		if kept, _ := os.ReadFile(verify.StatePath(f.path)); !errors.As(err, &usage) || string(kept) != "my notes" {
			t.Errorf("error %v, the file is %q", err, kept)
		}
	})
	t.Run("another ledger", func(t *testing.T) {
		f, g := proven(t), copied(t)
		raw, err := os.ReadFile(verify.StatePath(f.path))
		f.must(err)
		g.must(os.WriteFile(verify.StatePath(g.path), raw, 0o600))
		g.unused(t, "about another ledger", verify.Complete)
	})
	t.Run("rolled back", func(t *testing.T) {
		f := copied(t)
		old, err := os.ReadFile(f.path)
		f.must(err)
		f.plain(f.pair.Source, "t", 100, 50)
		f.asPair = true
		f.copy(nil, "t")
		f.verify(verify.ModeFull, resume)
		f.must(os.WriteFile(f.path, old, 0o600))
		f.unused(t, "the ledger is an older state of what was verified", verify.Inconclusive)
	})
}

// TestStateOfOtherClusters: what has changed in a cluster since undoes a proof, as
// far as it concerns what was proven.
func TestStateOfOtherClusters(t *testing.T) {
	t.Run("target recreated", func(t *testing.T) {
		f := proven(t)
		var batches [][]byte
		f.must(f.pair.Target.EditLog("t", 0, func(l *kafkatest.Log) error {
			batches = slices.Clone(l.Batches)
			return nil
		}))
		f.deleteTopic(f.pair.Target, "t")
		f.must(f.pair.Target.CreateTopic(f.ctx, "t", 1, nil))
		f.must(f.pair.Target.EditLog("t", 0, func(l *kafkatest.Log) error {
			l.Batches = batches
			return nil
		}))
		f.unused(t, "deleted and created again", verify.Faults)
	})
	t.Run("target truncated", func(t *testing.T) {
		f := proven(t)
		_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Truncate, Topic: "t", Count: 10})
		f.must(err)
		report := f.verify(verify.ModeFull, resume)
		if report.Verdict != verify.Faults || report.Summary.Missing != 10 {
			t.Errorf("verdict %s, %+v", report.Verdict, report.Summary)
		}
	})
	t.Run("target's log start moved", func(t *testing.T) {
		f := proven(t)
		f.must(f.pair.Target.DeleteRecords("t", 0, 50))
		var log bytes.Buffer
		report := f.verify(verify.ModeFull, resume, func(c *verify.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		if !strings.Contains(log.String(), "log start has moved") {
			t.Errorf("log is %q", log.String())
		}
		if s := &report.Summary; report.Verdict != verify.Inconclusive || s.NotVerified != 50 || s.Equal != 50 || s.ProvenEarlier == 0 || s.ProvenEarlier > 50 {
			t.Errorf("verdict %s, %+v", report.Verdict, *s)
		}
	})
	t.Run("the source's retention does not matter", func(t *testing.T) {
		f := proven(t)
		f.must(f.pair.Source.DeleteRecords("t", 0, 50))
		report := f.verify(verify.ModeFull, resume)
		if s := &report.Summary; report.Verdict != verify.Complete || s.ProvenEarlier != 100 {
			t.Errorf("verdict %s, %+v", report.Verdict, *s)
		}
	})
	t.Run("a narrower selection", func(t *testing.T) {
		f := proven(t)
		f.created("u", 1, nil)
		f.plain(f.pair.Source, "u", 0, 30)
		f.copy(nil, "u")
		report := f.verify(verify.ModeFull, resume, func(c *verify.Config) { c.Topics = []string{"u"} })
		if s := &report.Summary; report.Verdict != verify.Complete || s.ProvenEarlier != 0 {
			t.Errorf("verdict %s, %+v", report.Verdict, *s)
		}
		report = f.verify(verify.ModeFull, resume, func(c *verify.Config) { c.Topics = []string{"t", "u"} })
		if s := &report.Summary; report.Verdict != verify.Complete || s.ProvenEarlier != 130 {
			t.Errorf("verdict %s, %+v", report.Verdict, *s)
		}
	})
}

// TestStateCannotBeWritten: who asks for proofs to be kept learns at once that
// they cannot be.
func TestStateCannotBeWritten(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.copy(nil, "t")
	f.must(os.Mkdir(verify.StatePath(f.path), 0o700))
	report, err := verify.Run(f.ctx, verify.Config{LedgerPath: f.path, Source: cluster(f.source), Target: cluster(f.target), Resume: true})
	if report != nil || err == nil {
		t.Errorf("report %v, error %v", report, err)
	}
}

// TestStateFormat: any change of a byte of a state file is noticed.
func TestStateFormat(t *testing.T) {
	f := newFlow(t, 3)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 20)
	f.copy(nil, "t")
	f.verify(verify.ModeFull, resume)
	raw, err := os.ReadFile(verify.StatePath(f.path))
	f.must(err)
	if !verify.ParseState(raw) {
		t.Fatalf("state is not recognized:\n%s", raw)
	}
	for i := range raw {
		broken := bytes.Clone(raw)
		broken[i] ^= 1
		if verify.ParseState(broken) {
			t.Errorf("a change of byte %d is not noticed", i)
		}
		if verify.ParseState(raw[:i]) {
			t.Errorf("a file of %d bytes is taken", i)
		}
	}
}
