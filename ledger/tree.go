package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"
)

// Sizes of bbolt's file format (internal/common: Page, leafPageElement,
// branchPageElement, InBucket).
const (
	fileBlock     = 4096 // bytes of a file page, in files that Create makes
	fileHeader    = 16   // header of a file page
	elementHeader = 16   // header of an element, of leaves and branches alike
	bucketHeader  = 16   // root page and sequence, the start of a bucket's value

	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageMeta     = 0x04
	pageFreelist = 0x10

	elementBucket = 0x01 // flag of a leaf element: the value is a bucket

	// maxDepth bounds the levels of a tree. Each inner node has two children
	// at least, so that no sound file comes near it.
	maxDepth = 40
)

// A tree reads the buckets of a bbolt file, as one transaction sees them. It
// trusts nothing: bbolt's own cursor follows page numbers and lengths of a
// damaged file into a panic, a memory fault or, where pages point back, a
// stack overflow that ends the process. Its errors that are a [*CorruptError]
// speak of damage; others are failed reads.
//
// Many goroutines may use it at once, each with a read transaction of its own
// that sees the same commit.
type tree struct {
	file     io.ReaderAt
	pageSize int
	pages    uint64 // file pages in use, bbolt's high water mark
	root     uint64 // file page at the root of the list of buckets
	buckets  map[string]treeBucket

	leaves sync.Pool // of *leafBlock

	mu       sync.Mutex
	branches map[uint64]*node // branches that were read, up to maxBranches
}

// maxBranches bounds the branches that a tree remembers, each of one file page
// as a rule. They lead to about a hundred times as many leaves.
const maxBranches = 4096

// A treeBucket is where a bucket begins: on a page of its own, or, where it is
// small, inside the list of buckets.
type treeBucket struct {
	root   uint64
	inline *node // nil unless root is 0
}

// A node is a branch or a leaf whose elements are known to lie inside it.
type node struct {
	id    uint64
	leaf  bool
	span  uint64 // file pages that it takes
	count int
	raw   []byte
	own   *leafBlock // with raw; nil if that is no single file page
}

// An elem is a key of a leaf with its value.
type elem struct {
	key    []byte
	value  []byte
	bucket bool
	leaf   *leafBlock // that they lie in; nil: in no memory that is used again
}

// A leafBlock is the memory of a file page. Whoever is done with all that lies in
// it may put it back into the tree's pool.
type leafBlock struct{ b []byte }

func structureErrorf(id uint64, format string, args ...any) *CorruptError {
	return &CorruptError{Key: fmt.Sprintf("page %d", id), Law: lawStructure, Detail: fmt.Sprintf(format, args...)}
}

// openTree reads the list of buckets.
func openTree(file io.ReaderAt, pageSize int, pages, root uint64) (*tree, error) {
	t := &tree{
		file: file, pageSize: pageSize, pages: pages, root: root,
		buckets:  make(map[string]treeBucket),
		branches: make(map[uint64]*node),
	}
	err := t.walk(treeBucket{root: root}, nil, func(e elem) (bool, error) {
		b, err := t.bucket(e)
		t.buckets[string(e.key)] = b
		return true, err
	})
	return t, err
}

// bucket parses an element of the list of buckets.
func (t *tree) bucket(e elem) (treeBucket, error) {
	if !e.bucket || len(e.value) < bucketHeader {
		return treeBucket{}, structureErrorf(t.root, "%q in the list of buckets is not a bucket", e.key)
	}
	b := treeBucket{root: binary.NativeEndian.Uint64(e.value)}
	if b.root != 0 {
		return b, nil
	}
	n, err := parseNode(0, e.value[bucketHeader:])
	if err == nil && !n.leaf {
		err = structureErrorf(t.root, "bucket %q has branches inside the list of buckets", e.key)
	}
	b.inline = n
	return b, err
}

// block reads a file page with the pages that it runs on into, and returns its
// bytes. The caller checks what kind of page it is. If it is a single page, single
// is the memory that it lies in.
func (t *tree) block(id uint64) (b []byte, single *leafBlock, err error) {
	if id < 2 || id >= t.pages {
		return nil, nil, structureErrorf(id, "is outside the file's %d pages", t.pages)
	}
	single, ok := t.leaves.Get().(*leafBlock)
	if !ok || len(single.b) != t.pageSize {
		single = &leafBlock{make([]byte, t.pageSize)}
	}
	b = single.b
	if err := t.read(b, id); err != nil {
		return nil, nil, err
	}
	if got := binary.NativeEndian.Uint64(b); got != id {
		return nil, nil, structureErrorf(id, "says that it is page %d", got)
	}
	more := uint64(binary.NativeEndian.Uint32(b[12:]))
	if more == 0 {
		return b, single, nil
	}
	if more >= t.pages-id {
		return nil, nil, structureErrorf(id, "runs on into %d more pages, beyond the file's %d", more, t.pages)
	}
	t.leaves.Put(single)
	b = make([]byte, (more+1)*uint64(t.pageSize))
	return b, nil, t.read(b, id)
}

func (t *tree) read(b []byte, id uint64) error {
	_, err := t.file.ReadAt(b, int64(id)*int64(t.pageSize))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return structureErrorf(id, "lies behind the end of the file")
	}
	return err
}

// node reads a branch or a leaf.
func (t *tree) node(id uint64) (*node, error) {
	t.mu.Lock()
	n, ok := t.branches[id]
	t.mu.Unlock()
	if ok {
		return n, nil
	}
	b, single, err := t.block(id)
	if err != nil {
		return nil, err
	}
	n, err = parseNode(id, b)
	if err != nil {
		return nil, err
	}
	n.own = single
	n.span = uint64(len(b) / t.pageSize)
	if !n.leaf {
		t.remember(n)
	}
	return n, nil
}

func (t *tree) remember(branch *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.branches) >= maxBranches {
		clear(t.branches)
	}
	t.branches[branch.id] = branch
}

// parseNode checks a branch or a leaf, and keeps b.
func parseNode(id uint64, b []byte) (*node, error) {
	if len(b) < fileHeader {
		return nil, structureErrorf(id, "has %d bytes, less than a page header", len(b))
	}
	flags, count := binary.NativeEndian.Uint16(b[8:]), int(binary.NativeEndian.Uint16(b[10:]))
	n := &node{id: id, leaf: flags == pageLeaf, count: count, raw: b}
	switch {
	case flags != pageLeaf && flags != pageBranch:
		return nil, structureErrorf(id, "has type %#x, neither leaf nor branch", flags)
	case fileHeader+count*elementHeader > len(b):
		return nil, structureErrorf(id, "has no room for %d elements", count)
	case !n.leaf && count == 0:
		return nil, structureErrorf(id, "is a branch without children")
	}
	for i := range count {
		if !n.inside(i) {
			return nil, structureErrorf(id, "element %d is out of bounds", i)
		}
	}
	return n, nil
}

// header returns the bytes from the header of element i on: positions in it
// are relative to it. That of a leaf has flags, position of the key, length of
// key, length of value; that of a branch position, length, page of the child.
func (n *node) header(i int) []byte { return n.raw[fileHeader+i*elementHeader:] }

// inside reports whether element i has a key and lies inside the node.
func (n *node) inside(i int) bool {
	h := n.header(i)
	field := func(offset int) uint64 { return uint64(binary.NativeEndian.Uint32(h[offset:])) }
	pos, key, value := field(0), field(4), uint64(0)
	if n.leaf {
		pos, key, value = field(4), field(8), field(12)
		if field(0) > elementBucket {
			return false
		}
	}
	return pos >= elementHeader && key > 0 && pos+key+value <= uint64(len(h))
}

func (n *node) key(i int) []byte {
	h, field := n.header(i), 0
	if n.leaf {
		field = 4
	}
	pos := binary.NativeEndian.Uint32(h[field:])
	end := pos + binary.NativeEndian.Uint32(h[field+4:])
	return h[pos:end:end]
}

// elem returns element i of a leaf.
func (n *node) elem(i int) elem {
	h, key := n.header(i), n.key(i)
	pos := binary.NativeEndian.Uint32(h[4:]) + uint32(len(key))
	end := pos + binary.NativeEndian.Uint32(h[12:])
	return elem{key: key, value: h[pos:end:end], bucket: binary.NativeEndian.Uint32(h) == elementBucket, leaf: n.own}
}

// child returns the page that element i of a branch leads to.
func (n *node) child(i int) uint64 { return binary.NativeEndian.Uint64(n.header(i)[8:]) }

// last returns the index of the last element of n whose key is not above key;
// -1 if all are.
func (n *node) last(key []byte) int {
	above := sort.Search(n.count, func(i int) bool { return bytes.Compare(n.key(i), key) > 0 })
	return above - 1
}

// start returns the node at the root of b.
func (t *tree) start(b treeBucket) (*node, error) {
	if b.inline != nil {
		return b.inline, nil
	}
	return t.node(b.root)
}

// floor returns the last element of b whose key is not above key; its key is
// nil if there is none.
func (t *tree) floor(b treeBucket, key []byte) (elem, error) {
	n, err := t.start(b)
	if err != nil {
		return elem{}, err
	}
	return t.floorBelow(n, key, 0)
}

func (t *tree) floorBelow(n *node, key []byte, depth int) (elem, error) {
	if n.leaf {
		if i := n.last(key); i >= 0 {
			return n.elem(i), nil
		}
		return elem{}, nil
	}
	if depth >= maxDepth {
		return elem{}, structureErrorf(n.id, "lies deeper than %d levels", maxDepth)
	}
	i := n.last(key)
	if i < 0 {
		return elem{}, nil
	}
	child, err := t.node(n.child(i))
	if err != nil {
		return elem{}, err
	}
	return t.floorBelow(child, key, depth+1)
}

// walk calls visit with the elements of b whose keys are not below from, in
// order, until visit returns false or an error. Keys that do not ascend are an
// error, so that a walk ends even where pages point back.
func (t *tree) walk(b treeBucket, from []byte, visit func(elem) (bool, error)) error {
	n, err := t.start(b)
	if err != nil {
		return err
	}
	w := walker{tree: t, from: from, visit: visit}
	_, err = w.below(n, 0)
	return err
}

type walker struct {
	tree  *tree
	from  []byte
	prior []byte // key of the element before
	visit func(elem) (bool, error)
}

func (w *walker) below(n *node, depth int) (more bool, err error) {
	if depth >= maxDepth {
		return false, structureErrorf(n.id, "lies deeper than %d levels", maxDepth)
	}
	first := 0
	if w.prior == nil && !n.leaf {
		first = max(n.last(w.from), 0)
	}
	for i := first; i < n.count; i++ {
		if n.leaf {
			more, err = w.leaf(n, n.elem(i))
		} else {
			more, err = w.child(n.child(i), depth)
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func (w *walker) child(id uint64, depth int) (more bool, err error) {
	child, err := w.tree.node(id)
	if err != nil {
		return false, err
	}
	return w.below(child, depth+1)
}

func (w *walker) leaf(n *node, e elem) (more bool, err error) {
	if w.prior != nil && bytes.Compare(w.prior, e.key) >= 0 {
		return false, structureErrorf(n.id, "keys do not ascend: %x, then %x", w.prior, e.key)
	}
	w.prior = e.key
	if bytes.Compare(e.key, w.from) < 0 {
		return true, nil
	}
	return w.visit(e)
}
