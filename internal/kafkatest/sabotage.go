package kafkatest

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// A Damage is a way to spoil a copy behind everyone's back.
type Damage uint8

const (
	// Drop removes a record and leaves a hole at its offset, as compaction
	// does; with Shift later records move down by one, as if it had never been
	// copied.
	Drop Damage = iota + 1
	// Duplicate appends a second copy of a record at the log end; with Shift it
	// comes right behind the first, and later records move up by one.
	Duplicate
	// Swap exchanges a record with the next one.
	Swap
	// MutateValue, MutateKey and MutateHeaders change one byte, or add one
	// where there is none. MutateTimestamp adds a millisecond. MutateNull turns
	// a value into null, and null into an empty value.
	MutateValue
	MutateKey
	MutateHeaders
	MutateTimestamp
	MutateNull
	// Truncate cuts the last Count records, and what lies behind the first of
	// them, off the log.
	Truncate
	// Insert appends a record of somebody else's at the log end; with Shift it
	// comes right behind a record, and later records move up by one.
	Insert
)

// Damages returns all kinds.
func Damages() []Damage {
	return []Damage{Drop, Duplicate, Swap, MutateValue, MutateKey, MutateHeaders, MutateTimestamp, MutateNull, Truncate, Insert}
}

func (d Damage) String() string {
	names := []string{"", "drop", "duplicate", "swap", "mutate value", "mutate key", "mutate headers", "mutate timestamp", "mutate null", "truncate", "insert"}
	if d == 0 || int(d) >= len(names) {
		return fmt.Sprintf("Damage(%d)", uint8(d))
	}
	return names[d]
}

// A Sabotage spoils one record, or the tail, of one partition of a fake cluster.
// Checksums, lengths and all other records stay right.
type Sabotage struct {
	Damage    Damage
	Topic     string
	Partition int32
	Offset    int64 // of the record; -1 lets Seed choose. Truncate does not use it
	Seed      uint64
	Count     int  // of records, for Truncate; 0 means 1
	Shift     bool // for Drop, Duplicate and Insert
}

// A Sabotaged says what a Sabotage has done.
type Sabotaged struct {
	Sabotage // with the offset that was chosen; -1 for Truncate

	// Start and End bound the offsets concerned, half-open. Drop, Truncate: what
	// is gone (as offsets of before). Duplicate, Insert: the new record. Swap:
	// from the one to the other. Mutate: the record.
	Start, End int64
	Detail     string // one line for a person
}

// errUnsuitable reports a record that a damage cannot change: another one may
// do.
var errUnsuitable = errors.New("the record does not suit")

// Sabotage stops the cluster if it runs, spoils a partition, and starts the
// cluster again if it ran. It needs a data directory.
func (c *Cluster) Sabotage(s Sabotage) (Sabotaged, error) {
	var done Sabotaged
	err := c.EditLog(s.Topic, s.Partition, func(l *Log) (err error) {
		done, err = s.apply(l)
		return err
	})
	if err != nil {
		return Sabotaged{}, fmt.Errorf("%v: %w", s.Damage, err)
	}
	return done, nil
}

// Apply spoils a partition under the data directory of a stopped cluster.
func (s Sabotage) Apply(dataDir string) (Sabotaged, error) {
	var done Sabotaged
	err := EditLog(dataDir, s.Topic, s.Partition, func(l *Log) (err error) {
		done, err = s.apply(l)
		return err
	})
	if err != nil {
		return Sabotaged{}, fmt.Errorf("%v: %w", s.Damage, err)
	}
	return done, nil
}

func (s Sabotage) apply(l *Log) (Sabotaged, error) {
	work, err := openLog(l)
	if err != nil {
		return Sabotaged{}, err
	}
	done := Sabotaged{Sabotage: s}
	if s.Damage == Truncate {
		done.Offset = -1
		err = work.truncate(max(s.Count, 1), &done)
	} else {
		err = work.spoilOne(&done)
	}
	if err != nil {
		return Sabotaged{}, err
	}
	return done, work.close(l, done.Start)
}

// spoilOne spoils the record at the chosen offset, or the first one that suits
// from a random one on.
func (w *openedLog) spoilOne(done *Sabotaged) error {
	if done.Offset >= 0 {
		at, err := w.find(done.Offset)
		if err != nil {
			return err
		}
		return w.spoil(at, done)
	}
	places := w.places()
	if len(places) == 0 {
		return errors.New("the partition holds no records")
	}
	first := rand.New(rand.NewPCG(done.Seed, 0)).IntN(len(places))
	for i := range places {
		at := places[(first+i)%len(places)]
		done.Offset = w.offset(at)
		if err := w.spoil(at, done); !errors.Is(err, errUnsuitable) {
			return err
		}
	}
	return errUnsuitable
}

func (w *openedLog) spoil(at place, done *Sabotaged) error {
	done.Start, done.End = done.Offset, done.Offset+1
	switch done.Damage {
	case Drop:
		done.Detail = fmt.Sprintf("record at %d removed", done.Offset)
		w.drop(at, done.Shift)
		return nil
	case Duplicate:
		copied := *w.record(at)
		w.insert(at, copied, done)
		done.Detail = fmt.Sprintf("record at %d appended again at %d", done.Offset, done.Start)
		return nil
	case Insert:
		near := w.record(at)
		w.insert(at, BatchRecord{Timestamp: near.Timestamp, Key: []byte("foreign"), Value: []byte("nobody copied this")}, done)
		done.Detail = fmt.Sprintf("a foreign record at %d", done.Start)
		return nil
	case Swap:
		return w.swap(at, done)
	default:
		return w.mutate(at, done)
	}
}

func (w *openedLog) swap(at place, done *Sabotaged) error {
	next, ok := w.next(at)
	if !ok {
		return errUnsuitable
	}
	a, b := w.record(at), w.record(next)
	if sameContent(a, b) {
		return errUnsuitable
	}
	a.Timestamp, b.Timestamp = b.Timestamp, a.Timestamp
	a.Key, b.Key = b.Key, a.Key
	a.Value, b.Value = b.Value, a.Value
	a.Headers, b.Headers = b.Headers, a.Headers
	w.touch(at)
	w.touch(next)
	done.End = w.offset(next) + 1
	done.Detail = fmt.Sprintf("records at %d and %d exchanged", done.Start, done.End-1)
	return nil
}

func sameContent(a, b *BatchRecord) bool {
	target := logRecord{Record: Record{Timestamp: b.Timestamp, Key: b.Key, Value: b.Value, Headers: b.Headers}}
	return difference(&Record{Timestamp: a.Timestamp, Key: a.Key, Value: a.Value, Headers: a.Headers}, &target) == ""
}

func (w *openedLog) mutate(at place, done *Sabotaged) error {
	r := w.record(at)
	switch done.Damage {
	case MutateValue:
		r.Value = flipped(r.Value)
	case MutateKey:
		r.Key = flipped(r.Key)
	case MutateHeaders:
		if len(r.Headers) == 0 {
			r.Headers = []Header{{Key: "tampered", Value: []byte("1")}}
		} else {
			last := &r.Headers[len(r.Headers)-1]
			last.Value = flipped(last.Value)
		}
	case MutateTimestamp:
		if w.batches[at.batch].Attributes&AttrLogAppendTime != 0 {
			return errUnsuitable // the record's own time is not what consumers see
		}
		r.Timestamp++
	case MutateNull:
		if r.Value == nil {
			r.Value = []byte{}
		} else {
			r.Value = nil
		}
	default:
		return fmt.Errorf("unknown damage %d", done.Damage)
	}
	w.touch(at)
	done.Detail = fmt.Sprintf("%v of the record at %d", done.Damage, done.Offset)
	return nil
}

// flipped returns b with one bit changed, or one byte more if it has none.
func flipped(b []byte) []byte {
	if len(b) == 0 {
		return []byte("!")
	}
	out := append([]byte{}, b...)
	out[len(out)/2] ^= 1
	return out
}
