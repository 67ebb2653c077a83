package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/bench/workload"
)

// Limits of a produce request that fills a topic: one batch for each of so many
// partitions.
const (
	fillLanes        = 4
	fillRequestBytes = 1 << 20
)

// fill appends batches to the partitions of a topic in turn, each as it is, until
// so many bytes of keys and values are there. It does not matter to a copy in
// which order.
func fill(ctx context.Context, servers, topic string, partitions int, batches []workload.Batch, payload int64) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(servers, ",")...))
	if err != nil {
		return err
	}
	defer client.Close()
	t, err := topicOf(ctx, client, topic)
	if err != nil {
		return err
	}
	f := filler{client: client, topic: t, partitions: partitions, batches: batches, left: payload}
	errs := make([]error, min(fillLanes, partitions))
	var wait sync.WaitGroup
	for lane := range errs {
		wait.Go(func() { errs[lane] = f.run(ctx, lane, len(errs)) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("fill %s: %w", topic, err)
		}
	}
	return nil
}

func topicOf(ctx context.Context, client *kgo.Client, topic string) (kadm.TopicDetail, error) {
	details, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err != nil {
		return kadm.TopicDetail{}, err
	}
	return details[topic], details[topic].Err
}

// A filler hands out batches to lanes; each lane has partitions of its own.
type filler struct {
	client     *kgo.Client
	topic      kadm.TopicDetail
	partitions int
	batches    []workload.Batch

	mu   sync.Mutex // guards what follows
	left int64      // bytes of keys and values
	next int
}

// take returns the next batch; false if enough has been handed out.
func (f *filler) take() (workload.Batch, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left <= 0 {
		return workload.Batch{}, false
	}
	b := f.batches[f.next%len(f.batches)]
	f.next++
	f.left -= int64(b.Payload)
	return b, true
}

func (f *filler) run(ctx context.Context, lane, lanes int) error {
	var own []int32
	for p := lane; p < f.partitions; p += lanes {
		own = append(own, int32(p))
	}
	for at := 0; ; {
		t := kmsg.NewProduceRequestTopic()
		t.Topic, t.TopicID = f.topic.Topic, [16]byte(f.topic.ID)
		for size := 0; len(t.Partitions) < len(own) && size < fillRequestBytes; at++ {
			b, ok := f.take()
			if !ok {
				break
			}
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition, p.Records = own[at%len(own)], b.Bytes
			t.Partitions = append(t.Partitions, p)
			size += len(b.Bytes)
		}
		if len(t.Partitions) == 0 {
			return nil
		}
		if err := f.produce(ctx, t); err != nil {
			return err
		}
	}
}

// produce sends batches until the broker has taken each: one that has only just
// become a partition's leader, or is busy, refuses.
func (f *filler) produce(ctx context.Context, t kmsg.ProduceRequestTopic) error {
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for {
		refused, err := f.send(ctx, t)
		if err != nil || len(refused) == 0 {
			return err
		}
		t.Partitions = refused
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-retry.C:
		}
	}
}

// send returns the batches that have been refused for a while.
func (f *filler) send(ctx context.Context, t kmsg.ProduceRequestTopic) ([]kmsg.ProduceRequestTopicPartition, error) {
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis = -1, 30_000
	request.Topics = append(request.Topics, t)
	leader := f.topic.Partitions[t.Partitions[0].Partition].Leader
	answer, err := f.client.Broker(int(leader)).Request(ctx, request)
	if err != nil {
		return nil, err
	}
	response, ok := answer.(*kmsg.ProduceResponse)
	if !ok || len(response.Topics) != 1 {
		return nil, fmt.Errorf("unexpected answer %T", answer)
	}
	refused := make(map[int32]bool)
	for _, p := range response.Topics[0].Partitions {
		if err := kerr.ErrorForCode(p.ErrorCode); kerr.IsRetriable(err) {
			refused[p.Partition] = true
		} else if err != nil {
			return nil, fmt.Errorf("partition %d: %w", p.Partition, err)
		}
	}
	return slices.DeleteFunc(slices.Clone(t.Partitions), func(p kmsg.ProduceRequestTopicPartition) bool {
		return !refused[p.Partition]
	}), nil
}
