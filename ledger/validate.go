package ledger

import (
	"fmt"
	"unicode/utf8"
)

// Limits of one entry.
const (
	// maxEntryGaps bounds an entry that a caller appends. A batch with more
	// gaps must be cut at a record.
	maxEntryGaps = 1 << 20

	// maxText bounds reasons and topic names, in bytes. Kafka's longest topic
	// name has 249 (Topic.MAX_NAME_LENGTH).
	maxText = 1024

	// maxPattern bounds a pattern of a scope, in bytes.
	maxPattern = 1 << 16
)

// Validate returns nil if e keeps every law that an entry can keep or break by
// itself, and an [*LawError] naming the first broken one otherwise.
func (e *Entry) Validate() error {
	if err := e.fault(); err != nil {
		return err
	}
	return nil
}

func (e *Entry) fault() *LawError {
	if err := e.checkAxes(); err != nil {
		return err
	}
	if err := e.checkCopied(); err != nil {
		return err
	}
	if err := e.checkGaps(); err != nil {
		return err
	}
	return e.checkAttributes()
}

func lawErrorf(law, format string, args ...any) *LawError {
	return &LawError{Law: law, Detail: fmt.Sprintf(format, args...)}
}

func (e *Entry) checkAxes() *LawError {
	if int(e.Tile) >= NumTiles {
		return lawErrorf(lawTile, "unknown tile %d", uint8(e.Tile))
	}
	if err := checkAxis(e.Tile, "source", e.Source, e.Tile.AdvancesSource()); err != nil {
		return err
	}
	return checkAxis(e.Tile, "target", e.Target, e.Tile.AdvancesTarget())
}

func checkAxis(t Tile, axis string, r Range, advances bool) *LawError {
	switch {
	case !r.valid():
		return lawErrorf(lawAxes, "%s: %s range %v is not a range of offsets", t, axis, r)
	case advances && r.Empty():
		return lawErrorf(lawAxes, "%s: %s range %v is empty", t, axis, r)
	case !advances && !r.Empty():
		return lawErrorf(lawAxes, "%s: %s range %v is not empty", t, axis, r)
	}
	return nil
}

func (e *Entry) checkCopied() *LawError {
	switch {
	case e.Tile != Copied && (len(e.Gaps) > 0 || e.Bytes != 0 || e.Digest != 0 || e.TimestampsReplaced):
		return lawErrorf(lawAttributes, "%s: has gaps, bytes, a digest or replaced timestamps", e.Tile)
	case e.Bytes < 0:
		return lawErrorf(lawAttributes, "copied: %d bytes", e.Bytes)
	case !e.Digest.Valid():
		return lawErrorf(lawDigest, "copied: digest %v is not below 2^61-1", e.Digest)
	}
	return nil
}

func (e *Entry) checkGaps() *LawError {
	if e.Tile != Copied {
		return nil
	}
	if len(e.Gaps) > maxEntryGaps {
		return lawErrorf(lawGaps, "copied: %d gaps, at most %d are allowed", len(e.Gaps), maxEntryGaps)
	}
	end, missing := e.Source.Start, int64(0)
	for _, g := range e.Gaps {
		switch {
		case !g.Tile.gap():
			return lawErrorf(lawGaps, "copied: %s cannot be a gap", g.Tile)
		case g.Range.Start < end || g.Range.Empty() || g.Range.End > e.Source.End:
			return lawErrorf(lawGaps, "copied: gap %v is empty, out of order or outside %v", g.Range, e.Source)
		}
		end, missing = g.Range.End, missing+g.Range.Len()
	}
	if e.Source.Len()-missing != e.Target.Len() {
		return lawErrorf(lawBalance, "copied: %d source offsets less %d in gaps are not %d target offsets",
			e.Source.Len(), missing, e.Target.Len())
	}
	return nil
}

func (e *Entry) checkAttributes() *LawError {
	switch {
	case e.LeaderEpoch < -1:
		return lawErrorf(lawAttributes, "%s: leader epoch %d", e.Tile, e.LeaderEpoch)
	case !causeFits(e.Tile, e.Cause):
		return lawErrorf(lawAttributes, "%s: cause %d does not belong to this tile", e.Tile, uint8(e.Cause))
	case len(e.Reason) > maxText || !utf8.ValidString(e.Reason):
		return lawErrorf(lawAttributes, "%s: reason has more than %d bytes or is not UTF-8", e.Tile, maxText)
	case e.Tile == Copied && e.Reason != "":
		return lawErrorf(lawAttributes, "copied: has a reason")
	case e.Tile == Filtered && e.Reason == "":
		return lawErrorf(lawAttributes, "filtered: names neither rule nor person")
	case e.Tile != Lost && e.LastKnownMillis != 0:
		return lawErrorf(lawAttributes, "%s: has a last known time", e.Tile)
	}
	return e.checkOrigin()
}

// checkOrigin asks for no more offsets on the target than in the origin: the
// origin may hold gaps, which have no second copy.
func (e *Entry) checkOrigin() *LawError {
	switch {
	case e.Tile != Duplicate && e.Origin != Range{}:
		return lawErrorf(lawAttributes, "%s: has an origin", e.Tile)
	case e.Tile == Duplicate && (!e.Origin.valid() || e.Origin.Len() < e.Target.Len()):
		return lawErrorf(lawAttributes, "duplicate: origin %v cannot hold %d records", e.Origin, e.Target.Len())
	}
	return nil
}

// causeFits reports whether a tile may have the cause: filtered must have one,
// since nothing is left out that nobody answers for.
func causeFits(t Tile, c Cause) bool {
	switch t {
	case Lost:
		return c <= CauseTruncation
	case Filtered:
		return c == CauseRule || c == CausePerson
	case Foreign:
		return c == CauseNone || c == CauseAborted
	default:
		return c == CauseNone
	}
}
