//go:build kafka

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// TestKafkaSourceLosses: everything that can happen to a source topic under a
// copier, with the built program and real brokers. Each loss is booked with its
// exact range and cause, said by exit codes, status and verify, and the way out
// is the one that the advice names.
func TestKafkaSourceLosses(t *testing.T) {
	clusters := kafkatest.StartKafkas(t,
		kafkatest.KafkaOptions{Name: "source", HeapMB: 256, Config: map[string]string{
			"log.retention.check.interval.ms": "300", "log.initial.task.delay.ms": "300", "file.delete.delay.ms": "100",
		}},
		kafkatest.KafkaOptions{Name: "target", HeapMB: 256, Config: map[string]string{
			"log.initial.task.delay.ms": "600000", // it deletes nothing: the copies are as old as the records
		}})
	for name, test := range map[string]func(*lossFlow){
		"retention-while-stopped": retentionWhileStopped,
		"retention-in-the-copy":   retentionInTheCopy,
		"deleted-while-stopped":   deletedWhileStopped,
		"deleted-in-the-copy":     deletedInTheCopy,
		"deleted-whole":           deletedWhole,
		"topic-deleted":           topicDeleted,
		"recreated-between-runs":  recreatedBetweenRuns,
		"recreated-outgrown":      recreatedOutgrown,
		"recreated-in-the-copy":   recreatedInTheCopy,
		"partitions-added":        partitionsAdded,
		"partitions-added-empty":  partitionsAddedAndCut,
	} {
		t.Run(name, func(t *testing.T) {
			test(newLossFlow(t, name, clusters[0], clusters[1]))
		})
	}
}

// create makes a topic whose records stay until they are deleted.
func (l *lossFlow) create(partitions int32) {
	l.t.Helper()
	l.do(l.source.CreateTopic(l.t.Context(), l.topic, partitions, kafkatest.LoadConfigs()))
}

// fillSegments appends several segments of old records, and new ones in the last
// segment. It returns how many.
func (l *lossFlow) fillSegments(age time.Duration) int64 {
	l.t.Helper()
	p, err := l.source.Producer(kafkatest.None)
	l.do(err)
	defer p.Close()
	old := time.Now().Add(-age)
	var end int64
	for range 40 {
		var records []*kgo.Record
		for range 10 {
			value := make([]byte, 10_000)
			copy(value, fmt.Sprint(end))
			records = append(records, &kgo.Record{Topic: l.topic, Key: fmt.Appendf(nil, "%d", end), Value: value, Timestamp: old})
			end++
		}
		l.do(p.Append(l.t.Context(), records...))
	}
	l.old = false
	l.appendBatches(0, "new", 1)
	return end + 10
}

// createShort makes a topic of small segments, which retention is then let
// loose upon by expire.
func (l *lossFlow) createShort() {
	l.t.Helper()
	configs := kafkatest.LoadConfigs()
	configs["segment.bytes"] = "1048576"
	l.do(l.source.CreateTopic(l.t.Context(), l.topic, 1, configs))
}

// expire lets retention delete old segments, and returns the log start when it
// is at or behind an offset.
func (l *lossFlow) expire(behind int64) int64 {
	l.t.Helper()
	l.do(l.source.SetTopicConfig(l.t.Context(), l.topic, "retention.ms", "60000"))
	return l.logStart(behind)
}

func (l *lossFlow) logStart(behind int64) (start int64) {
	l.t.Helper()
	eventually(l.t, fmt.Sprintf("the log start is behind %d", behind), func() bool {
		bounds, err := l.source.ReadBounds(l.t.Context(), l.topic, 0)
		start = bounds.LogStart
		return err == nil && start > behind
	})
	return start
}

func retentionWhileStopped(l *lossFlow) {
	l.createShort()
	l.old = true
	l.appendBatches(0, "first", 1)
	l.keep(0)
	l.once(0)
	end := l.fillSegments(time.Hour) + 10
	l.keep(0)
	start := l.expire(10)
	for range 2 { // the second run finds nothing new, and the loss stays
		l.once(3)
		l.books(0, "1:copied[0,10)", fmt.Sprintf("1:lost[10,%d)retention", start), fmt.Sprintf("1:copied[%d,%d)", start, end))
	}
	l.holds(0, [2]int64{0, 10}, [2]int64{start, end})
	l.verify(3, "not_verified[0,10)retention", fmt.Sprintf("lost[10,%d)retention", start))
	if code, row := l.status(0); code != 3 || row.Position == nil || *row.Position != end {
		l.t.Errorf("status: exit code %d, %+v", code, row)
	}
}

// retentionInTheCopy deletes segments under a slow copier.
func retentionInTheCopy(l *lossFlow) {
	l.createShort()
	l.do(l.source.SetTopicConfig(l.t.Context(), l.topic, "retention.ms", "60000"))
	end := l.fillSegments(45 * time.Second)
	l.keep(0)
	stop := l.living("--rate-limit", "150KiB")
	l.reaches(0, 10)
	l.logStart(0)
	bounds, err := l.source.ReadBounds(l.t.Context(), l.topic, 0)
	l.do(err)
	l.appendBatches(0, "later", 2)
	l.keep(0)
	end += 20
	l.reaches(0, end)
	if code, answer := stop(); code != 3 && code != 143 || answer["complete"] != false {
		l.t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	l.once(3)
	cut := l.cutAt()
	l.books(0, fmt.Sprintf("1:copied[0,%d)", cut), fmt.Sprintf("1:lost[%d,%d)retention", cut, bounds.LogStart), fmt.Sprintf("1:copied[%d,%d)", bounds.LogStart, end))
	l.holds(0, [2]int64{0, cut}, [2]int64{bounds.LogStart, end})
	l.verify(3, fmt.Sprintf("not_verified[0,%d)retention", cut), fmt.Sprintf("lost[%d,%d)retention", cut, bounds.LogStart))
}

// cutAt returns where the lost records begin.
func (l *lossFlow) cutAt() int64 {
	l.t.Helper()
	for _, line := range l.export(l.t, "source") {
		if line.Tile == "lost" {
			return line.Start
		}
	}
	l.t.Error("nothing is lost")
	return 0
}

func deletedWhileStopped(l *lossFlow) {
	l.create(1)
	l.appendBatches(0, "first", 5)
	l.keep(0)
	l.do(l.source.DeleteRecords(l.t.Context(), l.topic, 0, 7))
	l.once(0) // at first sight nothing is lost: the scope begins there
	l.books(0, "1:before_start[0,7)", "1:copied[7,50)")
	l.appendBatches(0, "second", 5)
	l.keep(0)
	l.do(l.source.DeleteRecords(l.t.Context(), l.topic, 0, 73))
	l.once(3)
	l.books(0, "1:before_start[0,7)", "1:copied[7,50)", "1:lost[50,73)delete_records", "1:copied[73,100)")
	l.appendBatches(0, "third", 5)
	l.keep(0)
	l.do(l.source.DeleteRecords(l.t.Context(), l.topic, 0, 120)) // between two batches
	l.once(3)
	l.books(0, "1:before_start[0,7)", "1:copied[7,50)", "1:lost[50,73)delete_records", "1:copied[73,100)", "1:lost[100,120)delete_records", "1:copied[120,150)")
	l.holds(0, [2]int64{7, 50}, [2]int64{73, 100}, [2]int64{120, 150})
	l.verify(3, "not_verified[7,100)retention", "lost[50,73)delete_records", "lost[100,120)delete_records")
}

func deletedInTheCopy(l *lossFlow) {
	l.createShort()
	end := l.fillSegments(time.Hour)
	l.keep(0)
	stop := l.living("--rate-limit", "300KiB")
	l.reaches(0, 10)
	l.do(l.source.DeleteRecords(l.t.Context(), l.topic, 0, 345))
	l.reaches(0, end)
	if code, answer := stop(); code != 3 && code != 143 || answer["complete"] != false {
		l.t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	cut := l.cutAt()
	l.books(0, fmt.Sprintf("1:copied[0,%d)", cut), fmt.Sprintf("1:lost[%d,345)delete_records", cut), fmt.Sprintf("1:copied[345,%d)", end))
	l.holds(0, [2]int64{0, cut}, [2]int64{345, end})
	l.verify(3, fmt.Sprintf("not_verified[0,%d)retention", cut), fmt.Sprintf("lost[%d,345)delete_records", cut))
}

// deletedWhole: everything that was not copied is gone, up to the end.
func deletedWhole(l *lossFlow) {
	l.create(1)
	l.appendBatches(0, "first", 2)
	l.keep(0)
	l.once(0)
	l.appendBatches(0, "second", 3)
	l.do(l.source.DeleteRecords(l.t.Context(), l.topic, 0, 50))
	l.once(3)
	l.books(0, "1:copied[0,20)", "1:lost[20,50)delete_records")
	l.appendBatches(0, "third", 1)
	l.keep(0)
	l.once(3)
	l.books(0, "1:copied[0,20)", "1:lost[20,50)delete_records", "1:copied[50,60)")
	l.holds(0, [2]int64{0, 20}, [2]int64{50, 60})
	l.verify(3, "not_verified[0,20)retention", "lost[20,50)delete_records")
}

func topicDeleted(l *lossFlow) {
	l.create(1)
	l.appendBatches(0, "first", 2)
	l.keep(0)
	stop := l.living()
	l.reaches(0, 20)
	l.do(l.source.DeleteTopic(l.t.Context(), l.topic))
	l.stops(0, "topic_deleted")
	stop()
	l.once(1, "0 topic_deleted 20")
	l.stays(0, 1, "topic_deleted")
	l.books(0, "1:copied[0,20)")
	l.holds(0, [2]int64{0, 20})
	l.verify(4, "not_verified[0,20)unreadable")
}

// recreate deletes the source topic, and makes it anew with other records.
func (l *lossFlow) recreate(batches int) {
	l.t.Helper()
	l.do(l.source.DeleteTopic(l.t.Context(), l.topic))
	l.create(1)
	l.appendBatches(0, "anew", batches)
}

// acceptsRecreated goes the way that the advice names: the new topic is copied
// behind the old one.
func (l *lossFlow) acceptsRecreated(old, anew int64) {
	l.t.Helper()
	l.order("resume", l.topic, "--accept-recreated")
	l.once(0)
	l.holdsBoth(old, anew)
}

// holdsBoth expects the copy of the topic that was deleted, and behind it that
// of the new one.
func (l *lossFlow) holdsBoth(old, anew int64) {
	l.t.Helper()
	l.books(0, fmt.Sprintf("1:copied[0,%d)", old), fmt.Sprintf("2:copied[0,%d)", anew))
	got, err := l.target.ReadUncommitted(l.t.Context(), l.topic, 0)
	l.do(err)
	now, err := l.source.ReadCommitted(l.t.Context(), l.topic, 0)
	l.do(err)
	if d := differenceOfContent(append(l.kept[0], now...), got); d != "" {
		l.t.Errorf("the target: %s", d)
	}
}

func recreatedBetweenRuns(l *lossFlow) {
	l.create(1)
	l.appendBatches(0, "first", 3)
	l.keep(0)
	l.once(0)
	l.recreate(1)
	l.once(1, "0 topic_recreated 30")
	l.stays(0, 1, "topic_recreated")
	l.verify(3, "diverged[0,10)", "diverged[10,30)")
	l.acceptsRecreated(30, 10)
}

func recreatedOutgrown(l *lossFlow) {
	l.create(1)
	l.appendBatches(0, "first", 3)
	l.keep(0)
	l.once(0)
	l.recreate(6)
	l.once(1, "0 topic_recreated 30")
	l.books(0, "1:copied[0,30)")
	l.acceptsRecreated(30, 60)
}

func recreatedInTheCopy(l *lossFlow) {
	l.create(1)
	l.appendBatches(0, "first", 3)
	l.keep(0)
	stop := l.living()
	l.reaches(0, 30)
	l.recreate(6)
	l.stops(0, "topic_recreated")
	l.books(0, "1:copied[0,30)")
	l.order("resume", l.topic, "--accept-recreated")
	l.reaches(0, 60)
	if code, answer := stop(); code != 143 || answer["complete"] != true {
		l.t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	l.once(0)
	l.holdsBoth(30, 60)
}

func partitionsAdded(l *lossFlow) {
	l.create(1)
	l.appendBatches(0, "first", 2)
	stop := l.living()
	l.reaches(0, 20)
	l.do(l.source.AddPartitions(l.t.Context(), l.topic, 3))
	l.appendBatches(1, "added", 2)
	l.appendBatches(2, "added too", 1)
	l.reaches(1, 20)
	l.reaches(2, 10)
	if code, answer := stop(); code != 143 || answer["complete"] != true {
		l.t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	l.books(1, "1:copied[0,20)")
	l.prove(l.t, l.topic)
}

// partitionsAddedAndCut: a partition that is added to a topic in the books is
// copied from 0; what was deleted before it was seen is lost.
func partitionsAddedAndCut(l *lossFlow) {
	l.create(1)
	l.appendBatches(0, "first", 2)
	l.once(0)
	l.do(l.source.AddPartitions(l.t.Context(), l.topic, 2))
	l.appendBatches(1, "added", 3)
	l.keep(1)
	l.do(l.source.DeleteRecords(l.t.Context(), l.topic, 1, 15))
	l.once(3)
	l.books(1, "1:lost[0,15)delete_records", "1:copied[15,30)") // nobody ever saw them
	l.holds(1, [2]int64{15, 30})
	l.verify(3, "lost[0,15)delete_records")
}

// createUnclean makes a topic on both nodes, led by the first.
func (l *lossFlow) createUnclean(k *kafkatest.Kafka) {
	l.t.Helper()
	configs := kafkatest.LoadConfigs()
	configs["unclean.leader.election.enable"], configs["min.insync.replicas"] = "true", "1"
	l.do(k.CreateAssigned(l.t.Context(), l.topic, configs, []int32{1, 2}), k.WaitInSync(l.t.Context(), l.topic, 0, 2))
}

// leads waits until a node leads a topic of two, alone in sync.
func (l *lossFlow) leads(k *kafkatest.Kafka, node int) {
	l.t.Helper()
	_, err := k.WaitLeader(l.t.Context(), l.topic, 0, 3-node)
	l.do(err, k.WaitInSyncAre(l.t.Context(), l.topic, 0, node))
}

// uncleanElection has an action done while the second node is down, so that
// only the first has what it writes. Then the first dies, and the second, which
// comes back, is elected although it is behind.
func uncleanElection(k *kafkatest.Kafka, flows []*lossFlow, action func(*lossFlow)) {
	first := flows[0]
	first.t.Helper()
	first.do(k.Kill(2))
	for _, l := range flows {
		l.leads(k, 1)
		action(l)
	}
	first.do(k.Kill(1), k.Restart(2))
	for _, l := range flows {
		l.leads(k, 2)
	}
}

// TestKafkaSourceUnclean: an unclean election takes back what was copied. It is
// seen by a copier that runs, by one that was stopped, and where the new log has
// outgrown the books in the meantime.
func TestKafkaSourceUnclean(t *testing.T) {
	clusters := kafkatest.StartKafkas(t,
		kafkatest.KafkaOptions{Name: "source", Nodes: 2, ReplicationFactor: 1, HeapMB: 256},
		kafkatest.KafkaOptions{Name: "target", HeapMB: 256})
	var flows []*lossFlow
	for _, topic := range []string{"stopped", "outgrown", "living"} {
		l := newLossFlow(t, topic, clusters[0], clusters[1])
		l.createUnclean(l.source)
		l.appendBatches(0, "first", 3)
		flows = append(flows, l)
	}
	stopped, outgrown, living := flows[0], flows[1], flows[2]
	stop := living.living()
	uncleanElection(clusters[0], flows, func(l *lossFlow) {
		l.appendBatches(0, "to be lost", 2)
		l.keep(0)
		if l != living {
			l.once(0)
		}
		l.reaches(0, 50)
	})
	stopped.once(1, "0 source_truncated 30") // the log is shorter than the books, and stops where they part
	if err := clusters[0].Restart(1); err != nil {
		t.Fatal(err)
	}
	if err := clusters[0].WaitInSyncEverywhere(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, l := range flows {
		l.appendBatches(0, "other", []int{1, 7, 1}[i])
	}
	living.stops(0, "source_truncated")
	if code, _ := stop(); code != 1 && code != 143 {
		t.Errorf("the copier: exit code %d", code)
	}
	for i, l := range flows {
		l.once(1, "0 source_truncated 30")
		l.stays(0, 1, "source_truncated")
		l.books(0, "1:copied[0,50)")
		if l == outgrown {
			l.verify(3, "diverged[30,50)", "not_copied_yet[50,100)behind")
		} else {
			l.verify(3, "diverged[30,40)", "diverged[40,50)")
		}
		l.acceptsTruncated(30, 50, []int64{40, 100, 40}[i])
	}
}

// acceptsTruncated goes the way that the advice names: the book is closed, and
// what the source has from the cut on is copied behind it.
func (l *lossFlow) acceptsTruncated(cut, old, now int64) {
	l.t.Helper()
	l.order("resume", l.topic+":0", "--accept-truncated")
	l.once(0)
	l.books(0, fmt.Sprintf("1:copied[0,%d)", old), fmt.Sprintf("2:before_start[0,%d)", cut), fmt.Sprintf("2:copied[%d,%d)", cut, now))
	source, err := l.source.ReadCommitted(l.t.Context(), l.topic, 0)
	l.do(err)
	got, err := l.target.ReadUncommitted(l.t.Context(), l.topic, 0)
	l.do(err)
	if d := differenceOfContent(append(l.kept[0], source[cut:]...), got); d != "" {
		l.t.Errorf("the target: %s", d)
	}
}
