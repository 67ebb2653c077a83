package kafkatest

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A Fate is what the oracle knows of a source offset.
type Fate uint8

const (
	// Committed: a record that a read_committed consumer gets.
	Committed Fate = iota + 1
	// CommitMarker and AbortMarker: a control record.
	CommitMarker
	AbortMarker
	// Aborted: a record of an aborted transaction.
	Aborted
	// Undecided: a record or marker at or above the last stable offset.
	Undecided
	// Absent: nothing is there, above the log start: removed by compaction, or
	// never written.
	Absent
	// BelowStart: below the log start.
	BelowStart
)

// String returns the tile that a ledger has for such an offset once it is
// copied, where there is exactly one.
func (f Fate) String() string {
	switch f {
	case Committed:
		return "copied"
	case CommitMarker:
		return "commit_marker"
	case AbortMarker:
		return "abort_marker"
	case Aborted:
		return "aborted"
	case Undecided:
		return "undecided"
	case Absent:
		return "absent"
	case BelowStart:
		return "below_start"
	default:
		return fmt.Sprintf("Fate(%d)", uint8(f))
	}
}

// A SourceTile is a run of neighbouring offsets with one fate, as long as
// possible.
type SourceTile struct {
	Fate       Fate
	Start, End int64 // End is the offset after the last
}

// SourceTiles finds out from the cluster alone what each offset of a partition
// is, from 0 to its high watermark. The tiles are in order and leave nothing
// out. It reads the partition twice, read_uncommitted and read_committed: what
// only the first returns is aborted, what neither returns is absent. A marker
// that contradicts this (its producer's records before it are aborted but it
// says commit, or the other way round) is an error.
func (b Bootstrap) SourceTiles(ctx context.Context, topic string, partition int32) ([]SourceTile, error) {
	client, err := b.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	all, bounds, err := readLog(ctx, client, topic, partition, kgo.ReadUncommitted())
	if err != nil {
		return nil, err
	}
	visible, committed, err := readLog(ctx, client, topic, partition, kgo.ReadCommitted())
	if err != nil {
		return nil, err
	}
	if bounds != committed {
		return nil, fmt.Errorf("tiles of %s:%d: the partition moves: %+v, then %+v", topic, partition, bounds, committed)
	}
	fates, err := fatesOf(all, visible, bounds)
	if err != nil {
		return nil, fmt.Errorf("tiles of %s:%d: %w", topic, partition, err)
	}
	return tile(fates, bounds), nil
}

// fatesOf returns the fate of every offset that holds something.
func fatesOf(all, visible []logRecord, bounds Bounds) (map[int64]Fate, error) {
	fates := make(map[int64]Fate, len(all))
	for _, r := range all {
		switch {
		case r.Offset >= bounds.LastStable:
			fates[r.Offset] = Undecided
		case !r.control:
			fates[r.Offset] = Aborted // until a read_committed consumer gets it
		case r.commit:
			fates[r.Offset] = CommitMarker
		default:
			fates[r.Offset] = AbortMarker
		}
	}
	for _, r := range visible {
		switch fate, ok := fates[r.Offset]; {
		case !ok:
			return nil, fmt.Errorf("offset %d is there for read_committed only", r.Offset)
		case r.control != (fate == CommitMarker || fate == AbortMarker):
			return nil, fmt.Errorf("offset %d is %v and control %t", r.Offset, fate, r.control)
		case !r.control:
			fates[r.Offset] = Committed
		}
	}
	return fates, checkMarkers(all, fates)
}

// checkMarkers compares each marker with the fate of its producer's records
// since the marker before. Compaction may have removed markers, so records
// without one prove nothing.
func checkMarkers(all []logRecord, fates map[int64]Fate) error {
	open := make(map[int64][]int64) // offsets by producer id
	for _, r := range all {
		if fates[r.Offset] == Undecided {
			break
		}
		if !r.control {
			if r.transactional {
				open[r.producerID] = append(open[r.producerID], r.Offset)
			}
			continue
		}
		want := Aborted
		if r.commit {
			want = Committed
		}
		for _, offset := range open[r.producerID] {
			if fates[offset] != want {
				return fmt.Errorf("offset %d is %v, but the marker of producer %d at %d says %v",
					offset, fates[offset], r.producerID, r.Offset, want)
			}
		}
		delete(open, r.producerID)
	}
	return nil
}

func tile(fates map[int64]Fate, bounds Bounds) []SourceTile {
	var tiles []SourceTile
	for offset := range bounds.HighWatermark {
		fate, ok := fates[offset]
		switch {
		case offset < bounds.LogStart:
			fate = BelowStart
		case !ok && offset >= bounds.LastStable:
			fate = Undecided
		case !ok:
			fate = Absent
		}
		if n := len(tiles); n > 0 && tiles[n-1].Fate == fate {
			tiles[n-1].End++
			continue
		}
		tiles = append(tiles, SourceTile{Fate: fate, Start: offset, End: offset + 1})
	}
	return tiles
}

// MustSourceTiles is SourceTiles for a test, which it fails on an error.
func (b Bootstrap) MustSourceTiles(t TB, topic string, partition int32) []SourceTile {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), oracleTimeout)
	defer cancel()
	tiles, err := b.SourceTiles(ctx, topic, partition)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return tiles
}
