package translate_test

import (
	"context"
	"errors"
	"math/rand"
	"path/filepath"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/translate"
)

// places asks for offsets and compares each with the place that it should
// translate to exactly.
func places(t *testing.T, books translate.Books, want map[int64]int64) {
	t.Helper()
	for offset, target := range want {
		got, err := translate.Forward(books, offset)
		if err != nil || got.TargetOffset != target || !got.Status.IsExact() || got.SourceOffset != offset {
			t.Errorf("Forward(%d) = %+v, %v, want %d exactly", offset, got, err, target)
		}
	}
}

// TestSimpleAbort: a transaction of three records is aborted between plain
// ones.
//
//	source  0..4  5..7     8       9..11
//	        plain aborted  marker  plain
func TestSimpleAbort(t *testing.T) {
	want := map[int64]int64{0: 0, 4: 4, 5: 5, 7: 5, 8: 5, 9: 5, 10: 6, 12: 8}
	l := mustCreate(t)
	places(t, newHistory(0, 0).copied("rrrrrxxxarrr", 0).mustBook(t, l, 0), want)
	apart := newHistory(0, 0).copied("rrrrr", 0).commit().absent(ledger.Aborted, 3).commit().
		absent(ledger.AbortMarker, 1).commit().copied("rrr", 0)
	places(t, apart.mustBook(t, l, 1), want)
}

// TestCompactedTopic: of offsets 0 to 9 the cleaner has left 3 and 9.
func TestCompactedTopic(t *testing.T) {
	want := map[int64]int64{0: 0, 3: 0, 4: 1, 9: 1, 10: 2}
	l := mustCreate(t)
	places(t, newHistory(0, 0).copied("---r-----r", 0).mustBook(t, l, 0), want)
	apart := newHistory(0, 0).absent(ledger.Compacted, 3).commit().copied("r", 0).commit().
		absent(ledger.Compacted, 5).commit().copied("r", 0)
	places(t, apart.mustBook(t, l, 1), want)
}

// TestEmptyBatch: the cleaner has emptied the batch of offsets 5 to 9, and kept
// it.
func TestEmptyBatch(t *testing.T) {
	want := map[int64]int64{0: 0, 4: 4, 5: 5, 7: 5, 9: 5, 10: 5, 11: 6, 12: 7, 13: 8}
	l := mustCreate(t)
	places(t, newHistory(0, 0).copied("rrrrr-----rrr", 0).mustBook(t, l, 0), want)
	apart := newHistory(0, 0).copied("rrrrr", 0).commit().absent(ledger.Compacted, 5).commit().copied("rrr", 0)
	places(t, apart.mustBook(t, l, 1), want)
}

// TestOffsetsOutsideTheLog: the source's log starts at 50 and ends at 100, the
// target has 0 to 49.
func TestOffsetsOutsideTheLog(t *testing.T) {
	l := mustCreate(t)
	books := newHistory(50, 0).copied(strings.Repeat("r", 50), 0).mustBook(t, l, 0)
	tests := []struct {
		name             string
		offset, want     int64
		status           translate.Status
		distance, copied int64
	}{
		{"below the log start", 30, 0, translate.BeforeStart, 20, 100},
		{"just below the log start", 49, 0, translate.BeforeStart, 1, 100},
		{"at the log start", 50, 0, translate.Exact, 0, 100},
		{"in the middle", 75, 25, translate.Exact, 0, 100},
		{"at the end", 100, 50, translate.End, 0, 100},
		{"beyond the end", 120, 50, translate.BeyondCopied, 20, 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := translate.Forward(books, tt.offset)
			want := answer{tt.status, tt.want, tt.distance, tt.copied}
			if err != nil || forwardOf(got) != want {
				t.Errorf("Forward(%d) = %+v, %v, want %+v", tt.offset, got, err, want)
			}
		})
	}
	places(t, newHistory(8220, 0).copied(strings.Repeat("r", 100), 0).mustBook(t, l, 1), map[int64]int64{8320: 100})
}

// TestPlacesOfDoubt asks where an answer has to say more than an offset.
//
//	source  0 1  2  3 4   5 6   7   8 9      10 11   12     13
//	        r r  c  lost  lost  un  r filt.  r  -    abort  lost
//	target  10 11 foreign 12-14     15       16
func TestPlacesOfDoubt(t *testing.T) {
	h := newHistory(0, 10).copied("rrc", 0).absent(ledger.Lost, 2).note(ledger.Foreign, 3).absent(ledger.Lost, 2).
		absent(ledger.Unexplained, 1).copied("r", 0).absent(ledger.Filtered, 1).copied("r-", 0).
		absent(ledger.AbortMarker, 1).absent(ledger.Lost, 1)
	books := h.mustBook(t, mustCreate(t), 0)
	forward := []struct {
		name         string
		offset, want int64
		status       translate.Status
		distance     int64
	}{
		{"a marker before what is lost is not lost", 2, 15, translate.Exact, 0},
		{"adjacent lost ranges count together, whatever lies between on the target", 3, 15, translate.Lost, 5},
		{"from the middle of them", 5, 15, translate.Lost, 3},
		{"unexplained is as bad", 7, 15, translate.Lost, 1},
		{"the record behind them", 8, 15, translate.Exact, 0},
		{"filtered", 9, 16, translate.Exact, 0},
		{"a marker with nothing copied behind it", 12, 17, translate.End, 0},
		{"lost with nothing copied behind it", 13, 17, translate.Lost, 1},
		{"the end behind what is lost", 14, 17, translate.End, 0},
		{"beyond it", 15, 17, translate.BeyondCopied, 1},
	}
	for _, tt := range forward {
		got, err := translate.Forward(books, tt.offset)
		want := answer{tt.status, tt.want, tt.distance, 14}
		if err != nil || forwardOf(got) != want {
			t.Errorf("%s: Forward(%d) = %+v, %v, want %+v", tt.name, tt.offset, got, err, want)
		}
	}
	reverse := []struct {
		name         string
		offset, want int64
		status       translate.Status
		distance     int64
	}{
		{"below the target book", 7, 0, translate.BeforeStart, 3},
		{"its start", 10, 0, translate.Exact, 0},
		{"a note", 13, 8, translate.Exact, 0},
		{"the last copied record", 16, 10, translate.Exact, 0},
		{"the end, where the position of the source book is", 17, 14, translate.End, 0},
		{"beyond it", 20, 14, translate.BeyondCopied, 3},
	}
	for _, tt := range reverse {
		got, err := translate.Reverse(books, tt.offset)
		want := answer{tt.status, tt.want, tt.distance, 14}
		if err != nil || reverseOf(got) != want {
			t.Errorf("%s: Reverse(%d) = %+v, %v, want %+v", tt.name, tt.offset, got, err, want)
		}
	}
}

func TestNothingCopied(t *testing.T) {
	tests := []struct {
		name    string
		h       *history
		forward map[int64]answer
		reverse map[int64]answer
	}{
		{"an empty book", newHistory(0, 7),
			map[int64]answer{0: {translate.End, 7, 0, 0}, 3: {translate.BeyondCopied, 7, 3, 0}},
			map[int64]answer{4: {translate.BeforeStart, 0, 3, 0}, 7: {translate.End, 0, 0, 0}, 9: {translate.BeyondCopied, 0, 2, 0}}},
		{"nothing in scope yet", newHistory(50, 7),
			map[int64]answer{30: {translate.BeforeStart, 7, 20, 50}, 50: {translate.End, 7, 0, 50}},
			map[int64]answer{0: {translate.BeforeStart, 50, 7, 50}, 7: {translate.End, 50, 0, 50}}},
		{"markers and notes alone", newHistory(0, 7).absent(ledger.CommitMarker, 2).note(ledger.Foreign, 3),
			map[int64]answer{0: {translate.End, 10, 0, 2}, 2: {translate.End, 10, 0, 2}},
			map[int64]answer{7: {translate.End, 2, 0, 2}, 10: {translate.End, 2, 0, 2}}},
		{"all lost", newHistory(0, 0).absent(ledger.Lost, 4),
			map[int64]answer{1: {translate.Lost, 0, 3, 4}, 4: {translate.End, 0, 0, 4}},
			map[int64]answer{0: {translate.End, 4, 0, 4}}},
	}
	l := mustCreate(t)
	for i, tt := range tests {
		books := tt.h.mustBook(t, l, int32(i))
		for offset, want := range tt.forward {
			if got, err := translate.Forward(books, offset); err != nil || forwardOf(got) != want {
				t.Errorf("%s: Forward(%d) = %+v, %v, want %+v", tt.name, offset, got, err, want)
			}
		}
		for offset, want := range tt.reverse {
			if got, err := translate.Reverse(books, offset); err != nil || reverseOf(got) != want {
				t.Errorf("%s: Reverse(%d) = %+v, %v, want %+v", tt.name, offset, got, err, want)
			}
		}
	}
}

// TestStartThatMovedUp: what is below the scope is booked in two pieces, behind
// an opening that knew of none.
func TestStartThatMovedUp(t *testing.T) {
	l := mustCreate(t)
	h := newHistory(0, 0).absent(ledger.BeforeStart, 30).commit().absent(ledger.BeforeStart, 20).copied("rr", 0)
	books := h.mustBook(t, l, 0)
	for offset, want := range map[int64]answer{
		10: {translate.BeforeStart, 0, 40, 52}, 30: {translate.BeforeStart, 0, 20, 52}, 49: {translate.BeforeStart, 0, 1, 52},
		50: {translate.Exact, 0, 0, 52}, 51: {translate.Exact, 1, 0, 52},
	} {
		if got, err := translate.Forward(books, offset); err != nil || forwardOf(got) != want {
			t.Errorf("Forward(%d) = %+v, %v, want %+v", offset, got, err, want)
		}
	}
}

func TestNoBookNoAnswer(t *testing.T) {
	l := mustCreate(t)
	closed := newHistory(0, 0).copied("rrr", 0).mustBook(t, l, 0)
	if err := l.ClosePair(closed.Pair, ledger.Closing{Reason: "topic_recreated"}); err != nil {
		t.Fatal(err)
	}
	unknown := func(r translate.Result, source, target int64) bool {
		return r.Status == translate.Unknown && r.SourceOffset == source && r.TargetOffset == target &&
			r.Distance == 0 && r.CopiedTo == translate.NoOffset && r.Detail != ""
	}
	for _, books := range []translate.Books{closed, {Ledger: l, Pair: closed.Pair + 1}, {Ledger: l}} {
		forward, err := translate.Forward(books, 1)
		if err != nil || !unknown(forward, 1, translate.NoOffset) {
			t.Errorf("pair %d: Forward(1) = %+v, %v, want unknown", books.Pair, forward, err)
		}
		reverse, err := translate.Reverse(books, 2)
		if err != nil || !unknown(reverse, translate.NoOffset, 2) {
			t.Errorf("pair %d: Reverse(2) = %+v, %v, want unknown", books.Pair, reverse, err)
		}
		all, err := translate.ForwardAll(t.Context(), books, []int64{3, 1})
		if err != nil || len(all) != 2 || !unknown(all[0], 3, translate.NoOffset) || all[1] != forward {
			t.Errorf("pair %d: ForwardAll(3, 1) = %+v, %v, want unknown", books.Pair, all, err)
		}
	}
}

// TestGenerationsThatDoNotJoin: where an earlier generation of the same topics ends
// below the next one, or reaches behind its start on the target, nobody knows what
// stands there. One of other topics has no say.
func TestGenerationsThatDoNotJoin(t *testing.T) {
	for _, test := range []struct {
		name  string
		scope int64 // of the next generation
		base  int64
		topic byte // the source topic of it
		below translate.Status
	}{
		{"a gap", 11, 10, 0, translate.Unknown},
		{"twice on the target", 10, 9, 0, translate.Unknown},
		{"they join", 10, 10, 0, translate.Exact},
		{"another topic", 11, 10, 7, translate.BeforeStart},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := mustCreate(t)
			h := newHistory(0, 0).copied("rrrrrrrrrr", 0)
			books := h.mustBook(t, l, 0)
			next := h.orders(0)
			next.ScopeStart, next.TargetBase = test.scope, test.base
			next.SourceTopicID[0] += test.topic
			id, err := l.Reopen(books.Pair, ledger.Closing{}, next)
			if err != nil {
				t.Fatal(err)
			}
			books.Pair = id
			end := l.End(id)
			e := newHistory(end.Source, end.Target).copied("rrr", 0).steps[0].entry
			if err := errors.Join(l.Append(id, e), l.Commit()); err != nil {
				t.Fatal(err)
			}
			for _, offset := range []int64{0, 5, 9} {
				if r, err := translate.Forward(books, offset); err != nil || r.Status != test.below || (r.TargetOffset < 0) != (test.below == translate.Unknown) {
					t.Errorf("source offset %d: %+v, %v", offset, r, err)
				}
			}
			if r, err := translate.Reverse(books, 5); err != nil || r.Status != test.below {
				t.Errorf("target offset 5: %+v, %v", r, err)
			}
			if r, err := translate.Forward(books, test.scope+1); err != nil || r.Status != translate.Exact || r.TargetOffset != test.base+1 {
				t.Errorf("source offset %d: %+v, %v", test.scope+1, r, err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	l, err := create(filepath.Join(t.TempDir(), "flow.ledger"))
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.CheckLedgerAtEnd(t, l.Path())
	books := newHistory(0, 0).copied("rrr", 0).mustBook(t, l, 0)
	gaveUp, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("gave up")
	cancel(stop)

	index := translate.NewIndex(l)
	queries := []translate.Query{{Topic: "orders", Offset: 1}, {Topic: "orders", Offset: -1}}
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	_, err = translate.Forward(books, -1)
	check("Forward", err, translate.ErrNegativeOffset)
	_, err = translate.Reverse(books, -2)
	check("Reverse", err, translate.ErrNegativeOffset)
	_, err = translate.ForwardAll(t.Context(), books, []int64{0, -1})
	check("ForwardAll", err, translate.ErrNegativeOffset)
	_, err = index.Reverse(t.Context(), queries)
	check("Index.Reverse", err, translate.ErrNegativeOffset)
	_, err = translate.ReverseAll(gaveUp, books, []int64{0})
	check("ReverseAll", err, stop)
	_, err = index.Forward(gaveUp, queries[:1])
	check("Index.Forward", err, stop)

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = translate.Forward(books, 1)
	check("Forward of a closed ledger", err, ledger.ErrClosed)
	_, err = translate.ReverseAll(t.Context(), books, []int64{1})
	check("ReverseAll of a closed ledger", err, ledger.ErrClosed)
}

// TestWhileTheLedgerIsWritten translates offsets while records are booked: what
// has an exact answer keeps it.
func TestWhileTheLedgerIsWritten(t *testing.T) {
	l := mustCreate(t)
	h := newHistory(0, 0).copied("r-rc", 0)
	books := h.mustBook(t, l, 0)
	for range 60 {
		h.copied("rrc", 0).note(ledger.Duplicate, 1).absent(ledger.Lost, 1).copied("-r", 1)
	}
	written := make(chan error, 1)
	go func() {
		defer close(written)
		for i, s := range h.steps[1:] {
			if err := l.Append(books.Pair, s.entry); err != nil {
				written <- err
				return
			}
			if i%8 == 7 || i == len(h.steps)-2 {
				if err := l.Commit(); err != nil {
					written <- err
					return
				}
			}
		}
	}()
	rng := rand.New(rand.NewSource(propertySeed))
	for done := false; !done; {
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
		}
		offset := rng.Int63n(h.sourceEnd())
		got, err := translate.Forward(books, offset)
		if err != nil {
			t.Fatal(err)
		}
		want := h.forward(offset)
		if got.Status == translate.Exact && got.TargetOffset != want.offset || got.TargetOffset > want.offset {
			t.Fatalf("Forward(%d) = %+v, want %+v in the end", offset, got, want)
		}
	}
	if err := h.checkAgainst(books, rng); err != nil {
		t.Error(err)
	}
}

// TestSnapshotAnswersAlike asks a snapshot and a private copy of a ledger.
func TestSnapshotAnswersAlike(t *testing.T) {
	l := mustCreate(t)
	h := decode(randomNumbers(400))
	books := h.mustBook(t, l, 0)
	path := filepath.Join(t.TempDir(), "snapshot.ledger")
	if _, err := l.Snapshot(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	snapshot := kafkatest.OpenLedger(t, path, ledger.Options{ReadOnly: true})
	copied, err := ledger.OpenCopy(path, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	for _, opened := range []*ledger.Ledger{snapshot, copied} {
		if err := h.checkAgainst(translate.Books{Ledger: opened, Pair: books.Pair}, rand.New(rand.NewSource(1))); err != nil {
			t.Error(err)
		}
	}
}

func randomNumbers(n int) []uint32 {
	rng := rand.New(rand.NewSource(propertySeed))
	numbers := make([]uint32, n)
	for i := range numbers {
		numbers[i] = rng.Uint32()
	}
	return numbers
}

func TestStatusNames(t *testing.T) {
	want := map[translate.Status]string{
		translate.Exact: "exact", translate.End: "end", translate.BeyondCopied: "beyond_copied",
		translate.BeforeStart: "before_start", translate.Lost: "lost", translate.Unknown: "unknown",
	}
	for status, name := range want {
		if exact := name == "exact" || name == "end"; status.String() != name || status.IsExact() != exact {
			t.Errorf("%d is called %s and is exact: %t, want %s and %t", status, status, status.IsExact(), name, exact)
		}
	}
	if (translate.Result{}).Status != translate.Unknown {
		t.Error("a result that nobody filled in is not unknown")
	}
}

// TestCutTwice: the target lost the end of the books, and then all that was copied
// again and more: below the last cut the oldest books go on to answer.
func TestCutTwice(t *testing.T) {
	for _, other := range []bool{false, true} { // the last generation is of another source topic
		l := mustCreate(t)
		h := newHistory(0, 10).copied("rrrrrrcrrr", 0) // target offsets 10 to 18
		books := h.mustBook(t, l, 0)
		id := books.Pair
		for _, cut := range []ledger.Cut{{Source: 8, Target: 17}, {Source: 4, Target: 14}} {
			next := h.orders(0)
			next.ScopeStart, next.TargetBase = cut.Source, cut.Target
			own, err := l.CutAt(id, cut.Target)
			if err != nil {
				t.Fatal(err)
			}
			if other && cut.Source == 4 {
				next.SourceTopicID = ledger.TopicID{7}
			}
			if id, err = l.Reopen(id, ledger.Closing{Cut: &own}, next); err != nil {
				t.Fatal(err)
			}
			if err := l.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		tail := newHistory(4, 14).copied("rrcrrr", 0)
		if err := l.Append(id, tail.steps[0].entry); err != nil {
			t.Fatal(err)
		}
		if err := l.Commit(); err != nil {
			t.Fatal(err)
		}
		books.Pair = id
		want := map[int64]int64{0: 10, 3: 13, 4: 14, 5: 15, 6: 16, 7: 16, 9: 18, 10: 19}
		if other {
			want = map[int64]int64{4: 14, 7: 16}
			if got, err := translate.Forward(books, 3); err != nil || got.Status != translate.BeforeStart {
				t.Errorf("of a topic that is gone: %+v, %v", got, err)
			}
		}
		places(t, books, want)
	}
}
