package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A FaultKind is one of the ways in which a request can fail. Before means
// that the request had no effect, After that it had its whole effect and only
// the client does not know.
type FaultKind uint8

const (
	// CutBefore closes the connection before the broker sees the request.
	CutBefore FaultKind = iota + 1
	// CutAfter lets the broker process the request and closes the connection
	// in place of the answer. Answers to earlier requests of the connection
	// that are still outstanding are lost with it, in both kinds of cut.
	CutAfter
	// ErrorBefore has the broker refuse what the request asks for
	// [Fault.Topic], or all of it, with [Fault.Err].
	ErrorBefore
	// ErrorAfter has the broker do what is asked and answer with [Fault.Err].
	// For Produce any code can be answered; the answer keeps the base offset,
	// as a broker's does when it learns of the failure after its append
	// (NOT_LEADER_OR_FOLLOWER of a deposed leader, REQUEST_TIMED_OUT,
	// NOT_ENOUGH_REPLICAS_AFTER_APPEND, KAFKA_STORAGE_ERROR). For other
	// requests only REQUEST_TIMED_OUT, where kfake supports it.
	ErrorAfter
	// DelayBefore keeps the request from the broker for [Fault.Delay] or until
	// [Fault.Gate] is closed, whichever comes first.
	DelayBefore
	// DelayAfter keeps the answer from the client in the same way.
	DelayAfter
	// Stray is CutBefore, but the request is not lost: it arrives when
	// [FaultHandle.Deliver] says so, and then has its whole effect. A network
	// may hold a request back for longer than its sender lives, and for longer
	// than the broker remembers the sender.
	Stray
)

func (k FaultKind) String() string {
	switch k {
	case CutBefore:
		return "cut before"
	case CutAfter:
		return "cut after"
	case ErrorBefore:
		return "error before"
	case ErrorAfter:
		return "error after"
	case DelayBefore:
		return "delay before"
	case DelayAfter:
		return "delay after"
	case Stray:
		return "stray"
	default:
		return fmt.Sprintf("FaultKind(%d)", uint8(k))
	}
}

// A Fault says what happens to which requests of a cluster. The fields that
// select are joined by and; the zero value of each selects everything.
type Fault struct {
	Kind FaultKind
	Key  kmsg.Key // the request; the zero value is kmsg.Produce

	Nodes      []int32                 // received by these brokers
	Topic      string                  // naming this topic; for cuts and delays only of Produce, ListOffsets, and Fetch outside of sessions
	Partitions []int32                 // naming one of these partitions of Topic
	When       func(kmsg.Request) bool // that this accepts; it must not call the cluster, and must give the same answer for the same request

	Skip  int     // this many selected requests pass first: 2 means "from the third on"
	Count int     // then this many are hit; 0 means one, -1 means all
	Share float64 // of the requests that Skip and Count leave, only this share is hit, chosen by Seed; 0 means all
	Seed  uint64

	Err   *kerr.Error     // for ErrorBefore and ErrorAfter
	Delay time.Duration   // for DelayBefore and DelayAfter; 0 means only Gate
	Gate  <-chan struct{} // for DelayBefore and DelayAfter; nil means only Delay
}

func (f *Fault) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("fault: "+format, args...)) }
	isError := f.Kind == ErrorBefore || f.Kind == ErrorAfter
	isDelay := f.Kind == DelayBefore || f.Kind == DelayAfter
	switch {
	case f.Kind < CutBefore || f.Kind > Stray:
		bad("unknown kind %d", f.Kind)
	case isError != (f.Err != nil):
		bad("%v: an error is needed for errors, and only for them", f.Kind)
	case isDelay != (f.Delay > 0 || f.Gate != nil):
		bad("%v: a delay or a gate is needed for delays, and only for them", f.Kind)
	}
	if f.Topic == "" && len(f.Partitions) > 0 {
		bad("partitions without a topic")
	}
	if f.Skip < 0 || f.Count < -1 || f.Share < 0 || f.Share > 1 {
		bad("skip %d, count %d, share %g", f.Skip, f.Count, f.Share)
	}
	if f.Kind == ErrorAfter && f.Key != kmsg.Produce && f.Err != kerr.RequestTimedOut {
		bad("error after %v: only REQUEST_TIMED_OUT", f.Key)
	}
	return errors.Join(errs...)
}

// onWire reports whether the wire plays the fault; kfake plays the others.
func (f *Fault) onWire() bool {
	return f.Kind != ErrorBefore && (f.Kind != ErrorAfter || f.Key == kmsg.Produce)
}

// A FaultHandle refers to a fault that is in place.
type FaultHandle struct {
	cluster *Cluster
	rule    *rule
}

// Fault puts a fault in place. It stays until Remove, also while the cluster
// restarts. A topic that it names must exist.
func (c *Cluster) Fault(f Fault) (*FaultHandle, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	of := selector{}
	if f.Topic != "" {
		var err error
		if of, err = c.selector(f.Topic, f.Partitions...); err != nil {
			return nil, fmt.Errorf("fault: %w", err)
		}
	}
	r := newRule(f, of)
	c.wire.mu.Lock()
	c.wire.rules = append(c.wire.rules, r)
	c.wire.mu.Unlock()
	if !f.onWire() {
		c.installError(r)
	}
	return &FaultHandle{cluster: c, rule: r}, nil
}

// MustFault is Fault for a test, which it fails on an error. The fault is
// removed at the test's end.
func (c *Cluster) MustFault(t TB, f Fault) *FaultHandle {
	t.Helper()
	h, err := c.Fault(f)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(h.Remove)
	return h
}

// errorFault returns kfake's form of the rule. kfake counts for itself, so it
// is told to ask for every request.
func errorFault(r *rule) kfake.Fault {
	return kfake.Fault{
		Keys: []kmsg.Key{r.fault.Key}, Nodes: r.fault.Nodes,
		Topic: r.fault.Topic, Partitions: r.fault.Partitions,
		Err: r.fault.Err, Count: -1,
		When: func(request kmsg.Request) bool {
			select {
			case <-r.removed:
				return false
			default:
			}
			return !isOwn(request) && (r.fault.When == nil || r.fault.When(request)) && r.take(request)
		},
	}
}

// Hits is the number of requests that the fault has hit.
func (h *FaultHandle) Hits() int {
	h.rule.mu.Lock()
	defer h.rule.mu.Unlock()
	return h.rule.hits
}

// Wait returns when the fault has hit n requests, or with the cause of ctx's
// end.
func (h *FaultHandle) Wait(ctx context.Context, n int) error {
	for {
		h.rule.mu.Lock()
		hits, notify := h.rule.hits, h.rule.notify
		h.rule.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-notify:
		case <-ctx.Done():
			return fmt.Errorf("fault %v of %v: %d of %d hits: %w", h.rule.fault.Kind, h.rule.fault.Key, hits, n, context.Cause(ctx))
		}
	}
}

// Remove takes the fault away and lets go what it delays. It may be called
// more than once.
func (h *FaultHandle) Remove() {
	h.rule.once.Do(func() { close(h.rule.removed) })
	w := h.cluster.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = slices.DeleteFunc(w.rules, func(r *rule) bool { return r == h.rule })
}
