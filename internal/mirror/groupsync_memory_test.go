package mirror_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/groups"
	"apograph/internal/kafkatest"
	"apograph/internal/mirror"
	"apograph/ledger"
)

// What is remembered of the commits for a group, and whom it is told from.

// stallCommit has the next commit on the target get no answer, and its second try
// refused as of a group that a member has joined.
func (w *groupWorld) stallCommit() (refused *kafkatest.FaultHandle) {
	w.t.Helper()
	w.pair.Target.MustFault(w.t, kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.OffsetCommit, Count: 1})
	return w.pair.Target.MustFault(w.t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetCommit, Err: kerr.UnknownMemberID, Count: 1})
}

// TestGroupSyncStalled: the first try of a commit gets no answer, and the second is
// refused as a member has joined. The first lands later, which is no takeover.
func TestGroupSyncStalled(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 5)
	w.copy()
	w.round()
	w.commit(w.pair.Source, "g", "orders", 0, 9)
	joined := w.stallCommit()
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.Active, 5)
	if joined.Hits() != 1 {
		t.Errorf("%d commits were refused", joined.Hits())
	}
	w.commit(w.pair.Target, "g", "orders", 0, 9)
	w.commit(w.pair.Source, "g", "orders", 0, 11)
	w.round()
	w.mustRow("g", groups.DoCommit, "", 11)
}

// TestGroupSyncUnknown: a commit took effect, and nobody could learn of it. The
// next round knows that it may have been made.
func TestGroupSyncUnknown(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 5)
	w.copy()
	w.round()
	w.commit(w.pair.Source, "g", "orders", 0, 9)
	w.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutAfter, Key: kmsg.OffsetCommit})
	// The group is looked at to decide, and before the commit; not any more then.
	blind := w.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetFetch, Err: kerr.GroupAuthorizationFailed, Skip: 2, Count: -1})
	if errs := w.try(); len(errs) != 1 || w.on("g", "orders", 0) != 9 {
		t.Errorf("%v, at %d", errs, w.on("g", "orders", 0))
	}
	if r := w.row("g", "orders", 0); r.Action != groups.DoNothing || r.Reason != mirror.NotAuthorized || r.Committed != -1 {
		t.Errorf("%+v", r)
	}
	blind.Remove()
	w.commit(w.pair.Source, "g", "orders", 0, 11)
	w.round()
	w.mustRow("g", groups.DoCommit, "", 11)
}

// TestGroupSyncCrash: what was about to be committed when the process died may
// have been, or not. Neither is a takeover; a third place is.
func TestGroupSyncCrash(t *testing.T) {
	for at, want := range map[int64]mirror.Reason{5: "", 9: "", 7: mirror.TakenOver} {
		w := newGroupWorld(t, kafkatest.Options{})
		w.produce("orders", 0, 20)
		w.commit(w.pair.Source, "g", "orders", 0, 12)
		w.copy()
		w.commit(w.pair.Target, "g", "orders", 0, at)
		died := ledger.GroupCommit{Topic: "orders", Offset: 9, Source: 9, Undecided: true, Before: 5}
		if err := w.book.KeepGroupCommits(map[string][]ledger.GroupCommit{"g": {died}}); err != nil {
			t.Fatal(err)
		}
		w.round()
		if want != "" {
			w.mustRow("g", groups.DoNothing, want, at)
			continue
		}
		w.mustRow("g", groups.DoCommit, "", 12)
		if kept := w.book.GroupCommits("g"); len(kept) != 1 || kept[0].Undecided || kept[0].Offset != 12 || kept[0].Source != 12 {
			t.Errorf("kept %+v", kept)
		}
	}
}

// TestGroupSyncCrashAtARewind: a process dies as it is about to take a group back, which
// was asked for. The next one, which is not asked to, leaves the group where it is, and
// one that is takes it back.
func TestGroupSyncCrashAtARewind(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.settings.GroupSync.Rewinds = true
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 15)
	w.copy()
	w.round()
	w.mustRow("g", groups.DoCommit, "", 15)
	w.commit(w.pair.Source, "g", "orders", 0, 4)
	w.stallCommit()
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.Active, 15)
	if kept := w.book.GroupCommits("g"); len(kept) != 1 || !kept[0].Undecided || kept[0].Offset != 4 || kept[0].Before != 15 {
		t.Fatalf("kept %+v", kept)
	}
	for _, source := range []int64{4, 6} {
		w.commit(w.pair.Source, "g", "orders", 0, source)
		w.settings.GroupSync.Rewinds = false
		w.copy()
		w.round()
		w.mustRow("g", groups.DoNothing, mirror.Ahead, 15)
	}
	w.settings.GroupSync.Rewinds = true
	w.copy()
	w.round()
	w.mustRow("g", groups.DoCommit, "", 6)
	if kept := w.book.GroupCommits("g"); len(kept) != 1 || kept[0].Undecided || kept[0].Source != 6 {
		t.Errorf("kept %+v", kept)
	}
}

// TestGroupSyncSettles: an undecided commit that was made counts as made.
func TestGroupSyncSettles(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 9)
	w.copy()
	w.commit(w.pair.Target, "g", "orders", 0, 9)
	died := ledger.GroupCommit{Topic: "orders", Offset: 9, Source: 9, Undecided: true, Before: 5}
	if err := w.book.KeepGroupCommits(map[string][]ledger.GroupCommit{"g": {died}}); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.commit(w.pair.Target, "g", "orders", 0, 5) // its owner, back to where it was
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.TakenOver, 5)
}

// TestGroupSyncSettledThenStalled: a commit that a process died at was made, which the
// next one finds, and in the same round commits further, of which it learns nothing. That
// lands later, which is no takeover.
func TestGroupSyncSettledThenStalled(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 9)
	w.copy()
	w.commit(w.pair.Target, "g", "orders", 0, 5)
	died := ledger.GroupCommit{Topic: "orders", Offset: 5, Source: 5, Undecided: true, Before: groups.NoOffset}
	if err := w.book.KeepGroupCommits(map[string][]ledger.GroupCommit{"g": {died}}); err != nil {
		t.Fatal(err)
	}
	w.stallCommit()
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.Active, 5)
	if kept := w.book.GroupCommits("g"); len(kept) != 1 || !kept[0].Undecided || kept[0].Offset != 9 || kept[0].Before != 5 {
		t.Errorf("kept %+v", kept)
	}
	w.commit(w.pair.Target, "g", "orders", 0, 9) // the first try lands
	w.commit(w.pair.Source, "g", "orders", 0, 11)
	w.round()
	w.mustRow("g", groups.DoCommit, "", 11)
}

// TestGroupSyncNotReadBack: a commit that was acknowledged, and of which nothing is to
// be found afterwards, is made again.
func TestGroupSyncNotReadBack(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 5)
	w.copy()
	w.round()
	w.commit(w.pair.Source, "g", "orders", 0, 9)
	gate := make(chan struct{})
	// The group is looked at to decide, and before the commit; then it is read back.
	read := w.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.OffsetFetch, Skip: 2, Gate: gate, Delay: 1 << 40, Count: 1})
	done := make(chan []*mirror.DutyError)
	go func() { done <- w.try() }()
	if err := read.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.commit(w.pair.Target, "g", "orders", 0, 5) // as if the commit had been lost
	close(gate)
	if errs := <-done; len(errs) != 1 {
		t.Error(errs)
	}
	w.mustRow("g", groups.DoNothing, mirror.Failed, 5)
	w.round()
	w.mustRow("g", groups.DoCommit, "", 9)
	w.commit(w.pair.Target, "g", "orders", 0, 5) // its owner
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.TakenOver, 5)
}

// TestGroupSyncHandedBack: a group that moved since the snapshot from which the ledger
// was restored is taken for its owner's, wherever it stands. So is one that its owner did
// move, and both are handed back in one way: their offsets on the target are deleted.
func TestGroupSyncHandedBack(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	for _, group := range []string{"restored", "reset"} {
		w.commit(w.pair.Source, group, "orders", 0, 5)
	}
	w.copy()
	w.round()
	old := w.book.GroupCommits("restored")
	for _, group := range []string{"restored", "reset"} {
		w.commit(w.pair.Source, group, "orders", 0, 9)
	}
	w.round()
	w.mustRow("restored", groups.DoCommit, "", 9)
	if err := w.book.KeepGroupCommits(map[string][]ledger.GroupCommit{"restored": old}); err != nil {
		t.Fatal(err)
	}
	w.commit(w.pair.Target, "reset", "orders", 0, 2)
	w.round()
	w.mustRow("restored", groups.None, "", 9) // its owner's may stand so as well
	w.mustRow("reset", groups.DoNothing, mirror.TakenOver, 2)
	for _, group := range []string{"restored", "reset"} {
		w.commit(w.pair.Source, group, "orders", 0, 11)
	}
	w.round()
	w.mustRow("restored", groups.DoNothing, mirror.TakenOver, 9)
	w.mustRow("reset", groups.DoNothing, mirror.TakenOver, 2)
	admin := kadm.NewClient(w.pair.Target.NewClient(t))
	if _, err := admin.DeleteGroups(t.Context(), "restored"); err != nil {
		t.Fatal(err)
	}
	answer, err := admin.DeleteOffsets(t.Context(), "reset", kadm.TopicsSet{"orders": {0: {}}})
	if err := errors.Join(err, answer.Error()); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{11, 13} {
		for _, group := range []string{"restored", "reset"} {
			w.commit(w.pair.Source, group, "orders", 0, at)
		}
		w.round()
		for _, group := range []string{"restored", "reset"} {
			w.mustRow(group, groups.DoCommit, "", at)
			if kept := w.book.GroupCommits(group); len(kept) != 1 || kept[0].Undecided || kept[0].Offset != at || kept[0].Source != at {
				t.Errorf("%s: kept %+v", group, kept)
			}
		}
	}
	w.commit(w.pair.Target, "reset", "orders", 0, 3)
	w.round()
	w.mustRow("reset", groups.DoNothing, mirror.TakenOver, 3)
}
