package kafkatest

import (
	"context"
	"fmt"
	"net"
	"time"
)

// A strayRequest is one whole request that has not arrived yet.
type strayRequest struct {
	node  int32
	frame []byte
}

// keep holds a request of a Stray back.
func (r *rule) keep(e *exchange, frame []byte) {
	if r.fault.Kind != Stray {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, strayRequest{e.node, frame})
}

// Deliver lets the requests that a [Stray] has kept back arrive, one after the
// other, each on a connection of its own at the broker to which it was sent, and
// returns how many got an answer. The cluster may have been restarted meanwhile.
// The fault is removed. Nobody learns of the answers.
func (h *FaultHandle) Deliver(ctx context.Context) (int, error) {
	h.Remove()
	h.rule.mu.Lock()
	kept := h.rule.kept
	h.rule.kept = nil
	h.rule.mu.Unlock()
	for i, r := range kept {
		if err := h.cluster.deliver(ctx, r); err != nil {
			return i, fmt.Errorf("deliver request %d of %d: %w", i+1, len(kept), err)
		}
	}
	return len(kept), nil
}

func (c *Cluster) deliver(ctx context.Context, r strayRequest) error {
	conn, err := c.dialNode(ctx, r.node)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	} else if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := conn.Write(r.frame); err != nil {
		return err
	}
	_, err = readAnswerFrame(conn)
	return err
}

// dialNode connects to a broker.
func (c *Cluster) dialNode(ctx context.Context, node int32) (net.Conn, error) {
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return dial(ctx, "tcp", c.Addresses[node])
}
