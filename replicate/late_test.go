package replicate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// TestSecondCopyOfOrphans: what of ours has no source any more, and is there
// twice, is nobody else's; the records beside it are duplicates with their origin.
func TestSecondCopyOfOrphans(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() { mustAppend(t, pair.Source.Bootstrap, numbered(10, 6)...) })
	mustAppend(t, pair.Source.Bootstrap, numbered(16, 4)...)
	editSource(t, pair, func(batches [][]byte) [][]byte {
		b, err := kafkatest.DecodeBatch(batches[1])
		if err != nil {
			t.Fatal(err)
		}
		b.Records = append(b.Records[:2:2], b.Records[4:]...) // offsets 12 and 13
		batches[1] = encode(t, b)
		return batches
	})
	mustRun(t, config) // target offsets 12 and 13 are orphans, the log ends at 20
	if err := pair.Target.ForgetProducers("t", 0); err != nil {
		t.Fatal(err)
	}
	p := producers(t, config)[0]
	if base := mustAppendBatch(t, pair, ours(t, p, p.Next(10), numbered(10, 6))); base != 20 {
		t.Fatalf("appended at %d", base)
	}
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 18, ledger.Orphan: 2, ledger.Duplicate: 4, ledger.Foreign: 2})
}

// TestLateBatchOfAnEarlierGeneration: what the producer of an earlier generation
// sent, and what landed behind the books of the next one, is named and stops
// nothing; with another producer's epoch it is somebody else's.
func TestLateBatchOfAnEarlierGeneration(t *testing.T) {
	for name, foreign := range map[string]bool{"ours": false, "of another epoch": true} {
		t.Run(name, func(t *testing.T) {
			pair, config := copiedBig(t, 20)
			p := producers(t, config)[0]
			if err := pair.Target.LoseTail("t", 0, 15); err != nil {
				t.Fatal(err)
			}
			wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
			order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
			mustRun(t, config)
			if err := pair.Target.ForgetProducers("t", 0); err != nil {
				t.Fatal(err)
			}
			sequence := p.Next(20)
			if foreign {
				p.Epoch++
			}
			mustAppendBatch(t, pair, ours(t, p, sequence, numbered(900, 3)))
			s := mustRun(t, config)
			if foreign {
				wantStop(t, s, replicate.StopForeignWriter)
			} else if !s.Complete {
				t.Errorf("summary %+v", s)
			}
			proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 20, ledger.Foreign: 3})
		})
	}
}

// TestLateBatchOfAnEarlierGenerationWhileRunning: it lands in front of a batch that
// is on its way. It is named, and the copy goes on; beside somebody else's it does not.
func TestLateBatchOfAnEarlierGenerationWhileRunning(t *testing.T) {
	for _, foreign := range []int{0, 2} {
		t.Run(fmt.Sprintf("and %d foreign records", foreign), func(t *testing.T) {
			t.Parallel()
			pair, config := copiedBig(t, 20)
			p := producers(t, config)[0]
			mustLoseTail(t, pair.Target, 15)
			mustRun(t, config)
			order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
			mustRun(t, config)
			if err := pair.Target.ForgetProducers("t", 0); err != nil {
				t.Fatal(err)
			}
			gate := make(chan struct{})
			fault := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Gate: gate})
			living := livingConfig(t, pair, "t")
			living.LedgerPath = config.LedgerPath
			l := live(t, pair, living)
			appendBig(t, pair, 20, 3)
			if err := fault.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			mustAppendBatch(t, pair, ours(t, p, p.Next(20), numbered(900, 3)))
			if foreign > 0 {
				mustAppend(t, pair.Target.Bootstrap, numbered(950, foreign)...)
			}
			close(gate)
			want := map[ledger.Tile]int64{ledger.Copied: 23, ledger.Foreign: 3 + int64(foreign)}
			if foreign > 0 {
				s := l.stopped("t", 0, replicate.StopForeignWriter)
				if !strings.Contains(s.Detail, "[23, 25)") {
					t.Errorf("stopped because of %q", s.Detail)
				}
				mustOrder(t, l.Order, ledger.Order{SourceTopic: "t"})
			}
			l.at("t", 0, 23)
			if s := l.Status()[0]; s.State != replicate.StateRunning {
				t.Errorf("status %+v", s)
			}
			l.end()
			proveNotes(t, pair, config.LedgerPath, want)
			proveNothingMissing(t, pair)
		})
	}
}
