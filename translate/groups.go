package translate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"apograph/internal/groups"
	"apograph/ledger"
)

// A GroupOffsets is a consumer group and what it has committed on one cluster.
type GroupOffsets struct {
	groups.Group
	Offsets groups.Offsets
}

// ReadGroups returns groups of a cluster, in the order of ids. Each has errors
// of its own, in Err and in Offsets.Err. What an open transaction may yet commit
// is not committed.
func ReadGroups(ctx context.Context, c *groups.Cluster, ids []string) []GroupOffsets {
	found, offsets := lookAt(ctx, c, ids, c.DecidedOffsets)
	read := make([]GroupOffsets, len(ids))
	for i, id := range ids {
		read[i] = GroupOffsets{found[id], offsets[id]}
		if read[i].Err != nil {
			read[i].Offsets = groups.Offsets{} // the reason is said once
		}
	}
	return read
}

// lookAt asks what groups are and what they have committed, both at once:
// either may have to wait for a coordinator.
func lookAt(
	ctx context.Context, c *groups.Cluster, ids []string, read func(context.Context, []string) map[string]groups.Offsets,
) (found map[string]groups.Group, offsets map[string]groups.Offsets) {
	var wait sync.WaitGroup
	wait.Go(func() { found = c.Groups(ctx, ids) })
	offsets = read(ctx, ids)
	wait.Wait()
	return found, offsets
}

// A Transfer is a committed offset of a group on its way to the other cluster.
type Transfer struct {
	PlanRow         // the offset, and whose it is
	Metadata string // of the commit

	// Epoch is the leader epoch of the commit, -1 if it has none, by which an offset
	// is one of the log from before a cut; or NewestEpoch for an offset that is meant of
	// the log that there is.
	Epoch int32

	// SeenMillis is when the group is known to have had the offset, in Unix
	// milliseconds; 0 is not known. What the ledger keeps of the group counts beside it.
	SeenMillis int64

	// Doubtful says that the answer is Unknown because the log was cut, and nobody can
	// know whether the offset is one of the log from before.
	Doubtful bool

	Answer // its translation

	// TargetCommitted is what the group has committed on the target, NoOffset if
	// that is nothing or not known.
	TargetCommitted int64
	Decision        groups.Decision

	// Gone says that the target's log ends before the answer, as [CheckTarget] saw: it
	// has lost records that were copied, and must not be committed.
	Gone bool

	// Err says that something about this offset could not be learned or done.
	Err error

	topicID [16]byte // of the topic on the target, as the target says
}

// NewestEpoch stands in a [Transfer] for the leader epoch of an offset that is not
// what a group has committed some time: it is one of the log that there is.
const NewestEpoch = math.MaxInt32

// NewTransfer returns the transfer of an offset that is not yet translated, of
// NewestEpoch.
func NewTransfer(row PlanRow, metadata string) Transfer {
	return Transfer{
		PlanRow:         row,
		Metadata:        metadata,
		Epoch:           NewestEpoch,
		TargetCommitted: NoOffset,
		Decision:        groups.Decision{Action: groups.None},
	}
}

// Translate fills in the answers of transfers, in reverse from the target's
// offsets. Where the log was cut, and a person accepted it, what a group committed
// before is translated by the books from before; where nobody can know when it was
// committed, the answer is Unknown. Errors are those of [Index.Forward].
func (x *Index) Translate(ctx context.Context, transfers []Transfer, reverse bool) error {
	queries := make([]Query, len(transfers))
	for i := range transfers {
		queries[i] = transfers[i].Query
	}
	answer := x.Forward
	if reverse {
		answer = x.Reverse
	}
	answers, err := answer(ctx, queries)
	for i := range answers {
		transfers[i].Answer = answers[i]
	}
	if err != nil {
		return err
	}
	if reverse {
		return x.doubtReverse(transfers)
	}
	return x.placeCommits(transfers)
}

// A Selection is what there is to translate of a group.
type Selection struct {
	Transfers []Transfer // by topic and partition, not yet translated

	// What is left out: partitions without an offset or with a negative one,
	// which some clients commit in place of none, and topics of which the
	// ledger has no book.
	Null   []groups.Partition
	NoBook []string
}

// Select returns what there is to translate of a group that was read on the
// source, or in reverse on the target.
func (x *Index) Select(g GroupOffsets, reverse bool) Selection {
	topics := x.sourceTopics
	if reverse {
		topics = x.targetTopics
	}
	var s Selection
	partitions := slices.SortedFunc(maps.Keys(g.Offsets.At), func(a, b groups.Partition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Number, b.Number))
	})
	for _, p := range partitions {
		at := g.Offsets.At[p]
		switch {
		case !topics[p.Topic]:
			if !slices.Contains(s.NoBook, p.Topic) {
				s.NoBook = append(s.NoBook, p.Topic)
			}
		case at.At < 0:
			s.Null = append(s.Null, p)
		default:
			t := NewTransfer(PlanRow{g.ID, Query{p.Topic, p.Number, at.At}}, at.Metadata)
			t.Epoch = at.Epoch
			s.Transfers = append(s.Transfers, t)
		}
	}
	return s
}

// CheckSource looks whether the logs from which transfers were read are those of
// their books. An offset in a topic that was deleted and created again means another
// record than the books know, and so does one above the place where a log was cut,
// which nobody may have seen yet, also if it has grown again: its answer becomes
// Unknown. Where a partition cannot be asked, Err says so.
func CheckSource(ctx context.Context, source *groups.Cluster, l *ledger.Ledger, transfers []Transfer, reverse bool) error {
	topics, err := source.Topics(ctx, topicsOf(transfers, func(t *Transfer) string { return t.Topic }))
	if err != nil {
		return err
	}
	for i := range transfers {
		t := &transfers[i]
		book := t.Pair.SourceTopicID
		if reverse {
			book = t.Pair.TargetTopicID
		}
		switch found := topics[t.Topic]; {
		case t.Status == Unknown:
		case found.Err != nil:
			t.Err = fmt.Errorf("topic %s on %s: %w", t.Topic, source.Alias, found.Err)
		case found.IsOther(book):
			t.forget(recreated(t.Topic, source, found.ID, book), reverse)
		}
	}
	if !reverse { // the books know no leader epochs of the target
		checkLogs(ctx, source, l, transfers)
	}
	return nil
}

// checkLogs takes back the answers about offsets that a source's log has lost, or
// may have.
func checkLogs(ctx context.Context, source *groups.Cluster, l *ledger.Ledger, transfers []Transfer) {
	pairs := make(map[ledger.PairID]bool)
	for i := range transfers {
		if t := &transfers[i]; t.Status != Unknown && t.Err == nil {
			pairs[t.Pair.ID] = true
		}
	}
	cuts := source.Partings(ctx, l, slices.Sorted(maps.Keys(pairs)))
	for i := range transfers {
		t := &transfers[i]
		switch cut := cuts[t.Pair.ID]; {
		case t.Status == Unknown || t.Err != nil:
		case cut.Err != nil:
			t.Err = cut.Err
		case t.SourceOffset > cut.At:
			t.forget(cut.Detail, false)
		}
	}
}

// HoldBack takes back the answers about partitions of which the ledger says that
// the source's log was cut below the books: an offset there may be that of
// another record now. So it is of all offsets of the partition: where the stop says that
// the logs part, they part at the latest, and a leader may tell a lower place later.
func HoldBack(l *ledger.Ledger, transfers []Transfer, reverse bool) {
	cut := map[groups.Partition]bool{}
	for _, s := range l.Stops() {
		if s.Holds(ledger.SourceTruncated) {
			cut[groups.Partition{Topic: s.SourceTopic, Number: s.Partition}] = true
		}
	}
	for i := range transfers {
		t := &transfers[i]
		if t.Status != Unknown && cut[groups.Partition{Topic: t.Pair.SourceTopic, Number: t.Partition}] {
			t.forget("the source's log was cut below the books: its offsets may be those of other records now", reverse)
		}
	}
}

// CheckTarget looks at the target's topics: whether they are those of the
// books, and whether they still hold the record at which an answer is. One that
// the target has lost at the end of its log, as after an unclean leader
// election, keeps its status, which is about the books, and is Gone.
// TargetOffset of a BelowTargetStart answer is the first readable offset.
func CheckTarget(ctx context.Context, target *groups.Cluster, transfers []Transfer) error {
	names := topicsOf(transfers, func(t *Transfer) string { return t.Pair.TargetTopic })
	topics, err := target.Topics(ctx, names)
	if err != nil {
		return err
	}
	existing := slices.DeleteFunc(names, func(name string) bool { return topics[name].Err != nil })
	bounds, boundsErr := target.Bounds(ctx, existing)
	for i := range transfers {
		t := &transfers[i]
		if t.Status == Unknown {
			continue
		}
		name := t.Pair.TargetTopic
		found := topics[name]
		log, err := target.BoundsOf(groups.Partition{Topic: name, Number: t.Partition}, bounds, boundsErr)
		switch {
		case found.Err == groups.ErrNoTopic:
			t.forget(fmt.Sprintf("%s has no topic %s", target.Alias, name), false)
		case found.Err != nil:
			t.Err = fmt.Errorf("topic %s on %s: %w", name, target.Alias, found.Err)
		case found.IsOther(t.Pair.TargetTopicID):
			t.forget(recreated(name, target, found.ID, t.Pair.TargetTopicID), false)
		case err != nil:
			t.Err = err
		default:
			t.topicID = found.ID
			t.fit(log)
		}
	}
	return nil
}

func topicsOf(transfers []Transfer, topic func(*Transfer) string) []string {
	names := make(map[string]bool)
	for i := range transfers {
		if name := topic(&transfers[i]); name != "" && transfers[i].Status != Unknown {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func recreated(topic string, on *groups.Cluster, found [16]byte, book ledger.TopicID) string {
	return fmt.Sprintf("topic %s on %s has been created again: its id is %v, that of the book %v", topic, on.Alias, ledger.TopicID(found), book)
}

// forget takes an answer back that does not hold.
func (t *Transfer) forget(why string, reverse bool) {
	t.Status, t.Distance, t.Detail, t.CopiedTo = Unknown, 0, why, NoOffset
	if reverse {
		t.SourceOffset = NoOffset
	} else {
		t.TargetOffset = NoOffset
	}
}

// fit compares an answer with the bounds of the target's log. One below it
// moves up to the first offset that can be read.
func (t *Transfer) fit(log groups.Bounds) {
	detail := ""
	switch {
	case t.TargetOffset > log.End:
		t.Gone = true
		detail = fmt.Sprintf("the target's log ends at %d: it has lost records that were copied", log.End)
	case t.TargetOffset < log.Start && t.Status != BeyondCopied:
		detail = fmt.Sprintf("the target has removed what was below its log start offset %d", log.Start)
		t.Status, t.Distance, t.TargetOffset = BelowTargetStart, log.Start-t.TargetOffset, log.Start
	default:
		return
	}
	if t.Detail != "" {
		detail = t.Detail + "; " + detail
	}
	t.Detail = detail
}
