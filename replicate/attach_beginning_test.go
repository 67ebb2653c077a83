package replicate_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// A changedBeginning is a source history whose first record is changed on the
// target.
type changedBeginning struct {
	name    string
	fill    func(t *testing.T, pair *kafkatest.Pair)
	expired int64 // source offsets that are deleted after they were copied
	offset  int64 // on the target, of the record that is changed
	want    string
}

func changedBeginnings() []changedBeginning {
	return []changedBeginning{
		{name: "dense", want: "source offset 0", fill: func(t *testing.T, pair *kafkatest.Pair) {
			inTens(t, pair.Source.Bootstrap, 0, 20)
		}},
		{name: "behind a marker", want: "source offset 0", fill: func(t *testing.T, pair *kafkatest.Pair) {
			mustTransaction(t, pair.Source.Bootstrap, true, numbered(0, 1)...)
			mustAppend(t, pair.Source.Bootstrap, numbered(1, 8)...)
		}},
		{name: "behind aborted data", want: "source offset 0", fill: func(t *testing.T, pair *kafkatest.Pair) {
			mustAppend(t, pair.Source.Bootstrap, numbered(0, 1)...)
			mustTransaction(t, pair.Source.Bootstrap, false, numbered(50, 3)...)
			mustAppend(t, pair.Source.Bootstrap, numbered(1, 5)...)
		}},
		{name: "in front of aborted data", want: "source offset 4", fill: func(t *testing.T, pair *kafkatest.Pair) {
			mustTransaction(t, pair.Source.Bootstrap, false, numbered(50, 3)...)
			inTens(t, pair.Source.Bootstrap, 0, 10)
		}},
		{name: "of what has not expired", want: "source offset 14", expired: 14, offset: 10, fill: func(t *testing.T, pair *kafkatest.Pair) {
			inTens(t, pair.Source.Bootstrap, 0, 10)
			mustTransaction(t, pair.Source.Bootstrap, false, numbered(50, 3)...)
			inTens(t, pair.Source.Bootstrap, 10, 10)
		}},
	}
}

// TestAttachChangedBeginning: what the source still has is never taken for what
// it has lost.
func TestAttachChangedBeginning(t *testing.T) {
	for _, c := range changedBeginnings() {
		t.Run(c.name, func(t *testing.T) {
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			c.fill(t, pair)
			config := configFor(t, pair, "t")
			mustRun(t, config)
			if c.expired > 0 {
				mustDelete(t, pair.Source, "t", 0, c.expired)
			}
			sabotage(t, pair, kafkatest.Sabotage{Damage: kafkatest.MutateValue, Offset: c.offset})
			_, report := lose(t, config)
			p := only(t, report, replicate.AttachRefused)
			for _, want := range []string{c.want, fmt.Sprintf("target offset %d", c.offset)} {
				if !strings.Contains(p.Detail, want) {
					t.Errorf("%q is not in %q", want, p.Detail)
				}
			}
		})
	}
}

// sabotage spoils the target of topic "t".
func sabotage(t *testing.T, pair *kafkatest.Pair, s kafkatest.Sabotage) {
	t.Helper()
	s.Topic = "t"
	if _, err := pair.Target.Sabotage(s); err != nil {
		t.Fatal(err)
	}
}

// TestAttachBegunLater: the copy was begun with --start; that the target never
// had the records in front is said.
func TestAttachBegunLater(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	inTens(t, pair.Source.Bootstrap, 0, 20)
	mustTransaction(t, pair.Source.Bootstrap, false, numbered(20, 3)...)
	config := configFor(t, pair, "t")
	start, err := replicate.ParseStartPoint("latest")
	if err != nil {
		t.Fatal(err)
	}
	config.Start = start
	mustRun(t, config)
	inTens(t, pair.Source.Bootstrap, 20, 30)
	mustRun(t, config)
	again, report := lose(t, config)
	p := only(t, report, replicate.Attached)
	if p.BeforeStart != 24 || p.Copied != 30 || p.Unprovable != (replicate.Unprovable{NotOnTarget: 20}) {
		t.Errorf("%+v", p)
	}
	goesOn(t, pair, again)
}

// TestAttachLostFirstRecord: the first record has vanished from a log that
// begins with its first offset. Where the copier's numbers tell, it is refused;
// else the record is counted.
func TestAttachLostFirstRecord(t *testing.T) {
	for _, batches := range []int{1, 2} {
		t.Run(fmt.Sprint(batches), func(t *testing.T) {
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			config := configFor(t, pair, "t")
			for i := range batches {
				inTens(t, pair.Source.Bootstrap, 10*i, 10)
				mustRun(t, config)
			}
			sabotage(t, pair, kafkatest.Sabotage{Damage: kafkatest.Drop, Offset: 0, Shift: true})
			_, report := lose(t, config)
			p := report.Partitions[0]
			t.Log(p.Detail)
			switch {
			case p.Verdict == replicate.Attached && batches == 1 && p.Unprovable.NotOnTarget == 1:
			case p.Verdict == replicate.AttachRefused && batches == 2 && strings.Contains(p.Detail, "source offset 0"):
			default:
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestAttachBeginningsWithAbortedData: equal records, and what was never copied
// in front of them; both beginnings are there.
func TestAttachBeginningsWithAbortedData(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	equal := numbered(7, 1)[0]
	mustTransaction(t, pair.Source.Bootstrap, false, equal, equal)
	for range 3 {
		mustAppend(t, pair.Source.Bootstrap, equal, numbered(8, 1)[0])
	}
	config := configFor(t, pair, "t")
	mustRun(t, config)
	again, report := lose(t, config)
	if p := only(t, report, replicate.Attached); p.Copied != 6 || p.Unprovable.Any() {
		t.Errorf("%+v", p)
	}
	sameBooks(t, config.LedgerPath, again.LedgerPath)
	goesOn(t, pair, again)
}

// TestAttachEmptiedTarget: the target has deleted all that it held, and the
// source has not: a run would copy it once more. Where the source has nothing
// either, there is nothing to copy.
func TestAttachEmptiedTarget(t *testing.T) {
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprint(both), func(t *testing.T) {
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			inTens(t, pair.Source.Bootstrap, 0, 20)
			config := configFor(t, pair, "t")
			mustRun(t, config)
			mustDelete(t, pair.Target, "t", 0, 20)
			if !both {
				_, report := lose(t, config)
				if p := only(t, report, replicate.AttachRefused); report.LedgerPath != "" || !strings.Contains(p.Detail, "copy all of it again") {
					t.Errorf("%q: %+v", report.LedgerPath, p)
				}
				return
			}
			mustDelete(t, pair.Source, "t", 0, 20)
			again, report := lose(t, config)
			if p := only(t, report, replicate.AttachEmpty); p.Unprovable != (replicate.Unprovable{BeforeStart: 20}) {
				t.Errorf("%+v", p)
			}
			goesOn(t, pair, again)
		})
	}
}

// TestAttachNothingCopiedYet: nothing is on the target, so the ledger has no
// books; a run with it begins them.
func TestAttachNothingCopiedYet(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	again, report := lose(t, configFor(t, pair, "t"))
	if p := only(t, report, replicate.AttachEmpty); report.LedgerPath != again.LedgerPath || p.Unprovable.Any() {
		t.Errorf("%q: %+v", report.LedgerPath, p)
	}
	goesOn(t, pair, again)
}

// TestAttachWithoutDirectory: the ledger's path is named as it was given.
func TestAttachWithoutDirectory(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	config := configFor(t, pair, "t")
	config.LedgerPath = filepath.Join(t.TempDir(), "none", "x")
	_, err := replicate.Attach(t.Context(), config, nil)
	want := fmt.Sprintf("create ledger %s: there is no directory %s", config.LedgerPath, filepath.Dir(config.LedgerPath))
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), ".new-") {
		t.Errorf("%v, want %q", err, want)
	}
}
