package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/bbolt"
)

// copyOfFormat returns a copy of the good ledger of a format, as the version
// that introduced it wrote it.
func copyOfFormat(t testing.TB, number int) string {
	t.Helper()
	return copyOf(t, filepath.Join(fixtures, "formats", fmt.Sprintf("%d.ledger", number)))
}

// TestFormats: a file of each format is sound, answers the same, and takes new
// entries; only what its format has no room for makes it one of the current
// format.
func TestFormats(t *testing.T) {
	flows := map[int]string{
		1: formatRecord([]SeenTopic{}, []madeTopic(nil), []Order(nil), []Stop{}),
		2: formatRecord(goodTopics(), goodMade(), goodOrders(), goodStops()),
		3: formatRecord(goodTopics(), goodMade(), goodOrders(), goodStops()),
		4: formatRecord(goodTopics(), goodMade(), goodOrders(), goodStops()),
	}
	for number := oldestFormat; number <= format; number++ {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			ends := map[PairID]Position{1: {30, 25, 20}, 2: {663, 603, 603}, 3: {24, 11, 7}, 4: {3, 3, 3}, 5: {5, 30, 5}}
			wrote := number
			path := copyOfFormat(t, wrote)
			mustCheckFile(t, path)
			l := mustOpen(t, path)
			mustBe(t, l, number, ends, flows[number])
			for _, id := range []PairID{2, 3, 4, 5} {
				mustAppend(t, l, id, copiedEntry(l.End(id), 4))
				end := ends[id]
				ends[id] = Position{end.Source + 4, end.Target + 4, end.Appended + 4}
			}
			mustCommit(t, l)
			l = reopen(t, l)
			mustBe(t, l, number, ends, flows[number])
			mustSee(t, l, SeenTopic{Name: "new", ID: TopicID{77}, SeenMillis: 5})
			mustOrder(t, l, Order{SourceTopic: "orders", Partition: 1, AtMillis: 5})
			after := flowOf(t, l)
			if after == flows[number] || !l.TopicSeen("new", TopicID{77}) {
				t.Errorf("beside the pairs: %s", after)
			}
			l = reopen(t, l)
			if number < formatFlow {
				number = format
			}
			mustBe(t, l, number, ends, after)
			mustDoubt(t, l, 3, Range{4, 6}, 7)
			mustCommit(t, l)
			l = reopen(t, l)
			if number < formatMarks {
				number = format
			}
			mustBe(t, l, number, ends, after)
			if got := l.Doubts(3); len(got) != 1 || got[0].Range != (Range{4, 6}) {
				t.Errorf("doubts %v", got)
			}
			mustHaveGroups(t, l, map[int]map[string][]GroupCommit{4: goodGroups()}[wrote])
			mustKeep(t, l, map[string][]GroupCommit{"new": {{Topic: "t", Offset: 1}}})
			l = reopen(t, l)
			mustBe(t, l, format, ends, after)
			if got := l.GroupCommits("new"); len(got) != 1 || got[0].Offset != 1 {
				t.Errorf("committed for the group: %v", got)
			}
		})
	}
}

// mustBe compares a ledger of a format with what the good ledger holds.
func mustBe(t *testing.T, l *Ledger, number int, ends map[PairID]Position, flow string) {
	t.Helper()
	if got := l.Identity().Format; got != number {
		t.Errorf("format %d, want %d", got, number)
	}
	if got := formatOf(t, mustReadFile(t, l.path)); got != number {
		t.Errorf("the file says format %d, want %d", got, number)
	}
	for id, want := range ends {
		if got := l.Committed(id); got != want {
			t.Errorf("pair %d ends at %+v, want %+v", id, got, want)
		}
	}
	if e, err := l.FindSource(2, 401); err != nil || e.TargetOf(401) != 364 {
		t.Errorf("source offset 401 of pair 2 is in %+v, %v", e, err)
	}
	if got := flowOf(t, l); got != flow {
		t.Errorf("beside the pairs: %s, want %s", got, flow)
	}
}

// formatOf returns the format number of a ledger file as every version reads
// it: with bbolt alone, from the value that stays as it is in every format.
func formatOf(t *testing.T, file []byte) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var value []byte
	err = db.View(func(tx *bbolt.Tx) error {
		value = slices.Clone(tx.Bucket([]byte("meta")).Get([]byte("format")))
		return nil
	})
	if err != nil || len(value) != 10 {
		t.Fatalf("the format is %x, %v", value, err)
	}
	summed := append([]byte("\x04\x06metaformat"), value[8:]...)
	if got := binary.BigEndian.Uint64(value); got != xxhash.Sum64(summed) {
		t.Fatalf("the format has checksum %x, want %x", got, xxhash.Sum64(summed))
	}
	return int(value[8])<<8 | int(value[9])
}

// TestFormatRule: a version reads the formats up to its own, and no other. The
// first version's own was 1, so that it refuses what this one writes.
func TestFormatRule(t *testing.T) {
	for number, known := range map[int]bool{0: false, 1: true, 2: true, 3: true, 4: true, 5: false, 255: false, 256: false, 513: false, 65535: false} {
		path := copyOfFormat(t, 2)
		if number >= formatMarks && known {
			path = copyOfFormat(t, number)
		}
		edited("", "", "", func(e *editor) {
			e.seal(bucketMeta, []byte(metaFormat), binary.BigEndian.AppendUint16(nil, uint16(number)))
			if number != 1 {
				return
			}
			for _, name := range flowBuckets() {
				if err := e.tx.DeleteBucket([]byte(name)); err != nil {
					t.Fatal(err)
				}
			}
			e.remove(bucketMeta, []byte(metaBooks))
		}).spoil(t, path)
		for _, o := range []Options{{}, {ReadOnly: true}} {
			l, err := Open(path, o)
			if err == nil {
				err = l.Close()
			}
			var unknown *FormatError
			if known && err != nil || !known && (!errors.As(err, &unknown) || unknown.Got != number) {
				t.Errorf("format %d: %v", number, err)
			}
		}
	}
	if number := formatOf(t, mustReadFile(t, mustCreate(t).path)); number == 1 {
		t.Error("a new ledger would be read by versions that do not know what people ordered")
	}
}

// TestFormatBeforeStructure: what a later format makes of its pages is not
// called damage.
func TestFormatBeforeStructure(t *testing.T) {
	path := copyOf(t, filepath.Join(fixtures, "future-format.ledger"))
	patched("", "", "", freeTwice).spoil(t, path)
	for _, o := range []Options{{}, {ReadOnly: true}} {
		var unknown *FormatError
		if _, err := Open(path, o); !errors.As(err, &unknown) {
			t.Errorf("%v, want a FormatError", err)
		}
	}
}

// TestUpgradeIsWhole: a transaction that fails leaves a file of the format that
// it had; the next one takes it on.
func TestUpgradeIsWhole(t *testing.T) {
	l := mustOpen(t, copyOfFormat(t, 1))
	before := mustReadFile(t, l.path)
	mustStop(t, l, Stop{SourceTopic: "t", Reason: "r"})
	l.db.MaxSize = 1
	if err := l.SeeTopics(manyTopics(20_000)); err == nil {
		t.Fatal("a commit succeeds on a full disk")
	}
	if got := l.Identity().Format; got != 1 || !slices.Equal(before, mustReadFile(t, l.path)) {
		t.Errorf("a failed commit left format %d", got)
	}
	if l.TopicSeen("", manyTopics(1)[0].ID) || len(l.Stops()) != 1 {
		t.Error("a topic is known that no file holds, or a stop forgotten")
	}
	l.db.MaxSize = 0
	mustCommit(t, l)
	if got := crashed(t, l); got.Identity().Format != format || len(got.Stops()) != 1 {
		t.Errorf("format %d, stops %v", got.Identity().Format, got.Stops())
	}
}

// TestEachMarkUpgrades: whichever is written first makes a file of an earlier
// format one of the current one.
func TestEachMarkUpgrades(t *testing.T) {
	lost := func(l *Ledger) {
		mustAppend(t, l, 3, sourceEntry(Lost, l.End(3), 2))
		mustCommit(t, l)
	}
	for name, write := range map[string]func(*Ledger){
		"acceptance": func(l *Ledger) { mustAccept(t, l, 3, Range{24, 26}, "known") },
		"doubt":      func(l *Ledger) { mustDoubt(t, l, 3, Range{24, 26}, 5); mustCommit(t, l) },
		"cut": func(l *Ledger) {
			if err := l.ClosePair(4, Closing{Cut: &Cut{2, 2}}); err != nil {
				t.Fatal(err)
			}
		},
		"caught up": func(l *Ledger) {
			mustSetState(t, l, 3, State{SeenMillis: 9, CaughtUpMillis: 9})
			mustCommit(t, l)
		},
	} {
		for number := oldestFormat; number < formatMarks; number++ {
			l := mustOpen(t, copyOfFormat(t, number))
			lost(l)
			want := marksOf(l, 3)
			if got := formatOf(t, mustReadFile(t, l.path)); got != number || l.Acceptances(3) != nil && len(l.Acceptances(3)) > 0 {
				t.Errorf("%s: format %d before anything was written", name, got)
			}
			write(l)
			if got := formatOf(t, mustReadFile(t, l.path)); got != format || l.Identity().Format != format {
				t.Errorf("%s: format %d in the file, %d by the ledger", name, got, l.Identity().Format)
			}
			if again := crashed(t, l); marksOf(again, 3) != marksOf(l, 3) || (name == "doubt" || name == "acceptance") == (marksOf(l, 3) == want) {
				t.Errorf("%s: %s, after a crash %s", name, marksOf(l, 3), marksOf(again, 3))
			}
		}
	}
}

// TestEachBookUpgrades: whichever is written first.
func TestEachBookUpgrades(t *testing.T) {
	for name, write := range map[string]func(*Ledger){
		"topic": func(l *Ledger) { mustSee(t, l, SeenTopic{Name: "x"}) },
		"made":  func(l *Ledger) { mustMake(t, l, madeTopic{name: "x"}) },
		"order": func(l *Ledger) { mustOrder(t, l, Order{SourceTopic: "x", Paused: true}) },
		"stop":  func(l *Ledger) { mustStop(t, l, Stop{SourceTopic: "x", Reason: "r"}); mustCommit(t, l) },
	} {
		l := mustOpen(t, copyOfFormat(t, 1))
		// Nothing to say: the file stays as it is.
		mustSee(t, l)
		mustOrder(t, l, Order{SourceTopic: "x"})
		mustStop(t, l, Stop{SourceTopic: "y", Reason: "r"})
		mustClear(t, l, "y", 0)
		mustCommit(t, l)
		if got := formatOf(t, mustReadFile(t, l.path)); got != 1 {
			t.Errorf("%s: format %d before anything was written", name, got)
		}
		write(l)
		if got := formatOf(t, mustReadFile(t, l.path)); got != format || l.Identity().Format != format {
			t.Errorf("%s: format %d in the file, %d by the ledger", name, got, l.Identity().Format)
		}
		// The next one finds the books there.
		mustSee(t, l, SeenTopic{Name: "another"})
		mustOrder(t, l, Order{SourceTopic: "another", Paused: true})
		if again := crashed(t, l); !again.TopicSeen("another", TopicID{}) || len(again.Orders()) == 0 {
			t.Errorf("%s: a second write is not in the file", name)
		}
	}
}
