package ledger

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/bbolt"
)

// markCounts says how many values the buckets of acceptances and doubts have, so
// that one that went missing is noticed.
type markCounts struct{ accepted, doubts int }

func markCountsValue(c markCounts) []byte {
	b := binary.AppendUvarint(newValue(8), 0) // flags
	for _, n := range []int{c.accepted, c.doubts} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return seal(bucketMeta, []byte(metaMarks), b)
}

func decodeMarkCounts(payload []byte) (c markCounts, err error) {
	r := wireReader{b: payload}
	r.flags(0)
	for _, n := range []*int{&c.accepted, &c.doubts} {
		*n = int(r.below(math.MaxInt32))
	}
	return c, r.end("marks")
}

// markNews reports whether the commit changes acceptances or doubts.
func (c *commit) markNews() bool {
	return c.accept != nil || slices.ContainsFunc(c.changes, func(ch *change) bool { return ch.doubting })
}

// needs returns the first format that has room for what the commit writes.
func (c *commit) needs() int {
	caughtUp := func(ch *change) bool { return ch.state != nil && ch.state.CaughtUpMillis >= 0 }
	keeps := func(ch stopChange) bool { return ch.stop != nil && ch.stop.Kept != 0 }
	switch {
	case len(c.groups) > 0:
		return formatGroups
	case slices.ContainsFunc(c.stops, keeps):
		return formatMarks
	case c.markNews() || c.close != nil && c.closing.Cut != nil || slices.ContainsFunc(c.changes, caughtUp):
		return formatMarks
	case c.flowNews():
		return formatFlow
	default:
		return oldestFormat
	}
}

// lifts reports whether the commit makes the file one of the current format.
func (c *commit) lifts() bool { return c.format < c.needs() }

// lift makes the file one of the current format, with empty buckets where there
// were none. All that is there means the same in each format.
func (c *commit) lift(tx *bbolt.Tx) error {
	if !c.lifts() {
		return nil
	}
	for _, name := range bucketNames(format) {
		if slices.Contains(bucketNames(c.format), name) {
			continue
		}
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	if err := put(tx, bucketMeta, []byte(metaBooks), flowCountsValue(c.counts)); err != nil {
		return err
	}
	if err := put(tx, bucketMeta, []byte(metaMarks), markCountsValue(c.marks)); err != nil {
		return err
	}
	if err := put(tx, bucketMeta, []byte(metaGroups), groupsCountValue(c.groupCount)); err != nil {
		return err
	}
	return put(tx, bucketMeta, []byte(metaFormat), formatValue())
}

// countMarks says what the buckets hold after the commit. The caller holds l.mu.
func (c *commit) countMarks(before markCounts) {
	c.marks = before
	if c.accept != nil {
		c.marks.accepted += len(c.accept.list) - len(c.accept.pair.accepted)
	}
	for _, ch := range c.changes {
		if ch.doubting {
			c.marks.doubts += len(ch.doubts) - len(ch.pair.storedDoubts)
		}
	}
}

// writeMarks puts what changes in acceptances and doubts into the transaction.
func (c *commit) writeMarks(tx *bbolt.Tx) error {
	if !c.markNews() {
		return nil
	}
	if err := c.accept.write(tx); err != nil {
		return err
	}
	for _, ch := range c.changes {
		if err := ch.writeDoubts(tx); err != nil {
			return err
		}
	}
	return put(tx, bucketMeta, []byte(metaMarks), markCountsValue(c.marks))
}

func (a *acceptChange) write(tx *bbolt.Tx) error {
	if a == nil {
		return nil
	}
	old := make(map[string][]byte)
	for i := range a.pair.accepted {
		key := acceptedKey(a.pair.ID, a.pair.accepted[i].Range.Start)
		old[string(key)] = acceptedValue(key, &a.pair.accepted[i])
	}
	now := make(map[string][]byte)
	for i := range a.list {
		key := acceptedKey(a.pair.ID, a.list[i].Range.Start)
		now[string(key)] = acceptedValue(key, &a.list[i])
	}
	return replaceValues(tx, bucketAccepted, old, now)
}

func (ch *change) writeDoubts(tx *bbolt.Tx) error {
	if !ch.doubting {
		return nil
	}
	values := func(doubts []Doubt) map[string][]byte {
		m := make(map[string][]byte)
		for i := range doubts {
			key := doubtKey(ch.pair.ID, &doubts[i])
			m[string(key)] = doubtValue(key, &doubts[i])
		}
		return m
	}
	return replaceValues(tx, bucketDoubts, values(ch.pair.storedDoubts), values(ch.doubts))
}

// replaceValues makes the values old of a bucket those of now.
func replaceValues(tx *bbolt.Tx, bucket string, old, now map[string][]byte) error {
	for key := range old {
		if _, ok := now[key]; !ok {
			if err := tx.Bucket([]byte(bucket)).Delete([]byte(key)); err != nil {
				return err
			}
		}
	}
	for key, value := range now {
		if string(old[key]) != string(value) {
			if err := putAnywhere(tx, bucket, []byte(key), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// publishMarks shows readers what was committed. The caller holds l.mu.
func (l *Ledger) publishMarks(c *commit) {
	if c.lifts() {
		l.identity.Format = format
	}
	l.marks = c.marks
	if c.accept != nil {
		c.accept.pair.setAccepted(c.accept.list)
	}
	for _, ch := range c.changes {
		if ch.doubting {
			ch.pair.storedDoubts = ch.doubts
		}
	}
}

// loadMarks reads acceptances and doubts. A file of an earlier format has none.
func (l *Ledger) loadMarks(t *tree) error {
	if l.identity.Format < formatMarks {
		return nil
	}
	if err := loadKey(t, metaMarks, decodeMarkCounts, &l.marks); err != nil {
		return err
	}
	got := markCounts{}
	err := t.values(bucketAccepted, func(key, payload []byte) error {
		got.accepted++
		return damageIn(bucketAccepted, key, l.loadAccepted(key, payload))
	})
	if err != nil {
		return err
	}
	err = t.values(bucketDoubts, func(key, payload []byte) error {
		got.doubts++
		return damageIn(bucketDoubts, key, l.loadDoubt(key, payload))
	})
	if err != nil {
		return err
	}
	if err := wantValues(bucketAccepted, got.accepted, l.marks.accepted); err != nil {
		return err
	}
	return wantValues(bucketDoubts, got.doubts, l.marks.doubts)
}

func (l *Ledger) loadAccepted(key, payload []byte) error {
	id, a, err := decodeAccepted(key, payload)
	if err != nil {
		return err
	}
	p, ok := l.pairs[id]
	if !ok {
		return unknownPair(bucketAccepted, key, id)
	}
	if err := followsAccepted(p.accepted, &a, p.end.source); err != nil {
		return err
	}
	p.setAccepted(append(p.accepted, a))
	return nil
}

func (l *Ledger) loadDoubt(key, payload []byte) error {
	id, d, err := decodeDoubt(key, payload)
	if err != nil {
		return err
	}
	p, ok := l.pairs[id]
	if !ok {
		return unknownPair(bucketDoubts, key, id)
	}
	if err := followsDoubt(p.doubts, &d, p.end.source); err != nil {
		return err
	}
	p.doubts = append(p.doubts, d)
	p.storedDoubts = p.doubts
	return nil
}

// followsAccepted returns an error unless a can come behind the acceptances of a
// pair whose source book ends at end.
func followsAccepted(before []acceptance, a *acceptance, end int64) error {
	last := int64(0)
	if n := len(before); n > 0 {
		last = before[n-1].Range.End
	}
	return inOrder(lawAccepted, "acceptance", a.Range, last, end)
}

// followsDoubt returns an error unless d can come behind the doubts of a pair
// whose source book ends at end: those of a kind do not touch.
func followsDoubt(before []Doubt, d *Doubt, end int64) error {
	last := int64(0)
	if n := len(before); n > 0 && before[n-1].Kind == d.Kind {
		last = before[n-1].Range.End + 1
	}
	return inOrder(lawDoubts, "doubt", d.Range, last, end)
}

func inOrder(law, what string, r Range, first, end int64) error {
	if r.Start >= first && r.End <= end {
		return nil
	}
	return lawErrorf(law, "%s", fmt.Sprintf("%s of %v, which must be within [%d, %d)", what, r, first, end))
}

// formatFault returns an error if a file of the format has no room for what the
// record says: an older version could not read it.
func (r *pairRecord) formatFault(format int) error {
	if r.cut() != nil && format < formatMarks {
		return lawErrorf(lawEncoding, "has a cut, in a file of format %d", format)
	}
	return nil
}

func (s *State) formatFault(format int) error {
	if s.CaughtUpMillis >= 0 && format < formatMarks {
		return lawErrorf(lawEncoding, "was caught up, in a file of format %d", format)
	}
	return nil
}
