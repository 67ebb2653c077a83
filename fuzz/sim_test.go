package fuzz

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/verify"
)

// Environment variables of the simulation: how many histories to play, and the
// seed of the first. The others follow it.
const (
	simSeedsVariable = "APOGRAPH_SIM_SEEDS"
	simFirstVariable = "APOGRAPH_SIM_FIRST"
)

// TestSimulation plays one history for each seed. Two fake clusters, a real
// ledger file and the copier live in a bubble of fake time, on a network in
// memory. A history produces, creates, grows, deletes and cleans; it moves
// leaders, breaks connections, makes brokers answer with errors and restarts
// them; it pauses, stops and kills the copier and starts it again. Then faults
// end, all transactions are ended, and the copier runs until it has caught up.
// What is there in the end is held to what the source ever held.
//
// The history comes from the seed alone. What the goroutines make of it does
// not quite, as the scheduler chooses among those that are ready at one instant
// of the fake clock: a seed that failed may have to be played more than once.
func TestSimulation(t *testing.T) {
	seeds, first := simVariable(t, simSeedsVariable, 200), simVariable(t, simFirstVariable, 1)
	troubles := simTroubles()
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			playSeed(t, uint64(seed), troubles[seed%len(troubles)])
		})
	}
}

// simRegressions are histories that once showed a fault of the product, or of
// what stands for clusters and people here. They are always played.
func simRegressions() []simRegression {
	return []simRegression{
		{125, everySource, "a source that was proven to be cut went on when the proof was deleted"},
		{305, sourceCut, "a source that was proven to be cut went on when its leader could not be asked"},
		{235, targetCut, "partitions added to a topic without a book began at their log start"},
		{1093, sourceRecreated, "a fetch session that remembered a deleted topic was asked without a pause"},
		{1253, sourceRecreated, "the same, in two sessions"},
		{1509, sourceRecreated, "the same"},
		{1089, sourceCut, "a log that was cut to nothing began again at leader epoch 0: the leader did not know the position"},
		{1313, sourceCut, "the same: the cut was not noticed"},
		{2161, sourceCut, "the same"},
		{1329, sourceCut, "a log was cut, and its start moved beyond the cut, before there was anybody to notice"},
		{1921, sourceCut, "the cleaner left an empty batch of a transaction without its marker: it stayed open for ever"},
		{1997, everySource, "the same"},
		{5153, sourceCut, "a log was cut, and its start moved beyond the cut, while its partition was paused: nobody can tell, nor may the proof"},
		{3009, sourceCut, "a transaction whose data was cut off was aborted: the list of aborted ones named the next of its producer"},
		{3665, sourceCut, "the same"},
	}
}

// A simRegression is a history by seed and trouble.
type simRegression struct {
	seed    uint64
	trouble simTrouble
	shows   string
}

// TestSimulationRegressions plays them.
func TestSimulationRegressions(t *testing.T) {
	for _, r := range simRegressions() {
		t.Run(fmt.Sprintf("seed=%d", r.seed), func(t *testing.T) {
			t.Parallel()
			t.Log(r.shows)
			playSeed(t, r.seed, r.trouble)
		})
	}
}

func simVariable(t *testing.T, name string, byDefault int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no positive number", name, text)
	}
	return n
}

// playSeed plays one history and judges it. What happened is shown if the test
// fails.
func playSeed(t *testing.T, seed uint64, trouble simTrouble) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("play it again alone with: make sim FIRST=%d SEEDS=1", seed)
		}
	})
	dir, copies := t.TempDir(), false
	var w *simWorld
	synctest.Test(t, func(t *testing.T) {
		w = newSimWorld(t, newSimHistory(seed, trouble), dir)
		for i, s := range w.history.steps {
			simWait(t, s.after)
			w.take(i, s)
		}
		w.finish()
		w.prove()
		w.say("the end")
		copies = len(w.topics) > 0
	})
	if !t.Failed() && copies {
		verifySeed(t, w)
	}
}

// verifySeed has the product's own verifier, which shares no code with the
// copier, read both clusters again. It does so on real sockets and in real
// time: in a bubble kgo's decompressor, which verify uses on purpose, ends the
// process (see kafkatest.Decompressor).
func verifySeed(t *testing.T, w *simWorld) {
	t.Helper()
	pair := kafkatest.NewPair(t, kafkatest.Options{DataDir: w.dir, TargetBrokers: 1})
	report, err := verify.Run(t.Context(), verify.Config{
		LedgerPath: w.config.LedgerPath,
		Source:     &connect.Cluster{Alias: "source", Bootstrap: pair.Source.Addresses},
		Target:     &connect.Cluster{Alias: "target", Bootstrap: pair.Target.Addresses},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := report.Summary; s.Equal+s.NotVerified != s.Copied || s.NotCopiedYet != 0 {
		t.Errorf("verify: %+v", s)
	}
	for _, f := range report.Findings {
		if f.Fault && f.Kind != verify.Lost {
			t.Errorf("verify: %+v", f)
		}
	}
}

// simWait lets fake time pass.
func simWait(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// simLogger writes what the copier says into the test's log, with the fake time
// since the history began.
func simLogger(t *testing.T, began time.Time, process int) *slog.Logger {
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Duration("at", time.Since(began))
		}
		return a
	}
	return slog.New(slog.NewTextHandler(simLog{t, process}, &slog.HandlerOptions{ReplaceAttr: drop}))
}

type simLog struct {
	t       *testing.T
	process int
}

func (l simLog) Write(p []byte) (int, error) {
	l.t.Logf("    copier %d: %s", l.process, strings.TrimSpace(string(p)))
	return len(p), nil
}
