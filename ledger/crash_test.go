//go:build unix

package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// childVariable names the part that this test binary plays when a test runs it
// as another process, with the path of a file behind a colon.
const childVariable = "APOGRAPH_LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	role, path, ok := strings.Cut(os.Getenv(childVariable), ":")
	if !ok {
		os.Exit(m.Run())
	}
	children := map[string]func(string) error{
		"write": childWrite, "create": childCreate, "hold": childHold, "limit": childLimit,
	}
	if err := children[role](path); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// startChild runs this test binary in a role. The process is killed at the end
// of the test if it still lives.
func startChild(t *testing.T, role, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), childVariable+"="+role+":"+path)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c, bufio.NewScanner(out)
}

// childWrite opens a ledger, goes on where it ends, and prints each end that it
// has committed, until somebody kills it.
func childWrite(path string) error {
	l, err := Open(path, Options{})
	if err != nil {
		return err
	}
	l.writer.minimum = 2
	for {
		for _, p := range l.Pairs() {
			for range 1 + l.End(p.ID).Source%3 {
				e := childEntry(l.End(p.ID))
				if err := l.Append(p.ID, e); err != nil {
					return err
				}
			}
		}
		if err := l.Commit(); err != nil {
			return err
		}
		for _, p := range l.Pairs() {
			fmt.Println(p.ID, l.Committed(p.ID).Source)
		}
	}
}

// TestKilledWriter kills a process that writes, again and again: what it
// reported as committed is there, all else is there whole or not at all.
func TestKilledWriter(t *testing.T) {
	l := mustCreate(t)
	pairs := make([]Pair, 10)
	for i := range pairs {
		pairs[i] = Pair{SourceTopic: "orders", TargetTopic: "orders", Partition: int32(i)}
	}
	if _, err := l.OpenPairs(pairs); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(testSeed, 4))
	reported := make(map[PairID]int64)
	for range 20 {
		c, out := startChild(t, "write", l.path)
		for range 1 + random.IntN(300) {
			if !out.Scan() {
				t.Fatalf("the child ended by itself: %v", out.Err())
			}
			noteReport(t, out.Text(), reported)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() { // what it got out before it died
			noteReport(t, out.Text(), reported)
		}
		_ = c.Wait()
		compareWithChild(t, l.path, reported)
	}
}

func noteReport(t *testing.T, line string, reported map[PairID]int64) {
	t.Helper()
	pair, end, ok := strings.Cut(line, " ")
	id, err := strconv.Atoi(pair)
	source, err2 := strconv.ParseInt(end, 10, 64)
	if !ok || errors.Join(err, err2) != nil {
		return // the last line may be cut short
	}
	reported[PairID(id)] = max(reported[PairID(id)], source)
}

func compareWithChild(t *testing.T, path string, reported map[PairID]int64) {
	t.Helper()
	l := mustOpen(t, path)
	for _, p := range l.Pairs() {
		end := l.Committed(p.ID)
		if end.Source < reported[p.ID] {
			t.Fatalf("pair %d: the books end at %d, %d was reported as committed", p.ID, end.Source, reported[p.ID])
		}
		var at Position
		for at.Source < end.Source {
			want := childEntry(at)
			got, err := l.FindSource(p.ID, at.Source)
			if err != nil || got.Tile != want.Tile || !got.Source.Contains(want.Source.End-1) || got.TargetOf(at.Source) != at.Target {
				t.Fatalf("pair %d: at %+v there is %+v, %v", p.ID, at, got, err)
			}
			at = advance(at, &want)
		}
		if at != end {
			t.Fatalf("pair %d: the books end at %+v, in the middle of an entry", p.ID, end)
		}
	}
	for _, v := range violations(t, l) {
		t.Fatal(v)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// childCreate makes ledgers and removes them, until somebody kills it.
func childCreate(path string) error {
	for {
		l, err := Create(path, testIdentity(), Options{})
		if err != nil {
			return err
		}
		fmt.Println("created")
		if err := errors.Join(l.Close(), os.Remove(path)); err != nil {
			return err
		}
	}
}

// TestKilledCreator kills a process that makes ledgers: there is a whole one,
// or none.
func TestKilledCreator(t *testing.T) {
	random := rand.New(rand.NewPCG(testSeed, 5))
	for i := range 20 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.ledger", i))
		c, out := startChild(t, "create", path)
		for range 1 + random.IntN(10) {
			if !out.Scan() {
				t.Fatalf("the child ended by itself: %v", out.Err())
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			mustCheckFile(t, path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		l, err := Create(path, testIdentity(), Options{})
		if err != nil {
			t.Fatalf("after a creator was killed: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPowerCut keeps any part of the pages that a commit wrote before its meta
// page: with the old meta page the file says what it said before; with all
// pages and the new one, what was committed.
func TestPowerCut(t *testing.T) {
	l := mustCreate(t)
	l.writer.minimum = 1
	pairs := make([]Pair, 5)
	for i := range pairs {
		pairs[i] = Pair{SourceTopic: "orders", TargetTopic: "orders", Partition: int32(i)}
	}
	ids, err := l.OpenPairs(pairs)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(testSeed, 6))
	for range 40 {
		before, ends := mustReadFile(t, l.path), endsOf(l)
		for range 1 + random.IntN(30) {
			id := ids[random.IntN(len(ids))]
			mustAppend(t, l, id, childEntry(l.End(id)))
		}
		mustCommit(t, l)
		after := mustReadFile(t, l.path)
		for range 4 {
			mustEndAt(t, cutPower(random, before, after), ends)
		}
		mustEndAt(t, after, endsOf(l))
	}
}

func endsOf(l *Ledger) (ends []Position) {
	for _, p := range l.Pairs() {
		ends = append(ends, l.Committed(p.ID))
	}
	return ends
}

// cutPower returns before with some of the pages of after, but no meta page,
// as a disk may have written them when the power failed.
func cutPower(random *rand.Rand, before, after []byte) []byte {
	mixed := append(bytes.Clone(before), make([]byte, max(len(after)-len(before), 0))...)
	for page := 2 * fileBlock; page+fileBlock <= len(after); page += fileBlock {
		if random.IntN(2) == 0 {
			copy(mixed[page:], after[page:page+fileBlock])
		}
	}
	return mixed
}

func mustEndAt(t *testing.T, file []byte, want []Position) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cut.ledger")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	l := mustOpen(t, path)
	if got := endsOf(l); !slices.Equal(got, want) {
		t.Fatalf("after a power cut the books end at %+v, want %+v", got, want)
	}
	for _, p := range l.Pairs() {
		mustCollect(t, l.Entries(p.ID, 0))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
