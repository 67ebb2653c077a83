//go:build kafka

package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreateAssigned creates a topic whose partitions stand on the nodes that are
// named for each, the preferred leader first, and returns when each has that
// leader.
func (k *Kafka) CreateAssigned(ctx context.Context, topic string, configs map[string]string, replicas ...[]int32) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = 30_000
	asked := kmsg.NewCreateTopicsRequestTopic()
	asked.Topic, asked.NumPartitions, asked.ReplicationFactor = topic, -1, -1
	for i, nodes := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), nodes
		asked.ReplicaAssignment = append(asked.ReplicaAssignment, a)
	}
	for name, value := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, &value
		asked.Configs = append(asked.Configs, c)
	}
	request.Topics = append(request.Topics, asked)
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	for _, t := range response.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return waitLeaders(ctx, client, topic, len(replicas))
}

// DeleteTopic deletes a topic and returns when no broker has it any more.
func (k *Kafka) DeleteTopic(ctx context.Context, topic string) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).DeleteTopic(ctx, topic); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	for _, address := range k.Addresses {
		if err := k.waitGone(ctx, address, topic); err != nil {
			return err
		}
	}
	return nil
}

// waitGone returns when one broker's metadata do not have a topic.
func (k *Kafka) waitGone(ctx context.Context, address, topic string) error {
	client, err := k.Client(kgo.SeedBrokers(address))
	if err != nil {
		return err
	}
	defer client.Close()
	return poll(ctx, 50*time.Millisecond, func() error {
		_, err := topicMetadata(ctx, client, topic)
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil
		}
		return fmt.Errorf("topic %s is still there (%w)", topic, err)
	})
}

// AddPartitions gives a topic more partitions and returns when all have leaders.
func (k *Kafka) AddPartitions(ctx context.Context, topic string, total int) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	answers, err := kadm.NewClient(client).UpdatePartitions(ctx, total, topic)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("add partitions to %s: %w", topic, err)
	}
	return waitLeaders(ctx, client, topic, total)
}

// SetTopicConfig changes one setting of a topic.
func (k *Kafka) SetTopicConfig(ctx context.Context, topic, name, value string) error {
	return k.alterTopic(ctx, topic, name, value)
}

// LimitClients has the brokers throttle every client that writes more bytes a
// second: the answer to a request that is carried out then says how long to
// wait, and the connection is not read meanwhile (KIP-219). 0 lifts the limit.
func (k *Kafka) LimitClients(ctx context.Context, bytesPerSecond float64) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	answers, err := kadm.NewClient(client).AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id"}}, // the default of all
		Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: bytesPerSecond, Remove: bytesPerSecond == 0}},
	}})
	if err != nil {
		return fmt.Errorf("limit clients: %w", err)
	}
	for _, answer := range answers {
		if answer.Err != nil {
			return fmt.Errorf("limit clients: %w: %s", answer.Err, answer.ErrMessage)
		}
	}
	return nil
}

// ActiveProducers asks the leader of a partition how many producers it knows
// (DescribeProducers).
func (k *Kafka) ActiveProducers(ctx context.Context, topic string, partition int32) (int, error) {
	client, err := k.Client()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	topics := kadm.TopicsSet{}
	topics.Add(topic, partition)
	described, err := kadm.NewClient(client).DescribeProducers(ctx, topics)
	if err != nil {
		return 0, fmt.Errorf("producers of %s:%d: %w", topic, partition, err)
	}
	found := described[topic].Partitions[partition]
	return len(found.ActiveProducers), found.Err
}

// WaitInSyncEverywhere returns when every partition of every topic, the brokers'
// own ones too, has a leader and all its replicas in sync: then any one broker
// may be lost without a loss of records.
func (k *Kafka) WaitInSyncEverywhere(ctx context.Context) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	return poll(ctx, 200*time.Millisecond, func() error {
		asked, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		request := kmsg.NewPtrMetadataRequest()
		request.Topics = nil // all
		metadata, err := request.RequestWith(asked, client)
		if err != nil {
			return err
		}
		if len(metadata.Brokers) < len(k.nodes) {
			return fmt.Errorf("%s has %d brokers of %d", k.options.Name, len(metadata.Brokers), len(k.nodes))
		}
		for _, t := range metadata.Topics {
			for _, p := range t.Partitions {
				if p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
					return fmt.Errorf("%s:%d of %s has leader %d and %d of %d replicas in sync",
						*t.Topic, p.Partition, k.options.Name, p.Leader, len(p.ISR), len(p.Replicas))
				}
			}
		}
		return nil
	})
}

// WaitLeader returns when a partition's leader is not the node, and says which
// it is.
func (k *Kafka) WaitLeader(ctx context.Context, topic string, partition int32, not int) (int, error) {
	leader := not
	err := poll(ctx, 50*time.Millisecond, func() error {
		asked, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		var err error
		if leader, err = k.Leader(asked, topic, partition); err == nil && leader == not {
			err = fmt.Errorf("node %d still leads %s:%d", not, topic, partition)
		}
		return err
	})
	return leader, err
}

// WaitInSyncAre returns when a partition's in-sync replicas are one node alone.
func (k *Kafka) WaitInSyncAre(ctx context.Context, topic string, partition int32, node int) error {
	return k.waitInSync(ctx, topic, partition, func(isr []int32) error {
		if len(isr) != 1 || int(isr[0]) != node {
			return fmt.Errorf("node %d is not alone in sync of %s:%d", node, topic, partition)
		}
		return nil
	})
}
