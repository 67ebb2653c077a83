// Package delay makes a cluster look far away: a TCP proxy on the loopback
// interface that passes bytes on after a while. It delays and does nothing else:
// any number of bytes may be under way, so the distance costs time and not
// bandwidth, as it does with a network that is long and wide.
package delay

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// chunkBytes is the most that is read at once.
const chunkBytes = 256 << 10

// underWay bounds the chunks of one direction of a connection that wait: 1 GiB if
// all are full. Chunks that are not full arrive no more often than a socket can be
// read.
const underWay = 4096

// A Proxy passes connections on to one address, each direction delayed. It must be
// closed.
type Proxy struct {
	listener net.Listener
	target   string
	oneWay   time.Duration
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// Start listens on a free port and passes on what comes to target, with a delay
// each way.
func Start(target string, oneWay time.Duration) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{listener: listener, target: target, oneWay: oneWay, cancel: cancel}
	p.running.Go(func() { p.accept(ctx) })
	return p, nil
}

// Address returns where the proxy listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Port returns the port of Address.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// Close closes all connections and returns when nothing runs any more.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.running.Wait()
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.serve(ctx, near) })
	}
}

// serve passes one connection on, in both directions, until both have ended.
func (p *Proxy) serve(ctx context.Context, near net.Conn) {
	defer near.Close()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = near.Close()
		_ = far.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { p.pass(near, far) })
	both.Go(func() { p.pass(far, near) })
	both.Wait()
}

// A chunk is bytes that are due at some time.
type chunk struct {
	bytes []byte
	due   time.Time
}

// pass moves bytes of one direction. An end of the stream is passed on like bytes
// are; after an error both connections are of no use.
func (p *Proxy) pass(from, to net.Conn) {
	chunks := make(chan chunk, underWay)
	var writer sync.WaitGroup
	writer.Go(func() {
		write(chunks, to)
		if half, ok := to.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
		for range chunks { // so that the reader does not wait for ever
		}
	})
	defer writer.Wait()
	defer close(chunks)
	for buffer := make([]byte, chunkBytes); ; {
		n, err := from.Read(buffer)
		if n > 0 {
			chunks <- chunk{append([]byte(nil), buffer[:n]...), time.Now().Add(p.oneWay)}
		}
		if err != nil {
			if err != io.EOF {
				_ = to.Close()
			}
			return
		}
	}
}

// write writes each chunk when it is due, until the last or an error.
func write(chunks <-chan chunk, to net.Conn) {
	for c := range chunks {
		if wait := time.Until(c.due); wait > 0 {
			<-time.After(wait)
		}
		if _, err := to.Write(c.bytes); err != nil {
			return
		}
	}
}
