package ledger

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// answers asks a ledger everything that it can be asked, and returns what it
// says or the error, under a name each.
func answers(l *Ledger) map[string]any {
	all := map[string]any{
		"identity": l.Identity(), "scope": fmt.Sprint(l.Scope()), "time": l.CommitTime().UnixMilli(), "pairs": len(l.Pairs()),
	}
	all["topics"], all["orders"], all["stops"] = seenListed(l), fmt.Sprint(l.Orders()), fmt.Sprint(l.Stops())
	all["made"] = fmt.Sprint(madeOf(l))
	for _, p := range l.Pairs() {
		closed := p.Closed != nil
		p.Closed = nil
		name := fmt.Sprintf("pair %d: ", p.ID)
		all[name+"opening"] = fmt.Sprint(p, closed, l.Producers(p.ID))
		all[name+"end"], all[name+"totals"], all[name+"state"] = l.Committed(p.ID), l.Totals(p.ID), l.State(p.ID)
		all[name+"marks"] = marksOf(l, p.ID)
		end := l.Committed(p.ID)
		for offset := int64(0); offset <= end.Source; offset += 29 {
			e, err := l.FindSource(p.ID, offset)
			all[fmt.Sprintf("%ssource %d", name, offset)] = answer(fmt.Sprintf("%+v", e), err)
		}
		for offset := p.TargetBase; offset <= end.Target; offset += 29 {
			e, err := l.FindTarget(p.ID, offset)
			all[fmt.Sprintf("%starget %d", name, offset)] = answer(fmt.Sprintf("%+v", e), err)
		}
		all[name+"entries"] = listed(l.Entries(p.ID, 0))
		all[name+"entries from the target"] = listed(l.EntriesFromTarget(p.ID, end.Target/2))
	}
	return all
}

func answer(value any, err error) any {
	if err != nil {
		return err
	}
	return value
}

// listed returns the entries as a text, or the error that ended them.
func listed(entries iter.Seq2[Entry, error]) any {
	var text strings.Builder
	for e, err := range entries {
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%+v\n", e)
	}
	return text.String()
}

// seenListed returns the topics as a text, or the error that ended them.
func seenListed(l *Ledger) any {
	var text strings.Builder
	for s, err := range l.SeenTopics() {
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%+v\n", s)
	}
	return text.String()
}

// mustAnswerTheSame fails unless every answer of a damaged ledger is the one of
// the good ledger or a CorruptError. It reports whether all were the same.
func mustAnswerTheSame(t *testing.T, l *Ledger, good map[string]any) (same bool) {
	t.Helper()
	got := answers(l)
	same = true
	for name, want := range good {
		if err, failed := got[name].(error); failed {
			var damage *CorruptError
			if wantErr, ok := want.(error); ok && errors.Is(wantErr, ErrNotFound) && errors.Is(err, ErrNotFound) {
				continue
			}
			same = false
			if !errors.As(err, &damage) || damage.Path != l.path || damage.Law == "" || damage.Key == "" {
				t.Errorf("%s: %v, want a CorruptError", name, err)
			}
			continue
		}
		if wantErr, failed := want.(error); failed {
			t.Errorf("%s: %v, want %v", name, got[name], wantErr)
		} else if got[name] != want {
			same = false
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	return same
}

// TestFlippedBytes changes bytes all over a small ledger. Whatever is changed,
// no answer is another one than before: it is the same, or says that the file
// is damaged; and nothing panics. The check finds all damage that matters.
func TestFlippedBytes(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.ledger")
	buildGood(t, good)
	l, err := Open(good, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	want := answers(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b := mustReadFile(t, good)
	random := rand.New(rand.NewPCG(testSeed, 7))
	path := filepath.Join(t.TempDir(), "flipped.ledger")
	unseen := 0
	for at := range interestingOffsets(len(b)) {
		flipped := slices.Clone(b)
		flipped[at] ^= byte(1 << random.IntN(8))
		if err := os.WriteFile(path, flipped, 0o644); err != nil {
			t.Fatal(err)
		}
		found := len(mustCheckDamaged(t, path)) > 0
		for _, o := range []Options{{ReadOnly: true}, {}} {
			same := openDamaged(t, path, o, want)
			if !same && !found {
				t.Errorf("a change of byte %d is seen by a reader and not by the check", at)
			}
		}
		if !found {
			unseen++
		}
		if !slices.Equal(flipped, mustReadFile(t, path)) {
			t.Fatalf("the file with byte %d changed was written to", at)
		}
		if t.Failed() {
			t.Fatalf("byte %d, page %d, %d of it", at, at/fileBlock, at%fileBlock)
		}
	}
	t.Logf("seed %d: %d changes lie where nothing is", testSeed, unseen)
}

// interestingOffsets returns the offsets of all page headers, of some element
// headers behind them, and of bytes all over.
func interestingOffsets(size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := range size {
			if at%fileBlock < 40 || at%89 == 0 {
				if !yield(at) {
					return
				}
			}
		}
	}
}

func mustCheckDamaged(t *testing.T, path string) (found []Violation) {
	t.Helper()
	err := CheckFile(t.Context(), path, Options{}, func(v Violation) { found = append(found, v) })
	var newer *FormatError
	if errors.As(err, &newer) {
		return []Violation{{Law: "format"}}
	}
	if err != nil {
		t.Error(err)
	}
	return found
}

// openDamaged opens a damaged file and asks it everything. It reports whether
// it was as good as before.
func openDamaged(t *testing.T, path string, o Options, want map[string]any) (same bool) {
	t.Helper()
	l, err := Open(path, o)
	var damage *CorruptError
	var newer *FormatError
	if errors.As(err, &damage) && damage.Path == path && damage.Law != "" && damage.Key != "" || errors.As(err, &newer) {
		return false
	}
	if err != nil {
		t.Errorf("open: %v, want a CorruptError", err)
		return false
	}
	same = mustAnswerTheSame(t, l, want)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return same
}

// TestWritingIntoDamage changes bytes and then writes: the ledger takes the
// entry and is sound afterwards, or says that it is damaged.
func TestWritingIntoDamage(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.ledger")
	buildGood(t, good)
	b := mustReadFile(t, good)
	random := rand.New(rand.NewPCG(testSeed, 8))
	path := filepath.Join(t.TempDir(), "flipped.ledger")
	written := 0
	for range 300 {
		flipped := slices.Clone(b)
		at := random.IntN(len(b))
		flipped[at] ^= byte(1 << random.IntN(8))
		if err := os.WriteFile(path, flipped, 0o644); err != nil {
			t.Fatal(err)
		}
		damaged := len(mustCheckDamaged(t, path)) > 0
		ok := writeInto(t, path)
		if ok {
			written++
		}
		if found := mustCheckDamaged(t, path); len(found) > 0 && !damaged {
			t.Fatalf("byte %d: a sound file is damaged by writing: %v", at, found)
		}
		if t.Failed() {
			t.Fatalf("byte %d, page %d, %d of it", at, at/fileBlock, at%fileBlock)
		}
	}
	t.Logf("seed %d: %d files could be written to", testSeed, written)
}

// writeInto appends to every open pair of a file, commits, and reports whether
// that went well.
func writeInto(t *testing.T, path string) bool {
	t.Helper()
	l, err := Open(path, Options{Now: newClock()})
	if err == nil {
		defer func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
		for _, p := range l.Pairs() {
			if p.Closed == nil {
				mustAppend(t, l, p.ID, copiedEntry(l.End(p.ID), 3))
			}
		}
		err = l.Commit()
	}
	var damage *CorruptError
	if err != nil && !errors.As(err, &damage) {
		t.Errorf("%v, want a CorruptError", err)
	}
	return err == nil
}

// TestMissingPageIsSeen: where a page in the middle is gone, nobody is told that
// its offsets are in no entry, or in another one.
func TestMissingPageIsSeen(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.ledger")
	buildGood(t, good)
	l, err := Open(good, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	want := answers(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"missing-page", "index-missing", "hole-in-page"} {
		i := slices.IndexFunc(sabotages(), func(s sabotage) bool { return s.name == name })
		path := copyOf(t, good)
		sabotages()[i].spoil(t, path)
		if openDamaged(t, path, Options{ReadOnly: true}, want) {
			t.Errorf("%s: all answers are the same as before", name)
		}
	}
}

// TestOverlapEndsTheList: entries are listed as long as each starts where the
// one before it ends.
func TestOverlapEndsTheList(t *testing.T) {
	path := copyOf(t, filepath.Join(fixtures, "overlap.ledger"))
	l, err := Open(path, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var at place
	for e, err := range l.Entries(2, 0) {
		var damage *CorruptError
		if errors.As(err, &damage) && damage.Law == lawTiling {
			return
		}
		if err != nil || e.start() != at {
			t.Fatalf("at %+v: %+v, %v", at, e, err)
		}
		at = e.end()
	}
	t.Errorf("the list ends at %+v without an error", at)
}

// TestShortFiles cuts a ledger at every page, and in the middle of some.
func TestShortFiles(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.ledger")
	buildGood(t, good)
	b := mustReadFile(t, good)
	path := filepath.Join(t.TempDir(), "short.ledger")
	for _, size := range []int{0, 1, 15, 79, 80, 1024, fileBlock, fileBlock + 79, 2 * fileBlock, 5*fileBlock + 1, len(b) - fileBlock, len(b) - 1} {
		if err := os.WriteFile(path, b[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{{}, {ReadOnly: true}} {
			var damage *CorruptError
			if l, err := Open(path, o); !errors.As(err, &damage) || damage.Law != lawMeta {
				t.Errorf("%d bytes: %v, %v", size, l, err)
			}
		}
		if got := mustReadFile(t, path); !slices.Equal(got, b[:size]) {
			t.Errorf("a file of %d bytes was written to", size)
		}
	}
}

// TestMetaPages: values of meta pages that have their checksums.
func TestMetaPages(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.ledger")
	buildGood(t, good)
	b := mustReadFile(t, good)
	path := filepath.Join(t.TempDir(), "meta.ledger")
	tests := map[string]func(page []byte){
		"another page":        func(p []byte) { p[0] ^= 2 },
		"another type":        func(p []byte) { p[8] = pageLeaf },
		"another magic":       func(p []byte) { setMeta(p, func(m []byte) { m[0]++ }) },
		"a newer bbolt":       func(p []byte) { setMeta(p, func(m []byte) { m[4]++ }) },
		"no page size":        func(p []byte) { setMeta(p, func(m []byte) { clear(m[8:12]) }) },
		"an odd page size":    func(p []byte) { setMeta(p, func(m []byte) { m[8]++ }) },
		"half a page":         func(p []byte) { setMeta(p, func(m []byte) { m[9] >>= 1 }) },
		"more pages":          func(p []byte) { setMeta(p, func(m []byte) { putNative64(m[40:], uint64(len(b)/fileBlock)+1) }) },
		"no pages":            func(p []byte) { setMeta(p, func(m []byte) { putNative64(m[40:], 0) }) },
		"a root outside":      func(p []byte) { setMeta(p, func(m []byte) { putNative64(m[16:], 1<<40) }) },
		"a root on a meta":    func(p []byte) { setMeta(p, func(m []byte) { putNative64(m[16:], 1) }) },
		"a freelist outside":  func(p []byte) { setMeta(p, func(m []byte) { putNative64(m[32:], 1<<40) }) },
		"no freelist":         func(p []byte) { setMeta(p, func(m []byte) { putNative64(m[32:], 1<<64-1) }) },
		"no checksum":         func(p []byte) { putNative64(p[fileHeader+metaSummed:], 0) },
		"another transaction": func(p []byte) { p[fileHeader+48]++ },
	}
	for name, spoil := range tests {
		for page := range 2 {
			spoiled := slices.Clone(b)
			spoil(spoiled[page*fileBlock:])
			if err := os.WriteFile(path, spoiled, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, o := range []Options{{}, {ReadOnly: true}} {
				var damage *CorruptError
				if l, err := Open(path, o); !errors.As(err, &damage) || damage.Law != lawMeta {
					t.Errorf("%s on meta page %d: %v, %v", name, page, l, err)
				}
			}
		}
	}
}

// TestFutureFormat: a file of another format is refused, and nothing else is
// looked at.
func TestFutureFormat(t *testing.T) {
	path := copyOf(t, filepath.Join(fixtures, "future-format.ledger"))
	for _, open := range []func() error{
		func() error { _, err := Open(path, Options{}); return err },
		func() error { _, err := Open(path, Options{ReadOnly: true}); return err },
		func() error { _, err := OpenCopy(path, Options{}); return err },
		func() error { return CheckFile(t.Context(), path, Options{}, func(v Violation) { t.Error(v) }) },
	} {
		var newer *FormatError
		if err := open(); !errors.As(err, &newer) || *newer != (FormatError{Path: path, Got: format + 1, Known: format}) {
			t.Errorf("%v, want a FormatError", err)
		}
	}
}

// TestCircles makes branches of a larger ledger point back, which bbolt's own
// cursor follows until the stack is full.
func TestCircles(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	for range 10 {
		mustAppendMany(t, l, id, 1000)
		mustCommit(t, l)
	}
	path := filepath.Join(t.TempDir(), "circle.ledger")
	if _, err := l.Snapshot(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	b := mustReadFile(t, path)
	circles := 0
	for page := 2; page < len(b)/fileBlock; page++ {
		n, err := parseNode(uint64(page), b[page*fileBlock:(page+1)*fileBlock])
		if err != nil || n.leaf || n.count < 2 {
			continue
		}
		for child := range n.count {
			spoiled := slices.Clone(b)
			putNative64(spoiled[page*fileBlock+fileHeader+child*elementHeader+8:], uint64(page))
			if err := os.WriteFile(path, spoiled, 0o644); err != nil {
				t.Fatal(err)
			}
			if mustSurviveCircle(t, path, id) {
				circles++
			}
		}
	}
	if circles < 3 {
		t.Fatalf("%d circles in branches that are in use, want some", circles)
	}
}

// mustSurviveCircle opens a file in every way, and reports whether it is
// refused for writing: not if the branch was a free page.
func mustSurviveCircle(t *testing.T, path string, id PairID) (refused bool) {
	t.Helper()
	var damage *CorruptError
	if l, err := Open(path, Options{}); err == nil {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	} else if refused = errors.As(err, &damage); !refused {
		t.Fatal(err)
	}
	if l, err := Open(path, Options{ReadOnly: true}); err == nil {
		for offset := int64(0); offset < l.Committed(id).Source; offset += 97 {
			if e, err := l.FindSource(id, offset); err == nil && !e.Source.Contains(offset) || err != nil && !errors.As(err, &damage) {
				t.Fatalf("FindSource(%d) = %v, %v", offset, e, err)
			}
		}
		_ = listed(l.Entries(id, 0))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	} else if !errors.As(err, &damage) {
		t.Fatal(err)
	}
	if found := mustCheckDamaged(t, path); len(found) > 0 != refused {
		t.Fatalf("refused for writing: %t, found by the check: %v", refused, found)
	}
	return refused
}
