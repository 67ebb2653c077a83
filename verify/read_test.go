package verify_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

const fetch, listOffsets = kmsg.Fetch, kmsg.ListOffsets

// quick makes a run lose its patience soon.
func quick(c *verify.Config) { c.Patience = 2 * time.Second }

// TestBrokenBatch: a batch that cannot be decompressed, on either side. What
// lies before it is verified, the rest is not, and nobody waits for ever.
func TestBrokenBatch(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, damage := range []struct {
		name  string
		spoil func(b *kafkatest.Batch)
	}{
		{"payload", func(b *kafkatest.Batch) {
			b.Codec, b.Payload, b.Count = kafkatest.LZ4, []byte("no lz4 frame"), int32(len(b.Records))
		}},
		{"record", func(b *kafkatest.Batch) { b.Payload, b.Count = []byte{200, 1, 2, 3}, int32(len(b.Records)) }},
	} {
		for _, side := range []string{"source", "target"} {
			t.Run(damage.name+" on the "+side, func(t *testing.T) {
				t.Parallel()
				f := newFlow(t, 1)
				f.created("t", 1, nil)
				for i := range 4 {
					f.plain(f.pair.Source, "t", i*5, 5)
				}
				f.joined = 5
				f.copy(nil, "t")
				c := f.pair.Source
				if side == "target" {
					c = f.pair.Target
				}
				f.must(c.EditLog("t", 0, func(l *kafkatest.Log) error {
					for i, raw := range l.Batches {
						b, err := kafkatest.DecodeBatch(raw)
						if err != nil {
							return err
						}
						if b.BaseOffset <= 12 && b.NextOffset() > 12 {
							damage.spoil(&b)
							l.Batches[i], err = b.Encode()
							return err
						}
					}
					return errors.New("no batch holds offset 12")
				}))
				started := time.Now()
				report := f.verify(verify.ModeFull, quick)
				if report.Verdict != verify.Inconclusive || report.Summary.Equal == 0 || report.Summary.NotVerified == 0 || report.Summary.Missing+report.Summary.Changed != 0 {
					t.Errorf("verdict %s, %+v, findings\n%s", report.Verdict, report.Summary, findings(report))
				}
				for _, found := range report.Findings {
					if found.Reason != verify.Unreadable {
						t.Errorf("finding %+v", found)
					}
				}
				if took := time.Since(started); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}

// TestPartitionWithoutLeader: one partition gives no answers; the others are
// verified.
func TestPartitionWithoutLeader(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, key := range []kmsg.Key{fetch, listOffsets} {
		for _, side := range []string{"source", "target"} {
			t.Run(key.Name()+" of the "+side, func(t *testing.T) {
				t.Parallel()
				f := newFlow(t, 1)
				f.must(kafkatest.Load{Seed: 1, Topics: []string{"t"}, Partitions: 3, Records: 600}.Run(f.ctx, f.pair.Source.Bootstrap))
				f.copy(nil, "t")
				c := f.pair.Source
				if side == "target" {
					c = f.pair.Target
				}
				c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: key, Topic: "t", Partitions: []int32{1}, Count: -1, Err: kerr.LeaderNotAvailable})
				report := f.verify(verify.ModeFull, quick)
				if report.Verdict != verify.Inconclusive {
					t.Errorf("verdict is %s", report.Verdict)
				}
				for _, p := range report.Partitions {
					want := verify.Complete
					if p.Partition == 1 {
						want = verify.Inconclusive
					}
					if p.Verdict != want || p.Partition == 1 && (p.NotVerified != p.Copied || p.Copied == 0) {
						t.Errorf("row is %+v", p)
					}
				}
				for _, found := range report.Findings {
					if found.Partition != 1 || found.Reason != verify.Unreadable {
						t.Errorf("finding %+v", found)
					}
				}
			})
		}
	}
}

// TestUnreachable: a cluster that is not there from the beginning.
func TestUnreachable(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.copy(nil, "t")
	f.pair.Target.Stop()
	_, err := verify.Run(f.ctx, verify.Config{LedgerPath: f.path, Source: cluster(f.source), Target: cluster(f.target)})
	var gone *connect.UnreachableError
	if !errors.As(err, &gone) {
		t.Errorf("error is %v", err)
	}
	f.must(f.pair.Target.Start())
}

// TestClusterGoesAway: it stops while it is read. What was read is reported, the
// rest is not verified, and the error says why.
func TestClusterGoesAway(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	for _, topic := range []string{"a", "b", "c"} {
		f.created(topic, 1, nil)
		f.plain(f.pair.Source, topic, 0, 1100)
	}
	f.joined = 600
	f.copy(nil, "a", "b", "c")
	gate := make(chan struct{})
	handle := f.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: fetch, Topic: "b", Gate: gate})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if handle.Wait(f.ctx, 1) == nil {
			f.pair.Target.Stop()
		}
	}()
	report, err := verify.Run(f.ctx, verify.Config{
		LedgerPath: f.path, Source: cluster(f.source), Target: cluster(f.target), Parallel: 1, Patience: 2 * time.Second,
	})
	close(gate)
	<-stopped
	f.must(f.pair.Target.Start())
	var gone *connect.UnreachableError
	if !errors.As(err, &gone) || report == nil {
		t.Fatalf("report %v, error %v", report, err)
	}
	checkSums(t, report)
	if report.Verdict != verify.Inconclusive || report.Partitions[0].Equal != 1100 ||
		report.Partitions[1].NotVerified != 1100 || report.Partitions[2].NotVerified != 1100 {
		t.Errorf("verdict %s, rows %+v", report.Verdict, report.Partitions)
	}
}

// TestInterrupted: a context that ends is the error, and there is no report.
func TestInterrupted(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	gate := make(chan struct{})
	defer close(gate)
	handle := f.pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: fetch, Topic: "t", Gate: gate})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(f.ctx)
	go func() {
		if handle.Wait(f.ctx, 1) == nil {
			cancel(why)
		}
	}()
	report, err := verify.Run(ctx, verify.Config{LedgerPath: f.path, Source: cluster(f.source), Target: cluster(f.target)})
	if report != nil || !errors.Is(err, why) {
		t.Errorf("report %v, error %v", report, err)
	}
}

// TestRetentionWhileReading: the log start passes the reader.
func TestRetentionWhileReading(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, side := range []string{"source", "target"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			f := newFlow(t, 1)
			f.created("t", 1, nil)
			f.plain(f.pair.Source, "t", 0, 100)
			f.copy(nil, "t")
			c := f.pair.Source
			if side == "target" {
				c = f.pair.Target
			}
			gate := make(chan struct{})
			handle := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: fetch, Topic: "t", Gate: gate})
			done := make(chan error, 1)
			go func() {
				defer close(gate)
				err := handle.Wait(f.ctx, 1)
				if err == nil {
					err = c.DeleteRecords("t", 0, 40)
				}
				done <- err
			}()
			report := f.verify(verify.ModeFull)
			f.must(<-done)
			expect(t, report, verify.Inconclusive, `not_verified(retention) no fault t-0 source [0, 40) target [0, 40)`)
			if report.Summary.Equal != 60 || report.Summary.NotVerified != 40 {
				t.Errorf("counts are %+v", report.Summary)
			}
		})
	}
}

// TestRoughWay: leaders move and connections break while both sides are read.
func TestRoughWay(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 8)
	f.must(kafkatest.Load{Seed: 8, Topics: []string{"t"}, Partitions: 2, Records: 600}.Run(f.ctx, f.pair.Source.Bootstrap))
	f.copy(nil, "t")
	for _, c := range []*kafkatest.Cluster{f.pair.Source, f.pair.Target} {
		c.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutAfter, Key: fetch, Count: 3})
		c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: fetch, Topic: "t", Skip: 5, Count: 2, Err: kerr.NotLeaderForPartition})
		c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: listOffsets, Topic: "t", Count: 2, Err: kerr.NotLeaderForPartition})
		c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: fetch, Topic: "t", Skip: 8, Count: 1, Err: kerr.UnknownServerError})
	}
	expect(t, f.verify(verify.ModeFull, func(c *verify.Config) { c.Patience = 10 * time.Second }), verify.Complete, "")
}

// TestEmptyBatchAtTheEnd: the log ends with offsets at which nothing is, so that
// no record tells that the end has come.
func TestEmptyBatchAtTheEnd(t *testing.T) {
	t.Parallel() // it waits more than it works
	compact := map[string]string{"cleanup.policy": "compact"}
	f := newFlow(t, 1)
	f.created("t", 1, compact)
	f.compacts["t"] = true
	for i := range 3 {
		f.plain(f.pair.Source, "t", i*4, 4)
	}
	f.must(f.pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error {
		for _, i := range []int{0, 2} {
			b, err := kafkatest.DecodeBatch(l.Batches[i])
			if err != nil {
				return err
			}
			b.Records = nil
			if l.Batches[i], err = b.Encode(); err != nil {
				return err
			}
		}
		return nil
	}))
	f.copy(compact, "t")
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Complete, "")
	if c := report.Summary.Counts; c.Equal != 4 || c.Compacted != 8 {
		t.Errorf("counts are %+v", c)
	}
}

// TestSlowConsumer: the consumer has delivered nothing yet when the log is asked
// whether anything is left, and it takes several answers to get past what no
// consumer sees.
func TestSlowConsumer(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	for i := range 4 {
		large := plainRecords("t", i, 1)
		large[0].Value = make([]byte, 600_000)
		f.must(f.pair.Source.AppendTransaction(f.ctx, "x", false, large...))
	}
	// Without the markers nothing tells a consumer how far it has come.
	f.must(f.pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error {
		l.Batches = slices.DeleteFunc(l.Batches, func(raw []byte) bool {
			b, err := kafkatest.DecodeBatch(raw)
			return err == nil && b.Control() && b.BaseOffset < 7
		})
		return nil
	}))
	f.plain(f.pair.Source, "t", 8, 5)
	f.compacts["t"] = true
	f.copy(nil, "t")
	f.pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: fetch, Delay: time.Second})
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Complete, "")
	if report.Summary.Equal != 5 {
		t.Errorf("counts are %+v", report.Summary)
	}
}

// TestReadsOnly: no request that changes anything is ever sent, not even one for
// metadata that could make a topic.
func TestReadsOnly(t *testing.T) {
	f := newFlow(t, 1)
	f.must(kafkatest.Load{Seed: 1, Topics: []string{"t"}, Partitions: 2, Records: 200}.Run(f.ctx, f.pair.Source.Bootstrap))
	f.copy(nil, "t")
	f.edit(func(l *ledger.Ledger) error {
		_, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "gone", TargetTopic: "gone", Producer: ledger.Producer{ID: 1}}})
		return err
	})
	var mu sync.Mutex
	seen := map[kmsg.Key]bool{}
	for _, c := range []*kafkatest.Cluster{f.pair.Source, f.pair.Target} {
		c.Fake().Control(func(request kmsg.Request) (kmsg.Response, error, bool) {
			mu.Lock()
			defer mu.Unlock()
			seen[kmsg.Key(request.Key())] = true
			if m, ok := request.(*kmsg.MetadataRequest); ok && m.AllowAutoTopicCreation {
				t.Error("a request for metadata may make topics")
			}
			c.Fake().KeepControl()
			return nil, nil, false
		})
	}
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		f.verify(mode)
	}
	mu.Lock()
	defer mu.Unlock()
	for key := range seen {
		switch key {
		case kmsg.ApiVersions, kmsg.Metadata, fetch, listOffsets, kmsg.DescribeConfigs, kmsg.OffsetForLeaderEpoch:
		default:
			t.Errorf("a request %s was sent", key.Name())
		}
	}
	if !seen[fetch] {
		t.Error("nothing was read")
	}
}

// TestHighWatermarkLags: for a moment a leader shows less than it has shown
// before, as one that was just elected does. Nothing is missing.
func TestHighWatermarkLags(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, side := range []string{"source", "target"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			f := newFlow(t, 1)
			f.created("t", 1, nil)
			for i := range 4 {
				f.plain(f.pair.Source, "t", i*20, 20)
			}
			f.joined = 20
			f.copy(nil, "t")
			c := f.pair.Source
			if side == "target" {
				c = f.pair.Target
			}
			gate := make(chan struct{})
			first := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: fetch, Topic: "t", Gate: gate})
			more := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: fetch, Topic: "t", Delay: time.Millisecond, Count: -1})
			done := make(chan error, 1)
			go func() {
				err := first.Wait(f.ctx, 1)
				release, heldErr := c.HoldHighWatermark("t", 0, 0)
				close(gate)
				if err = errors.Join(err, heldErr); err == nil {
					err = more.Wait(f.ctx, 8)
					release()
				}
				done <- err
			}()
			report := f.verify(verify.ModeFull, func(c *verify.Config) { c.Patience = 20 * time.Second })
			f.must(<-done)
			expect(t, report, verify.Complete, "")
		})
	}
}
