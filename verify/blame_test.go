package verify_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/verify"
)

// withMarkers makes topic t with transactions, so that its books are runs of
// records with markers in between, and copies it.
func withMarkers(t *testing.T) *flow {
	t.Helper()
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	for i := range 6 {
		f.must(f.pair.Source.AppendTransaction(f.ctx, "x", true, plainRecords("t", 10*i, 4)...))
	}
	f.copy(nil, "t")
	return f
}

// TestOneFindingPerCause: whatever keeps a side from being read is told once for
// each partition, and names the side that failed.
func TestOneFindingPerCause(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, side := range []string{"source", "target"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			f := withMarkers(t)
			f.plain(f.pair.Source, "t", 100, 3)
			f.wrote("t", 100, 2)
			c := f.pair.Source
			if side == "target" {
				c = f.pair.Target
			}
			c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: fetch, Topic: "t", Count: -1, Err: kerr.TopicAuthorizationFailed})
			report := f.verify(verify.ModeFull, quick)
			var told []verify.Finding
			for _, found := range report.Findings {
				if found.Kind != verify.NotCopiedYet {
					told = append(told, found)
				}
			}
			if len(told) != 1 || told[0].Reason != verify.Unreadable || report.Summary.NotVerified != 24 ||
				!strings.HasPrefix(told[0].Detail, "24 copied records could not be compared: the "+side+" partition could not be read from offset 0 on: TOPIC_AUTH") {
				t.Errorf("%+v, findings %+v", report.Summary, told)
			}
		})
	}
}

// TestOutageBlamesOneCluster: the target goes away while it is read. There is one
// finding for each partition that is not verified, of the cluster that went away,
// also where a partition is read in many parts.
func TestOutageBlamesOneCluster(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, side := range []string{"source", "target"} {
		for _, resume := range []bool{false, true} {
			f := newFlow(t, 1)
			f.created("t", 3, nil)
			for p := range int32(3) {
				records := plainRecords("t", 0, 1100)
				for _, r := range records {
					r.Partition = p
				}
				f.must(f.pair.Source.Append(f.ctx, kafkatest.None, records...))
			}
			f.apart = true
			f.copy(nil, "t")
			c := f.pair.Source
			if side == "target" {
				c = f.pair.Target
			}
			gate := make(chan struct{})
			handle := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: fetch, Topic: "t", Partitions: []int32{1}, Gate: gate})
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				if handle.Wait(f.ctx, 1) == nil {
					c.Stop()
				}
			}()
			config := verify.Config{
				LedgerPath: f.path, Source: cluster(f.source), Target: cluster(f.target), Parallel: 1, Patience: time.Second, Resume: resume,
			}
			config.SetGrain(1<<20, 200, 1, 10)
			report, err := verify.Run(f.ctx, config)
			close(gate)
			<-stopped
			f.must(c.Start())
			var gone *connect.UnreachableError
			if !errors.As(err, &gone) || report == nil {
				t.Fatalf("%s: report %v, error %v", side, report, err)
			}
			checkSums(t, report)
			alias := map[string]string{"source": "a", "target": "b"}[side]
			if len(report.Findings) != 2 || report.Partitions[0].Equal != 1100 || strings.Count(err.Error(), "cannot be reached") != 1 {
				t.Errorf("%s: findings\n%s%+v, error %v", side, findings(report), report.Findings, err)
			}
			for _, found := range report.Findings {
				if found.Reason != verify.Unreadable || !strings.Contains(found.Detail, "copied records could not be compared: "+gone.Error()) || gone.Alias != alias {
					t.Errorf("%s: %+v, error %v", side, found, err)
				}
			}
		}
	}
}

// TestOutageBeforeReading: the target goes away when it is asked for its offsets.
// That is one error, and not something about each partition.
func TestOutageBeforeReading(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := withMarkers(t)
	gate := make(chan struct{})
	handle := f.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: listOffsets, Topic: "t", Gate: gate})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if handle.Wait(f.ctx, 1) == nil {
			f.pair.Target.Stop()
		}
	}()
	report, err := verify.Run(f.ctx, verify.Config{LedgerPath: f.path, Source: cluster(f.source), Target: cluster(f.target), Patience: time.Second})
	close(gate)
	<-stopped
	f.must(f.pair.Target.Start())
	var gone *connect.UnreachableError
	if !errors.As(err, &gone) || gone.Alias != "b" || report != nil {
		t.Errorf("report %v, error %v", report, err)
	}
}

// TestDeletedTopics: a topic that is gone is one finding for each partition,
// however its books are made up.
func TestDeletedTopics(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := withMarkers(t)
	f.deleteTopic(f.pair.Target, "t")
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		report := f.verify(mode)
		expect(t, report, verify.Faults, `missing t-0 source [0, 29) target [0, 24)`)
		if report.Summary.Missing != 24 || !strings.Contains(report.Findings[0].Detail, "does not exist any more") {
			t.Errorf("%+v, %+v", report.Summary, report.Findings)
		}
	}
	f.must(f.target.CreateTopic(f.ctx, "t", 1, nil)) // another one, and empty
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Faults, `missing t-0 source [0, 29) target [0, 24)`)
	if !strings.Contains(report.Findings[0].Detail, "deleted and created again") {
		t.Errorf("%+v", report.Findings)
	}

	f = withMarkers(t)
	f.deleteTopic(f.pair.Source, "t")
	report = f.verify(verify.ModeFull)
	expect(t, report, verify.Inconclusive, `not_verified(unreadable) no fault t-0 source [0, 29) target [0, 24)`)
	if d := report.Findings[0].Detail; !strings.HasSuffix(d, "the source partition could not be read from offset 0 on: there is no such topic any more") {
		t.Errorf("detail is %q", d)
	}
}
