package replicate_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// TestEachFaultAtEachStep fails each request that a copy needs in each way, a
// share of the time, before and after it took effect.
func TestEachFaultAtEachStep(t *testing.T) {
	type step struct {
		name     string
		onSource bool
		key      kmsg.Key
		errs     []*kerr.Error // before the effect
		after    []*kerr.Error // after it
	}
	leadership := []*kerr.Error{kerr.NotLeaderForPartition, kerr.UnknownLeaderEpoch, kerr.FencedLeaderEpoch}
	steps := []step{
		{"produce", false, kmsg.Produce,
			append(leadership, kerr.NotEnoughReplicas, kerr.UnknownTopicOrPartition, kerr.KafkaStorageError, kerr.RequestTimedOut),
			[]*kerr.Error{kerr.NotLeaderForPartition, kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.KafkaStorageError}},
		{"target log end", false, kmsg.ListOffsets, leadership, nil},
		{"source offsets", true, kmsg.ListOffsets, leadership, nil},
		{"source fetch", true, kmsg.Fetch, append(leadership, kerr.KafkaStorageError, kerr.UnknownServerError), nil},
		{"producer id", false, kmsg.InitProducerID, []*kerr.Error{kerr.CoordinatorLoadInProgress}, nil},
		{"metadata", false, kmsg.Metadata, nil, nil},
		{"source metadata", true, kmsg.Metadata, nil, nil},
	}
	for _, s := range steps {
		faults := []kafkatest.Fault{{Kind: kafkatest.CutBefore}, {Kind: kafkatest.CutAfter}}
		for _, err := range s.errs {
			faults = append(faults, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Err: err})
		}
		for _, err := range s.after {
			faults = append(faults, kafkatest.Fault{Kind: kafkatest.ErrorAfter, Err: err})
		}
		for i, fault := range faults {
			name := s.name + " " + fault.Kind.String()
			if fault.Err != nil {
				name += " " + fault.Err.Message
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				fault.Key, fault.Share, fault.Count, fault.Seed = s.key, 0.3, 20, uint64(i)
				copyUnderFault(t, fault, s.onSource)
			})
		}
	}
}

func copyUnderFault(t *testing.T, fault kafkatest.Fault, onSource bool) {
	pair := kafkatest.NewPair(t, kafkatest.Options{SourceBrokers: 2})
	load := kafkatest.Load{Seed: fault.Seed, Topics: []string{"t"}, Partitions: 2, Records: 800, MaxValueBytes: 20_000}
	if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	cluster := pair.Target
	if onSource {
		cluster = pair.Source
	}
	if fault.Err != nil && fault.Key != kmsg.InitProducerID {
		fault.Topic = "t"
		if !onSource {
			if err := pair.Target.CreateTopic(t.Context(), "t", 2, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	handle := cluster.MustFault(t, fault)
	config := configFor(t, pair, "t")
	summary, err := replicate.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if !summary.Complete {
		t.Errorf("not complete: %+v", summary)
	}
	t.Logf("%d faults", handle.Hits())
	handle.Remove()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, "t")
}

// TestLeaderMovesDuringTheCopy moves leaders of both sides all the time.
func TestLeaderMovesDuringTheCopy(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{SourceBrokers: 3})
	load := kafkatest.Load{Seed: 3, Topics: []string{"t"}, Partitions: 3, Records: 6000, MaxValueBytes: 20_000}
	if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	if err := pair.Target.CreateTopic(t.Context(), "t", 3, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		moveLeaders(ctx, t, pair)
	}()
	config := configFor(t, pair, "t")
	summary, err := replicate.Run(t.Context(), config)
	cancel()
	<-done
	if err != nil || !summary.Complete {
		t.Fatalf("not complete: %v %+v", err, summary)
	}
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, "t")
}

// moveLeaders moves a leader whenever ten more produces have arrived.
func moveLeaders(ctx context.Context, t *testing.T, pair *kafkatest.Pair) {
	seen := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Count: -1, Delay: 1})
	for n := 10; seen.Wait(ctx, n) == nil; n += 10 {
		for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
			if _, err := c.MoveLeader("t", int32(n/10%3)); err != nil {
				t.Error(err)
			}
		}
	}
}
