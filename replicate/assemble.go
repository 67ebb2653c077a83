package replicate

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

const (
	// smallBatch and smallCheapBatch are the sizes, uncompressed, below which
	// compressed batches are worth joining: each costs the target broker and us more
	// than to compress it. It depends on what that costs; lz4 and snappy are cheap.
	smallBatch      = 8 << 10
	smallCheapBatch = 24 << 10

	// wideBatch is the same where nothing is compressed anew, or the round trip is
	// what limits a partition.
	wideBatch = 512 << 10

	// joinBytes is how many uncompressed bytes are joined into one batch: as much
	// as a producer's batches may hold by default, with room for their framing.
	joinBytes = 1016 << 10

	// mostJoined is how many uncompressed bytes are joined into one batch where what
	// counts is its size on the wire.
	mostJoined = 4 * joinBytes

	// spareRoom is by how many times the memory of a joined batch may be larger than
	// it: what was written to for a large one is not held for a small one.
	spareRoom = 4

	// maxBodyBytes bounds a decompressed batch.
	maxBodyBytes = 256 << 20

	// maxGaps bounds the source-only tiles inside one unit.
	maxGaps = 4096
)

// A chunk is the part of one fetch response that belongs to one partition:
// whole batches, and what the response says about the source's log.
type chunk struct {
	data    []byte // whole batches and nothing else
	at      int    // how much of data has been assembled
	aborted abortedTransactions
	until   int64 // the log holds nothing in [end of data, until); 0: not known
	pin     *pin
	era     int // of the fetch that brought it

	from     int64 // the offset that was asked for
	next     int64 // what is asked for behind it
	unsure   bool  // from a new leader, which was not told what stands before
	logStart int64 // of the source partition
}

func (c *chunk) release() {
	c.pin.release()
	c.pin, c.data = nil, nil
}

// An assembler turns a source partition's batches into units: every source
// offset goes into exactly one of them, in order.
//
// Dense batches pass as they are once their records have been walked, checked
// and hashed. Sparse ones, those that begin below the position, those stamped
// by the source broker and runs of small ones are encoded anew.
//
// An assembler is owned by one goroutine.
type assembler struct {
	pos int64 // the next source offset to account for

	timestampsReplaced bool  // the target topic stamps its own time
	compactPolicy      bool  // the source topic has cleanup.policy compact
	compactSeen        bool  // evidence of compaction, now or ever
	firstSight         bool  // nothing of this topic was read before: below the log start is out of scope
	lastKnown          int64 // when the log was last known to hold pos (ms), 0 unknown
	keepInfos          bool  // fill unit.infos
	byContent          bool  // fill unit.aborted, and hash records without a time as if the target had stamped them: MirrorMaker 2 does
	joinLimit          int   // uncompressed bytes of a joined batch; see joinable
	far                bool  // the round trip to the target limits the partition
	booksOnly          bool  // units get no batch: nothing will be sent

	// logStart asks the source for its log start offset: a gap that nothing
	// explains may be a deletion that the fetch response did not know yet.
	logStart func() (int64, error)

	// loss says why the log start is above the position; insideBatch: it stands
	// inside a batch.
	loss func(insideBatch bool) ledger.Cause

	tools *tools  // lent by the caller for the time of a call
	ready []*unit // complete, not yet returned
	join  joint   // empty between calls

	sealedBody, sealed int // bytes of the last large joined batch, before compression and after; 0: none was
}

// A joint is a unit under construction.
type joint struct {
	unit  *unit
	codec recordbatch.Codec
	raw   []byte // the batch itself while the unit is one dense batch
	body  int    // uncompressed bytes, as they are encoded anew
}

// A sourceError reports a batch that cannot be copied, at a source offset.
type sourceError struct {
	offset int64
	reason StopReason
	err    error
}

func (e *sourceError) Error() string { return fmt.Sprintf("source offset %d: %v", e.offset, e.err) }
func (e *sourceError) Unwrap() error { return e.err }

// next returns the next unit of c, or nil when c is used up. An error comes
// after all units before the place at fault; the position is then that place.
func (a *assembler) next(c *chunk) (*unit, error) {
	var err error
	if c.from > a.pos { // what stands before was found to be gone
		err = a.gap(c, c.from)
	}
	for len(a.ready) == 0 && err == nil && c.at < len(c.data) {
		err = a.step(c)
	}
	a.flush(c) // the builder is lent for this call only
	if len(a.ready) == 0 && err == nil && c.until > a.pos {
		err = a.gap(c, c.until)
	}
	if len(a.ready) == 0 {
		return nil, err
	}
	u := a.ready[0]
	a.ready = a.ready[1:]
	return u, nil
}

// settled returns the source offset up to which everything was returned.
func (a *assembler) settled() int64 {
	if len(a.ready) > 0 {
		return a.ready[0].entry.Source.Start
	}
	return a.pos
}

// discard gives back what was assembled and not returned.
func (a *assembler) discard() {
	for _, u := range a.ready {
		u.release()
	}
	a.ready, a.join = nil, joint{}
}

// step takes one batch, or what stands before it, into account.
func (a *assembler) step(c *chunk) error {
	size, magic, err := recordbatch.Peek(c.data[c.at:])
	if err != nil {
		return a.corrupt(err)
	}
	batch := c.data[c.at : c.at+size]
	if magic < 2 {
		return a.legacy(c, batch)
	}
	h, err := recordbatch.Parse(batch)
	if err == nil {
		err = recordbatch.CheckCRC(batch)
	}
	if err != nil {
		return a.corrupt(err)
	}
	if h.NextOffset() > a.pos {
		a.noteCompaction(h)
	}
	if h.BaseOffset > a.pos {
		return a.gap(c, h.BaseOffset)
	}
	tile, err := c.aborted.classify(h, batch)
	switch {
	case err != nil:
		return &sourceError{a.pos, StopUnsupportedFormat, err}
	case h.NextOffset() <= a.pos:
	case tile == ledger.Copied && h.Count > 0:
		return a.take(c, h, batch)
	default:
		if err := a.skip(c, h, batch, tile); err != nil {
			return err
		}
	}
	c.at += size
	return nil
}

// corrupt locates an error of the source's bytes at the position.
func (a *assembler) corrupt(err error) error {
	return &sourceError{a.pos, StopCorruptSourceBatch, err}
}

// noteCompaction remembers what only the cleaner leaves behind: a batch with
// fewer records than offsets, an empty one, or a delete horizon (KIP-534).
func (a *assembler) noteCompaction(h recordbatch.Header) {
	if h.HasDeleteHorizon() || h.Count < h.LastOffsetDelta+1 {
		a.compactSeen = true
	}
}

// source accounts for [pos, end) with a tile that may stand inside a copied
// run: as a part of the joint if there is one, else as a unit of its own.
// epoch is the leader epoch of the batch that says so, -1 if none does.
func (a *assembler) source(c *chunk, tile ledger.Tile, end int64, epoch int32) {
	if j := a.join.unit; j != nil && epoch >= 0 && epoch != j.entry.LeaderEpoch {
		a.flush(c)
	}
	r := ledger.Range{Start: a.pos, End: end}
	a.pos = end
	if j := a.join.unit; j != nil {
		j.addGap(tile, r)
		if len(j.entry.Gaps) >= maxGaps {
			a.flush(c)
		}
		return
	}
	a.emit(&unit{entry: ledger.Entry{Tile: tile, Source: r, LeaderEpoch: epoch}})
}

func (a *assembler) emit(u *unit) {
	a.ready = append(a.ready, u)
}

// skip accounts for a batch whose records are not copied: control batches,
// data of aborted transactions, empty batches. What is absent from a sparse
// one was compacted away.
func (a *assembler) skip(c *chunk, h recordbatch.Header, batch []byte, tile ledger.Tile) error {
	if tile == ledger.Aborted && a.byContent {
		defer a.noteAborted(a.pos, h, batch)
	}
	switch {
	case h.Count == 0:
		a.source(c, ledger.Compacted, h.NextOffset(), h.LeaderEpoch)
		return nil
	case h.Dense():
		a.source(c, tile, h.NextOffset(), h.LeaderEpoch)
		return nil
	}
	present, err := a.presentOffsets(h, batch)
	if err != nil {
		return a.corrupt(err)
	}
	for _, offset := range present {
		if offset > a.pos {
			a.source(c, ledger.Compacted, offset, h.LeaderEpoch)
		}
		if offset == a.pos {
			a.source(c, tile, offset+1, h.LeaderEpoch)
		}
	}
	if a.pos < h.NextOffset() {
		a.source(c, ledger.Compacted, h.NextOffset(), h.LeaderEpoch)
	}
	return nil
}

// presentOffsets returns the offsets of the records in batch.
func (a *assembler) presentOffsets(h recordbatch.Header, batch []byte) ([]int64, error) {
	body, err := a.tools.decoder.Body(h, batch)
	if err != nil {
		return nil, err
	}
	var offsets []int64
	t := a.tools
	for t.walker.ResetBatch(h, body); t.walker.Next(&t.record); {
		offsets = append(offsets, h.BaseOffset+int64(t.record.OffsetDelta))
	}
	return offsets, t.walker.Err()
}

// take accounts for a batch of records to copy.
func (a *assembler) take(c *chunk, h recordbatch.Header, batch []byte) error {
	passes := h.Dense() && !h.LogAppendTime() && h.BaseOffset == a.pos
	if passes && !decompressed && h.Size() >= smallBatch {
		a.flush(c)
		return a.pass(c, h, batch, nil)
	}
	body, err := a.tools.decoder.Body(h, batch)
	if err != nil {
		return a.corrupt(fmt.Errorf("%v batch: %w", h.Codec(), err))
	}
	if passes && len(body) >= a.worthJoining(h.Codec()) {
		a.flush(c)
		return a.pass(c, h, batch, body)
	}
	if err := a.check(h, body); err != nil {
		return a.corrupt(err)
	}
	if !a.joins(h, len(body)) {
		a.flush(c)
		return nil // the batch begins the next joint, with the next step
	}
	alone := a.join.unit == nil
	a.absorb(h, body)
	a.join.raw = nil
	if alone && passes {
		a.join.raw = batch
	}
	c.at += h.Size()
	return nil
}

// worthJoining returns the size, uncompressed, below which a batch is joined with
// the next. Where nothing is compressed that costs little, and spares the target most
// of its work.
func (a *assembler) worthJoining(codec recordbatch.Codec) int {
	switch {
	case a.far || codec == recordbatch.None:
		return wideBatch
	case codec == recordbatch.LZ4 || codec == recordbatch.Snappy:
		return smallCheapBatch
	}
	return smallBatch
}

// joinAtMost lowers how many bytes are joined: the target has refused more. What is
// known of its settings need not be what it goes by.
func (a *assembler) joinAtMost(bytes int) { a.joinLimit = min(a.joinLimit, bytes) }

// joinable returns how many uncompressed bytes go into one batch now. Where the
// round trip limits the partition, that is what the last joined batch says will be
// joinLimit bytes once compressed, less a twentieth: a batch a round trip is all that old
// records get. One that turns out larger than the target takes is split.
func (a *assembler) joinable() int {
	if !a.far || a.sealed == 0 {
		return a.joinLimit
	}
	estimate := int(int64(a.joinLimit) * int64(a.sealedBody) / int64(a.sealed) * 19 / 20)
	return min(max(estimate, a.joinLimit), mostJoined)
}

// check walks the whole body before anything is taken from it.
func (a *assembler) check(h recordbatch.Header, body []byte) error {
	t := a.tools
	for t.walker.ResetBatch(h, body); t.walker.Next(&t.record); {
	}
	return t.walker.Err()
}

// pass makes a unit of a dense batch as it stands.
func (a *assembler) pass(c *chunk, h recordbatch.Header, batch, body []byte) error {
	u := a.newUnit(h)
	t := a.tools
	for t.walker.ResetBatch(h, body); proven && t.walker.Next(&t.record); {
		a.account(u, h.BaseOffset+int64(t.record.OffsetDelta), h.Timestamp(&t.record))
	}
	if err := t.walker.Err(); err != nil {
		a.pos = h.BaseOffset
		return a.corrupt(err)
	}
	if !proven {
		u.records, u.entry.Source.End = h.Count, h.NextOffset()
	}
	if !a.booksOnly {
		u.batch, u.pin = batch, c.pin.retain()
	}
	a.pos = h.NextOffset()
	c.at += h.Size()
	a.emit(u)
	return nil
}

// joins reports whether the batch can go into the joint.
func (a *assembler) joins(h recordbatch.Header, body int) bool {
	j := &a.join
	return j.unit == nil ||
		j.codec == h.Codec() && j.unit.entry.LeaderEpoch == h.LeaderEpoch &&
			j.body+body <= a.joinable() && len(j.unit.entry.Gaps)+int(h.LastOffsetDelta) <= maxGaps
}

// absorb appends the records of a checked batch, from the position on, to the
// joint.
func (a *assembler) absorb(h recordbatch.Header, body []byte) {
	j := &a.join
	if j.unit == nil {
		*j = joint{unit: a.newUnit(h), codec: h.Codec()}
		j.unit.maxTimestamp = math.MinInt64
		a.tools.builder.Reset(h.Codec())
	}
	t := a.tools
	for t.walker.ResetBatch(h, body); t.walker.Next(&t.record); {
		offset := h.BaseOffset + int64(t.record.OffsetDelta)
		if offset < a.pos {
			continue
		}
		timestamp := h.Timestamp(&t.record)
		t.builder.Append(&t.record, timestamp)
		a.fill(j.unit, offset)
		a.account(j.unit, offset, timestamp)
		j.unit.maxTimestamp = max(j.unit.maxTimestamp, timestamp)
	}
	a.fill(j.unit, h.NextOffset())
	j.body = a.tools.builder.BodyBytes()
}

// fill accounts for the offsets from the position to offset, which a batch
// spans but holds no more.
func (a *assembler) fill(u *unit, offset int64) {
	if offset > a.pos {
		u.addGap(ledger.Compacted, ledger.Range{Start: a.pos, End: offset})
		a.pos = offset
	}
}

// newUnit returns a unit that begins at the position, with a batch's epoch.
func (a *assembler) newUnit(h recordbatch.Header) *unit {
	return &unit{
		entry: ledger.Entry{
			Tile:               ledger.Copied,
			Source:             ledger.Range{Start: a.pos, End: a.pos},
			TimestampsReplaced: a.timestampsReplaced,
			LeaderEpoch:        h.LeaderEpoch,
		},
		maxTimestamp: h.MaxTimestamp,
	}
}

// account adds the record at hand, at the position, to u's entry.
func (a *assembler) account(u *unit, offset, timestamp int64) {
	if a.timestampsReplaced {
		timestamp = 0
	}
	u.records++
	u.entry.Source.End = offset + 1
	a.pos = offset + 1
	if !proven {
		return
	}
	timeless := a.timeless(timestamp)
	if timeless {
		timestamp = 0
	}
	hash, bytes := a.tools.hash(&a.tools.record, timestamp)
	u.entry.Digest = u.entry.Digest.Add(hash)
	u.entry.Bytes += bytes
	if a.keepInfos {
		u.infos = append(u.infos, recordInfo{offset, hash, bytes, timeless})
	}
}

// flush completes the joint, if there is one. A single dense batch passes as
// it stands.
func (a *assembler) flush(c *chunk) {
	j := a.join
	a.join = joint{}
	if j.unit == nil {
		return
	}
	switch {
	case j.unit.records == 0: // all that the batch still held lies below the position
		for _, g := range j.unit.entry.Gaps {
			a.emit(&unit{entry: ledger.Entry{Tile: g.Tile, Source: g.Range, LeaderEpoch: -1}})
		}
		return
	case a.booksOnly:
	case j.raw != nil:
		j.unit.batch, j.unit.pin = j.raw, c.pin.retain()
	default:
		a.seal(j.unit)
	}
	a.ready = append(a.ready, j.unit)
}

// seal gives u the batch of what was joined.
func (a *assembler) seal(u *unit) {
	u.buffer = a.tools.buffers.get()
	body := a.tools.builder.BodyBytes()
	batch, err := a.tools.builder.Take(u.buffer.bytes, -1, -1, -1)
	if err != nil {
		panic("replicate: seal of records that were walked: " + err.Error())
	}
	u.batch, u.buffer.bytes, u.recoded = batch, batch, true
	if body >= a.joinLimit/2 { // a small one, as at a chunk's end, says little
		a.sealedBody, a.sealed = body, len(batch)
	}
	if cap(batch) > spareRoom*len(batch) {
		u.batch = bytes.Clone(batch)
		u.buffer.giveBack()
		u.buffer = nil
	}
}

// showsCompaction reports whether a batch not yet assembled shows the
// cleaner's work.
func (c *chunk) showsCompaction() bool {
	for rest := c.data[c.at:]; len(rest) > 0; {
		size, magic, err := recordbatch.Peek(rest)
		if err != nil {
			return false
		}
		if magic == 2 {
			h, err := recordbatch.Parse(rest[:size])
			if err == nil && (h.HasDeleteHorizon() || h.Count < h.LastOffsetDelta+1) {
				return true
			}
		}
		rest = rest[size:]
	}
	return false
}

// abortedTransactions tells the data of aborted transactions in one fetch
// response, as a consumer does (CompletedFetch.consumeAbortedTransactionsUpTo):
// the list names, for each, the producer id and the first offset; it ends with
// the producer's abort marker.
type abortedTransactions struct {
	starts []abortedStart // by first offset, not yet reached
	open   []int64        // producer ids inside an aborted transaction
}

type abortedStart struct {
	producerID  int64
	firstOffset int64
}

func newAborted(starts []abortedStart) abortedTransactions {
	slices.SortFunc(starts, func(a, b abortedStart) int {
		switch {
		case a.firstOffset < b.firstOffset:
			return -1
		case a.firstOffset > b.firstOffset:
			return 1
		}
		return 0
	})
	return abortedTransactions{starts: starts}
}

// classify says what a batch is; Copied for records to copy. Batches come in
// order; the same one may come again.
func (t *abortedTransactions) classify(h recordbatch.Header, batch []byte) (ledger.Tile, error) {
	for len(t.starts) > 0 && t.starts[0].firstOffset <= h.LastOffset() {
		t.open = append(t.open, t.starts[0].producerID)
		t.starts = t.starts[1:]
	}
	if h.Control() {
		if h.Count == 0 {
			return ledger.Compacted, nil
		}
		commit, err := recordbatch.MarkerType(h, batch)
		switch {
		case err != nil:
			return 0, err
		case commit:
			return ledger.CommitMarker, nil
		}
		t.open = slices.DeleteFunc(t.open, func(id int64) bool { return id == h.ProducerID })
		return ledger.AbortMarker, nil
	}
	if h.Transactional() && slices.Contains(t.open, h.ProducerID) {
		return ledger.Aborted, nil
	}
	return ledger.Copied, nil
}
