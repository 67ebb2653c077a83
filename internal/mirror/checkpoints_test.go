package mirror_test

import (
	"fmt"
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

// TestCheckpoints: offsets in records, in gaps, at the end and beyond it are
// translated exactly, and written when they change.
func TestCheckpoints(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.settings.GroupSync.Enabled = false
	w.produce("orders", 0, 10)        // 0-9 -> 0-9
	w.transact("orders", 0, 5, false) // 10-14 aborted, 15 marker
	w.transact("orders", 0, 4, true)  // 16-19 -> 10-13, 20 marker
	w.commit(w.pair.Source, "in", "orders", 0, 7)
	w.commit(w.pair.Source, "gap", "orders", 0, 12)
	w.commit(w.pair.Source, "end", "orders", 0, 21)
	w.commit(w.pair.Source, "zero", "orders", 0, 0)
	w.commit(w.pair.Source, "zero", "orders", 2, 0)
	w.copy()
	w.round()
	n := 0
	w.mustWrite(&n, "end orders-0 21->14 by hand", "gap orders-0 12->10 by hand", "in orders-0 7->7 by hand",
		"zero orders-0 0->0 by hand", "zero orders-2 0->0 by hand")
	w.round()
	w.mustWrite(&n)

	w.produce("orders", 0, 5) // 21-25, which are not copied yet
	w.commit(w.pair.Source, "in", "orders", 0, 3)
	w.commit(w.pair.Source, "end", "orders", 0, 24)
	w.commit(w.pair.Source, "gap", "orders", 0, 16)
	commitFor(t, w.pair.Source.Bootstrap, "zero", "orders", 2, 0, "other")
	w.round()
	w.mustWrite(&n, "end orders-0 24->14 by hand", "gap orders-0 16->10 by hand", "in orders-0 3->3 by hand", "zero orders-2 0->0 other")
	if r := w.row("end", "orders", 0); r.Reason != mirror.HeldBack || r.SourceOffset != 24 || r.TargetOffset != 14 || r.Committed != -1 {
		t.Errorf("%+v", r)
	}
	w.copy()
	w.round() // the memory is the topic's
	w.mustWrite(&n, "end orders-0 24->17 by hand")
	kafkatest.Compare(t, w.pair.Source.Bootstrap, w.pair.Target.Bootstrap, kafkatest.Same("orders"))
}

// TestCheckpointsOfTheChosen: groups are chosen as MirrorMaker 2's are, listed
// from time to time, and count if they have an offset in a topic in scope.
func TestCheckpointsOfTheChosen(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.settings.Checkpoints.Groups = selection(t, "app.*|connect-x", "connect-.*")
	w.createTopic(w.pair.Source, "private", 1)
	w.produce("orders", 0, 3)
	for _, group := range []string{"app", "an app", "connect-x", "app-2"} {
		w.commit(w.pair.Source, group, "orders", 0, 2)
	}
	w.commit(w.pair.Source, "app", "private", 0, 0)
	w.commit(w.pair.Source, "app-other", "private", 0, 0)
	w.commit(w.pair.Source, "app-2", "orders", 1, -1)
	w.copy()
	w.round()
	n := 0
	w.mustWrite(&n, "app orders-0 2->2 by hand", "app-2 orders-0 2->2 by hand")
	if r := w.row("app-2", "orders", 1); r.Reason != mirror.NoOffset || r.Action != "none" || r.SourceOffset != -1 || r.TargetOffset != -1 {
		t.Errorf("%+v", r)
	}
	if rows := w.m.Groups().Rows; len(rows) != 5 {
		t.Errorf("%+v", rows)
	}
	for group, want := range map[string]mirror.Reason{"connect-x": mirror.Excluded, "an app": mirror.NotMatched} {
		if r := w.row(group, "", -1); r.Reason != want || r.Action != groups.DoNothing {
			t.Errorf("%+v", r)
		}
	}
	if log := w.log.since(); strings.Contains(log, "connect-x") {
		t.Error(log)
	}
	w.commit(w.pair.Source, "app-3", "orders", 0, 1)
	if errs := w.m.Once(t.Context()); len(errs) > 0 { // at once: they are not listed again
		t.Fatal(errs)
	}
	w.mustWrite(&n)
	w.round()
	w.mustWrite(&n, "app-3 orders-0 1->1 by hand")
}

// TestCheckpointsThatWereThere: those that MirrorMaker 2 wrote are gone on from,
// and records that are none are passed over.
func TestCheckpointsThatWereThere(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 10)
	w.commit(w.pair.Source, "same", "orders", 0, 5)
	w.commit(w.pair.Source, "less", "orders", 0, 5)
	w.createTopic(w.pair.Target, checkpointsTopic, 1)
	client := w.pair.Target.NewClient(t, kgo.DefaultProduceTopic(checkpointsTopic))
	records := []*kgo.Record{
		{Key: []byte("x"), Value: []byte("y")}, {Key: []byte("x")}, {Value: []byte("y")},
		{Key: []byte("\x00\x04same\x00\x06orders\x00\x00\x00\x00"), Value: []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x00\x07by hand")},
		{Key: []byte("\x00\x04less\x00\x06orders\x00\x00\x00\x00"), Value: []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x01\x00\x07by hand")},
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.copy()
	w.round()
	all, err := w.pair.Target.ReadCommitted(t.Context(), checkpointsTopic, 0)
	if err != nil || len(all) != 6 || string(all[5].Key) != "\x00\x04less\x00\x06orders\x00\x00\x00\x00" || string(all[5].Value[10:18]) != "\x00\x00\x00\x00\x00\x00\x00\x05" {
		t.Errorf("%d records, %v", len(all), err)
	}
}

// TestCheckpointsForget: what a group does not have any more takes no memory, so that
// it is written once more should the group be back; one that could not be read for a
// while is not forgotten.
func TestCheckpointsForget(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.settings.GroupSync.Enabled = false
	w.produce("orders", 0, 3)
	for _, group := range []string{"gone", "unread"} {
		w.commit(w.pair.Source, group, "orders", 0, 2)
	}
	w.copy()
	w.round()
	n := len(w.checkpoints())
	if _, err := kadm.NewClient(w.pair.Source.NewClient(t)).DeleteGroups(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	deny := w.pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetFetch, Err: kerr.GroupAuthorizationFailed, Count: -1})
	w.try()
	deny.Remove()
	w.round()
	w.mustWrite(&n)
	w.commit(w.pair.Source, "gone", "orders", 0, 2)
	w.round()
	w.mustWrite(&n, "gone orders-0 2->2 by hand")
}

// TestCheckpointsOfALostEnd: what the target has lost is no place for a consumer. The
// last checkpoint stands until it is there again.
func TestCheckpointsOfALostEnd(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{DataDir: t.TempDir()})
	w.settings.GroupSync.Enabled = false
	w.tens(w.pair.Source, 0, 10)
	w.copy()
	w.tens(w.pair.Source, 10, 20)
	w.commit(w.pair.Source, "low", "orders", 0, 5)
	w.commit(w.pair.Source, "high", "orders", 0, 9)
	w.copy()
	w.round()
	n := len(w.checkpoints())
	w.loseTail(w.pair.Target, 10)
	w.copy() // which stops
	w.commit(w.pair.Source, "low", "orders", 0, 10)
	w.commit(w.pair.Source, "high", "orders", 0, 11)
	w.round()
	w.mustWrite(&n, "low orders-0 10->10 by hand")
	if r := w.row("high", "orders", 0); r.Action != groups.DoNothing || r.Reason != mirror.TargetChanged {
		t.Errorf("%+v", r)
	}
	silent := w.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.ListOffsets, Topic: "orders", Err: kerr.KafkaStorageError, Count: -1})
	w.commit(w.pair.Source, "low", "orders", 0, 8)
	w.round()
	w.mustWrite(&n) // nobody knows
	silent.Remove()
	w.round()
	w.mustWrite(&n, "low orders-0 8->8 by hand")
	w.order(ledger.Order{Recopy: true})
	w.copy()
	w.round()
	w.mustWrite(&n, "high orders-0 11->11 by hand")
}

// TestCheckpointFaults: a checkpoint whose writing failed before or after it took
// effect is there in the end, and is not written again for ever.
func TestCheckpointFaults(t *testing.T) {
	for name, fault := range map[string]kafkatest.Fault{
		"refused":   {Kind: kafkatest.ErrorBefore, Err: kerr.TopicAuthorizationFailed},
		"cut":       {Kind: kafkatest.CutBefore, Count: 1},
		"cut after": {Kind: kafkatest.CutAfter, Count: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGroupWorld(t, kafkatest.Options{})
			w.produce("orders", 0, 3)
			w.commit(w.pair.Source, "g", "orders", 0, 2)
			w.copy()
			fault.Key = kmsg.Produce
			handle := w.pair.Target.MustFault(t, fault)
			errs := w.try()
			if handle.Hits() == 0 || (len(errs) > 0) != (name == "refused") {
				t.Errorf("%d faults, %v", handle.Hits(), errs)
			}
			handle.Remove()
			w.round()
			w.round()
			n := 0
			w.mustWrite(&n, "g orders-0 2->2 by hand")
		})
	}
}

// TestCheckpointsTopicGone: what somebody deleted is written anew.
func TestCheckpointsTopicGone(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 3)
	w.commit(w.pair.Source, "g", "orders", 0, 2)
	w.commit(w.pair.Source, "same", "orders", 0, 1)
	w.copy()
	w.round()
	deleteTopic(t, w.pair.Target, checkpointsTopic)
	w.commit(w.pair.Source, "g", "orders", 0, 3)
	w.commit(w.pair.Source, "h", "orders", 0, 1)
	for range 3 {
		w.try()
	}
	n := 0
	w.mustWrite(&n, "g orders-0 3->3 by hand", "h orders-0 1->1 by hand", "same orders-0 1->1 by hand")
}

// TestCheckpointsMayNotBeRead: they are written once more, and not again.
func TestCheckpointsMayNotBeRead(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 3)
	w.commit(w.pair.Source, "g", "orders", 0, 2)
	w.copy()
	w.round()
	w.start()
	deny := w.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.ListOffsets, Topic: checkpointsTopic, Err: kerr.TopicAuthorizationFailed, Count: -1})
	w.round()
	w.round()
	if deny.Hits() == 0 {
		t.Error("the topic was not read")
	}
	deny.Remove()
	n := 0
	w.mustWrite(&n, "g orders-0 2->2 by hand", "g orders-0 2->2 by hand")
}

// TestGroupsLeftOut: rows of groups that patterns leave out are bounded, and the
// others counted.
func TestGroupsLeftOut(t *testing.T) {
	w := newGroupWorld(t, kafkatest.Options{})
	w.produce("orders", 0, 3)
	w.copy()
	client := w.pair.Source.NewClient(t)
	for i := range mirror.PatternRows + 7 {
		request := kmsg.NewPtrOffsetCommitRequest()
		request.Group, request.Generation = fmt.Sprintf("connect-%04d", i), -1
		topic, partition := kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetCommitRequestTopicPartition()
		topic.Topic, topic.TopicID = "orders", w.pair.Source.Fake().TopicInfo("orders").TopicID
		topic.Partitions = append(topic.Partitions, partition)
		request.Topics = append(request.Topics, topic)
		if _, err := request.RequestWith(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	w.round()
	status := w.m.Groups()
	if len(status.Rows) != mirror.PatternRows || status.Omitted != 7 {
		t.Fatalf("%d rows, %d omitted", len(status.Rows), status.Omitted)
	}
	if last := status.Rows[mirror.PatternRows-1]; last.Group != "connect-0999" || last.Reason != mirror.Excluded {
		t.Errorf("%+v", last)
	}
}
