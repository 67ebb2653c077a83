package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/connect"
	"apograph/internal/pace"
	"apograph/ledger"
)

// A topicPartition names a partition of one cluster.
type topicPartition struct {
	topic     string
	partition int32
}

func (tp topicPartition) String() string { return fmt.Sprintf("%s-%d", tp.topic, tp.partition) }

func (tp topicPartition) compare(other topicPartition) int {
	return cmp.Or(cmp.Compare(tp.topic, other.topic), cmp.Compare(tp.partition, other.partition))
}

// A site is one of the two clusters, through a client that only asks what there
// is. Safe for concurrent use.
type site struct {
	name     string // "source" or "target"
	cluster  connect.Cluster
	client   *kgo.Client
	patience time.Duration
}

// openSite connects to a cluster, which must be the one of the ledger.
func openSite(ctx context.Context, name string, c connect.Cluster, clusterID string, patience time.Duration) (*site, error) {
	client, id, err := c.Open(ctx, kgo.RetryTimeout(patience), kgo.MetadataMinAge(100*time.Millisecond), kgo.DisableClientMetrics())
	if err != nil {
		return nil, err
	}
	if id != clusterID {
		client.Close()
		return nil, usageErrorf("the ledger is about another %s cluster: its id is %s, that of %s is %s", name, clusterID, c.Alias, id)
	}
	return &site{name: name, cluster: c, client: client, patience: patience}, nil
}

// close is safe to call on a site that was never opened.
func (s *site) close() {
	if s != nil {
		s.client.Close()
	}
}

// unreachable returns an error if no broker of the cluster answers.
func (s *site) unreachable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if err := s.client.Ping(ctx); err != nil {
		return &connect.UnreachableError{Alias: s.cluster.Alias, Bootstrap: s.cluster.Bootstrap, Err: err}
	}
	return nil
}

// A topicState is what the cluster says about a topic.
type topicState struct {
	id         ledger.TopicID // zero: unknown, as from brokers before 2.8
	partitions int32
	epochs     []int32 // leader epochs, by partition; -1 unknown
	err        error   // the topic is not there, or may not be seen

	compacts      bool // cleanup.policy has compact
	policyUnknown bool // cleanup.policy could not be read
	stampsTime    bool // message.timestamp.type is LogAppendTime
	remote        bool // remote.storage.enable: a part of the log may lie in remote storage
}

// epoch returns the leader epoch of a partition, -1 if it is unknown.
func (t *topicState) epoch(partition int32) int32 {
	if partition < 0 || int(partition) >= len(t.epochs) {
		return -1
	}
	return t.epochs[partition]
}

// hollow reports whether answers with nothing can mean that the end of the log
// holds nothing: a cleaner may have removed it, and all of the log is known to lie
// on its brokers' disks. Compacted is that the topic is known to have compacted
// once.
func (t *topicState) hollow(compacted bool) bool {
	return (t.compacts || compacted) && !t.policyUnknown && !t.remote
}

// gone reports whether the cluster says that there is no such topic.
func (t *topicState) gone() bool { return errors.Is(t.err, kerr.UnknownTopicOrPartition) }

// topics returns the named topics, or all that may be seen if names is nil. A
// named topic counts as not there only if several answers in a row say so: a
// broker that is behind does not know new topics yet.
func (s *site) topics(ctx context.Context, names []string) (map[string]topicState, error) {
	found, err := s.metadata(ctx, names)
	for round := 0; err == nil && round < 5; round++ {
		doubtful := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			t, ok := found[name]
			return ok && (t.err == nil || !kerr.IsRetriable(t.err))
		})
		if len(doubtful) == 0 {
			break
		}
		if err = pace.Pause(ctx, 100*time.Millisecond); err != nil {
			break
		}
		var again map[string]topicState
		again, err = s.metadata(ctx, doubtful)
		for name, t := range again {
			found[name] = t
		}
	}
	return found, err
}

func (s *site) metadata(ctx context.Context, names []string) (map[string]topicState, error) {
	request := kmsg.NewPtrMetadataRequest()
	request.AllowAutoTopicCreation = false // nothing is ever written
	if names != nil {
		request.Topics = []kmsg.MetadataRequestTopic{} // null would mean all
	}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, t)
	}
	response, err := request.RequestWith(ctx, s.client)
	if err != nil {
		return nil, s.failed(ctx, "metadata", err)
	}
	found := map[string]topicState{}
	for _, t := range response.Topics {
		if t.Topic != nil {
			state := topicState{id: ledger.TopicID(t.TopicID), partitions: int32(len(t.Partitions)), err: kerr.ErrorForCode(t.ErrorCode)}
			for _, p := range t.Partitions {
				for int(p.Partition) >= len(state.epochs) {
					state.epochs = append(state.epochs, -1)
				}
				state.epochs[p.Partition] = p.LeaderEpoch
			}
			found[*t.Topic] = state
		}
	}
	return found, nil
}

// failed returns the error for a request that no broker answered.
func (s *site) failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if gone := s.unreachable(ctx); gone != nil {
		return gone
	}
	return fmt.Errorf("cluster %s: %s: %w", s.cluster.Alias, what, err)
}

// settings fills in what the cluster says about the settings of topics. One
// that it does not tell is unknown.
func (s *site) settings(ctx context.Context, topics map[string]topicState) {
	request := kmsg.NewPtrDescribeConfigsRequest()
	for name, t := range topics {
		t.policyUnknown = true
		topics[name] = t
		if t.err == nil {
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, name
			r.ConfigNames = []string{"cleanup.policy", "message.timestamp.type", "remote.storage.enable"}
			request.Resources = append(request.Resources, r)
		}
	}
	if len(request.Resources) == 0 {
		return
	}
	for _, shard := range s.client.RequestSharded(ctx, request) {
		response, ok := shard.Resp.(*kmsg.DescribeConfigsResponse)
		if shard.Err != nil || !ok {
			continue
		}
		for _, r := range response.Resources {
			if t, ok := topics[r.ResourceName]; ok && r.ErrorCode == 0 {
				t.set(r.Configs)
				topics[r.ResourceName] = t
			}
		}
	}
}

func (t *topicState) set(configs []kmsg.DescribeConfigsResponseResourceConfig) {
	for _, c := range configs {
		switch {
		case c.Value == nil:
		case c.Name == "cleanup.policy":
			t.policyUnknown = false
			for policy := range strings.SplitSeq(*c.Value, ",") {
				t.compacts = t.compacts || strings.TrimSpace(policy) == "compact"
			}
		case c.Name == "message.timestamp.type":
			t.stampsTime = *c.Value == "LogAppendTime"
		case c.Name == "remote.storage.enable":
			t.remote = *c.Value == "true"
		}
	}
}

// Offsets to ask for by name (ListOffsetsRequest of Kafka).
const (
	earliestOffset = -2 // log start offset
	latestOffset   = -1 // high watermark, or the last stable offset at read_committed
)

// An offsetAnswer is what the leader of a partition says.
type offsetAnswer struct {
	offset int64
	err    error
}

// bounds are the offsets of one partition's log.
type bounds struct {
	start  int64 // log start offset
	stable int64 // last stable offset, at most end
	end    int64 // high watermark
	err    error // they are not known
}

// bounds asks the leaders for the ends of partitions' logs and then for their
// starts.
//
// A leader that does not know its high watermark yet, after an election, answers
// OFFSET_NOT_AVAILABLE (Partition.fetchOffsetForTimestamp): the answer never
// falls back behind what another client has seen, unless the log was cut.
func (s *site) bounds(ctx context.Context, tps []topicPartition) map[topicPartition]bounds {
	all := make(map[topicPartition]bounds, len(tps))
	for tp, a := range s.listOffsets(ctx, tps, kgo.ReadUncommitted(), latestOffset) {
		all[tp] = bounds{end: a.offset, err: a.err}
	}
	for tp, a := range s.listOffsets(ctx, known(all), kgo.ReadCommitted(), latestOffset) {
		b := all[tp]
		b.stable, b.err = min(a.offset, b.end), a.err
		all[tp] = b
	}
	for tp, a := range s.listOffsets(ctx, known(all), kgo.ReadUncommitted(), earliestOffset) {
		b := all[tp]
		b.start, b.err = a.offset, a.err
		all[tp] = b
	}
	return all
}

// reachableBounds is bounds, or the error that the cluster is gone.
func (s *site) reachableBounds(ctx context.Context, tps []topicPartition) (map[topicPartition]bounds, error) {
	all := s.bounds(ctx, tps)
	for _, b := range all {
		var answered *kerr.Error
		if b.err != nil && !errors.As(b.err, &answered) {
			return all, s.unreachable(ctx) // once is enough: either it answers or it does not
		}
	}
	return all, nil
}

// known returns the partitions without an error.
func known(all map[topicPartition]bounds) []topicPartition {
	var tps []topicPartition
	for tp, b := range all {
		if b.err == nil {
			tps = append(tps, tp)
		}
	}
	return tps
}

// listOffsets asks the leaders until each partition has an answer, a lasting
// error, or the patience ends. Every partition has an answer in the result.
func (s *site) listOffsets(ctx context.Context, tps []topicPartition, level kgo.IsolationLevel, timestamp int64) map[topicPartition]offsetAnswer {
	answers := make(map[topicPartition]offsetAnswer, len(tps))
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for asked := tps; len(asked) > 0; {
		for tp, a := range s.askOffsets(ctx, asked, level, timestamp) {
			answers[tp] = a
		}
		asked = slices.DeleteFunc(slices.Clone(asked), func(tp topicPartition) bool { return !passing(answers[tp].err) })
		if len(asked) > 0 && pace.Pause(ctx, 100*time.Millisecond) != nil {
			break
		}
	}
	return answers
}

// passing reports whether an error may go away by itself.
func passing(err error) bool {
	var code *kerr.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &code):
		return code.Retriable && !errors.Is(err, kerr.UnknownTopicOrPartition)
	default:
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
}

var errNoAnswer = errors.New("no answer")

func (s *site) askOffsets(ctx context.Context, tps []topicPartition, level kgo.IsolationLevel, timestamp int64) map[topicPartition]offsetAnswer {
	answers := make(map[topicPartition]offsetAnswer, len(tps))
	for _, tp := range tps {
		answers[tp] = offsetAnswer{err: errNoAnswer}
	}
	for _, shard := range s.client.RequestSharded(ctx, offsetsRequest(tps, level, timestamp)) {
		if request, ok := shard.Req.(*kmsg.ListOffsetsRequest); ok && shard.Err != nil {
			for _, t := range request.Topics {
				for _, p := range t.Partitions {
					answers[topicPartition{t.Topic, p.Partition}] = offsetAnswer{err: shard.Err}
				}
			}
			continue
		}
		response, ok := shard.Resp.(*kmsg.ListOffsetsResponse)
		if !ok {
			continue
		}
		for _, t := range response.Topics {
			for _, p := range t.Partitions {
				a := offsetAnswer{offset: p.Offset, err: kerr.ErrorForCode(p.ErrorCode)}
				if a.err == nil && a.offset < 0 {
					a.err = errNoAnswer
				}
				answers[topicPartition{t.Topic, p.Partition}] = a
			}
		}
	}
	return answers
}

func offsetsRequest(tps []topicPartition, level kgo.IsolationLevel, timestamp int64) *kmsg.ListOffsetsRequest {
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	if level == kgo.ReadCommitted() {
		request.IsolationLevel = 1
	}
	index := map[string]int{}
	for _, tp := range tps {
		i, ok := index[tp.topic]
		if !ok {
			i = len(request.Topics)
			index[tp.topic] = i
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = tp.topic
			request.Topics = append(request.Topics, t)
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = tp.partition, timestamp
		request.Topics[i].Partitions = append(request.Topics[i].Partitions, p)
	}
	return request
}
