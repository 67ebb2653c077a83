package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// crashKills is how often TestSigkill kills a copier.
const crashKills = 100

// TestSigkill kills the real binary while it copies, again and again: each time
// in the middle of some request, which the broker carries out before or after
// the death, or never. In the end nothing is missing, nothing is there twice
// and the books are sound.
func TestSigkill(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	r := rand.New(rand.NewPCG(20261129, 1))
	topics := []string{"orders", "payments"}
	path := filepath.Join(t.TempDir(), "flow.ledger")
	hits := map[string]int{}
	for kill, round := 0, 0; kill < crashKills; round++ {
		if round > 4*crashKills {
			t.Fatalf("only %d kills in %d rounds", kill, round)
		}
		load := kafkatest.Load{Seed: uint64(round), Topics: topics, Partitions: 2, Records: 150, MaxValueBytes: 20_000}
		if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
			t.Fatal(err)
		}
		if point := killOnce(t, pair, copyArgs(pair, path), killPoints(), r); point != "" {
			hits[point]++
			kill++
		}
	}
	t.Logf("killed in %v", hits)
	if code, stderr := copyOnce(t, pair, path); code != 0 {
		t.Fatalf("exit code %d after the last kill: %s", code, stderr)
	}
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same(topics...))
	mustCheck(t, path)
}

// A killPoint is a request in whose middle a copier is killed.
type killPoint struct {
	onSource bool
	key      kmsg.Key
	most     int // it is one of the first so many requests of its kind
}

func killPoints() []killPoint {
	return []killPoint{
		{key: kmsg.Produce, most: 30}, {key: kmsg.Produce, most: 30}, {key: kmsg.Produce, most: 3},
		{key: kmsg.ListOffsets, most: 6}, {key: kmsg.Fetch, most: 3},
		{key: kmsg.InitProducerID, most: 1}, {key: kmsg.CreateTopics, most: 2}, {key: kmsg.Metadata, most: 3},
		{onSource: true, key: kmsg.Fetch, most: 8}, {onSource: true, key: kmsg.ListOffsets, most: 3},
	}
}

// killOnce starts a copier and kills it when a request arrives, at one of the
// points, that is chosen by r. It returns where, or nothing if the copier had
// finished before.
func killOnce(t *testing.T, pair *kafkatest.Pair, args []string, points []killPoint, r *rand.Rand) string {
	t.Helper()
	point := points[r.IntN(len(points))]
	cluster, side := pair.Target, "target"
	if point.onSource {
		cluster, side = pair.Source, "source"
	}
	kind := []kafkatest.FaultKind{kafkatest.DelayBefore, kafkatest.DelayAfter}[r.IntN(2)]
	gate := make(chan struct{})
	fault, err := cluster.Fault(kafkatest.Fault{Kind: kind, Key: point.key, Skip: r.IntN(point.most), Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	defer fault.Remove()
	child := exec.Command("apograph", args...)
	var stderr bytes.Buffer
	child.Stderr = &stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exited := make(chan struct{})
	go func() {
		_ = child.Wait()
		close(exited)
		cancel()
	}()
	hit := fault.Wait(ctx, 1) == nil
	_ = child.Process.Kill()
	<-exited
	close(gate) // a request that was held is carried out now, after the death
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		t.Fatalf("the copier neither reached %s nor ended: %s", point.key.Name(), stderr.String())
	}
	if !hit {
		return ""
	}
	return fmt.Sprintf("%s %s %s", side, kind, point.key.Name())
}

func copyArgs(pair *kafkatest.Pair, path string) []string {
	return []string{"replicate", "--once", "--topics", ".*", "--ledger", path,
		"--source-bootstrap-server", pair.Source.Server(), "--target-bootstrap-server", pair.Target.Server()}
}

// copyOnce runs a copier to its end, which it must find.
func copyOnce(t *testing.T, pair *kafkatest.Pair, path string, more ...string) (code int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, "apograph", append(copyArgs(pair, path), more...)...)
	out, err := child.CombinedOutput()
	if _, isExit := err.(*exec.ExitError); err != nil && !isExit {
		t.Fatal(err)
	}
	return child.ProcessState.ExitCode(), string(out)
}

// mustCheck fails the test unless the ledger obeys its laws.
func mustCheck(t *testing.T, path string) {
	t.Helper()
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Check(context.Background(), func(v ledger.Violation) { t.Errorf("ledger check: %v", v) }); err != nil {
		t.Fatal(err)
	}
}
