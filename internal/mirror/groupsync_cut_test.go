package mirror_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/groups"
	"apograph/internal/kafkatest"
	"apograph/internal/mirror"
	"apograph/ledger"
	"apograph/replicate"
)

// tens appends records of these numbers to orders-0, in batches of ten.
func (w *groupWorld) tens(on *kafkatest.Cluster, from, to int) {
	w.t.Helper()
	for ; from < to; from += 10 {
		records := make([]*kgo.Record, 10)
		for i := range records {
			records[i] = &kgo.Record{Topic: "orders", Value: fmt.Appendf(nil, "%d", from+i), Timestamp: w.clock}
		}
		if err := on.Append(w.t.Context(), kafkatest.None, records...); err != nil {
			w.t.Fatal(err)
		}
	}
}

// order gives an order about orders-0.
func (w *groupWorld) order(o ledger.Order) {
	w.t.Helper()
	o.SourceTopic = "orders"
	if err := replicate.OrderOffline(w.book, o); err != nil {
		w.t.Fatal(err)
	}
}

// loseTail has a cluster lose what stands from an offset on in orders-0, while no
// copy runs.
func (w *groupWorld) loseTail(on *kafkatest.Cluster, offset int64) {
	w.t.Helper()
	w.stop()
	if err := on.LoseTail("orders", 0, offset); err != nil {
		w.t.Fatal(err)
	}
	w.begin()
}

// mustBeExact commits for a group at each offset of the source, and compares its
// checkpoint, and what it has on the target, with where the first record stands there
// that it has yet to read.
func (w *groupWorld) mustBeExact(name string) {
	w.t.Helper()
	bounds, err := w.pair.Source.ReadBounds(w.t.Context(), "orders", 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for offset := range bounds.HighWatermark + 1 {
		commitFor(w.t, w.pair.Source.Bootstrap, fmt.Sprint(name, offset), "orders", 0, offset, "")
	}
	w.round()
	source, sourceErr := w.pair.Source.ReadCommitted(w.t.Context(), "orders", 0)
	target, targetErr := w.pair.Target.ReadCommitted(w.t.Context(), "orders", 0)
	if sourceErr != nil || targetErr != nil {
		w.t.Fatal(sourceErr, targetErr)
	}
	got := make(map[string]int64)
	for _, c := range w.checkpoints() {
		got[c.Group] = c.Downstream
	}
	for offset := range bounds.HighWatermark + 1 {
		group, want := fmt.Sprint(name, offset), exactOffset(source, target, offset)
		if there, ok := got[group]; !ok || there != want || w.on(group, "orders", 0) != want {
			w.t.Errorf("source offset %d: checkpoint %d, %t; on the target %d; want %d", offset, there, ok, w.on(group, "orders", 0), want)
		}
	}
}

// cutSource has the source's log of orders-0 cut at an offset, and go on with records
// of other numbers, which a person accepts.
func (w *groupWorld) cutSource(at int64, from, to int) {
	w.t.Helper()
	w.loseTail(w.pair.Source, at)
	w.tens(w.pair.Source, from, to)
	w.copy()
	w.round()
	if r := w.row("g", "orders", 0); r.Action != groups.DoNothing || r.Reason != mirror.SourceChanged {
		w.t.Errorf("before it is accepted: %+v", r)
	}
	w.order(ledger.Order{AcceptTruncated: true})
	w.copy()
}

// TestGroupSyncOverSourceCuts: the source's log was cut, which a person accepted. A
// group below the cut goes on where its records are on the target, from before that;
// one above it behind what the source has no more. More cuts change nothing of that,
// above the one before or below, nor does it if the target has lost its end as well.
func TestGroupSyncOverSourceCuts(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{DataDir: t.TempDir()})
	w.tens(w.pair.Source, 0, 100)
	w.commit(w.pair.Source, "g", "orders", 0, 50)
	w.copy()
	w.round()
	w.mustRow("g", groups.DoCommit, "", 50)
	w.cutSource(90, 1000, 1020)
	w.commit(w.pair.Source, "g", "orders", 0, 55)
	n := len(w.checkpoints())
	w.round()
	w.mustRow("g", groups.DoCommit, "", 55)
	w.mustWrite(&n, "g orders-0 55->55 by hand")
	w.mustBeExact("one cut ")
	w.cutSource(100, 2000, 2020)
	w.mustBeExact("above it ")
	w.cutSource(70, 3000, 3020)
	w.mustBeExact("below both ")
	w.loseTail(w.pair.Target, 120)
	w.cutSource(80, 4000, 4020)
	w.mustBeExact("on both sides ")
	w.mustRow("g", groups.None, "", 55)
}

// TestGroupSyncUnseenCut: the source's log was cut while no copier ran, and has grown
// beyond the books again. What a group has committed above the cut is another record's;
// one at the cut, or below it, has read what the books know.
func TestGroupSyncUnseenCut(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{DataDir: t.TempDir()})
	w.tens(w.pair.Source, 0, 100)
	w.copy()
	w.loseTail(w.pair.Source, 90)
	w.tens(w.pair.Source, 1000, 1020)
	for group, at := range map[string]int64{"below": 85, "at": 90, "above": 95, "behind": 105} {
		w.commit(w.pair.Source, group, "orders", 0, at)
	}
	w.round()
	w.mustRow("below", groups.DoCommit, "", 85)
	w.mustRow("at", groups.DoCommit, "", 90)
	w.mustRow("above", groups.DoNothing, mirror.SourceChanged, -1)
	w.mustRow("behind", groups.DoNothing, mirror.SourceChanged, -1)
	n := 0
	w.mustWrite(&n, "at orders-0 90->90 by hand", "below orders-0 85->85 by hand")
	silent := w.pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetForLeaderEpoch, Err: kerr.KafkaStorageError, Count: -1})
	w.commit(w.pair.Source, "below", "orders", 0, 86)
	if errs := w.try(); len(errs) != 2 {
		t.Errorf("%v", errs)
	}
	if r := w.row("below", "orders", 0); r.Reason != mirror.Failed || r.Action != groups.DoNothing || w.on("below", "orders", 0) != 85 {
		t.Errorf("%+v", r)
	}
	w.mustWrite(&n)
	silent.Remove()
	w.round()
	w.mustRow("below", groups.DoCommit, "", 86)
}

// TestGroupSyncLogEndsBelowTheBooks: the source's log, which has no leader epochs, ends
// below the books: nothing is known of any offset, until it has grown again.
func TestGroupSyncLogEndsBelowTheBooks(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{DataDir: t.TempDir()})
	w.tens(w.pair.Source, 0, 100)
	if err := w.pair.Source.ForgetEpochs("orders", 0); err != nil {
		t.Fatal(err)
	}
	w.commit(w.pair.Source, "g", "orders", 0, 50)
	w.copy()
	w.loseTail(w.pair.Source, 90)
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.SourceChanged, -1)
	n := 0
	w.mustWrite(&n)
	w.tens(w.pair.Source, 90, 100)
	w.round()
	w.mustRow("g", groups.DoCommit, "", 50)
	w.mustWrite(&n, "g orders-0 50->50 by hand")
}

// TestGroupSyncOfTheLogBefore: what groups committed before the source's log was cut
// are no places in the log that there is since: they stay where they are on the target,
// in front of what the source has lost and of what it has got. That is known by the
// leader epoch of the commit, or as the group has not moved since the flow committed for
// it; where neither is, nothing is committed, and no checkpoint says anything.
func TestGroupSyncOfTheLogBefore(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{DataDir: t.TempDir()})
	commit := func(group string, offset int64, epoch int32) {
		t.Helper()
		commitOf(t, w.pair.Source.Bootstrap, group, kadm.Offset{Topic: "orders", At: offset, LeaderEpoch: epoch})
	}
	w.tens(w.pair.Source, 0, 100)
	commit("g", 50, 0)
	commit("end", 100, 0)
	commit("tail", 85, 0)
	commit("mute", 85, -1)
	commit("moves", 65, -1)
	w.copy()
	w.round()
	w.cutSource(70, 1000, 1050)
	commit("late", 85, -1)
	commit("late of before", 85, 0)
	commit("stale", 105, 0)
	commit("now", 85, 7)
	commit("now too", 110, -1)
	n := len(w.checkpoints())
	w.clock = w.clock.Add(time.Minute)
	for range 2 {
		w.round()
		for group, at := range map[string]int64{"g": 50, "end": 100, "tail": 85, "mute": 85, "moves": 65, "late of before": 85, "now": 115, "now too": 140} {
			if r := w.row(group, "orders", 0); r.Action == groups.DoNothing || w.on(group, "orders", 0) != at {
				t.Errorf("%s: %+v, on the target %d, want %d", group, r, w.on(group, "orders", 0), at)
			}
		}
		w.mustRow("late", groups.DoNothing, mirror.LogUnknown, -1)
		w.mustRow("stale", groups.DoNothing, mirror.LogUnknown, -1)
	}
	w.mustWrite(&n, "late of before orders-0 85->85 ", "now orders-0 85->115 ", "now too orders-0 110->140 ")
	// Groups go on in the log that there is.
	commit("moves", 68, -1)
	w.round()
	commit("moves", 85, -1)
	commit("end", 75, 7)
	w.round()
	w.mustRow("moves", groups.DoCommit, "", 115)
	w.mustRow("end", groups.DoCommit, "", 105)
	w.mustWrite(&n, "moves orders-0 68->68 ", "end orders-0 75->105 ", "moves orders-0 85->115 ")
}

// TestGroupSyncBetweenBooks: where the books of two generations do not join, nobody
// knows what stands below the newer one: nothing is committed, and no checkpoint says
// anything.
func TestGroupSyncBetweenBooks(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.tens(w.pair.Source, 0, 100)
	w.commit(w.pair.Source, "g", "orders", 0, 50)
	w.copy()
	for _, pair := range w.book.Pairs() {
		if pair.Partition != 0 {
			continue
		}
		next := pair
		next.ID, next.Generation, next.ScopeStart, next.TargetBase, next.Producer.ID = 0, 0, 110, 100, 99
		if _, err := w.book.Reopen(pair.ID, ledger.Closing{}, next); err != nil {
			t.Fatal(err)
		}
	}
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.NoBook, -1)
	n := 0
	w.mustWrite(&n)
}

// TestGroupSyncAfterRecopy: the target has lost records that a group was taken to
// have read, and got them again, one place or more further down. While the partition
// stands, the group is said to be in a log that has lost its end; then it goes back
// with its records, unless its owner had moved it. With members it waits.
func TestGroupSyncAfterRecopy(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{DataDir: t.TempDir()})
	w.tens(w.pair.Source, 0, 80)
	w.copy()
	w.tens(w.pair.Target, 5000, 5010) // by somebody else, which a person tolerates
	w.order(ledger.Order{TolerateForeign: true})
	w.tens(w.pair.Source, 80, 100)
	w.copy()
	for group, at := range map[string]int64{"g": 100, "below": 40, "theirs": 60, "rewound": 100} {
		w.commit(w.pair.Source, group, "orders", 0, at)
	}
	w.commit(w.pair.Target, "theirs", "orders", 0, 105)
	w.round()
	w.mustRow("g", groups.DoCommit, "", 110)
	w.mustRow("below", groups.DoCommit, "", 40)
	w.mustRow("theirs", groups.DoNothing, mirror.Ahead, 105)
	w.commit(w.pair.Source, "rewound", "orders", 0, 50)
	w.loseTail(w.pair.Target, 80)
	for range 2 {
		w.round()
		w.mustRow("g", groups.DoNothing, mirror.TargetChanged, 110)
		w.mustRow("below", groups.None, "", 40)
		w.mustRow("theirs", groups.DoNothing, mirror.TargetChanged, 105)
		w.mustRow("rewound", groups.DoNothing, mirror.TargetChanged, 110)
		w.copy() // which stops
	}
	w.order(ledger.Order{TolerateForeign: true, Recopy: true})
	w.copy()
	member := w.pair.Target.Consume(t.Context(), t, "g")
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.Active, 110)
	member.Close()
	w.commit(w.pair.Target, "g", "orders", 0, 110)
	w.round()
	w.mustRow("g", groups.DoCommit, "", 100)
	w.tens(w.pair.Source, 100, 130)
	w.copy()
	w.round()
	w.mustRow("g", groups.None, "", 100)
	w.mustRow("below", groups.None, "", 40)
	w.mustRow("theirs", groups.DoNothing, mirror.Ahead, 105)
	w.mustRow("rewound", groups.DoNothing, mirror.Ahead, 110)
}

// TestGroupSyncGoesBackTwice: a way back that a process died at is gone again.
func TestGroupSyncGoesBackTwice(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 9)
	w.copy()
	w.commit(w.pair.Target, "g", "orders", 0, 15)
	died := ledger.GroupCommit{Topic: "orders", Offset: 9, Source: 9, Undecided: true, Before: 15}
	if err := w.book.KeepGroupCommits(map[string][]ledger.GroupCommit{"g": {died}}); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.mustRow("g", groups.DoCommit, "", 9)
}
