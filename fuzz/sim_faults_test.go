package fuzz

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// simRequests are the requests that faults hit, the more often the more there
// are of a kind.
var simRequests = []kmsg.Key{
	kmsg.Produce, kmsg.Produce, kmsg.Produce, kmsg.Produce, kmsg.Fetch, kmsg.Fetch, kmsg.Fetch, kmsg.ListOffsets, kmsg.ListOffsets,
	kmsg.Metadata, kmsg.OffsetForLeaderEpoch, kmsg.InitProducerID, kmsg.CreateTopics, kmsg.CreatePartitions, kmsg.DescribeConfigs,
	kmsg.IncrementalAlterConfigs, kmsg.EndTxn,
}

// simErrorsBefore are what a broker may say in place of an effect.
var simErrorsBefore = map[kmsg.Key][]*kerr.Error{
	kmsg.Produce:     {kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.RequestTimedOut, kerr.UnknownTopicOrPartition, kerr.KafkaStorageError, kerr.TopicAuthorizationFailed},
	kmsg.Fetch:       {kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.OffsetNotAvailable, kerr.KafkaStorageError, kerr.TopicAuthorizationFailed},
	kmsg.ListOffsets: {kerr.NotLeaderForPartition, kerr.OffsetNotAvailable, kerr.LeaderNotAvailable},
	kmsg.Metadata:    {kerr.LeaderNotAvailable},
}

// simErrorsAfter are what it may say after the effect of a Produce.
var simErrorsAfter = []*kerr.Error{kerr.NotLeaderForPartition, kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.KafkaStorageError}

// fault puts a fault in place for some seconds: one of every kind, on either
// side, hitting a few requests.
func (w *simWorld) fault(rng *rand.Rand) {
	c, side := w.pair.Target, "target"
	if rng.IntN(5) < 2 {
		c, side = w.pair.Source, "source"
	}
	f := kafkatest.Fault{
		Kind: kafkatest.FaultKind(1 + rng.IntN(6)), Key: simRequests[rng.IntN(len(simRequests))],
		Skip: max(rng.IntN(5)-2, 0), Count: 1 + rng.IntN(4), Share: min(0.4+rng.Float64(), 1), Seed: rng.Uint64(),
	}
	switch f.Kind {
	case kafkatest.ErrorBefore:
		w.errorBefore(&f, rng)
		if c == w.pair.Source && f.Key == kmsg.Produce && !f.Err.Retriable {
			f.Err = kerr.NotLeaderForPartition // the history's producers go on
		}
	case kafkatest.ErrorAfter:
		f.Key, f.Err = kmsg.Produce, simErrorsAfter[rng.IntN(len(simErrorsAfter))]
	case kafkatest.DelayBefore, kafkatest.DelayAfter:
		f.Delay = time.Duration(1+rng.IntN(4000)) * time.Millisecond
	}
	h, err := c.Fault(f)
	w.must(err)
	w.faults = append(w.faults, h)
	time.AfterFunc(time.Duration(rng.IntN(8000))*time.Millisecond, h.Remove)
	w.say("%v of %v on the %s, %d times after %d, error %v, delay %v", f.Kind, f.Key.Name(), side, f.Count, f.Skip, f.Err, f.Delay)
}

// errorBefore chooses a code that fits the request, or a request that has one.
func (w *simWorld) errorBefore(f *kafkatest.Fault, rng *rand.Rand) {
	codes := simErrorsBefore[f.Key]
	if len(codes) == 0 {
		f.Key, codes = kmsg.Produce, simErrorsBefore[kmsg.Produce]
	}
	f.Err = codes[rng.IntN(len(codes))]
}

// simSpin is how many requests of one kind one cluster gets at one instant of the
// fake clock before somebody is taken to ask without a pause. Time would then
// stand still for ever.
const simSpin = 1000

// watchSpinning fails the test when somebody asks the same again and again
// without a pause, and cuts the connection, which makes the copier pause.
func (w *simWorld) watchSpinning() {
	for side, c := range map[string]*kafkatest.Cluster{"source": w.pair.Source, "target": w.pair.Target} {
		for _, key := range []kmsg.Key{kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetForLeaderEpoch} {
			var mu sync.Mutex
			var at time.Time
			count := 0
			spins := func(request kmsg.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				if now := time.Now(); !now.Equal(at) {
					at, count = now, 0
				}
				count++
				if count >= simSpin && count < simSpin+4 {
					w.t.Errorf("[%v] the %s gets one %s after the other without a pause: %+v", at.Sub(w.began), side, key.Name(), request)
				}
				return count > simSpin
			}
			_, err := c.Fault(kafkatest.Fault{Kind: kafkatest.CutBefore, Key: key, Count: -1, When: spins})
			w.must(err)
		}
	}
}
