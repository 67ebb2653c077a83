package fuzz

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apograph/ledger"
)

// FuzzLedgerFile changes bytes of a sound ledger file. Whatever is changed,
// nothing panics, and no answer is another one than before: it is the same or
// says that the file is damaged. If the file can be opened for writing it takes
// entries, and a file without findings has none afterwards either.
func FuzzLedgerFile(f *testing.F) {
	good, err := os.ReadFile("../testdata/ledgers/good.ledger")
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "good.ledger")
	if err := os.WriteFile(path, good, 0o600); err != nil {
		f.Fatal(err)
	}
	want, err := ledgerAnswers(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	for page := range len(good) / 4096 {
		f.Add(ledgerChange(nil, page*4096+10, 1))    // how many elements
		f.Add(ledgerChange(nil, page*4096+20, 0x10)) // where the first one is
		f.Add(ledgerChange(ledgerChange(nil, page*4096+28, 4), page*4096+4000, 0xff))
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		b := append([]byte{}, good...)
		for ; len(changes) >= 5; changes = changes[5:] {
			b[int(binary.BigEndian.Uint32(changes))%len(b)] ^= changes[4]
		}
		path := filepath.Join(t.TempDir(), "changed.ledger")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		findings := ledgerFindings(t, path)
		got, err := ledgerAnswers(path)
		if err != nil {
			mustBeDamage(t, err)
		} else if got != want {
			t.Fatalf("answers:\n%s\nwant:\n%s", got, want)
		}
		writeLedger(t, path)
		if after := ledgerFindings(t, path); findings == "" && after != "" {
			t.Fatalf("writing damaged a sound file:\n%s", after)
		}
	})
}

// ledgerChange appends a change of one byte to changes.
func ledgerChange(changes []byte, offset int, by byte) []byte {
	return append(binary.BigEndian.AppendUint32(changes, uint32(offset)), by)
}

func mustBeDamage(t *testing.T, err error) {
	t.Helper()
	var damage *ledger.CorruptError
	var newer *ledger.FormatError
	if !errors.As(err, &damage) && !errors.As(err, &newer) {
		t.Fatalf("%v, want a CorruptError", err)
	}
}

func ledgerFindings(t *testing.T, path string) string {
	t.Helper()
	var found strings.Builder
	err := ledger.CheckFile(t.Context(), path, ledger.Options{}, func(v ledger.Violation) { fmt.Fprintln(&found, v) })
	if err != nil {
		mustBeDamage(t, err)
		fmt.Fprintln(&found, err)
	}
	return found.String()
}

// ledgerAnswers returns what the books of a file say, or the first error.
func ledgerAnswers(path string) (string, error) {
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		return "", err
	}
	defer l.Close()
	var answers strings.Builder
	fmt.Fprintln(&answers, l.Identity(), l.Scope(), l.Orders(), l.Stops())
	if err := flowAnswers(l, &answers); err != nil {
		return "", err
	}
	for _, p := range l.Pairs() {
		fmt.Fprintln(&answers, p.ID, p.SourceTopic, p.Partition, p.Closed != nil, l.Producers(p.ID), l.Committed(p.ID), l.Totals(p.ID), l.State(p.ID))
		for e, err := range l.Entries(p.ID, 0) {
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&answers, "%+v\n", e)
		}
		for offset := p.TargetBase; offset < l.Committed(p.ID).Target; offset += 7 {
			e, err := l.FindTarget(p.ID, offset)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&answers, "%d %+v\n", offset, e)
		}
	}
	return answers.String(), nil
}

// flowAnswers adds what the file says of topics that were seen or made.
func flowAnswers(l *ledger.Ledger, answers *strings.Builder) error {
	for s, err := range l.SeenTopics() {
		if err != nil {
			return err
		}
		again, ok, err := l.SeenTopic(s.Name, s.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(answers, "%+v %t\n", again, ok)
	}
	for _, name := range []string{"a.older", "a.orders", "a.pay"} {
		for i := range byte(8) {
			settings, ok := l.MadeTopic(name, ledger.TopicID{i})
			fmt.Fprintln(answers, name, i, ok, settings)
		}
	}
	return nil
}

// writeLedger appends to every open pair, writes beside them, and commits.
func writeLedger(t *testing.T, path string) {
	t.Helper()
	l, err := ledger.Open(path, ledger.Options{})
	if err != nil {
		mustBeDamage(t, err)
		return
	}
	for _, p := range l.Pairs() {
		end := l.End(p.ID)
		e := ledger.Entry{
			Tile:   ledger.Copied,
			Source: ledger.Range{Start: end.Source, End: end.Source + 2}, Target: ledger.Range{Start: end.Target, End: end.Target + 2},
		}
		if err := l.Append(p.ID, e); err != nil && !errors.Is(err, ledger.ErrPairClosed) {
			mustBeDamage(t, err)
		}
	}
	for _, err := range []error{
		l.Commit(),
		l.SeeTopics([]ledger.SeenTopic{{Name: "new", ID: ledger.TopicID{77}, Partitions: 3, FromStart: true}}),
		l.SetMade("a.new", ledger.TopicID{78}, map[string]string{"retention.ms": "1"}),
	} {
		if err != nil {
			mustBeDamage(t, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
