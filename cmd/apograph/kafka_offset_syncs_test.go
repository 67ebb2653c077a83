//go:build kafka

package main

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"apograph/internal/kafkatest"
)

// An offsetSync is what a record of a topic of offset syncs says of its partition.
type offsetSync struct{ upstream, downstream int64 }

// syncs returns the offset syncs of partition 0 of a topic, in order, from a topic
// on the source. There is none where there is no topic.
func (f *failover) syncs(from, topic string) []offsetSync {
	records, err := f.source.ReadUncommitted(f.ctx, from, 0)
	if err != nil {
		return nil
	}
	var all []offsetSync
	for _, r := range records {
		if name, rest := texts(r.Key, 1); name[0] == topic && binary.BigEndian.Uint32(rest) == 0 {
			all = append(all, offsetSync{int64(binary.BigEndian.Uint64(r.Value)), int64(binary.BigEndian.Uint64(r.Value[8:]))})
		}
	}
	return all
}

// checkpoints returns the last checkpoint of each group and partition in a topic:
// its offset at the target.
func (f *failover) checkpoints(on *kafkatest.Kafka, topic string) map[groupPlace]int64 {
	records, err := on.ReadUncommitted(f.ctx, topic, 0)
	if err != nil {
		return nil
	}
	all := map[groupPlace]int64{}
	for _, r := range records {
		name, rest := texts(r.Key, 2)
		all[groupPlace{name[0], name[1], int32(binary.BigEndian.Uint32(rest))}] = int64(binary.BigEndian.Uint64(r.Value[10:]))
	}
	return all
}

// texts reads texts, each behind its length in two bytes.
func texts(b []byte, n int) (all []string, rest []byte) {
	for range n {
		length := 2 + int(binary.BigEndian.Uint16(b))
		all, b = append(all, string(b[2:length])), b[length:]
	}
	return all, b
}

// puzzled asks the Java client about a group at 50, where MirrorMaker has written
// the syncs (0,0), (19,19), (101,101): what its checkpoint says, and what ours
// says.
func (f *failover) puzzled(t *testing.T) {
	var questions []kafkatest.MirrorQuestion
	for _, k := range []*kafkatest.Kafka{f.theirs, f.ours} {
		questions = append(questions, kafkatest.MirrorQuestion{
			Properties: map[string]string{"bootstrap.servers": k.Server()}, Aliases: []string{"A"}, Groups: []string{"puzzle"},
		})
	}
	answers, err := f.source.MirrorAnswers(f.ctx, questions...)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{1, 50} {
		if got := answers[i].Upstream["A"].Offset("puzzle", "A.puzzle", 0); got != want {
			t.Errorf("%s: group at 50 is translated to %d, want %d", []string{"MirrorMaker", "apograph"}[i], got, want)
		}
	}
}

// A syncsReader is a real checkpoint task that starts anew, and reads what one
// copier wrote of offset syncs.
type syncsReader struct {
	alias  string // that it gives the source, so that its checkpoints have a topic of their own
	target string // alias of the target: which syncs it reads
	copied *kafkatest.Kafka
}

// offsetSyncs has real checkpoint tasks of two versions translate the groups by
// the offset syncs that apograph wrote, and by MirrorMaker's own. What they answer
// must never be past the exact offset.
func (f *failover) offsetSyncs(t *testing.T) {
	for _, version := range []string{kafkatest.KafkaVersion, kafkatest.OlderKafkaVersion} {
		java, err := kafkatest.JavaOf(f.ctx, version)
		if err != nil {
			t.Fatal(err)
		}
		own, ours := syncsReader{"own-" + version, "M", f.theirs}, syncsReader{"apograph-" + version, "B", f.ours}
		worker := java.StartMirrorConnectors(t, f.ours.Bootstrap, f.checkpointTask(own), f.checkpointTask(ours))
		again := [2][]int{f.readSyncs(t, worker, own), f.readSyncs(t, worker, ours)}
		if err := worker.Kill(); err != nil {
			t.Fatal(err)
		}
		// Which syncs a task has kept in the end is chance as well, and a group that
		// stands just behind one is lucky.
		if ours, most := sum(again[1]), 2*sum(again[0]); ours > most {
			t.Errorf("%s reads %d records again by our offset syncs, %d by its own", version, ours, sum(again[0]))
		}
		f.syncsTable(t, version, again[0], again[1])
	}
}

func (f *failover) checkpointTask(r syncsReader) map[string]string {
	return map[string]string{
		"name": r.alias, "connector.class": kafkatest.MirrorCheckpointClass, "tasks.max": "1",
		"source.cluster.alias": r.alias, "target.cluster.alias": r.target,
		"source.cluster.bootstrap.servers": f.source.Server(), "target.cluster.bootstrap.servers": f.ours.Server(),
		"topics": "orders", "groups": ".*", "emit.checkpoints.interval.seconds": "1", "sync.group.offsets.enabled": "false",
		"checkpoints.topic.replication.factor": "1", "offset-syncs.topic.replication.factor": "1",
	}
}

// readSyncs returns how many records each group reads again.
func (f *failover) readSyncs(t *testing.T, worker *kafkatest.MirrorMaker, r syncsReader) []int {
	t.Helper()
	topic := r.alias + ".orders"
	o := newCopyOracle(f.ctx, t, f.source, "orders", r.copied, "A.orders", 0)
	// Groups are translated in one go. One is at the end, which all syncs reach.
	last := groupPlace{f.positions[len(f.positions)-2].group, topic, 0}
	var found map[groupPlace]int64
	translated := within(t, 2*time.Minute, func() bool {
		before := len(found)
		found = f.checkpoints(f.ours, r.alias+".checkpoints.internal")
		_, there := found[last]
		return there && len(found) == before || !worker.Running()
	})
	if !translated || !worker.Running() {
		t.Fatalf("%s: no checkpoint of %v: %v", r.alias, last, found)
	}
	var all []int
	for _, p := range f.positions {
		got := found[groupPlace{p.group, topic, 0}] // without: from the beginning
		again, missed := o.outcome(p.committed, got)
		if exact := o.exact(p.committed); got > exact || missed > 0 {
			t.Errorf("%s: group %s, at %d, is translated to %d, past the exact offset %d: %d missed", r.alias, p.group, p.committed, got, exact, missed)
		}
		all = append(all, again)
	}
	return all
}

func sum(all []int) (total int) {
	for _, n := range all {
		total += n
	}
	return total
}

func (f *failover) syncsTable(t *testing.T, version string, own, ours []int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| group | committed | read again by MirrorMaker's own syncs | by apograph's |\n| --- | --: | --: | --: |\n")
	for i, p := range f.positions {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", p.group, p.committed, own[i], ours[i])
	}
	b.WriteString("\n")
	fmt.Fprintf(&b, "MirrorMaker's %d syncs: median %s, sum %d.\n", len(f.syncs("mm2-offset-syncs.M.internal", "orders")), spreadOf(own), sum(own))
	fmt.Fprintf(&b, "apograph's %d syncs: median %s, sum %d.\n", len(f.syncs("mm2-offset-syncs.B.internal", "orders")), spreadOf(ours), sum(ours))
	writeTable(t, "offset-syncs-"+version, b.String())
}
