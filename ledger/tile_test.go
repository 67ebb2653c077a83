package ledger

import (
	"strings"
	"testing"
)

// TestTiles holds the names and what each tile advances, as reports and files
// have them: neither may change.
func TestTiles(t *testing.T) {
	rows := []struct {
		tile           Tile
		number         uint8
		name           string
		source, target bool
		bad            bool
	}{
		{Copied, 0, "copied", true, true, false},
		{CommitMarker, 1, "commit_marker", true, false, false},
		{AbortMarker, 2, "abort_marker", true, false, false},
		{Aborted, 3, "aborted", true, false, false},
		{Compacted, 4, "compacted", true, false, false},
		{Filtered, 5, "filtered", true, false, false},
		{BeforeStart, 6, "before_start", true, false, false},
		{Lost, 7, "lost", true, false, true},
		{Unexplained, 8, "unexplained", true, false, true},
		{Duplicate, 9, "duplicate", false, true, false},
		{Foreign, 10, "foreign", false, true, false},
		{Orphan, 11, "orphan", false, true, false},
		{OwnMarker, 12, "own_marker", false, true, false},
		{Filler, 13, "filler", false, true, false},
	}
	if len(rows) != NumTiles {
		t.Fatalf("%d rows for %d tiles", len(rows), NumTiles)
	}
	for _, r := range rows {
		if uint8(r.tile) != r.number || r.tile.String() != r.name {
			t.Errorf("tile %d is %q, want %d and %q", uint8(r.tile), r.tile, r.number, r.name)
		}
		if got, err := ParseTile(r.name); got != r.tile || err != nil {
			t.Errorf("ParseTile(%q) = %v, %v", r.name, got, err)
		}
		if r.tile.AdvancesSource() != r.source || r.tile.AdvancesTarget() != r.target || r.tile.Bad() != r.bad {
			t.Errorf("%v advances source %t, target %t, is bad %t", r.tile,
				r.tile.AdvancesSource(), r.tile.AdvancesTarget(), r.tile.Bad())
		}
	}
	unknown := Tile(NumTiles)
	if unknown.AdvancesSource() || unknown.AdvancesTarget() || unknown.Bad() || unknown.String() != "tile(14)" {
		t.Errorf("an unknown tile is %v and advances something", unknown)
	}
	for _, s := range []string{"", "Copied", "tile(14)", "marker"} {
		if _, err := ParseTile(s); err == nil {
			t.Errorf("ParseTile(%q) has no error", s)
		}
	}
}

func TestCauses(t *testing.T) {
	want := []string{"", "retention", "delete_records", "truncation", "aborted", "rule", "person", "cause(7)"}
	for i, name := range want {
		if got := Cause(i).String(); got != name {
			t.Errorf("cause %d is %q, want %q", i, got, name)
		}
	}
}

// TestTopicIDs takes ids and texts from Kafka: Uuid's reserved values, and the
// id of the metadata topic.
func TestTopicIDs(t *testing.T) {
	rows := map[string]TopicID{
		"AAAAAAAAAAAAAAAAAAAAAA": {},
		"AAAAAAAAAAAAAAAAAAAAAQ": {15: 1},
		"-_v7-_v7-_v7-_v7-_v7-w": {0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb, 0xfb},
	}
	for text, id := range rows {
		if got := id.String(); got != text {
			t.Errorf("String of %x = %q, want %q", id[:], got, text)
		}
		if got, err := ParseTopicID(text); got != id || err != nil {
			t.Errorf("ParseTopicID(%q) = %x, %v", text, got[:], err)
		}
	}
	for _, text := range []string{
		"", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAR", "+/v7+/v7+/v7+/v7+/v7+w", "AAAAAAAAAAAAAAAAAAAAAA\n",
		"AAAAAAAAAAA\nAAAAAAAAAAA", strings.Repeat("A", 23),
	} {
		if id, err := ParseTopicID(text); err == nil {
			t.Errorf("ParseTopicID(%q) = %x, want an error", text, id[:])
		}
	}
}

// TestProducerNext counts sequence numbers the way Kafka's
// DefaultRecordBatch.incrementSequence does, one step at a time.
func TestProducerNext(t *testing.T) {
	increment := func(sequence, by int32) int32 {
		const limit = 1<<31 - 1
		if sequence > limit-by {
			return by - (limit - sequence) - 1
		}
		return sequence + by
	}
	for _, start := range []int32{0, 1, 1<<31 - 2, 1<<31 - 1} {
		p := Producer{Sequence: start, Appended: 100}
		if got := p.Next(100); got != start {
			t.Errorf("the first sequence is %d, want %d", got, start)
		}
		want := start
		appended := int64(100)
		for _, step := range []int32{1, 1, 5, 1<<31 - 1, 1 << 30, 7, 1<<31 - 1} {
			want, appended = increment(want, step), appended+int64(step)
			if got := p.Next(appended); got != want {
				t.Errorf("from %d: Next(%d) = %d, want %d", start, appended, got, want)
			}
		}
	}
}
