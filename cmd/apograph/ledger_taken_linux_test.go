package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"apograph/internal/kafkatest"
)

// takings returns what can happen to the file of a ledger while a copier holds
// it, with what is left at its place.
func takings(old, good []byte) map[string]func(path string) error {
	return map[string]func(path string) error{
		"deleted":   os.Remove,
		"moved":     func(path string) error { return os.Rename(path, path+".moved") },
		"replaced":  func(path string) error { return replaceFile(path, good) },
		"older":     func(path string) error { return replaceFile(path, old) },
		"directory": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"a pipe": func(path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644))
		},
		"a directory": func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
		},
		"cut":     func(path string) error { return os.Truncate(path, int64(len(good)/2)) },
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"written over by an older one": func(path string) error {
			return os.WriteFile(path, old, 0o644)
		},
		"written over by zeros": func(path string) error {
			return os.WriteFile(path, make([]byte, len(good)), 0o644)
		},
	}
}

func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".other", content, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".other", path)
}

// TestLedgerTakenAway: a copier whose ledger is deleted, replaced or cut while it
// runs ends within 10 s with exit code 12, whether it has something to do or not,
// and names the file and the law. With a ledger from before that, the next one
// finds all that is on the target, and copies nothing twice.
func TestLedgerTakenAway(t *testing.T) {
	for name := range takings(nil, nil) {
		for _, busy := range []bool{false, true} {
			t.Run(map[bool]string{false: "idle/", true: "busy/"}[busy]+name, func(t *testing.T) {
				t.Parallel()
				mustNotice(t, name, busy)
			})
		}
	}
}

func mustNotice(t *testing.T, name string, busy bool) {
	c := &liveCase{copyCase: newCopyCase(t)}
	directory := filepath.Join(t.TempDir(), "books")
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	c.ledger = filepath.Join(directory, "f.ledger")
	c.summary(0)
	old := mustRead(t, c.ledger)
	c.append(c.pair.Source, "orders", 5, 20)
	c.start()
	c.caughtUp("orders:0", 25)
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	c.must(0, "ledger", "snapshot", "-o", snapshot)
	good := mustRead(t, snapshot)

	ended := make(chan struct{})
	go func() { _ = c.copier.Wait(); close(ended) }()
	if err := takings(old, good)[name](c.ledger); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	for n := 25; busy && n < 2000; n++ {
		c.append(c.pair.Source, "orders", n, 1)
		select {
		case <-ended:
			n = 2000
		default:
		}
	}
	select {
	case <-ended:
	case <-time.After(soon - time.Since(started)):
		_ = c.copier.Process.Signal(syscall.SIGQUIT)
		<-ended
		t.Fatalf("the copier goes on\n%s", c.stderr.String())
	}
	said := c.stderr.String()
	if code := c.copier.ProcessState.ExitCode(); code != int(exitDamaged) || !strings.Contains(said, c.ledger) || !strings.Contains(said, "law ") || strings.Contains(said, "goroutine ") {
		t.Errorf("exit code %d, %s", code, said)
	}
	if strings.Contains(said, "keep it") == strings.Contains(said, "law file_in_place") {
		t.Errorf("no advice for what has happened: %s", said)
	}
	if name == "deleted" || name == "moved" || name == "directory" {
		if _, err := os.Stat(c.ledger); err == nil {
			t.Error("the copier has made a ledger")
		}
	}
	if name == "replaced" && !bytes.Equal(mustRead(t, c.ledger), good) {
		t.Error("the ledger that is there now was written to")
	}
	if err := errors.Join(os.MkdirAll(directory, 0o755), os.RemoveAll(c.ledger)); err != nil {
		t.Fatal(err)
	}
	for _, ledger := range [][]byte{old, good} { // an older one as well
		mustWrite(t, c.ledger, ledger)
		if got := c.summary(0); !got.Complete || got.Duplicates+got.Foreign+got.Orphans+got.Lost > 0 {
			t.Errorf("afterwards: %+v", got)
		}
		kafkatest.Compare(t, c.pair.Source.Bootstrap, c.pair.Target.Bootstrap, kafkatest.Same("orders", "payments"))
		mustCheck(t, c.ledger)
	}
}
