package replicate_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// inTens appends n records of "t" in batches of ten.
func inTens(t *testing.T, b kafkatest.Bootstrap, from, n int) {
	t.Helper()
	for i := from; i < from+n; i += 10 {
		mustAppend(t, b, numbered(i, min(10, from+n-i))...)
	}
}

// goesOn appends more to the source and expects that a run with the attached
// ledger copies exactly that.
func goesOn(t *testing.T, pair *kafkatest.Pair, config replicate.Config) {
	t.Helper()
	mustAppend(t, pair.Source.Bootstrap, numbered(1000, 10)...)
	got := mustRun(t, config)
	if !got.Complete || got.Tiles[ledger.Copied] != 10 {
		t.Errorf("the next run: %+v", got)
	}
}

func TestAttachTransactions(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	inTens(t, pair.Source.Bootstrap, 0, 20)
	mustTransaction(t, pair.Source.Bootstrap, true, numbered(20, 5)...)
	mustTransaction(t, pair.Source.Bootstrap, false, numbered(30, 5)...)
	inTens(t, pair.Source.Bootstrap, 40, 10)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	again, report := lose(t, config)
	if p := only(t, report, replicate.Attached); p.Copied != 35 || p.Unprovable.Any() {
		t.Errorf("%+v", p)
	}
	sameBooks(t, config.LedgerPath, again.LedgerPath)
	goesOn(t, pair, again)
}

// TestAttachCompacted: both the source before it was copied, and afterwards.
func TestAttachCompacted(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", map[string]string{"cleanup.policy": "compact"})
	for round := range 3 {
		for i := range 20 {
			records := numbered(i, 1)
			records[0].Value = fmt.Appendf(nil, "%d in round %d", i, round)
			mustAppend(t, pair.Source.Bootstrap, records...)
		}
	}
	config := configFor(t, pair, "t")
	mustRun(t, config)
	if err := pair.Source.Clean("t", 0, kafkatest.Cleaner{}); err != nil {
		t.Fatal(err)
	}
	again, report := lose(t, config)
	p := only(t, report, replicate.Attached)
	if p.Copied+p.Orphans != 60 || p.Orphans == 0 || p.Unprovable.Orphans != p.Orphans || p.Unprovable.StaleKeys == 0 {
		t.Errorf("%+v", p)
	}
	goesOn(t, pair, again)
	// Whether a tombstone was among what is gone nobody can tell.
	books := kafkatest.OpenLedger(t, again.LedgerPath, ledger.Options{ReadOnly: true})
	defer books.Close()
	doubts := books.UnacceptedDoubts(books.Pairs()[0].ID)
	if len(doubts) != 1 || doubts[0].Range.Len() != p.Unprovable.StaleKeys {
		t.Errorf("doubts %+v, want one about %d offsets", doubts, p.Unprovable.StaleKeys)
	}
}

// TestAttachStampedTarget: the target's times are not the source's.
func TestAttachStampedTarget(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", map[string]string{"message.timestamp.type": "LogAppendTime"})
	inTens(t, pair.Source.Bootstrap, 0, 30)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	if err := pair.Target.StampAppendTime("t", 0, time.UnixMilli(1_800_000_000_000)); err != nil {
		t.Fatal(err)
	}
	again, report := lose(t, config)
	if p := only(t, report, replicate.Attached); p.Copied != 30 || p.Unprovable.Any() {
		t.Errorf("%+v", p)
	}
	goesOn(t, pair, again)
}

// TestAttachBehindForeign: the copy was begun behind what others had written,
// and others wrote later.
func TestAttachBehindForeign(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	mustAppend(t, pair.Target.Bootstrap, numbered(500, 7)...)
	inTens(t, pair.Source.Bootstrap, 0, 30)
	config := configFor(t, pair, "t")
	config.Append = []string{"t"}
	mustRun(t, config)
	mustAppend(t, pair.Target.Bootstrap, numbered(600, 3)...)
	again, report := lose(t, config)
	if p := only(t, report, replicate.Attached); p.Copied != 30 || p.Foreign != 10 || p.Unprovable != (replicate.Unprovable{Foreign: 10}) {
		t.Errorf("%+v", p)
	}
	again.Append = nil
	goesOn(t, pair, again)
}

// TestAttachAddedPartition: one partition was added, another holds nothing.
func TestAttachAddedPartition(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	inTens(t, pair.Source.Bootstrap, 0, 20)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	growTopic(t, pair.Source.NewClient(t), "t", 3)
	mustAppend(t, pair.Source.Bootstrap, on("t", 1, 0, 10)...)
	mustRun(t, config)
	again, report := lose(t, config)
	var verdicts []replicate.AttachVerdict
	for _, p := range report.Partitions {
		verdicts = append(verdicts, p.Verdict)
	}
	if fmt.Sprint(verdicts) != "[attached attached empty]" {
		t.Errorf("%+v", report)
	}
	goesOn(t, pair, again)
}

// TestAttachAfterAdoption: a second copier adopted the tail of one that died.
func TestAttachAfterAdoption(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() { inTens(t, pair.Source.Bootstrap, 10, 30) })
	mustComplete(t, pair, config)
	again, report := lose(t, config)
	only(t, report, replicate.Attached)
	sameBooks(t, config.LedgerPath, again.LedgerPath)
	// Attached twice: the producer id has changed in between.
	goesOn(t, pair, again)
	third, report := lose(t, again)
	if p := only(t, report, replicate.Attached); p.Copied != 50 || p.Unprovable.Any() {
		t.Errorf("%+v", p)
	}
	sameBooks(t, again.LedgerPath, third.LedgerPath)
}

// TestAttachToStrangers: nothing on the target is a copy, or nothing is there.
func TestAttachToStrangers(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	inTens(t, pair.Source.Bootstrap, 0, 20)
	config := configFor(t, pair, "t")
	if _, err := replicate.Attach(t.Context(), config, nil); !errors.Is(err, replicate.ErrNoAttach) {
		t.Errorf("%v, want that there is nothing to attach", err)
	}
	mustTopic(t, pair.Target, "t", nil)
	inTens(t, pair.Target.Bootstrap, 700, 20)
	_, report := lose(t, config)
	if p := only(t, report, replicate.AttachRefused); report.LedgerPath != "" {
		t.Errorf("a ledger without a book: %+v", p)
	}
}

// TestAttachInterrupted: an attach that is told to end leaves nothing.
func TestAttachInterrupted(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	inTens(t, pair.Source.Bootstrap, 0, 200)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	config.LedgerPath = filepath.Join(t.TempDir(), "new.ledger")
	ctx, cancel := context.WithCancelCause(t.Context())
	told := errors.New("told to end")
	_, err := replicate.Attach(ctx, config, func(replicate.AttachProgress) { cancel(told) })
	if !errors.Is(err, told) && err != nil {
		t.Errorf("%v", err)
	}
	left, globErr := filepath.Glob(config.LedgerPath + "*")
	if globErr != nil || err != nil && len(left) > 0 {
		t.Errorf("left behind: %v %v", left, globErr)
	}
}

// TestAttachOfALaterGeneration: the source was created again, and the copier wrote
// the new topic's records behind the old one's. What is of neither log now is
// counted, and nobody is told that all is well.
func TestAttachOfALaterGeneration(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	inTens(t, pair.Source.Bootstrap, 0, 20)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustDeleteTopic(t, pair.Source, "t")
	mustTopic(t, pair.Source, "t", nil)
	inTens(t, pair.Source.Bootstrap, 500, 30)
	mustRun(t, config) // stops
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true})
	mustRun(t, config)
	again, report := lose(t, config)
	if p := only(t, report, replicate.Attached); p.Copied != 30 || p.Foreign != 20 || p.Unprovable != (replicate.Unprovable{Foreign: 20}) {
		t.Errorf("%+v", p)
	}
	goesOn(t, pair, again)
}

// TestStaleKeysBehindAnAttachedCopy: when a copy was last at the source's end is
// known of one that is there when its ledger is made anew, and of no other.
func TestStaleKeysBehindAnAttachedCopy(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name    string
		lagging bool
		after   time.Duration
		want    []ledger.Range
	}{
		{"behind when it was attached", true, time.Minute, []ledger.Range{{Start: 15, End: 20}}},
		{"at the end, and read soon", false, time.Minute, nil},
		{"at the end, and read late", false, 3 * day, []ledger.Range{{Start: 15, End: 20}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDoubtful(t)
			d.records(0, 10)
			d.run(0)
			d.clock.forward(3 * day)
			if test.lagging {
				d.records(10, 20)
			}
			again, report := lose(t, d.config)
			if p := only(t, report, replicate.Attached); p.Copied != 10 || p.Unprovable.Any() {
				t.Errorf("%+v", p)
			}
			if !test.lagging {
				d.records(10, 20)
			}
			d.without(15)
			d.config = again
			d.run(test.after)
			d.want(test.want...)
		})
	}
}
