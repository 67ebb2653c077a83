//go:build kafka

package replicate

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/internal/pace"
)

// TestKafkaProducerMemory: brokers answer with what producer.id.expiration.ms is now,
// also when it was changed while they run, and for how long it can be.
func TestKafkaProducerMemory(t *testing.T) {
	k := kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "memory", Nodes: 2})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := openCluster(ctx, connect.Cluster{Alias: "target", Bootstrap: k.Addresses})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if got := c.producerMemory(ctx); got != defaultProducerMemory {
		t.Errorf("remembered for %v by default, want %v", got, defaultProducerMemory)
	}
	longest := "2147483647"
	set := func(op kadm.IncrementalOp, value *string, brokers ...int32) {
		answers, err := c.admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: producerExpiration, Value: value}}, brokers...)
		if err != nil || answers[0].Err != nil {
			t.Fatalf("alter: %v, %+v", err, answers)
		}
	}
	set(kadm.SetConfig, &longest)
	awaitMemory(ctx, t, c, longestMemory)
	hour := "3600000"
	set(kadm.SetConfig, &hour, 2) // one of the two
	awaitMemory(ctx, t, c, time.Hour)
}

// awaitMemory waits until all brokers have learnt what the controller knows.
func awaitMemory(ctx context.Context, t *testing.T, c *cluster, want time.Duration) {
	for {
		got := c.producerMemory(ctx)
		if got == want {
			return
		}
		if pace.Pause(ctx, 50*time.Millisecond) != nil {
			t.Fatalf("remembered for %v, want %v", got, want)
		}
	}
}
