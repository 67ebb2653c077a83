package fuzz

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A simOp is a kind of step of a history.
type simOp string

const (
	opProduce       simOp = "produce"
	opTransaction   simOp = "transaction"
	opCreateTopic   simOp = "create topic"
	opGrow          simOp = "add partitions"
	opSetting       simOp = "change a setting"
	opMoveLeader    simOp = "move a leader"
	opFault         simOp = "fault"
	opHold          simOp = "hold a high watermark"
	opDelete        simOp = "delete records"
	opClean         simOp = "clean a log"
	opRestartSource simOp = "restart the source"
	opRestartTarget simOp = "restart the target"
	opPause         simOp = "pause or resume"
	opStart         simOp = "start the copier"
	opStop          simOp = "stop the copier"
	opKill          simOp = "kill the copier"
	opRest          simOp = "rest"
	opTrouble       simOp = "make trouble"
	opOperate       simOp = "do what the advice says"
)

// simWeights says how often steps of each kind come, out of the sum.
var simWeights = []struct {
	op     simOp
	weight int
}{
	{opProduce, 22}, {opTransaction, 18}, {opCreateTopic, 3}, {opGrow, 4}, {opSetting, 2}, {opMoveLeader, 6},
	{opFault, 18}, {opHold, 2}, {opDelete, 6}, {opClean, 3}, {opRestartSource, 1}, {opRestartTarget, 2},
	{opPause, 4}, {opStart, 8}, {opStop, 3}, {opKill, 7}, {opRest, 2},
}

// A simStep is one step. Whatever it chooses, it chooses from its own seed, so
// that a history with a step less is the same otherwise.
type simStep struct {
	op    simOp
	after time.Duration // fake time since the step before has ended
	seed  uint64
}

func (s simStep) String() string { return fmt.Sprintf("+%v %s", s.after, s.op) }

func (s simStep) rng() *rand.Rand { return rand.New(rand.NewPCG(s.seed, 1)) }

// A simHistory is what happens in a seed.
type simHistory struct {
	seed           uint64
	trouble        simTrouble
	sources        int // brokers
	targets        int
	runsFirst      bool // the copier is started before there is anything
	topicsAtStart  int
	latencyMillis  int // of some requests and answers, always
	refreshSeconds int
	steps          []simStep
}

// newSimHistory makes the history of a seed. Without trouble it is the same for
// every kind of trouble.
func newSimHistory(seed uint64, trouble simTrouble) simHistory {
	rng := rand.New(rand.NewPCG(seed, 0))
	h := simHistory{
		seed: seed, trouble: trouble, sources: 1 + rng.IntN(2), targets: 1 + rng.IntN(3),
		runsFirst: rng.IntN(3) == 0, topicsAtStart: rng.IntN(3),
		latencyMillis: []int{0, 3, 20, 150}[rng.IntN(4)], refreshSeconds: 1 + rng.IntN(10),
	}
	for range 30 + rng.IntN(50) {
		h.steps = append(h.steps, simStep{op: simOpOf(rng), after: simPause(rng), seed: rng.Uint64()})
	}
	if trouble != noTrouble {
		h.addTrouble(rng)
	}
	return h
}

// addTrouble adds a few steps anywhere.
func (h *simHistory) addTrouble(rng *rand.Rand) {
	for i := range 1 + rng.IntN(5) {
		op := opTrouble
		if i > 0 && rng.IntN(3) == 0 {
			op = opOperate
		}
		step := simStep{op: op, after: simPause(rng), seed: rng.Uint64()}
		h.steps = slices.Insert(h.steps, rng.IntN(len(h.steps)+1), step)
	}
}

func simOpOf(rng *rand.Rand) simOp {
	sum := 0
	for _, w := range simWeights {
		sum += w.weight
	}
	dice := rng.IntN(sum)
	for _, w := range simWeights {
		if dice -= w.weight; dice < 0 {
			return w.op
		}
	}
	return opRest
}

// simPause mostly is shorter than the copier's commit interval, so that much
// happens between two commits.
func simPause(rng *rand.Rand) time.Duration {
	most := []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 30 * time.Millisecond, 150 * time.Millisecond, time.Second, 4 * time.Second}
	return time.Duration(rng.Int64N(int64(most[rng.IntN(len(most))]) + 1))
}

func (h simHistory) String() string {
	return fmt.Sprintf("seed %d, %s: %d source brokers, %d target brokers, copier first %t, %d topics at the start, latency %d ms, refresh %d s, %d steps",
		h.seed, h.trouble, h.sources, h.targets, h.runsFirst, h.topicsAtStart, h.latencyMillis, h.refreshSeconds, len(h.steps))
}
