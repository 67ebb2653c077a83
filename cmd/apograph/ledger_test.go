package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"apograph/ledger"
)

// mustRun runs a command line in this process and returns its exit code and
// what it wrote.
func mustRun(t *testing.T, argv ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"apograph"}, argv...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// mustHaveNoTemporaries gives the test a directory for temporary files, and
// fails it if anything is left there at its end.
func mustHaveNoTemporaries(t *testing.T) {
	t.Helper()
	directory := t.TempDir()
	t.Setenv("TMPDIR", directory)
	t.Cleanup(func() {
		if left, err := os.ReadDir(directory); err != nil || len(left) > 0 {
			t.Errorf("left behind among temporary files: %v (%v)", left, err)
		}
	})
}

// holds is a program that opens a ledger for writing, says so, and holds it
// until its standard input ends.
func holds() {
	l, err := ledger.Open(os.Args[1], ledger.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("held")
	os.Stdin.Read(make([]byte, 1))
	if err := l.Close(); err != nil {
		os.Exit(1)
	}
}

// TestHeldLedger: a ledger that another process writes is exit code 11 with the
// id of that process, soon, and nothing is left behind.
func TestHeldLedger(t *testing.T) {
	directory := t.TempDir()
	path := mustMakeLedger(t, filepath.Join(directory, "f.ledger"))
	holder := mustStart(t, "apograph-holds", path)
	holder.mustSay(t, "held")
	want := fmt.Sprintf("in use by process %d\n", holder.cmd.Process.Pid)
	t.Run("commands", func(t *testing.T) {
		for _, argv := range [][]string{
			{"inspect", path}, {"check", path, "-o", "json"}, {"export", path, "--book", "target"},
			{"snapshot", path, "-o", "-"}, {"snapshot", path, "-o", filepath.Join(directory, "s.ledger")},
			{"migrate", path, "-o", filepath.Join(directory, "m.ledger")},
		} {
			t.Run(argv[0], func(t *testing.T) {
				t.Parallel()
				started := time.Now()
				code, stdout, stderr := mustRun(t, append([]string{"ledger"}, argv...)...)
				if code != 11 || stdout != "" || !strings.Contains(stderr, want) {
					t.Errorf("%q: exit %d, stdout %q, stderr %q, want 11 and %q", argv, code, stdout, stderr, want)
				}
				if took := time.Since(started); took > 5*time.Second {
					t.Errorf("%q took %v, want at most 5 s", argv, took)
				}
			})
		}
	})
	if err := holder.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if code := holder.exitCode(); code != 0 {
		t.Fatalf("the holder exits with %d: %s", code, holder.stderr.String())
	}
	if files, err := os.ReadDir(directory); err != nil || len(files) != 1 {
		t.Errorf("the directory holds %v (%v), want the ledger alone", files, err)
	}
	if code, _, stderr := mustRun(t, "ledger", "check", path); code != 0 {
		t.Errorf("afterwards check exits with %d: %s", code, stderr)
	}
}

// TestLookingLeavesTheLedgerAlone: no command changes a byte, nor leaves a file.
func TestLookingLeavesTheLedgerAlone(t *testing.T) {
	mustHaveNoTemporaries(t)
	directory := t.TempDir()
	path := mustMakeLedger(t, filepath.Join(directory, "f.ledger"))
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	before := mustRead(t, path)
	for _, argv := range [][]string{
		{"inspect", path}, {"check", path}, {"export", path, "--book", "source"}, {"snapshot", path, "-o", "-"},
		{"migrate", path, "-o", filepath.Join(t.TempDir(), "m.ledger")},
	} {
		if code, _, stderr := mustRun(t, append([]string{"ledger"}, argv...)...); code != 0 {
			t.Errorf("%q: exit %d: %s", argv, code, stderr)
		}
	}
	if !bytes.Equal(mustRead(t, path), before) {
		t.Error("the ledger has changed")
	}
	if files, err := os.ReadDir(directory); err != nil || len(files) != 1 {
		t.Errorf("the directory holds %v (%v), want the ledger alone", files, err)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestSnapshotSum: the sum is that of the bytes which were written.
func TestSnapshotSum(t *testing.T) {
	mustHaveNoTemporaries(t)
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	code, stdout, stderr := mustRun(t, "ledger", "snapshot", path, "-o", "-")
	if want := fmt.Sprintf("%x  -\n", sha256.Sum256([]byte(stdout))); code != 0 || stderr != want {
		t.Errorf("to standard output: exit %d, stderr %q, want %q", code, stderr, want)
	}
	to := filepath.Join(t.TempDir(), "s.ledger")
	code, stdout, stderr = mustRun(t, "ledger", "snapshot", path, "-o", to)
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(mustRead(t, to)), to); code != 0 || stdout != "" || stderr != want {
		t.Errorf("to a file: exit %d, stdout %q, stderr %q, want %q", code, stdout, stderr, want)
	}
}

// TestSnapshotReplacesOlderSnapshotsOnly: nothing that holds more than the
// snapshot, or something else, is overwritten.
func TestSnapshotReplacesOlderSnapshotsOnly(t *testing.T) {
	directory := t.TempDir()
	path := mustMakeLedger(t, filepath.Join(directory, "f.ledger"))
	older := filepath.Join(directory, "older.ledger")
	if code, _, stderr := mustRun(t, "ledger", "snapshot", path, "-o", older); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	mustGoOn(t, path)
	other := filepath.Join(directory, "other.ledger")
	mustMakeEmpty(t, other)
	for to, want := range map[string]string{
		path:  `" is newer than "`,
		other: `" is a copy of another ledger, other`,
	} {
		before := mustRead(t, to)
		code, stdout, stderr := mustRun(t, "ledger", "snapshot", older, "-o", to)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("over %s: exit %d, stdout %q, stderr %q, want 2 and %q", to, code, stdout, stderr, want)
		}
		if !bytes.Equal(mustRead(t, to), before) {
			t.Errorf("%s was overwritten", to)
		}
	}
	if code, _, stderr := mustRun(t, "ledger", "snapshot", path, "-o", older); code != 0 {
		t.Errorf("over an older snapshot: exit %d: %s", code, stderr)
	}
	if _, stdout, _ := mustRun(t, "ledger", "inspect", older); !strings.Contains(stdout, "\nrecords      12\n") {
		t.Errorf("the snapshot was not replaced:\n%s", stdout)
	}
}

// mustGoOn adds a record to the ledger of makeLedger, a minute later.
func mustGoOn(t *testing.T, path string) {
	t.Helper()
	l, err := ledger.Open(path, ledger.Options{Now: func() time.Time { return fixtureTime().Add(time.Minute) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range l.Pairs() {
		if pair.SourceTopic != "audit" {
			continue
		}
		err := l.Append(pair.ID, ledger.Entry{
			Tile: ledger.Copied, Source: ledger.Range{Start: 1, End: 2}, Target: ledger.Range{Start: 3, End: 4},
			Bytes: 40, Digest: fixtureDigest(12), LeaderEpoch: -1,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// mustMakeEmpty makes a ledger of another flow without a pair.
func mustMakeEmpty(t *testing.T, path string) {
	t.Helper()
	l, err := ledger.Create(path, ledger.Identity{
		LedgerID: "other", SourceAlias: "x", TargetAlias: "y", SourceClusterID: "cx", TargetClusterID: "cy",
	}, ledger.Options{Now: fixtureTime})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestEmptyLedger: a ledger that was just made has an answer to everything.
func TestEmptyLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.ledger")
	mustMakeEmpty(t, path)
	for _, tt := range []struct {
		argv []string
		want string // part of the answer
	}{
		{[]string{"inspect", path, "-o", "json"}, `"topics":0,"partitions":0,"records":0,"entries":0,"last_commit":"2026`},
		{[]string{"check", path}, "is intact"},
		{[]string{"export", path, "--book", "source"}, ""},
		{[]string{"export", path, "--book", "source", "-o", "csv"}, "book,topic,"},
	} {
		code, stdout, stderr := mustRun(t, append([]string{"ledger"}, tt.argv...)...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, tt.want) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q, want %q", tt.argv, code, stdout, stderr, tt.want)
		}
	}
}

// TestFlippedBits: whatever bit of a ledger is wrong, a command answers as if
// it were right or says that the ledger is damaged, and names it.
func TestFlippedBits(t *testing.T) {
	mustHaveNoTemporaries(t)
	const seed, rounds = 5, 40
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	good := mustRead(t, path)
	_, export, _ := mustRun(t, "ledger", "export", path, "--book", "source")
	damaged := 0
	for round := range rounds {
		places := []int{random.IntN(len(good))}
		if round%2 == 0 {
			places = mustFindAll(t, good, "b.orders", random.IntN(8))
		}
		bad, bit := bytes.Clone(good), byte(1)<<random.IntN(8)
		for _, at := range places {
			bad[at] ^= bit
		}
		mustWrite(t, path, bad)
		code, stdout, stderr := mustRun(t, "ledger", "export", path, "--book", "source")
		if (code != 0 || stdout != export) && (code != 12 || !strings.Contains(stderr, "damaged")) {
			t.Errorf("bytes %d: export exits with %d, stderr %q, answer changed: %t", places, code, stderr, stdout != export)
		}
		checked, stdout, stderr := mustRun(t, "ledger", "check", path, "-o", "json")
		if checked == 12 {
			damaged++
		}
		if checked != 0 && checked != 12 || checked == 0 && code != 0 ||
			strings.Contains(stdout, `"verdict":"damaged"`) != (checked == 12) {
			t.Errorf("bytes %d: check exits with %d, export with %d, stdout %q, stderr %q", places, checked, code, stdout, stderr)
		}
	}
	if damaged < rounds/2 {
		t.Errorf("only %d of %d flipped bits were noticed", damaged, rounds)
	}
}

// mustFindAll returns the places of a byte of a text in all its occurrences:
// those that count, and those on pages that are free by now.
func mustFindAll(t *testing.T, in []byte, text string, byteOfText int) (places []int) {
	t.Helper()
	for at := range in {
		if bytes.HasPrefix(in[at:], []byte(text)) {
			places = append(places, at+byteOfText)
		}
	}
	if len(places) == 0 {
		t.Fatalf("%q is not in the file", text)
	}
	return places
}

func mustWrite(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCheckNamesTheFirstViolation: bucket, key and law of damage in a value are
// in the answer and in the error.
func TestCheckNamesTheFirstViolation(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	content := mustRead(t, path)
	for _, at := range mustFindAll(t, content, "b.orders", 0) {
		content[at] = 'c'
	}
	mustWrite(t, path, content)
	code, stdout, stderr := mustRun(t, "ledger", "check", path, "-o", "json")
	var report ledgerCheck
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 12 || report.Verdict != "damaged" {
		t.Fatalf("exit %d, stdout %q (%v), want 12 and a verdict", code, stdout, err)
	}
	first := report.Violations[0]
	if first.Bucket != "pairs" || first.Key == "" || first.Law != "checksum" {
		t.Errorf("first violation %+v, want a checksum in the bucket pairs", first)
	}
	for _, want := range []string{path, first.Bucket, first.Key, first.Law} {
		if line, _, _ := strings.Cut(stderr, "\n"); !strings.Contains(line, want) {
			t.Errorf("stderr %q does not name %q", stderr, want)
		}
	}
}

// TestDamageBehindTheHeads: damage that opening a ledger does not meet is found
// by whatever reads it, and by check in any case.
func TestDamageBehindTheHeads(t *testing.T) {
	mustHaveNoTemporaries(t)
	path := mustMakeLong(t, filepath.Join(t.TempDir(), "f.ledger"))
	content := mustRead(t, path)
	for _, at := range mustFindAll(t, content, "needle", 0) {
		content[at] ^= 1
	}
	mustWrite(t, path, content)
	if code, _, stderr := mustRun(t, "ledger", "inspect", path); code != 0 {
		t.Fatalf("inspect, which reads heads only, exits with %d: %s", code, stderr)
	}
	code, stdout, stderr := mustRun(t, "ledger", "check", path)
	if code != 12 || !strings.Contains(stdout, "\n"+path+" is damaged; violations found: ") ||
		!strings.HasPrefix(stderr, "apograph: ledger check: ledger "+path+" is damaged: pages ") {
		t.Errorf("check exits with %d, stdout %q, stderr %q, want 12 and the bucket pages", code, stdout, stderr)
	}
	code, stdout, stderr = mustRun(t, "ledger", "export", path, "--book", "source")
	if code != 12 || strings.Contains(stdout, "meedle") || !strings.Contains(stderr, path+" is damaged: pages ") {
		t.Errorf("export exits with %d, stdout %q, stderr %q, want 12 and the bucket pages", code, stdout, stderr)
	}
	if !bytes.Equal(mustRead(t, path), content) {
		t.Error("the damaged ledger has changed")
	}
}

// mustMakeLong makes a ledger with far more entries than its head holds. The
// reason "needle" is in one of the first.
func mustMakeLong(t *testing.T, path string) string {
	t.Helper()
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b"}, ledger.Options{Now: fixtureTime})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "t", TargetTopic: "t"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(400) {
		reason := "too large"
		if i == 3 {
			reason = "needle"
		}
		err := l.Append(ids[0], ledger.Entry{
			Tile: ledger.Filtered, Source: ledger.Range{Start: i, End: i + 1}, Cause: ledger.CauseRule, Reason: reason,
		})
		if err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			mustCommit(t, l)
		}
	}
	mustCommit(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckListsABoundedNumber(t *testing.T) {
	report := newLedgerCheck("f")
	for i := range maxViolations + 7 {
		report.add(ledger.Violation{Key: fmt.Sprint(i)})
	}
	if len(report.Violations) != maxViolations || report.Omitted != 7 || report.Violations[0].Key != "0" ||
		report.Verdict != verdictDamaged {
		t.Errorf("%d violations listed, %d omitted, verdict %s", len(report.Violations), report.Omitted, report.Verdict)
	}
}

// TestInterruptedLedgerCommands: an interrupted command exits with the signal's
// code and cleans up.
func TestInterruptedLedgerCommands(t *testing.T) {
	mustHaveNoTemporaries(t)
	directory := t.TempDir()
	path := mustMakeLedger(t, filepath.Join(directory, "f.ledger"))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&signalError{syscall.SIGTERM})
	for _, argv := range [][]string{
		{"check", path}, {"export", path, "--book", "source"}, {"export", path, "--book", "target", "-o", "csv"},
		{"snapshot", path, "-o", "-"}, {"snapshot", path, "-o", filepath.Join(directory, "s.ledger")},
		{"migrate", path, "-o", filepath.Join(directory, "m.ledger")},
	} {
		var out, errs bytes.Buffer
		code := run(ctx, append([]string{"apograph", "ledger"}, argv...), strings.NewReader(""), &out, &errs)
		if want := "apograph: terminated: stopping; a second signal ends the program at once\n"; code != 143 || errs.String() != want {
			t.Errorf("%q: exit %d, stderr %q, want 143 and %q", argv, code, errs.String(), want)
		}
	}
	if files, err := os.ReadDir(directory); err != nil || len(files) != 1 {
		t.Errorf("the directory holds %v (%v), want the ledger alone", files, err)
	}
}

// TestExportIntoClosedPipe: a reader that has seen enough ends the export
// without a word, and the private copy is removed.
func TestExportIntoClosedPipe(t *testing.T) {
	mustHaveNoTemporaries(t)
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	p := &process{cmd: exec.CommandContext(t.Context(), "apograph", "ledger", "export", path, "--book", "source")}
	p.cmd.Stdout, p.cmd.Stderr = write, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.exitCode(); code != 141 || p.stderr.String() != "" {
		t.Errorf("exit %d, stderr %q, want 141 and nothing", code, p.stderr.String())
	}
}
