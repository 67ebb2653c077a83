package replicate_test

import (
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// retired copies a topic of three partitions, 5 records each, of which the source
// then has a single one: a person accepted that.
func retired(t *testing.T) (*kafkatest.Pair, replicate.Config) {
	t.Helper()
	pair := stored(t)
	if err := pair.Source.CreateTopic(t.Context(), "t", 3, nil); err != nil {
		t.Fatal(err)
	}
	for p := range int32(3) {
		mustAppend(t, pair.Source.Bootstrap, on("t", p, 0, 5)...)
	}
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustRecreate(t, pair, 1)
	mustRun(t, config)
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true})
	if s := mustRun(t, config); !s.Complete {
		t.Fatalf("summary %+v", s)
	}
	return pair, config
}

// TestRetiredPartitionComesBack: a partition that left the flow and is there again,
// by itself or with another topic of the name, is one that was added: it is copied
// from offset 0 wherever the flow is to start, and what is gone there is lost.
func TestRetiredPartitionComesBack(t *testing.T) {
	for _, recreated := range []bool{false, true} {
		for _, start := range []string{"earliest", "latest"} {
			name := map[bool]string{false: "grown", true: "recreated"}[recreated] + " " + start
			t.Run(name, func(t *testing.T) { retiredComesBack(t, recreated, start) })
		}
	}
}

func retiredComesBack(t *testing.T, recreated bool, start string) {
	t.Parallel()
	pair, config := retired(t)
	if recreated {
		mustRecreate(t, pair, 4)
	} else {
		mustGrow(t, pair.Source, "t", 4)
	}
	for p := int32(1); p < 4; p++ { // the last one has never been there before
		mustAppend(t, pair.Source.Bootstrap, on("t", p, 100, 4)...)
		mustDelete(t, pair.Source, "t", p, 1)
	}
	var err error
	if config.Start, err = replicate.ParseStartPoint(start); err != nil {
		t.Fatal(err)
	}
	s := mustRun(t, config)
	if recreated {
		order(t, config, ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true})
		s = mustRun(t, config)
	}
	if s.Tiles[ledger.Lost] != 3 || s.Tiles[ledger.Copied] != 9 || s.Tiles[ledger.BeforeStart] != 0 || s.Complete {
		t.Errorf("summary %+v; want 3 lost, 9 copied", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestRetiredWithALostTail: the target has lost the tail of a partition that the
// source has no more. Accepting the one needs no word about the other: the books
// are cut off there.
func TestRetiredWithALostTail(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	if err := pair.Source.CreateTopic(t.Context(), "t", 2, nil); err != nil {
		t.Fatal(err)
	}
	config := configFor(t, pair, "t")
	for _, n := range []int{2, 3} { // in batches of their own
		mustAppend(t, pair.Source.Bootstrap, on("t", 1, 0, n)...)
		mustRun(t, config)
	}
	mustRecreate(t, pair, 1)
	if err := pair.Target.LoseTail("t", 1, 2); err != nil {
		t.Fatal(err)
	}
	mustRun(t, config)
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
	offline(t, config, func(book *ledger.Ledger) {
		old := book.Pairs()[2]
		if old.Closed == nil || old.Closed.Cut == nil || *old.Closed.Cut != (ledger.Cut{Source: 2, Target: 2}) {
			t.Errorf("pair %+v, want one that is cut off at 2", old)
		}
	})
}
