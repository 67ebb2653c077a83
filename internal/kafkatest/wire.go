package kafkatest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFrame bounds what the wire reads into memory at once: a broker's default
// socket.request.max.bytes.
const maxFrame = 100 << 20

var errCut = errors.New("kafkatest: connection cut by a fault")

// A wire stands between the brokers of one fake cluster and all their clients.
// It sees every request before the broker does and every answer before the
// client does. It can cut, delay and alter them (see [Fault] and
// [Cluster.HoldHighWatermark]), and it corrects answers in which kfake differs
// from brokers (see correctProduce and correctEpochEnds).
//
// It lives as long as the [Cluster], across restarts. All methods may be
// called concurrently.
type wire struct {
	info   func(topic string, partition int32) *kfake.PartitionInfo // nil if there is none
	nameOf func(topicID [16]byte) string                            // "" if there is none
	dial   func(ctx context.Context, node int32) (net.Conn, error)

	mu    sync.Mutex // guards the fields below
	rules []*rule
	holds []*hold
	conns map[*wireConn]struct{}
	nodes int32 // brokers that have listened since the cluster was started

	sessions map[sessionKey]map[fetchedKey]fetched // of fetches
}

type partitionKey struct {
	topic     string
	partition int32
}

func newWire(c *Cluster) *wire {
	return &wire{
		info: c.partitionInfo, nameOf: c.topicName, dial: c.dialNode,
		conns: make(map[*wireConn]struct{}), sessions: make(map[sessionKey]map[fetchedKey]fetched),
	}
}

// listen wraps a listen function for kfake.ListenFn. kfake asks for its
// listeners in node order.
func (w *wire) listen(inner func(network, address string) (net.Listener, error)) func(string, string) (net.Listener, error) {
	return func(network, address string) (net.Listener, error) {
		l, err := inner(network, address)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		node := w.nodes
		w.nodes++
		return &wireListener{Listener: l, wire: w, node: node}, nil
	}
}

// reset forgets the listeners of a stopped cluster and closes what clients
// still hold open.
func (w *wire) reset() {
	w.mu.Lock()
	w.nodes = 0
	clear(w.sessions)
	conns := make([]*wireConn, 0, len(w.conns))
	for c := range w.conns {
		conns = append(conns, c)
	}
	w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

type wireListener struct {
	net.Listener
	wire *wire
	node int32
}

func (l *wireListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &wireConn{Conn: inner, wire: l.wire, node: l.node, closed: make(chan struct{}), open: make(map[int32]*exchange)}
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	l.wire.conns[c] = struct{}{}
	return c, nil
}

// An exchange is one request and, later, its answer.
type exchange struct {
	node        int32
	key         int16
	version     int16
	correlation int32
	request     kmsg.Request // nil if kmsg does not know or cannot parse it
	after       []*rule      // what happens to the answer
}

// A wireConn is the broker's end of a connection. kfake reads from one
// goroutine and writes whole answers from another.
type wireConn struct {
	net.Conn
	wire   *wire
	node   int32
	rest   []byte // of the request frame being handed to the broker
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex // guards open
	open map[int32]*exchange
}

func (c *wireConn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		close(c.closed)
		c.wire.mu.Lock()
		delete(c.wire.conns, c)
		c.wire.mu.Unlock()
		err = c.Conn.Close()
	})
	return err
}

// Read hands the broker one request after the other, each only when all of it
// has arrived and no fault keeps it back.
func (c *wireConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		frame, err := c.readFrame()
		if err != nil {
			return 0, err
		}
		if err := c.before(frame); err != nil {
			return 0, err
		}
		c.rest = frame
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *wireConn) readFrame() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(size[:])
	if length > maxFrame {
		return nil, fmt.Errorf("kafkatest: request of %d bytes", length)
	}
	frame := make([]byte, 4+length)
	copy(frame, size[:])
	_, err := io.ReadFull(c.Conn, frame[4:])
	return frame, err
}

// before applies what happens to a request before the broker sees it.
func (c *wireConn) before(frame []byte) error {
	e, err := parseRequest(frame[4:])
	if err != nil {
		return err
	}
	e.node = c.node
	before, after := c.wire.match(e)
	for _, r := range before {
		if r.fault.Kind == CutBefore || r.fault.Kind == Stray {
			r.keep(e, frame)
			_ = c.Close()
			return errCut
		}
		if err := c.wait(r); err != nil {
			return err
		}
	}
	e.after = after
	if produce, ok := e.request.(*kmsg.ProduceRequest); ok && produce.Acks == 0 {
		return nil // the broker will not answer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[e.correlation] = e
	return nil
}

// parseRequest reads a request's header (KIP-482 for the tags of flexible
// versions) and, where kmsg can, its body.
func parseRequest(b []byte) (*exchange, error) {
	reader := kbin.Reader{Src: b}
	e := &exchange{key: reader.Int16(), version: reader.Int16(), correlation: reader.Int32()}
	reader.NullableString() // client id
	if err := reader.Complete(); err != nil {
		return nil, fmt.Errorf("kafkatest: request header: %w", err)
	}
	request := kmsg.RequestForKey(e.key)
	if request == nil {
		return e, nil
	}
	request.SetVersion(e.version)
	if request.IsFlexible() {
		kmsg.SkipTags(&reader)
	}
	if err := request.ReadFrom(reader.Src); err == nil {
		e.request = request
	}
	return e, nil
}

// Write passes one whole answer to the client, after what happens to answers.
func (c *wireConn) Write(answer []byte) (int, error) {
	c.mu.Lock()
	e := c.exchangeOf(answer)
	c.mu.Unlock()
	if e == nil {
		return c.Conn.Write(answer)
	}
	out, err := c.after(e, answer)
	if err != nil {
		return 0, err
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(answer), nil
}

func (c *wireConn) exchangeOf(answer []byte) *exchange {
	if len(answer) < 8 {
		return nil
	}
	correlation := int32(binary.BigEndian.Uint32(answer[4:]))
	e := c.open[correlation]
	delete(c.open, correlation)
	return e
}

// after returns the answer as the client shall see it.
func (c *wireConn) after(e *exchange, answer []byte) ([]byte, error) {
	out, err := c.amend(e, answer)
	if err != nil {
		return nil, err
	}
	for _, r := range e.after {
		switch r.fault.Kind {
		case CutAfter:
			_ = c.Close()
			return nil, errCut
		case DelayAfter:
			if err := c.wait(r); err != nil {
				return nil, err
			}
		default: // ErrorAfter: amend has done it
		}
	}
	return out, nil
}

// wait holds a request or an answer back, unless the connection ends first.
func (c *wireConn) wait(r *rule) error {
	var timer <-chan time.Time
	if r.fault.Delay > 0 {
		t := time.NewTimer(r.fault.Delay)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
	case <-r.fault.Gate:
	case <-r.removed:
	case <-c.closed:
		return net.ErrClosed
	}
	return nil
}
