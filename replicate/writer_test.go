package replicate_test

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// TestBatchesOfAPartitionStayInOrder: with more than one in flight, batches of a
// partition reach the broker in the order of their sequence numbers, and more than
// one is on its way at a time.
func TestBatchesOfAPartitionStayInOrder(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{TargetBrokers: 1})
	load := kafkatest.Load{Seed: 7, Topics: []string{"t"}, Partitions: 4, Records: 6000, MaxValueBytes: 30_000}
	if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	if err := pair.Target.CreateTopic(t.Context(), "t", 4, nil); err != nil {
		t.Fatal(err)
	}
	var (
		mu       sync.Mutex
		last     = map[int32]uint32{}
		disorder int
		batches  int
	)
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Delay: 1, When: func(r kmsg.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range r.(*kmsg.ProduceRequest).Topics[0].Partitions {
			sequence := binary.BigEndian.Uint32(p.Records[53:])
			if sequence < last[p.Partition] {
				disorder++
			}
			last[p.Partition] = sequence
			batches++
		}
		return false
	}})
	config := configFor(t, pair, "t")
	config.Window = 5
	mustComplete(t, pair, config)
	if disorder > 0 || batches < 50 {
		t.Errorf("%d of %d batches came behind a later one", disorder, batches)
	}
	t.Logf("%d batches", batches)
}
