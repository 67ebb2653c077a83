package replicate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// orphanWindow bounds how many of the target's records are kept to look for
// one that follows records without a source.
const orphanWindow = 100_000

// An adoption books what the target holds behind the books: a copier wrote it
// and ended before it could say so. The records are matched one by one with
// those of the source, so it does not matter how the other grouped them. What
// is ours by producer id and sequence number but no longer on the source is an
// orphan; what is not ours stops the partition.
type adoption struct {
	reader   tailReader
	expected int32        // sequence number of the next batch of ours
	records  []tailRecord // read ahead, in offset order
	absent   int64        // source offsets without a record since the last match, and without an orphan
	ended    bool         // the reader has come to its end
}

// A tailRecord is one offset of the target's log behind the books.
type tailRecord struct {
	offset int64
	hash   uint64
	gone   bool // ours, but compacted away on the target: known by its place only
}

func newAdoption(p *partition, end ledger.Position, logEnd int64) (*adoption, error) {
	absent, err := p.absentAtEnd()
	return &adoption{
		reader:   tailReader{p: p, at: end.Target, end: logEnd},
		expected: p.producer.Next(end.Appended),
		absent:   absent,
	}, err
}

// absentAtEnd counts the source offsets at the books' end that have no record,
// nor an orphan: an earlier adoption may have booked them and ended before it
// came to the target's records.
func (p *partition) absentAtEnd() (absent int64, err error) {
	if err := p.flow.ledger.Commit(); err != nil {
		return 0, err // only what is committed can be read
	}
	from := p.flow.ledger.End(p.pair.ID).Source
	for from > 0 {
		e, err := p.flow.ledger.FindSource(p.pair.ID, from-1)
		if err != nil {
			return 0, err
		}
		from = e.Source.Start
		if e.Tile == ledger.Copied {
			break
		}
	}
	for e, err := range p.flow.ledger.Entries(p.pair.ID, from) {
		if err != nil {
			return 0, err
		}
		switch e.Tile {
		case ledger.Copied:
			absent = trailingCompacted(&e)
		case ledger.Orphan:
			absent -= e.Target.Len()
		case ledger.CommitMarker, ledger.AbortMarker, ledger.Aborted:
		default:
			absent += e.Source.Len()
		}
	}
	return max(absent, 0), nil
}

// trailingCompacted counts the compacted offsets behind the last record of a
// copied entry.
func trailingCompacted(e *ledger.Entry) (n int64) {
	end := e.Source.End
	for _, g := range slices.Backward(e.Gaps) {
		if g.Range.End != end {
			break
		}
		if end = g.Range.Start; g.Tile == ledger.Compacted {
			n += g.Range.Len()
		}
	}
	return n
}

// take books as much of u as the target holds already, and gives what is left
// to the window.
func (a *adoption) take(p *partition, c *chunk, u *unit) {
	if err := a.match(p, c, u); err != nil {
		u.release()
		p.adoptionFailed(err)
	}
}

// A strangerError reports records behind the books that are not ours to adopt.
type strangerError struct{ detail string }

func (e *strangerError) Error() string { return e.detail }

func (p *partition) adoptionFailed(err error) {
	if stranger, ok := err.(*strangerError); ok {
		p.halt(StopForeignWriter, stranger.detail)
		return
	}
	switch code := codeOf(err); {
	case code == kerr.OffsetOutOfRange:
		p.halt(StopTargetLostRecords, fmt.Sprintf("what stands behind the books on %v, from offset %d on, is gone from the target before it could be compared: %v",
			p.target, p.flow.ledger.End(p.pair.ID).Target, err))
	case !transient(err):
		p.halt(reasonOf(err), fmt.Sprintf("read %v: %v", p.target, err))
	case p.backoff(err.Error()) && !p.flow.draining():
		p.restart() // everything is read again from the books' end
	}
}

// errBooks says that the books could not be written; the flow knows why.
var errBooks = errors.New("books cannot be written")

func (a *adoption) match(p *partition, c *chunk, u *unit) error {
	if u.records == 0 {
		if u.entry.Tile != ledger.CommitMarker && u.entry.Tile != ledger.AbortMarker && u.entry.Tile != ledger.Aborted {
			a.absent += u.entry.Source.Len()
		}
		return a.enter(p, u.entry)
	}
	from := 0
	for i := range u.infos {
		a.absent += compactedBefore(u, i)
		next, err := a.peek()
		if err != nil {
			return err
		}
		if next != nil && !next.gone && next.hash != u.infos[i].hash {
			if err := a.enterRecords(p, u, from, i); err != nil {
				return err
			}
			if err := a.orphans(p, u.infos[i].hash); err != nil {
				return err
			}
			from = i
			next, err = a.peek()
			if err != nil {
				return err
			}
		}
		if next == nil {
			return a.rest(p, c, u, from, i)
		}
		a.records = a.records[1:]
		a.absent = 0
	}
	if err := a.enterRecords(p, u, from, len(u.infos)); err != nil {
		return err
	}
	a.absent += trailingGap(u)
	u.release()
	return nil
}

// rest ends the adoption in front of record i of u: the target holds no more.
func (a *adoption) rest(p *partition, c *chunk, u *unit, from, i int) error {
	if err := a.enterRecords(p, u, from, i); err != nil {
		return err
	}
	p.adoption = nil
	p.asm.keepInfos = false
	p.newWindow()
	if i == 0 && p.flow.ledger.End(p.pair.ID).Source == u.entry.Source.Start {
		p.admit(u)
		return nil
	}
	u.release()
	p.asm.rewind(c, u, p.flow.ledger.End(p.pair.ID).Source)
	return nil
}

// enterRecords books the records [from, to) of u where the target holds them.
func (a *adoption) enterRecords(p *partition, u *unit, from, to int) error {
	if from == to {
		return nil
	}
	start, end := u.entry.Source.Start, u.infos[to-1].offset+1
	if from > 0 {
		start = u.infos[from-1].offset + 1
	}
	if to == len(u.infos) {
		end = u.entry.Source.End
	}
	part := u.part(start, from, to, end)
	return a.enter(p, part.entry)
}

// enter books e at the books' end.
func (a *adoption) enter(p *partition, e ledger.Entry) error {
	end := p.flow.ledger.End(p.pair.ID)
	e.Target = ledger.Range{Start: end.Target, End: end.Target}
	if e.Tile == ledger.Copied {
		e.Target.End += e.Source.Len() - gapLen(e.Gaps)
	}
	if !p.enter(e) {
		return errBooks
	}
	return nil
}

// orphans books the target's records up to one with the given hash, or all
// that are left if there is none, as ours without a source. There cannot be
// more of them than source offsets whose record is gone.
func (a *adoption) orphans(p *partition, hash uint64) error {
	n := 0
	for ; ; n++ {
		if err := a.fill(n + 1); err != nil {
			return err
		}
		if n >= len(a.records) || a.records[n].hash == hash {
			break
		}
		if n >= orphanWindow {
			return &strangerError{fmt.Sprintf("more than %d records from target offset %d on have no source", orphanWindow, a.records[0].offset)}
		}
	}
	return a.enterOrphans(p, n)
}

func (a *adoption) enterOrphans(p *partition, n int) error {
	if n == 0 {
		return nil
	}
	if int64(n) > a.absent {
		return &strangerError{fmt.Sprintf("%d records from target offset %d on carry our producer id and differ from the source, which lacks only %d",
			n, a.records[0].offset, a.absent)}
	}
	end := p.flow.ledger.End(p.pair.ID)
	e := ledger.Entry{
		Tile:        ledger.Orphan,
		Source:      ledger.Range{Start: end.Source, End: end.Source},
		Target:      ledger.Range{Start: end.Target, End: end.Target + int64(n)},
		LeaderEpoch: -1,
	}
	if !p.enter(e) {
		return errBooks
	}
	a.records = a.records[n:]
	return nil
}

// finish ends the adoption when the source has nothing more to match: records
// that are left have no source any more.
func (a *adoption) finish(p *partition) {
	if err := a.fill(orphanWindow + 1); err != nil {
		p.adoptionFailed(err)
		return
	}
	if err := a.enterOrphans(p, len(a.records)); err != nil {
		p.adoptionFailed(err)
		return
	}
	p.adoption = nil
	p.asm.keepInfos = false
	p.newWindow()
}

// peek returns the target's next record, nil if there is none.
func (a *adoption) peek() (*tailRecord, error) {
	if err := a.fill(1); err != nil || len(a.records) == 0 {
		return nil, err
	}
	return &a.records[0], nil
}

// fill reads ahead until n records are at hand or the log ends.
func (a *adoption) fill(n int) error {
	for len(a.records) < n && !a.ended {
		at := a.reader.at
		b, err := a.reader.batch()
		if err != nil {
			return err
		}
		if b == nil {
			a.ended = true
			return nil
		}
		if err := a.admit(at, b); err != nil {
			return err
		}
	}
	return nil
}

// admit takes one batch of the target's log, which stood at or behind offset
// at, as ours, or refuses it.
func (a *adoption) admit(at int64, b *readBatch) error {
	if !b.ours {
		return &strangerError{fmt.Sprintf("target offsets [%d, %d) were written by another producer", b.base, b.next)}
	}
	// A hole in front is what the target's cleaner took; the sequence number
	// tells whether it was ours.
	hole := max(b.base-at, 0)
	if want := recordbatch.IncrementSequence(a.expected, int32(hole)); b.sequence != want {
		return &strangerError{fmt.Sprintf("target offset %d has sequence number %d of our producer id, expected %d", b.base, b.sequence, want)}
	}
	for offset := at; offset < b.base; offset++ {
		a.records = append(a.records, tailRecord{offset: offset, gone: true})
	}
	offset := max(at, b.base)
	for _, r := range b.records {
		for ; offset < r.offset; offset++ {
			a.records = append(a.records, tailRecord{offset: offset, gone: true})
		}
		a.records = append(a.records, tailRecord{offset: r.offset, hash: r.hash})
		offset = r.offset + 1
	}
	for ; offset < b.next; offset++ {
		a.records = append(a.records, tailRecord{offset: offset, gone: true})
	}
	a.expected = recordbatch.IncrementSequence(b.sequence, int32(b.next-b.base))
	return nil
}

// compactedBefore counts the source offsets that were compacted away between
// records i-1 and i of u, or in front of record 0.
func compactedBefore(u *unit, i int) int64 {
	start := u.entry.Source.Start
	if i > 0 {
		start = u.infos[i-1].offset + 1
	}
	return compactedIn(u, ledger.Range{Start: start, End: u.infos[i].offset})
}

// trailingGap counts those behind the last record.
func trailingGap(u *unit) int64 {
	return compactedIn(u, ledger.Range{Start: u.infos[len(u.infos)-1].offset + 1, End: u.entry.Source.End})
}

func compactedIn(u *unit, r ledger.Range) int64 {
	n := int64(0)
	for _, g := range u.entry.Gaps {
		if g.Tile == ledger.Compacted && g.Range.Start >= r.Start && g.Range.End <= r.End {
			n += g.Range.Len()
		}
	}
	return n
}

func gapLen(gaps []ledger.Gap) int64 {
	n := int64(0)
	for _, g := range gaps {
		n += g.Range.Len()
	}
	return n
}
