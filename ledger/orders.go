package ledger

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"go.etcd.io/bbolt"
)

// An Order is what a person has told the flow to do with a partition, or with
// all of a topic. It holds until it is replaced or taken back, across restarts.
// The ledger only keeps it: who runs the flow obeys it.
type Order struct {
	SourceTopic string // of 1 to 249 bytes
	Partition   int32  // -1: all of the topic

	Paused bool  // nothing is copied
	Skip   Range // source offsets to leave out, of one partition; empty: none

	AcceptRecreated bool // go on with a source topic that was created again
	AcceptTruncated bool // go on with a source partition that was truncated
	Recopy          bool // copy again what the target has lost
	TolerateForeign bool // go on beside records that somebody else wrote

	// Reason and By are for those who read reports. Each has at most 1024 bytes
	// of UTF-8. An order to skip must have a reason.
	Reason   string
	By       string
	AtMillis int64 // Unix time in milliseconds; 0 = the ledger's clock
}

func (o *Order) partition() partition { return partition{o.SourceTopic, o.Partition} }

// empty reports whether nothing is ordered, whatever is said about it.
func (o *Order) empty() bool { return orderFlags(o) == 0 }

// SetOrder keeps an order in place of the one of the same topic and partition,
// durably, together with everything that is queued. One with nothing in it but
// texts and a time takes that order back. Where there is nothing to change it
// does nothing.
//
// The error is an [*LawError] for a name, partition, range, text or time that
// cannot be, and for a skip without a reason or of all of a topic; others are
// those of [Ledger.Commit], ErrReadOnly and ErrClosed.
func (l *Ledger) SetOrder(o Order) error {
	if o.Skip.valid() && o.Skip.Empty() {
		o.Skip = Range{}
	}
	if o.AtMillis == 0 {
		o.AtMillis = l.now().UnixMilli()
	}
	if fault := o.fault(); fault != "" {
		return lawErrorf(lawOrders, "%s", fault)
	}
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	l.mu.RLock()
	old, had := l.flow.orders[o.partition()]
	err := l.usable()
	l.mu.RUnlock()
	if err != nil || had && old == o || !had && o.empty() {
		return err
	}
	return l.commit(task{order: &o})
}

// settles makes the task end the stop of the pair's partition, and take back what
// was ordered about the pair alone. The caller holds l.commitMu, so that no order
// changes meanwhile.
func (t *task) settles(l *Ledger, p *pair) {
	of := partition{p.SourceTopic, p.Partition}
	t.settled = &of
	l.mu.RLock()
	old, had := l.flow.orders[of]
	l.mu.RUnlock()
	if !had {
		return
	}
	left := old
	left.AcceptRecreated, left.AcceptTruncated, left.Recopy, left.Skip = false, false, false, Range{}
	if left != old {
		t.order = &left
	}
}

// Orders returns all orders, by topic and partition; that of all of a topic
// comes before those of its partitions.
func (l *Ledger) Orders() []Order {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.SortedFunc(maps.Values(l.flow.orders), func(a, b Order) int {
		return a.partition().compare(b.partition())
	})
}

func (p partition) compare(q partition) int {
	return cmp.Or(cmp.Compare(p.topic, q.topic), cmp.Compare(p.partition, q.partition))
}

// noteOrder keeps an order that is in the file now, or no more.
func (f *flowBooks) noteOrder(o *Order) {
	if o.empty() {
		delete(f.orders, o.partition())
		return
	}
	f.orders[o.partition()] = *o
}

// fault returns what is wrong with an order, which may be an empty one; "" if
// nothing.
func (o *Order) fault() string {
	if fault := partitionFault(o.partition()); fault != "" {
		return fault
	}
	switch {
	case !o.Skip.valid():
		return fmt.Sprintf("skip %v is not a range of offsets", o.Skip)
	case !o.Skip.Empty() && o.Partition < 0:
		return fmt.Sprintf("skip %v of all partitions", o.Skip)
	case !o.Skip.Empty() && o.Reason == "":
		return fmt.Sprintf("skip %v without a reason", o.Skip)
	}
	return cmp.Or(textFault("reason", o.Reason), textFault("by", o.By), timeFault(o.AtMillis))
}

// Flags of an order. Bits above are not known to this version.
const (
	orderPaused = 1 << iota
	orderSkip
	orderRecreated
	orderTruncated
	orderRecopy
	orderForeign
	orderKnown = 1<<iota - 1
)

func orderFlags(o *Order) (flags uint64) {
	// In the order of the flags above.
	for i, on := range []bool{
		o.Paused, !o.Skip.Empty(), o.AcceptRecreated, o.AcceptTruncated, o.Recopy, o.TolerateForeign,
	} {
		if on {
			flags |= 1 << i
		}
	}
	return flags
}

// writeOrder puts the order of the commit into the transaction.
func (c *commit) writeOrder(tx *bbolt.Tx) error {
	if c.order == nil {
		return nil
	}
	key := partitionKey(c.order.partition())
	if c.order.empty() {
		return tx.Bucket([]byte(bucketOrders)).Delete(key)
	}
	return putAnywhere(tx, bucketOrders, key, orderValue(key, c.order))
}

func orderValue(key []byte, o *Order) []byte {
	b := binary.AppendUvarint(newValue(64), orderFlags(o))
	if !o.Skip.Empty() {
		b = binary.AppendUvarint(b, uint64(o.Skip.Start))
		b = binary.AppendUvarint(b, uint64(o.Skip.Len()))
	}
	b = appendText(b, o.Reason)
	b = appendText(b, o.By)
	b = binary.AppendVarint(b, o.AtMillis)
	return seal(bucketOrders, key, b)
}

// decodeOrder is the inverse of partitionKey and orderValue.
func decodeOrder(key, payload []byte) (o Order, err error) {
	p, ok := parsePartitionKey(key)
	if !ok {
		return o, unknownKey(bucketOrders, key)
	}
	o.SourceTopic, o.Partition = p.topic, p.partition
	r := wireReader{b: payload}
	flags := r.flags(orderKnown)
	if flags&orderSkip != 0 {
		start := r.count()
		o.Skip = Range{start, start + int64(r.below(uint64(math.MaxInt64-start)))}
	}
	o.Paused = flags&orderPaused != 0
	o.AcceptRecreated = flags&orderRecreated != 0
	o.AcceptTruncated = flags&orderTruncated != 0
	o.Recopy = flags&orderRecopy != 0
	o.TolerateForeign = flags&orderForeign != 0
	o.Reason, o.By, o.AtMillis = r.text(maxText), r.text(maxText), r.varint()
	if err := r.end("order"); err != nil {
		return o, err
	}
	if flags != orderFlags(&o) || flags == 0 {
		return o, lawErrorf(lawOrders, "orders nothing, or to skip nothing")
	}
	if fault := o.fault(); fault != "" {
		return o, lawErrorf(lawOrders, "%s", fault)
	}
	return o, nil
}
