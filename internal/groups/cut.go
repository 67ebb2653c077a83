package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/ledger"
)

// A Cut says where a source's log parts from the books, as an unclean leader election
// leaves it.
type Cut struct {
	// At is the offset from which on the log has other records than the books know,
	// or none. Whoever has committed it, or a lower one, has read nothing of these.
	// math.MaxInt64: they do not part, as far as the log's leader knows.
	At     int64
	Detail string // one line for a person; "" if they do not part
	Err    error  // why nothing is known
}

// Partings says where a source's logs part from the books of pairs, as their leader
// epochs prove it; and of a log that ends below the books though none proves a cut, that
// it may have been cut anywhere: At is -1. A log of which the bounds are not known may
// have any end.
func (c *Cluster) Partings(ctx context.Context, l *ledger.Ledger, ids []ledger.PairID) map[ledger.PairID]Cut {
	names, ends := make(map[string]bool), make(map[ledger.PairID]int64)
	for _, id := range ids {
		pair, _ := l.Pair(id)
		names[pair.SourceTopic], ends[id] = true, l.Committed(id).Source // before the log is asked: both grow
	}
	bounds, boundsErr := c.Bounds(ctx, slices.Sorted(maps.Keys(names)))
	cuts := c.cuts(ctx, l, ids)
	for id, end := range ends {
		pair, _ := l.Pair(id)
		p := Partition{pair.SourceTopic, pair.Partition}
		switch log, err := c.BoundsOf(p, bounds, boundsErr); {
		case err != nil:
			cuts[id] = Cut{Err: err}
		case cuts[id].Err == nil && cuts[id].At == math.MaxInt64 && log.End < end:
			cuts[id] = Cut{At: -1, Detail: fmt.Sprintf("the log of %v on %s ends at %d, below the books, which end at %d: it may have been cut, and hold other records now",
				p, c.Alias, log.End, end)}
		}
	}
	return cuts
}

// cuts asks the leaders of a source's partitions whether their logs are those of the
// books of pairs: where the leader epoch ended that the books know last
// (OffsetForLeaderEpoch, KIP-320). An end offset alone proves nothing, as a log that
// was cut may have grown again. A pair whose books know no epoch, as of message formats
// before 0.11, is taken to be whole.
func (c *Cluster) cuts(ctx context.Context, l *ledger.Ledger, ids []ledger.PairID) map[ledger.PairID]Cut {
	cuts := make(map[ledger.PairID]Cut, len(ids))
	known := make(map[ledger.PairID]knownEpoch)
	var request kadm.OffsetForLeaderEpochRequest
	for _, id := range ids {
		cuts[id] = Cut{At: math.MaxInt64}
		pair, _ := l.Pair(id)
		newest, err := l.NewestEpoch(id)
		switch {
		case err != nil:
			cuts[id] = Cut{Err: err}
		case newest.Epoch >= 0:
			known[id] = knownEpoch{Partition{pair.SourceTopic, pair.Partition}, newest}
			request.Add(pair.SourceTopic, pair.Partition, newest.Epoch)
		}
	}
	if len(known) == 0 {
		return cuts
	}
	answers, err := c.admin.OffsetForLeaderEpoch(ctx, request)
	for id, k := range known {
		cuts[id] = c.cutOf(ctx, l, id, k, epochEnds{answers, err})
	}
	return cuts
}

// A knownEpoch is the newest leader epoch that books know, as it was before the leaders
// were asked: books may grow.
type knownEpoch struct {
	of Partition
	ledger.EpochEnd
}

// cutOf is cuts of one pair, with what the leaders have answered of the newest epochs.
// Older ones are asked for one by one: few logs part in those.
func (c *Cluster) cutOf(ctx context.Context, l *ledger.Ledger, id ledger.PairID, k knownEpoch, all epochEnds) Cut {
	parting, err := l.PartsAt(id, k.EpochEnd, func(epoch int32) (ledger.EpochEnd, error) {
		if epoch == k.Epoch {
			return all.of(k.of)
		}
		var request kadm.OffsetForLeaderEpochRequest
		request.Add(k.of.Topic, k.of.Number, epoch)
		answers, err := c.admin.OffsetForLeaderEpoch(ctx, request)
		return epochEnds{answers, err}.of(k.of)
	})
	switch {
	case err != nil:
		return Cut{Err: fmt.Errorf("leader epochs of %v on %s: %w", k.of, c.Alias, err)}
	case parting == nil:
		return Cut{At: math.MaxInt64}
	}
	return Cut{At: parting.At, Detail: fmt.Sprintf("the source's log was cut at offset %d, below the books, which know its leader epoch %d up to %d: it may have other records there now",
		parting.At, k.Epoch, k.Offset)}
}

// EpochEnds are what leaders have answered about leader epochs.
type epochEnds struct {
	answers kadm.OffsetsForLeaderEpochs
	err     error // why some are not there
}

func (e epochEnds) of(p Partition) (ledger.EpochEnd, error) {
	a, ok := e.answers[p.Topic][p.Number]
	if !ok {
		return ledger.EpochEnd{}, errors.Join(e.err, errNoEpochs)
	}
	return ledger.EpochEnd{Epoch: a.LeaderEpoch, Offset: a.EndOffset}, a.Err
}

var errNoEpochs = errors.New("there was no answer")
