package groups

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"apograph/ledger"
)

// Partings says where a source's logs part from the books of pairs: what [Cluster.Cuts]
// says, and of a log that ends below the books though no leader epoch proves a cut, that
// it may have been cut anywhere: At is -1. A log of which the bounds are not known may
// have any end.
func (c *Cluster) Partings(ctx context.Context, l *ledger.Ledger, ids []ledger.PairID) map[ledger.PairID]Cut {
	names, ends := make(map[string]bool), make(map[ledger.PairID]int64)
	for _, id := range ids {
		pair, _ := l.Pair(id)
		names[pair.SourceTopic], ends[id] = true, l.Committed(id).Source // before the log is asked: both grow
	}
	bounds, boundsErr := c.Bounds(ctx, slices.Sorted(maps.Keys(names)))
	cuts := c.Cuts(ctx, l, ids)
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
