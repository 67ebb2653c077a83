package ledger

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// buildGood makes the good ledger of testdata: every kind of tile, several
// pages, a closed generation and its successor, and a journal that is not
// folded. It is the same each time.
//
//	pair 1  orders-0, generation 1, closed
//	pair 2  orders-1, several pages
//	pair 3  pay-0, one of everything
//	pair 4  audit-0, in the journal only
//	pair 5  orders-0, generation 2
//	pair 6  cut-0, closed with a cut, with acceptances and doubts
//	pair 7  cut-0, generation 2
//
// Beside the pairs it has what goodTopics, goodMade, goodOrders, goodStops and
// goodGroups say.
func buildGood(t testing.TB, path string) {
	t.Helper()
	building := filepath.Join(t.TempDir(), "building.ledger")
	l, err := Create(building, testIdentity(), Options{Now: func() time.Time { return time.UnixMilli(startMillis) }})
	if err != nil {
		t.Fatal(err)
	}
	l.writer.minimum = 1
	if err := l.SetScope(Scope{Topics: []string{"orders", "pay", "audit"}, TopicsExclude: []string{"audit-.*"}}); err != nil {
		t.Fatal(err)
	}
	mustFillFlow(t, l)
	mustOpenPairs(t, l,
		Pair{SourceTopic: "orders", SourceTopicID: TopicID{1}, TargetTopic: "a.orders", TargetTopicID: TopicID{2}, ScopeStart: 10, TargetBase: 5,
			Producer: Producer{ID: 4000}},
		Pair{SourceTopic: "orders", SourceTopicID: TopicID{1}, TargetTopic: "a.orders", TargetTopicID: TopicID{2}, Partition: 1, Producer: Producer{ID: 4001}},
		Pair{SourceTopic: "pay", TargetTopic: "a.pay", ScopeStart: 4, Producer: Producer{ID: 4002, Sequence: 7}},
		Pair{SourceTopic: "audit", TargetTopic: "a.audit", Producer: Producer{ID: 4003}})
	mustAppend(t, l, 1, copiedEntry(l.End(1), 20))
	mustAppendMany(t, l, 2, 300)
	mustAppendAll(t, l, 3)
	mustSetState(t, l, 2, State{LogStart: 0, LastStable: 600, HighWatermark: 610, SeenMillis: startMillis})
	mustCommit(t, l)
	if err := l.ClosePair(1, Closing{Reason: "recreated", AtMillis: startMillis}); err != nil {
		t.Fatal(err)
	}
	mustOpenPairs(t, l, Pair{SourceTopic: "orders", SourceTopicID: TopicID{3}, TargetTopic: "a.orders", TargetTopicID: TopicID{2}, TargetBase: 25,
		Producer: Producer{ID: 4000, Epoch: 1}})
	mustCutOff(t, l)
	for id := PairID(2); id <= 5; id++ {
		mustAppend(t, l, id, copiedEntry(l.End(id), 3))
		mustSetState(t, l, id, State{LogStart: 1, LastStable: 700, HighWatermark: 700, SeenMillis: startMillis})
	}
	if err := l.SetProducer(3, Producer{ID: 5000, Epoch: 1, Appended: l.End(3).Appended}); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, l)
	mustAppend(t, l, 5, copiedEntry(l.End(5), 2))
	mustCommit(t, l)
	if len(l.writer.journal) < 2 {
		t.Fatalf("the good ledger has %d journal values, want some", len(l.writer.journal))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	compactFile(t, building, path)
}

// mustCutOff makes pairs 6 and 7. The books of pair 6: copied [0, 10), lost
// [10, 15), copied [15, 18), compacted [18, 20), lost [20, 24), cut off at 19.
func mustCutOff(t testing.TB, l *Ledger) {
	t.Helper()
	mustOpenPairs(t, l, Pair{SourceTopic: "cut", TargetTopic: "a.cut", Producer: Producer{ID: 4004}})
	mustAppend(t, l, 6, copiedEntry(l.End(6), 10))
	mustAppend(t, l, 6, sourceEntry(Lost, l.End(6), 5))
	mustAppend(t, l, 6, copiedEntry(l.End(6), 3))
	mustAppend(t, l, 6, sourceEntry(Compacted, l.End(6), 2))
	mustAppend(t, l, 6, sourceEntry(Lost, l.End(6), 4))
	for _, r := range []Range{{2, 5}, {18, 20}} {
		if err := l.SetDoubt(6, Doubt{Range: r, AtMillis: startMillis}); err != nil {
			t.Fatal(err)
		}
	}
	mustSetState(t, l, 6, State{LogStart: 1, LastStable: 24, HighWatermark: 24, SeenMillis: startMillis, CaughtUpMillis: startMillis - 5})
	for _, a := range []Acceptance{{Range{10, 12}, "expired", "ada", startMillis}, {Range{18, 22}, "known", "", startMillis}} {
		if err := l.Accept(6, a); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.Reopen(6, Closing{Reason: "target_lost_records", AtMillis: startMillis, Cut: &Cut{19, 13}},
		Pair{SourceTopic: "cut", TargetTopic: "a.cut", ScopeStart: 19, TargetBase: 13, Producer: Producer{ID: 4004, Epoch: 1}})
	if err != nil {
		t.Fatal(err)
	}
	mustSetState(t, l, 7, State{LogStart: 1, LastStable: 24, HighWatermark: 24, SeenMillis: startMillis, CaughtUpMillis: startMillis})
}

func goodTopics() []SeenTopic {
	return []SeenTopic{
		{Name: "older", SeenMillis: startMillis, Partitions: 1}, // of a broker without topic ids
		{Name: "orders", ID: TopicID{1}, SeenMillis: startMillis, Partitions: 2},
		{Name: "orders", ID: TopicID{3}, SeenMillis: startMillis + 5, Partitions: 2, FromStart: true},
		{Name: "pay", ID: TopicID{4}, SeenMillis: startMillis + 5, Partitions: 300},
	}
}

func goodMade() []madeTopic {
	return []madeTopic{
		{name: "a.older"}, // of a broker without topic ids
		{name: "a.orders", id: TopicID{2}, settings: []setting{
			{"cleanup.policy", "compact,delete"}, {"compression.type", "producer"}, {"max.message.bytes", "1153444"}, {"retention.ms", "-1"},
		}},
		{name: "a.pay", id: TopicID{5}, settings: []setting{{"message.timestamp.type", "CreateTime"}, {"segment.bytes", ""}}},
	}
}

func goodOrders() []Order {
	return []Order{
		{SourceTopic: "audit", Partition: -1, Paused: true, AtMillis: startMillis},
		{SourceTopic: "orders", Partition: -1, AcceptRecreated: true, Reason: "planned", By: "ada", AtMillis: startMillis},
		{SourceTopic: "orders", Partition: 1, Skip: Range{700, 703}, AcceptTruncated: true, Recopy: true, TolerateForeign: true,
			Reason: "poison", By: "ada", AtMillis: startMillis},
	}
}

func goodStops() []Stop {
	return []Stop{
		{SourceTopic: "pay", Partition: 0, Offset: 24, Reason: "record_too_large", Detail: "1048589 bytes, max.message.bytes is 1048588",
			SinceMillis: startMillis, Tries: 3},
		{SourceTopic: "secret", Partition: -1, Offset: -1, Reason: "not_authorized", SinceMillis: startMillis},
	}
}

// mustFillFlow writes what the good ledger has beside the pairs.
func mustFillFlow(t testing.TB, l *Ledger) {
	t.Helper()
	if err := l.SeeTopics(goodTopics()); err != nil {
		t.Fatal(err)
	}
	for _, m := range goodMade() {
		mustMake(t, l, m)
	}
	mustKeep(t, l, goodGroups())
	for _, o := range goodOrders() {
		if err := l.SetOrder(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range goodStops() {
		if err := l.SetStop(s); err != nil {
			t.Fatal(err)
		}
	}
}

func mustOpenPairs(t testing.TB, l *Ledger, pairs ...Pair) {
	t.Helper()
	if _, err := l.OpenPairs(pairs); err != nil {
		t.Fatal(err)
	}
}

func mustSetState(t testing.TB, l *Ledger, id PairID, s State) {
	t.Helper()
	if err := l.SetState(id, s); err != nil {
		t.Fatal(err)
	}
}

// mustAppendMany appends n copied entries that are not joined: their leader
// epochs differ.
func mustAppendMany(t testing.TB, l *Ledger, id PairID, n int) {
	t.Helper()
	for i := range n {
		e := copiedEntry(l.End(id), 2)
		e.LeaderEpoch = int32(i % 2)
		if i%5 == 0 {
			e.Source.End++
			e.Gaps = []Gap{{CommitMarker, Range{e.Source.End - 1, e.Source.End}}}
		}
		mustAppend(t, l, id, e)
	}
}

// mustAppendAll appends an entry of every tile.
func mustAppendAll(t testing.TB, l *Ledger, id PairID) {
	t.Helper()
	for tile := range Tile(NumTiles) {
		switch {
		case tile == Copied:
			mustAppend(t, l, id, copiedEntry(l.End(id), 3))
		case tile == BeforeStart:
		case tile.AdvancesSource():
			e := sourceEntry(tile, l.End(id), 2)
			e.LeaderEpoch = 9 // not joined
			mustAppend(t, l, id, e)
		default:
			mustAppend(t, l, id, targetEntry(tile, l.End(id), 1))
		}
	}
}

// compactFile writes the buckets of a file into a new one that is no longer
// than it must be.
func compactFile(t testing.TB, from, to string) {
	t.Helper()
	source, err := bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	wide := filepath.Join(t.TempDir(), "wide")
	target, err := bbolt.Open(wide, 0o600, &bbolt.Options{PageSize: fileBlock})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := bbolt.Compact(target, source, 0); err != nil {
		t.Fatal(err)
	}
	if err := target.View(func(tx *bbolt.Tx) error { return tx.CopyFile(to, 0o644) }); err != nil {
		t.Fatal(err)
	}
}

// A sabotage breaks a good ledger in one way.
type sabotage struct {
	name   string
	law    string // that the check must name
	bucket string // where
	spoil  func(*testing.T, string)
}

// edited is a sabotage through bbolt, with checksums that are right.
func edited(name, law, bucket string, edit func(*editor)) sabotage {
	return sabotage{name, law, bucket, func(t *testing.T, path string) {
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(func(tx *bbolt.Tx) error { edit(&editor{t, tx}); return nil }); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		compactFile(t, path, path+".compact")
		if err := os.Rename(path+".compact", path); err != nil {
			t.Fatal(err)
		}
	}}
}

// patched is a sabotage of the file's bytes.
func patched(name, law, bucket string, patch func([]byte) []byte) sabotage {
	return sabotage{name, law, bucket, func(t *testing.T, path string) {
		if err := os.WriteFile(path, patch(mustReadFile(t, path)), 0o644); err != nil {
			t.Fatal(err)
		}
	}}
}

// An editor changes values of a ledger file.
type editor struct {
	t  *testing.T
	tx *bbolt.Tx
}

func (e *editor) put(bucket string, key, value []byte) {
	e.t.Helper()
	if err := e.tx.Bucket([]byte(bucket)).Put(key, value); err != nil {
		e.t.Fatal(err)
	}
}

func (e *editor) remove(bucket string, key []byte) {
	e.t.Helper()
	if e.tx.Bucket([]byte(bucket)).Get(key) == nil {
		e.t.Fatalf("%s has no key %x", bucket, key)
	}
	if err := e.tx.Bucket([]byte(bucket)).Delete(key); err != nil {
		e.t.Fatal(err)
	}
}

// payload returns a copy of a value without its checksum.
func (e *editor) payload(bucket string, key []byte) []byte {
	e.t.Helper()
	value := e.tx.Bucket([]byte(bucket)).Get(key)
	if value == nil {
		e.t.Fatalf("%s has no key %x", bucket, key)
	}
	return bytes.Clone(value[checksumSize:])
}

func (e *editor) seal(bucket string, key, payload []byte) {
	e.t.Helper()
	e.put(bucket, key, seal(bucket, key, append(newValue(0), payload...)))
}

// keys returns the keys of a bucket that start with prefix.
func (e *editor) keys(bucket string, prefix []byte) (keys [][]byte) {
	c := e.tx.Bucket([]byte(bucket)).Cursor()
	for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// page decodes a page of pair 2.
func (e *editor) page(n int) (key []byte, p *page, before Totals, entries []Entry) {
	e.t.Helper()
	key = e.keys(bucketPages, pairKey(2))[n]
	_, source, target, _ := parsePlaceKey(key)
	p, before, err := parsePage(place{source, target}, e.payload(bucketPages, key))
	if err != nil {
		e.t.Fatal(err)
	}
	if entries, err = p.complete(before); err != nil {
		e.t.Fatal(err)
	}
	return key, p, before, entries
}

// editPage writes a page of pair 2 with other entries or totals.
func (e *editor) editPage(n int, edit func(before *Totals, entries []Entry) []Entry) {
	e.t.Helper()
	key, p, before, entries := e.page(n)
	entries = edit(&before, entries)
	changed := newPage(p.start, before)
	for i := range entries {
		if !changed.push(&entries[i]) {
			e.t.Fatal("the page has become too large")
		}
	}
	e.put(bucketPages, key, changed.value(key))
}

func (e *editor) editPair(id PairID, edit func(*pairRecord)) {
	e.t.Helper()
	key := pairKey(id)
	r, err := decodePair(id, e.payload(bucketPairs, key))
	if err != nil {
		e.t.Fatal(err)
	}
	edit(r)
	e.put(bucketPairs, key, pairValue(key, r))
}

func (e *editor) editState(id PairID, edit func(*stateRecord)) {
	e.t.Helper()
	key := pairKey(id)
	s, err := decodeStateRecord(e.payload(bucketState, key))
	if err != nil {
		e.t.Fatal(err)
	}
	edit(&s)
	e.put(bucketState, key, stateValue(key, &s))
}

// editJournal writes the last journal value with other sections.
func (e *editor) editJournal(edit func([]section) []section) {
	e.t.Helper()
	keys := e.keys(bucketJournal, nil)
	key := keys[len(keys)-1]
	sections, err := decodeJournal(e.payload(bucketJournal, key))
	if err != nil {
		e.t.Fatal(err)
	}
	e.seal(bucketJournal, key, appendJournal(nil, startMillis, edit(sections)))
}

// sabotages returns a way to break each law that a file can break.
func sabotages() []sabotage {
	all := []sabotage{
		patched("empty", lawMeta, "", func([]byte) []byte { return nil }),
		patched("truncated", lawMeta, "", func(b []byte) []byte { return b[:len(b)-fileBlock] }),
		patched("meta-0", lawMeta, "", func(b []byte) []byte { b[fileHeader+48]++; return b }),
		patched("meta-1", lawMeta, "", func(b []byte) []byte { b[fileBlock+fileHeader+48]++; return b }),
		patched("free-and-used", lawStructure, "", freeRoot),
		patched("free-twice", lawStructure, "", freeTwice),
		patched("wrong-page", lawStructure, "", func(b []byte) []byte { b[rootOf(b)*fileBlock]++; return b }),
		patched("flipped-byte", lawChecksum, bucketPages, flipInPage),
	}
	all = append(all, valueSabotages()...)
	all = append(append(all, bookSabotages()...), pairSabotages()...)
	return append(append(append(all, flowSabotages()...), markSabotages()...), groupSabotages()...)
}

// rootOf returns the page of the list of buckets.
func rootOf(b []byte) int { return int(binary.NativeEndian.Uint64(b[fileHeader+16:])) }

// freeRoot makes a list of free pages with the page of the list of buckets.
func freeRoot(b []byte) []byte {
	list := b[int(binary.NativeEndian.Uint64(b[fileHeader+32:]))*fileBlock:]
	binary.NativeEndian.PutUint16(list[10:], 1)
	binary.NativeEndian.PutUint64(list[fileHeader:], uint64(rootOf(b)))
	return b
}

// freeTwice lists the first free page a second time.
func freeTwice(b []byte) []byte {
	list := b[int(binary.NativeEndian.Uint64(b[fileHeader+32:]))*fileBlock:]
	count := binary.NativeEndian.Uint16(list[10:])
	binary.NativeEndian.PutUint16(list[10:], count+1)
	copy(list[fileHeader+8*int(count):], list[fileHeader:fileHeader+8])
	return b
}

// flipInPage flips a bit of a digest in the first page of pair 2.
func flipInPage(b []byte) []byte {
	at := bytes.Index(b, binary.BigEndian.AppendUint64(nil, uint64(digestOf(hashOf(0), hashOf(1)))))
	b[at+3] ^= 1
	return b
}

func valueSabotages() []sabotage {
	return []sabotage{
		edited("unknown-bucket", lawBuckets, "more", func(e *editor) {
			if _, err := e.tx.CreateBucket([]byte("more")); err != nil {
				e.t.Fatal(err)
			}
		}),
		edited("missing-bucket", lawBuckets, bucketTargets, func(e *editor) {
			if err := e.tx.DeleteBucket([]byte(bucketTargets)); err != nil {
				e.t.Fatal(err)
			}
		}),
		edited("bucket-in-bucket", lawStructure, "", func(e *editor) {
			if _, err := e.tx.Bucket([]byte(bucketPages)).CreateBucket([]byte("more")); err != nil {
				e.t.Fatal(err)
			}
		}),
		edited("unknown-key", lawKeys, bucketMeta, func(e *editor) { e.seal(bucketMeta, []byte("more"), nil) }),
		edited("missing-key", lawKeys, bucketMeta, func(e *editor) { e.remove(bucketMeta, []byte(metaScope)) }),
		edited("moved-value", lawChecksum, bucketPairs, func(e *editor) {
			value := e.tx.Bucket([]byte(bucketPairs)).Get(pairKey(4))
			e.put(bucketPairs, pairKey(5), bytes.Clone(value))
		}),
		edited("swapped-buckets", lawChecksum, bucketState, func(e *editor) {
			value := e.tx.Bucket([]byte(bucketPairs)).Get(pairKey(4))
			e.put(bucketState, pairKey(4), bytes.Clone(value))
		}),
		edited("unknown-flag", lawEncoding, bucketState, func(e *editor) {
			b := e.payload(bucketState, pairKey(2))
			b[0] |= 0x20
			e.seal(bucketState, pairKey(2), b)
		}),
		edited("missing-state", lawKeys, bucketState, func(e *editor) { e.remove(bucketState, pairKey(3)) }),
		edited("missing-pair", lawKeys, bucketPairs, func(e *editor) { e.remove(bucketPairs, pairKey(4)) }),
		edited("missing-journal", lawKeys, bucketJournal, func(e *editor) {
			keys := e.keys(bucketJournal, nil)
			e.remove(bucketJournal, keys[len(keys)-1])
		}),
	}
}

func bookSabotages() []sabotage {
	return []sabotage{
		edited("missing-page", lawTiling, bucketPages, func(e *editor) { key, _, _, _ := e.page(1); e.remove(bucketPages, key) }),
		edited("missing-last-page", lawTiling, bucketPages, func(e *editor) {
			keys := e.keys(bucketPages, pairKey(2))
			e.remove(bucketPages, keys[len(keys)-1])
		}),
		edited("hole-in-page", lawTiling, bucketPages, func(e *editor) {
			e.editPage(0, func(_ *Totals, entries []Entry) []Entry { return entries[:len(entries)-1] })
		}),
		edited("overlap", lawTiling, bucketPages, func(e *editor) {
			e.editPage(0, func(_ *Totals, entries []Entry) []Entry {
				last := &entries[len(entries)-1]
				last.Source.End++
				last.Target.End++
				return entries
			})
		}),
		edited("totals", lawTotals, bucketPages, func(e *editor) {
			e.editPage(2, func(before *Totals, entries []Entry) []Entry { before.Bytes--; return entries })
		}),
		edited("digest", lawDigest, bucketPages, func(e *editor) {
			e.editPage(1, func(_ *Totals, entries []Entry) []Entry { entries[3].Digest = digestPrime; return entries })
		}),
		edited("attributes", lawAttributes, bucketPages, func(e *editor) {
			e.editPage(1, func(_ *Totals, entries []Entry) []Entry { entries[3].LeaderEpoch = -2; return entries })
		}),
		edited("unknown-tile", lawTile, bucketPages, func(e *editor) {
			key, p, _, _ := e.page(0)
			b := e.payload(bucketPages, key)
			b[len(b)-len(p.body)] |= 0x0f
			e.seal(bucketPages, key, b)
		}),
		edited("before-start", lawBeforeStart, bucketPages, func(e *editor) {
			e.editPage(1, func(_ *Totals, entries []Entry) []Entry {
				first := entries[0]
				entries[0] = Entry{Tile: BeforeStart, Source: first.Source, Target: Range{first.Target.Start, first.Target.Start}}
				return entries
			})
		}),
		edited("index-missing", lawIndex, bucketTargets, func(e *editor) {
			e.remove(bucketTargets, e.keys(bucketTargets, pairKey(2))[1])
		}),
		edited("index-extra", lawIndex, bucketTargets, func(e *editor) {
			e.seal(bucketTargets, targetKey(2, place{source: 7, target: 7}), nil)
		}),
		edited("page-of-nobody", lawPair, bucketPages, func(e *editor) {
			key, p, _, _ := e.page(0)
			copy(key, pairKey(77))
			e.put(bucketPages, key, p.value(key))
		}),
		edited("journal-hole", lawJournal, bucketJournal, func(e *editor) {
			e.editJournal(func(sections []section) []section { sections[0].start.source++; return sections })
		}),
		edited("journal-not-folded", lawJournal, bucketJournal, func(e *editor) {
			keys := e.keys(bucketJournal, nil)
			e.editState(5, func(s *stateRecord) { s.folded = binary.BigEndian.Uint64(keys[len(keys)-1]) })
		}),
		edited("journal-of-nobody", lawPair, bucketJournal, func(e *editor) {
			e.editJournal(func(sections []section) []section {
				return append(sections, section{id: 77, entries: []Entry{sourceEntry(Lost, Position{}, 1)}})
			})
		}),
		edited("journal-ahead", lawJournal, bucketJournal, func(e *editor) {
			e.seal(bucketJournal, journalKey(math.MaxUint64), appendJournal(nil, 0, nil))
		}),
	}
}

func pairSabotages() []sabotage {
	return []sabotage{
		edited("opened-twice", lawOpening, bucketPairs, func(e *editor) {
			e.editPair(5, func(r *pairRecord) { r.SourceTopic, r.Partition, r.TargetTopic = "pay", 0, "elsewhere" })
		}),
		edited("target-opened-twice", lawOpening, bucketPairs, func(e *editor) {
			e.editPair(5, func(r *pairRecord) { r.SourceTopic, r.TargetTopic = "elsewhere", "a.pay" })
		}),
		edited("generation", lawGeneration, bucketPairs, func(e *editor) {
			e.editPair(5, func(r *pairRecord) { r.Generation = 1 })
		}),
		edited("closed-elsewhere", lawClosing, bucketPairs, func(e *editor) {
			e.editPair(1, func(r *pairRecord) { r.closedAt.source-- })
		}),
		edited("producer-ahead", lawProducers, bucketPairs, func(e *editor) {
			e.editPair(3, func(r *pairRecord) { r.producers[1].Appended = 1000 })
		}),
		edited("producers-backwards", lawProducers, bucketPairs, func(e *editor) {
			e.editPair(3, func(r *pairRecord) { r.producers[0].Appended = 1 })
		}),
		edited("scope-ahead", lawBeforeStart, bucketPairs, func(e *editor) {
			e.editPair(3, func(r *pairRecord) { r.ScopeStart++ })
		}),
		edited("nameless", lawOpening, bucketPairs, func(e *editor) {
			e.editPair(4, func(r *pairRecord) { r.SourceTopic = "" })
		}),
		edited("state-order", lawState, bucketState, func(e *editor) {
			e.editState(2, func(s *stateRecord) { s.LogStart, s.LastStable = 9, 8 })
		}),
		edited("state-ahead", lawJournal, bucketState, func(e *editor) {
			e.editState(2, func(s *stateRecord) { s.folded = 1000 })
		}),
		edited("state-end", lawTiling, bucketPages, func(e *editor) {
			e.editState(3, func(s *stateRecord) { s.end.target++ })
		}),
	}
}
