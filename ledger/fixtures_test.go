package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixtures is where the small ledgers lie: good.ledger, one for each sabotage,
// and the verdicts on all of them. Below it are those of earlier formats, which
// cannot be made any more and are never written anew.
const (
	fixtures = "../testdata/ledgers"
	verdicts = "verdicts.txt"
)

// verdict returns what the check says of a file, one finding a line.
func verdict(t *testing.T, path string) string {
	t.Helper()
	var lines []string
	err := CheckFile(t.Context(), path, Options{}, func(v Violation) { lines = append(lines, v.String()) })
	if err != nil {
		lines = append(lines, strings.ReplaceAll(err.Error(), path, filepath.Base(path)))
	}
	slices.Sort(lines)
	if len(lines) == 0 {
		return "keeps all laws\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestSabotage: each law that a file can break is broken in one way, and the
// check names it, where it is broken.
func TestSabotage(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.ledger")
	buildGood(t, good)
	if got := verdict(t, good); got != "keeps all laws\n" {
		t.Fatalf("the good ledger: %s", got)
	}
	for _, s := range sabotages() {
		t.Run(s.name, func(t *testing.T) {
			path := copyOf(t, good)
			s.spoil(t, path)
			spoiled := mustReadFile(t, path)
			var found []Violation
			if err := CheckFile(t.Context(), path, Options{}, func(v Violation) { found = append(found, v) }); err != nil {
				t.Fatal(err)
			}
			named := slices.ContainsFunc(found, func(v Violation) bool { return v.Law == s.law && v.Bucket == s.bucket })
			if !named || slices.ContainsFunc(found, func(v Violation) bool { return v.Key == "" || v.Detail == "" }) {
				t.Errorf("check says %v, want law %s in %q", found, s.law, s.bucket)
			}
			mustRefuse(t, path, found)
			if !slices.Equal(spoiled, mustReadFile(t, path)) {
				t.Error("the damaged file was changed")
			}
		})
	}
}

// mustRefuse opens a damaged ledger in every way: it is refused, or its own
// check finds the same.
func mustRefuse(t *testing.T, path string, want []Violation) {
	t.Helper()
	for _, o := range []Options{{}, {ReadOnly: true}} {
		l, err := Open(path, o)
		var damage *CorruptError
		if errors.As(err, &damage) && damage.Path == path && damage.Law != "" {
			continue
		}
		if err != nil {
			t.Errorf("open: %v, want a CorruptError", err)
			continue
		}
		var got []Violation
		if err := l.Check(t.Context(), func(v Violation) { got = append(got, v) }); err != nil {
			t.Error(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("check of the open ledger says %v, want %v", got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if l, err := OpenCopy(path, Options{}); err == nil {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOpenMissesValues: a value that is gone leaves no trace where it was; yet a
// ledger without it is not opened, for then its books would seem to be shorter.
func TestOpenMissesValues(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.ledger")
	buildGood(t, good)
	want := map[string]string{
		"missing-pair": lawPair, "missing-state": lawKeys, "missing-journal": lawKeys, "missing-last-page": lawTiling,
		"missing-key": lawKeys, "missing-bucket": lawBuckets, "state-end": lawTiling, "journal-hole": lawJournal,
		"journal-not-folded": lawJournal, "topic-lost": lawKeys, "order-lost": lawKeys, "stop-lost": lawKeys, "books-lost": lawKeys,
		"accepted-lost": lawKeys, "doubt-lost": lawKeys, "doubt-beyond": lawDoubts, "format-2-of-marks": lawEncoding,
		"group-lost": lawKeys, "group-of-nothing": lawGroups, "format-4-without-groups": lawBuckets,
		"topic-moved": lawChecksum, "skip-without-reason": lawOrders, "format-2-without-books": lawBuckets,
	}
	for _, s := range sabotages() {
		if want[s.name] == "" {
			continue
		}
		path := copyOf(t, good)
		s.spoil(t, path)
		for _, o := range []Options{{}, {ReadOnly: true}} {
			var damage *CorruptError
			if l, err := Open(path, o); !errors.As(err, &damage) || damage.Law != want[s.name] && damage.Law != lawKeys {
				t.Errorf("%s: %v, %v, want law %s", s.name, l, err, want[s.name])
			}
		}
		delete(want, s.name)
	}
	if len(want) > 0 {
		t.Errorf("there are no sabotages %v", want)
	}
}

func copyOf(t testing.TB, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.ledger")
	if err := os.WriteFile(to, mustReadFile(t, path), 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestSabotageOfEveryLaw: no law that a file can break is left out.
func TestSabotageOfEveryLaw(t *testing.T) {
	broken := make(map[string]bool)
	for _, s := range sabotages() {
		broken[s.law] = true
	}
	for _, law := range []string{
		lawMeta, lawStructure, lawBuckets, lawKeys, lawChecksum, lawEncoding, lawTile, lawDigest, lawAttributes, lawPair, lawTiling,
		lawBeforeStart, lawTotals, lawIndex, lawJournal, lawOpening, lawGeneration, lawClosing, lawProducers, lawState,
		lawTopics, lawMade, lawOrders, lawStops, lawCut, lawAccepted, lawDoubts, lawGroups,
	} {
		if !broken[law] {
			t.Errorf("nothing breaks law %s", law)
		}
	}
}

// TestFixtures: files that an earlier version wrote still read the same, and
// the check says the same of them and of those that are made now. With
// UPDATE_GOLDEN set it writes them anew.
func TestFixtures(t *testing.T) {
	fresh := makeFixtures(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		updateFixtures(t, fresh)
	}
	want := string(mustReadFile(t, filepath.Join(fixtures, verdicts)))
	for name, directory := range map[string]string{"made before": fixtures, "made now": fresh} {
		if got := verdictsOn(t, directory); got != want {
			t.Errorf("verdicts on the ledgers %s:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

func makeFixtures(t *testing.T) (directory string) {
	t.Helper()
	directory = t.TempDir()
	good := filepath.Join(directory, "good.ledger")
	buildGood(t, good)
	b := mustReadFile(t, good)
	for _, s := range fixtureSabotages() {
		path := filepath.Join(directory, s.name+".ledger")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		s.spoil(t, path)
	}
	return directory
}

// fixtureSabotages returns those that are kept as files: one of a kind.
func fixtureSabotages() []sabotage {
	kept := []string{
		"empty", "meta-1", "free-and-used", "flipped-byte", "unknown-flag", "moved-value", "missing-page", "overlap", "totals",
		"index-missing", "journal-hole", "opened-twice", "closed-elsewhere",
		"topic-nameless", "topic-lost", "made-unsorted", "made-lost", "skip-without-reason", "order-of-nothing", "order-lost", "stop-without-reason", "stop-lost",
		"half-format-1",
		"cut-elsewhere", "cut-successor", "accepted-copied", "accepted-overlap", "doubt-beyond", "format-2-of-marks",
		"group-lost", "group-of-nothing", "group-unsorted",
	}
	chosen := slices.DeleteFunc(sabotages(), func(s sabotage) bool { return !slices.Contains(kept, s.name) })
	return append(chosen, edited("future-format", "", "", func(e *editor) {
		e.seal(bucketMeta, []byte(metaFormat), []byte{0, format + 1})
	}))
}

func verdictsOn(t *testing.T, directory string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(directory, "*.ledger"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&all, "== %s\n%s", filepath.Base(path), verdict(t, path))
	}
	return all.String()
}

func updateFixtures(t *testing.T, fresh string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(fixtures, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(fixtures, os.DirFS(fresh)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(fixtures, verdicts), []byte(verdictsOn(t, fixtures)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGoodFixture: what the good ledger holds, written down by hand.
func TestGoodFixture(t *testing.T) {
	l, err := OpenCopy(filepath.Join(fixtures, "good.ledger"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if s := l.Scope(); !slices.Equal(s.Topics, []string{"orders", "pay", "audit"}) || !slices.Equal(s.TopicsExclude, []string{"audit-.*"}) {
		t.Errorf("scope = %+v", s)
	}
	ends := map[PairID]Position{1: {30, 25, 20}, 2: {663, 603, 603}, 3: {24, 11, 7}, 4: {3, 3, 3}, 5: {5, 30, 5},
		6: {24, 13, 13}, 7: {19, 13, 0}}
	var order []PairID
	for _, p := range l.Pairs() {
		order = append(order, p.ID)
		if got := l.Committed(p.ID); got != ends[p.ID] {
			t.Errorf("pair %d ends at %+v, want %+v", p.ID, got, ends[p.ID])
		}
	}
	if want := []PairID{4, 6, 7, 1, 5, 2, 3}; !slices.Equal(order, want) {
		t.Errorf("pairs in order %v, want %v", order, want)
	}
	if p, _ := l.Pair(1); p.Closed == nil || p.Closed.Reason != "recreated" || p.Generation != 1 {
		t.Errorf("pair 1 = %+v", p)
	}
	if p, _ := l.Pair(5); p.Closed != nil || p.Generation != 2 || p.SourceTopicID != (TopicID{3}) {
		t.Errorf("pair 5 = %+v", p)
	}
	// Of the nine that are lost two are accepted below the cut, and four are beyond it.
	want := "[10, 12) expired ada 1800000000000; [18, 22) known  1800000000000; unaccepted 3; " +
		"doubt stale_keys_possible [2, 5) 1800000000000; doubt stale_keys_possible [18, 20) 1800000000000; left [2, 5)"
	if got := marksOf(l, 6); got != want {
		t.Errorf("pair 6: %s, want %s", got, want)
	}
	if p, _ := l.Pair(6); p.Closed == nil || p.Closed.Cut == nil || *p.Closed.Cut != (Cut{19, 13}) {
		t.Errorf("pair 6 = %+v", p)
	}
	if l.State(6).CaughtUpMillis != startMillis-5 || l.State(7).CaughtUpMillis != startMillis || l.State(2).CaughtUpMillis != -1 {
		t.Errorf("states %+v, %+v, %+v", l.State(6), l.State(7), l.State(2))
	}
	mustHaveGroups(t, l, goodGroups())
	// Five entries of pair 2 are ten records and a marker behind the second:
	// 401 is the sixth offset of the 37th five, and the fifth record.
	if e, err := l.FindSource(2, 401); err != nil || e.TargetOf(401) != 364 {
		t.Errorf("source offset 401 of pair 2 is in %+v, %v", e, err)
	}
}
