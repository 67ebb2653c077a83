package replicate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// An unknownOutcome is a way in which a produce can end so that the copier does
// not know, or is told wrongly, what became of it.
type unknownOutcome struct {
	name    string
	fault   kafkatest.Fault
	disturb func(*kafkatest.Pair) error // once the fault has struck
	stop    replicate.StopReason        // what the run ends with; "": it is complete
	doubles bool                        // the target has forgotten the producer: of several in flight, one may land twice
}

func unknownOutcomes() []unknownOutcome {
	before := func(err *kerr.Error, n int) kafkatest.Fault {
		return kafkatest.Fault{Kind: kafkatest.ErrorBefore, Err: err, Count: n}
	}
	after := func(err *kerr.Error, n int) kafkatest.Fault {
		return kafkatest.Fault{Kind: kafkatest.ErrorAfter, Err: err, Count: n}
	}
	forget := func(p *kafkatest.Pair) error { return p.Target.ForgetProducers("t", 0) }
	move := func(p *kafkatest.Pair) error {
		_, err := p.Target.MoveLeader("t", 0)
		return err
	}
	return []unknownOutcome{
		{name: "connection cut before the append", fault: kafkatest.Fault{Kind: kafkatest.CutBefore}},
		{name: "connection cut after the append", fault: kafkatest.Fault{Kind: kafkatest.CutAfter}},
		{name: "timeout after the append", fault: after(kerr.RequestTimedOut, 2)},
		{name: "not leader, refused", fault: before(kerr.NotLeaderForPartition, 2)},
		{name: "not leader, after the append", fault: after(kerr.NotLeaderForPartition, 2)},
		{name: "leader moved", fault: kafkatest.Fault{Kind: kafkatest.DelayBefore, Delay: 20 * time.Millisecond}, disturb: move},
		{name: "leader moved after the append", fault: kafkatest.Fault{Kind: kafkatest.DelayAfter, Delay: 20 * time.Millisecond}, disturb: move},
		{name: "not enough replicas", fault: before(kerr.NotEnoughReplicas, 3)},
		{name: "not enough replicas after the append", fault: after(kerr.NotEnoughReplicasAfterAppend, 2)},
		{name: "throttled after the append", fault: kafkatest.Fault{Kind: kafkatest.DelayAfter, Delay: 200 * time.Millisecond, Count: 2}},
		{name: "out of order, and not there", fault: before(kerr.OutOfOrderSequenceNumber, 1)},
		{name: "out of order again and again", fault: before(kerr.OutOfOrderSequenceNumber, 9)},
		{name: "out of order, and there", fault: after(kerr.OutOfOrderSequenceNumber, 2)},
		{name: "unknown producer", fault: before(kerr.UnknownProducerID, 1)},
		{name: "a duplicate by its code", fault: after(kerr.DuplicateSequenceNumber, 1)},
		{name: "a duplicate that is not there", fault: before(kerr.DuplicateSequenceNumber, 9)},
		{name: "fenced", fault: before(kerr.InvalidProducerEpoch, 1), stop: replicate.StopFenced},
		{name: "fenced after the append", fault: after(kerr.InvalidProducerEpoch, 1), stop: replicate.StopFenced},
		{name: "storage error", fault: before(kerr.KafkaStorageError, 2)},
		{name: "storage error after the append", fault: after(kerr.KafkaStorageError, 2)},
		{name: "broker restarted without the producer's state, before the append", fault: kafkatest.Fault{Kind: kafkatest.CutBefore}, disturb: forget, doubles: true},
		{name: "broker restarted without the producer's state, after the append", fault: kafkatest.Fault{Kind: kafkatest.CutAfter}, disturb: forget, doubles: true},
	}
}

// TestUnknownOutcomes goes through every outcome of a produce that proves nothing,
// with one batch in flight and with five, for a copier that lives and for one that
// is killed: nothing is lost, and what is there twice is named.
func TestUnknownOutcomes(t *testing.T) {
	for _, o := range unknownOutcomes() {
		for _, window := range []int{1, 5} {
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, window %d, killed %v", o.name, window, killed), func(t *testing.T) {
					t.Parallel()
					o.play(t, window, killed)
				})
			}
		}
	}
}

const outcomeRecords = 14 // each a batch of its own

func (o unknownOutcome) play(t *testing.T, window int, killed bool) {
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
	}
	appendEachBig(t, pair, numberedFor(window, 0, outcomeRecords)...)
	holdUntilTwo(t, pair.Target, window)
	config := configFor(t, pair, "t")
	config.Window = window
	fault := o.fault
	fault.Key, fault.Topic, fault.Skip = kmsg.Produce, "t", 3
	handle := pair.Target.MustFault(t, fault)
	struck := make(chan error, 1)
	go func() {
		err := handle.Wait(t.Context(), 1)
		if err == nil && o.disturb != nil {
			err = o.disturb(pair)
		}
		struck <- err
	}()
	if killed {
		config = o.kill(t, pair, config, struck)
	} else {
		s := mustRun(t, config)
		if err := <-struck; err != nil {
			t.Fatal(err)
		}
		// A later batch of the same flight may prove that the one in question is there.
		proven := window > 1 && o.fault.Kind == kafkatest.ErrorAfter && s.Complete
		switch {
		case proven:
		case o.stop != "":
			wantStop(t, s, o.stop)
		case !s.Complete:
			t.Errorf("summary %+v", s)
		}
	}
	if o.stop == replicate.StopFenced {
		order(t, config, ledger.Order{SourceTopic: "t"})
	}
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("in the end: %+v", s)
	}
	if window == 1 || !o.doubles {
		proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: outcomeRecords})
		kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("t"))
		return
	}
	twice := int64(len(mustRead(t, pair.Target.Bootstrap, "t", 0)) - outcomeRecords) // whatever is there twice is named
	want := map[ledger.Tile]int64{ledger.Copied: outcomeRecords}
	if twice > 0 {
		want[ledger.Duplicate] = twice
	}
	proveNotes(t, pair, config.LedgerPath, want)
	proveNothingMissing(t, pair)
}

// kill lets a copier die once the fault has struck: what it has committed by then
// is what the next one knows; what it had in flight arrives all the same.
func (o unknownOutcome) kill(t *testing.T, pair *kafkatest.Pair, config replicate.Config, struck <-chan error) replicate.Config {
	t.Helper()
	config.Once = false
	l := live(t, pair, config)
	if err := <-struck; err != nil {
		t.Fatal(err)
	}
	left := config.LedgerPath + ".left"
	if _, err := l.Ledger().Snapshot(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	l.end()
	config.LedgerPath, config.Once = left, true
	return config
}

// TestBatchInFrontOfOlderOnesWhileRunning: the target, which had forgotten the
// producer, refuses the first of two batches and takes the second. The copier
// lives.
func TestBatchInFrontOfOlderOnesWhileRunning(t *testing.T) {
	for _, window := range []int{1, 5} {
		pair, config := copied(t, 10)
		p := producers(t, config)[0]
		records := numberedFor(window, 10, 15)
		for i := range 3 {
			mustAppend(t, pair.Source.Bootstrap, records[5*i:5*i+5]...)
		}
		if err := pair.Target.ForgetProducers("t", 0); err != nil {
			t.Fatal(err)
		}
		held := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "t", Err: kerr.NotEnoughReplicas, Count: -1, When: func(r kmsg.Request) bool {
			const baseSequence = 53 // its place in a batch
			return r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records[baseSequence+3] != 15
		}})
		second := ours(t, p, 15, records[5:10])
		appended := make(chan error, 1)
		go func() {
			defer held.Remove()
			err := held.Wait(t.Context(), 1)
			if err == nil {
				_, err = pair.Target.AppendBatch(t.Context(), "t", 0, second)
			}
			appended <- err
		}()
		config.Window = window
		if s := mustRun(t, config); !s.Complete {
			t.Errorf("window %d: %+v", window, s)
		}
		if err := <-appended; err != nil {
			t.Error(err)
		}
		proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 25, ledger.Duplicate: 5})
		proveNothingMissing(t, pair)
	}
}

// TestTwoCopiersOnOneTarget: two flows with ledgers of their own write to the same
// topic. Each finds the other, books all that is there, and stops.
func TestTwoCopiersOnOneTarget(t *testing.T) {
	for _, window := range []int{1, 5} {
		t.Run(fmt.Sprint("window ", window), func(t *testing.T) {
			pair := stored(t)
			for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
				mustTopic(t, c, "t", nil)
			}
			appendEachBig(t, pair, numberedFor(window, 0, 12)...)
			gate := make(chan struct{})
			held := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Gate: gate, Count: -1})
			var flows []*living
			for range 2 {
				config := livingConfig(t, pair, "t")
				config.Window = window
				flows = append(flows, live(t, pair, config))
				if err := held.Wait(t.Context(), len(flows)); err != nil { // it has begun on an empty target
					t.Fatal(err)
				}
			}
			close(gate)
			for _, l := range flows {
				l.stopped("t", 0, replicate.StopForeignWriter)
			}
			for _, l := range flows {
				l.catchUp(pair)
			}
			for _, l := range flows {
				l.end()
				proveNotes(t, pair, l.config.LedgerPath, nil)
			}
		})
	}
}

// catchUp resumes a partition that has stopped before the target's end until the
// books have it all.
func (l *living) catchUp(pair *kafkatest.Pair) {
	l.t.Helper()
	for {
		bounds, err := pair.Target.ReadBounds(l.t.Context(), "t", 0)
		if err != nil {
			l.t.Fatal(err)
		}
		s := l.stopped("t", 0, replicate.StopForeignWriter)
		if err := l.Ledger().Commit(); err != nil {
			l.t.Fatal(err)
		}
		if s = l.stopped("t", 0, replicate.StopForeignWriter); s.TargetEnd == bounds.HighWatermark {
			return
		}
		mustOrder(l.t, l.Order, ledger.Order{SourceTopic: "t"})
		l.until("t", 0, "going on", func(now replicate.PartitionStatus) bool { return now.TargetEnd > s.TargetEnd })
	}
}
