package replicate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// partitionsOf returns how many partitions a topic has.
func partitionsOf(t *testing.T, c *kafkatest.Cluster, topic string) int {
	t.Helper()
	topics, err := admin(t, c.Bootstrap).ListTopics(t.Context(), topic)
	if err != nil || topics[topic].Err != nil {
		t.Fatal(err, topics[topic].Err)
	}
	return len(topics[topic].Partitions)
}

// TestPartitionLayouts: the target has at least the source's partitions, also
// those that hold nothing, and keeps those that it has more.
func TestPartitionLayouts(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	create := func(c *kafkatest.Cluster, topic string, n int32) {
		t.Helper()
		if err := c.CreateTopic(t.Context(), topic, n, nil); err != nil {
			t.Fatal(err)
		}
	}
	create(pair.Source, "grows", 4)
	create(pair.Target, "grows", 2)
	create(pair.Source, "fewer", 3)
	create(pair.Target, "fewer", 5)
	create(pair.Source, "one", 3)
	create(pair.Source, "none", 2)
	mustAppend(t, pair.Source.Bootstrap, slices.Concat(on("grows", 3, 0, 5), on("fewer", 2, 0, 4), on("one", 1, 0, 7))...)
	config := configFor(t, pair, "grows", "fewer", "one", "none")
	plan, err := replicate.MakePlan(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := planTopic(t, plan, "fewer").Warnings; len(w) != 1 || !strings.Contains(w[0], "has 5 partitions, the source 3") {
		t.Errorf("warnings %q", w)
	}
	mustRun(t, config)
	for topic, want := range map[string]int{"grows": 4, "fewer": 5, "one": 3, "none": 2} {
		if got := partitionsOf(t, pair.Target, topic); got != want {
			t.Errorf("topic %s has %d partitions on the target, want %d", topic, got, want)
		}
	}
	for p := int32(3); p < 5; p++ {
		if b, err := pair.Target.ReadBounds(context.WithoutCancel(t.Context()), "fewer", p); err != nil || b.HighWatermark != 0 {
			t.Errorf("fewer-%d: %+v, %v", p, b, err)
		}
	}
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("grows", "one", "none"))
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}
