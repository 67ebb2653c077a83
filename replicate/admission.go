package replicate

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
)

// An admission knows whether a cluster lets us in: a login or a certificate that was
// good at the start may be refused later, as when a password is changed. It is a
// hook of the cluster's clients, and tells once when they are refused, and when they
// are no longer. Connections are tried again all the same: stores and tokens are
// read anew for each, and the other side may be put right.
type admission struct {
	flow    *Flow
	cluster connect.Cluster

	mu      sync.Mutex // guards what follows
	open    bool       // there was an answer once; what goes wrong before is the start's to tell
	told    bool
	refused map[string]refusedAt // by the broker's address
}

type refusedAt struct {
	why string
	at  time.Time
}

// refusalHolds is for how long a refusal is believed to be the cause of what goes
// wrong meanwhile, if the broker is not asked again.
const refusalHolds = time.Minute

var _ kgo.HookBrokerConnect = (*admission)(nil)

// OnBrokerConnect takes the outcome of one connection, its login included.
func (a *admission) OnBrokerConnect(b kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	log := a.flow.config.Logger
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.refused, address)
	switch {
	case connect.Permanent(err):
		why := fmt.Sprintf("cluster %s refuses us at broker %s: %v", a.cluster.Alias, address, err)
		if hint := a.cluster.Hint(err); hint != "" {
			why += ": " + hint
		}
		if a.refused == nil {
			a.refused = map[string]refusedAt{}
		}
		a.refused[address] = refusedAt{why, a.flow.now()}
		if a.open && !a.told {
			a.told = true
			log.Warn("a cluster refuses us; it is asked again, with growing pauses", "cluster", a.cluster.Alias, "reason", why)
		}
	case err == nil && a.told && a.why() == "":
		a.told = false
		log.Info("the cluster lets us in again", "cluster", a.cluster.Alias)
	}
}

// why says why the cluster refuses us; "" if it is not known to. a.mu is held.
func (a *admission) why() string {
	for address, r := range a.refused {
		if a.flow.now().Sub(r.at) > refusalHolds {
			delete(a.refused, address)
			continue
		}
		return r.why
	}
	return ""
}

// opened says that the cluster has let us in.
func (a *admission) opened() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = true
}

// known returns what is known of why the cluster refuses us.
func (a *admission) known() string {
	if a == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.why()
}

// becauseRefused returns a stop with its cause, where a leader gives no answer since
// its cluster does not let us in.
func (f *Flow) becauseRefused(s stopped) stopped {
	if s.reason != StopUnavailable {
		return s
	}
	for _, a := range f.admissions {
		if why := a.known(); why != "" {
			s.reason, s.detail = StopNotAuthorized, joinDetail(why, s.detail)
			break
		}
	}
	return s
}
