package ledger

import (
	"encoding/binary"
)

// Flags of a section of a journal value.
const (
	sectionEntries = 1 << iota
	sectionState
	sectionKnown = 1<<iota - 1
)

// A section is what one commit added to one pair.
type section struct {
	id      PairID
	start   place // of the first entry
	entries []Entry
	state   *State // nil: not written with this commit
}

// journalKey is the key of a commit in the bucket journal: its number, so that
// the order of keys is the order of commits.
func journalKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// parseJournalKey is the inverse of journalKey.
func parseJournalKey(key []byte) (uint64, bool) {
	if len(key) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key), true
}

// appendJournal appends the payload of a journal value: the sections, in order
// of pair ids, of the commit at time.
func appendJournal(b []byte, time int64, sections []section) []byte {
	b = binary.AppendUvarint(b, 0) // flags
	b = binary.AppendVarint(b, time)
	b = binary.AppendUvarint(b, uint64(len(sections)))
	last := PairID(0)
	for i := range sections {
		s := &sections[i]
		b = binary.AppendUvarint(b, uint64(s.id-last))
		last = s.id
		b = appendSection(b, time, s)
	}
	return b
}

func appendSection(b []byte, time int64, s *section) []byte {
	flags := uint64(0)
	if len(s.entries) > 0 {
		flags |= sectionEntries
	}
	if s.state != nil {
		flags |= sectionState
	}
	b = binary.AppendUvarint(b, flags)
	if len(s.entries) > 0 {
		b = binary.AppendUvarint(b, uint64(s.start.source))
		b = binary.AppendUvarint(b, uint64(s.start.target))
		b = binary.AppendUvarint(b, uint64(len(s.entries)))
		c := newBasis(time)
		for i := range s.entries {
			b = appendEntry(b, &s.entries[i], &c)
		}
	}
	if s.state != nil {
		b = appendState(b, s.state, time)
	}
	return b
}

// decodeJournal is the inverse of appendJournal.
func decodeJournal(payload []byte) ([]section, error) {
	r := wireReader{b: payload}
	r.flags(0)
	time := r.varint()
	n := r.below(uint64(len(r.b))) // a section takes more than a byte
	sections := make([]section, 0, n)
	last := PairID(0)
	for range n {
		s := section{id: last + PairID(r.below(1<<32-1-uint64(last)))}
		if s.id == last {
			r.fail() // the ids ascend, and there is no pair 0
		}
		if err := decodeSection(&r, time, &s); err != nil {
			return nil, err
		}
		last = s.id
		sections = append(sections, s)
	}
	if !r.done() {
		return nil, lawErrorf(lawEncoding, "journal: cut short, too long, out of range or of a newer version")
	}
	return sections, nil
}

func decodeSection(r *wireReader, time int64, s *section) error {
	flags := r.flags(sectionKnown)
	if flags&sectionEntries != 0 {
		if err := decodeSectionEntries(r, time, s); err != nil {
			return err
		}
	}
	if flags&sectionState != 0 {
		state := decodeState(r, time)
		s.state = &state
	}
	if r.bad || flags == 0 || flags&sectionEntries != 0 && len(s.entries) == 0 {
		return lawErrorf(lawEncoding, "section of pair %d: cut short, out of range or of a newer version", s.id)
	}
	return nil
}

func decodeSectionEntries(r *wireReader, time int64, s *section) error {
	s.start = place{r.count(), r.count()}
	at, c := s.start, newBasis(time)
	for range r.below(uint64(len(r.b))) {
		var e Entry
		if err := decodeEntry(r, at, &c, &e); err != nil {
			return err
		}
		at = e.end()
		s.entries = append(s.entries, e)
	}
	return nil
}

// checkStart returns an error unless the section goes on where the books end.
func (s *section) checkStart(end place) error {
	if len(s.entries) == 0 || s.start == end {
		return nil
	}
	return lawErrorf(lawJournal, "pair %d goes on at source %d, target %d; its books end at %d and %d",
		s.id, s.start.source, s.start.target, end.source, end.target)
}

// checkFolded returns an error unless the pages of the pair, which a later
// commit folded up to end, reach as far as the section.
func (s *section) checkFolded(commit uint64, end place) error {
	if len(s.entries) == 0 || !end.before(s.entries[len(s.entries)-1].end()) {
		return nil
	}
	return lawErrorf(lawJournal, "pair %d was folded by commit %d up to source %d, target %d, but not this",
		s.id, commit, end.source, end.target)
}

// appendState appends a state whose time is written relative to base.
func appendState(b []byte, s *State, base int64) []byte {
	flags := uint64(0)
	if s.CompactSeen {
		flags |= stateCompactSeen
	}
	if s.CaughtUpMillis >= 0 {
		flags |= stateCaughtUp
	}
	b = binary.AppendUvarint(b, flags)
	b = binary.AppendUvarint(b, uint64(s.HighWatermark+1))
	b = binary.AppendVarint(b, s.HighWatermark-s.LastStable)
	b = binary.AppendUvarint(b, uint64(s.LogStart+1))
	b = binary.AppendVarint(b, s.SeenMillis-base)
	if s.CaughtUpMillis >= 0 {
		b = binary.AppendVarint(b, s.CaughtUpMillis-base)
	}
	return b
}

// Flags of a state.
const (
	stateCompactSeen = 1 << iota
	stateCaughtUp    // when follows; from format 3 on
	stateKnown       = 1<<iota - 1
)

// decodeState is the inverse of appendState.
func decodeState(r *wireReader, base int64) State {
	flags := r.flags(stateKnown)
	s := State{CompactSeen: flags&stateCompactSeen != 0, CaughtUpMillis: -1}
	s.HighWatermark = r.count() - 1
	s.LastStable = s.HighWatermark - r.varint()
	s.LogStart = r.count() - 1
	s.SeenMillis = r.delta(base)
	if flags&stateCaughtUp != 0 {
		if s.CaughtUpMillis = r.delta(base); s.CaughtUpMillis < 0 {
			r.fail()
		}
	}
	return s
}
