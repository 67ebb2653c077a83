package replicate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/connect"
	"apograph/internal/pace"
	"apograph/ledger"
)

// A topicPartition names one partition of a cluster.
type topicPartition struct {
	topic     string
	partition int32
}

func (tp topicPartition) compare(other topicPartition) int {
	return cmp.Or(cmp.Compare(tp.topic, other.topic), cmp.Compare(tp.partition, other.partition))
}

func (tp topicPartition) String() string { return fmt.Sprintf("%s-%d", tp.topic, tp.partition) }

// A leader is a partition's leader as metadata last said.
type leader struct {
	node  int32 // -1: none
	epoch int32 // -1: unknown
}

// A topicState is what metadata says about one topic.
type topicState struct {
	id       ledger.TopicID // zero: the cluster does not give ids
	err      *kerr.Error
	leaders  []leader  // by partition
	replicas int       // of partition 0
	missing  int       // refreshes in a row that did not know the topic
	since    time.Time // of the first of them
}

// A cluster is the raw view of one Kafka cluster: its topics and leaders, and
// requests sent to a partition's leader. Safe for concurrent use.
type cluster struct {
	alias  string
	id     string
	client *kgo.Client
	admin  *kadm.Client

	distance *distance

	refreshing chan struct{} // full for the whole of one metadata request; capacity 1
	mu         sync.Mutex    // guards what follows
	names      []string      // the topics to keep track of, never nil
	topics     map[string]topicState
	brokers    int
	generation int // counts refreshes
}

// openCluster dials c. The caller closes the result.
func openCluster(ctx context.Context, c connect.Cluster, options ...kgo.Opt) (*cluster, error) {
	distance := &distance{}
	client, id, err := c.Open(ctx, append(options[:len(options):len(options)], kgo.WithHooks(distance))...)
	if err != nil {
		return nil, err
	}
	return &cluster{
		alias:  c.Alias,
		id:     id,
		client: client,
		admin:  kadm.NewClient(client),
		names:  []string{},
		topics: map[string]topicState{},

		distance:   distance,
		refreshing: make(chan struct{}, 1),
	}, nil
}

func (c *cluster) close() { c.client.Close() }

// track adds topics whose leaders refresh keeps.
func (c *cluster) track(topics ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := slices.Concat(c.names, topics) // a refresh may be reading the one that there is
	slices.Sort(names)
	c.names = slices.Compact(names)
}

// untrack takes a topic out again.
func (c *cluster) untrack(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return name == topic })
}

// refresh asks for metadata, unless another caller has done so since the
// generation that this caller has seen. It returns the generation now known.
// It waits for another caller's request no longer than ctx.
func (c *cluster) refresh(ctx context.Context, seen int) (int, error) {
	select {
	case c.refreshing <- struct{}{}:
		defer func() { <-c.refreshing }()
	case <-ctx.Done():
		return seen, context.Cause(ctx)
	}
	c.mu.Lock()
	generation, names := c.generation, c.names
	c.mu.Unlock()
	if generation > seen {
		return generation, nil
	}
	topics, err := c.metadata(ctx, names)
	if err != nil {
		return generation, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range topics {
		if t.gone() {
			before := c.topics[name]
			if t.missing, t.since = before.missing+1, before.since; t.missing == 1 {
				t.since = time.Now()
			}
			topics[name] = t
		}
	}
	c.topics = topics
	c.generation++
	return c.generation, nil
}

// surveyRetries is how long a survey asks again for metadata. The client tries by
// itself, but not where the first answer on a new connection is cut off.
const surveyRetries = 5 * time.Second

// lookAt asks about topics by name, beside what is known of them; nil asks about
// all that this client may see.
func (c *cluster) lookAt(ctx context.Context, names []string) (topics map[string]topicState, err error) {
	err = c.retry(ctx, surveyRetries, func(ctx context.Context) error {
		topics, err = c.metadata(ctx, names)
		return err
	})
	return topics, err
}

// metadata asks about topics; nil asks about all that this client may see.
func (c *cluster) metadata(ctx context.Context, names []string) (map[string]topicState, error) {
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, t)
	}
	if names != nil && len(names) == 0 {
		request.Topics = []kmsg.MetadataRequestTopic{}
	}
	response, err := request.RequestWith(ctx, c.client)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: metadata: %w", c.alias, err)
	}
	topics := make(map[string]topicState, len(response.Topics))
	for _, t := range response.Topics {
		if t.Topic != nil {
			topics[*t.Topic] = topicStateOf(t)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.brokers = len(response.Brokers)
	return topics, nil
}

func topicStateOf(t kmsg.MetadataResponseTopic) topicState {
	s := topicState{id: ledger.TopicID(t.TopicID), err: kerr.TypedErrorForCode(t.ErrorCode)}
	for _, p := range t.Partitions {
		for int(p.Partition) >= len(s.leaders) {
			s.leaders = append(s.leaders, leader{-1, -1})
		}
		s.leaders[p.Partition] = leader{p.Leader, p.LeaderEpoch}
		if p.Partition == 0 {
			s.replicas = len(p.Replicas)
		}
	}
	return s
}

// topicGone is the state of a topic that is not there.
var topicGone = topicState{err: kerr.UnknownTopicOrPartition}

// gone reports whether the cluster says that there is no such topic. A broker
// that has just started may say so for a moment.
func (t topicState) gone() bool {
	return t.err == kerr.UnknownTopicOrPartition || t.err == kerr.UnknownTopicID
}

// is reports whether there is a topic that is not known to be another one than that
// of an id.
func (t topicState) is(id ledger.TopicID) bool {
	return t.err == nil && t.leaders != nil && !t.isOther(id)
}

// isOther reports whether there is a topic that is known to be another one.
func (t topicState) isOther(id ledger.TopicID) bool {
	var none ledger.TopicID
	return t.err == nil && t.id != none && id != none && t.id != id
}

// hidden reports whether the user may not know whether there is such a topic.
func (t topicState) hidden() bool { return t.err == kerr.TopicAuthorizationFailed }

// topic returns what the last refresh said about a topic.
func (c *cluster) topic(name string) (topicState, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.topics[name]
	return t, ok
}

// seen returns the generation of what is known, for refresh.
func (c *cluster) seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

// leader returns a partition's leader as last known, and the generation of
// that knowledge.
func (c *cluster) leader(tp topicPartition) (leader, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics[tp.topic]
	if int(tp.partition) >= len(t.leaders) {
		return leader{-1, -1}, c.generation
	}
	return t.leaders[tp.partition], c.generation
}

// debuggingReplica is the replica id with which a leader answers ListOffsets
// with its log end instead of the high watermark (ListOffsetsRequest.DEBUGGING_REPLICA_ID).
const debuggingReplica = -2

// Timestamps with a meaning in ListOffsets.
const (
	latestOffset   = -1
	earliestOffset = -2
)

// An offsetQuery asks a partition's leader for one offset.
type offsetQuery struct {
	replica   int32 // -1: an ordinary client, which sees the high watermark as the end
	timestamp int64
	isolation int8 // 1: the last stable offset as the end
}

// An offsetAnswer is what a leader said about one partition.
type offsetAnswer struct {
	offset int64
	err    error
}

// listOffset asks the current leader of tp for an offset.
func (c *cluster) listOffset(ctx context.Context, tp topicPartition, q offsetQuery) (int64, error) {
	l, _ := c.leader(tp)
	if l.node < 0 {
		return 0, kerr.LeaderNotAvailable
	}
	answers, err := c.askOffsets(ctx, l.node, []topicPartition{tp}, q)
	if err != nil {
		return 0, err
	}
	a, ok := answers[tp]
	if !ok {
		return 0, fmt.Errorf("%v: empty answer to ListOffsets", tp)
	}
	return a.offset, a.err
}

// listOffsets asks the leaders of all given partitions, again where an error
// may pass, for up to 30 seconds. Every partition has an answer.
func (c *cluster) listOffsets(ctx context.Context, tps []topicPartition, q offsetQuery) map[topicPartition]offsetAnswer {
	known := make(map[topicPartition]offsetAnswer, len(tps))
	err := c.retry(ctx, 30*time.Second, func(ctx context.Context) (err error) {
		byNode := map[int32][]topicPartition{}
		for _, tp := range tps {
			if a, ok := known[tp]; !ok || a.err != nil && transient(a.err) {
				l, _ := c.leader(tp)
				byNode[l.node] = append(byNode[l.node], tp)
			}
		}
		return c.askAll(ctx, known, byNode, q)
	})
	for _, tp := range tps {
		if _, ok := known[tp]; !ok {
			known[tp] = offsetAnswer{err: cmp.Or(err, error(kerr.LeaderNotAvailable))}
		}
	}
	return known
}

// askAll asks leaders, all at a time, as one that does not answer must not keep
// the others from being asked. It stores their answers and returns an error if
// any of them is worth asking again.
func (c *cluster) askAll(ctx context.Context, known map[topicPartition]offsetAnswer, byNode map[int32][]topicPartition, q offsetQuery) (err error) {
	var mu sync.Mutex // guards known and err
	var group sync.WaitGroup
	for node, asked := range byNode {
		if node < 0 {
			mu.Lock()
			err = kerr.LeaderNotAvailable
			mu.Unlock()
			continue
		}
		group.Go(func() {
			answers, failed := c.askOffsets(ctx, node, asked, q)
			mu.Lock()
			defer mu.Unlock()
			for tp, a := range answers {
				known[tp] = a
				if a.err != nil && transient(a.err) {
					failed = a.err
				}
			}
			err = cmp.Or(err, failed)
		})
	}
	group.Wait()
	return err
}

// listAll asks several questions about all partitions at a time, so that one
// partition without an answer does not use up the time of all questions.
func (c *cluster) listAll(ctx context.Context, tps []topicPartition, questions ...offsetQuery) []map[topicPartition]offsetAnswer {
	all := make([]map[topicPartition]offsetAnswer, len(questions))
	var group sync.WaitGroup
	for i, q := range questions {
		group.Go(func() { all[i] = c.listOffsets(ctx, tps, q) })
	}
	group.Wait()
	return all
}

// askOffsets asks one broker about partitions that it leads. The leader epoch
// in the question fences a broker that is leader no more.
func (c *cluster) askOffsets(ctx context.Context, node int32, tps []topicPartition, q offsetQuery) (map[topicPartition]offsetAnswer, error) {
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = q.replica
	request.IsolationLevel = q.isolation
	topics := map[string]int{}
	for _, tp := range tps {
		i, ok := topics[tp.topic]
		if !ok {
			i = len(request.Topics)
			topics[tp.topic] = i
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = tp.topic
			request.Topics = append(request.Topics, t)
		}
		l, _ := c.leader(tp)
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.Timestamp = tp.partition, l.epoch, q.timestamp
		request.Topics[i].Partitions = append(request.Topics[i].Partitions, p)
	}
	raw, err := c.client.Broker(int(node)).Request(ctx, request)
	if err != nil {
		return nil, err
	}
	answers := make(map[topicPartition]offsetAnswer, len(tps))
	for _, t := range raw.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			answers[topicPartition{t.Topic, p.Partition}] = offsetAnswer{p.Offset, kerr.ErrorForCode(p.ErrorCode)}
		}
	}
	return answers, nil
}

// logEnds returns the log ends of partitions as their leaders see them, once
// all of each is below the high watermark; both are asked each time, as a new
// leader may end lower. Where that does not come about before ctx ends, the
// answer is an error.
func (c *cluster) logEnds(ctx context.Context, tps []topicPartition) map[topicPartition]offsetAnswer {
	settled := make(map[topicPartition]offsetAnswer, len(tps))
	for len(tps) > 0 {
		all := c.listAll(ctx, tps, offsetQuery{replica: debuggingReplica, timestamp: latestOffset}, offsetQuery{replica: -1, timestamp: latestOffset})
		ends, highs := all[0], all[1]
		var open []topicPartition
		for _, tp := range tps {
			end, high := ends[tp], highs[tp]
			if end.err == nil && high.err == nil && high.offset < end.offset {
				end.err = fmt.Errorf("offsets from %d on are not replicated: %w", high.offset, kerr.NotEnoughReplicas)
				open = append(open, tp)
			}
			settled[tp] = offsetAnswer{end.offset, cmp.Or(end.err, high.err)}
		}
		if tps = open; pace.Pause(ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	return settled
}

// retry calls f until it succeeds, fails for good, or the time is up. Before
// each further call it learns the cluster's leaders anew.
func (c *cluster) retry(ctx context.Context, within time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		c.mu.Lock()
		seen := c.generation
		c.mu.Unlock()
		err := f(ctx)
		if err == nil || !transient(err) || ctx.Err() != nil {
			return err
		}
		if pace.Pause(ctx, wait) != nil {
			return err
		}
		if _, refreshErr := c.refresh(ctx, seen); refreshErr != nil && ctx.Err() != nil {
			return err
		}
	}
}

// transient reports whether an error may go away by itself. Errors without a
// Kafka code are those of connections.
func transient(err error) bool {
	if code := codeOf(err); code != nil {
		return code.Retriable || code == kerr.UnknownTopicID || code == kerr.InconsistentTopicID
	}
	return true
}

// A fetchRequest is a Fetch whose version can be held below 13, the first to
// name topics by id (KIP-516), for clusters that give none.
type fetchRequest struct {
	*kmsg.FetchRequest
	byID bool
}

func (r *fetchRequest) MaxVersion() int16 {
	if r.byID {
		return r.FetchRequest.MaxVersion()
	}
	return min(12, r.FetchRequest.MaxVersion())
}

// A produceRequest is the same for Produce. It tells when the client writes it,
// or has given it up.
type produceRequest struct {
	*kmsg.ProduceRequest
	byID       bool
	once       sync.Once
	handedOver chan struct{}
}

func (r *produceRequest) written() { r.once.Do(func() { close(r.handedOver) }) }

// AppendTo encodes the request, which the client does when its turn to be written
// has come.
func (r *produceRequest) AppendTo(b []byte) []byte {
	defer r.written()
	return r.ProduceRequest.AppendTo(b)
}

func (r *produceRequest) MaxVersion() int16 {
	if r.byID {
		return r.ProduceRequest.MaxVersion()
	}
	return min(12, r.ProduceRequest.MaxVersion())
}
