package ledger

import (
	"fmt"
	"slices"
	"testing"
)

// FuzzDecodePage takes bytes as the payload of a page. Whatever they are,
// nothing panics; and what is read is valid, hangs together, and is the same
// when it is written and read again.
func FuzzDecodePage(f *testing.F) {
	p := newPage(place{5, 6}, Totals{Bytes: 7, Entries: 2})
	at := Position{Source: 5, Target: 6}
	for tile := range Tile(NumTiles) {
		e := sourceEntry(tile, at, 3)
		switch {
		case tile == Copied:
			e = copiedEntry(at, 3)
			e.Gaps = []Gap{{CommitMarker, Range{e.Source.End, e.Source.End + 1}}}
			e.Source.End++
		case tile.AdvancesTarget():
			e = targetEntry(tile, at, 3)
		}
		if !p.push(&e) {
			f.Fatal("the page is full")
		}
		at = advance(at, &e)
		f.Add(p.value(nil)[checksumSize:])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		p, before, err := parsePage(place{5, 6}, payload)
		if err != nil {
			return
		}
		entries, err := p.complete(before)
		if err != nil {
			return
		}
		end := p.start
		again := newPage(p.start, before)
		for i := range entries {
			if err := entries[i].Validate(); err != nil || entries[i].start() != end {
				t.Fatalf("entry %d: %+v does not follow %+v: %v", i, entries[i], end, err)
			}
			end = entries[i].end()
			if !again.push(&entries[i]) {
				return // longer than any page that is written
			}
		}
		if end != p.end || again.after != p.after || again.next != p.next {
			t.Fatalf("the page ends at %+v with %v, it says %+v and %v", end, again.after, p.end, p.after)
		}
		read, err := again.entries()
		if err != nil || !slices.EqualFunc(read, entries, sameEntry) {
			t.Fatalf("written and read again: %v, %v, want %v", read, err, entries)
		}
	})
}

// FuzzDecodeJournal does the same with the payload of a journal value.
func FuzzDecodeJournal(f *testing.F) {
	state := State{LogStart: 1, LastStable: 2, HighWatermark: 3, SeenMillis: startMillis, CompactSeen: true, CaughtUpMillis: startMillis - 9}
	at := Position{Source: 5, Target: 6}
	f.Add(appendJournal(nil, startMillis, nil))
	f.Add(appendJournal(nil, startMillis, []section{
		{id: 1, state: &state},
		{id: 7, start: place{5, 6}, entries: []Entry{copiedEntry(at, 3)}},
		{id: 8, start: place{5, 6}, entries: []Entry{sourceEntry(Filtered, at, 3), targetEntry(Foreign, Position{Source: 8, Target: 6}, 2)}, state: &state},
	}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		sections, err := decodeJournal(payload)
		if err != nil {
			return
		}
		last := PairID(0)
		for _, s := range sections {
			end := s.start
			for i := range s.entries {
				if err := s.entries[i].Validate(); err != nil || s.entries[i].start() != end || s.id <= last {
					t.Fatalf("pair %d behind %d: %+v does not follow %+v: %v", s.id, last, s.entries[i], end, err)
				}
				end = s.entries[i].end()
			}
			last = s.id
		}
		again, err := decodeJournal(appendJournal(nil, 0, sections))
		if err != nil || !slices.EqualFunc(again, sections, sameSection) {
			t.Fatalf("written and read again: %+v, %v, want %+v", again, err, sections)
		}
	})
}

func sameSection(a, b section) bool {
	sameState := (a.state == nil) == (b.state == nil) && (a.state == nil || *a.state == *b.state)
	return a.id == b.id && a.start == b.start && sameState && slices.EqualFunc(a.entries, b.entries, sameEntry)
}

// FuzzDecodeFlow does the same with keys and payloads of the books beside the
// pairs: what is read keeps the laws, and is the same under the same key when it
// is written and read again.
func FuzzDecodeFlow(f *testing.F) {
	for _, s := range goodTopics() {
		key := topicKey(s.Name, s.ID)
		f.Add(byte(0), key, seenValue(key, &s)[checksumSize:])
	}
	for _, o := range goodOrders() {
		key := partitionKey(o.partition())
		f.Add(byte(1), key, orderValue(key, &o)[checksumSize:])
	}
	for _, s := range goodStops() {
		key := partitionKey(s.partition())
		f.Add(byte(2), key, stopValue(key, &s)[checksumSize:])
	}
	for _, m := range goodMade() {
		key := topicKey(m.name, m.id)
		f.Add(byte(3), key, madeValue(key, &m)[checksumSize:])
	}
	for _, r := range []Range{{0, 1}, {7, 1 << 40}, {1<<62 - 1, 1 << 62}} {
		a := acceptance{Acceptance{r, "known", "ada", startMillis}, 1}
		key := acceptedKey(9, r.Start)
		f.Add(byte(4), key, acceptedValue(key, &a)[checksumSize:])
		d := Doubt{StaleKeys, r, startMillis}
		key = doubtKey(9, &d)
		f.Add(byte(5), key, doubtValue(key, &d)[checksumSize:])
	}
	closed := &pairRecord{Pair: Pair{SourceTopic: "s", TargetTopic: "t", Closed: &Closing{Reason: "r", Cut: &Cut{5, 7}}},
		producers: []Producer{{}}, closedAt: place{7, 9}, cutBad: 2}
	for range 2 {
		f.Add(byte(6), pairKey(9), pairValue(pairKey(9), closed)[checksumSize:])
		closed.Closed = nil
	}
	for group, commits := range goodGroups() {
		f.Add(byte(7), []byte(group), groupValue([]byte(group), commits)[checksumSize:])
	}
	f.Fuzz(func(t *testing.T, book byte, key, payload []byte) {
		switch book % 8 {
		case 7:
			fuzzGroup(t, key, payload)
		case 4:
			fuzzAccepted(t, key, payload)
		case 5:
			fuzzDoubt(t, key, payload)
		case 6:
			fuzzPair(t, payload)
		case 0:
			fuzzSeen(t, key, payload)
		case 1:
			fuzzOrder(t, key, payload)
		case 3:
			fuzzMade(t, key, payload)
		default:
			fuzzStop(t, key, payload)
		}
	})
}

func fuzzAccepted(t *testing.T, key, payload []byte) {
	id, a, err := decodeAccepted(key, payload)
	if err != nil {
		return
	}
	if a.Range.Start < 0 || a.Range.Start >= a.Range.End || a.Reason == "" || a.bad < 0 || a.bad > a.Range.End-a.Range.Start || id == 0 ||
		!slices.Equal(acceptedKey(id, a.Range.Start), key) {
		t.Fatalf("%d %+v under %x", id, a, key)
	}
	if _, again, err := decodeAccepted(key, acceptedValue(key, &a)[checksumSize:]); err != nil || again != a {
		t.Fatalf("written and read again: %+v, %v, want %+v", again, err, a)
	}
}

func fuzzGroup(t *testing.T, key, payload []byte) {
	commits, err := decodeGroup(key, payload)
	if err != nil {
		return
	}
	for i, c := range commits {
		if c.Topic == "" || len(c.Topic) > 249 || c.Partition < 0 || c.Offset < 0 || c.Source < 0 || c.AtMillis < 0 || c.Before < -1 ||
			i > 0 && c.Topic+fmt.Sprintf("%10d", c.Partition) <= commits[i-1].Topic+fmt.Sprintf("%10d", commits[i-1].Partition) &&
				c.Topic == commits[i-1].Topic || i > 0 && c.Topic < commits[i-1].Topic {
			t.Fatalf("%+v under %x", commits, key)
		}
	}
	again, err := decodeGroup(key, groupValue(key, commits)[checksumSize:])
	if len(commits) == 0 || err != nil || !slices.Equal(again, commits) {
		t.Fatalf("written and read again: %+v, %v, want %+v", again, err, commits)
	}
}

func fuzzDoubt(t *testing.T, key, payload []byte) {
	id, d, err := decodeDoubt(key, payload)
	if err != nil {
		return
	}
	if d.Range.Start < 0 || d.Range.Start >= d.Range.End || d.Kind != StaleKeys || d.AtMillis < 0 || id == 0 || !slices.Equal(doubtKey(id, &d), key) {
		t.Fatalf("%d %+v under %x", id, d, key)
	}
	if _, again, err := decodeDoubt(key, doubtValue(key, &d)[checksumSize:]); err != nil || again != d {
		t.Fatalf("written and read again: %+v, %v, want %+v", again, err, d)
	}
}

func fuzzPair(t *testing.T, payload []byte) {
	p, err := decodePair(9, payload)
	if err != nil {
		return
	}
	if p.Closed != nil && p.Closed.Cut != nil && (p.Closed.Cut.Source < 0 || p.Closed.Cut.Target < 0 || p.cutBad < 0) {
		t.Fatalf("%+v", p)
	}
	value := pairValue(pairKey(9), p)
	again, err := decodePair(9, value[checksumSize:])
	if err != nil || !slices.Equal(pairValue(pairKey(9), again), value) {
		t.Fatalf("written and read again: %+v, %v, want %+v", again, err, p)
	}
}

func fuzzSeen(t *testing.T, key, payload []byte) {
	s, err := decodeSeen(key, payload)
	if err != nil {
		return
	}
	if s.Name == "" || len(s.Name) > 249 || s.SeenMillis < 0 || s.Partitions < 0 || !slices.Equal(topicKey(s.Name, s.ID), key) {
		t.Fatalf("%+v under %x", s, key)
	}
	if again, err := decodeSeen(key, seenValue(key, &s)[checksumSize:]); err != nil || again != s {
		t.Fatalf("written and read again: %+v, %v, want %+v", again, err, s)
	}
}

func fuzzOrder(t *testing.T, key, payload []byte) {
	o, err := decodeOrder(key, payload)
	if err != nil {
		return
	}
	skips := o.Skip.Start < o.Skip.End
	something := skips || o.Paused || o.AcceptRecreated || o.AcceptTruncated || o.Recopy || o.TolerateForeign
	if o.SourceTopic == "" || o.Partition < -1 || o.Skip.Start < 0 || skips && (o.Reason == "" || o.Partition < 0) || !something {
		t.Fatalf("%+v", o)
	}
	key = partitionKey(o.partition())
	if again, err := decodeOrder(key, orderValue(key, &o)[checksumSize:]); err != nil || again != o {
		t.Fatalf("written and read again: %+v, %v, want %+v", again, err, o)
	}
}

func fuzzStop(t *testing.T, key, payload []byte) {
	s, err := decodeStop(key, payload)
	if err != nil {
		return
	}
	if s.SourceTopic == "" || s.Partition < -1 || s.Offset < -1 || s.Reason == "" || s.Tries < 0 || s.SinceMillis < 0 {
		t.Fatalf("%+v", s)
	}
	key = partitionKey(s.partition())
	if again, err := decodeStop(key, stopValue(key, &s)[checksumSize:]); err != nil || again != s {
		t.Fatalf("written and read again: %+v, %v, want %+v", again, err, s)
	}
}

func fuzzMade(t *testing.T, key, payload []byte) {
	m, err := decodeMade(key, payload)
	if err != nil {
		return
	}
	if m.name == "" || len(m.name) > 249 || len(m.settings) > 256 || !slices.Equal(topicKey(m.name, m.id), key) {
		t.Fatalf("%+v under %x", m, key)
	}
	for i, s := range m.settings {
		if s.key == "" || len(s.key) > 256 || len(s.value) > 4096 || i > 0 && s.key <= m.settings[i-1].key {
			t.Fatalf("%+v", m)
		}
	}
	again, err := decodeMade(key, madeValue(key, &m)[checksumSize:])
	if err != nil || again.name != m.name || again.id != m.id || !slices.Equal(again.settings, m.settings) {
		t.Fatalf("written and read again: %+v, %v, want %+v", again, err, m)
	}
}
