package kafkatest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A loader is a Load that runs. Everything that it chooses comes from rng, in
// one order.
type loader struct {
	Load
	bootstrap Bootstrap
	rng       *rand.Rand

	partitions    []partitionKey
	plain         map[Codec]appender
	transactional []appender
	left          int // records still to be appended
	number        int // records made so far
}

func (w *loader) close() {
	for _, p := range w.plain {
		p.Close()
	}
	for _, p := range w.transactional {
		p.Close()
	}
}

func (w *loader) run(ctx context.Context) error {
	if err := w.findPartitions(ctx); err != nil {
		return err
	}
	w.left = w.Records * len(w.Topics)
	for w.left > 0 {
		step := w.appendPlain
		if !w.NoTransactions {
			switch dice := w.rng.IntN(10); {
			case dice < 2:
				step = w.appendSmallTransactions
			case dice < 4:
				step = w.appendInterleaved
			}
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *loader) findPartitions(ctx context.Context) error {
	client, err := w.bootstrap.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	for _, topic := range w.Topics {
		leaders, err := partitionLeaders(ctx, client, topic)
		if err != nil {
			return err
		}
		for p := range leaders {
			w.partitions = append(w.partitions, partitionKey{topic, int32(p)})
		}
	}
	if len(w.partitions) == 0 {
		return fmt.Errorf("no topics")
	}
	return nil
}

func (w *loader) appendPlain(ctx context.Context) error {
	p, err := w.producer()
	if err != nil {
		return err
	}
	return p.Append(ctx, w.chunk(400)...)
}

// producer returns the plain producer of a codec chosen by chance.
func (w *loader) producer() (appender, error) {
	codec := Codecs()[w.rng.IntN(len(Codecs()))]
	if p := w.plain[codec]; p != nil {
		return p, nil
	}
	p, err := w.appender(codec, nil)
	if err != nil {
		return nil, err
	}
	w.plain[codec] = p
	return p, nil
}

func (w *loader) appender(codec Codec, txnID *string) (appender, error) {
	if w.ThroughClient {
		return w.bootstrap.clientProducer(codec, txnID)
	}
	return w.bootstrap.producer(codec, txnID)
}

// writers is how many transactional producers a load has.
const writers = 3

// writer returns the i-th transactional producer.
func (w *loader) writer(i int) (appender, error) {
	for len(w.transactional) <= i {
		id := fmt.Sprintf("load-%d-%d", w.Seed, len(w.transactional))
		p, err := w.appender(Codecs()[len(w.transactional)*2%len(Codecs())], &id)
		if err != nil {
			return nil, err
		}
		w.transactional = append(w.transactional, p)
	}
	return w.transactional[i], nil
}

// appendSmallTransactions appends a few transactions of one record, one after
// the other.
func (w *loader) appendSmallTransactions(ctx context.Context) error {
	p, err := w.writer(w.rng.IntN(writers))
	if err != nil {
		return err
	}
	for range 1 + w.rng.IntN(4) {
		if err := p.Begin(); err != nil {
			return err
		}
		if err := p.Append(ctx, w.record(w.partition())); err != nil {
			return err
		}
		if err := p.End(ctx, w.commits()); err != nil {
			return err
		}
	}
	return nil
}

// appendInterleaved has two transactions open at once, with a plain producer
// between them.
func (w *loader) appendInterleaved(ctx context.Context) error {
	first := w.rng.IntN(writers)
	a, err := w.writer(first)
	if err != nil {
		return err
	}
	b, err := w.writer((first + 1 + w.rng.IntN(writers-1)) % writers)
	if err != nil {
		return err
	}
	plain, err := w.producer()
	if err != nil {
		return err
	}
	for _, p := range []appender{a, b} {
		if err := p.Begin(); err != nil {
			return err
		}
	}
	steps := []appender{a, a, a, b, b, plain, plain}
	w.rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, p := range steps {
		if err := p.Append(ctx, w.chunk(20)...); err != nil {
			return err
		}
	}
	ends := []appender{a, b}
	if w.rng.IntN(2) == 0 {
		ends[0], ends[1] = b, a
	}
	for _, p := range ends {
		if err := p.End(ctx, w.commits()); err != nil {
			return err
		}
	}
	return nil
}

func (w *loader) commits() bool { return w.rng.IntN(3) > 0 }

func (w *loader) partition() partitionKey { return w.partitions[w.rng.IntN(len(w.partitions))] }

// chunk makes what one producer sends at once: up to most records, mostly few,
// for each of up to three partitions.
func (w *loader) chunk(most int) []*kgo.Record {
	var records []*kgo.Record
	for range 1 + w.rng.IntN(3) {
		to := w.partition()
		n := 1 + w.rng.IntN(min(most, 20))
		if w.rng.IntN(10) < 3 {
			n = 1 + w.rng.IntN(most)
		}
		for range n {
			records = append(records, w.record(to))
		}
	}
	return records
}

func (w *loader) record(to partitionKey) *kgo.Record {
	w.left--
	w.number++
	return &kgo.Record{
		Topic: to.topic, Partition: to.partition,
		Key: w.key(), Value: w.value(), Headers: w.headers(),
		Timestamp: time.UnixMilli(w.timestamp()),
	}
}

func (w *loader) key() []byte {
	dice := w.rng.IntN(20)
	switch {
	case dice == 0 && !w.Keyed:
		return nil
	case dice == 1:
		return []byte{}
	case dice < 4 && !w.Keyed:
		return w.noise(1 + w.rng.IntN(16))
	default:
		return fmt.Appendf(nil, "key-%d", w.rng.IntN(200))
	}
}

func (w *loader) value() []byte {
	most := w.MaxValueBytes
	if most == 0 {
		most = 100_000
	}
	if w.number == 3 { // the largest, in every load
		return w.noise(most)
	}
	switch dice := w.rng.IntN(1000); {
	case dice < 50:
		return nil // a tombstone
	case dice < 100:
		return []byte{}
	case dice < 250:
		return w.noise(min(most, w.rng.IntN(300)))
	case dice < 960:
		return w.text(min(most, w.rng.IntN(200)))
	case dice < 998:
		return w.text(min(most, w.rng.IntN(3000)))
	default:
		return w.text(w.rng.IntN(most + 1))
	}
}

func (w *loader) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return b
}

// text returns n bytes that compress.
func (w *loader) text(n int) []byte {
	words := []string{"order ", "paid ", "shipped ", "customer ", "2024-", "total=", "\x00\xff", "ünïcode "}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[w.rng.IntN(len(words))])
	}
	return []byte(b.String()[:n])
}

func (w *loader) headers() []kgo.RecordHeader {
	if w.rng.IntN(4) > 0 {
		return nil
	}
	names := []string{"trace", "trace", "", "h", "größe"}
	headers := make([]kgo.RecordHeader, 1+w.rng.IntN(4))
	for i := range headers {
		headers[i].Key = names[w.rng.IntN(len(names))]
		switch w.rng.IntN(4) {
		case 0: // null
		case 1:
			headers[i].Value = []byte{}
		default:
			headers[i].Value = w.noise(1 + w.rng.IntN(20))
		}
	}
	return headers
}

// timestamp mostly rises by a few milliseconds a record.
func (w *loader) timestamp() int64 {
	odd := []int64{-1, 0, 1, 5000, 1000, loadTime - 3*86_400_000, 4_102_444_800_000, loadTime}
	if dice := w.rng.IntN(200); dice < len(odd) {
		return odd[dice]
	}
	return loadTime + int64(w.number)*3 + int64(w.rng.IntN(3))
}
