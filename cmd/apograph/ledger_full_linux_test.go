package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// TestFullFileSystem, in which the ledger is as full of holes as its unused pages
// let it be, lets commits meet a file system that has no room left, where
// even a look at a page that was never written may fail: a command ends with exit
// code 1, names the file and what the system says, and the ledger is as sound as
// before.
func TestFullFileSystem(t *testing.T) {
	c := newFaultCase(t)
	directory := t.TempDir()
	if !mayMount(t, inNamespace("mount -t tmpfs -o size=64k none "+directory)) {
		return
	}
	failed, used := 0, 4*int(pagesOf(t, c.good)["end"][0])
	for round, room := range []int{0, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512} {
		var records []*kgo.Record
		for i := range int64(300) {
			records = append(records, &kgo.Record{Topic: "wide", Partition: int32(i % 150), Value: fmt.Appendf(nil, "%d", round), Timestamp: time.UnixMilli(i)})
		}
		if err := c.pair.Source.Append(t.Context(), kafkatest.None, records...); err != nil {
			t.Fatal(err)
		}
		for _, o := range c.openers(t.TempDir()) {
			if !o.writes || o.name == "replicate" || o.name == "ledger accept" {
				continue
			}
			o.answers = true // of the check that follows
			got := c.askInFull(o, directory, used+room)
			switch fault := got.fault(o, exitError, filepath.Join(directory, "f.ledger"), "no space left on device"); {
			case got.code == exitOK:
			case fault != "":
				t.Errorf("%d KiB, %s: %s\n%s", room, o.name, fault, got.stderr)
			default:
				failed++
			}
			if strings.Contains(got.stdout, "damaged") {
				t.Errorf("%d KiB, %s: %s", room, o.name, got.stdout)
			}
		}
	}
	if failed < 4 {
		t.Errorf("only %d commands met the end of the file system", failed)
	}
	// What the failed runs wrote to the target is found by the next one.
	if got := c.summary(0); !got.Complete || got.Duplicates+got.Foreign+got.Orphans > 0 {
		t.Errorf("afterwards: %+v", got)
	}
	kafkatest.Compare(t, c.pair.Source.Bootstrap, c.pair.Target.Bootstrap, kafkatest.Same("orders", "payments", "wide"))
	mustCheck(t, c.ledger)
}

// exitLine is what the shell of askInFull says of each command.
var exitLine = regexp.MustCompile(`(?m)^exit ([0-9]+)$`)

// askInFull runs a command that writes on a copy of the ledger in a file system
// of so many KiB, and checks the copy afterwards. Standard output is the check's.
func (c *faultCase) askInFull(o opener, directory string, size int) told {
	c.t.Helper()
	prepare := fmt.Sprintf(`mount -t tmpfs -o size=%dk none %[2]s && cp --sparse=always %[3]s %[2]s/f.ledger && run() { apograph "$@" >&3; echo exit $?; apograph ledger check %[2]s/f.ledger; } 3>/dev/null && set -- run "$@"`, size, directory, c.ledger)
	got := c.ask(o, filepath.Join(directory, "f.ledger"), func(cmd *exec.Cmd) {
		inNamespace(prepare)(cmd)
		cmd.Args[2] = strings.Replace(cmd.Args[2], `exec "$@"`, `shift 2 && run "$@"`, 1)
	})
	match := exitLine.FindStringSubmatch(got.stdout)
	if match == nil {
		c.t.Fatalf("%s: %s%s", o.name, got.stdout, got.stderr)
	}
	_, _ = fmt.Sscan(match[1], &got.code)
	got.stdout = strings.Replace(got.stdout, match[0]+"\n", "", 1)
	return got
}
