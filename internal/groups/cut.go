package groups

import (
	"context"
	"errors"
	"fmt"
	"math"

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

// Cuts asks the leaders of a source's partitions whether their logs are those of the
// books of pairs: where the leader epoch ended that the books know last
// (OffsetForLeaderEpoch, KIP-320). An end offset alone proves nothing, as a log that
// was cut may have grown again. A pair whose books know no epoch, as of message formats
// before 0.11, is taken to be whole.
func (c *Cluster) Cuts(ctx context.Context, l *ledger.Ledger, ids []ledger.PairID) map[ledger.PairID]Cut {
	cuts := make(map[ledger.PairID]Cut, len(ids))
	known := make(map[ledger.PairID]knownEpoch) // as it is now: books may grow
	var request kadm.OffsetForLeaderEpochRequest
	for _, id := range ids {
		cuts[id] = Cut{At: math.MaxInt64}
		if epoch, end := l.NewestEpoch(id); epoch >= 0 {
			pair, _ := l.Pair(id)
			known[id] = knownEpoch{Partition{pair.SourceTopic, pair.Partition}, epoch, end}
			request.Add(pair.SourceTopic, pair.Partition, epoch)
		}
	}
	if len(known) == 0 {
		return cuts
	}
	answers, err := c.admin.OffsetForLeaderEpoch(ctx, request)
	for id, k := range known {
		answer, ok := answers[k.of.Topic][k.of.Number]
		if !ok {
			answer.Err = errors.Join(err, errNoEpochs)
		}
		if answer.Err != nil {
			cuts[id] = Cut{Err: fmt.Errorf("leader epochs of %v on %s: %w", k.of, c.Alias, answer.Err)}
		} else if at := k.partsAt(l, id, answer); at >= 0 {
			cuts[id] = Cut{At: at, Detail: fmt.Sprintf("the source's log was cut at offset %d, below the books, which know its leader epoch %d up to %d: it may have other records there now",
				at, k.epoch, k.end)}
		}
	}
	return cuts
}

var errNoEpochs = errors.New("there was no answer")

// A knownEpoch is the newest leader epoch that books know, and the source offset up
// to which it holds.
type knownEpoch struct {
	of    Partition
	epoch int32
	end   int64
}

// partsAt returns where the log parts from the books whose leader answers so; -1 if it
// does not, or its leader does not know the epoch.
func (k *knownEpoch) partsAt(l *ledger.Ledger, id ledger.PairID, answer kadm.OffsetForLeaderEpoch) int64 {
	if answer.EndOffset < 0 || answer.LeaderEpoch < 0 || answer.LeaderEpoch >= k.epoch && answer.EndOffset >= k.end {
		return -1
	}
	return l.PartsAt(id, answer.LeaderEpoch, answer.EndOffset)
}
