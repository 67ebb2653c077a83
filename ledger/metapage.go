package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
)

// bbolt's file format, version 2 (internal/common: Meta, Magic, Version).
const (
	bboltMagic   = 0xED0CDAED
	bboltVersion = 2
	metaSize     = 64 // bytes of a meta, behind the header of its page
	metaSummed   = 56 // bytes of it that its checksum covers

	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// A metaPage is one of the two pages, 0 and 1, that say where everything else
// is. bbolt writes them in turn, one with each transaction.
type metaPage struct {
	pageSize int
	root     uint64 // page at the root of the list of buckets
	freelist uint64 // page that lists the free pages
	pages    uint64 // high water mark: pages from here on were never used
	txid     uint64
}

// readMetas returns both meta pages of a file. It is an error, a
// [*CorruptError], if either is damaged: bbolt would go on with the other one,
// and so lose a commit without a word. It would also make a new database of an
// empty file.
func readMetas(file io.ReaderAt, size int64) (metas [2]metaPage, err error) {
	if size == 0 {
		return metas, &CorruptError{Key: "size", Law: lawMeta, Detail: "the file is empty"}
	}
	offset := int64(0)
	for i := range metas {
		metas[i], err = readMeta(file, uint64(i), offset)
		if err != nil {
			return metas, err
		}
		offset = int64(metas[0].pageSize)
		if err := checkMeta(&metas[i], metas[0].pageSize, size); err != "" {
			return metas, metaError(uint64(i), "%s", err)
		}
	}
	return metas, nil
}

func metaError(id uint64, format string, args ...any) *CorruptError {
	return &CorruptError{Key: fmt.Sprintf("page %d", id), Law: lawMeta, Detail: fmt.Sprintf(format, args...)}
}

// readMeta reads the meta page with the given id at an offset of the file, and
// checks that it was written whole.
func readMeta(file io.ReaderAt, id uint64, offset int64) (metaPage, error) {
	var b [fileHeader + metaSize]byte
	if _, err := file.ReadAt(b[:], offset); errors.Is(err, io.EOF) {
		return metaPage{}, metaError(id, "lies behind the end of the file")
	} else if err != nil {
		return metaPage{}, err
	}
	m, order := b[fileHeader:], binary.NativeEndian
	sum := fnv.New64a()
	_, _ = sum.Write(m[:metaSummed])
	switch {
	case order.Uint64(b[:]) != id || order.Uint16(b[8:]) != pageMeta:
		return metaPage{}, metaError(id, "is page %d of type %#x, not a meta page", order.Uint64(b[:]), order.Uint16(b[8:]))
	case order.Uint32(m) != bboltMagic:
		return metaPage{}, metaError(id, "is not of a ledger: magic %#x", order.Uint32(m))
	case order.Uint32(m[4:]) != bboltVersion:
		return metaPage{}, metaError(id, "has bbolt's file version %d, not %d", order.Uint32(m[4:]), bboltVersion)
	case order.Uint64(m[metaSummed:]) != sum.Sum64():
		return metaPage{}, metaError(id, "has checksum %016x, its content %016x", order.Uint64(m[metaSummed:]), sum.Sum64())
	}
	return metaPage{
		pageSize: int(order.Uint32(m[8:])),
		root:     order.Uint64(m[16:]),
		freelist: order.Uint64(m[32:]),
		pages:    order.Uint64(m[40:]),
		txid:     order.Uint64(m[48:]),
	}, nil
}

// checkMeta returns what is wrong with a meta page for a file of size bytes
// whose first meta page has the given page size; "" if nothing.
func checkMeta(m *metaPage, pageSize int, size int64) string {
	switch {
	case m.pageSize < minPageSize || m.pageSize > maxPageSize || bits.OnesCount(uint(m.pageSize)) != 1:
		return fmt.Sprintf("has page size %d", m.pageSize)
	case m.pageSize != pageSize:
		return fmt.Sprintf("has page size %d, page 0 has %d", m.pageSize, pageSize)
	case m.pages < 2 || m.pages > uint64(size)/uint64(pageSize):
		return fmt.Sprintf("asks for %d pages of %d bytes, the file has %d bytes", m.pages, pageSize, size)
	case m.root < 2 || m.root >= m.pages:
		return fmt.Sprintf("has its root on page %d of %d", m.root, m.pages)
	case m.freelist < 2 || m.freelist >= m.pages:
		return fmt.Sprintf("has the list of free pages on page %d of %d", m.freelist, m.pages)
	}
	return ""
}

// newest returns the meta page of the last transaction.
func newest(metas [2]metaPage) metaPage {
	if metas[1].txid > metas[0].txid {
		return metas[1]
	}
	return metas[0]
}

// freePages returns the pages that are free, or will be when no transaction
// reads them any more, by the list on the given page.
func (t *tree) freePages(freelist uint64) (ids []uint64, span uint64, err error) {
	b, _, err := t.block(freelist)
	if err != nil {
		return nil, 0, err
	}
	if flags := binary.NativeEndian.Uint16(b[8:]); flags != pageFreelist {
		return nil, 0, structureErrorf(freelist, "has type %#x, is not a list of free pages", flags)
	}
	count, list := uint64(binary.NativeEndian.Uint16(b[10:])), b[fileHeader:]
	if count == 1<<16-1 {
		// The count did not fit: it is the first number of the list.
		count, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if count > uint64(len(list)/8) {
		return nil, 0, structureErrorf(freelist, "lists %d free pages in %d bytes", count, len(b))
	}
	ids = make([]uint64, count)
	for i := range ids {
		ids[i] = binary.NativeEndian.Uint64(list[8*i:])
	}
	return ids, uint64(len(b) / t.pageSize), nil
}
