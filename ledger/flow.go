package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// maxTopic bounds the names of topics in the books beside the pairs, where they
// are parts of keys. It is the length of Kafka's longest name
// (Topic.MAX_NAME_LENGTH).
const maxTopic = 249

// flowBooks is what a Ledger keeps in memory of the books beside the pairs:
// the topics that were seen, those that the flow made, the orders and the stops.
// All of it is guarded by Ledger.mu.
type flowBooks struct {
	// Identities of the topics in the file; the rest of them is only there.
	seenIDs   map[TopicID]struct{}
	seenNames map[string]struct{} // of those without an id

	made   map[string][]byte   // payloads in the file, by key; never changed
	orders map[partition]Order // in the file
	stops  map[partition]*stop
	news   []partition // keys of stops that are to be committed
	counts flowCounts  // of values in the file
}

func newFlowBooks() flowBooks {
	return flowBooks{
		seenIDs:   make(map[TopicID]struct{}),
		seenNames: make(map[string]struct{}),
		made:      make(map[string][]byte),
		orders:    make(map[partition]Order),
		stops:     make(map[partition]*stop),
	}
}

// flowCounts says how many values the buckets of the books beside the pairs
// have, so that one that went missing is noticed.
type flowCounts struct{ topics, orders, stops, made int }

func flowCountsValue(c flowCounts) []byte {
	b := binary.AppendUvarint(newValue(16), 0) // flags
	for _, n := range []int{c.topics, c.orders, c.stops, c.made} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return seal(bucketMeta, []byte(metaBooks), b)
}

// byBucket returns the counts by the names of the buckets.
func (c flowCounts) byBucket() map[string]int {
	return map[string]int{bucketTopics: c.topics, bucketOrders: c.orders, bucketStops: c.stops, bucketMade: c.made}
}

func decodeFlowCounts(payload []byte) (c flowCounts, err error) {
	r := wireReader{b: payload}
	r.flags(0)
	for _, n := range []*int{&c.topics, &c.orders, &c.stops, &c.made} {
		*n = int(r.below(math.MaxInt32))
	}
	return c, r.end("books")
}

// validTopic reports whether a topic can have the name. Which characters Kafka
// allows is left to Kafka.
func validTopic(name string) bool {
	return name != "" && len(name) <= maxTopic && utf8.ValidString(name)
}

// partitionKey is the key of an order or a stop: the topic's name, and the
// partition plus one, so that all of the topic, -1, comes first.
func partitionKey(p partition) []byte {
	return binary.BigEndian.AppendUint32([]byte(p.topic), uint32(int64(p.partition)+1))
}

// parsePartitionKey is the inverse of partitionKey.
func parsePartitionKey(key []byte) (partition, bool) {
	if len(key) < 4 {
		return partition{}, false
	}
	name, number := key[:len(key)-4], binary.BigEndian.Uint32(key[len(key)-4:])
	p := partition{string(name), int32(int64(number) - 1)}
	return p, number <= math.MaxInt32+1 && validTopic(p.topic)
}

// partitionFault returns why there can be no order and no stop of a partition;
// "" if there can.
func partitionFault(p partition) string {
	if !validTopic(p.topic) || p.partition < -1 {
		return fmt.Sprintf("partition %d of topic %.300q", p.partition, p.topic)
	}
	return ""
}

// textFault returns what is wrong with a text of a person or a broker; "" if
// nothing.
func textFault(what, text string) string {
	if len(text) > maxText || !utf8.ValidString(text) {
		return fmt.Sprintf("%s has more than %d bytes or is not UTF-8", what, maxText)
	}
	return ""
}

// timeFault returns what is wrong with a time that a caller gave; "" if
// nothing.
func timeFault(millis int64) string {
	if millis < 0 || millis > maxMillis {
		return fmt.Sprintf("time %d ms", millis)
	}
	return ""
}

// flowNews reports whether the commit changes a book beside the pairs.
func (c *commit) flowNews() bool {
	return len(c.see) > 0 || c.order != nil || c.made != nil || len(c.stops) > 0
}

// countFlow says what the books hold after the commit. The caller holds l.mu,
// and has taken the stops.
func (c *commit) countFlow(f *flowBooks) {
	c.counts = f.counts
	c.counts.topics += len(c.see)
	if c.order != nil {
		_, had := f.orders[c.order.partition()]
		c.counts.orders += change01(had, !c.order.empty())
	}
	if c.made != nil {
		_, had := f.made[string(c.made.key)]
		c.counts.made += change01(had, true)
	}
	for _, ch := range c.stops {
		c.counts.stops += change01(f.stops[ch.partition].stored, ch.stop != nil)
	}
}

// change01 returns by how much a count changes with one value.
func change01(before, after bool) int {
	switch {
	case before == after:
		return 0
	case after:
		return 1
	default:
		return -1
	}
}

// writeFlow puts what changes in the books beside the pairs into the
// transaction.
func (c *commit) writeFlow(tx *bbolt.Tx) error {
	if !c.flowNews() {
		return nil
	}
	for i := range c.see {
		key := topicKey(c.see[i].Name, c.see[i].ID)
		if err := putAnywhere(tx, bucketTopics, key, seenValue(key, &c.see[i])); err != nil {
			return err
		}
	}
	if err := c.writeOrder(tx); err != nil {
		return err
	}
	if err := c.made.write(tx); err != nil {
		return err
	}
	for _, ch := range c.stops {
		if err := ch.write(tx); err != nil {
			return err
		}
	}
	return put(tx, bucketMeta, []byte(metaBooks), flowCountsValue(c.counts))
}

// putAnywhere stores a sealed value in a bucket that does not grow at the ends
// of its keys.
func putAnywhere(tx *bbolt.Tx, bucket string, key, value []byte) error {
	return tx.Bucket([]byte(bucket)).Put(key, value)
}

// publishFlow shows readers what was committed. The caller holds l.mu.
func (l *Ledger) publishFlow(c *commit) {
	if !c.flowNews() {
		return
	}
	l.flow.counts = c.counts
	for i := range c.see {
		l.flow.noteSeen(&c.see[i])
	}
	if c.order != nil {
		l.flow.noteOrder(c.order)
	}
	if c.made != nil {
		l.flow.noteMade(c.made.key, c.made.payload())
	}
	for _, ch := range c.stops {
		l.flow.publishStop(ch)
	}
}

// loadFlow reads the books beside the pairs. A file of format 1 has none.
func (l *Ledger) loadFlow(t *tree) error {
	if l.identity.Format < formatFlow {
		return nil
	}
	if err := loadKey(t, metaBooks, decodeFlowCounts, &l.flow.counts); err != nil {
		return err
	}
	got, err := t.flowValues(&flowVisitor{
		format: l.identity.Format,
		seen:   l.flow.noteSeen,
		order:  l.flow.noteOrder,
		stop: func(s *Stop) {
			l.flow.stops[s.partition()] = &stop{now: s, stored: true}
		},
		made: func(key, payload []byte) { l.flow.noteMade(key, bytes.Clone(payload)) },
	})
	if err != nil {
		return err
	}
	want := l.flow.counts.byBucket()
	for _, bucket := range flowBuckets() {
		if err := wantValues(bucket, got[bucket], want[bucket]); err != nil {
			return err
		}
	}
	return nil
}

// A flowVisitor takes what the books beside the pairs hold.
type flowVisitor struct {
	format int // of the file
	seen   func(*SeenTopic)
	order  func(*Order)
	stop   func(*Stop)
	made   func(key, payload []byte) // of a madeTopic; the file's memory
}

// flowValues calls v with every value of the books beside the pairs, up to the
// first one that breaks a law. It returns how many each bucket has.
func (t *tree) flowValues(v *flowVisitor) (counts map[string]int, err error) {
	counts = make(map[string]int)
	for _, bucket := range flowBuckets() {
		err := t.values(bucket, func(key, payload []byte) error {
			counts[bucket]++
			return damageIn(bucket, key, v.value(bucket, key, payload))
		})
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// value decodes a value of one of the books beside the pairs, checks its laws
// and hands it on.
func (v *flowVisitor) value(bucket string, key, payload []byte) error {
	switch bucket {
	case bucketTopics:
		s, err := decodeSeen(key, payload)
		if err == nil {
			v.seen(&s)
		}
		return err
	case bucketOrders:
		o, err := decodeOrder(key, payload)
		if err == nil {
			v.order(&o)
		}
		return err
	case bucketMade:
		_, err := decodeMade(key, payload)
		if err == nil {
			v.made(key, payload)
		}
		return err
	default:
		s, err := decodeStop(key, payload)
		if err == nil {
			err = s.formatFault(v.format)
		}
		if err == nil {
			v.stop(&s)
		}
		return err
	}
}
