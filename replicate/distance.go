package replicate

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// farAway is the round trip from which on it, and not the target's work, limits
// what a partition copies: a few batches in flight that are as small as the
// source's leave the line empty.
const farAway = 20 * time.Millisecond

// A distance is the shortest time that a cluster took to answer any request: its
// round trip, without what a broker that is busy adds to it. It is a hook of the
// cluster's clients. The zero value knows nothing yet.
type distance struct{ shortest atomic.Int64 }

var _ kgo.HookBrokerE2E = (*distance)(nil)

// OnBrokerE2E notes what one request took.
func (d *distance) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e kgo.BrokerE2E) {
	took := e.DurationE2E()
	if e.Err() != nil || took <= 0 {
		return
	}
	for {
		known := d.shortest.Load()
		if known != 0 && known <= int64(took) || d.shortest.CompareAndSwap(known, int64(took)) {
			return
		}
	}
}

// far reports whether the cluster is known to be far away.
func (d *distance) far() bool { return time.Duration(d.shortest.Load()) >= farAway }
