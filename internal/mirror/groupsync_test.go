package mirror_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/groups"
	"apograph/internal/kafkatest"
	"apograph/internal/mirror"
	"apograph/ledger"
)

// TestGroupSync: offsets follow, with their metadata and without the leader epoch
// of the other cluster, in new groups and in ones that consumers have left; zero
// is an offset like any other.
func TestGroupSync(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 10)
	w.transact("orders", 0, 5, false) // 10-15
	w.produce("orders", 1, 10)
	w.commit(w.pair.Source, "new", "orders", 0, 13)
	w.commit(w.pair.Source, "zero", "orders", 0, 0)
	w.commit(w.pair.Source, "zero", "orders", 1, 7)
	w.commit(w.pair.Source, "left", "orders", 0, 5)
	w.commit(w.pair.Source, "kip-848", "orders", 0, 6)
	w.copy()
	w.pair.Target.Consume(t.Context(), t, "left").Close()
	w.pair.Target.Consume(t.Context(), t, "kip-848", kgo.ServerSideBalancer()).Close()
	w.round()
	w.mustRow("new", groups.DoCommit, "", 10)
	w.mustRow("zero", groups.DoCommit, "", 0)
	w.mustRow("left", groups.DoCommit, "", 5)
	w.mustRow("kip-848", groups.DoCommit, "", 6)
	if offset, metadata, epoch := w.onTarget("zero", "orders", 1); offset != 7 || metadata != "by hand" || epoch != -1 {
		t.Errorf("has %d, %q, epoch %d", offset, metadata, epoch)
	}
	w.round()
	w.mustRow("new", groups.None, "", 10)
	w.commit(w.pair.Source, "new", "orders", 0, 16)
	w.produce("orders", 0, 3)
	w.commit(w.pair.Source, "zero", "orders", 0, 18)
	w.copy()
	w.produce("orders", 0, 15)
	w.commit(w.pair.Source, "left", "orders", 0, 30)
	w.round()
	w.mustRow("new", groups.None, "", 10) // the same record
	w.mustRow("zero", groups.DoCommit, "", 12)
	w.mustRow("left", groups.DoCommit, mirror.HeldBack, 13)
	lag := w.m.Groups().Lag
	if lag >= 0 {
		t.Errorf("lag %v after one round", lag)
	}
	w.round()
	if lag := w.m.Groups().Lag; lag.Hours() != 1 {
		t.Errorf("lag %v, of rounds that are an hour apart", lag)
	}
	w.copy()
	w.round()
	w.mustRow("left", groups.DoCommit, "", 24)
	kafkatest.Compare(t, w.pair.Source.Bootstrap, w.pair.Target.Bootstrap, kafkatest.Same("orders"))
}

// TestGroupSyncBackwards: a group does not go back on the target, unless that is
// asked for and it went back on the source since the flow committed for it.
func TestGroupSyncBackwards(t *testing.T) {
	for _, rewinds := range []bool{false, true} {
		w := newGroupWorld(t, kafkatest.Options{})
		w.settings.GroupSync.Rewinds = rewinds
		w.produce("orders", 0, 10)
		w.commit(w.pair.Source, "g", "orders", 0, 8)
		w.commit(w.pair.Source, "never", "orders", 0, 4)
		w.copy()
		w.commit(w.pair.Target, "never", "orders", 0, 6)
		w.round()
		w.mustRow("g", groups.DoCommit, "", 8)
		w.mustRow("never", groups.DoNothing, mirror.Ahead, 6)
		n := len(w.checkpoints())
		w.commit(w.pair.Source, "g", "orders", 0, 3)
		w.commit(w.pair.Source, "never", "orders", 0, 2)
		w.round()
		if rewinds {
			w.mustRow("g", groups.DoCommit, "", 3)
		} else {
			w.mustRow("g", groups.DoNothing, mirror.Ahead, 8)
		}
		w.mustRow("never", groups.DoNothing, mirror.Ahead, 6)
		w.mustWrite(&n, "g orders-0 3->3 by hand", "never orders-0 2->2 by hand") // checkpoints do follow
		w.commit(w.pair.Source, "g", "orders", 0, 9)
		w.commit(w.pair.Source, "never", "orders", 0, 7)
		w.round()
		w.mustRow("g", groups.DoCommit, "", 9)
		w.mustRow("never", groups.DoCommit, "", 7)
	}
}

// TestGroupSyncTakenOver: a group that its owner has moved is left alone, also by
// the next process, until it is again where the flow left it. One whose offsets
// have expired is committed again.
func TestGroupSyncTakenOver(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.produce("orders", 1, 20)
	for p := range int32(2) {
		w.commit(w.pair.Source, "g", "orders", p, 5)
	}
	w.commit(w.pair.Source, "expired", "orders", 0, 5)
	w.copy()
	w.commit(w.pair.Target, "g", "orders", 0, 2) // before the first commit of ours
	w.round()
	w.mustRow("g", groups.DoCommit, "", 5)
	for _, reset := range []int64{0, 12} {
		w.commit(w.pair.Target, "g", "orders", 0, reset)
		w.commit(w.pair.Source, "g", "orders", 0, 6)
		w.commit(w.pair.Source, "g", "orders", 1, 6+reset)
		w.round()
		w.mustRow("g", groups.DoNothing, mirror.TakenOver, reset)
		if got := w.row("g", "orders", 1); got.Action != groups.DoCommit || w.on("g", "orders", 1) != 6+reset {
			t.Errorf("the other partition: %+v", got)
		}
	}
	w.copy()
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.TakenOver, 12)
	w.commit(w.pair.Target, "g", "orders", 0, 5) // as ours was
	w.round()
	w.mustRow("g", groups.DoCommit, "", 6)

	if _, err := kadm.NewClient(w.pair.Target.NewClient(t)).DeleteGroups(t.Context(), "expired"); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.mustRow("expired", groups.DoCommit, "", 5)
}

// TestGroupSyncActive: a group with members is left alone, which is said once,
// and so is one of which it is not known whether it has any.
func TestGroupSyncActive(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 5)
	w.copy()
	members := map[string]*kgo.Client{"g": w.pair.Target.Consume(t.Context(), t, "g")}
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.Active, -1)
	if log := w.log.since(); strings.Count(log, "group=g") != 1 || !strings.Contains(log, "active") {
		t.Error(log)
	}
	w.round()
	if log := w.log.since(); strings.Contains(log, "group=g") {
		t.Errorf("said again: %s", log)
	}
	members["g"].Close()
	list := w.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.ListGroups, Err: kerr.GroupAuthorizationFailed, Count: -1})
	describe := w.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.DescribeGroups, Err: kerr.GroupAuthorizationFailed, Count: -1})
	if errs := w.try(); len(errs) != 1 || errs[0].Duty != "group_sync" {
		t.Errorf("%v", errs)
	}
	w.mustRow("g", groups.DoNothing, mirror.NotAuthorized, -1)
	list.Remove()
	describe.Remove()
	w.log.since()
	w.round()
	w.mustRow("g", groups.DoCommit, "", 5)
	if log := w.log.since(); strings.Count(log, "group=g") != 1 {
		t.Error(log)
	}
}

// TestGroupSyncJoined: a member that joins between the look and the commit has
// the coordinator refuse it, and nothing is remembered of it.
func TestGroupSyncJoined(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 5)
	w.copy()
	gate := make(chan struct{})
	commit := w.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.OffsetCommit, Gate: gate, Delay: 1 << 40, Count: 1})
	done := make(chan []*mirror.DutyError)
	go func() { done <- w.try() }()
	if err := commit.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if kept := w.book.GroupCommits("g"); len(kept) != 1 || !kept[0].Undecided || kept[0].Offset != 5 || kept[0].Before != -1 {
		t.Errorf("kept before the commit: %+v", kept)
	}
	member := w.pair.Target.Consume(t.Context(), t, "g")
	close(gate)
	if errs := <-done; len(errs) > 0 {
		t.Error(errs)
	}
	w.mustRow("g", groups.DoNothing, mirror.Active, -1)
	if kept := w.book.GroupCommits("g"); len(kept) != 0 {
		t.Errorf("kept %+v", kept)
	}
	member.Close()
	w.commit(w.pair.Target, "g", "orders", 0, 3)
	w.round() // never committed by the flow, so that 3 is no takeover
	w.mustRow("g", groups.DoCommit, "", 5)
}

// TestGroupSyncKinds: groups of each kind, on either side.
func TestGroupSyncKinds(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.settings.Checkpoints.Groups = selection(t, ".*", "")
	w.produce("orders", 0, 20)
	for _, group := range []string{"simple", "classic", "kip-848", "shared there"} {
		w.commit(w.pair.Source, group, "orders", 0, 5)
	}
	w.copy()
	w.pair.Source.Consume(t.Context(), t, "classic")
	w.pair.Source.Consume(t.Context(), t, "kip-848", kgo.ServerSideBalancer())
	w.pair.Source.Join(t.Context(), t, "connect-x", "connect")
	w.pair.Source.Share(t.Context(), t, "shares")
	w.pair.Target.Share(t.Context(), t, "shared there")
	w.round()
	for _, group := range []string{"simple", "classic", "kip-848"} {
		w.mustRow(group, groups.DoCommit, "", 5)
	}
	w.mustRow("shared there", groups.DoNothing, mirror.ShareGroup, -1)
	if r := w.row("shares", "", -1); r.Action != groups.DoNothing || r.Reason != mirror.ShareGroup {
		t.Errorf("%+v", r)
	}
	if rows := w.m.Groups().Rows; len(rows) != 5 {
		t.Errorf("%+v", rows)
	}
}

// TestGroupSyncFaults: a commit that failed before or after it took effect, or
// whose outcome is not known, is there in the end, and is never taken for the
// doing of the group's owner.
func TestGroupSyncFaults(t *testing.T) {
	for name, fault := range map[string]kafkatest.Fault{
		"cut before":  {Kind: kafkatest.CutBefore, Count: 1},
		"cut after":   {Kind: kafkatest.CutAfter, Count: 1},
		"timed out":   {Kind: kafkatest.ErrorAfter, Err: kerr.RequestTimedOut, Count: 1},
		"not allowed": {Kind: kafkatest.ErrorBefore, Err: kerr.GroupAuthorizationFailed, Count: 1},
		"too large":   {Kind: kafkatest.ErrorBefore, Err: kerr.OffsetMetadataTooLarge, Count: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGroupWorld(t, kafkatest.Options{})
			w.produce("orders", 0, 20)
			w.commit(w.pair.Source, "g", "orders", 0, 5)
			w.copy()
			w.round()
			w.commit(w.pair.Source, "g", "orders", 0, 9)
			fault.Key = kmsg.OffsetCommit
			handle := w.pair.Target.MustFault(t, fault)
			errs := w.try()
			switch name {
			case "not allowed":
				w.mustRow("g", groups.DoNothing, mirror.NotAuthorized, 5)
			case "too large":
				w.mustRow("g", groups.DoNothing, mirror.Failed, 5)
			default:
				w.mustRow("g", groups.DoCommit, "", 9)
			}
			if handle.Hits() != 1 || (len(errs) > 0) != (fault.Kind == kafkatest.ErrorBefore) {
				t.Errorf("%d faults, %v", handle.Hits(), errs)
			}
			w.start()
			w.round()
			w.commit(w.pair.Source, "g", "orders", 0, 11)
			w.round()
			w.mustRow("g", groups.DoCommit, "", 11)
		})
	}
}

// TestGroupSyncChangedTopics: offsets in a topic that was made anew, or that has
// no book yet, mean other records.
func TestGroupSyncChangedTopics(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.createTopic(w.pair.Source, "payments", 1)
	w.produce("orders", 0, 20)
	w.produce("payments", 0, 20)
	for _, topic := range []string{"orders", "payments"} {
		w.commit(w.pair.Source, "g", topic, 0, 5)
	}
	w.copy()
	deleteTopic(t, w.pair.Source, "orders")
	w.createTopic(w.pair.Source, "orders", 3)
	w.createTopic(w.pair.Source, "orders-2", 1)
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 5)
	deleteTopic(t, w.pair.Target, "payments")
	w.createTopic(w.pair.Target, "payments", 1)
	if err := w.pair.Target.Append(t.Context(), kafkatest.None, w.records("payments", 0, 20)...); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.SourceChanged, -1)
	if r := w.row("g", "payments", 0); r.Reason != mirror.TargetChanged || w.on("g", "payments", 0) != -1 {
		t.Errorf("%+v", r)
	}
	w.topics = "orders.*"
	w.commit(w.pair.Source, "g", "orders-2", 0, 0)
	w.start()
	w.round()
	if r := w.row("g", "orders-2", 0); r.Reason != mirror.NotCopiedYet || r.Action != groups.DoNothing {
		t.Errorf("%+v", r)
	}
	n := 0
	w.mustWrite(&n, "g payments-0 5->5 by hand")
}

// TestGroupSyncCutSource: while the ledger says that the source's log was cut, its
// offsets are not those of the books, also below the place: that may be told lower yet.
func TestGroupSyncCutSource(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 5)
	w.commit(w.pair.Source, "below", "orders", 0, 3)
	w.copy()
	if err := w.book.SetStop(ledger.Stop{SourceTopic: "orders", Reason: ledger.SourceTruncated, Offset: 4}); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.mustRow("g", groups.DoNothing, mirror.SourceChanged, -1)
	w.mustRow("below", groups.DoNothing, mirror.SourceChanged, -1)
}

// TestGroupSyncTargetLog: what the target's retention has removed is stepped over,
// as often as that happens, by groups that the flow has put there or that it never
// committed for; not by one that its owner has moved, nor one that is ahead, nor one
// with members. And nothing is committed beyond a log that has lost its end.
func TestGroupSyncTargetLog(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{DataDir: t.TempDir()})
	w.settings.GroupSync.Rewinds = true
	w.produce("orders", 0, 20)
	w.produce("orders", 1, 10)
	w.copy()
	w.produce("orders", 1, 10)
	for _, group := range []string{"g", "theirs", "ahead"} {
		w.commit(w.pair.Source, group, "orders", 0, 5)
	}
	w.commit(w.pair.Source, "g", "orders", 1, 15)
	w.copy()
	w.commit(w.pair.Target, "ahead", "orders", 0, 15)
	if err := w.pair.Target.LoseTail("orders", 1, 10); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.mustRow("g", groups.DoCommit, "", 5)
	if r := w.row("g", "orders", 1); r.Reason != mirror.TargetChanged || w.on("g", "orders", 1) != -1 {
		t.Errorf("%+v", r)
	}
	w.commit(w.pair.Target, "theirs", "orders", 0, 3)
	w.commit(w.pair.Source, "there", "orders", 0, 5)
	w.commit(w.pair.Target, "there", "orders", 0, 5)
	for _, start := range []int64{8, 10} {
		if err := w.pair.Target.DeleteRecords("orders", 0, start); err != nil {
			t.Fatal(err)
		}
		member := w.pair.Target.Consume(t.Context(), t, "g")
		before := w.on("g", "orders", 0)
		w.round()
		w.mustRow("g", groups.DoNothing, mirror.Active, before)
		member.Close()
		w.round()
		w.mustRow("g", groups.DoCommit, mirror.BelowTargetStart, start)
		w.round()
		for _, group := range []string{"g", "there"} {
			w.mustRow(group, groups.None, mirror.BelowTargetStart, start)
			if r := w.row(group, "orders", 0); r.TargetOffset != start {
				t.Errorf("%+v", r)
			}
		}
		w.mustRow("theirs", groups.DoNothing, mirror.TakenOver, 3)
		w.mustRow("ahead", groups.DoNothing, mirror.Ahead, 15)
	}
	for _, source := range []int64{9, 4} { // nothing of that is readable on the target
		w.commit(w.pair.Source, "g", "orders", 0, source)
		w.round()
		w.mustRow("g", groups.None, mirror.BelowTargetStart, 10)
	}
	w.commit(w.pair.Source, "g", "orders", 0, 10)
	w.round()
	w.mustRow("g", groups.None, "", 10)
	w.commit(w.pair.Source, "g", "orders", 0, 12)
	w.round()
	w.mustRow("g", groups.DoCommit, "", 12)
	w.commit(w.pair.Source, "g", "orders", 0, 4) // which it is to follow
	w.round()
	w.mustRow("g", groups.DoCommit, mirror.BelowTargetStart, 10)
}

// TestGroupSyncOutside: offsets outside of what the logs hold. Below the start of
// the copy the first record that was copied stands for them; in what was lost, the
// first one behind it; beyond the end of the source's log there is nothing. A group that
// goes on behind records that it has not read is said to, for as long as it stands there,
// and once in the log.
func TestGroupSyncOutside(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 100)
	if err := w.pair.Source.DeleteRecords("orders", 0, 50); err != nil {
		t.Fatal(err)
	}
	at := map[string]int64{"below": 30, "first": 50, "middle": 75, "end": 100, "beyond": 120}
	for group, offset := range at {
		w.commit(w.pair.Source, group, "orders", 0, offset)
	}
	w.copy()
	w.round()
	for group, want := range map[string]int64{"first": 0, "middle": 25, "end": 50} {
		w.mustRow(group, groups.DoCommit, "", want)
	}
	w.mustRow("below", groups.DoCommit, mirror.BelowStart, 0)
	w.mustRow("beyond", groups.DoNothing, mirror.BeyondEnd, -1)
	w.mustSay("below", `level=WARN msg="the group goes on behind records that it has not read`, "reasons=before_start")
	n := 0
	w.mustWrite(&n, "below orders-0 30->0 by hand", "end orders-0 100->50 by hand", "first orders-0 50->0 by hand", "middle orders-0 75->25 by hand")
	w.produce("orders", 0, 20) // the next look at the log is ahead of the ledger's
	w.round()
	w.mustRow("beyond", groups.DoCommit, mirror.HeldBack, 50)
	w.mustRow("below", groups.None, mirror.BelowStart, 0)
	w.mustSay("below")
	w.mustWrite(&n, "beyond orders-0 120->50 by hand")
	if err := w.pair.Source.DeleteRecords("orders", 0, 110); err != nil {
		t.Fatal(err)
	}
	w.commit(w.pair.Source, "middle", "orders", 0, 104)
	w.copy()
	w.round()
	w.mustRow("middle", groups.DoCommit, mirror.AmongLost, 50)
	w.mustRow("beyond", groups.DoCommit, "", 60)
	w.mustSay("middle", "reasons=lost")
	w.commit(w.pair.Source, "middle", "orders", 0, 110)
	w.round()
	w.mustRow("middle", groups.None, "", 50)
	w.mustSay("middle", "level=INFO", "exact again")
}

// TestGroupSyncUndecided: a group of which a transaction may yet commit offsets
// is in use.
func TestGroupSyncUndecided(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.commit(w.pair.Source, "g", "orders", 0, 5)
	w.copy()
	w.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetFetch, Err: kerr.UnstableOffsetCommit, Count: -1})
	w.round()
	if r := w.row("g", "orders", 0); r.Action != groups.DoNothing || r.Reason != mirror.Active {
		t.Errorf("%+v", r)
	}
}

// TestGroupSyncForgets: what is on neither cluster any more takes no memory.
func TestGroupSyncForgets(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	w.produce("orders", 1, 20)
	for _, group := range []string{"g", "gone", "gone here"} {
		w.commit(w.pair.Source, group, "orders", 0, 5)
		w.commit(w.pair.Source, group, "orders", 1, 5)
	}
	w.copy()
	w.round()
	if got := w.book.CommittedGroups(); len(got) != 3 {
		t.Fatalf("%q", got)
	}
	on := func(c *kafkatest.Cluster) *kadm.Client { return kadm.NewClient(c.NewClient(t)) }
	for _, group := range []string{"gone", "gone here"} {
		if _, err := on(w.pair.Source).DeleteGroups(t.Context(), group); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := on(w.pair.Target).DeleteGroups(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	one := kadm.TopicsSet{"orders": {1: {}}}
	for _, c := range []*kafkatest.Cluster{w.pair.Source, w.pair.Target} {
		if _, err := on(c).DeleteOffsets(t.Context(), "g", one); err != nil {
			t.Fatal(err)
		}
	}
	w.round()
	if got := strings.Join(w.book.CommittedGroups(), ","); got != "g,gone here" || len(w.book.GroupCommits("g")) != 1 {
		t.Errorf("%q, %+v", got, w.book.GroupCommits("g"))
	}
}

// TestGroupSyncPartly: a group whose coordinator does not answer for it is said
// to fail, by itself.
func TestGroupSyncPartly(t *testing.T) {
	options := kafkatest.Options{SourceBrokers: 3}
	w := newGroupWorld(t, options)
	w.produce("orders", 0, 20)
	secret := w.elsewhere("g")
	for _, group := range []string{"g", secret} {
		w.commit(w.pair.Source, group, "orders", 0, 5)
	}
	w.copy()
	deny := w.pair.Source.MustFault(t, kafkatest.Fault{
		Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetFetch, Err: kerr.GroupAuthorizationFailed, Count: -1,
		When: func(r kmsg.Request) bool {
			for _, g := range r.(*kmsg.OffsetFetchRequest).Groups {
				if g.Group == secret {
					return true
				}
			}
			return false
		},
	})
	if errs := w.try(); len(errs) != 2 || !strings.Contains(errs[0].Error(), secret) {
		t.Errorf("%v", errs)
	}
	w.mustRow("g", groups.DoCommit, "", 5)
	if r := w.row(secret, "", -1); r.Reason != mirror.NotAuthorized || r.Action != groups.DoNothing {
		t.Errorf("%+v", r)
	}
	deny.Remove()
	w.round()
	w.mustRow(secret, groups.DoCommit, "", 5)
}

// TestGroupSyncUnusableID: a group whose id the ledger cannot keep is left alone,
// and keeps no other from being committed for.
func TestGroupSyncUnusableID(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 20)
	longest, long := strings.Repeat("g", 1024), strings.Repeat("g", 1025)
	for _, group := range []string{"a", longest, long, "z"} {
		w.commit(w.pair.Source, group, "orders", 0, 5)
	}
	w.copy()
	w.round()
	for _, group := range []string{"a", longest, "z"} {
		w.mustRow(group, groups.DoCommit, "", 5)
	}
	w.mustRow(long, groups.DoNothing, mirror.UnusableID, -1)
	n := 0
	w.mustWrite(&n, "a orders-0 5->5 by hand", longest+" orders-0 5->5 by hand", long+" orders-0 5->5 by hand", "z orders-0 5->5 by hand")
}
