package ledger

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCommitIsTheCommitPoint: what was appended is seen by readers and found
// again after a crash when it was committed, and not before.
func TestCommitIsTheCommitPoint(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	if got := l.Committed(id); got != (Position{}) {
		t.Errorf("committed to %+v before the commit", got)
	}
	if got := l.Totals(id); got != (Totals{}) {
		t.Errorf("totals are %v before the commit", got)
	}
	if _, err := l.FindSource(id, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("a queued entry is found: %v", err)
	}
	if got := mustCollect(t, l.Entries(id, 0)); len(got) != 0 {
		t.Errorf("queued entries are listed: %v", got)
	}
	mustCommit(t, l)
	want := Position{Source: 5, Target: 5, Appended: 5}
	if got := l.Committed(id); got != want {
		t.Errorf("committed to %+v, want %+v", got, want)
	}
	mustAppend(t, l, id, copiedEntry(l.End(id), 5)) // is lost with the process
	l = reopen(t, l)
	if got := l.End(id); got != want {
		t.Errorf("after a restart the books end at %+v, want %+v", got, want)
	}
}

// TestCommitOfNothing writes nothing.
func TestCommitOfNothing(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	before := mustReadFile(t, l.path)
	mustCommit(t, l)
	if err := l.Append(id); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, l)
	if !slices.Equal(before, mustReadFile(t, l.path)) {
		t.Error("a commit of nothing changed the file")
	}
}

func mustReadFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCommitTimes: entries carry the time of their commit, and so does the
// ledger.
func TestCommitTimes(t *testing.T) {
	now := time.UnixMilli(startMillis)
	path := filepath.Join(t.TempDir(), "test.ledger")
	l, err := Create(path, testIdentity(), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	checkAtEnd(t, l)
	if !l.CommitTime().Equal(now) {
		t.Errorf("a new ledger was committed at %v, want %v", l.CommitTime(), now)
	}
	id := mustOpenPair(t, l, 3, 0)
	want := []int64{startMillis}
	for _, move := range []time.Duration{time.Second, 0, -time.Hour} { // clocks are set back
		now = now.Add(move)
		e := copiedEntry(l.End(id), 1)
		e.TimeMillis = 77 // the ledger knows better
		mustAppend(t, l, id, e)
		mustCommit(t, l)
		want = append(want, now.UnixMilli())
	}
	l = reopen(t, l)
	var got []int64
	for _, e := range mustCollect(t, l.Entries(id, 0)) {
		got = append(got, e.TimeMillis)
	}
	if !slices.Equal(got, want) || l.CommitTime().UnixMilli() != want[len(want)-1] {
		t.Errorf("entries of %v, the last commit of %v, want %v", got, l.CommitTime(), want)
	}
}

// TestJournalIsShort: no pair waits longer than the journal may get, however
// many have something to say, and the values that nobody waits for are gone.
func TestJournalIsShort(t *testing.T) {
	l := mustCreate(t)
	l.writer.minimum = 1
	pairs := make([]Pair, 100)
	for i := range pairs {
		pairs[i] = Pair{SourceTopic: "orders", TargetTopic: "orders", Partition: int32(i)}
	}
	ids, err := l.OpenPairs(pairs)
	if err != nil {
		t.Fatal(err)
	}
	longest := 0
	for i := range 200 {
		for j, id := range ids {
			if i%7 == 0 || j%(i%13+1) == 0 {
				mustAppend(t, l, id, copiedEntry(l.End(id), 1))
			}
		}
		mustCommit(t, l)
		longest = max(longest, len(l.writer.journal))
		for _, id := range ids {
			if p := l.pairs[id]; p.unfolded == 0 && p.tail().saved != p.tail().count {
				t.Fatalf("pair %d is folded, and %d of %d entries of its last page are to be saved again", id, p.tail().count-p.tail().saved, p.tail().count)
			}
		}
		if l.last.journal != len(l.writer.journal) {
			t.Fatalf("the file says that the journal has %d values, it has %d", l.last.journal, len(l.writer.journal))
		}
	}
	if longest > foldShare || longest < foldShare/2 {
		t.Errorf("the journal had up to %d values, want %d at most, and some", longest, foldShare)
	}
	for range 2 * foldShare {
		mustAppend(t, l, ids[0], copiedEntry(l.End(ids[0]), 1))
		mustCommit(t, l)
	}
	if len(l.writer.journal) > 0 {
		t.Errorf("the journal still has %d values when one pair is at work", len(l.writer.journal))
	}
}

// TestStateIsDurable: a state is written with the next commit when a bound has
// changed, and when the one in the file is ten seconds old.
func TestStateIsDurable(t *testing.T) {
	l := mustCreate(t)
	l.writer.minimum = 1
	id := mustOpenPair(t, l, 0, 0)
	other, err := l.OpenPairs([]Pair{{SourceTopic: "pay", TargetTopic: "pay"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.State(id); got != unknownState() {
		t.Errorf("the state of a new pair is %+v", got)
	}
	bounds := func(high, seen int64, compact bool) State {
		return State{LogStart: 0, LastStable: 5, HighWatermark: high, SeenMillis: startMillis + seen, CaughtUpMillis: -1, CompactSeen: compact}
	}
	steps := []struct {
		name string
		set  State
		want State // after a commit and a restart
	}{
		{"the first", bounds(9, 0, false), bounds(9, 0, false)},
		{"seen again soon", bounds(9, 9_999, false), bounds(9, 0, false)},
		{"seen again later", bounds(9, 10_000, false), bounds(9, 10_000, false)},
		{"a bound moved", bounds(10, 10_001, false), bounds(10, 10_001, false)},
		{"compaction seen", bounds(10, 10_002, true), bounds(10, 10_002, true)},
		{"the source shrank, compaction is forgotten", bounds(6, 10_003, false), bounds(6, 10_003, true)},
	}
	for _, s := range steps {
		if err := l.SetState(id, s.set); err != nil {
			t.Fatal(err)
		}
		if got := l.State(id); got.HighWatermark != s.set.HighWatermark || got.SeenMillis != s.set.SeenMillis {
			t.Errorf("%s: State = %+v, want %+v", s.name, got, s.set)
		}
		mustCommit(t, l)
		mustAppend(t, l, other[0], copiedEntry(l.End(other[0]), 1))
		mustCommit(t, l)
		l = reopen(t, l)
		if got := l.State(id); got != s.want {
			t.Errorf("%s: after a restart State = %+v, want %+v", s.name, got, s.want)
		}
	}
}

// TestStateIsPutInOrder: a leader reads its bounds one after the other.
func TestStateIsPutInOrder(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	tests := []struct{ set, want [3]int64 }{ // log start, last stable, high watermark
		{[3]int64{0, 5, 9}, [3]int64{0, 5, 9}},
		{[3]int64{0, 12, 9}, [3]int64{0, 12, 12}},
		{[3]int64{7, 5, 9}, [3]int64{7, 7, 9}},
		{[3]int64{13, 5, 9}, [3]int64{13, 13, 13}},
		{[3]int64{13, -1, 9}, [3]int64{13, -1, 13}},
		{[3]int64{-1, 5, -1}, [3]int64{-1, 5, -1}},
		{[3]int64{-1, -1, -1}, [3]int64{-1, -1, -1}},
	}
	for _, tt := range tests {
		s := State{LogStart: tt.set[0], LastStable: tt.set[1], HighWatermark: tt.set[2], SeenMillis: -1}
		if err := l.SetState(id, s); err != nil {
			t.Errorf("%v: %v", tt.set, err)
		}
		got := l.State(id)
		if [3]int64{got.LogStart, got.LastStable, got.HighWatermark} != tt.want {
			t.Errorf("%v became %+v, want %v", tt.set, got, tt.want)
		}
		mustCommit(t, l)
	}
	for _, s := range []State{{LogStart: -2}, {SeenMillis: -2}, {HighWatermark: 1<<63 - 1}, {SeenMillis: maxMillis + 1}} {
		var broken *LawError
		if err := l.SetState(id, s); !errors.As(err, &broken) || broken.Law != lawState {
			t.Errorf("%+v: %v, want law %s", s, err, lawState)
		}
	}
}

func TestProducersAreDurable(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	second := Producer{ID: 4001, Epoch: 2, Sequence: 9, Appended: 5}
	if err := l.SetProducer(id, second); err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]Producer{
		"before the last one":  {ID: 1, Appended: 4},
		"ahead of the books":   {ID: 1, Appended: 6},
		"a sequence below 0":   {ID: 1, Appended: 5, Sequence: -1},
		"an id that is none":   {ID: -2, Appended: 5},
		"an epoch that is not": {ID: 1, Epoch: -2, Appended: 5},
	} {
		var broken *LawError
		if err := l.SetProducer(id, wrong); !errors.As(err, &broken) || broken.Law != lawProducers {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustCommit(t, l)
	l = reopen(t, l)
	want := []Producer{{ID: 4000}, second}
	if p, _ := l.Pair(id); !slices.Equal(l.Producers(id), want) || p.Producer != second {
		t.Errorf("producers are %v, the last one is %v, want %v", l.Producers(id), p.Producer, want)
	}
}

// TestCommitLoop runs the loop on a fake clock: it commits 100 ms after the
// first entry, at once when 4 MiB are queued, and at the end.
func TestCommitLoop(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	synctest.Test(t, func(t *testing.T) {
		l.due, l.full = make(chan struct{}, 1), make(chan struct{}, 1) // of this bubble
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.CommitLoop(ctx) }()
		committed := func() int64 { synctest.Wait(); return l.Committed(id).Source }

		mustAppend(t, l, id, copiedEntry(l.End(id), 1))
		<-time.After(60 * time.Millisecond)
		mustAppend(t, l, id, copiedEntry(l.End(id), 1))
		<-time.After(39 * time.Millisecond)
		if got := committed(); got != 0 {
			t.Errorf("after 99 ms %d records are committed", got)
		}
		<-time.After(2 * time.Millisecond)
		if got := committed(); got != 2 {
			t.Errorf("after 101 ms %d records are committed, want 2", got)
		}
		many := make([]Entry, 0, 30_000)
		for at := l.End(id); len(many) < cap(many); at = advance(at, &many[len(many)-1]) {
			many = append(many, sourceEntry(Lost, at, 1))
		}
		mustAppend(t, l, id, many...)
		if got := committed(); got != 30_002 {
			t.Errorf("with %d entries queued %d offsets are committed, want all", len(many), got)
		}
		mustAppend(t, l, id, copiedEntry(l.End(id), 1))
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := committed(); got != 30_003 {
			t.Errorf("at the end %d offsets are committed, want all", got)
		}
	})
}

// TestFullDisk: a commit that does not fit fails, and leaves everything as it
// was; with room again it succeeds.
func TestFullDisk(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	mustCommit(t, l)
	before := mustReadFile(t, l.path)
	l.db.MaxSize = 1 // no more pages than there are
	var many []Entry
	for at := l.End(id); len(many) < 100_000; at = advance(at, &many[len(many)-1]) {
		many = append(many, sourceEntry(Lost, at, 1))
	}
	mustAppend(t, l, id, many...)
	for range 2 {
		if err := l.Commit(); err == nil {
			t.Fatal("a commit succeeds on a full disk")
		}
		if got := l.Committed(id).Source; got != 5 {
			t.Fatalf("after an error %d records are committed, want 5", got)
		}
	}
	if !slices.Equal(before, mustReadFile(t, l.path)) {
		t.Error("a commit that failed changed the file")
	}
	mustAppend(t, l, id, sourceEntry(Aborted, l.End(id), 1))
	l.db.MaxSize = 0
	mustCommit(t, l)
	if got := l.Committed(id); got.Source != 100_006 || got != l.End(id) {
		t.Errorf("with room again the books end at %+v, want 100006", got)
	}
}

// TestAppendDuringFailingCommit: what is appended while a commit is under way
// stays behind what that commit took, also when it fails.
func TestAppendDuringFailingCommit(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 2))
	long := targetEntry(Foreign, l.End(id), 1)
	for range 3000 { // more than the file has free pages for
		long.Target = Range{l.End(id).Target, l.End(id).Target + 1}
		long.Reason = strings.Repeat("x", maxText)
		mustAppend(t, l, id, long)
	}
	tx, err := l.db.Begin(true) // the commit has to wait for this one
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() { failed <- l.Commit() }()
	taken := func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.queue) == 0 }
	for i := 0; !taken(); i++ {
		if i > 1_000_000 {
			t.Fatal("the commit does not begin")
		}
		runtime.Gosched()
	}
	mustAppend(t, l, id, sourceEntry(Lost, l.End(id), 3))
	l.db.MaxSize = 1
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Fatal("a commit succeeds on a full disk")
	}
	l.db.MaxSize = 0
	mustAppend(t, l, id, copiedEntry(l.End(id), 4))
	mustCommit(t, l)
	var tiles []Tile
	for _, e := range mustCollect(t, l.Entries(id, 0)) {
		tiles = append(tiles, e.Tile)
	}
	tiles = slices.DeleteFunc(tiles, func(tile Tile) bool { return tile == Foreign })
	if !slices.Equal(tiles, []Tile{Copied, Lost, Copied}) || l.Committed(id) != l.End(id) {
		t.Errorf("the books hold %v up to %+v, want all up to %+v", tiles, l.Committed(id), l.End(id))
	}
}

// TestUncertainCommit: after an error the transaction may be in the file all
// the same if its meta page is, or if a meta page cannot be read.
func TestUncertainCommit(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	mustCommit(t, l)
	b := mustReadFile(t, l.path)
	metas, err := readMetas(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	last := newest(metas).txid
	failed := errors.New("input/output error")
	for txid, want := range map[uint64]bool{last + 1: false, last: true, last - 1: true} {
		if got := l.uncertain(failed, txid); got != want {
			t.Errorf("uncertain after transaction %d, with %d in the file, is %t, want %t", txid, last, got, want)
		}
	}
	if !l.uncertain(&CorruptError{}, last+1) {
		t.Error("a damaged file is not uncertain")
	}
	for page := range 2 {
		torn := slices.Clone(b)
		torn[page*fileBlock+fileHeader+48]++
		restoreFile(t, l.path, torn)
		if !l.uncertain(failed, last+1) {
			t.Errorf("a torn meta page %d is not uncertain", page)
		}
	}
	restoreFile(t, l.path, b)
}

func restoreFile(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// TestPanicInCommit: a panic of bbolt is damage, after which the ledger still
// can be read and closed.
func TestPanicInCommit(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	mustCommit(t, l)
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	b := mustReadFile(t, l.path)
	damaged := slices.Clone(b)
	for page := 2 * fileBlock; page < len(damaged); page += fileBlock {
		damaged[page+8] = 0x77 // no kind of page
	}
	restoreFile(t, l.path, damaged)
	var damage *CorruptError
	if err := l.Commit(); !errors.As(err, &damage) || damage.Path != l.path {
		t.Errorf("a commit into a file without pages: %v", err)
	}
	if err := l.Append(id, copiedEntry(l.End(id), 5)); !errors.As(err, &damage) {
		t.Errorf("an append after it: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if !slices.Equal(damaged, mustReadFile(t, l.path)) {
		t.Error("the damaged file was changed")
	}
	restoreFile(t, l.path, b)
}
