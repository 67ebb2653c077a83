package replicate

import (
	"time"

	"apograph/ledger"
)

// A Summary says what a run did, and whether the books are complete.
type Summary struct {
	SourceAlias, TargetAlias string

	Topics     int
	Partitions int
	Tiles      [ledger.NumTiles]int64 // offsets (records, for target tiles) that this run booked
	Bytes      int64                  // canonical bytes of the records it copied

	BehindOpenTransaction int64 // high watermark less last stable offset, over the waiting partitions
	Waiting               []Waiting
	Stopped               []Stopped

	// BadTiles counts offsets of lost and unexplained tiles in the whole books
	// in scope, of this run or an earlier one, that nobody has accepted;
	// AcceptedTiles the others.
	BadTiles      int64
	AcceptedTiles int64

	// Doubts are what nobody has accepted of the doubts about the books in scope.
	Doubts []Doubt

	// Complete: the books of every partition in scope reach its end, and no
	// tile is bad, but for those that are accepted. A doubt changes nothing of
	// that.
	Complete bool

	Duties []FailedDuty // of those beside copying

	Elapsed time.Duration
}

// Waiting is a partition whose end lies behind an open transaction.
type Waiting struct {
	Topic      string
	Partition  int32
	Offset     int64     // the last stable offset
	Since      time.Time // time of the transaction's first record; zero: unknown
	ProducerID int64     // -1: unknown
	Behind     int64     // high watermark less last stable offset
}

// Doubt is a range of source offsets about which the books may be wrong for the
// keys of a compacted topic.
type Doubt struct {
	Topic     string
	Partition int32
	Range     ledger.Range
	Kind      ledger.DoubtKind
}

// Stopped is a partition that cannot go on.
type Stopped struct {
	Topic     string
	Partition int32
	Offset    int64 // on the source
	Reason    StopReason
	Detail    string
}

// Progress is a moment of a run.
type Progress struct {
	Partitions int   // in scope
	Finished   int   // of them, done or stopped
	Copied     int64 // records in this run
	Bytes      int64 // canonical bytes of them
	Remaining  int64 // source offsets from the books to the last known last stable offsets
}

// counts is what a partition has booked in this run.
type counts struct {
	tiles [ledger.NumTiles]int64
	bytes int64
}

func (c *counts) add(e *ledger.Entry) {
	c.bytes += e.Bytes
	if e.Tile != ledger.Copied {
		c.tiles[e.Tile] += e.Source.Len() + e.Target.Len()
		return
	}
	c.tiles[ledger.Copied] += e.Target.Len()
	for _, g := range e.Gaps {
		c.tiles[g.Tile] += g.Range.Len()
	}
}
