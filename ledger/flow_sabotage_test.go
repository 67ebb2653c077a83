package ledger

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// editOrder writes the order of a topic and partition anew.
func (e *editor) editOrder(p partition, edit func(*Order)) {
	e.t.Helper()
	key := partitionKey(p)
	o, err := decodeOrder(key, e.payload(bucketOrders, key))
	if err != nil {
		e.t.Fatal(err)
	}
	edit(&o)
	e.put(bucketOrders, key, orderValue(key, &o))
}

// editStop writes the stop of a topic and partition anew.
func (e *editor) editStop(p partition, edit func(*Stop)) {
	e.t.Helper()
	key := partitionKey(p)
	s, err := decodeStop(key, e.payload(bucketStops, key))
	if err != nil {
		e.t.Fatal(err)
	}
	edit(&s)
	e.put(bucketStops, key, stopValue(key, &s))
}

// editSeen writes what is known of the topic with an id anew.
func (e *editor) editSeen(id TopicID, edit func(*SeenTopic)) {
	e.t.Helper()
	s, err := decodeSeen(id[:], e.payload(bucketTopics, id[:]))
	if err != nil {
		e.t.Fatal(err)
	}
	edit(&s)
	e.put(bucketTopics, id[:], seenValue(id[:], &s))
}

// copyTo stores a payload under another key as well, and counts it: so that
// nothing is wrong but the key.
func (e *editor) copyTo(bucket string, from, to []byte) {
	e.t.Helper()
	e.seal(bucket, to, e.payload(bucket, from))
	c, err := decodeFlowCounts(e.payload(bucketMeta, []byte(metaBooks)))
	if err != nil {
		e.t.Fatal(err)
	}
	*map[string]*int{bucketTopics: &c.topics, bucketOrders: &c.orders, bucketStops: &c.stops, bucketMade: &c.made}[bucket]++
	e.put(bucketMeta, []byte(metaBooks), flowCountsValue(c))
}

// editMade writes what is known of the made topic with an id anew.
func (e *editor) editMade(id TopicID, edit func(*madeTopic)) {
	e.t.Helper()
	m, err := decodeMade(id[:], e.payload(bucketMade, id[:]))
	if err != nil {
		e.t.Fatal(err)
	}
	edit(&m)
	e.put(bucketMade, id[:], madeValue(id[:], &m))
}

// flowSabotages returns ways to break the laws of the books beside the pairs.
func flowSabotages() []sabotage {
	orders1, pay0 := partition{"orders", 1}, partition{"pay", 0}
	all := []sabotage{
		edited("topic-nameless", lawTopics, bucketTopics, func(e *editor) {
			e.editSeen(TopicID{4}, func(s *SeenTopic) { s.Name = "" })
		}),
		edited("topic-name-too-long", lawTopics, bucketTopics, func(e *editor) {
			e.editSeen(TopicID{4}, func(s *SeenTopic) { s.Name = strings.Repeat("x", maxTopic+1) })
		}),
		edited("topic-time", lawTopics, bucketTopics, func(e *editor) {
			e.editSeen(TopicID{4}, func(s *SeenTopic) { s.SeenMillis = -1 })
		}),
		edited("topic-lost", lawKeys, bucketTopics, func(e *editor) { e.remove(bucketTopics, (&TopicID{4})[:]) }),
		edited("topic-moved", lawChecksum, bucketTopics, func(e *editor) {
			value := e.tx.Bucket([]byte(bucketTopics)).Get((&TopicID{4})[:])
			e.put(bucketTopics, (&TopicID{5})[:], bytes.Clone(value))
			e.remove(bucketTopics, (&TopicID{4})[:])
		}),
		edited("topic-key", lawKeys, bucketTopics, func(e *editor) {
			e.copyTo(bucketTopics, (&TopicID{4})[:], append((&TopicID{9})[:], 'x'))
		}),
		edited("topic-key-of-nothing", lawKeys, bucketTopics, func(e *editor) {
			e.copyTo(bucketTopics, append((&TopicID{})[:], "older"...), (&TopicID{})[:])
		}),
		edited("topic-key-short", lawKeys, bucketTopics, func(e *editor) {
			e.copyTo(bucketTopics, append((&TopicID{})[:], "older"...), []byte("older"))
		}),
		edited("topic-longer", lawEncoding, bucketTopics, func(e *editor) {
			e.seal(bucketTopics, (&TopicID{4})[:], append(e.payload(bucketTopics, (&TopicID{4})[:]), 0))
		}),
	}
	all = append(all,
		edited("topic-flag", lawEncoding, bucketTopics, func(e *editor) {
			b := e.payload(bucketTopics, (&TopicID{4})[:])
			b[0] |= 2
			e.seal(bucketTopics, (&TopicID{4})[:], b)
		}),
		edited("topic-partitions", lawEncoding, bucketTopics, func(e *editor) {
			b := e.payload(bucketTopics, (&TopicID{4})[:])
			b = append(b[:len(b)-2], 0x80, 0x80, 0x80, 0x80, 0x08) // 2^31
			e.seal(bucketTopics, (&TopicID{4})[:], b)
		}))
	all = append(append(all, madeSabotages()...), orderSabotages(orders1)...)
	all = append(all,
		edited("stop-without-reason", lawStops, bucketStops, func(e *editor) { e.editStop(pay0, func(s *Stop) { s.Reason = "" }) }),
		edited("stop-tries", lawStops, bucketStops, func(e *editor) { e.editStop(pay0, func(s *Stop) { s.SinceMillis = maxMillis + 1 }) }),
		edited("stop-detail", lawEncoding, bucketStops, func(e *editor) {
			e.editStop(pay0, func(s *Stop) { s.Detail = strings.Repeat("x", maxText+1) })
		}),
		edited("stop-flag", lawEncoding, bucketStops, func(e *editor) {
			b := e.payload(bucketStops, partitionKey(pay0))
			b[0] |= 16
			e.seal(bucketStops, partitionKey(pay0), b)
		}),
		edited("stop-lost", lawKeys, bucketStops, func(e *editor) { e.remove(bucketStops, partitionKey(pay0)) }),
		edited("stop-key-short", lawKeys, bucketStops, func(e *editor) { e.copyTo(bucketStops, partitionKey(pay0), []byte("abc")) }),
		edited("stop-key-nameless", lawKeys, bucketStops, func(e *editor) { e.copyTo(bucketStops, partitionKey(pay0), []byte{0, 0, 0, 1}) }),
		edited("books-lost", lawKeys, bucketMeta, func(e *editor) { e.remove(bucketMeta, []byte(metaBooks)) }),
		edited("half-format-1", lawBuckets, bucketStops, func(e *editor) {
			e.seal(bucketMeta, []byte(metaFormat), []byte{0, 1})
		}),
		edited("half-format-1-key", lawKeys, bucketMeta, func(e *editor) {
			e.seal(bucketMeta, []byte(metaFormat), []byte{0, 1})
		}),
		edited("format-2-without-books", lawBuckets, bucketMade, func(e *editor) {
			for _, name := range flowBuckets() {
				if err := e.tx.DeleteBucket([]byte(name)); err != nil {
					e.t.Fatal(err)
				}
			}
		}),
	)
	return all
}

func madeSabotages() []sabotage {
	key := (&TopicID{2})[:]
	setting0 := func(edit func(*setting)) func(e *editor) {
		return func(e *editor) { e.editMade(TopicID{2}, func(m *madeTopic) { edit(&m.settings[0]) }) }
	}
	return []sabotage{
		edited("made-nameless", lawMade, bucketMade, func(e *editor) { e.editMade(TopicID{2}, func(m *madeTopic) { m.name = "" }) }),
		edited("made-name-too-long", lawMade, bucketMade, func(e *editor) {
			e.editMade(TopicID{2}, func(m *madeTopic) { m.name = strings.Repeat("x", maxTopic+1) })
		}),
		edited("made-unsorted", lawMade, bucketMade, func(e *editor) {
			e.editMade(TopicID{2}, func(m *madeTopic) { m.settings[0], m.settings[1] = m.settings[1], m.settings[0] })
		}),
		edited("made-twice", lawMade, bucketMade, func(e *editor) {
			e.editMade(TopicID{2}, func(m *madeTopic) { m.settings[1].key = m.settings[0].key })
		}),
		edited("made-without-key", lawMade, bucketMade, setting0(func(s *setting) { s.key = "" })),
		edited("made-key-too-long", lawEncoding, bucketMade, setting0(func(s *setting) { s.key = strings.Repeat("a", maxSettingKey+1) })),
		edited("made-value-too-long", lawEncoding, bucketMade, setting0(func(s *setting) { s.value = strings.Repeat("v", maxSettingValue+1) })),
		edited("made-too-many", lawEncoding, bucketMade, func(e *editor) {
			e.editMade(TopicID{2}, func(m *madeTopic) {
				m.settings = nil
				for i := range maxSettings + 1 {
					m.settings = append(m.settings, setting{fmt.Sprintf("%03d", i), ""})
				}
			})
		}),
		edited("made-lost", lawKeys, bucketMade, func(e *editor) { e.remove(bucketMade, key) }),
		edited("made-key", lawKeys, bucketMade, func(e *editor) { e.seal(bucketMade, append((&TopicID{9})[:], 'x'), nil) }),
		edited("made-moved", lawChecksum, bucketMade, func(e *editor) {
			value := e.tx.Bucket([]byte(bucketMade)).Get(key)
			e.put(bucketMade, (&TopicID{5})[:], bytes.Clone(value))
		}),
		edited("made-of-topics", lawChecksum, bucketMade, func(e *editor) {
			value := e.tx.Bucket([]byte(bucketTopics)).Get((&TopicID{4})[:])
			e.put(bucketMade, (&TopicID{4})[:], bytes.Clone(value))
		}),
		edited("made-flag", lawEncoding, bucketMade, func(e *editor) {
			b := e.payload(bucketMade, key)
			b[0] |= 1
			e.seal(bucketMade, key, b)
		}),
		edited("made-longer", lawEncoding, bucketMade, func(e *editor) {
			e.seal(bucketMade, key, append(e.payload(bucketMade, key), 0))
		}),
	}
}

func orderSabotages(of partition) []sabotage {
	return []sabotage{
		edited("order-of-nothing", lawOrders, bucketOrders, func(e *editor) {
			e.editOrder(of, func(o *Order) { *o = Order{SourceTopic: o.SourceTopic, Partition: o.Partition, Reason: "x"} })
		}),
		edited("skip-without-reason", lawOrders, bucketOrders, func(e *editor) {
			e.editOrder(of, func(o *Order) { o.Reason = "" })
		}),
		edited("skip-of-nothing", lawOrders, bucketOrders, func(e *editor) {
			b := e.payload(bucketOrders, partitionKey(of))
			b[3] = 0 // flags, two bytes of the start, length
			e.seal(bucketOrders, partitionKey(of), b)
		}),
		edited("skip-of-all", lawOrders, bucketOrders, func(e *editor) {
			e.editOrder(partition{"audit", -1}, func(o *Order) { o.Skip, o.Reason = Range{1, 2}, "x" })
		}),
		edited("order-time", lawOrders, bucketOrders, func(e *editor) { e.editOrder(of, func(o *Order) { o.AtMillis = -5 }) }),
		edited("order-by", lawEncoding, bucketOrders, func(e *editor) {
			e.editOrder(of, func(o *Order) { o.By = strings.Repeat("x", maxText+1) })
		}),
		edited("order-flag", lawEncoding, bucketOrders, func(e *editor) {
			b := e.payload(bucketOrders, partitionKey(of))
			b[0] |= 0x40
			e.seal(bucketOrders, partitionKey(of), b)
		}),
		edited("order-lost", lawKeys, bucketOrders, func(e *editor) { e.remove(bucketOrders, partitionKey(of)) }),
		edited("order-partition", lawKeys, bucketOrders, func(e *editor) {
			e.copyTo(bucketOrders, partitionKey(of), append([]byte("orders"), 0x80, 0, 0, 1))
		}),
		edited("order-moved", lawChecksum, bucketOrders, func(e *editor) {
			value := e.tx.Bucket([]byte(bucketOrders)).Get(partitionKey(of))
			e.put(bucketStops, partitionKey(of), bytes.Clone(value))
			e.put(bucketOrders, partitionKey(partition{"orders", 7}), bytes.Clone(value))
		}),
	}
}

// TestEveryFlowLaw: no law of the books beside the pairs is left out.
func TestEveryFlowLaw(t *testing.T) {
	broken := make(map[string]bool)
	for _, s := range flowSabotages() {
		broken[s.law] = true
	}
	for _, law := range []string{lawTopics, lawMade, lawOrders, lawStops, lawKeys, lawChecksum, lawEncoding, lawBuckets} {
		if !broken[law] {
			t.Errorf("nothing breaks law %s", law)
		}
	}
}
