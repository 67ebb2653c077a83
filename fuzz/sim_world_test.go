package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// A simTopic is a source topic.
type simTopic struct {
	name       string
	partitions int32
	compacts   bool
	// old is how many of its partitions may have been there before the copier,
	// for all that the ledger knew when they were created.
	old int32
}

// A simPartition names a partition.
type simPartition struct {
	topic     string
	partition int32
}

func (p simPartition) String() string { return fmt.Sprintf("%s-%d", p.topic, p.partition) }

// A simWorld is everything that a history acts on. One goroutine acts.
type simWorld struct {
	t       *testing.T
	began   time.Time
	history simHistory
	pair    *kafkatest.Pair
	archive map[simPartition]*simArchive

	topics  []*simTopic
	writers map[string]*simWriter // by codec, or by transactional id
	records int64                 // made so far
	faults  []*kafkatest.FaultHandle
	holds   []func()
	paused  map[simPartition]bool
	foreign map[int64]bool // timestamps of what somebody else wrote to the target

	snapshots []string // copies of the ledger, oldest first
	restored  int

	dir     string           // of the ledgers and the clusters
	config  replicate.Config // of the next run
	copier  *simCopier       // the one that runs or ran last; nil: none yet
	corpses []*simCopier     // killed ones, which may take a while to end
	runs    int
}

// newSimWorld starts what a history plays with. Clusters and ledgers are kept in
// dir.
func newSimWorld(t *testing.T, h simHistory, dir string) *simWorld {
	w := &simWorld{
		t: t, began: time.Now(), history: h,
		archive: map[simPartition]*simArchive{}, writers: map[string]*simWriter{}, paused: map[simPartition]bool{},
		foreign: map[int64]bool{}, dir: dir,
	}
	// kfake compacts by itself, in a way of its own.
	never := kfake.BrokerConfigs(map[string]string{"log.cleaner.backoff.ms": "1000000000"})
	w.pair = kafkatest.NewPair(t, kafkatest.Options{
		SourceBrokers: h.sources, TargetBrokers: h.targets, DataDir: dir, Network: new(kfake.VirtualNetwork),
		SourceKfake: []kfake.Opt{never}, TargetKfake: []kfake.Opt{never},
	})
	t.Cleanup(w.close)
	w.config = replicate.Config{
		LedgerPath: filepath.Join(dir, "flow.ledger"), Topics: []string{"a.*"},
		RefreshInterval: time.Duration(h.refreshSeconds) * time.Second, RetryAfter: 500 * time.Millisecond,
		ProduceTimeout: 2 * time.Second,
	}
	w.say("%v", h)
	w.watchSpinning()
	w.latency(h.latencyMillis)
	if h.runsFirst {
		w.start(rand.New(rand.NewPCG(h.seed, 2)))
	}
	for i := range h.topicsAtStart {
		w.createTopic(rand.New(rand.NewPCG(h.seed, uint64(3+i))))
	}
	return w
}

// say writes a line of what happened.
func (w *simWorld) say(format string, args ...any) {
	w.t.Helper()
	w.t.Logf("[%v] %s", time.Since(w.began), fmt.Sprintf(format, args...))
}

// must ends the test on an error of the simulation itself.
func (w *simWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// latency delays half of what the clusters do that matters most.
func (w *simWorld) latency(millis int) {
	if millis == 0 {
		return
	}
	for i, key := range []kmsg.Key{kmsg.Produce, kmsg.Fetch} {
		for j, kind := range []kafkatest.FaultKind{kafkatest.DelayBefore, kafkatest.DelayAfter} {
			for k, c := range []*kafkatest.Cluster{w.pair.Source, w.pair.Target} {
				_, err := c.Fault(kafkatest.Fault{
					Kind: kind, Key: key, Delay: time.Duration(millis) * time.Millisecond, Count: -1, Share: 0.3,
					Seed: w.history.seed*8 + uint64(4*i+2*j+k),
				})
				w.must(err)
			}
		}
	}
}

func (w *simWorld) close() {
	for _, x := range w.writers {
		x.Close()
	}
	for _, c := range append(w.corpses, w.copier) {
		if c != nil {
			c.cancel(errSimStop)
			<-c.ended
		}
	}
}

// take carries out one step.
func (w *simWorld) take(number int, s simStep) {
	w.t.Helper()
	rng := s.rng()
	w.say("%d: %v", number, s)
	if c := w.copier; c != nil && c.over() {
		if err := c.verdict(); err != nil {
			w.t.Fatalf("copier %d ended by itself: %v", c.number, err)
		}
	}
	act := map[simOp]func(*rand.Rand){
		opProduce: w.produce, opTransaction: w.transaction, opCreateTopic: w.createTopic, opGrow: w.grow,
		opSetting: w.changeSetting, opMoveLeader: w.moveLeader, opFault: w.fault, opHold: w.hold,
		opDelete: w.deleteRecords, opClean: w.clean, opPause: w.pause,
		opRestartSource: func(rng *rand.Rand) { w.restart(w.pair.Source, rng) },
		opRestartTarget: func(rng *rand.Rand) { w.restart(w.pair.Target, rng) },
		opStart:         w.start, opStop: w.stop, opKill: w.kill, opTrouble: w.trouble, opOperate: w.operate,
		opRest: func(rng *rand.Rand) { simWait(w.t, time.Duration(rng.IntN(40))*time.Second) },
	}[s.op]
	act(rng)
}

// start starts the copier if it does not run. How it works may change from run
// to run.
func (w *simWorld) start(rng *rand.Rand) {
	if w.copier != nil && !w.copier.over() {
		return
	}
	w.runs++
	w.config.Window = 1 + rng.IntN(5)
	w.config.MemoryBytes = []int64{0, 1 << 20}[rng.IntN(2)]
	w.config.RateLimit = []int64{0, 0, 0, 50_000}[rng.IntN(4)]
	w.config.Logger = simLogger(w.t, w.began, w.runs)
	w.copier = startCopier(w.t, w.runs, w.config, w.pair.Source.Bootstrap, w.pair.Target.Bootstrap)
	w.say("copier %d starts, window %d, rate limit %d", w.runs, w.config.Window, w.config.RateLimit)
}

func (w *simWorld) stop(*rand.Rand) {
	c := w.copier
	if c == nil {
		return
	}
	c.cancel(errSimStop)
	c.wait(w.t)
	w.say("copier %d has stopped: %v", c.number, c.err)
	if err := c.verdict(); err != nil {
		w.t.Fatalf("copier %d ended with %v", c.number, err)
	}
}

// kill kills the copier, often just after there was something to copy, so that
// it leaves what is not in its books yet; which the source may then delete.
func (w *simWorld) kill(rng *rand.Rand) {
	if rng.IntN(2) == 0 {
		w.produce(rng)
		simWait(w.t, time.Duration(rng.IntN(90))*time.Millisecond)
	}
	if c := w.copier; c == nil || c.over() {
		return
	}
	w.die()
	if rng.IntN(3) == 0 {
		w.deleteRecords(rng)
	}
	if rng.IntN(2) == 0 {
		w.start(rng)
	}
}

// die kills the copier that runs. It leaves its ledger.
func (w *simWorld) die() {
	c := w.copier
	w.config.LedgerPath = c.kill(w.t)
	w.corpses = append(w.corpses, c)
	w.copier = nil
	w.say("copier %d is dead", c.number)
}

// snapshot keeps a copy of the ledger as it is.
func (w *simWorld) snapshot() {
	if w.copier.copying() != nil {
		synctest.Wait()
	}
	if simBookIsThere(w.config.LedgerPath) {
		path := w.file(fmt.Sprintf("snapshot-%d.ledger", len(w.snapshots)))
		copyFile(w.t, w.config.LedgerPath, path)
		w.snapshots = append(w.snapshots, path)
	}
}

func (w *simWorld) file(name string) string { return filepath.Join(w.dir, name) }

// finish ends faults and transactions, and has the copier catch up and stop.
func (w *simWorld) finish() {
	w.say("the end begins")
	for _, h := range w.faults {
		h.Remove()
	}
	for _, release := range w.holds {
		release()
	}
	w.endTransactions()
	w.archiveAll()
	rng := rand.New(rand.NewPCG(w.history.seed, 99))
	w.catchUp(rng)
	w.stop(rng)
	if w.history.trouble != noTrouble { // what befell an idle partition of the target is noticed now
		w.start(rng)
		simWait(w.t, 30*time.Second)
		w.catchUp(rng)
		w.stop(rng)
	}
	for _, c := range w.corpses {
		c.wait(w.t)
	}
	if synctest.Wait(); w.t.Failed() {
		w.t.FailNow()
	}
}

// catchUp waits until the books reach the end of every source partition. A
// copier that cannot begin is started again.
func (w *simWorld) catchUp(rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(w.t.Context(), simPatience)
	defer cancel()
	for {
		w.start(rng)
		w.resumeAll()
		w.operate(rng)
		behind := w.behind()
		if behind == "" {
			return
		}
		select {
		case <-ctx.Done():
			if flow := w.copier.copying(); flow != nil {
				w.t.Logf("%+v", flow.Status())
			}
			w.t.Fatalf("not caught up after %v: %s", simPatience, behind)
		default:
			simWait(w.t, 100*time.Millisecond)
		}
	}
}

// resumeAll takes back all orders to pause, once there is somebody to tell.
func (w *simWorld) resumeAll() {
	if w.copier.copying() == nil {
		return
	}
	for p := range w.paused {
		w.order(p, false)
	}
}

// behind says what is not copied yet.
func (w *simWorld) behind() string {
	flow := w.copier.copying()
	if flow == nil {
		if w.copier.over() {
			if err := w.copier.verdict(); err != nil {
				w.t.Fatalf("copier %d ended by itself: %v", w.copier.number, err)
			}
		}
		return "the copier does not copy"
	}
	reached := map[simPartition]int64{}
	for _, s := range flow.Status() {
		p := simPartition{s.Topic, s.Partition}
		reached[p] = s.Position
		if s.State == replicate.StateStopped || s.State == replicate.StatePaused {
			return fmt.Sprintf("%s-%d is %s: %s %s", s.Topic, s.Partition, s.State, s.Reason, s.Detail)
		}
	}
	for _, p := range w.partitions() {
		info := w.pair.Source.Fake().PartitionInfo(p.topic, p.partition)
		if at, ok := reached[p]; !ok || at != info.HighWatermark {
			return fmt.Sprintf("%v at %d of %d (%t)", p, at, info.HighWatermark, ok)
		}
	}
	return ""
}

func (w *simWorld) partitions() []simPartition {
	var all []simPartition
	for _, t := range w.topics {
		for p := range t.partitions {
			all = append(all, simPartition{t.name, p})
		}
	}
	return all
}

// errSimNotYet says that there is nobody to give an order to.
var errSimNotYet = errors.New("not yet")
