package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Standing is a source partition that a copier at work has stopped, or that is
// paused.
type Standing struct {
	Topic     string
	Partition int32
	Why       string    // for a person
	Retry     time.Time // when the copier tries it again by itself; zero: it does not
	Mark      string    // is another one if it moved meanwhile
}

// whatStands asks the copier what stands.
func (r *run) whatStands(ctx context.Context) map[topicPartition]Standing {
	all := map[topicPartition]Standing{}
	if r.config.Standing != nil {
		for _, s := range r.config.Standing(ctx) {
			all[topicPartition{s.Topic, s.Partition}] = s
		}
	}
	return all
}

// judgeStanding has those partitions judged as if no copier was at work that did
// not move between before the books were copied and now, when the target's end is
// known: what it holds behind its books, the copier is not about to book. Only what
// the copier itself had on its way when it stopped can have come since, and the
// producer id tells that.
func (r *run) judgeStanding(ctx context.Context) {
	if !r.live || len(r.standing) == 0 {
		return
	}
	now := r.whatStands(ctx)
	for _, j := range r.openJobs() {
		tp := topicPartition{j.books.pair.SourceTopic, j.books.pair.Partition}
		if then, ok := r.standing[tp]; ok && now[tp].Mark == then.Mark {
			j.live, j.books.stands = false, "; the copier says: "+then.Why
		}
	}
}

// stands says why the copier does not copy a partition that has no book; nothing
// if that is not known.
func (r *run) stands(tp topicPartition) string {
	if s, ok := r.standing[tp]; ok {
		return "; the copier says: " + s.Why
	}
	return ""
}

// awaited returns the partitions whose books do not go as far as was asked, and
// that may get there by a time.
func (r *run) awaited(deadline time.Time) (behind []topicPartition) {
	booked := r.positions()
	for tp, end := range r.asked {
		s, stands := r.standing[tp]
		if booked[tp] < end && (!stands || !s.Retry.IsZero() && s.Retry.Before(deadline)) {
			behind = append(behind, tp)
		}
	}
	slices.SortFunc(behind, topicPartition.compare)
	return behind
}

// positions returns where the open books end on the source.
func (r *run) positions() map[topicPartition]int64 {
	positions := map[topicPartition]int64{}
	for _, pair := range r.ledger.Pairs() {
		if pair.Closed == nil {
			positions[topicPartition{pair.SourceTopic, pair.Partition}] = r.ledger.Committed(pair.ID).Source
		}
	}
	return positions
}

// maxAwaited is how many partitions are named that are waited for.
const maxAwaited = 5

// awaitedText names partitions that are waited for: those of a book with the
// offsets that it lacks, and the topics that the copier has not begun.
func (r *run) awaitedText(behind []topicPartition) string {
	booked := r.positions()
	var names []string
	for _, tp := range behind {
		at, ok := booked[tp]
		name := fmt.Sprintf("%s-%d (%s behind)", tp.topic, tp.partition, counted(r.asked[tp]-at, "offset"))
		if !ok {
			name = tp.topic + " (the copier has not begun it)"
		}
		names = append(names, name)
	}
	names = slices.Compact(names)
	if more := len(names) - maxAwaited; more > 0 {
		names = append(names[:maxAwaited], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// A waiting tells what is waited for: in the progress each time, in the log once,
// and not before it has been waited for at all.
type waiting struct {
	run      *run
	deadline time.Time
	looks    int
}

func (w *waiting) tell(what, which string) {
	w.looks++
	left := time.Until(w.deadline)
	if left <= 0 || w.looks < 2 {
		return
	}
	until := w.deadline.UTC().Format(time.TimeOnly) + " UTC"
	if w.looks == 2 {
		w.run.config.Logger.Info("waiting for "+what, "until", until, "for", which)
	}
	w.run.config.Progress(Progress{Waiting: fmt.Sprintf("waiting for %s, until %s: %s", what, until, which), Left: -1})
}
