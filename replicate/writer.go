package replicate

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/ledger"
)

const (
	produceBytes = 4 << 20 // of batches in one request, or one batch if larger
	nearRequests = 2       // in flight per broker: it works one at a time, the next one hides the way there
	farRequests  = 5       // over a distance, where the way is long
)

// A writer produces units raw, each as the one batch of its partition in a
// request, and posts the answer to the partition. Units of many partitions
// share a request. It holds no state about them: what an answer means is the
// partition's business.
//
// Units of a partition reach a broker in the order in which they were sent: a
// request is handed over only when the one before it has been written. The
// client writes the requests for one broker in one goroutine, in the order in
// which they come to it, on one connection.
type writer struct {
	flow    *Flow
	cluster *cluster

	mu     sync.Mutex
	queues map[int32]*queue // by leader
}

// A queue is what waits for one broker. Guarded by writer.mu.
type queue struct {
	parcels  []parcel
	sending  bool          // a goroutine hands over requests
	inFlight chan struct{} // full with as many as may be
}

type parcel struct {
	p *partition
	u *unit
}

// send queues u for its partition's leader. Without one the unit comes back as
// not appended.
func (w *writer) send(p *partition, u *unit) {
	l, _ := w.cluster.leader(p.target)
	if l.node < 0 {
		p.post(event{sent: u, answer: answer{outcome: notAppended, detail: "no leader"}})
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[l.node]
	if q == nil {
		q = &queue{inFlight: make(chan struct{}, w.requests())}
		w.queues[l.node] = q
	}
	q.parcels = append(q.parcels, parcel{p, u})
	if !q.sending {
		q.sending = true
		w.flow.group.Go(func() { w.drain(l.node, q) })
	}
}

// requests is how many requests to a broker may be in flight. Where fewer are, more
// partitions share one, and it is requests that cost a broker most.
func (w *writer) requests() int {
	if w.cluster.distance.far() {
		return farRequests
	}
	return nearRequests
}

// drain hands over requests, one after the other, until the queue is empty. When
// the flow ends, what has not been sent is not sent any more.
func (w *writer) drain(node int32, q *queue) {
	for {
		q.inFlight <- struct{}{}
		w.mu.Lock()
		parcels := q.take()
		if len(parcels) == 0 {
			q.sending = false
			<-q.inFlight
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		if w.flow.draining() {
			for _, x := range parcels {
				x.p.post(event{sent: x.u, answer: answer{outcome: notAppended, detail: "the flow is ending"}})
			}
			<-q.inFlight
			continue
		}
		request := produceRequestFor(parcels, w.flow.config.ProduceTimeout)
		w.flow.group.Go(func() {
			w.produce(node, parcels, request)
			request.written()
			<-q.inFlight
		})
		<-request.handedOver
	}
}

// take removes what goes into one request: at most one unit of a partition.
func (q *queue) take() []parcel {
	var (
		bytes int
		taken []parcel
		left  []parcel
		seen  = map[*partition]bool{}
	)
	for _, x := range q.parcels {
		if seen[x.p] || len(taken) > 0 && bytes+len(x.u.batch) > produceBytes {
			left = append(left, x)
			continue
		}
		seen[x.p] = true
		bytes += len(x.u.batch)
		taken = append(taken, x)
	}
	q.parcels = left
	return taken
}

// produce sends one request and posts the answers. It outlives the flow's
// context: an answer on its way is worth waiting for.
func (w *writer) produce(node int32, parcels []parcel, request *produceRequest) {
	ctx := context.WithoutCancel(w.flow.ctx)
	raw, err := w.cluster.client.Broker(int(node)).Request(ctx, request)
	if err != nil {
		for _, x := range parcels {
			x.p.post(event{sent: x.u, answer: answer{outcome: unknown, detail: err.Error()}})
		}
		return
	}
	answers := answersIn(parcels, raw.(*kmsg.ProduceResponse))
	for _, x := range parcels {
		a, ok := answers[x.p.target]
		if !ok {
			a = answer{outcome: unknown, detail: "the broker's answer leaves the partition out"}
		}
		x.p.post(event{sent: x.u, answer: a})
	}
}

func produceRequestFor(parcels []parcel, timeout time.Duration) *produceRequest {
	request := kmsg.NewPtrProduceRequest()
	request.Acks = -1
	request.TimeoutMillis = int32(timeout.Milliseconds())
	byID := true
	topics := map[string]int{}
	for _, x := range parcels {
		id := x.p.pair.TargetTopicID
		byID = byID && id != ledger.TopicID{}
		i, ok := topics[x.p.target.topic]
		if !ok {
			i = len(request.Topics)
			topics[x.p.target.topic] = i
			t := kmsg.NewProduceRequestTopic()
			t.Topic, t.TopicID = x.p.target.topic, id
			request.Topics = append(request.Topics, t)
		}
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Partition = x.p.target.partition
		partition.Records = x.u.batch
		request.Topics[i].Partitions = append(request.Topics[i].Partitions, partition)
	}
	return &produceRequest{ProduceRequest: request, byID: byID, handedOver: make(chan struct{})}
}

func answersIn(parcels []parcel, response *kmsg.ProduceResponse) map[topicPartition]answer {
	names := map[ledger.TopicID]string{}
	for _, x := range parcels {
		names[x.p.pair.TargetTopicID] = x.p.target.topic
	}
	answers := map[topicPartition]answer{}
	for _, t := range response.Topics {
		name := t.Topic
		if name == "" {
			name = names[ledger.TopicID(t.TopicID)]
		}
		for _, p := range t.Partitions {
			answers[topicPartition{name, p.Partition}] = classifyProduce(p.ErrorCode, p.BaseOffset, detailOf(p))
		}
	}
	return answers
}

func detailOf(p kmsg.ProduceResponseTopicPartition) string {
	detail := ""
	if p.ErrorMessage != nil {
		detail = *p.ErrorMessage
	}
	for _, r := range p.ErrorRecords {
		if r.ErrorMessage != nil {
			return joinDetail(detail, *r.ErrorMessage)
		}
	}
	return detail
}
