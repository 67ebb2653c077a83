//go:build kafka

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// TestKafkaTargetLosses: what happens to a target topic under a copier. It is
// said, and never repaired without a word.
func TestKafkaTargetLosses(t *testing.T) {
	clusters := kafkatest.StartKafkas(t,
		kafkatest.KafkaOptions{Name: "source", HeapMB: 256}, kafkatest.KafkaOptions{Name: "target", HeapMB: 256})
	for name, test := range map[string]func(*lossFlow){
		"deleted-between-runs":   targetDeleted,
		"deleted-in-the-copy":    targetDeletedInTheCopy,
		"recreated-between-runs": targetRecreated,
		"recreated-in-the-copy":  targetRecreatedInTheCopy,
		"records-deleted":        targetRecordsDeleted,
		"all-records-deleted":    targetEmptied,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLossFlow(t, name, clusters[0], clusters[1])
			l.create(1)
			l.appendBatches(0, "first", 3)
			l.keep(0)
			test(l)
		})
	}
}

func targetDeleted(l *lossFlow) {
	l.once(0)
	l.do(l.target.DeleteTopic(l.t.Context(), l.topic))
	l.appendBatches(0, "later", 1)
	l.once(1, "0 target_deleted 30")
	l.stays(0, 1, "target_deleted")
	l.books(0, "1:copied[0,30)")
	l.verify(3, "missing[0,30)", "not_copied_yet[30,40)behind")
	l.absent()
	l.recopied()
}

// recopied goes the way that the advice names: all of it is copied again, to a
// topic that is empty.
func (l *lossFlow) recopied() {
	l.t.Helper()
	l.keep(0)
	l.order("resume", l.topic+":0", "--recopy")
	l.once(0)
	l.books(0, "2:copied[0,40)") // the first one's are gone, every one of them
	l.holds(0, [2]int64{0, 40})
	l.verify(0)
}

func targetDeletedInTheCopy(l *lossFlow) {
	stop := l.living()
	l.reaches(0, 30)
	l.do(l.target.DeleteTopic(l.t.Context(), l.topic))
	l.appendBatches(0, "later", 1)
	l.stops(0, "target_deleted")
	if code, answer := stop(); code != 143 || answer["complete"] != false {
		l.t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	l.books(0, "1:copied[0,30)")
	l.absent()
}

// absent expects the target not to have the topic: nobody made it again.
func (l *lossFlow) absent() {
	l.t.Helper()
	out, err := l.target.Tool(l.t.Context(), kafkatest.TopicCommand, []string{"--bootstrap-server", l.target.Server(), "--list"}, nil)
	l.do(err)
	for _, topic := range strings.Fields(string(out)) {
		if topic == l.topic {
			l.t.Errorf("the target has topic %s again", topic)
		}
	}
}

func targetRecreated(l *lossFlow) {
	l.once(0)
	l.do(l.target.DeleteTopic(l.t.Context(), l.topic), l.target.CreateTopic(l.t.Context(), l.topic, 1, kafkatest.LoadConfigs()))
	l.appendBatches(0, "later", 1)
	l.once(1, "0 target_recreated 30")
	l.stays(0, 1, "target_recreated")
	l.books(0, "1:copied[0,30)")
	l.verify(3, "missing[0,30)", "not_copied_yet[30,40)behind")
	l.holds(0)
	l.recopied()
}

// targetRecreatedInTheCopy: the new topic has grown beyond the books when the
// copier writes again.
func targetRecreatedInTheCopy(l *lossFlow) {
	stop := l.living()
	l.reaches(0, 30)
	l.do(l.target.DeleteTopic(l.t.Context(), l.topic), l.target.CreateTopic(l.t.Context(), l.topic, 1, kafkatest.LoadConfigs()))
	l.foreign(40)
	l.appendBatches(0, "later", 1)
	l.stops(0, "target_recreated")
	if code, answer := stop(); code != 143 || answer["complete"] != false {
		l.t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	l.books(0, "1:copied[0,30)")
	got, err := l.target.ReadUncommitted(l.t.Context(), l.topic, 0)
	l.do(err)
	if len(got) != 40 {
		l.t.Errorf("the new topic has %d records, somebody else wrote 40", len(got))
	}
}

// foreign appends records of somebody else to the target.
func (l *lossFlow) foreign(n int) {
	l.t.Helper()
	p, err := l.target.Producer(kafkatest.None)
	l.do(err)
	defer p.Close()
	for i := range n {
		l.do(p.Append(l.t.Context(), &kgo.Record{Topic: l.topic, Key: []byte("f"), Value: fmt.Appendf(nil, "foreign %d", i)}))
	}
}

// targetRecordsDeleted: the copier goes on, what is gone cannot be verified, and
// translation says so.
func targetRecordsDeleted(l *lossFlow) {
	stop := l.living()
	l.reaches(0, 30)
	l.do(l.target.DeleteRecords(l.t.Context(), l.topic, 0, 12))
	l.appendBatches(0, "later", 1)
	l.keep(0)
	l.reaches(0, 40)
	l.do(l.target.DeleteRecords(l.t.Context(), l.topic, 0, 25))
	l.appendBatches(0, "last", 1)
	l.keep(0)
	l.reaches(0, 50)
	if code, answer := stop(); code != 143 || answer["complete"] != true {
		l.t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	l.books(0, "1:copied[0,50)")
	l.holds(0, [2]int64{25, 50})
	l.verify(4, "not_verified[0,25)retention")
	l.translates("5", 25, "below_target_start")
	l.translates("30", 30, "exact")
}

// targetEmptied: nothing that was copied is left, and what comes then stands
// behind it.
func targetEmptied(l *lossFlow) {
	l.once(0)
	l.do(l.target.DeleteRecords(l.t.Context(), l.topic, 0, 30))
	l.once(0)
	l.verify(4, "not_verified[0,30)retention")
	l.appendBatches(0, "later", 1)
	l.keep(0)
	l.once(0)
	l.books(0, "1:copied[0,40)")
	l.holds(0, [2]int64{30, 40})
	l.translates("7", 30, "below_target_start")
}

// translates expects the answer for one source offset, with the target at hand.
func (l *lossFlow) translates(offset string, want int64, status string) {
	l.t.Helper()
	code, out, errs := l.ask("translate", l.topic+":0:"+offset, "--target-bootstrap-server", l.target.Server(), "-o", "jsonl")
	if !strings.Contains(out, fmt.Sprintf(`"target_offset":%d,`, want)) || !strings.Contains(out, `"status":"`+status+`"`) {
		l.t.Errorf("translate %s: exit code %d, %s%s; want %d, %s", offset, code, out, errs, want, status)
	}
}

// TestKafkaTargetUnclean: an unclean election at the target takes back what it
// had acknowledged.
func TestKafkaTargetUnclean(t *testing.T) {
	clusters := kafkatest.StartKafkas(t,
		kafkatest.KafkaOptions{Name: "source", HeapMB: 256},
		kafkatest.KafkaOptions{Name: "target", Nodes: 2, ReplicationFactor: 1, HeapMB: 256})
	var flows []*lossFlow
	for _, topic := range []string{"stopped", "hole", "living"} {
		l := newLossFlow(t, topic, clusters[0], clusters[1])
		l.create(1)
		l.createUnclean(l.target)
		l.appendBatches(0, "first", 3)
		l.once(0)
		flows = append(flows, l)
	}
	stopped, hole, living := flows[0], flows[1], flows[2]
	stop := living.living()
	uncleanElection(clusters[1], flows, func(l *lossFlow) {
		l.appendBatches(0, "to be lost", 2)
		l.keep(0)
		if l != living {
			l.once(0)
		}
		l.reaches(0, 50)
	})
	if err := clusters[1].Restart(1); err != nil {
		t.Fatal(err)
	}
	if err := clusters[1].WaitInSyncEverywhere(t.Context()); err != nil {
		t.Fatal(err)
	}
	hole.foreign(40)
	for _, l := range flows {
		l.appendBatches(0, "later", 1)
		l.keep(0)
	}
	living.stops(0, "target_lost_records")
	if code, answer := stop(); code != 143 || answer["complete"] != false {
		t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	for _, l := range []*lossFlow{stopped, living} {
		l.once(1, "0 target_lost_records 50")
		l.stays(0, 1, "target_lost_records")
		l.books(0, "1:copied[0,50)")
		l.holds(0, [2]int64{0, 30})
		l.verify(3, "missing[30,50)", "not_copied_yet[50,60)behind")
		l.order("resume", l.topic+":0", "--recopy")
		l.once(0)
		l.books(0, "1:copied[0,30)", "2:before_start[0,30)", "2:copied[30,60)")
		l.holds(0, [2]int64{0, 60})
		l.verify(0)
		l.translates("45", 45, "exact")
	}
	// What stands there now is not what the books say: nobody may copy over it.
	hole.once(1, "0 target_lost_records 50")
	hole.verify(3, "changed[30,50)", "extra target[50,70)", "not_copied_yet[50,60)behind")
	hole.order("resume", "hole:0", "--recopy")
	hole.once(1, "0 target_lost_records 50")
	hole.books(0, "1:copied[0,50)")
}
