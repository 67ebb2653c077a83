package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// NoOffset stands in a [GroupCommit] where a group has no offset.
const NoOffset = -1

// maxGroup bounds the ids of groups. Kafka bounds them at 32,767 bytes
// (StringSerialization of a request); nobody has one of more than a few dozen.
const maxGroup = 1024

// A GroupCommit is what the flow committed last for one partition of a consumer
// group on the target. Whoever finds another offset there knows that somebody
// else has moved the group since.
type GroupCommit struct {
	Topic     string // on the target, of 1 to 249 bytes
	Partition int32
	Offset    int64 // that was committed: the next to read. NoOffset in a change: nothing is kept any more
	Source    int64 // the group's offset on the source, of which it is the translation; Undecided, the higher of those of Offset and Before
	AtMillis  int64 // Unix time in milliseconds; in the ledger, that of the first commit of several in a row for the same Source

	// Undecided says that the commit was about to be made, and that nobody knows
	// whether it was: the group has Offset, or what it had, which is Before.
	Undecided bool
	Before    int64 // NoOffset: nothing. 0 unless Undecided
}

// partition says what a commit is of.
func (c *GroupCommit) partition() partition { return partition{c.Topic, c.Partition} }

// Has reports whether a group with a committed offset, NoOffset for none, is
// where the flow left it.
func (c *GroupCommit) Has(offset int64) bool {
	return offset == c.Offset || c.Undecided && offset == c.Before
}

// A groupsChange is what a commit writes about groups: sealed values by their
// keys, nil for a group of which nothing is kept any more.
type groupsChange map[string][]byte

// KeepGroupCommits keeps what was committed for groups, or is about to be, in
// place of what is kept about the same partitions of them. It is durable when it
// returns, together with everything that is queued. Where there is nothing to
// change it does nothing. Memory and file are bounded by the number of
// partitions that are kept, at about 20 bytes each and the length of the names.
//
// The error is an [*LawError] for a group of which [KeepsGroup] says no, or a topic,
// offset or time that cannot be, and then all stays as it was; others are those
// of [Ledger.Commit], ErrReadOnly and ErrClosed.
func (l *Ledger) KeepGroupCommits(commits map[string][]GroupCommit) error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	change := make(groupsChange)
	for group, news := range commits {
		if err := change.add(l, group, news); err != nil {
			return err
		}
	}
	l.mu.RLock()
	err := l.usable()
	l.mu.RUnlock()
	if err != nil || len(change) == 0 {
		return err
	}
	return l.commit(task{groups: change})
}

// add adds what is new about a group. The caller holds l.commitMu.
func (g groupsChange) add(l *Ledger, group string, news []GroupCommit) error {
	if fault := groupFault(group); fault != "" {
		return lawErrorf(lawGroups, "%s", fault)
	}
	kept := make(map[partition]GroupCommit)
	for _, c := range l.GroupCommits(group) {
		kept[c.partition()] = c
	}
	for _, c := range news {
		if c.Offset == NoOffset {
			delete(kept, c.partition())
			continue
		}
		if fault := c.fault(); fault != "" {
			return lawErrorf(lawGroups, "%s", fault)
		}
		// A group is known to have had its offset on the source since then.
		if before, ok := kept[c.partition()]; ok && before.Source == c.Source {
			c.AtMillis = min(c.AtMillis, before.AtMillis)
		}
		kept[c.partition()] = c
	}
	all := slices.SortedFunc(maps.Values(kept), func(a, b GroupCommit) int { return a.partition().compare(b.partition()) })
	l.mu.RLock()
	old, had := l.groups[group]
	l.mu.RUnlock()
	key := []byte(group)
	switch {
	case len(all) == 0 && had:
		g[group] = nil
	case len(all) > 0:
		if value := groupValue(key, all); !bytes.Equal(old, value[checksumSize:]) {
			g[group] = value
		}
	}
	return nil
}

// GroupCommits returns what is kept of a group, by topic and partition. The
// slice is the caller's.
func (l *Ledger) GroupCommits(group string) []GroupCommit {
	l.mu.RLock()
	payload, ok := l.groups[group]
	l.mu.RUnlock()
	if !ok {
		return nil
	}
	all, err := decodeGroup([]byte(group), payload)
	if err != nil {
		panic(fmt.Sprintf("ledger: group in memory: %v", err)) // read so before
	}
	return all
}

// CommittedGroups returns the groups of which something is kept, in order.
func (l *Ledger) CommittedGroups() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.groups))
}

// KeepsGroup reports whether commits of a group can be kept, by its id: one of 1
// to 1024 bytes of UTF-8.
func KeepsGroup(id string) bool {
	return id != "" && len(id) <= maxGroup && utf8.ValidString(id)
}

func groupFault(group string) string {
	if !KeepsGroup(group) {
		return fmt.Sprintf("group id %.300q", group)
	}
	return ""
}

// fault returns what is wrong with a commit; "" if nothing.
func (c *GroupCommit) fault() string {
	switch {
	case !validTopic(c.Topic) || c.Partition < 0:
		return fmt.Sprintf("partition %d of topic %.300q", c.Partition, c.Topic)
	case c.Offset < 0 || c.Source < 0:
		return fmt.Sprintf("offset %d, of %d on the source", c.Offset, c.Source)
	case c.Before < NoOffset || !c.Undecided && c.Before != 0 || c.Undecided && c.Before == math.MaxInt64:
		return fmt.Sprintf("offset %d before", c.Before)
	}
	return timeFault(c.AtMillis)
}

// groupUndecided stands for GroupCommit.Undecided.
const groupUndecided = 1

// groupValue encodes commits that are in order of topics and partitions.
func groupValue(key []byte, all []GroupCommit) []byte {
	b := binary.AppendUvarint(newValue(16+20*len(all)), 0) // flags
	topics := 0
	for i := range all {
		topics += change01(i > 0 && all[i].Topic == all[i-1].Topic, true)
	}
	b = binary.AppendUvarint(b, uint64(topics))
	for rest := all; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Topic == rest[0].Topic {
			n++
		}
		b = appendText(b, rest[0].Topic)
		b = binary.AppendUvarint(b, uint64(n))
		for i := range rest[:n] {
			b = appendGroupCommit(b, &rest[i])
		}
		rest = rest[n:]
	}
	return seal(bucketGroups, key, b)
}

func appendGroupCommit(b []byte, c *GroupCommit) []byte {
	flags := uint64(0)
	if c.Undecided {
		flags = groupUndecided
	}
	b = binary.AppendUvarint(b, flags)
	for _, n := range []int64{int64(c.Partition), c.Offset, c.Source} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = binary.AppendVarint(b, c.AtMillis)
	if c.Undecided {
		b = binary.AppendUvarint(b, uint64(c.Before+1))
	}
	return b
}

// decodeGroup is the inverse of groupValue.
func decodeGroup(key, payload []byte) (all []GroupCommit, err error) {
	if groupFault(string(key)) != "" {
		return nil, unknownKey(bucketGroups, key)
	}
	r := wireReader{b: payload}
	r.flags(0)
	for range r.below(uint64(len(r.b))) {
		topic := r.text(maxText)
		n := r.below(uint64(len(r.b)))
		if n == 0 {
			r.fail() // a topic is there for its partitions
		}
		for range n {
			all = append(all, readGroupCommit(&r, topic))
		}
	}
	if err := r.end("group"); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, lawErrorf(lawGroups, "nothing is kept of the group")
	}
	for i := range all {
		if fault := all[i].fault(); fault != "" {
			return nil, lawErrorf(lawGroups, "%s", fault)
		}
		if i > 0 && all[i].partition().compare(all[i-1].partition()) <= 0 {
			return nil, lawErrorf(lawGroups, "partition %d of %s out of order", all[i].Partition, all[i].Topic)
		}
		if i > 0 && all[i].Topic == all[i-1].Topic {
			all[i].Topic = all[i-1].Topic // one text for all of them
		}
	}
	return all, nil
}

func readGroupCommit(r *wireReader, topic string) GroupCommit {
	flags := r.flags(groupUndecided)
	c := GroupCommit{Topic: topic, Partition: int32(r.below(math.MaxInt32)), Offset: r.count(), Source: r.count(), AtMillis: r.varint()}
	if flags&groupUndecided != 0 {
		c.Undecided, c.Before = true, r.count()-1
	}
	return c
}

func groupsCountValue(n int) []byte {
	b := binary.AppendUvarint(newValue(8), 0) // flags
	b = binary.AppendUvarint(b, uint64(n))
	return seal(bucketMeta, []byte(metaGroups), b)
}

func decodeGroupsCount(payload []byte) (int, error) {
	r := wireReader{b: payload}
	r.flags(0)
	n := int(r.below(math.MaxInt32))
	return n, r.end("groups")
}

// countGroups returns how many groups there are after the commit. The caller
// holds l.mu, or is the only one who commits.
func (c *commit) countGroups(before map[string][]byte) int {
	n := len(before)
	for group, value := range c.groups {
		_, had := before[group]
		n += change01(had, value != nil)
	}
	return n
}

// writeGroups puts what changes about groups into the transaction.
func (c *commit) writeGroups(tx *bbolt.Tx) error {
	if len(c.groups) == 0 {
		return nil
	}
	for _, group := range slices.Sorted(maps.Keys(c.groups)) {
		value := c.groups[group]
		if value == nil {
			if err := tx.Bucket([]byte(bucketGroups)).Delete([]byte(group)); err != nil {
				return err
			}
		} else if err := putAnywhere(tx, bucketGroups, []byte(group), value); err != nil {
			return err
		}
	}
	return put(tx, bucketMeta, []byte(metaGroups), groupsCountValue(c.groupCount))
}

// publishGroups shows readers what was committed. The caller holds l.mu.
func (l *Ledger) publishGroups(c *commit) {
	for group, value := range c.groups {
		if value == nil {
			delete(l.groups, group)
			continue
		}
		l.groups[group] = value[checksumSize:]
	}
}

// loadGroups reads what is kept of groups. A file of an earlier format has
// nothing.
func (l *Ledger) loadGroups(t *tree) error {
	if l.identity.Format < formatGroups {
		return nil
	}
	want := 0
	if err := loadKey(t, metaGroups, decodeGroupsCount, &want); err != nil {
		return err
	}
	err := t.values(bucketGroups, func(key, payload []byte) error {
		_, err := decodeGroup(key, payload)
		// Encoded it takes less memory than decoded.
		l.groups[string(key)] = bytes.Clone(payload)
		return damageIn(bucketGroups, key, err)
	})
	if err == nil {
		err = wantValues(bucketGroups, len(l.groups), want)
	}
	return err
}

// checkGroups checks what is kept of groups, and that none is missing.
func (c *checker) checkGroups() error {
	if c.format < formatGroups {
		return nil
	}
	count, err := c.values(bucketGroups, func(key, payload []byte) error {
		_, err := decodeGroup(key, payload)
		return err
	})
	c.count(bucketGroups, count, c.groups)
	return err
}
