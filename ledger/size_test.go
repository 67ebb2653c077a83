package ledger

import "testing"

// TestSizeOfBatches holds the budget of a dense copy: at most 24 bytes in use a
// batch, for a million records of 1 KiB in batches of 64 KiB, twenty a commit.
func TestSizeOfBatches(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	const records, perBatch, perCommit = 1_000_000, 63, 20
	batches := 0
	for at := l.End(id); at.Source < records; at = l.End(id) {
		e := copiedEntry(at, min(perBatch, records-at.Source))
		e.Bytes = e.Records() * (1024 + 28)
		mustAppend(t, l, id, e)
		if batches++; batches%perCommit == 0 {
			mustCommit(t, l)
		}
	}
	mustCommit(t, l)
	if got := l.Totals(id); got.Entries != int64(batches) {
		t.Fatalf("%d entries for %d batches: the batches were joined, and the budget says nothing", got.Entries, batches)
	}
	reportUse(t, l, batches, 24, "batch")
}

// TestSizeOfSmallTransactions holds the budget of one-record transactions: at
// most 4 bytes in use a record, each followed by a commit marker.
func TestSizeOfSmallTransactions(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	const records, perCommit = 200_000, 300
	for i := range records {
		e := copiedEntry(l.End(id), 1)
		e.Bytes = 128
		mustAppend(t, l, id, e)
		mustAppend(t, l, id, sourceEntry(CommitMarker, l.End(id), 1))
		if i%perCommit == perCommit-1 {
			mustCommit(t, l)
		}
	}
	mustCommit(t, l)
	if got := l.Totals(id).Tiles; got[Copied] != records || got[CommitMarker] != records {
		t.Fatalf("totals = %v, want %d of each", got, records)
	}
	reportUse(t, l, records, 4, "record")
}

func reportUse(t *testing.T, l *Ledger, n int, budget float64, unit string) {
	t.Helper()
	file, used, _ := l.Usage()
	per := float64(used) / float64(n)
	t.Logf("%d bytes of %d in use, %.2f a %s, the budget is %.0f", used, file, per, unit, budget)
	if used == 0 || per > budget {
		t.Errorf("%.2f bytes in use a %s, the budget is %.0f", per, unit, budget)
	}
}
