package replicate

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/pace"
)

const (
	producerExpiration = "producer.id.expiration.ms"

	// defaultProducerMemory is the default of producer.id.expiration.ms
	// (TransactionLogConfig).
	defaultProducerMemory = 24 * time.Hour

	// longestMemory is the largest value of the setting, which is an int.
	longestMemory = math.MaxInt32 * time.Millisecond

	// memoryMargin is how long before its end the memory of a producer is not relied on
	// any more, as nobody knows when an answer comes: half of it, and no more than this.
	memoryMargin = defaultProducerMemory / 2

	// memoryTimeout bounds for how long a start waits to be told: one broker that
	// cannot be reached is no reason not to copy to the others.
	memoryTimeout = 5 * time.Second

	// memoryInterval is how often it is asked again: it can be changed while brokers
	// run, and takes effect with their next check, every ten minutes by default
	// (producer.id.expiration.check.interval.ms).
	memoryInterval = 30 * time.Second
)

// producerMemory returns how long the target's brokers remember what a producer
// wrote last, by the records' times (ProducerStateManager.isProducerExpired): the
// shortest of their times. Where one of them does not say, it is the default at most.
func (c *cluster) producerMemory(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	brokers, err := c.admin.ListBrokers(ctx)
	if err != nil || len(brokers) == 0 {
		return defaultProducerMemory
	}
	request := kmsg.NewPtrDescribeConfigsRequest()
	for _, id := range brokers.NodeIDs() {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType = kmsg.ConfigResourceTypeBroker
		resource.ResourceName = strconv.Itoa(int(id))
		resource.ConfigNames = []string{producerExpiration}
		request.Resources = append(request.Resources, resource)
	}
	var said []time.Duration
	for _, shard := range c.client.RequestSharded(ctx, request) { // what some of them say is better than nothing
		if response, ok := shard.Resp.(*kmsg.DescribeConfigsResponse); ok && shard.Err == nil {
			said = append(said, expirations(response)...)
		}
	}
	if len(said) < len(brokers) {
		said = append(said, defaultProducerMemory)
	}
	return slices.Min(said)
}

// expirations returns the times in an answer, one for each broker that says it.
func expirations(response *kmsg.DescribeConfigsResponse) []time.Duration {
	var said []time.Duration
	for _, resource := range response.Resources {
		for _, x := range resource.Configs {
			if x.Name != producerExpiration || x.Value == nil {
				continue
			}
			if millis, err := strconv.ParseInt(*x.Value, 10, 64); err == nil {
				said = append(said, time.Duration(min(max(millis, 0), longestMemory.Milliseconds()))*time.Millisecond)
			}
		}
	}
	return said
}

// learnProducerMemory asks how long the target remembers a producer.
func (f *Flow) learnProducerMemory() {
	f.producerMemory.Store(int64(f.target.producerMemory(f.ctx)))
}

// watchProducerMemory asks again and again until the flow ends.
func (f *Flow) watchProducerMemory() {
	for pace.Pause(f.ctx, memoryInterval) == nil {
		f.learnProducerMemory()
	}
}

// stale reports whether records of a time are as old as what the target remembers of
// a producer, less a margin: state of such data may vanish at any check.
func (f *Flow) stale(timestamp int64) bool {
	remembered := time.Duration(f.producerMemory.Load())
	return timestamp < f.now().Add(min(remembered/2, memoryMargin)-remembered).UnixMilli()
}

// warnOfStaleness tells once why a target that is far away gets old records slowly, and
// what can be done about it.
func (f *Flow) warnOfStaleness() {
	f.warnOnce("stale records", "the target is far away, and may forget the producer of records so old: each partition gets one batch a round trip; "+
		"to have five, raise producer.id.expiration.ms there until they are copied (at most 2147483647, 24.8 days)",
		producerExpiration, time.Duration(f.producerMemory.Load()).Milliseconds())
}
