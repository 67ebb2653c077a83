package ledger

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMigrate: the new file is the same ledger in the current format, whatever
// format the old one has, and takes everything that a ledger takes.
func TestMigrate(t *testing.T) {
	for number := oldestFormat; number <= format; number++ {
		from := copyOfFormat(t, number)
		before := mustReadFile(t, from)
		to := filepath.Join(filepath.Dir(from), "new.ledger")
		m, err := Migrate(t.Context(), from, to, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.From != number || m.To != format || m.Values == 0 || m.Bytes == 0 {
			t.Errorf("%+v of format %d", m, number)
		}
		mustHold(t, filepath.Dir(from), "copy.ledger", "new.ledger")
		if !slices.Equal(before, mustReadFile(t, from)) {
			t.Error("the old file was changed")
		}
		old, l := mustOpen(t, from), mustOpen(t, to)
		want := answers(old)
		identity := old.Identity()
		identity.Format = format
		want["identity"] = identity
		if !mustAnswerTheSame(t, l, want) || l.last != old.last {
			t.Errorf("format %d: not all answers are the same", number)
		}
		if got := formatOf(t, mustReadFile(t, to)); got != format {
			t.Errorf("the new file says format %d", got)
		}
		mustSee(t, l, SeenTopic{Name: "new", ID: TopicID{77}})
		mustAppend(t, l, 3, copiedEntry(l.End(3), 4))
		mustCommit(t, l)
		if number == 1 {
			mustStayOfFormat1(t, old)
		}
	}
}

// mustStayOfFormat1: the old file can be gone on with.
func mustStayOfFormat1(t *testing.T, l *Ledger) {
	t.Helper()
	mustAppend(t, l, 3, copiedEntry(l.End(3), 4))
	mustCommit(t, l)
	if got := l.Identity().Format; got != 1 {
		t.Errorf("the old file has format %d", got)
	}
}

// TestMigrateMuch: what does not go into one transaction goes into several, and
// free pages stay behind.
func TestMigrateMuch(t *testing.T) {
	l := mustCreate(t)
	topics := manyTopics(60_000)
	mustSee(t, l, topics...)
	ids := []PairID{mustOpenPair(t, l, 0, 0)}
	for range 50 {
		mustAppendMany(t, l, ids[0], 300)
		mustCommit(t, l)
	}
	file, _, _ := l.Usage()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "new.ledger")
	m, err := Migrate(t.Context(), l.path, to, Options{})
	if err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, to)
	sortSeen(topics)
	if got := seenOf(t, again); !slices.Equal(got, topics) || again.Committed(ids[0]) != l.Committed(ids[0]) {
		t.Errorf("%d topics and books up to %+v, want %d and %+v", len(got), again.Committed(ids[0]), len(topics), l.Committed(ids[0]))
	}
	if m.Values < len(topics) || m.Bytes < migrateBytes || m.Bytes > file {
		t.Errorf("%d values, %d bytes of %d", m.Values, m.Bytes, file)
	}
	if commits := metaTransaction(t, to); commits < 3 {
		t.Errorf("%d transactions of %d bytes: all is in memory at once", commits, m.Bytes)
	}
}

// metaTransaction returns the number of the last transaction of a file.
func metaTransaction(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	metas, err := readMetas(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return newest(metas).txid
}

// TestMigrateRefuses: nothing is overwritten, nothing is made of damage, and
// nothing is left behind.
func TestMigrateRefuses(t *testing.T) {
	from := copyOfFormat(t, 1)
	directory := t.TempDir()
	to := filepath.Join(directory, "new.ledger")
	if err := os.WriteFile(to, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{to, from} {
		if _, err := Migrate(t.Context(), from, path, Options{}); !errors.Is(err, ErrExist) {
			t.Errorf("over a file: %v", err)
		}
	}
	if got := string(mustReadFile(t, to)); got != "something else" {
		t.Errorf("the file now holds %q", got)
	}
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	if _, err := Migrate(t.Context(), from+"x", to, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
	if _, err := Migrate(t.Context(), from, filepath.Join(to, "below"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("to no directory: %v", err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if _, err := Migrate(ended, from, to, Options{}); !errors.Is(err, why) {
		t.Errorf("interrupted: %v", err)
	}
	l := mustOpen(t, from)
	var locked *LockedError
	if _, err := Migrate(t.Context(), from, to, Options{LockTimeout: -1}); !errors.As(err, &locked) {
		t.Errorf("in use: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustHold(t, directory)
}

// TestMigrateOfDamage: whichever law a file breaks, no other file is made of it.
func TestMigrateOfDamage(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.ledger")
	buildGood(t, good)
	directory := t.TempDir()
	for _, s := range sabotages() {
		path := copyOf(t, good)
		s.spoil(t, path)
		var damage *CorruptError
		_, err := Migrate(t.Context(), path, filepath.Join(directory, "new.ledger"), Options{})
		if !errors.As(err, &damage) || !strings.HasPrefix(damage.Path, path) || damage.Law == "" {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	mustHold(t, directory)
	var unknown *FormatError
	future := copyOf(t, filepath.Join(fixtures, "future-format.ledger"))
	if _, err := Migrate(t.Context(), future, filepath.Join(directory, "new.ledger"), Options{}); !errors.As(err, &unknown) {
		t.Errorf("of a later format: %v", err)
	}
}
