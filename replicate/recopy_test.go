package replicate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// copiedBig makes a flow that has copied n records, each a batch of its own.
func copiedBig(t *testing.T, n int) (*kafkatest.Pair, replicate.Config) {
	t.Helper()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	appendBig(t, pair, 0, n)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	return pair, config
}

// TestRecopy: the target's log was cut below the books. What it lost is copied
// again by a person's word, and only that.
func TestRecopy(t *testing.T) {
	for name, cut := range map[string]int64{"a part": 13, "all": 0, "the last one": 19} {
		t.Run(name, func(t *testing.T) {
			pair, config := copiedBig(t, 20)
			if err := pair.Target.LoseTail("t", 0, cut); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, pair.Source.Bootstrap, numbered(20, 3)...)
			for range 2 {
				s := mustRun(t, config)
				wantStop(t, s, replicate.StopTargetLostRecords)
				wantTiles(t, s, nil)
			}
			order(t, config, ledger.Order{SourceTopic: "t", Recopy: true, By: "ann"})
			s := mustRun(t, config)
			if !s.Complete {
				t.Errorf("summary %+v", s)
			}
			wantTiles(t, s, map[ledger.Tile]int64{ledger.BeforeStart: cut, ledger.Copied: 23 - cut})
			proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 23})
			proveNothingMissing(t, pair)
			offline(t, config, func(book *ledger.Ledger) {
				pairs := book.Pairs()
				if len(pairs) != 2 || pairs[0].Closed == nil || pairs[0].Closed.Cut == nil || *pairs[0].Closed.Cut != (ledger.Cut{Source: cut, Target: cut}) ||
					pairs[1].ScopeStart != cut || pairs[1].TargetBase != cut || len(book.Orders()) != 0 || len(book.Stops()) != 0 {
					t.Errorf("pairs %+v, orders %+v, stops %+v", pairs, book.Orders(), book.Stops())
				}
			})
		})
	}
}

// TestRecopyBehindNotes: translation finds the cut also where the books hold more
// than copies.
func TestRecopyBehindNotes(t *testing.T) {
	pair, config := copiedBig(t, 10)
	order(t, config, ledger.Order{SourceTopic: "t", TolerateForeign: true})
	mustAppend(t, pair.Target.Bootstrap, numbered(100, 2)...)
	mustTransaction(t, pair.Source.Bootstrap, true, numbered(10, 2)...)
	appendBig(t, pair, 12, 5) // source offsets 13 to 17, target 14 to 18
	mustRun(t, config)
	if err := pair.Target.LoseTail("t", 0, 15); err != nil {
		t.Fatal(err)
	}
	wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1, Recopy: true})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 17, ledger.Foreign: 2})
	proveNothingMissing(t, pair)
	offline(t, config, func(book *ledger.Ledger) {
		if orders := book.Orders(); len(orders) != 1 || !orders[0].TolerateForeign || orders[0].Recopy {
			t.Errorf("orders %+v: what was tolerated is to stay", orders)
		}
	})
}

// TestRecopyIsRefused: what the target still holds in front of the cut is not what
// the books say.
func TestRecopyIsRefused(t *testing.T) {
	pair, config := copiedBig(t, 20)
	if err := pair.Target.LoseTail("t", 0, 10); err != nil {
		t.Fatal(err)
	}
	wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
	mustAppend(t, pair.Target.Bootstrap, numbered(100, 3)...) // below the books' end
	order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
	s := mustRun(t, config)
	wantStop(t, s, replicate.StopTargetLostRecords)
	t.Log(s.Stopped)
	offline(t, config, func(book *ledger.Ledger) {
		if len(book.Pairs()) != 1 || len(book.Orders()) != 0 {
			t.Errorf("pairs %+v, orders %+v", book.Pairs(), book.Orders())
		}
	})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestRecopyIntoATopicMadeAnew: the target topic was deleted, or deleted and made
// again. All of the generation is copied again.
func TestRecopyIntoATopicMadeAnew(t *testing.T) {
	for _, recreated := range []bool{true, false} {
		for _, running := range []bool{true, false} {
			name := map[bool]string{true: "recreated", false: "deleted"}[recreated] + map[bool]string{true: " while running", false: ""}[running]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				recopyAnew(t, recreated, running)
			})
		}
	}
}

func recopyAnew(t *testing.T, recreated, running bool) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	config := livingConfig(t, pair, "t")
	l := live(t, pair, config)
	l.at("t", 0, 10)
	mustDeleteTopic(t, pair.Target, "t")
	reason := replicate.StopTargetDeleted
	if recreated {
		mustTopic(t, pair.Target, "t", nil)
		reason = replicate.StopTargetRecreated
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 5)...)
	l.stopped("t", 0, reason)
	o := ledger.Order{SourceTopic: "t", Partition: -1, Recopy: true}
	if running {
		mustOrder(t, l.Order, o)
		l.at("t", 0, 15)
		l.end()
	} else {
		l.end()
		order(t, config, o)
		if s := mustRun(t, once(config)); !s.Complete {
			t.Errorf("summary %+v", s)
		}
	}
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("t"))
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 15})
}

// TestTailOfAClosedGeneration: a dead copier wrote what is not in the books, and
// then the source was cut below them, or created again. A person accepts that;
// what stands behind the books is booked before anything is copied, and if somebody
// else wrote there, a person has to say to go on once more.
func TestTailOfAClosedGeneration(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		for _, recreated := range []bool{false, true} {
			name := map[bool]string{true: "recreated", false: "cut"}[recreated] + map[bool]string{true: ", with foreign records", false: ""}[foreign]
			t.Run(name, func(t *testing.T) { tailOfClosed(t, recreated, foreign) })
		}
	}
}

func tailOfClosed(t *testing.T, recreated, foreign bool) {
	pair := stored(t)
	config := afterCrash(t, pair, func() { mustAppend(t, pair.Source.Bootstrap, numbered(10, 4)...) })
	want := map[ledger.Tile]int64{ledger.Copied: 10 + 3, ledger.Orphan: 4}
	if foreign {
		mustAppend(t, pair.Target.Bootstrap, numbered(200, 2)...)
		want[ledger.Foreign] = 2
	}
	o, reason := ledger.Order{SourceTopic: "t", AcceptTruncated: true}, replicate.StopSourceTruncated
	if recreated {
		mustDeleteTopic(t, pair.Source, "t")
		mustTopic(t, pair.Source, "t", nil)
		o, reason = ledger.Order{SourceTopic: "t", AcceptRecreated: true}, replicate.StopTopicRecreated
	} else if err := pair.Source.LoseTail("t", 0, 0); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(100, 3)...)
	wantStop(t, mustRun(t, config), reason)
	order(t, config, o)
	if foreign {
		for range 2 {
			s := mustRun(t, config)
			wantStop(t, s, replicate.StopForeignWriter)
			if s.Tiles[ledger.Copied] != 0 {
				t.Errorf("copied in front of a person's word: %+v", s)
			}
		}
		order(t, config, ledger.Order{SourceTopic: "t"})
	}
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
	offline(t, config, func(book *ledger.Ledger) {
		got := map[ledger.Tile]int64{}
		for _, p := range book.Pairs() {
			for e, err := range book.EntriesFromTarget(p.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				got[e.Tile] += e.Target.Len()
			}
		}
		for tile, n := range want {
			if got[tile] != n {
				t.Errorf("%d target offsets are %s, want %d", got[tile], tile, n)
			}
		}
		pairs := book.Pairs()
		if len(pairs) != 2 || pairs[0].Closed == nil || pairs[1].TargetBase != book.End(pairs[0].ID).Target {
			t.Errorf("pairs %+v", pairs)
		}
	})
}

// TestTailOfARetiredPartition: the source topic was created again with fewer
// partitions, so that nothing follows the books of the last one. What others wrote
// there stops it all the same, once, and what was accepted stays so.
func TestTailOfARetiredPartition(t *testing.T) {
	pair := stored(t)
	if err := pair.Source.CreateTopic(t.Context(), "t", 2, nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, append(on("t", 0, 0, 5), on("t", 1, 0, 5)...)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustRecreate(t, pair, 1)
	mustAppend(t, pair.Target.Bootstrap, on("t", 1, 100, 2)...)
	if s := mustRun(t, config); len(s.Stopped) != 2 || s.Stopped[1].Reason != replicate.StopTopicRecreated {
		t.Errorf("stopped %+v", s.Stopped)
	}
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true})
	wantStop(t, mustRun(t, config), replicate.StopForeignWriter)
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
	offline(t, config, func(book *ledger.Ledger) {
		retired := book.Pairs()[2]
		if e, err := book.FindTarget(retired.ID, 6); retired.Closed == nil || err != nil || e.Tile != ledger.Foreign || len(book.Stops()) > 0 {
			t.Errorf("pair %+v, at its end %+v (%v), stops %+v", retired, e, err, book.Stops())
		}
	})
}

// TestAnotherCopierBehindAGeneration: what stands behind the books of a generation
// that ends was written while this copier ran and had seen the target's end. It is
// another's, though it is what the next generation would write.
func TestAnotherCopierBehindAGeneration(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 20)
	config := livingConfig(t, pair, "t")
	l := live(t, pair, config)
	l.at("t", 0, 20)
	mustLoseTail(t, pair.Source, 10)
	mustAppend(t, pair.Source.Bootstrap, numbered(100, 12)...)
	l.stopped("t", 0, replicate.StopSourceTruncated)
	mustAppendBatch(t, pair, ours(t, ledger.Producer{ID: 777777}, 0, numbered(100, 12)))
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", AcceptTruncated: true})
	l.stopped("t", 0, replicate.StopForeignWriter)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t"})
	l.at("t", 0, 22)
	l.end()
	offline(t, config, func(book *ledger.Ledger) {
		if next := book.Pairs()[1]; next.TargetBase != 20 || book.End(next.ID).Target != 20+12+12 {
			t.Errorf("pair %+v, its end %+v: want 12 foreign records, and 12 copied behind them", next, book.End(next.ID))
		}
	})
}

// mustLoseTail cuts the target's log of t-0.
func mustLoseTail(t *testing.T, c *kafkatest.Cluster, end int64) {
	t.Helper()
	if err := c.LoseTail("t", 0, end); err != nil {
		t.Fatal(err)
	}
}

// TestRecopyOfEarlierGenerations: the target's log is cut again, and ends in front
// of where the open generation began. What the earlier one copied and the target
// lost is copied again as well.
func TestRecopyOfEarlierGenerations(t *testing.T) {
	for name, cuts := range map[string][]int64{
		"deeper": {15, 10}, "deeper twice": {15, 10, 4}, "to the start": {15, 0}, "to where it began": {15, 15}, "above it again": {15, 10, 18, 12},
	} {
		t.Run(name, func(t *testing.T) {
			pair, config := copiedBig(t, 20)
			for _, cut := range cuts {
				mustLoseTail(t, pair.Target, cut)
				wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
				order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
				s := mustRun(t, config)
				if !s.Complete {
					t.Errorf("cut at %d: summary %+v", cut, s)
				}
				wantTiles(t, s, map[ledger.Tile]int64{ledger.BeforeStart: cut, ledger.Copied: 20 - cut})
				proveNothingMissing(t, pair)
				proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 20})
			}
		})
	}
}

// TestRecopyOfEarlierGenerationsIsRefused: what the target holds in front of its
// log's end is in the books of an earlier generation, and is not what they say.
func TestRecopyOfEarlierGenerationsIsRefused(t *testing.T) {
	for _, foreign := range []int{3, 5} { // up to where the open generation began, too
		pair, config := copiedBig(t, 20)
		mustLoseTail(t, pair.Target, 15)
		mustRun(t, config)
		order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
		mustRun(t, config)
		mustLoseTail(t, pair.Target, 10)
		wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
		mustAppend(t, pair.Target.Bootstrap, numbered(100, foreign)...)
		order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
		s := mustRun(t, config)
		wantStop(t, s, replicate.StopTargetLostRecords)
		if s.Complete || !strings.Contains(s.Stopped[0].Detail, "do not hold what the books say") && !strings.Contains(s.Stopped[0].Detail, "does not hold what the books say") {
			t.Errorf("stopped %+v", s.Stopped)
		}
		offline(t, config, func(book *ledger.Ledger) {
			if len(book.Pairs()) != 2 || len(book.Orders()) != 0 {
				t.Errorf("pairs %+v, orders %+v", book.Pairs(), book.Orders())
			}
		})
	}
}

// TestRecopyOfAnotherSourceTopic: the target has lost records of a source topic
// that is gone. They cannot be copied again, and nobody says that all is well.
func TestRecopyOfAnotherSourceTopic(t *testing.T) {
	pair, config := copiedBig(t, 20)
	mustRecreate(t, pair, 1)
	mustAppend(t, pair.Source.Bootstrap, numbered(100, 5)...)
	mustRun(t, config)
	order(t, config, ledger.Order{SourceTopic: "t", AcceptRecreated: true})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	mustLoseTail(t, pair.Target, 15)
	for _, o := range []ledger.Order{{SourceTopic: "t"}, {SourceTopic: "t", Recopy: true}} {
		order(t, config, o)
		s := mustRun(t, config)
		wantStop(t, s, replicate.StopTargetLostRecords)
		if s.Complete || !strings.Contains(s.Stopped[0].Detail, "source offsets [15, 20) of generation 1 cannot be copied again") {
			t.Errorf("stopped %+v", s.Stopped)
		}
	}
	mustDeleteTopic(t, pair.Target, "t")
	wantStop(t, mustRun(t, config), replicate.StopTargetDeleted)
	order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNothingMissing(t, pair)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestRecopyOfAllGenerations: the target topic is gone, and with it what several
// generations copied into it.
func TestRecopyOfAllGenerations(t *testing.T) {
	pair, config := copiedBig(t, 20)
	mustLoseTail(t, pair.Target, 15)
	mustRun(t, config)
	order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
	mustRun(t, config)
	mustDeleteTopic(t, pair.Target, "t")
	mustTopic(t, pair.Target, "t", nil)
	wantStop(t, mustRun(t, config), replicate.StopTargetRecreated)
	order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
	s := mustRun(t, config)
	if !s.Complete {
		t.Errorf("summary %+v", s)
	}
	wantTiles(t, s, map[ledger.Tile]int64{ledger.Copied: 20})
	proveNothingMissing(t, pair)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestAcceptedWithALostTail: the source was created again, or cut, and the target
// has lost its tail as well. Accepting the one needs no word about the other, and
// all that the source holds is copied.
func TestAcceptedWithALostTail(t *testing.T) {
	for _, recreated := range []bool{true, false} {
		for _, generations := range []int{1, 2} {
			for _, lost := range []int64{4, 10, 15} {
				for _, recopy := range []bool{false, true} {
					name := fmt.Sprintf("%s, target cut at %d, %d generations, recopy %t", map[bool]string{true: "recreated", false: "cut at 10"}[recreated], lost, generations, recopy)
					t.Run(name, func(t *testing.T) { acceptedWithLoss(t, recreated, generations, lost, recopy) })
				}
			}
		}
	}
}

func acceptedWithLoss(t *testing.T, recreated bool, generations int, lost int64, recopy bool) {
	pair, config := copiedBig(t, 20)
	if generations == 2 { // the second one begins above where the target is cut then
		mustLoseTail(t, pair.Target, 17)
		mustRun(t, config)
		order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
		mustRun(t, config)
	}
	mustLoseTail(t, pair.Target, lost)
	o, reason, start := ledger.Order{SourceTopic: "t", AcceptTruncated: true, Recopy: recopy}, replicate.StopSourceTruncated, min(lost, 10)
	if recreated {
		mustRecreate(t, pair, 1)
		o, reason, start = ledger.Order{SourceTopic: "t", AcceptRecreated: true, Recopy: recopy}, replicate.StopTopicRecreated, 0
	} else {
		mustLoseTail(t, pair.Source, 10)
	}
	appendBig(t, pair, 1000, 12)
	wantStop(t, mustRun(t, config), reason)
	order(t, config, o)
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNothingMissing(t, pair)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
	offline(t, config, func(book *ledger.Ledger) {
		pairs := book.Pairs()
		old, next := pairs[generations-1], pairs[generations]
		if old.Closed == nil || old.Closed.Cut == nil || !strings.Contains(old.Closed.Reason, "the target's log ends at offset") ||
			next.ScopeStart != start || next.TargetBase != lost || len(book.Orders()) != 0 {
			t.Errorf("pairs %+v, orders %+v", pairs, book.Orders())
		}
	})
}

// TestOffsetsGivenUpNeedAnotherProducer: the target's retention has deleted all that
// a newer ledger had copied, and its broker still knows the sequence numbers. What
// is copied again behind it goes under a producer id of its own, or would be taken
// for sent before; also where the run that gave the offsets up ended before it sent.
func TestOffsetsGivenUpNeedAnotherProducer(t *testing.T) {
	pair, config := copiedBig(t, 4)
	older := copyFile(t, config.LedgerPath)
	appendBig(t, pair, 4, 3)
	mustRun(t, config)
	mustDelete(t, pair.Target, "t", 0, 7)
	config.LedgerPath = older
	wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
	order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
	refused := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.InitProducerID, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	given := config
	given.UnavailableAfter = 50 * time.Millisecond
	if s := mustRun(t, given); s.Complete {
		t.Errorf("no producer id was given, and all is copied: %+v", s)
	}
	refused.Remove()
	order(t, config, ledger.Order{SourceTopic: "t"})
	s := mustRun(t, config)
	if !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 4 + 3, ledger.Foreign: 3})
}

// TestRecopyOfWhatRetentionLeftNothingInFrontOf: the target's log is empty up to
// the cut, as its retention has deleted all. What was deleted cannot be compared,
// and is no reason not to copy again what the target lost.
func TestRecopyOfWhatRetentionLeftNothingInFrontOf(t *testing.T) {
	for name, c := range map[string]struct{ start, cut int64 }{"all deleted": {9, 9}, "one is left": {8, 9}, "half": {5, 5}} {
		t.Run(name, func(t *testing.T) {
			pair, config := copiedBig(t, 10)
			mustDelete(t, pair.Target, "t", 0, c.start)
			mustLoseTail(t, pair.Target, c.cut)
			wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
			order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
			s := mustRun(t, config)
			if !s.Complete {
				t.Errorf("summary %+v", s)
			}
			wantTiles(t, s, map[ledger.Tile]int64{ledger.BeforeStart: c.cut, ledger.Copied: 10 - c.cut})
			proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 10})
		})
	}
}

// TestSourceRecreatedAndTargetGone: both topics are gone, and the source's was
// created again, maybe the target's too. Each takes a word of its own; the first is
// not forgotten by the second.
func TestSourceRecreatedAndTargetGone(t *testing.T) {
	for _, made := range []bool{false, true} {
		for _, running := range []bool{false, true} {
			for _, partitions := range []int32{1, 2} {
				for _, whole := range []bool{false, true} {
					t.Run(fmt.Sprintf("target made again %v, running %v, %d partitions, word to the topic %v", made, running, partitions, whole), func(t *testing.T) {
						t.Parallel()
						bothGone(t, made, running, partitions, whole)
					})
				}
			}
		}
	}
}

func bothGone(t *testing.T, made, running bool, partitions int32, whole bool) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	config := livingConfig(t, pair, "t")
	mustRun(t, once(config))
	mustRecreate(t, pair, partitions)
	mustDeleteTopic(t, pair.Target, "t")
	if made {
		mustTopic(t, pair.Target, "t", nil)
	}
	for p := range partitions {
		mustAppend(t, pair.Source.Bootstrap, on("t", p, 1000, 7)...)
	}
	accept, recopy := ledger.Order{SourceTopic: "t", AcceptRecreated: true}, ledger.Order{SourceTopic: "t", Recopy: true}
	if whole {
		accept.Partition, recopy.Partition = -1, -1
	}
	if running {
		l := live(t, pair, config)
		l.stopped("t", 0, replicate.StopTopicRecreated)
		mustOrder(t, l.Order, accept)
		if !made {
			l.stopped("t", 0, replicate.StopTargetDeleted)
			mustOrder(t, l.Order, recopy)
		}
		for p := range partitions {
			l.at("t", p, 7)
		}
		l.end()
	} else {
		mustRun(t, once(config))
		order(t, config, accept)
		s := mustRun(t, once(config))
		if !made {
			if s.Complete {
				t.Errorf("the target topic is gone: %+v", s)
			}
			order(t, config, recopy)
			s = mustRun(t, once(config))
		}
		if !s.Complete {
			t.Errorf("summary %+v", s)
		}
	}
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("t"))
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 7})
	offline(t, config, func(book *ledger.Ledger) {
		if orders := book.Orders(); len(orders) != 0 {
			t.Errorf("orders %+v are left", orders)
		}
	})
}
