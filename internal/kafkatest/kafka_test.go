//go:build kafka

package kafkatest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"apograph/internal/kafkatest"
)

func kafkaContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestKafkaSingleNode writes with the Java client and with kgo, and reads each
// with the other; then lets the real cleaner compact, and deletes records.
func TestKafkaSingleNode(t *testing.T) {
	k := kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "single"})
	ctx := kafkaContext(t)

	must(t, k.CreateTopic(ctx, "java", 2, kafkatest.LoadConfigs()))
	must(t, k.JavaLoad(ctx, kafkatest.JavaLoad{Topic: "java", Partitions: 2, Records: 2000, Seed: 1}))
	must(t, kafkatest.Load{Seed: 2, Topics: []string{"kgo"}, Partitions: 2, Records: 1000, ThroughClient: true}.Run(ctx, k.Bootstrap))
	must(t, kafkatest.Load{Seed: 2, Topics: []string{"own"}, Partitions: 2, Records: 500}.Run(ctx, k.Bootstrap))
	for _, topic := range []string{"java", "kgo", "own"} {
		must(t, k.WaitDecided(ctx, topic))
		readersAgree(t, ctx, k, topic)
	}
	fates := make(map[kafkatest.Fate]int64)
	for p := range int32(2) {
		for _, tile := range k.MustSourceTiles(t, "java", p) {
			fates[tile.Fate] += tile.End - tile.Start
		}
	}
	for _, fate := range []kafkatest.Fate{kafkatest.Committed, kafkatest.Aborted, kafkatest.CommitMarker, kafkatest.AbortMarker} {
		if fates[fate] == 0 {
			t.Errorf("the Java load has no %v offsets: %v", fate, fates)
		}
	}
	compactForReal(t, ctx, k)
	deleteForReal(t, ctx, k)
}

// readersAgree compares the Java consumer with kgo.
func readersAgree(t *testing.T, ctx context.Context, k *kafkatest.Kafka, topic string) {
	t.Helper()
	theirs, err := k.JavaReadTopic(ctx, topic)
	must(t, err)
	ours, err := k.ReadTopic(ctx, topic)
	must(t, err)
	if len(theirs) != len(ours) {
		t.Fatalf("%s: %d and %d partitions", topic, len(theirs), len(ours))
	}
	for p := range ours {
		if len(ours[p]) < 100 {
			t.Errorf("%s:%d holds only %d records", topic, p, len(ours[p]))
		}
		if d := kafkatest.DifferenceOf(theirs[p], ours[p]); d != "" {
			t.Errorf("%s:%d: Java and kgo differ: %s", topic, p, d)
		}
	}
}

func compactForReal(t *testing.T, ctx context.Context, k *kafkatest.Kafka) {
	t.Helper()
	must(t, k.CreateTopic(ctx, "compacted", 1, kafkatest.CompactedConfigs()))
	must(t, k.JavaLoad(ctx, kafkatest.JavaLoad{Topic: "compacted", Partitions: 1, Records: 1000, Seed: 3, Keyed: true}))
	must(t, k.FillCompacted(ctx, "compacted", 4<<20))
	must(t, k.WaitCompacted(ctx, "compacted"))
	absent, copied := int64(0), int64(0)
	for _, tile := range k.MustSourceTiles(t, "compacted", 0) {
		switch tile.Fate {
		case kafkatest.Absent:
			absent += tile.End - tile.Start
		case kafkatest.Committed:
			copied += tile.End - tile.Start
		}
	}
	if absent < 1000 || copied < 100 {
		t.Errorf("compacted: %d offsets gone, %d records left", absent, copied)
	}
	t.Logf("compacted: %d offsets gone, %d records left", absent, copied)
	readersAgree(t, ctx, k, "compacted")
}

func deleteForReal(t *testing.T, ctx context.Context, k *kafkatest.Kafka) {
	t.Helper()
	must(t, k.DeleteRecords(ctx, "kgo", 0, 7))
	bounds, err := k.ReadBounds(ctx, "kgo", 0)
	must(t, err)
	if bounds.LogStart != 7 {
		t.Errorf("log start %d after DeleteRecords", bounds.LogStart)
	}
	if first := k.MustSourceTiles(t, "kgo", 0)[0]; first.Fate != kafkatest.BelowStart || first.End != 7 {
		t.Errorf("first tile %+v", first)
	}
	out, err := k.Tool(ctx, kafkatest.TopicCommand, []string{"--bootstrap-server", k.Server(), "--list"}, nil)
	must(t, err)
	if !strings.Contains(string(out), "compacted") {
		t.Errorf("topics: %s", out)
	}
	_, err = k.Tool(ctx, kafkatest.ConsoleProducer, []string{"--bootstrap-server", k.Server(), "--topic", "java"}, bytes.NewReader([]byte("typed by hand\n")))
	must(t, err)
}

// TestKafkaThreeNodes kills the leader of a partition in mid stream, pauses the
// followers of another, and restarts.
func TestKafkaThreeNodes(t *testing.T) {
	k := kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "three", Nodes: 3, Config: map[string]string{"broker.session.timeout.ms": "9000"}})
	ctx := kafkaContext(t)
	must(t, k.CreateTopic(ctx, "a", 1, kafkatest.LoadConfigs()))
	p, err := k.Producer(kafkatest.Zstd)
	must(t, err)
	defer p.Close()
	var want []string
	appendOne := func(i int) {
		r := numbered("a", 1)[0]
		r.Value = fmt.Appendf(nil, "r%d", i)
		must(t, p.Append(ctx, r))
		want = append(want, fmt.Sprintf("%d=r%d", i, i))
	}
	for i := range 10 {
		appendOne(i)
	}
	leader, err := k.Leader(ctx, "a", 0)
	must(t, err)
	must(t, k.Kill(leader))
	for i := 10; i < 20; i++ {
		appendOne(i)
	}
	must(t, k.Restart(leader))
	heldBack(t, ctx, k, p, "a", &want)
	records, err := k.ReadCommitted(ctx, "a", 0)
	must(t, err)
	equal(t, "records", values(records), want)
	must(t, k.Stop(leader))
	now, err := k.Leader(ctx, "a", 0)
	must(t, err)
	if now == leader {
		t.Errorf("node %d leads although it is stopped", leader)
	}
}

// heldBack pauses all followers: what is appended then is in the leader's log
// and above the high watermark.
func heldBack(t *testing.T, ctx context.Context, k *kafkatest.Kafka, p *kafkatest.Producer, topic string, want *[]string) {
	t.Helper()
	leader, err := k.Leader(ctx, topic, 0)
	must(t, err)
	must(t, k.WaitInSync(ctx, topic, 0, 3))
	for node := 1; node <= 3; node++ {
		if node != leader {
			must(t, k.Pause(node))
		}
	}
	done := make(chan error, 1)
	go func() { done <- p.Append(ctx, numbered(topic, 1)...) }()
	must(t, k.WaitLogEnd(ctx, leader, topic, 0, int64(len(*want))+1))
	high, err := k.HighWatermark(ctx, leader, topic, 0)
	must(t, err)
	if high != int64(len(*want)) {
		t.Errorf("high watermark %d with paused followers, want %d", high, len(*want))
	}
	for node := 1; node <= 3; node++ {
		if node != leader {
			must(t, k.Resume(node))
		}
	}
	must(t, <-done)
	*want = append(*want, fmt.Sprintf("%d=r0", len(*want)))
}
