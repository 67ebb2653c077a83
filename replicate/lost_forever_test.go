package replicate_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// A losses is a random history of a source that loses records before they are
// copied, and what the books must say of it in the end: worked out from what
// was done, not from the books.
type losses struct {
	t          *testing.T
	random     *rand.Rand
	pair       *kafkatest.Pair
	config     replicate.Config
	end        int64                    // of the source's log
	start      int64                    // of the same
	copied     int64                    // where the books end
	lost       map[int32]map[int64]bool // source offsets by generation
	generation int32
}

// TestLostIsLostForEver plays random histories of losses, runs, restarts,
// snapshots that take the ledger's place, and new generations. Each offset that
// was lost stays lost, with its cause and the time when it was last known; no
// other is; no run is complete again while its generation has a loss.
func TestLostIsLostForEver(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			x := &losses{t: t, random: rand.New(rand.NewPCG(seed, 1)), generation: 1, lost: map[int32]map[int64]bool{1: {}}}
			x.pair = kafkatest.NewPair(t, kafkatest.Options{})
			mustTopic(t, x.pair.Source, "t", nil)
			x.config = configFor(t, x.pair, "t")
			x.append()
			x.run()
			var before []ledger.Entry
			for range 14 {
				steps := []func(){x.append, x.append, x.delete, x.delete, x.run, x.run, x.snapshot, x.recreate}
				steps[x.random.IntN(len(steps))]()
				before = x.check(before)
			}
			x.run()
			x.check(before)
			kafkatest.CheckLedgerAtEnd(t, x.config.LedgerPath)
		})
	}
}

func (x *losses) append() {
	n := 1 + x.random.IntN(12)
	mustAppend(x.t, x.pair.Source.Bootstrap, numbered(int(x.end), n)...)
	x.end += int64(n)
}

// delete moves the log start to any offset, or to the end.
func (x *losses) delete() {
	x.start = max(x.start, x.random.Int64N(x.end+1))
	mustDelete(x.t, x.pair.Source, "t", 0, x.start)
}

func (x *losses) run() {
	s := mustRun(x.t, x.config)
	for o := x.copied; o < x.start; o++ {
		x.lost[x.generation][o] = true
	}
	x.copied = x.end
	lost := int64(len(x.lost[x.generation]))
	if len(s.Stopped) > 0 || s.BadTiles != lost || s.Complete != (lost == 0) {
		x.t.Errorf("%d offsets are lost, and the run says %+v", lost, s)
	}
}

// snapshot puts a snapshot in the ledger's place.
func (x *losses) snapshot() {
	to := filepath.Join(x.t.TempDir(), "flow.ledger")
	if _, err := ledger.SnapshotFile(x.t.Context(), x.config.LedgerPath, to); err != nil {
		x.t.Fatal(err)
	}
	x.config.LedgerPath = to
}

// recreate makes another topic of the name, and accepts it.
func (x *losses) recreate() {
	x.run() // what is lost before the topic goes is known
	mustRecreate(x.t, x.pair, 1)
	if s := mustRun(x.t, x.config); len(s.Stopped) != 1 || s.Stopped[0].Reason != replicate.StopTopicRecreated {
		x.t.Errorf("recreated: %+v", s)
	}
	offline(x.t, x.config, func(book *ledger.Ledger) {
		mustOrder(x.t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true})
	})
	x.end, x.start, x.copied = 0, 0, 0
	x.generation++
	x.lost[x.generation] = map[int64]bool{}
	x.append()
	x.run()
}

// check compares the lost tiles of all generations with the model, and with
// those that were there before.
func (x *losses) check(before []ledger.Entry) (now []ledger.Entry) {
	x.t.Helper()
	book := kafkatest.OpenLedger(x.t, x.config.LedgerPath, ledger.Options{ReadOnly: true})
	defer book.Close()
	for _, p := range book.Pairs() {
		n := 0
		for e, err := range book.Entries(p.ID, 0) {
			if err != nil {
				x.t.Fatal(err)
			}
			if e.Tile == ledger.Unexplained {
				x.t.Errorf("generation %d: %v unexplained", p.Generation, e.Source)
			}
			if e.Tile != ledger.Lost {
				continue
			}
			now = append(now, e)
			for o := e.Source.Start; o < e.Source.End; o++ {
				if n++; !x.lost[p.Generation][o] || e.Cause == ledger.CauseNone || e.LastKnownMillis == 0 {
					x.t.Errorf("generation %d, offset %d: %+v is not lost", p.Generation, o, e)
				}
			}
		}
		if want := len(x.lost[p.Generation]); n != want {
			x.t.Errorf("generation %d: %d offsets are lost, want %d", p.Generation, n, want)
		}
	}
	for _, old := range before {
		if !slices.ContainsFunc(now, func(e ledger.Entry) bool {
			return e.Source.Start <= old.Source.Start && e.Source.End >= old.Source.End && e.Cause == old.Cause && e.LastKnownMillis == old.LastKnownMillis && e.Target == old.Target
		}) {
			x.t.Errorf("forgotten, or changed: %+v", old)
		}
	}
	return now
}
