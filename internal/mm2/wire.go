package mm2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Why a record of an internal topic cannot be read, or not written.
var (
	// ErrNull: the key or the value is null, as in a tombstone. MirrorMaker 2's
	// readers do not expect that: its store of offset syncs never becomes ready if
	// it meets one at its start, and its client fails.
	ErrNull = errors.New("null")
	// ErrSchema: the bytes are too few, or a text has a negative length.
	ErrSchema = errors.New("bytes do not fit")
	// ErrTooLong: a text has more bytes than its length can say, 32,767.
	ErrTooLong = errors.New("text is too long")
)

// recordVersion is the version of what is written: the only one that there is.
const recordVersion int16 = 0

// An OffsetSync says that the record at one offset of a source partition was
// written at an offset of its target partition. It bears the topic's name on the
// source, and nothing of the flow (OffsetSync of Kafka's connect/mirror).
type OffsetSync struct {
	Topic                string
	Partition            int32
	Upstream, Downstream int64 // of the record itself, not the next one
}

// Encode returns the record. The error is [ErrTooLong].
func (s OffsetSync) Encode() (key, value []byte, err error) {
	if key, err = appendTexts(nil, s.Topic); err != nil {
		return nil, nil, fmt.Errorf("offset sync of %.40q: %w", s.Topic, err)
	}
	key = binary.BigEndian.AppendUint32(key, uint32(s.Partition))
	value = binary.BigEndian.AppendUint64(nil, uint64(s.Upstream))
	return key, binary.BigEndian.AppendUint64(value, uint64(s.Downstream)), nil
}

// ParseOffsetSync returns what MirrorMaker 2 reads from a record of a topic of
// offset syncs: bytes behind the last field do not matter, and what is no UTF-8
// becomes U+FFFD, as in the functions below. The error is [ErrNull] or
// [ErrSchema].
func ParseOffsetSync(key, value []byte) (s OffsetSync, err error) {
	k, v := fieldReader{part: "key", rest: key}, fieldReader{part: "value", rest: value}
	s = OffsetSync{k.text("topic"), k.int32("partition"), v.int64("upstream offset"), v.int64("downstream offset")}
	if err := firstError(key, value, k, v); err != nil {
		return OffsetSync{}, err
	}
	return s, nil
}

// A Checkpoint says where a consumer group goes on at the target (Checkpoint of
// Kafka's connect/mirror-client).
type Checkpoint struct {
	Group                string
	Topic                string // its name on the target
	Partition            int32
	Upstream, Downstream int64 // committed on the source, and what it becomes: the next to read
	Metadata             string
}

// Encode returns the record, of version 0. The error is [ErrTooLong].
func (c Checkpoint) Encode() (key, value []byte, err error) {
	if key, err = appendTexts(nil, c.Group, c.Topic); err != nil {
		return nil, nil, fmt.Errorf("checkpoint of group %.40q: %w", c.Group, err)
	}
	key = binary.BigEndian.AppendUint32(key, uint32(c.Partition))
	value = binary.BigEndian.AppendUint16(nil, uint16(recordVersion))
	value = binary.BigEndian.AppendUint64(value, uint64(c.Upstream))
	value = binary.BigEndian.AppendUint64(value, uint64(c.Downstream))
	if value, err = appendTexts(value, c.Metadata); err != nil {
		return nil, nil, fmt.Errorf("metadata of group %.40q: %w", c.Group, err)
	}
	return key, value, nil
}

// ParseCheckpoint returns what MirrorMaker 2 reads from a record of a topic of
// checkpoints. A value of another version is read as one of version 0, which a
// Java reader does as well: it only asserts. [RecordVersion] says which it is.
func ParseCheckpoint(key, value []byte) (c Checkpoint, err error) {
	k, v := fieldReader{part: "key", rest: key}, fieldReader{part: "value", rest: value}
	c.Group, c.Topic, c.Partition = k.text("group"), k.text("topic"), k.int32("partition")
	v.take("version", 2)
	c.Upstream, c.Downstream, c.Metadata = v.int64("upstream offset"), v.int64("downstream offset"), v.text("metadata")
	if err := firstError(key, value, v, k); err != nil {
		return Checkpoint{}, err
	}
	return c, nil
}

// A Heartbeat says that a flow was alive (Heartbeat of Kafka's connect/mirror).
type Heartbeat struct {
	Source, Target string // aliases of the flow
	Timestamp      int64  // milliseconds since 1970, also that of the record
}

// Encode returns the record, of version 0. The error is [ErrTooLong].
func (h Heartbeat) Encode() (key, value []byte, err error) {
	if key, err = appendTexts(nil, h.Source, h.Target); err != nil {
		return nil, nil, fmt.Errorf("heartbeat: %w", err)
	}
	value = binary.BigEndian.AppendUint16(nil, uint16(recordVersion))
	return key, binary.BigEndian.AppendUint64(value, uint64(h.Timestamp)), nil
}

// ParseHeartbeat returns what MirrorMaker 2 reads from a record of a heartbeats
// topic; versions are as with [ParseCheckpoint].
func ParseHeartbeat(key, value []byte) (h Heartbeat, err error) {
	k, v := fieldReader{part: "key", rest: key}, fieldReader{part: "value", rest: value}
	h.Source, h.Target = k.text("source alias"), k.text("target alias")
	v.take("version", 2)
	h.Timestamp = v.int64("timestamp")
	if err := firstError(key, value, v, k); err != nil {
		return Heartbeat{}, err
	}
	return h, nil
}

// RecordVersion returns the version of the value of a checkpoint or a heartbeat;
// 0 if it is too short to have one. Offset syncs have none.
func RecordVersion(value []byte) int16 {
	if len(value) < 2 {
		return recordVersion
	}
	return int16(binary.BigEndian.Uint16(value))
}

// appendTexts appends each text with its length (STRING of Kafka's protocol).
func appendTexts(to []byte, texts ...string) ([]byte, error) {
	for _, text := range texts {
		if len(text) > math.MaxInt16 {
			return nil, fmt.Errorf("%w: %d bytes, of at most %d", ErrTooLong, len(text), math.MaxInt16)
		}
		to = append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...)
	}
	return to, nil
}

// A fieldReader reads the fields of a key or a value, big-endian, up to the
// first that does not fit; from then on they are zero.
type fieldReader struct {
	part string
	rest []byte
	err  error
}

func (r *fieldReader) take(field string, n int) []byte {
	switch {
	case r.err != nil:
		return nil
	case n < 0:
		r.err = fmt.Errorf("%s: %w: %s has length %d", r.part, ErrSchema, field, n)
		return nil
	case n > len(r.rest):
		r.err = fmt.Errorf("%s: %w: %s needs %d bytes, %d are left", r.part, ErrSchema, field, n, len(r.rest))
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *fieldReader) int64(field string) int64 {
	if b := r.take(field, 8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *fieldReader) int32(field string) int32 {
	if b := r.take(field, 4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *fieldReader) text(field string) string {
	b := r.take(field, 2)
	if b == nil {
		return ""
	}
	b = r.take(field, int(int16(binary.BigEndian.Uint16(b))))
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b))) // U+FFFD for each wrong byte
}

// firstError returns why a record cannot be read. Java reads the parts in this
// order; which of them are null is told first here.
func firstError(key, value []byte, parts ...fieldReader) error {
	switch {
	case key == nil:
		return fmt.Errorf("key: %w", ErrNull)
	case value == nil:
		return fmt.Errorf("value: %w", ErrNull)
	}
	for _, part := range parts {
		if part.err != nil {
			return part.err
		}
	}
	return nil
}
