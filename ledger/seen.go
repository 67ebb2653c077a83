package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"strings"
)

// A SeenTopic is a source topic that the flow has come across, whether it
// copies it or not. A topic that is not among them was created, as far as the
// flow can tell, after it looked last.
//
// It is the same topic as another one if their ids are equal, or, where both
// have none, their names: a topic that was deleted and created again has another
// id (KIP-516) and is another topic. A topic that was seen without an id, by a
// broker that knows none, is not the one of the same name with an id.
type SeenTopic struct {
	Name string // of 1 to 249 bytes
	ID   TopicID
	// SeenMillis is when the topic was seen first, Unix time in milliseconds; 0
	// = the ledger's clock.
	SeenMillis int64

	// Partitions is how many partitions the topic had then, 0 or more: those
	// that it has been given since are new ones.
	Partitions int32

	// FromStart says that the topic was created after the flow began, and is
	// copied from its first record. The ledger only keeps it.
	FromStart bool
}

// SeeTopics adds those of the topics that are not known yet, durably: all of
// them, together with everything that is queued, or none and an error. Where all
// are known it costs no more than looking them up. What is known of a topic
// stays as it is, also when it was seen under another name or at another time.
//
// The error is an [*LawError] for a name, a time or a number of partitions that
// cannot be; others are those of [Ledger.Commit], ErrReadOnly and ErrClosed.
func (l *Ledger) SeeTopics(topics []SeenTopic) error {
	if some, err := l.anyUnseen(topics); err != nil || !some {
		return err
	}
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	unseen, err := l.unseen(topics)
	if err != nil || len(unseen) == 0 {
		return err
	}
	return l.commit(task{see: unseen})
}

// anyUnseen reports whether one of the topics is not known yet.
func (l *Ledger) anyUnseen(topics []SeenTopic) (bool, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if err := l.usable(); err != nil {
		return false, err
	}
	for i := range topics {
		if !l.flow.hasSeen(topics[i].Name, topics[i].ID) {
			return true, nil
		}
	}
	return false, nil
}

// unseen returns the topics that are not known yet, each once.
func (l *Ledger) unseen(topics []SeenTopic) ([]SeenTopic, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var unseen []SeenTopic
	listed := make(map[string]bool)
	for _, s := range topics {
		if l.flow.hasSeen(s.Name, s.ID) {
			continue
		}
		if s.SeenMillis == 0 {
			s.SeenMillis = l.now().UnixMilli()
		}
		if fault := s.fault(); fault != "" {
			return nil, lawErrorf(lawTopics, "%s", fault)
		}
		if key := string(topicKey(s.Name, s.ID)); !listed[key] {
			listed[key] = true
			unseen = append(unseen, s)
		}
	}
	return unseen, nil
}

// TopicSeen reports whether the ledger knows a topic: by its id, or, where that
// is zero, by its name among those without an id.
func (l *Ledger) TopicSeen(name string, id TopicID) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.flow.hasSeen(name, id)
}

// SeenTopic returns what the ledger knows of a topic, under the name that it had
// when it was seen first, and false if it does not know it; see
// [Ledger.TopicSeen]. What it knows is read from the file, so that the error may
// be any of [Ledger.SeenTopics]; there is none where it knows nothing.
func (l *Ledger) SeenTopic(name string, id TopicID) (SeenTopic, bool, error) {
	if !l.TopicSeen(name, id) {
		return SeenTopic{}, false, nil
	}
	key := topicKey(name, id)
	var s SeenTopic
	err := l.view(func(t *tree) error {
		payload, err := t.get(bucketTopics, key)
		if err != nil {
			return err
		}
		s, err = decodeSeen(key, payload)
		return damageIn(bucketTopics, key, err)
	})
	if err != nil {
		return SeenTopic{}, false, err
	}
	return s, true, nil
}

// HasSeenTopics reports whether the ledger knows any topic.
func (l *Ledger) HasSeenTopics() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.flow.counts.topics > 0
}

// seenChunk is how many topics [Ledger.SeenTopics] reads at once.
const seenChunk = 512

// SeenTopics returns the topics that the ledger knows, in no order that means
// anything. It ends with the last one, or with an error: a [*CorruptError] for a
// damaged file, ErrClosed, or that of a failed read. Of topics that are added
// meanwhile, some may be among them.
//
// They are read from the file, a few hundred at a time; nothing is held between
// two of them.
func (l *Ledger) SeenTopics() iter.Seq2[SeenTopic, error] {
	return func(yield func(SeenTopic, error) bool) {
		var next []byte
		for more := true; more; more = next != nil {
			var topics []SeenTopic
			var err error
			topics, next, err = l.seenFrom(next, seenChunk)
			for _, s := range topics {
				if !yield(s, nil) {
					return
				}
			}
			if err != nil {
				yield(SeenTopic{}, err)
				return
			}
		}
	}
}

// seenFrom reads up to n topics from a key on, and returns the key of the next
// one; nil if there is none.
func (l *Ledger) seenFrom(from []byte, n int) (topics []SeenTopic, next []byte, err error) {
	err = l.view(func(t *tree) error {
		b, ok := t.buckets[bucketTopics]
		if !ok {
			return nil // format 1: the bucket was looked for when the file was opened
		}
		return t.walk(b, from, func(e elem) (bool, error) {
			if len(topics) == n {
				next = bytes.Clone(e.key)
				return false, nil
			}
			payload, err := payloadOf(bucketTopics, e)
			if err != nil {
				return false, err
			}
			s, err := decodeSeen(e.key, payload)
			topics = append(topics, s)
			return err == nil, damageIn(bucketTopics, e.key, err)
		})
	})
	return topics, next, err
}

func (f *flowBooks) hasSeen(name string, id TopicID) bool {
	if id != (TopicID{}) {
		_, ok := f.seenIDs[id]
		return ok
	}
	_, ok := f.seenNames[name]
	return ok
}

// noteSeen keeps the identity of a topic that is in the file. A name is copied:
// it may be part of an answer that lists thousands.
func (f *flowBooks) noteSeen(s *SeenTopic) {
	if s.ID != (TopicID{}) {
		f.seenIDs[s.ID] = struct{}{}
		return
	}
	f.seenNames[strings.Clone(s.Name)] = struct{}{}
}

// fault returns what is wrong with a topic; "" if nothing.
func (s *SeenTopic) fault() string {
	if !validTopic(s.Name) {
		return fmt.Sprintf("topic name %.300q", s.Name)
	}
	if s.Partitions < 0 {
		return fmt.Sprintf("%d partitions", s.Partitions)
	}
	return timeFault(s.SeenMillis)
}

// topicKey is what a topic is known by: its id, with the name behind it where it
// is zero.
func topicKey(name string, id TopicID) []byte {
	if id != (TopicID{}) {
		return id[:]
	}
	return append(id[:], name...)
}

// parseTopicKey is the inverse of topicKey. The name is "" where there is an id.
func parseTopicKey(key []byte) (name string, id TopicID, ok bool) {
	if len(key) < len(id) {
		return "", id, false
	}
	name = string(key[copy(id[:], key):])
	if id == (TopicID{}) {
		return name, id, validTopic(name)
	}
	return "", id, name == ""
}

// flagFromStart stands for SeenTopic.FromStart.
const flagFromStart = 1

func seenValue(key []byte, s *SeenTopic) []byte {
	flags := uint64(0)
	if s.FromStart {
		flags = flagFromStart
	}
	b := binary.AppendUvarint(newValue(24+len(s.Name)), flags)
	if s.ID != (TopicID{}) {
		b = appendText(b, s.Name)
	}
	b = binary.AppendVarint(b, s.SeenMillis)
	b = binary.AppendUvarint(b, uint64(s.Partitions))
	return seal(bucketTopics, key, b)
}

// decodeSeen is the inverse of topicKey and seenValue.
func decodeSeen(key, payload []byte) (s SeenTopic, err error) {
	var ok bool
	if s.Name, s.ID, ok = parseTopicKey(key); !ok {
		return s, unknownKey(bucketTopics, key)
	}
	r := wireReader{b: payload}
	s.FromStart = r.flags(flagFromStart)&flagFromStart != 0
	if s.ID != (TopicID{}) {
		s.Name = r.text(maxText)
	}
	s.SeenMillis = r.varint()
	s.Partitions = int32(r.below(math.MaxInt32))
	if err := r.end("topic"); err != nil {
		return s, err
	}
	if fault := s.fault(); fault != "" {
		return s, lawErrorf(lawTopics, "%s", fault)
	}
	return s, nil
}
