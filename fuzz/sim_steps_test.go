package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// A simWriter is a producer, with its transaction if it is transactional.
type simWriter struct {
	*kafkatest.Producer
	open bool
}

func (w *simWorld) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.t.Context(), d)
}

func (w *simWorld) topic(rng *rand.Rand) *simTopic {
	if len(w.topics) == 0 {
		return nil
	}
	return w.topics[rng.IntN(len(w.topics))]
}

// chunk makes what a producer sends at once, for one to three partitions.
func (w *simWorld) chunk(rng *rand.Rand) []*kgo.Record {
	var records []*kgo.Record
	for range 1 + rng.IntN(3) {
		topic := w.topic(rng)
		if topic == nil {
			return nil
		}
		partition, n := rng.Int32N(topic.partitions), 1+rng.IntN(8)
		if rng.IntN(8) == 0 {
			n = 1 + rng.IntN(100)
		}
		for range n {
			records = append(records, w.record(topic, partition, rng))
		}
	}
	return records
}

// record makes a record whose timestamp no other record of the history has.
func (w *simWorld) record(topic *simTopic, partition int32, rng *rand.Rand) *kgo.Record {
	w.records++
	eras := []int64{0, 86_400_000, 946_684_800_000, 946_684_800_000, 946_684_800_000, 946_684_800_000 - 36*3_600_000, 4_102_444_800_000}
	r := &kgo.Record{
		Topic: topic.name, Partition: partition,
		Timestamp: time.UnixMilli(eras[rng.IntN(len(eras))] + w.records),
		Key:       fmt.Appendf(nil, "key-%d", rng.IntN(12)),
		Value:     fmt.Appendf(nil, "value-%d", rng.Uint64()),
	}
	switch dice := rng.IntN(16); {
	case dice == 0:
		r.Value = nil
	case dice == 1:
		r.Value = []byte{}
	case dice == 2:
		r.Value = make([]byte, rng.IntN(40_000))
	case dice == 3:
		r.Key = []byte{}
	case dice == 4 && !topic.compacts:
		r.Key = nil
	case dice == 5:
		r.Headers = []kgo.RecordHeader{{Key: "h", Value: nil}, {Key: "", Value: []byte{}}, {Key: "h", Value: []byte("v")}}
	}
	return r
}

func (w *simWorld) produce(rng *rand.Rand) {
	if records := w.chunk(rng); len(records) > 0 {
		w.append(records, rng)
	}
}

// append writes records through the plain producer of some codec.
func (w *simWorld) append(records []*kgo.Record, rng *rand.Rand) {
	codec := kafkatest.Codecs()[rng.IntN(len(kafkatest.Codecs()))]
	p := w.writers[codec.String()]
	if p == nil {
		made, err := w.pair.Source.Producer(codec)
		w.must(err)
		p = &simWriter{Producer: made}
		w.writers[codec.String()] = p
	}
	ctx, cancel := w.within(2 * time.Minute)
	defer cancel()
	w.must(p.Append(ctx, records...))
	w.say("produced %d records, %v", len(records), codec)
}

// transaction takes one step in one of three transactional producers. What
// fails there is left open, until the next producer of that id ends it.
func (w *simWorld) transaction(rng *rand.Rand) {
	records := w.chunk(rng)
	if len(records) == 0 {
		return
	}
	id := fmt.Sprintf("tx-%d", rng.IntN(3))
	ctx, cancel := w.within(2 * time.Minute)
	defer cancel()
	p := w.writers[id]
	if p == nil {
		made, err := w.pair.Source.TransactionalProducer(id, kafkatest.Codecs()[rng.IntN(len(kafkatest.Codecs()))])
		w.must(err)
		p = &simWriter{Producer: made}
		w.writers[id] = p
	}
	var err error
	what := ""
	switch dice := rng.IntN(10); {
	case !p.open || dice < 3:
		if !p.open {
			w.must(p.Begin())
		}
		p.open, what = true, fmt.Sprintf("appended %d records", len(records))
		err = p.Append(ctx, records...)
	case dice < 9:
		what = fmt.Sprintf("ended, commit %t", dice < 7)
		p.open = false
		err = p.End(ctx, dice < 7)
	default:
		what, err = "abandoned", errors.New("on purpose")
	}
	if err != nil {
		p.Close()
		delete(w.writers, id)
	}
	w.say("transaction of %s: %s (%v)", id, what, err)
}

// endTransactions ends what is open, also where its producer is gone.
func (w *simWorld) endTransactions() {
	ctx, cancel := w.within(5 * time.Minute)
	defer cancel()
	for i := range 3 {
		id := fmt.Sprintf("tx-%d", i)
		if p := w.writers[id]; p != nil && p.open && p.End(ctx, i%2 == 0) == nil {
			continue
		}
		client, err := w.pair.Source.Client()
		w.must(err)
		request := kmsg.NewPtrInitProducerIDRequest()
		request.TransactionalID, request.TransactionTimeoutMillis, request.ProducerID, request.ProducerEpoch = &id, 60_000, -1, -1
		w.eventually("end the transaction of "+id, func() error {
			response, err := request.RequestWith(ctx, client)
			if err != nil {
				return err
			}
			return kerr.ErrorForCode(response.ErrorCode)
		})
		client.Close()
	}
	for _, t := range w.topics {
		w.eventually("end the transactions of "+t.name, func() error { return w.pair.Source.WaitDecided(ctx, t.name) })
	}
}

// eventually repeats what faults may have failed.
func (w *simWorld) eventually(what string, f func() error) {
	w.t.Helper()
	deadline := time.Now().Add(simPatience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: %v", what, err)
		}
		simWait(w.t, 50*time.Millisecond)
	}
}

func (w *simWorld) createTopic(rng *rand.Rand) {
	if len(w.topics) == 4 {
		return
	}
	t := &simTopic{name: fmt.Sprintf("a%d", len(w.topics)), partitions: 1 + rng.Int32N(3), compacts: rng.IntN(3) == 0}
	if !w.hasLooked() {
		t.old = t.partitions
	}
	configs := kafkatest.LoadConfigs()
	if t.compacts {
		configs["cleanup.policy"] = "compact"
	}
	w.must(w.pair.Source.CreateTopic(w.t.Context(), t.name, t.partitions, configs))
	w.topics = append(w.topics, t)
	w.say("topic %s with %d partitions, compacts %t", t.name, t.partitions, t.compacts)
	w.loseSoon(t, 0, rng)
}

// loseSoon sometimes writes to a partition that has just been made, and deletes
// part of it at once: most often before the copier has seen it.
func (w *simWorld) loseSoon(t *simTopic, partition int32, rng *rand.Rand) {
	if rng.IntN(3) > 0 {
		return
	}
	var records []*kgo.Record
	for range 1 + rng.IntN(20) {
		records = append(records, w.record(t, partition, rng))
	}
	w.append(records, rng)
	w.deleteFrom(t, partition, rng)
}

// hasLooked reports whether the ledger knows what topics there were.
func (w *simWorld) hasLooked() (looked bool) {
	w.withBook(func(l *ledger.Ledger) { looked = l.HasSeenTopics() })
	return looked
}

// withBook calls f with the ledger, if there is one.
func (w *simWorld) withBook(f func(*ledger.Ledger)) {
	if w.copier != nil && !w.copier.over() {
		if flow := w.copier.copying(); flow != nil {
			f(flow.Ledger())
		}
		return
	}
	if l := simBook(w.t, w.config.LedgerPath); l != nil {
		defer l.Close()
		f(l)
	}
}

func (w *simWorld) grow(rng *rand.Rand) {
	t := w.topic(rng)
	if t == nil || t.partitions > 4 {
		return
	}
	client, err := w.pair.Source.Client()
	w.must(err)
	defer client.Close()
	want, looked := t.partitions+1+rng.Int32N(2), w.hasLooked()
	w.eventually("add partitions", func() error {
		if w.pair.Source.Fake().PartitionInfo(t.name, want-1) != nil {
			return nil
		}
		ctx, cancel := w.within(30 * time.Second)
		defer cancel()
		answers, err := kadm.NewClient(client).UpdatePartitions(ctx, int(want), t.name)
		if err != nil {
			return err
		}
		return answers.Error()
	})
	t.partitions = want
	if !looked {
		t.old = want
	}
	w.say("topic %s has %d partitions", t.name, want)
	w.loseSoon(t, want-1, rng)
}

func (w *simWorld) changeSetting(rng *rand.Rand) {
	t := w.topic(rng)
	if t == nil {
		return
	}
	client, err := w.pair.Source.Client()
	w.must(err)
	defer client.Close()
	value := fmt.Sprint(600_000 + rng.IntN(1000))
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: "segment.ms", Value: &value}
	if rng.IntN(3) == 0 {
		change.Op, change.Value = kadm.DeleteConfig, nil
	}
	w.eventually("change a setting", func() error {
		ctx, cancel := w.within(30 * time.Second)
		defer cancel()
		_, err := kadm.NewClient(client).AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, t.name)
		return err
	})
}

func (w *simWorld) moveLeader(rng *rand.Rand) {
	t := w.topic(rng)
	if t == nil {
		return
	}
	c, side := w.pair.Source, "source"
	if rng.IntN(2) == 0 {
		c, side = w.pair.Target, "target"
	}
	p := rng.Int32N(t.partitions)
	if c.Fake().PartitionInfo(t.name, p) == nil {
		return // the copier has not made it yet
	}
	node, err := c.MoveLeader(t.name, p)
	w.must(err)
	w.say("%s-%d of the %s is led by %d", t.name, p, side, node)
}

func (w *simWorld) restart(c *kafkatest.Cluster, rng *rand.Rand) {
	c.Stop()
	simWait(w.t, time.Duration(rng.IntN(3000))*time.Millisecond)
	w.must(c.Start())
}

// hold keeps a partition's high watermark for a while where it is.
func (w *simWorld) hold(rng *rand.Rand) {
	t := w.topic(rng)
	if t == nil {
		return
	}
	c := []*kafkatest.Cluster{w.pair.Source, w.pair.Target}[rng.IntN(2)]
	p := rng.Int32N(t.partitions)
	info := c.Fake().PartitionInfo(t.name, p)
	if info == nil {
		return
	}
	release, err := c.HoldHighWatermark(t.name, p, info.HighWatermark)
	w.must(err)
	w.holds = append(w.holds, release)
	time.AfterFunc(time.Duration(rng.IntN(5000))*time.Millisecond, release)
	w.say("%s-%d held at %d", t.name, p, info.HighWatermark)
}

// pause pauses a partition or a topic, or resumes what is paused.
func (w *simWorld) pause(rng *rand.Rand) {
	t := w.topic(rng)
	if t == nil {
		return
	}
	p := simPartition{t.name, rng.Int32N(t.partitions+1) - 1}
	if topic := (simPartition{t.name, -1}); w.paused[topic] {
		p = topic
	}
	w.order(p, !w.paused[p])
}

// order tells the copier, or its ledger where it does not run. An order that
// makes no sense, as the copier does not know the partition, changes nothing.
func (w *simWorld) order(p simPartition, pause bool) {
	o := ledger.Order{SourceTopic: p.topic, Partition: p.partition, Paused: pause, By: "sim", Reason: "history"}
	err := errSimNotYet
	if w.copier != nil && !w.copier.over() {
		if flow := w.copier.copying(); flow != nil {
			err = flow.Order(o)
		}
	} else if l, openErr := ledger.Open(w.config.LedgerPath, ledger.Options{}); openErr == nil {
		err = replicate.OrderOffline(l, o)
		w.must(l.Close())
	}
	var usage *replicate.UsageError
	switch {
	case err == nil:
		w.noteOrder(p, pause)
	case !errors.Is(err, errSimNotYet) && !errors.As(err, &usage):
		w.t.Fatalf("order %+v: %v", o, err)
	}
	w.say("pause %v: %t (%v)", p, pause, err)
}

func (w *simWorld) noteOrder(p simPartition, pause bool) {
	if p.partition < 0 { // takes the place of orders about the partitions
		for other := range w.paused {
			if other.topic == p.topic {
				delete(w.paused, other)
			}
		}
	}
	delete(w.paused, p)
	if pause {
		w.paused[p] = true
	}
}
