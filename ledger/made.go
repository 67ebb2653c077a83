package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// Bounds of what is kept of a target topic. Kafka bounds neither the number nor
// the length of a topic's settings; those of Kafka 4.3 are less than 40, with
// names of less than 50 bytes.
const (
	maxSettings     = 256
	maxSettingKey   = 256
	maxSettingValue = 4 << 10
)

// A madeTopic is a target topic that the flow made.
type madeTopic struct {
	name     string
	id       TopicID
	settings []setting // by key, each key once
}

// A setting is one of a topic's, by Kafka's name for it.
type setting struct{ key, value string }

// A madeChange is what a commit writes about a topic that the flow made. Key and
// value are never changed.
type madeChange struct{ key, value []byte }

// MadeTopic returns the settings that the flow set last of a target topic that it
// made, and false for a topic that it did not make: the settings of that one are
// not its to change. A topic is the one that SetMade was told of if their ids
// are equal, or, where both have none, their names, as with [SeenTopic]: what
// somebody else made under the same name later has another id.
//
// The map is the caller's. It costs no more than a look at memory.
func (l *Ledger) MadeTopic(name string, id TopicID) (settings map[string]string, ok bool) {
	l.mu.RLock()
	payload, ok := l.flow.made[string(topicKey(name, id))]
	l.mu.RUnlock()
	if !ok {
		return nil, false
	}
	m, err := decodeMade(topicKey(name, id), payload)
	if err != nil {
		panic(fmt.Sprintf("ledger: settings in memory: %v", err)) // read so before
	}
	settings = make(map[string]string, len(m.settings))
	for _, s := range m.settings {
		settings[s.key] = s.value
	}
	return settings, true
}

// SetMade says that the flow made a target topic, and which settings it has set
// last, in place of what was said of that topic before. It is durable when it
// returns, together with everything that is queued; where the ledger says so
// already it does nothing. The map stays the caller's.
//
// A topic has at most 256 settings, of keys of 1 to 256 bytes and values of at
// most 4096 bytes of UTF-8, and a name of 1 to 249 bytes. The error is an
// [*LawError] for anything else, and then all stays as it was; others are those
// of [Ledger.Commit], ErrReadOnly and ErrClosed.
func (l *Ledger) SetMade(name string, id TopicID, settings map[string]string) error {
	m := &madeTopic{name: name, id: id}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		m.settings = append(m.settings, setting{key, settings[key]})
	}
	if fault := m.fault(); fault != "" {
		return lawErrorf(lawMade, "%s", fault)
	}
	key := topicKey(name, id)
	change := &madeChange{key, madeValue(key, m)}
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	l.mu.RLock()
	known, ok := l.flow.made[string(key)]
	err := l.usable()
	l.mu.RUnlock()
	if err != nil || ok && bytes.Equal(known, change.payload()) {
		return err
	}
	return l.commit(task{made: change})
}

// fault returns what is wrong with a topic whose settings are sorted; "" if
// nothing.
func (m *madeTopic) fault() string {
	switch {
	case !validTopic(m.name):
		return fmt.Sprintf("topic name %.300q", m.name)
	case len(m.settings) > maxSettings:
		return fmt.Sprintf("%d settings", len(m.settings))
	}
	for i, s := range m.settings {
		switch {
		case s.key == "" || len(s.key) > maxSettingKey || !utf8.ValidString(s.key):
			return fmt.Sprintf("name %.300q of a setting", s.key)
		case len(s.value) > maxSettingValue || !utf8.ValidString(s.value):
			return fmt.Sprintf("the value of %s has more than %d bytes or is not UTF-8", s.key, maxSettingValue)
		case i > 0 && s.key <= m.settings[i-1].key:
			return fmt.Sprintf("setting %s behind %s", s.key, m.settings[i-1].key)
		}
	}
	return ""
}

func (c *madeChange) payload() []byte { return c.value[checksumSize:] }

// write puts the change into the transaction.
func (c *madeChange) write(tx *bbolt.Tx) error {
	if c == nil {
		return nil
	}
	return putAnywhere(tx, bucketMade, c.key, c.value)
}

// noteMade keeps what the file says about a topic. The payload stays as it is
// from here on: encoded it takes less memory than a map would.
func (f *flowBooks) noteMade(key, payload []byte) { f.made[string(key)] = payload }

func madeValue(key []byte, m *madeTopic) []byte {
	size := 8 + len(m.name)
	for _, s := range m.settings {
		size += 4 + len(s.key) + len(s.value)
	}
	b := binary.AppendUvarint(newValue(size), 0) // flags
	if m.id != (TopicID{}) {
		b = appendText(b, m.name)
	}
	b = binary.AppendUvarint(b, uint64(len(m.settings)))
	for _, s := range m.settings {
		b = appendText(appendText(b, s.key), s.value)
	}
	return seal(bucketMade, key, b)
}

// decodeMade is the inverse of topicKey and madeValue.
func decodeMade(key, payload []byte) (m madeTopic, err error) {
	var ok bool
	if m.name, m.id, ok = parseTopicKey(key); !ok {
		return m, unknownKey(bucketMade, key)
	}
	r := wireReader{b: payload}
	r.flags(0)
	if m.id != (TopicID{}) {
		m.name = r.text(maxText)
	}
	n := r.below(maxSettings)
	m.settings = make([]setting, 0, n)
	for range n {
		m.settings = append(m.settings, setting{r.text(maxSettingKey), r.text(maxSettingValue)})
	}
	if err := r.end("made topic"); err != nil {
		return m, err
	}
	if fault := m.fault(); fault != "" {
		return m, lawErrorf(lawMade, "%s", fault)
	}
	return m, nil
}
