package mirror

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/internal/mm2"
	"apograph/ledger"
)

const syncsTopic = "mm2-offset-syncs.B.internal"

func withSyncs() Settings { return Settings{OffsetSyncs: OffsetSyncs{Enabled: true}} }

// words are how [syncsOf] writes syncs of orders-0.
func words(syncs ...copied) (all []string) {
	for _, c := range syncs {
		all = append(all, fmt.Sprintf("orders-0 %d %d", c.upstream, c.downstream))
	}
	return all
}

func wantSyncs(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the topic has\n%v, want\n%v", got, want)
	}
}

// mustRise fails the test where the source offset falls.
func mustRise(t *testing.T, syncs []string) {
	t.Helper()
	last := int64(-1)
	for _, s := range syncs {
		var name string
		var u, d int64
		if _, err := fmt.Sscan(s, &name, &u, &d); err != nil || u < last {
			t.Fatalf("%s behind %d (%v), in %v", s, last, err, syncs)
		}
		last = u
	}
}

// TestOffsetSyncsAreWhereMirrorMakerHasThem: names, clusters and the shape of the
// topic.
func TestOffsetSyncsAreWhereMirrorMakerHasThem(t *testing.T) {
	tests := []struct {
		name     string
		onTarget bool
		policy   map[string]string
		topic    string
	}{
		{"on the source", false, nil, syncsTopic},
		{"on the target", true, nil, "mm2-offset-syncs.A.internal"},
		{"a separator", false, map[string]string{mm2.PolicySeparatorKey: "_"}, "mm2-offset-syncs_B_internal"},
		{"a separator, and dots in internal names", true, map[string]string{mm2.PolicySeparatorKey: "_", mm2.PolicyInternalSeparatorKey: "false"}, "mm2-offset-syncs.A.internal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, withSyncs())
			w.config.Settings.OffsetSyncs.OnTarget = tt.onTarget
			var err error
			if w.config.Topics.Policy, err = mm2.ParsePolicy(tt.policy); err != nil {
				t.Fatal(err)
			}
			m := w.withBook()
			m.copy(10)
			m.gap(ledger.CommitMarker, 1)
			m.commit()
			w.mustOnce()
			on, off := w.Source, w.Target
			if tt.onTarget {
				on, off = off, on
			}
			wantSyncs(t, syncsOf(t, on.Bootstrap, tt.topic), words(copied{0, 0}, copied{9, 9}))
			info := on.Fake().TopicInfo(tt.topic)
			if policy := info.Configs["cleanup.policy"]; policy == nil || *policy != "compact" || len(on.Fake().PartitionInfos(tt.topic)) != 1 {
				t.Errorf("made as %+v", info)
			}
			if off.Fake().TopicInfo(tt.topic) != nil {
				t.Error("the topic is on the other cluster as well")
			}
		})
	}
}

// TestOffsetSyncsGoOn: each process goes on behind the one before, and writes
// nothing twice.
func TestOffsetSyncsGoOn(t *testing.T) {
	w := newWorld(t, withSyncs())
	m := w.withBook()
	m.copy(100)
	m.commit()
	want := words(copied{0, 0}, copied{17, 17}, copied{44, 44}, copied{62, 62}, copied{74, 74}, copied{99, 99})
	for range 2 {
		w.mustOnce()
		wantSyncs(t, syncsOf(t, w.Source.Bootstrap, syncsTopic), want)
	}
	m.foreign(3)
	m.copy(1)
	m.copy(60)
	m.commit()
	w.mustOnce()
	want = append(want, words(copied{135, 138}, copied{160, 163})...)
	wantSyncs(t, syncsOf(t, w.Source.Bootstrap, syncsTopic), want)
}

// TestOffsetSyncsAfterMirrorMaker: what it wrote last is gone on from if the books
// have it, and made void if they do not.
func TestOffsetSyncsAfterMirrorMaker(t *testing.T) {
	tests := []struct {
		name string
		last copied
		want []copied
	}{
		{"as in the books", copied{40, 40}, []copied{{74, 74}, {99, 99}}},
		{"at another offset", copied{40, 41}, []copied{{0, 0}, {17, 17}, {44, 44}, {62, 62}, {74, 74}, {99, 99}}},
		{"beyond the books", copied{4000, 4000}, []copied{{0, 0}, {17, 17}, {44, 44}, {62, 62}, {74, 74}, {99, 99}}},
		{"the newest", copied{99, 99}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, withSyncs())
			m := w.withBook()
			m.copy(100)
			m.commit()
			if err := w.Source.CreateTopic(t.Context(), syncsTopic, 1, nil); err != nil {
				t.Fatal(err)
			}
			put(t, w.Source.Bootstrap, syncsTopic, mm2.OffsetSync{Topic: "orders", Upstream: 3, Downstream: 3})
			put(t, w.Source.Bootstrap, syncsTopic, mm2.OffsetSync{Topic: "orders", Partition: 1, Upstream: 7, Downstream: 7})
			put(t, w.Source.Bootstrap, syncsTopic, mm2.OffsetSync{Topic: "orders", Upstream: tt.last.upstream, Downstream: tt.last.downstream})
			w.mustOnce()
			got := syncsOf(t, w.Source.Bootstrap, syncsTopic)[3:]
			wantSyncs(t, got, words(tt.want...))
		})
	}
}

// TestOffsetSyncsThroughFaults: whatever becomes of a request, what the topic has
// in the end rises, and its last one is the newest record.
func TestOffsetSyncsThroughFaults(t *testing.T) {
	faults := []kafkatest.Fault{
		{Kind: kafkatest.CutBefore, Key: kmsg.Produce},
		{Kind: kafkatest.CutAfter, Key: kmsg.Produce},
		{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: syncsTopic, Err: kerr.NotLeaderForPartition},
		{Kind: kafkatest.ErrorAfter, Key: kmsg.Produce, Topic: syncsTopic, Err: kerr.RequestTimedOut},
		{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: syncsTopic, Err: kerr.TopicAuthorizationFailed},
		{Kind: kafkatest.CutBefore, Key: kmsg.CreateTopics, Count: 3},
		{Kind: kafkatest.CutAfter, Key: kmsg.CreateTopics},
		{Kind: kafkatest.CutBefore, Key: kmsg.Fetch},
		{Kind: kafkatest.ErrorBefore, Key: kmsg.ListOffsets, Topic: syncsTopic, Err: kerr.NotLeaderForPartition},
	}
	for _, fault := range faults {
		t.Run(fmt.Sprint(fault.Kind, fault.Key, fault.Err), func(t *testing.T) {
			w := newWorld(t, withSyncs())
			m := w.withBook()
			m.copy(10)
			m.commit()
			w.mustOnce()
			m.copy(100)
			m.commit()
			w.Source.MustFault(t, fault)
			under := w.start()
			for tries := 0; ; tries++ {
				failed := under.Once(t.Context())
				if len(failed) == 0 {
					break
				}
				if failed[0].Duty != "offset_syncs" || tries == 3 {
					t.Fatal(failed[0])
				}
			}
			got := syncsOf(t, w.Source.Bootstrap, syncsTopic)
			mustRise(t, got)
			if got[len(got)-1] != "orders-0 109 109" || got[0] != "orders-0 0 0" {
				t.Errorf("the topic has %v", got)
			}
		})
	}
}

// TestOffsetSyncsThatMayNotBeRead: nothing is written below what may be there.
func TestOffsetSyncsThatMayNotBeRead(t *testing.T) {
	w := newWorld(t, withSyncs())
	m := w.withBook()
	m.copy(100)
	m.commit()
	w.mustOnce()
	before := len(syncsOf(t, w.Source.Bootstrap, syncsTopic))
	fault := w.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.ListOffsets, Topic: syncsTopic, Err: kerr.TopicAuthorizationFailed, Count: -1})
	under := w.start()
	for range 2 {
		if failed := under.Once(t.Context()); len(failed) > 0 {
			t.Fatal(failed[0])
		}
		m.copy(20)
		m.commit()
	}
	if w.log.times("cannot be read here") != 1 {
		t.Errorf("said %d times that it cannot be read", w.log.times("cannot be read here"))
	}
	fault.Remove()
	wantSyncs(t, syncsOf(t, w.Source.Bootstrap, syncsTopic)[before:], words(copied{99, 99}, copied{119, 119}))
}

// TestTopicThatIsThere: it stays as it is, and what is wrong with it is said once.
func TestTopicThatIsThere(t *testing.T) {
	for policy, times := range map[string]int{"delete": 1, "compact": 0, "compact,delete": 1} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t, withSyncs())
			w.withBook().commit()
			if err := w.Source.CreateTopic(t.Context(), syncsTopic, 3, map[string]string{"cleanup.policy": policy}); err != nil {
				t.Fatal(err)
			}
			m := w.start()
			for range 3 {
				if failed := m.Once(t.Context()); len(failed) > 0 {
					t.Fatal(failed[0])
				}
				m.close[0]() // as after a failure: the topic is looked for again
			}
			if got := w.log.times("not compacted alone"); got != times {
				t.Errorf("warned %d times, want %d", got, times)
			}
		})
	}
}

// TestTopicThatIsDeleted is made again, with all that helps.
func TestTopicThatIsDeleted(t *testing.T) {
	w := newWorld(t, withSyncs())
	m := w.withBook()
	m.copy(100)
	m.commit()
	under := w.start()
	if failed := under.Once(t.Context()); len(failed) > 0 {
		t.Fatal(failed[0])
	}
	if err := w.Source.Fake().DeleteTopic(syncsTopic); err != nil {
		t.Fatal(err)
	}
	m.copy(1)
	m.commit()
	if failed := under.Once(t.Context()); len(failed) == 0 {
		t.Error("written to a topic that is gone")
	}
	if failed := under.Once(t.Context()); len(failed) > 0 {
		t.Fatal(failed[0])
	}
	got := syncsOf(t, w.Source.Bootstrap, syncsTopic)
	if got[0] != "orders-0 0 0" || got[len(got)-1] != "orders-0 100 100" || len(got) < 5 {
		t.Errorf("the topic has %v", got)
	}
}

// TestTopicThatCannotBeMade: not to be allowed to is no failure, as MirrorMaker 2
// has it; others are.
func TestTopicThatCannotBeMade(t *testing.T) {
	tests := []struct {
		err  *kerr.Error
		fine bool
	}{{kerr.TopicAuthorizationFailed, true}, {kerr.ClusterAuthorizationFailed, true}, {kerr.InvalidReplicationFactor, false}, {kerr.PolicyViolation, false}}
	for _, tt := range tests {
		t.Run(tt.err.Message, func(t *testing.T) {
			w := newWorld(t, withSyncs())
			m := w.withBook()
			m.copy(5)
			m.commit()
			if err := w.Source.CreateTopic(t.Context(), syncsTopic, 1, nil); err != nil {
				t.Fatal(err)
			}
			w.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.CreateTopics, Err: tt.err, Count: -1})
			failed := w.once()
			if tt.fine != (len(failed) == 0) {
				t.Fatalf("failed %v", failed)
			}
			if !tt.fine && !strings.Contains(failed[0].Error(), tt.err.Message) {
				t.Errorf("failed because of %v", failed[0])
			}
			if got := w.log.times("cannot be made here"); tt.fine != (got == 1) {
				t.Errorf("said %d times", got)
			}
		})
	}
}

// TestOffsetSyncsTakeTurns: no round writes more than the bound, and in a few all
// partitions have had their turn, the newest record of each at the end.
func TestOffsetSyncsTakeTurns(t *testing.T) {
	w := newWorld(t, withSyncs())
	w.config.Ledger = newLedger(t)
	const partitions = 2500
	pairs := make([]ledger.Pair, partitions)
	for i := range pairs {
		pairs[i] = pairOf("orders", 0, 0, 1)
		pairs[i].Partition = int32(i)
	}
	ids, err := w.config.Ledger.OpenPairs(pairs)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		(&model{t: t, ledger: w.config.Ledger, id: id}).copy(50)
	}
	if err := w.config.Ledger.Commit(); err != nil {
		t.Fatal(err)
	}
	m := w.start()
	rounds, written := 0, 0
	for newest := map[string]bool{}; len(newest) < partitions; rounds++ {
		if err := m.duties[0].do(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := syncsOf(t, w.Source.Bootstrap, syncsTopic)
		if n := len(all) - written; n == 0 || n > syncsAtOnce {
			t.Fatalf("round %d wrote %d", rounds, n)
		}
		written = len(all)
		for _, s := range all {
			if strings.HasSuffix(s, " 49 49") {
				newest[s] = true
			}
		}
	}
	if rounds > 3*partitions/syncsAtOnce+1 {
		t.Errorf("%d rounds", rounds)
	}
}
