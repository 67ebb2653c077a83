package ledger

import "fmt"

// A Tile says what became of a run of offsets. Every offset of a book lies in
// exactly one tile. The values are stored in ledger files and never change.
type Tile uint8

const (
	// Copied: the record is on the target, at exactly one offset. The only
	// tile that advances both books.
	Copied Tile = iota

	// CommitMarker is the control record that commits a transaction. It has a
	// source offset, and consumers never see it.
	CommitMarker

	// AbortMarker is the control record that aborts a transaction.
	AbortMarker

	// Aborted is data of an aborted transaction. It is never copied.
	Aborted

	// Compacted: nothing at this source offset, and there is evidence of
	// compaction.
	Compacted

	// Filtered: left out by a rule or a person, named by Entry.Reason.
	Filtered

	// BeforeStart: below the start of the pair's scope. It stands before every
	// other tile of the source book, and nowhere else.
	BeforeStart

	// Lost: existed on the source, or may have, and was gone before it was
	// copied. Bad for ever.
	Lost

	// Unexplained: nothing at this source offset and no cause known. Bad for
	// ever.
	Unexplained

	// Duplicate is another physical copy on the target of the source range
	// Entry.Origin, in front of the one that is copied or behind it.
	Duplicate

	// Foreign: a target record that is not a copy that the books count.
	Foreign

	// Orphan: a target record of ours, by producer id and sequence, that the
	// source no longer has to compare.
	Orphan

	// OwnMarker is reserved for transactional writing.
	OwnMarker

	// Filler is reserved for copies with identical offsets.
	Filler

	// NumTiles is the number of tiles, not a tile.
	NumTiles = int(Filler) + 1
)

// String returns the tile's name in reports and exports, for example
// "commit_marker".
func (t Tile) String() string {
	if int(t) >= NumTiles {
		return fmt.Sprintf("tile(%d)", uint8(t))
	}
	return tileName(t)
}

// tileName is a switch and not a table so that the names cannot be changed at
// run time.
func tileName(t Tile) string {
	switch t {
	case Copied:
		return "copied"
	case CommitMarker:
		return "commit_marker"
	case AbortMarker:
		return "abort_marker"
	case Aborted:
		return "aborted"
	case Compacted:
		return "compacted"
	case Filtered:
		return "filtered"
	case BeforeStart:
		return "before_start"
	case Lost:
		return "lost"
	case Unexplained:
		return "unexplained"
	case Duplicate:
		return "duplicate"
	case Foreign:
		return "foreign"
	case Orphan:
		return "orphan"
	case OwnMarker:
		return "own_marker"
	case Filler:
		return "filler"
	default:
		panic(fmt.Sprintf("ledger: tile %d has no name", uint8(t)))
	}
}

// ParseTile is the inverse of [Tile.String]: ParseTile(t.String()) == t for
// every tile. Any other text is an error.
func ParseTile(s string) (Tile, error) {
	for t := range Tile(NumTiles) {
		if tileName(t) == s {
			return t, nil
		}
	}
	return 0, fmt.Errorf("ledger: unknown tile %q", s)
}

// AdvancesSource reports whether the tile covers source offsets.
func (t Tile) AdvancesSource() bool { return t < Duplicate }

// AdvancesTarget reports whether the tile covers target offsets.
func (t Tile) AdvancesTarget() bool {
	return t == Copied || t >= Duplicate && int(t) < NumTiles
}

// Bad reports whether the tile is proof of loss, or cannot be told from it: a
// copy with a bad tile is never complete.
func (t Tile) Bad() bool { return t == Lost || t == Unexplained }

// gap reports whether the tile may lie inside a copied entry.
func (t Tile) gap() bool { return t >= CommitMarker && t <= Compacted }

// A Cause says why records are where they are, for the tiles that need one.
// The values are stored in ledger files and never change.
type Cause uint8

const (
	CauseNone          Cause = iota // no cause known, or none needed
	CauseRetention                  // lost: retention moved the log start past the position
	CauseDeleteRecords              // lost: somebody deleted records
	CauseTruncation                 // lost: the source log was truncated
	CauseAborted                    // foreign: an aborted record that an earlier copier brought over
	CauseRule                       // filtered: by a rule, which Entry.Reason names
	CausePerson                     // filtered: by a person, whom Entry.Reason names
	numCauses
)

// String returns the cause's name in reports and exports; "" for CauseNone.
func (c Cause) String() string {
	switch c {
	case CauseNone:
		return ""
	case CauseRetention:
		return "retention"
	case CauseDeleteRecords:
		return "delete_records"
	case CauseTruncation:
		return "truncation"
	case CauseAborted:
		return "aborted"
	case CauseRule:
		return "rule"
	case CausePerson:
		return "person"
	default:
		return fmt.Sprintf("cause(%d)", uint8(c))
	}
}
