package kafkatest

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A selector picks topics and partitions in requests and answers, which name a
// topic by its name, its id (KIP-516), or both.
type selector struct {
	topic      string // "" is any
	id         [16]byte
	partitions []int32 // nil is any
}

func (s *selector) matches(topic string, id [16]byte, partition int32) bool {
	if s.topic == "" {
		return true
	}
	named := topic == s.topic || (topic == "" && id == s.id)
	return named && (len(s.partitions) == 0 || slices.Contains(s.partitions, partition))
}

// requested reports whether the request asks for something that s selects.
func (s *selector) requested(request kmsg.Request) bool {
	if s.topic == "" {
		return true
	}
	switch r := request.(type) {
	case *kmsg.ProduceRequest:
		return slices.ContainsFunc(r.Topics, func(t kmsg.ProduceRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.ProduceRequestTopicPartition) bool {
				return s.matches(t.Topic, t.TopicID, p.Partition)
			})
		})
	case *kmsg.FetchRequest:
		return slices.ContainsFunc(r.Topics, func(t kmsg.FetchRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.FetchRequestTopicPartition) bool {
				return s.matches(t.Topic, t.TopicID, p.Partition)
			})
		})
	case *kmsg.ListOffsetsRequest:
		return slices.ContainsFunc(r.Topics, func(t kmsg.ListOffsetsRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.ListOffsetsRequestTopicPartition) bool {
				return s.matches(t.Topic, [16]byte{}, p.Partition)
			})
		})
	default:
		return false
	}
}

// A rule is a fault that is in place.
type rule struct {
	fault   Fault
	of      selector
	removed chan struct{} // closed by Remove: ends delays
	once    sync.Once

	mu     sync.Mutex // guards what follows
	rng    *rand.Rand
	seen   int // selected requests so far
	hits   int
	notify chan struct{} // closed and replaced at every hit
	last   kmsg.Request  // the request decided last, and how: kfake asks once for each partition
	hit    bool
	kept   []strayRequest // of Stray, not delivered yet
}

func newRule(f Fault, of selector) *rule {
	return &rule{
		fault: f, of: of,
		removed: make(chan struct{}), notify: make(chan struct{}),
		rng: rand.New(rand.NewPCG(f.Seed, 0)),
	}
}

func (r *rule) concerns(topic string, id [16]byte, partition int32) bool {
	return r.of.matches(topic, id, partition)
}

// selects reports whether the fault is about e at all.
func (r *rule) selects(e *exchange) bool {
	return int16(r.fault.Key) == e.key &&
		(len(r.fault.Nodes) == 0 || slices.Contains(r.fault.Nodes, e.node)) &&
		e.request != nil && !isOwn(e.request) && r.of.requested(e.request) &&
		(r.fault.When == nil || r.fault.When(e.request))
}

// take decides about one selected request, and always the same way about the
// same one.
func (r *rule) take(request kmsg.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == request {
		return r.hit
	}
	r.last, r.hit = request, false
	r.seen++
	if r.seen <= r.fault.Skip || (r.fault.Count >= 0 && r.hits >= max(r.fault.Count, 1)) {
		return false
	}
	if r.fault.Share > 0 && r.rng.Float64() >= r.fault.Share {
		return false
	}
	r.hit = true
	r.hits++
	close(r.notify)
	r.notify = make(chan struct{})
	return true
}

// match returns the rules that hit a request, by when they act.
func (w *wire) match(e *exchange) (before, after []*rule) {
	w.mu.Lock()
	rules := slices.Clone(w.rules)
	w.mu.Unlock()
	for _, r := range rules {
		if !r.fault.onWire() || !r.selects(e) || !r.take(e.request) {
			continue
		}
		if r.fault.Kind == CutBefore || r.fault.Kind == DelayBefore || r.fault.Kind == Stray {
			before = append(before, r)
		} else {
			after = append(after, r)
		}
	}
	return before, after
}
