package ledger

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// flowOf returns all that a ledger holds beside the pairs, as a text.
func flowOf(t testing.TB, l *Ledger) string {
	t.Helper()
	return formatRecord(seenOf(t, l), madeOf(l), l.Orders(), l.Stops())
}

// seenOf returns the topics of a ledger by name and id.
func seenOf(t testing.TB, l *Ledger) []SeenTopic {
	t.Helper()
	topics := []SeenTopic{}
	for s, err := range l.SeenTopics() {
		if err != nil {
			t.Fatal(err)
		}
		topics = append(topics, s)
	}
	sortSeen(topics)
	return topics
}

func sortSeen(topics []SeenTopic) {
	slices.SortFunc(topics, func(a, b SeenTopic) int { return strings.Compare(a.Name+string(a.ID[:]), b.Name+string(b.ID[:])) })
}

// crashed opens a copy of a ledger's file, as a crash would leave it.
func crashed(t testing.TB, l *Ledger) *Ledger {
	t.Helper()
	return mustOpen(t, copyOf(t, l.path))
}

func mustSee(t testing.TB, l *Ledger, topics ...SeenTopic) {
	t.Helper()
	if err := l.SeeTopics(topics); err != nil {
		t.Fatal(err)
	}
}

func mustOrder(t testing.TB, l *Ledger, o Order) {
	t.Helper()
	if err := l.SetOrder(o); err != nil {
		t.Fatal(err)
	}
}

func mustStop(t testing.TB, l *Ledger, s Stop) {
	t.Helper()
	if err := l.SetStop(s); err != nil {
		t.Fatal(err)
	}
}

// TestTopicsAreKnownByID: a topic is known by its id, and by its name only
// where it has none; it is durable when SeeTopics returns, and stays as it was
// seen first.
func TestTopicsAreKnownByID(t *testing.T) {
	l := mustCreate(t)
	first := SeenTopic{Name: "orders", ID: TopicID{1}, SeenMillis: 5}
	nameless := SeenTopic{Name: "old", SeenMillis: 6}
	mustSee(t, l, first, nameless, first, SeenTopic{Name: "old", SeenMillis: 7})
	mustSee(t, l, SeenTopic{Name: "renamed", ID: TopicID{1}, SeenMillis: 9})
	for _, now := range []*Ledger{l, crashed(t, l)} {
		if got := seenOf(t, now); !slices.Equal(got, []SeenTopic{nameless, first}) {
			t.Errorf("topics = %+v", got)
		}
		for _, tt := range []struct {
			name string
			id   TopicID
			want bool
		}{
			{"orders", TopicID{1}, true},
			{"whatever", TopicID{1}, true},
			{"orders", TopicID{2}, false}, // created again
			{"orders", TopicID{}, false},
			{"old", TopicID{}, true},
			{"old", TopicID{3}, false},
			{"new", TopicID{}, false},
		} {
			if got := now.TopicSeen(tt.name, tt.id); got != tt.want {
				t.Errorf("TopicSeen(%s, %v) = %t", tt.name, tt.id, got)
			}
		}
	}
	mustSee(t, l, SeenTopic{Name: "orders", ID: TopicID{2}}, SeenTopic{Name: "old", ID: TopicID{3}})
	if got := seenOf(t, reopen(t, l)); len(got) != 4 || got[3].ID != (TopicID{2}) || got[3].SeenMillis < startMillis {
		t.Errorf("topics = %+v", got)
	}
}

// manyTopics returns topics with ids all over, of names as long as usual.
func manyTopics(n int) []SeenTopic {
	topics := make([]SeenTopic, n)
	for i := range topics {
		topics[i] = SeenTopic{Name: fmt.Sprintf("team-%03d.orders.created.v%d", i%1000, i), SeenMillis: startMillis + int64(i)}
		h := hashOf(int64(i))
		for j := range topics[i].ID {
			topics[i].ID[j] = byte(h >> (j % 8 * 8) >> (j / 8))
		}
	}
	return topics
}

// TestKnownTopicsCostNothing: where all topics are known there is no commit,
// not even of what is queued, and nothing is allocated.
func TestKnownTopicsCostNothing(t *testing.T) {
	l := mustCreate(t)
	topics := manyTopics(3*seenChunk + 1)
	mustSee(t, l, topics...)
	sorted := slices.Clone(topics)
	sortSeen(sorted)
	if got := seenOf(t, l); !slices.Equal(got, sorted) {
		t.Fatalf("%d topics, want %d, in several reads", len(got), len(sorted))
	}
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 3))
	before, commits := mustReadFile(t, l.path), l.last.number
	if n := testing.AllocsPerRun(10, func() { mustSee(t, l, topics...) }); n > 0 {
		t.Errorf("%v allocations to see what is known", n)
	}
	if l.last.number != commits || !slices.Equal(before, mustReadFile(t, l.path)) {
		t.Error("the file was written to")
	}
	mustSee(t, l, append(topics, SeenTopic{Name: "another"})...)
	if l.last.number != commits+1 || l.Committed(id) != l.End(id) {
		t.Errorf("one new topic took %d commits, and the books end at %+v", l.last.number-commits, l.Committed(id))
	}
	for range l.SeenTopics() {
		break // an iteration may end early
	}
}

// TestTopicsThatCannotBe: one of them, and none is added.
func TestTopicsThatCannotBe(t *testing.T) {
	l := mustCreate(t)
	for _, s := range []SeenTopic{
		{Name: ""}, {Name: "", ID: TopicID{9}}, {Name: strings.Repeat("x", maxTopic+1)}, {Name: "\xff"},
		{Name: "x", SeenMillis: -1}, {Name: "x", SeenMillis: maxMillis + 1}, {Name: "x", Partitions: -1},
	} {
		var law *LawError
		if err := l.SeeTopics([]SeenTopic{{Name: "good"}, s}); !errors.As(err, &law) || law.Law != lawTopics {
			t.Errorf("%.20q at %d: %v", s.Name, s.SeenMillis, err)
		}
	}
	if got := seenOf(t, l); len(got) > 0 {
		t.Errorf("topics = %+v", got)
	}
	mustSee(t, l, SeenTopic{Name: strings.Repeat("x", maxTopic), SeenMillis: maxMillis}, SeenTopic{Name: strings.Repeat("y", maxTopic), ID: TopicID{1}})
	if got := seenOf(t, reopen(t, l)); len(got) != 2 {
		t.Errorf("topics = %+v", got)
	}
}

// TestOrdersAreKept: the last one of each partition holds, from when SetOrder
// returns.
func TestOrdersAreKept(t *testing.T) {
	l := mustCreate(t)
	all := Order{SourceTopic: "orders", Partition: -1, Paused: true, By: "ada", AtMillis: 1}
	one := Order{SourceTopic: "orders", Partition: 2, Skip: Range{5, 7}, Reason: "poison", AtMillis: 2}
	other := Order{SourceTopic: "a", Partition: math.MaxInt32, AcceptRecreated: true, AcceptTruncated: true, Recopy: true, TolerateForeign: true, AtMillis: 3}
	for _, o := range []Order{one, {SourceTopic: "orders", Partition: -1, Recopy: true}, all, other} {
		mustOrder(t, l, o)
	}
	for _, now := range []*Ledger{l, crashed(t, l)} {
		if got := now.Orders(); !slices.Equal(got, []Order{other, all, one}) {
			t.Errorf("orders = %+v", got)
		}
	}
	commits := l.last.number
	mustOrder(t, l, one)
	mustOrder(t, l, Order{SourceTopic: "nobody", Reason: "says nothing"})
	if l.last.number != commits {
		t.Errorf("%d commits of what is so already", l.last.number-commits)
	}
	mustOrder(t, l, Order{SourceTopic: "orders", Partition: 2, Skip: Range{5, 5}, Reason: "fixed", By: "ada"})
	mustOrder(t, l, Order{SourceTopic: "a", Partition: 0, Paused: true})
	l = reopen(t, l)
	got := l.Orders()
	if len(got) != 3 || got[0].Partition != 0 || got[0].AtMillis < startMillis || got[1] != other || got[2] != all {
		t.Errorf("orders = %+v", got)
	}
}

// TestOrdersThatCannotBe are refused, also where they order nothing.
func TestOrdersThatCannotBe(t *testing.T) {
	l := mustCreate(t)
	long := strings.Repeat("x", maxText+1)
	for name, o := range map[string]Order{
		"no topic":          {Paused: true},
		"a long topic":      {SourceTopic: long[:maxTopic+1], Paused: true},
		"no text":           {SourceTopic: "\xff", Paused: true},
		"no partition":      {SourceTopic: "t", Partition: -2, Paused: true},
		"no reason":         {SourceTopic: "t", Skip: Range{1, 2}},
		"all partitions":    {SourceTopic: "t", Partition: -1, Skip: Range{1, 2}, Reason: "x"},
		"backwards":         {SourceTopic: "t", Skip: Range{2, 1}, Reason: "x"},
		"below the start":   {SourceTopic: "t", Skip: Range{-1, 1}, Reason: "x"},
		"a long reason":     {SourceTopic: "t", Paused: true, Reason: long},
		"a reason as bytes": {SourceTopic: "t", Reason: "\xff"},
		"a long name":       {SourceTopic: "t", Paused: true, By: long},
		"before the epoch":  {SourceTopic: "t", Paused: true, AtMillis: -1},
		"far away":          {SourceTopic: "t", Paused: true, AtMillis: maxMillis + 1},
	} {
		var law *LawError
		if err := l.SetOrder(o); !errors.As(err, &law) || law.Law != lawOrders {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustOrder(t, l, Order{SourceTopic: "t", Skip: Range{0, math.MaxInt64}, Reason: long[1:], By: long[1:]})
	if got := reopen(t, l).Orders(); len(got) != 1 || got[0].Skip != (Range{0, math.MaxInt64}) {
		t.Errorf("orders = %+v", got)
	}
}

// TestStopsGoWithTheNextCommit, and are known before it.
func TestStopsGoWithTheNextCommit(t *testing.T) {
	l := mustCreate(t)
	one := Stop{SourceTopic: "orders", Partition: 1, Offset: 7, Reason: "record_too_large", SinceMillis: 5, Tries: 2}
	all := Stop{SourceTopic: "secret", Partition: -1, Offset: -1, Reason: "not_authorized", Detail: "no Read", SinceMillis: 6}
	mustStop(t, l, all)
	mustStop(t, l, one)
	if got := l.Stops(); !slices.Equal(got, []Stop{one, all}) {
		t.Errorf("stops = %+v", got)
	}
	if got := crashed(t, l).Stops(); len(got) > 0 {
		t.Errorf("stops before the commit = %+v", got)
	}
	<-l.due // as for an entry
	mustCommit(t, l)
	if got := crashed(t, l).Stops(); !slices.Equal(got, []Stop{one, all}) {
		t.Errorf("stops = %+v", got)
	}
	commits := l.last.number
	mustStop(t, l, one)
	mustClear(t, l, "orders", 2)
	mustStop(t, l, Stop{SourceTopic: "short", Reason: "unavailable"})
	mustClear(t, l, "short", 0)
	mustCommit(t, l)
	if l.last.number != commits {
		t.Errorf("%d commits of what is so already", l.last.number-commits)
	}
	one.Tries++
	mustStop(t, l, one)
	mustClear(t, l, "secret", -1)
	if got := l.Stops(); !slices.Equal(got, []Stop{one}) {
		t.Errorf("stops = %+v", got)
	}
	mustCommit(t, l)
	l = reopen(t, l)
	if got := l.Stops(); !slices.Equal(got, []Stop{one}) || len(l.flow.stops) != 1 {
		t.Errorf("stops = %+v, %d in memory", got, len(l.flow.stops))
	}
	mustClear(t, l, "orders", 1)
	mustCommit(t, l)
	if len(l.flow.stops) > 0 || len(crashed(t, l).Stops()) > 0 {
		t.Error("a stop that is over is kept")
	}
}

func mustClear(t testing.TB, l *Ledger, topic string, partition int32) {
	t.Helper()
	if err := l.ClearStop(topic, partition); err != nil {
		t.Fatal(err)
	}
}

// TestStopDetails: a detail is cut between two runes, and is always text.
func TestStopDetails(t *testing.T) {
	l := mustCreate(t)
	for i, detail := range []string{
		strings.Repeat("x", maxText), strings.Repeat("x", maxText+1), strings.Repeat("é", maxText),
		"x" + strings.Repeat("é", maxText), strings.Repeat("\U0001F512", maxText), "broken \xff\xfe text", strings.Repeat("\xff", 3*maxText),
	} {
		mustStop(t, l, Stop{SourceTopic: "t", Partition: int32(i), Reason: "r", Detail: detail})
		got := l.Stops()[i].Detail
		valid := strings.ToValidUTF8(detail, "\uFFFD")
		if !utf8.ValidString(got) || !strings.HasPrefix(valid, got) || len(got) > maxText || len(got) < min(len(valid), maxText-3) {
			t.Errorf("detail %d of %d bytes became %d bytes: %.20q...", i, len(detail), len(got), got)
		}
	}
	mustCommit(t, l)
	want := l.Stops()
	if got := reopen(t, l).Stops(); !slices.Equal(got, want) {
		t.Error("stops are not what they were")
	}
}

// TestStopsThatCannotBe are refused.
func TestStopsThatCannotBe(t *testing.T) {
	l := mustCreate(t)
	for name, s := range map[string]Stop{
		"no topic":         {Reason: "r"},
		"a long topic":     {SourceTopic: strings.Repeat("x", maxTopic+1), Reason: "r"},
		"no partition":     {SourceTopic: "t", Partition: -2, Reason: "r"},
		"no reason":        {SourceTopic: "t"},
		"a long reason":    {SourceTopic: "t", Reason: strings.Repeat("x", maxText+1)},
		"reason not text":  {SourceTopic: "t", Reason: "\xff"},
		"no offset":        {SourceTopic: "t", Offset: -2, Reason: "r"},
		"the end of all":   {SourceTopic: "t", Offset: math.MaxInt64, Reason: "r"},
		"tries":            {SourceTopic: "t", Reason: "r", Tries: -1},
		"before the epoch": {SourceTopic: "t", Reason: "r", SinceMillis: -1},
	} {
		var law *LawError
		if err := l.SetStop(s); !errors.As(err, &law) || law.Law != lawStops {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := l.Stops(); len(got) > 0 {
		t.Errorf("stops = %+v", got)
	}
}

// TestStopsAfterAFailedCommit: what a commit took is queued again, unless
// something else was said meanwhile.
func TestStopsAfterAFailedCommit(t *testing.T) {
	l := mustCreate(t)
	stops := make([]Stop, 3000) // more than the file has free pages for
	for i := range stops {
		stops[i] = Stop{SourceTopic: "t", Partition: int32(i), Reason: "r", Detail: strings.Repeat("x", maxText)}
		mustStop(t, l, stops[i])
	}
	tx, err := l.db.Begin(true) // the commit has to wait for this one
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() { failed <- l.Commit() }()
	taken := func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.flow.news) == 0 }
	for i := 0; !taken(); i++ {
		if i > 1_000_000 {
			t.Fatal("the commit does not begin")
		}
		runtime.Gosched()
	}
	mustClear(t, l, "t", 0)
	stops[1].Tries = 9
	mustStop(t, l, stops[1])
	l.db.MaxSize = 1
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Fatal("a commit succeeds on a full disk")
	}
	if got := crashed(t, l).Stops(); len(got) > 0 {
		t.Errorf("%d stops after a failed commit", len(got))
	}
	l.db.MaxSize = 0
	<-l.due
	mustCommit(t, l)
	if got := crashed(t, l).Stops(); !slices.Equal(got, stops[1:]) {
		t.Errorf("%d stops, want %d", len(got), len(stops)-1)
	}
}

// TestStopClearedDuringACommit: what was said while a commit was under way is
// said by the next one.
func TestStopClearedDuringACommit(t *testing.T) {
	l := mustCreate(t)
	mustStop(t, l, Stop{SourceTopic: "t", Reason: "r"})
	tx, err := l.db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	committed := make(chan error)
	go func() { committed <- l.Commit() }()
	taken := func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.flow.news) == 0 }
	for !taken() {
		runtime.Gosched()
	}
	mustClear(t, l, "t", 0)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	if got := crashed(t, l).Stops(); len(got) != 1 || len(l.Stops()) > 0 {
		t.Errorf("%d stops in the file, %d known; want 1 and none", len(got), len(l.Stops()))
	}
	mustCommit(t, l)
	if got := crashed(t, l).Stops(); len(got) > 0 {
		t.Errorf("stops = %+v", got)
	}
}

// TestFlowInCopies: snapshots, private copies and shared opens hold the books
// beside the pairs, and take nothing.
func TestFlowInCopies(t *testing.T) {
	path := copyOf(t, filepath.Join(fixtures, "good.ledger"))
	want := formatRecord(goodTopics(), goodMade(), goodOrders(), goodStops())
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	if _, err := SnapshotFile(t.Context(), path, snapshot); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (*Ledger, error){
		"shared":   func() (*Ledger, error) { return Open(path, Options{ReadOnly: true}) },
		"copy":     func() (*Ledger, error) { return OpenCopy(path, Options{}) },
		"snapshot": func() (*Ledger, error) { return Open(snapshot, Options{ReadOnly: true}) },
	} {
		l, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if got := flowOf(t, l); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		for what, err := range map[string]error{
			"SeeTopics": l.SeeTopics(goodTopics()), "SetOrder": l.SetOrder(goodOrders()[0]),
			"SetStop": l.SetStop(goodStops()[0]), "ClearStop": l.ClearStop("x", 0), "SetMade": l.SetMade("x", TopicID{}, nil),
		} {
			if !errors.Is(err, ErrReadOnly) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for _, err := range l.SeenTopics() {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s: topics of a closed ledger: %v", name, err)
			}
		}
	}
}

// TestMemoryOfSeenTopics: 50,000 topics take at most 100 bytes each.
func TestMemoryOfSeenTopics(t *testing.T) {
	l := mustCreate(t)
	const n = 50_000
	mustSee(t, l, manyTopics(n)...)
	l = reopen(t, l)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	with := heap()
	l.mu.Lock()
	seen := l.flow.seenIDs
	l.flow.seenIDs = nil
	l.mu.Unlock()
	if len(seen) != n {
		t.Fatalf("%d topics are known, want %d", len(seen), n)
	}
	seen = nil
	per := float64(with-heap()) / n
	_, used, _ := l.Usage()
	t.Logf("%.1f bytes of memory and %.1f bytes of file a topic", per, float64(used)/n)
	if per < 10 || per > 100 {
		t.Errorf("%.1f bytes a topic", per)
	}
	if info, err := os.Stat(l.path); err != nil || info.Size() > 16<<20 {
		t.Errorf("the file has %v bytes (%v)", info.Size(), err)
	}
}
