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

// TestIdlePartitionNoticesItsTarget: what befalls the target is noticed although
// there is nothing to copy.
func TestIdlePartitionNoticesItsTarget(t *testing.T) {
	for i, x := range []struct {
		reason replicate.StopReason
		befall func(*testing.T, *kafkatest.Pair)
	}{
		{replicate.StopForeignWriter, func(t *testing.T, p *kafkatest.Pair) { mustAppend(t, p.Target.Bootstrap, numbered(100, 1)...) }},
		{replicate.StopTargetLostRecords, func(t *testing.T, p *kafkatest.Pair) {
			if err := p.Target.LoseTail("t", 0, 3); err != nil {
				t.Error(err)
			}
		}},
		{replicate.StopTargetLostRecords, func(t *testing.T, p *kafkatest.Pair) { cutAndFill(t, p, 3, 2) }},
		{replicate.StopTargetDeleted, func(t *testing.T, p *kafkatest.Pair) { mustDeleteTopic(t, p.Target, "t") }},
		{replicate.StopTargetRecreated, func(t *testing.T, p *kafkatest.Pair) {
			mustDeleteTopic(t, p.Target, "t")
			mustTopic(t, p.Target, "t", nil)
		}},
	} {
		t.Run(fmt.Sprint(i, x.reason), func(t *testing.T) {
			t.Parallel()
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			appendBig(t, pair, 0, 5)
			l := live(t, pair, livingConfig(t, pair, "t"))
			l.at("t", 0, 5)
			x.befall(t, pair)
			l.stopped("t", 0, x.reason)
			l.end()
		})
	}
}

// cutAndFill has the target's log cut, and somebody else write so many records.
func cutAndFill(t *testing.T, pair *kafkatest.Pair, end int64, foreign int) {
	t.Helper()
	mustLoseTail(t, pair.Target, end)
	mustAppend(t, pair.Target.Bootstrap, numbered(1000, foreign)...)
}

// TestHoleThatOthersFilled: the target's log was cut, and what others wrote since
// ends exactly where the books do. No run calls that complete, none writes behind
// it, and it cannot be copied again.
func TestHoleThatOthersFilled(t *testing.T) {
	for _, behind := range []int{0, 2} { // records of others behind the copy's, in the books
		for _, more := range []int{0, 3} {
			t.Run(fmt.Sprintf("%d foreign records, %d new ones", behind, more), func(t *testing.T) {
				pair, config := copiedBig(t, 8)
				if behind > 0 {
					order(t, config, ledger.Order{SourceTopic: "t", TolerateForeign: true})
					mustAppend(t, pair.Target.Bootstrap, numbered(100, behind)...)
					mustRun(t, config)
				}
				cutAndFill(t, pair, 5, 3+behind)
				appendBig(t, pair, 8, more)
				for _, o := range []ledger.Order{{}, {Recopy: true}} {
					if o.SourceTopic = "t"; o.Recopy {
						order(t, config, o)
					}
					s := mustRun(t, config)
					wantStop(t, s, replicate.StopTargetLostRecords)
					wantTiles(t, s, nil)
					if len(s.Stopped) == 1 && !strings.Contains(s.Stopped[0].Detail, "offset 7 does not hold what the books say") {
						t.Errorf("stopped %+v", s.Stopped)
					}
				}
				if b, err := pair.Target.ReadBounds(t.Context(), "t", 0); err != nil || b.HighWatermark != int64(8+behind) {
					t.Errorf("bounds %+v (%v): something was written", b, err)
				}
				kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
			})
		}
	}
}

// TestHoleBehindARunningCopy: the target's log is cut and filled by others while a
// batch is on its way, of which the new leader knows nothing. What comes next is not
// written behind the hole.
func TestHoleBehindARunningCopy(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	appendBig(t, pair, 0, 5)
	config := livingConfig(t, pair, "t")
	config.RefreshInterval = time.Hour // it does not look by itself
	l := live(t, pair, config)
	l.at("t", 0, 5)
	cutAndFill(t, pair, 3, 2)
	refused := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "t", Err: kerr.NotLeaderForPartition})
	appendBig(t, pair, 5, 2)
	l.stopped("t", 0, replicate.StopTargetLostRecords)
	if refused.Hits() > 1 {
		t.Errorf("%d produce requests after it was known that there is another leader", refused.Hits())
	}
	l.end()
	if b, err := pair.Target.ReadBounds(t.Context(), "t", 0); err != nil || b.HighWatermark != 5 {
		t.Errorf("bounds %+v (%v): something was written", b, err)
	}
}

// TestEndOfTheBooksThatIsGone: retention or the cleaner took the records in
// front of the books' end: nothing can be said, and the copy goes on.
func TestEndOfTheBooksThatIsGone(t *testing.T) {
	for name, gone := range map[string]func(*kafkatest.Pair) error{
		"retention": func(p *kafkatest.Pair) error { return p.Target.DeleteRecords("t", 0, 8) },
		"the cleaner": func(p *kafkatest.Pair) error {
			return p.Target.EditLog("t", 0, func(l *kafkatest.Log) error {
				empty, err := kafkatest.DecodeBatch(l.Batches[len(l.Batches)-1])
				if err != nil {
					return err
				}
				empty.Records = nil
				l.Batches[len(l.Batches)-1], err = empty.Encode()
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			pair, config := copiedBig(t, 8)
			if err := gone(pair); err != nil {
				t.Fatal(err)
			}
			if s := mustRun(t, config); !s.Complete {
				t.Errorf("nothing to do: %+v", s)
			}
			appendBig(t, pair, 8, 2)
			if s := mustRun(t, config); !s.Complete {
				t.Errorf("summary %+v", s)
			}
			kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
		})
	}
}

// TestIdleTargetsAreNotRead: as long as a target partition keeps its leader, it is
// not read again.
func TestIdleTargetsAreNotRead(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	appendBig(t, pair, 0, 5)
	reads := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Topic: "t", Count: -1, Delay: 1})
	looks := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.ListOffsets, Topic: "t", Count: -1, Delay: 1})
	l := live(t, pair, livingConfig(t, pair, "t"))
	l.at("t", 0, 5)
	for _, moves := range []int{0, 1} {
		if moves > 0 {
			if _, err := pair.Target.MoveLeader("t", 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := looks.Wait(t.Context(), looks.Hits()+5); err != nil {
			t.Fatal(err)
		}
		if reads.Hits() != moves {
			t.Errorf("%d leaders later the target was read %d times", moves, reads.Hits())
		}
	}
	l.end()
}
