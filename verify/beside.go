package verify

import (
	"cmp"
	"slices"

	"apograph/ledger"
)

// A Beside says where others wrote to a target partition beside the copies, as the
// ledger has it: records, or the markers of their transactions. It is no fault of
// the copy; consumers of the target read such records all the same. Aborted
// records, which an earlier copier has brought over, are none.
type Beside struct {
	Topic     string // of the target
	Partition int32
	Offsets   int64   // of the target, all in all
	First     []Range // of them
}

// firstBeside is how many ranges are named of a partition.
const firstBeside = 3

// add takes an entry into account.
func (b *Beside) add(e *ledger.Entry) {
	if e.Tile != ledger.Foreign || e.Cause == ledger.CauseAborted {
		return
	}
	b.Offsets += e.Target.Len()
	switch n := len(b.First); {
	case n > 0 && b.First[n-1].End == e.Target.Start:
		b.First[n-1].End = e.Target.End
	case n < firstBeside:
		b.First = append(b.First, *rangeOf(e.Target))
	}
}

// noteBeside takes what a job found beside the copies, unless the target's log is
// another one by now.
func (c *collector) noteBeside(j *job) {
	if j.books == nil || j.books.beside.Offsets == 0 || j.books.pair.Closed != nil && !j.reads() {
		return
	}
	b := j.books.beside
	b.Topic, b.Partition = j.books.pair.TargetTopic, j.books.pair.Partition
	c.beside = append(c.beside, b)
}

// sortBeside puts partitions in order.
func sortBeside(all []Beside) []Beside {
	slices.SortFunc(all, func(a, b Beside) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(start(&a.First[0]), start(&b.First[0])))
	})
	return all
}
