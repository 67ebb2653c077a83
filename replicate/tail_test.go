package replicate_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// rebook makes a ledger whose books end somewhere in what config's say: the state
// after a copier died in the middle of an adoption.
func rebook(t *testing.T, config replicate.Config, source, target int64) replicate.Config {
	t.Helper()
	l, err := ledger.Open(config.LedgerPath, ledger.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	pair := l.Pairs()[0]
	var entries []ledger.Entry
	for e, err := range l.Entries(pair.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	identity := l.Identity()
	identity.Format = 0
	producer := l.Producers(pair.ID)[0]
	_ = l.Close()
	config.LedgerPath += ".rebooked"
	made, err := ledger.Create(config.LedgerPath, identity, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pair.ID, pair.OpenedMillis, pair.Producer = 0, 0, producer
	ids, err := made.OpenPairs([]ledger.Pair{pair})
	if err != nil {
		t.Fatal(err)
	}
	e := entries[0]
	e.Source.End, e.Target.End, e.Digest, e.Bytes = source, target, 0, 0
	var records [][]byte
	for _, r := range numbered(0, int(target)) {
		records = append(records, naiveCanonical(kafkatest.Record{Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}, false))
	}
	digest, bytes := naiveDigest(records)
	e.Digest, e.Bytes = ledger.Digest(digest), bytes
	if err := made.Append(ids[0], e); err != nil {
		t.Fatal(err)
	}
	if err := made.SetScope(ledger.Scope{Topics: []string{"t"}}); err != nil {
		t.Fatal(err)
	}
	if err := made.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestAdoptionThatEndedInsideABatch: an adoption booked a part of a batch of a
// dead copier and was killed in its turn. The next start goes on in the middle of
// that batch.
func TestAdoptionThatEndedInsideABatch(t *testing.T) {
	pair, config := copied(t, 30)
	config = rebook(t, config, 17, 17)
	mustAppend(t, pair.Source.Bootstrap, numbered(30, 5)...)
	got := mustComplete(t, pair, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 18})
}

// TestTargetCutAndWrittenAgain: the target's log was cut below the books and is as
// long again, or longer, so that its end shows nothing.
func TestTargetCutAndWrittenAgain(t *testing.T) {
	for name, more := range map[string]int{"a batch across the books' end": 30, "a batch that ends there": 10} {
		t.Run(name, func(t *testing.T) {
			pair, config := copied(t, 10)
			mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
			mustRun(t, config)
			p := producers(t, config)[0]
			mustAppend(t, pair.Source.Bootstrap, numbered(20, more)...)
			if err := pair.Target.LoseTail("t", 0, 10); err != nil {
				t.Fatal(err)
			}
			if err := pair.Target.ForgetProducers("t", 0); err != nil {
				t.Fatal(err)
			}
			mustAppendBatch(t, pair, ours(t, p, 20, numbered(20, more)))
			for range 2 {
				s := mustRun(t, config)
				wantStop(t, s, replicate.StopTargetLostRecords)
				wantTiles(t, s, nil)
				t.Log(s.Stopped)
			}
			order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
			s := mustRun(t, config)
			wantStop(t, s, replicate.StopTargetLostRecords) // a hole is not filled
			offline(t, config, func(book *ledger.Ledger) {
				if len(book.Pairs()) != 1 || len(book.Orders()) != 0 {
					t.Errorf("pairs %+v, orders %+v", book.Pairs(), book.Orders())
				}
			})
		})
	}
}

// TestLateBatchesOfEarlierProducers: what lands late under a producer id that the
// pair used before is ours: a second copy, by number and content.
func TestLateBatchesOfEarlierProducers(t *testing.T) {
	pair, config := copied(t, 10)
	old := producers(t, config)[0]
	offline(t, config, func(book *ledger.Ledger) {
		id := book.Pairs()[0].ID
		next := ledger.Producer{ID: old.ID + 1000, Appended: book.End(id).Appended}
		if err := book.SetProducer(id, next); err != nil {
			t.Fatal(err)
		}
		if err := book.Commit(); err != nil {
			t.Fatal(err)
		}
	})
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	mustRun(t, config)
	mustAppendBatch(t, pair, ours(t, old, 10, numbered(10, 10))) // the broker's newest of that producer ends at 10
	mustAppend(t, pair.Source.Bootstrap, numbered(20, 5)...)
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 25, ledger.Duplicate: 10})
	proveNothingMissing(t, pair)
}

// TestLateProduceOfAKilledCopier: a request of a dead copier is executed after the
// next one has copied its records, and the target has forgotten the producer. The
// second copies are named; records that are not there yet are copied by it.
func TestLateProduceOfAKilledCopier(t *testing.T) {
	for name, records := range map[string][]*kgo.Record{
		"the same batch":             numbered(10, 10),
		"a batch in other pieces":    numbered(7, 9),
		"a batch that goes beyond":   numbered(15, 10),
		"two batches before the end": numbered(0, 20),
	} {
		t.Run(name, func(t *testing.T) {
			pair, config := copied(t, 10)
			mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
			mustRun(t, config)
			mustAppend(t, pair.Source.Bootstrap, numbered(20, 10)...)
			if err := pair.Target.ForgetProducers("t", 0); err != nil {
				t.Fatal(err)
			}
			from := int(records[0].Timestamp.UnixMilli() - numbered(0, 1)[0].Timestamp.UnixMilli())
			mustAppendBatch(t, pair, ours(t, producers(t, config)[0], int32(from), records))
			if s := mustRun(t, config); !s.Complete {
				t.Errorf("summary %+v", s)
			}
			twice := int64(min(from+len(records), 20) - from)
			proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 30, ledger.Duplicate: twice})
			proveNothingMissing(t, pair)
		})
	}
}

// TestSequenceNumbersWithOtherContent: under our producer id and old numbers stands
// what we never wrote. It is not called a second copy.
func TestSequenceNumbersWithOtherContent(t *testing.T) {
	pair, config := copied(t, 10)
	if err := pair.Target.ForgetProducers("t", 0); err != nil {
		t.Fatal(err)
	}
	mustAppendBatch(t, pair, ours(t, producers(t, config)[0], 3, numbered(500, 4)))
	wantStop(t, mustRun(t, config), replicate.StopForeignWriter)
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Foreign: 4})
}

// TestBatchInFrontOfOlderOnes: the target had forgotten the producer, refused the
// first of two batches and took the second; then the copier was killed.
func TestBatchInFrontOfOlderOnes(t *testing.T) {
	pair, config := copied(t, 10)
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(20, 10)...)
	if err := pair.Target.ForgetProducers("t", 0); err != nil {
		t.Fatal(err)
	}
	mustAppendBatch(t, pair, ours(t, producers(t, config)[0], 20, numbered(20, 10)))
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 30, ledger.Duplicate: 10})
	proveNothingMissing(t, pair)
}

// TestOrphansAmongEqualRecords: records that are gone from the source equal some
// that are not, so that the target's can be matched in more than one way.
func TestOrphansAmongEqualRecords(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() {
		same := numbered(10, 1)[0]
		mustAppend(t, pair.Source.Bootstrap, same, numbered(11, 1)[0], same, same, numbered(12, 1)[0], same)
	})
	editSource(t, pair, func(batches [][]byte) [][]byte {
		b, err := kafkatest.DecodeBatch(batches[1])
		if err != nil {
			t.Fatal(err)
		}
		b.Records = append(b.Records[3:4], b.Records[4:]...) // the first three are gone
		batches[1] = encode(t, b)
		return batches
	})
	mustAppend(t, pair.Source.Bootstrap, numbered(13, 2)...)
	got := mustRun(t, config)
	if !got.Complete {
		t.Errorf("summary %+v", got)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 5, ledger.Compacted: 3, ledger.Orphan: 3})
}

// TestLedgerRestoredFromAnOlderCopy: the ledger does not know what was copied
// since, nor the producer id that was taken meanwhile. Nothing is copied twice.
func TestLedgerRestoredFromAnOlderCopy(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() { appendBig(t, pair, 10, 10) })
	err := pair.Target.EditLog("t", 0, func(l *kafkatest.Log) error {
		for i := 6; i < len(l.Batches); i++ { // from here on under a new id
			b, err := kafkatest.DecodeBatch(l.Batches[i])
			if err != nil {
				return err
			}
			b.ProducerID += 500
			b.BaseSequence = int32(i - 6)
			if l.Batches[i], err = b.Encode(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(20, 10)...)
	got := mustComplete(t, pair, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 20})
	if all := producers(t, config); len(all) < 3 || all[len(all)-1].ID == all[1].ID {
		t.Errorf("producers %+v: that of the dead copier is to be known, and not used", all)
	}
}

// TestTailDeletedByRetention: what a dead copier wrote is deleted from the target
// before it was booked, all of it or a part. What is left tells by its sequence
// number whose it was.
func TestTailDeletedByRetention(t *testing.T) {
	t.Run("a part", func(t *testing.T) {
		pair := stored(t)
		config := afterCrash(t, pair, func() { appendBig(t, pair, 10, 6) })
		mustDelete(t, pair.Target, "t", 0, 13)
		got := mustRun(t, config)
		if !got.Complete {
			t.Errorf("summary %+v", got)
		}
		wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 6})
		proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 16})
	})
	t.Run("somebody else's", func(t *testing.T) {
		pair, config := copied(t, 10)
		mustAppend(t, pair.Target.Bootstrap, numbered(100, 3)...)
		mustAppend(t, pair.Source.Bootstrap, numbered(10, 5)...)
		mustAppendBatch(t, pair, ours(t, producers(t, config)[0], 10, numbered(10, 2)))
		mustDelete(t, pair.Target, "t", 0, 13)
		got := mustRun(t, config)
		wantStop(t, got, replicate.StopForeignWriter)
		wantTiles(t, got, map[ledger.Tile]int64{ledger.Foreign: 3, ledger.Copied: 2})
		order(t, config, ledger.Order{SourceTopic: "t"})
		if got = mustRun(t, config); !got.Complete {
			t.Errorf("summary %+v", got)
		}
		proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 15, ledger.Foreign: 3})
	})
	t.Run("all of it", func(t *testing.T) {
		pair := stored(t)
		config := afterCrash(t, pair, func() { appendBig(t, pair, 10, 6) })
		mustDelete(t, pair.Target, "t", 0, 16)
		got := mustRun(t, config)
		wantStop(t, got, replicate.StopTargetLostRecords)
		wantTiles(t, got, nil)
		order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
		if got = mustRun(t, config); !got.Complete {
			t.Errorf("summary %+v", got)
		}
		proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 16, ledger.Foreign: 6})
	})
}

// TestSequenceNumbersOfBeforeTheBeginning: a batch under our producer id has numbers
// that the pair never came to, or that reach across its beginning.
func TestSequenceNumbersOfBeforeTheBeginning(t *testing.T) {
	for name, sequence := range map[string]int32{"across": 1<<31 - 3, "before": 1<<31 - 50, "far ahead": 1 << 29} {
		t.Run(name, func(t *testing.T) {
			pair, config := copied(t, 10)
			if err := pair.Target.ForgetProducers("t", 0); err != nil {
				t.Fatal(err)
			}
			records := append(numbered(500, 3), numbered(0, 3)...)
			mustAppendBatch(t, pair, ours(t, producers(t, config)[0], sequence, records))
			wantStop(t, mustRun(t, config), replicate.StopForeignWriter)
			proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Foreign: 6})
			proveNothingMissing(t, pair)
		})
	}
}
