package replicate_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// spoil makes what the newest batch on the target says of its codec untrue, and
// its checksum right again.
func spoil(t *testing.T, pair *kafkatest.Pair) {
	t.Helper()
	err := pair.Target.EditLog("t", 0, func(log *kafkatest.Log) error {
		raw := log.Batches[len(log.Batches)-1]
		raw[22] = 3 // lz4, which the body is not
		binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestForeignBatchThatCannotBeRead: whose a batch is its header says.
func TestForeignBatchThatCannotBeRead(t *testing.T) {
	pair, config := copied(t, 10)
	mustAppendBatch(t, pair, ours(t, ledger.Producer{ID: 777777}, 0, numbered(100, 3)))
	spoil(t, pair)
	config.UnavailableAfter = time.Second
	s := mustRun(t, config)
	wantStop(t, s, replicate.StopForeignWriter)
	wantTiles(t, s, map[ledger.Tile]int64{ledger.Foreign: 3})
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 5)...)
	order(t, config, ledger.Order{SourceTopic: "t", TolerateForeign: true})
	s = mustRun(t, config)
	wantTiles(t, s, map[ledger.Tile]int64{ledger.Copied: 5})
	if !s.Complete {
		t.Errorf("tolerated: %+v", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestBooksEndThatCannotBeRead: in the place of the last record of the books
// stands a batch of somebody else that cannot be read: it is not what they say.
func TestBooksEndThatCannotBeRead(t *testing.T) {
	pair, config := copied(t, 10)
	if err := pair.Target.LoseTail("t", 0, 0); err != nil {
		t.Fatal(err)
	}
	mustAppendBatch(t, pair, ours(t, ledger.Producer{ID: 777777}, 0, numbered(100, 12)))
	spoil(t, pair)
	config.UnavailableAfter = time.Second
	s := mustRun(t, config)
	wantStop(t, s, replicate.StopTargetLostRecords)
	wantTiles(t, s, nil)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestAnotherCopierWhileRunning: what another copier writes while this one runs is
// not taken for what a dead one left, though it is the source's next records.
func TestAnotherCopierWhileRunning(t *testing.T) {
	t.Parallel()
	pair, config := copied(t, 10)
	living := livingConfig(t, pair, "t")
	living.LedgerPath = config.LedgerPath
	l := live(t, pair, living)
	l.at("t", 0, 10)
	gate := make(chan struct{})
	fetch := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Count: -1, Gate: gate})
	if err := fetch.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 3)...)
	mustAppendBatch(t, pair, ours(t, ledger.Producer{ID: 777777}, 0, numbered(10, 3)))
	l.stopped("t", 0, replicate.StopForeignWriter) // without a look at the source
	close(gate)
	l.end()
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Foreign: 3})
}

// TestCopierThatBeginsBesideAnother: what one copier wrote before another begins is
// for that one what a newer ledger's copier left: the source's next records. So the
// first alone meets somebody else, and stops. The other goes on, and what the first
// wrote last is in its books as written twice.
func TestCopierThatBeginsBesideAnother(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	late := livingConfig(t, pair, "t")
	once := late
	once.Once = true
	mustRun(t, once) // its ledger is of a target without records
	first := live(t, pair, livingConfig(t, pair, "t"))
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 4)...)
	first.at("t", 0, 4)
	gate := make(chan struct{})
	held := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Gate: gate})
	mustAppend(t, pair.Source.Bootstrap, numbered(4, 3)...)
	if err := held.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	other := live(t, pair, late)
	other.at("t", 0, 7)
	close(gate)
	first.stopped("t", 0, replicate.StopForeignWriter)
	s := other.until("t", 0, "at the target's end", func(s replicate.PartitionStatus) bool { return s.TargetEnd == 10 })
	if s.State != replicate.StateRunning {
		t.Errorf("the one that began later: %+v", s)
	}
	first.end()
	other.end()
	proveNotes(t, pair, first.config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 7, ledger.Foreign: 3})
	proveNotes(t, pair, late.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 7, ledger.Duplicate: 3})
}
