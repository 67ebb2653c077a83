package ledger

import (
	"bytes"
	"errors"
	"maps"
	"slices"
)

// A surveyor visits every file page that a tree uses.
type surveyor struct {
	tree   *tree
	used   []uint64 // bit set of file pages
	free   []uint64
	list   map[uint64]bool // pages of the list of buckets, which small buckets lie in
	bounds map[uint64]keyBounds
	report func(*CorruptError)
}

// keyBounds are what the branches above a page say of its keys: the first is
// from, and all are below the other; nil: nothing is said. bbolt keeps them so
// (node.spill gives a parent the first key of each child that it writes), goes by
// them when it writes, and would list a page twice that does not keep to them.
type keyBounds struct{ from, below []byte }

// checkStructure reports whatever is wrong with the pages of a file, whose list
// of free pages is on the page freelist: pages used twice, used and free,
// neither, or not readable as what they should be, and keys out of order. A
// failed read is returned.
//
// Values are not looked at. After a check without a finding bbolt can be let
// loose on the file: it will not panic, run in circles, or write over a page
// that holds something.
func checkStructure(t *tree, freelist uint64, report func(*CorruptError)) error {
	words := (t.pages + 63) / 64
	s := &surveyor{tree: t, used: make([]uint64, words), free: make([]uint64, words), report: report}
	s.list, s.bounds = map[uint64]bool{t.root: true}, map[uint64]keyBounds{}
	if err := s.freelist(freelist); err != nil {
		return err
	}
	level := []uint64{t.root}
	for _, name := range slices.Sorted(maps.Keys(t.buckets)) {
		b := t.buckets[name]
		switch {
		case b.inline == nil:
			level = append(level, b.root)
		case !ascending(b.inline):
			report(structureErrorf(t.root, "keys of bucket %q do not ascend", name))
		}
	}
	for len(level) > 0 {
		below, err := s.level(level)
		if err != nil {
			return err
		}
		level = below
	}
	s.leftover()
	return nil
}

// finding hands damage to report, and returns any other error.
func (s *surveyor) finding(err error) error {
	var damage *CorruptError
	if errors.As(err, &damage) {
		s.report(damage)
		return nil
	}
	return err
}

func (s *surveyor) freelist(id uint64) error {
	ids, span, err := s.tree.freePages(id)
	if err != nil {
		return s.finding(err)
	}
	s.use(id, span)
	for _, free := range ids {
		switch {
		case free < 2 || free >= s.tree.pages:
			s.report(structureErrorf(id, "lists page %d as free, of %d pages", free, s.tree.pages))
		case has(s.free, free):
			s.report(structureErrorf(id, "lists page %d as free twice", free))
		default:
			set(s.free, free)
		}
	}
	return nil
}

// level visits nodes and returns their children. It reads in file order, which
// a disk likes better than the order of keys. Every page is visited once, so
// that the levels end.
func (s *surveyor) level(ids []uint64) (below []uint64, err error) {
	slices.Sort(ids)
	for _, id := range ids {
		n, err := s.tree.node(id)
		if err != nil {
			if err := s.finding(err); err != nil {
				return nil, err
			}
			continue
		}
		if !s.use(id, n.span) {
			continue
		}
		if !ascending(n) {
			s.report(structureErrorf(id, "keys do not ascend"))
		}
		s.within(n)
		for i := range n.count {
			switch {
			case !n.leaf:
				below = append(below, n.child(i))
				if s.list[id] {
					s.list[n.child(i)] = true
				}
			case n.elem(i).bucket && !s.list[id]:
				s.report(structureErrorf(id, "has a bucket inside a bucket"))
			}
		}
	}
	return below, nil
}

// within reports keys of a page that the branches above it do not lead to, and
// notes what it says of its children.
func (s *surveyor) within(n *node) {
	b := s.bounds[n.id]
	delete(s.bounds, n.id)
	if n.count > 0 && (b.from != nil && !bytes.Equal(n.key(0), b.from) || b.below != nil && bytes.Compare(n.key(n.count-1), b.below) >= 0) {
		s.report(structureErrorf(n.id, "has keys that the branch above does not lead to"))
	}
	for i := range n.count {
		if n.leaf {
			return
		}
		bound := keyBounds{n.key(i), b.below}
		if i+1 < n.count {
			bound.below = n.key(i + 1)
		}
		s.bounds[n.child(i)] = bound
	}
}

// use marks a node's pages, and reports whether all of them were its own to
// take.
func (s *surveyor) use(id, span uint64) bool {
	ok := true
	for page := id; page < id+span; page++ {
		if has(s.used, page) {
			s.report(structureErrorf(page, "is used twice"))
			ok = false
		}
		if has(s.free, page) {
			s.report(structureErrorf(page, "is used and listed as free"))
		}
		set(s.used, page)
	}
	return ok
}

// leftover reports the pages that are neither used nor free.
func (s *surveyor) leftover() {
	for page := uint64(2); page < s.tree.pages; page++ {
		if !has(s.used, page) && !has(s.free, page) {
			s.report(structureErrorf(page, "is neither used nor listed as free"))
		}
	}
}

func ascending(n *node) bool {
	for i := 1; i < n.count; i++ {
		if bytes.Compare(n.key(i-1), n.key(i)) >= 0 {
			return false
		}
	}
	return true
}

func has(set []uint64, i uint64) bool { return set[i/64]>>(i%64)&1 == 1 }

func set(set []uint64, i uint64) { set[i/64] |= 1 << (i % 64) }
