package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"apograph/internal/mirror"
	"apograph/ledger"
	"apograph/replicate"
)

// A liveFlow is what a server answers from. All of it is safe for concurrent
// use, also when the flow has ended.
type liveFlow struct {
	ledger *ledger.Ledger
	status func() []replicate.PartitionStatus
	order  func(ledger.Order) error
	drift  func() []replicate.SettingDrift
	groups func() mirror.GroupsStatus
	duties func() []mirror.DutyStatus
}

// A serverLimits bounds what clients can take from a copier. Memory is bounded
// by connections times the largest answer, a status report of about 300 bytes a
// partition, 150 for a setting that differs, and 250 for a partition of a group.
type serverLimits struct {
	connections  int           // at one time; more of them wait to be accepted
	snapshots    int           // made or sent at one time; each takes the room of a ledger
	requestBytes int64         // of a body
	request      time.Duration // to send a request
	answer       time.Duration // to take an answer that is not a snapshot
	stall        time.Duration // to take the next piece of a snapshot
	settle       time.Duration // until what was ordered shows
	keep         time.Duration // between two looks whether the socket is still there
	goodbye      time.Duration // for answers that are under way when the flow ends
}

func defaultServerLimits() serverLimits {
	return serverLimits{
		connections: 16, snapshots: 2, requestBytes: 4 << 20,
		request: 5 * time.Second, answer: 10 * time.Second, stall: 30 * time.Second,
		settle: 2 * time.Second, keep: 10 * time.Second, goodbye: time.Second,
	}
}

// A server answers questions about a running flow on a unix socket. Nothing that
// a client does or leaves undone holds up the flow: answers are complete in
// memory, or in a file, before the first byte is sent, and nothing of the ledger
// is held meanwhile.
type server struct {
	flow      liveFlow
	limits    serverLimits
	logger    *slog.Logger
	file      fs.FileInfo // of the ledger
	self      peerInfo
	snapshots chan struct{} // holds one element for each that is under way
	slots     chan struct{} // the same of connections
	http      *http.Server
	serving   sync.WaitGroup
	ended     chan struct{}

	mu     sync.Mutex // guards what follows
	socket *boundSocket
}

// serve listens at the socket of a flow's ledger until close is called. Only
// the process that holds the ledger may call it. ctx is that of the flow: when
// it ends, answers that take long are given up.
func serve(ctx context.Context, flow liveFlow, limits serverLimits, logger *slog.Logger) (*server, error) {
	file, err := os.Stat(flow.ledger.Path())
	if err != nil {
		return nil, err
	}
	s := &server{
		flow: flow, limits: limits, logger: logger, file: file,
		self: peerInfo{
			Protocol: protocolVersion, Version: programVersion(), PID: os.Getpid(), LedgerID: flow.ledger.Identity().LedgerID,
		},
		snapshots: make(chan struct{}, limits.snapshots),
		slots:     make(chan struct{}, limits.connections),
		ended:     make(chan struct{}),
	}
	s.http = &http.Server{
		Handler:           s.handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: limits.request,
		ReadTimeout:       limits.request,
		IdleTimeout:       limits.request,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.serving.Go(s.keep)
	return s, nil
}

// listen binds the first place that takes a socket, and serves it.
func (s *server) listen() error {
	places, err := socketPlaces(s.flow.ledger.Path())
	if err != nil {
		return err
	}
	var errs []error
	for _, place := range places {
		socket, err := bindSocket(place)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.mu.Lock()
		s.socket = socket
		s.mu.Unlock()
		s.serving.Go(func() { _ = s.http.Serve(newCrowd(socket.listener, s.slots)) })
		return nil
	}
	return errors.Join(errs...)
}

// keep binds the socket anew when its file is gone: those who clean up among
// temporary files know nothing of sockets.
func (s *server) keep() {
	ticker := time.NewTicker(s.limits.keep)
	defer ticker.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		old := s.socket
		s.mu.Unlock()
		if old.isThere() {
			continue
		}
		_ = old.listener.Close()
		if err := s.listen(); err != nil {
			s.logger.Warn("the socket is gone and cannot be made anew", "error", err)
		}
	}
}

// close stops answering and removes the socket. Answers that are under way have
// a moment to end.
func (s *server) close() {
	close(s.ended)
	s.mu.Lock()
	s.socket.remove()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.limits.goodbye)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.serving.Wait()
}

// A boundSocket is a listener with the identity of its file.
type boundSocket struct {
	listener *net.UnixListener
	path     string
	file     fs.FileInfo
}

func bindSocket(place socketPlace) (*boundSocket, error) {
	if err := place.prepare(); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: restrictSocket}
	listener, err := config.Listen(context.Background(), "unix", place.path)
	if err != nil {
		return nil, err
	}
	b := &boundSocket{listener: listener.(*net.UnixListener), path: place.path}
	b.listener.SetUnlinkOnClose(false) // by then another process may listen there
	if b.file, err = os.Lstat(place.path); err == nil {
		err = os.Chmod(place.path, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, b.listener.Close())
	}
	return b, nil
}

// isThere reports whether the path still leads to the listener.
func (b *boundSocket) isThere() bool {
	info, err := os.Lstat(b.path)
	return err == nil && os.SameFile(info, b.file)
}

// remove removes the file of the socket, unless another process has put its
// own there.
func (b *boundSocket) remove() {
	if b.isThere() {
		_ = os.Remove(b.path)
	}
}

// A crowd is a listener that has no more than so many connections at a time.
type crowd struct {
	net.Listener
	slots  chan struct{} // holds one element for each connection
	closed chan struct{}
	once   sync.Once
}

func newCrowd(l net.Listener, slots chan struct{}) *crowd {
	return &crowd{Listener: l, slots: slots, closed: make(chan struct{})}
}

// Accept waits for a place, and then for a connection.
func (c *crowd) Accept() (net.Conn, error) {
	select {
	case c.slots <- struct{}{}:
	case <-c.closed:
		return nil, net.ErrClosed
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		<-c.slots
		return nil, err
	}
	return &guest{Conn: conn, slots: c.slots}, nil
}

// Close ends Accept. Connections stay.
func (c *crowd) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Listener.Close()
}

// A guest is a connection that gives its place back.
type guest struct {
	net.Conn
	slots chan struct{}
	once  sync.Once
}

func (g *guest) Close() error {
	g.once.Do(func() { <-g.slots })
	return g.Conn.Close()
}
