package ledger

import "testing"

// TestClip: each offset of an entry is kept if it lies below the cut, counted one
// by one.
func TestClip(t *testing.T) {
	entry := func() Entry {
		return Entry{Tile: Copied, Source: Range{10, 20}, Target: Range{5, 11},
			Gaps: []Gap{{Range: Range{12, 14}, Tile: Compacted}, {Range: Range{16, 18}, Tile: Compacted}}}
	}
	inGap := func(e *Entry, at int64) bool {
		for _, g := range e.Gaps {
			if g.Range.Contains(at) {
				return true
			}
		}
		return false
	}
	whole := entry()
	for source := int64(8); source <= 22; source++ {
		target := int64(5)
		for at := int64(10); at < min(source, 20); at++ {
			if !inGap(&whole, at) {
				target++
			}
		}
		cut, e := Cut{source, target}, entry()
		if got := cut.Clip(&e); got != (source > 10) {
			t.Errorf("cut at %d: left is %t", source, got)
		}
		if source <= 10 {
			continue
		}
		if want := (Range{10, min(source, 20)}); e.Source != want || e.Target != (Range{5, target}) {
			t.Errorf("cut at %d, %d: %v, %v", source, target, e.Source, e.Target)
		}
		for at := int64(9); at < 23; at++ {
			if want := at < source && inGap(&whole, at); inGap(&e, at) != want {
				t.Errorf("cut at %d: offset %d in a gap is %t", source, at, !want)
			}
		}
	}
	for at, want := range map[int64]bool{4: false, 5: false, 6: true, 8: true} {
		e := Entry{Tile: Foreign, Source: Range{9, 9}, Target: Range{5, 8}}
		cut := Cut{Source: 3, Target: at}
		if cut.Clip(&e) != want || want && (e.Target != Range{5, min(at, 8)} || e.Source != Range{3, 3}) {
			t.Errorf("a note, cut at target %d: %+v", at, e)
		}
	}
}
