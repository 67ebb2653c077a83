package ledger

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestEntryEncoding holds bytes of the format: the size budget depends on them,
// and files that are out there do.
func TestEntryEncoding(t *testing.T) {
	dense := Entry{
		Tile: Copied, Source: Range{1000, 1063}, Target: Range{900, 963}, Bytes: 66276,
		Digest: 0x0558302b5c739031, LeaderEpoch: 7, TimeMillis: startMillis,
	}
	transactions := Entry{
		Tile: Copied, Source: Range{0, 6}, Target: Range{0, 3}, Bytes: 300, Digest: 1, LeaderEpoch: 7, TimeMillis: startMillis,
		Gaps: []Gap{{CommitMarker, Range{1, 2}}, {CommitMarker, Range{3, 4}}, {AbortMarker, Range{5, 6}}},
	}
	same := basis{time: startMillis, epoch: 7, bytes: 66276}
	tests := []struct {
		name  string
		basis basis
		entry Entry
		want  string
	}{
		{"a batch like the one before", same, dense, "00" + "3f" + "00" + "0558302b5c739031"},
		{"the first one of a page", newBasis(0), dense,
			"30" + "80c0e285e368" + "10" + "3f" + "c88b08" + "0558302b5c739031"},
		{"a marker in a byte", same, transactions,
			"40" + "03" + "ef8608" + "0000000000000001" + "03" + "08" + "08" + "09"},
		{"one offset", same, Entry{
			Tile: CommitMarker, Source: Range{5, 6}, Target: Range{1, 1}, LeaderEpoch: 7, TimeMillis: startMillis}, "01" + "01"},
		{"everything rare", same, Entry{
			Tile: Lost, Source: Range{5, 305}, Target: Range{1, 1}, LeaderEpoch: -1, TimeMillis: startMillis,
			Cause: CauseRetention, Reason: "gone", LastKnownMillis: 1}, "a7" + "16" + "0f" + "ac02" + "01" + "04676f6e65" + "02"},
		{"a second copy", same, Entry{
			Tile: Duplicate, Source: Range{5, 5}, Target: Range{1, 3}, LeaderEpoch: 7, TimeMillis: startMillis,
			Origin: Range{2, 4}}, "89" + "08" + "02" + "0202"},
		{"replaced timestamps", same, func() Entry { e := dense; e.TimestampsReplaced = true; return e }(),
			"80" + "01" + "3f" + "00" + "0558302b5c739031"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.entry.Validate(); err != nil {
				t.Fatal(err)
			}
			c := tt.basis
			if got := hex.EncodeToString(appendEntry(nil, &tt.entry, &c)); got != tt.want {
				t.Errorf("encoded as %s, want %s", got, tt.want)
			}
			mustDecodeAs(t, mustHex(t, tt.want), tt.basis, &tt.entry)
		})
	}
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustDecodeAs(t *testing.T, b []byte, c basis, want *Entry) {
	t.Helper()
	r := wireReader{b: b}
	var got Entry
	if err := decodeEntry(&r, want.start(), &c, &got); err != nil || !r.done() {
		t.Fatalf("decode %x: %v, %d bytes left", b, err, len(r.b))
	}
	if !sameEntry(got.own(), want.own()) {
		t.Fatalf("decoded %+v, want %+v", got, *want)
	}
}

// TestEntryRoundTrip encodes random lists of entries, with numbers at the ends
// of their ranges, and decodes them.
func TestEntryRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(testSeed, 2))
	for range 300 {
		var entries []Entry
		at := place{random.Int64N(1 << 40), random.Int64N(1 << 40)}
		for range 1 + random.IntN(80) {
			e := randomEntry(random, at)
			if err := e.Validate(); err != nil {
				t.Fatalf("the test's own entry: %v", err)
			}
			entries, at = append(entries, e), e.end()
		}
		var b []byte
		c := newBasis(0)
		for i := range entries {
			b = appendEntry(b, &entries[i], &c)
		}
		r, c := wireReader{b: b}, newBasis(0)
		for i := range entries {
			var got Entry
			if err := decodeEntry(&r, entries[i].start(), &c, &got); err != nil {
				t.Fatal(err)
			}
			if !sameEntry(got.own(), entries[i]) {
				t.Fatalf("decoded %+v, want %+v", got, entries[i])
			}
		}
		if !r.done() {
			t.Fatalf("%d bytes left", len(r.b))
		}
	}
}

func randomEntry(random *rand.Rand, at place) Entry {
	e := Entry{
		Tile:        Tile(random.IntN(NumTiles)),
		Source:      Range{at.source, at.source},
		Target:      Range{at.target, at.target},
		LeaderEpoch: []int32{-1, 0, 1, math.MaxInt32}[random.IntN(4)],
		TimeMillis:  []int64{0, startMillis, startMillis + 1, -5}[random.IntN(4)],
	}
	n := 1 + random.Int64N([]int64{1, 10, 1 << 40}[random.IntN(3)])
	switch {
	case e.Tile == Copied:
		e.Source.End += n
		e.Target.End += n
		e.Bytes = []int64{0, 20, 64000, math.MaxInt64}[random.IntN(4)]
		e.Digest = Digest(random.Uint64N(digestPrime))
		e.TimestampsReplaced = random.IntN(5) == 0
		addRandomGaps(random, &e)
		return e
	case e.Tile.AdvancesSource():
		e.Source.End += n
	default:
		e.Target.End += n
	}
	switch e.Tile {
	case Filtered:
		e.Cause, e.Reason = CausePerson, "ann: \u202e"
	case Lost:
		e.Cause, e.LastKnownMillis = Cause(random.IntN(4)), []int64{0, math.MinInt64, math.MaxInt64}[random.IntN(3)]
	case Duplicate:
		e.Origin = Range{math.MaxInt64 - n, math.MaxInt64}
	}
	return e
}

// addRandomGaps grows the source range of e by gaps.
func addRandomGaps(random *rand.Rand, e *Entry) {
	left, end := e.Target.Len(), e.Source.Start
	for random.IntN(4) > 0 {
		distance := random.Int64N(min(left, 40) + 1)
		n := 1 + random.Int64N([]int64{1, 2, 1 << 30}[random.IntN(3)])
		left -= distance
		end += distance
		e.Gaps = append(e.Gaps, Gap{CommitMarker + Tile(random.IntN(4)), Range{end, end + n}})
		end += n
		e.Source.End += n
	}
}

// TestDecodeEntryRefuses takes bytes that no version of this program writes.
func TestDecodeEntryRefuses(t *testing.T) {
	tests := []struct{ name, bytes, law string }{
		{"nothing", "", lawEncoding},
		{"a tile and no length", "01", lawEncoding},
		{"tile 14", "0e01", lawTile},
		{"tile 15", "0f01", lawTile},
		{"no offsets", "0100", lawAxes},
		{"more offsets than there are", "01ffffffffffffffffff01", lawEncoding},
		{"offsets up to beyond the last", "01ffffffffffffffff7f", lawEncoding},
		{"a number of eleven bytes", "0180808080808080808080808001", lawEncoding},
		{"a digest cut short", "003f00055830", lawEncoding},
		{"a digest not below P", "00010020000000000000001fffffffffffffff", lawDigest},
		{"a digest of ones", "000100ffffffffffffffff", lawDigest},
		{"gaps of a marker", "4101", lawEncoding},
		{"a million gaps in two bytes", "40010000000000000000010fffff3f08", lawEncoding},
		{"a gap behind the records", "400100000000000000000101" + "10", lawEncoding},
		{"an unknown flag", "81" + "20" + "01", lawEncoding},
		{"all unknown flags", "81" + "ffffffffffffffffff01" + "01", lawEncoding},
		{"an unknown cause", "87" + "02" + "01" + "09", lawAttributes},
		{"a cause that does not fit", "87" + "02" + "01" + "06", lawAttributes},
		{"a reason that is not there", "87" + "04" + "01" + "05", lawEncoding},
		{"a reason that is not text", "87" + "04" + "01" + "01ff", lawEncoding},
		{"bytes below zero", "000101" + "0000000000000001", lawAttributes},
		{"an epoch that is none", "21" + "ffffffffffff01" + "01", lawEncoding},
		{"an origin beyond the last offset", "89" + "08" + "01" + "ffffffffffffffff7f" + "01", lawEncoding},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, c := wireReader{b: mustHex(t, tt.bytes)}, newBasis(0)
			var e Entry
			err := decodeEntry(&r, place{5, 5}, &c, &e)
			var broken *LawError
			if !errors.As(err, &broken) || broken.Law != tt.law {
				t.Errorf("decoded %+v, %v, want law %s", e, err, tt.law)
			}
		})
	}
}

// TestDecodePlain compares the short way to decode an entry with that for entries
// of all forms: what it takes is the same, and it leaves alone what it does not.
func TestDecodePlain(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	edge := func() int64 {
		return []int64{-1, 0, 1, random.Int64N(1 << 20), math.MaxInt64 - random.Int64N(3), math.MaxInt64 >> random.IntN(20), math.MinInt64}[random.IntN(7)]
	}
	taken := 0
	for range 200_000 {
		at := place{max(edge(), 0), max(edge(), 0)}
		before := basis{time: edge(), epoch: int32(random.IntN(3) - 1), bytes: max(edge(), 0)}
		b := []byte{[]byte{0, 0, 0, 0, 0, 1, headTime, headMore}[random.IntN(8)]}
		b = binary.AppendUvarint(b, uint64(edge()))
		b = binary.AppendVarint(b, edge())
		b = binary.BigEndian.AppendUint64(b, uint64(edge())>>random.IntN(5))
		b = append(b, make([]byte, random.IntN(3))...)
		b = b[:len(b)-min(random.IntN(4)*random.IntN(4), len(b))]

		plain, any := wireReader{b: b}, wireReader{b: b}
		basisPlain, basisAny := before, before
		var got, want Entry
		ok := decodePlain(&plain, at, &basisPlain, &got)
		err := decodeAny(&any, at, &basisAny, &want)
		switch {
		case ok && (err != nil || fmt.Sprint(got) != fmt.Sprint(want) || len(plain.b) != len(any.b) || basisPlain != basisAny):
			t.Fatalf("%x at %v behind %+v: %+v and %+v, want %+v and %+v, %v", b, at, before, got, basisPlain, want, basisAny, err)
		case !ok && (len(plain.b) != len(b) || basisPlain != before):
			t.Fatalf("%x: changed what it leaves alone", b)
		case !ok && err == nil && len(b) > 0 && b[0] == byte(Copied):
			t.Fatalf("%x at %v behind %+v: not taken, but it is %+v", b, at, before, want)
		case ok:
			taken++
		}
	}
	if taken < 1000 {
		t.Errorf("only %d entries are taken", taken)
	}
}

// TestDeltas: a difference that leads out of the range of numbers is refused.
func TestDeltas(t *testing.T) {
	const low, high = math.MinInt64, math.MaxInt64
	tests := []struct {
		base, delta int64
		ok          bool
	}{
		{0, 0, true}, {5, -7, true}, {low, 0, true}, {high, 0, true}, {high, low, true}, {-1, high, true}, {0, low, true},
		{1, high, false}, {high, 1, false}, {-1, low, false}, {low, -1, false}, {high, high, false}, {low, low, false},
	}
	for _, tt := range tests {
		r := wireReader{b: binary.AppendVarint(nil, tt.delta)}
		if got := r.delta(tt.base); r.bad == tt.ok || tt.ok && got != tt.base+tt.delta {
			t.Errorf("%d and %d is %d, refused: %t", tt.base, tt.delta, got, r.bad)
		}
	}
}

// TestTotalsEncoding writes totals with any of the numbers missing.
func TestTotalsEncoding(t *testing.T) {
	random := rand.New(rand.NewPCG(testSeed, 3))
	for range 200 {
		var want Totals
		for i := range want.Tiles {
			if random.IntN(3) == 0 {
				want.Tiles[i] = random.Int64()
			}
		}
		want.Bytes, want.Entries = random.Int64N(1000), random.Int64()
		r := wireReader{b: appendTotals(nil, &want)}
		if got := decodeTotals(&r); got != want || !r.done() {
			t.Fatalf("decoded %v, want %v", got, want)
		}
	}
	r := wireReader{b: []byte{0x80, 0x80, 0x01, 1, 0, 0}} // a tile 14
	if decodeTotals(&r); !r.bad {
		t.Error("totals of an unknown tile are read")
	}
}

// TestRecordRoundTrips encodes the values of the other buckets.
func TestRecordRoundTrips(t *testing.T) {
	closed := &pairRecord{
		Pair: Pair{
			ID: 9, SourceTopic: "orders", SourceTopicID: TopicID{1, 2}, TargetTopic: "a.orders", TargetTopicID: TopicID{15: 7},
			Partition: math.MaxInt32, Generation: 3, ScopeStart: math.MaxInt64, TargetBase: 5,
			Producer: Producer{ID: -1, Epoch: -1, Sequence: math.MaxInt32, Appended: 12}, OpenedMillis: startMillis,
			Closed: &Closing{Reason: "recreated", AtMillis: startMillis + 1, Cut: &Cut{math.MaxInt64, 3}},
		},
		producers: []Producer{{ID: math.MaxInt64, Epoch: math.MaxInt16}, {ID: -1, Epoch: -1, Sequence: math.MaxInt32, Appended: 12}},
		closedAt:  place{7, 9},
		cutBad:    math.MaxInt64,
	}
	key := pairKey(9)
	got, err := decodePair(9, mustUnseal(t, bucketPairs, key, pairValue(key, closed)))
	if err != nil || got.copyRecord() != closed.copyRecord() {
		t.Errorf("pair = %+v, %v, want %+v", got, err, closed)
	}
	state := stateRecord{folded: 8, end: place{3, 4}, State: State{LogStart: 0, LastStable: -1, HighWatermark: math.MaxInt64 - 1,
		SeenMillis: maxMillis, CompactSeen: true, CaughtUpMillis: maxMillis}}
	if got, err := decodeStateRecord(mustUnseal(t, bucketState, key, stateValue(key, &state))); err != nil || got != state {
		t.Errorf("state = %+v, %v, want %+v", got, err, state)
	}
	commit := commitRecord{number: math.MaxUint64, time: -1, pairs: 7, journal: 64}
	if got, err := decodeCommit(mustUnseal(t, bucketMeta, []byte(metaCommit), commitValue(commit))); err != nil || got != commit {
		t.Errorf("commit = %+v, %v, want %+v", got, err, commit)
	}
	scope := Scope{Topics: []string{"orders", "pay.*"}, TopicsExclude: []string{""}}
	if got, err := decodeScope(mustUnseal(t, bucketMeta, []byte(metaScope), scopeValue(&scope))); err != nil || !got.equal(scope) {
		t.Errorf("scope = %+v, %v, want %+v", got, err, scope)
	}
	id := testIdentity()
	if got, err := decodeIdentity(mustUnseal(t, bucketMeta, []byte(metaIdentity), identityValue(&id))); err != nil || got != id {
		t.Errorf("identity = %+v, %v, want %+v", got, err, id)
	}
}

// TestFlowVectors: values beside the pairs as the format describes them, byte by
// byte.
func TestFlowVectors(t *testing.T) {
	id := TopicID{1, 15: 2}
	zero := string(make([]byte, 16))
	for _, tt := range []struct {
		seen SeenTopic
		key  string
		want string
	}{
		{SeenTopic{Name: "t", ID: id, SeenMillis: 3, Partitions: 200, FromStart: true}, string(id[:]), "\x01\x01t\x06\xc8\x01"},
		{SeenTopic{Name: "t", SeenMillis: 64}, zero + "t", "\x00\x80\x01\x00"},
	} {
		key := topicKey(tt.seen.Name, tt.seen.ID)
		if got := mustUnseal(t, bucketTopics, key, seenValue(key, &tt.seen)); string(key) != tt.key || string(got) != tt.want {
			t.Errorf("%+v is %q under %q, want %q under %q", tt.seen, got, key, tt.want, tt.key)
		}
		if got, err := decodeSeen([]byte(tt.key), []byte(tt.want)); err != nil || got != tt.seen {
			t.Errorf("%q is %+v, %v", tt.want, got, err)
		}
	}
	for _, tt := range []struct {
		made madeTopic
		key  string
		want string
	}{
		{madeTopic{name: "t", id: id, settings: []setting{{"k", "v"}, {"l", ""}}}, string(id[:]), "\x00\x01t\x02\x01k\x01v\x01l\x00"},
		{madeTopic{name: "t"}, zero + "t", "\x00\x00"},
	} {
		key := topicKey(tt.made.name, tt.made.id)
		if got := mustUnseal(t, bucketMade, key, madeValue(key, &tt.made)); string(key) != tt.key || string(got) != tt.want {
			t.Errorf("%+v is %q under %q, want %q under %q", tt.made, got, key, tt.want, tt.key)
		}
		if got, err := decodeMade([]byte(tt.key), []byte(tt.want)); err != nil || fmt.Sprint(got) != fmt.Sprint(tt.made) {
			t.Errorf("%q is %+v, %v", tt.want, got, err)
		}
	}
	counts := flowCounts{topics: 1, orders: 2, stops: 3, made: 300}
	if got := mustUnseal(t, bucketMeta, []byte(metaBooks), flowCountsValue(counts)); string(got) != "\x00\x01\x02\x03\xac\x02" {
		t.Errorf("books are %q", got)
	}
}

// TestMarkVectors: values about entries as the format describes them, byte by
// byte.
func TestMarkVectors(t *testing.T) {
	a := acceptance{Acceptance{Range: Range{258, 458}, Reason: "r", By: "me", AtMillis: 64}, 3}
	key := acceptedKey(7, 258)
	if string(key) != "\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x01\x02" {
		t.Errorf("acceptance under %q", key)
	}
	if got := mustUnseal(t, bucketAccepted, key, acceptedValue(key, &a)); string(got) != "\x00\xc8\x01\x03\x01r\x02me\x80\x01" {
		t.Errorf("acceptance is %q", got)
	}
	if id, got, err := decodeAccepted(key, []byte("\x00\xc8\x01\x03\x01r\x02me\x80\x01")); err != nil || id != 7 || got != a {
		t.Errorf("acceptance is %d %+v, %v", id, got, err)
	}
	d := Doubt{StaleKeys, Range{258, 260}, 64}
	key = doubtKey(7, &d)
	if string(key) != "\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x01\x02" {
		t.Errorf("doubt under %q", key)
	}
	if got := mustUnseal(t, bucketDoubts, key, doubtValue(key, &d)); string(got) != "\x00\x02\x80\x01" {
		t.Errorf("doubt is %q", got)
	}
	if id, got, err := decodeDoubt(key, []byte("\x00\x02\x80\x01")); err != nil || id != 7 || got != d {
		t.Errorf("doubt is %d %+v, %v", id, got, err)
	}
	if got := mustUnseal(t, bucketMeta, []byte(metaMarks), markCountsValue(markCounts{2, 300})); string(got) != "\x00\x02\xac\x02" {
		t.Errorf("marks are %q", got)
	}
	state := State{LogStart: 2, LastStable: 5, HighWatermark: 6, SeenMillis: 100, CaughtUpMillis: 99, CompactSeen: true}
	if got := appendState(nil, &state, 100); string(got) != "\x03\x07\x02\x03\x00\x01" {
		t.Errorf("state is %q", got)
	}
	p := &pairRecord{Pair: Pair{Closed: &Closing{Cut: &Cut{5, 300}}}, producers: []Producer{{}}, closedAt: place{7, 301}, cutBad: 1}
	got := mustUnseal(t, bucketPairs, pairKey(1), pairValue(pairKey(1), p))
	if got[0] != 3 || !strings.HasSuffix(string(got), "\x00\x00\x07\xad\x02\x05\xac\x02\x01") {
		t.Errorf("closed pair with a cut is %q", got)
	}
	p.Closed = nil
	got = mustUnseal(t, bucketPairs, pairKey(1), pairValue(pairKey(1), p))
	if _, err := decodePair(1, append([]byte{pairCut}, append(got[1:], 5, 6, 7)...)); err == nil {
		t.Error("a cut of an open pair is read")
	}
}

// copyRecord returns the record as a text, to compare.
func (p *pairRecord) copyRecord() string {
	closing, cut := *p.Closed, *p.Closed.Cut
	closing.Cut = nil
	open := p.Pair
	open.Closed = nil
	return formatRecord(open, closing, cut, p.cutBad, p.producers, p.closedAt)
}

func mustUnseal(t *testing.T, bucket string, key, value []byte) []byte {
	t.Helper()
	payload, ok := unseal(bucket, key, value)
	if !ok {
		t.Fatalf("the checksum of a value that was just sealed is wrong")
	}
	for other, k := range map[string][]byte{bucketPages: key, bucket: append([]byte{0}, key...)} {
		if _, ok := unseal(other, k, value); ok && other != bucket {
			t.Errorf("the value of %s %x passes for one of %s %x", bucket, key, other, k)
		}
	}
	return payload
}

// TestJournalRefuses: each pair has one section, and the ids ascend from 1.
func TestJournalRefuses(t *testing.T) {
	state := unknownState()
	for _, ids := range [][]PairID{{0}, {3, 3}, {0, 3}} {
		var sections []section
		for _, id := range ids {
			sections = append(sections, section{id: id, state: &state})
		}
		if got, err := decodeJournal(appendJournal(nil, 0, sections)); err == nil {
			t.Errorf("sections of pairs %v are read as %+v", ids, got)
		}
	}
}

// TestRecordsRefuse cuts and extends values of every kind: all of that is
// noticed even where a checksum is right.
func TestRecordsRefuse(t *testing.T) {
	key := pairKey(1)
	pair := &pairRecord{Pair: Pair{ID: 1, SourceTopic: "t", TargetTopic: "t"}, producers: []Producer{{}}}
	cut := &pairRecord{Pair: Pair{Closed: &Closing{Reason: "r", Cut: &Cut{1, 2}}}, producers: []Producer{{}}}
	id := testIdentity()
	unknown := unknownState()
	kinds := map[string]struct {
		value  []byte
		decode func([]byte) error
	}{
		"pair":     {pairValue(key, pair), func(b []byte) error { _, err := decodePair(1, b); return err }},
		"state":    {stateValue(key, &stateRecord{State: unknown}), func(b []byte) error { _, err := decodeStateRecord(b); return err }},
		"commit":   {commitValue(commitRecord{number: 1}), func(b []byte) error { _, err := decodeCommit(b); return err }},
		"identity": {identityValue(&id), func(b []byte) error { _, err := decodeIdentity(b); return err }},
		"scope":    {scopeValue(&Scope{Topics: []string{"x"}}), func(b []byte) error { _, err := decodeScope(b); return err }},
		"format":   {formatValue(), func(b []byte) error { _, err := decodeFormat(b); return err }},
		"journal": {appendJournal(newValue(0), startMillis, []section{{id: 3, state: &unknown}}),
			func(b []byte) error { _, err := decodeJournal(b); return err }},
		"marks": {markCountsValue(markCounts{1, 2}), func(b []byte) error { _, err := decodeMarkCounts(b); return err }},
		"accepted": {acceptedValue(nil, &acceptance{Acceptance{Range: Range{1, 9}, Reason: "r", By: "b"}, 3}),
			func(b []byte) error { _, _, err := decodeAccepted(acceptedKey(1, 1), b); return err }},
		"doubt": {doubtValue(nil, &Doubt{Range: Range{1, 9}}),
			func(b []byte) error { _, _, err := decodeDoubt(doubtKey(1, &Doubt{}), b); return err }},
		"cut":    {pairValue(key, cut), func(b []byte) error { _, err := decodePair(1, b); return err }},
		"caught": {stateValue(key, &stateRecord{State: State{CaughtUpMillis: 7}}), func(b []byte) error { _, err := decodeStateRecord(b); return err }},
		"books":  {flowCountsValue(flowCounts{1, 2, 3, 4}), func(b []byte) error { _, err := decodeFlowCounts(b); return err }},
		"topic": {seenValue(topicKey("", TopicID{1}), &SeenTopic{Name: "t", ID: TopicID{1}, Partitions: 3}),
			func(b []byte) error { _, err := decodeSeen((&TopicID{1})[:], b); return err }},
		"order": {orderValue(nil, &Order{Skip: Range{5, 9}, Reason: "r", By: "me", Paused: true}),
			func(b []byte) error { _, err := decodeOrder(partitionKey(partition{"t", 3}), b); return err }},
		"made": {madeValue(topicKey("", TopicID{1}), &madeTopic{name: "t", id: TopicID{1}, settings: []setting{{"k", "v"}, {"l", ""}}}),
			func(b []byte) error { _, err := decodeMade((&TopicID{1})[:], b); return err }},
		"stop": {stopValue(nil, &Stop{Offset: 7, Reason: "r", Detail: "d", Tries: 1}),
			func(b []byte) error { _, err := decodeStop(partitionKey(partition{"t", 3}), b); return err }},
	}
	for name, k := range kinds {
		payload := k.value[checksumSize:]
		if err := k.decode(payload); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for n := range payload {
			if err := k.decode(payload[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes are read", name, n, len(payload))
			}
		}
		if err := k.decode(append(append([]byte{}, payload...), 0)); err == nil {
			t.Errorf("%s: a byte behind the end is not noticed", name)
		}
		if name == "format" || name == "commit" {
			continue // without flags
		}
		newer := append([]byte{payload[0] | 0x40}, payload[1:]...)
		if err := k.decode(newer); err == nil {
			t.Errorf("%s: an unknown flag is not noticed", name)
		}
	}
}
