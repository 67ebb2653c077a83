package fuzz

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

var errSimStop = errors.New("the history stops the copier")

// simPatience is how much fake time the copier has for what must end.
const simPatience = 15 * time.Minute

// A simCopier is one run of the copier, as a process of its own: it has its own
// connections, and dies alone.
type simCopier struct {
	number int
	path   string // of its ledger
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when it has, with what follows
	begun  bool          // it came as far as copying
	err    error

	mu    sync.Mutex      // guards what follows
	flow  *replicate.Flow // nil before it copies
	dead  bool            // connections are refused
	conns map[net.Conn]struct{}
}

// startCopier starts a run on the ledger that the configuration names.
func startCopier(t *testing.T, number int, config replicate.Config, source, target kafkatest.Bootstrap) *simCopier {
	c := &simCopier{number: number, path: config.LedgerPath, ended: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	config.Source, config.Target = c.cluster("source", source), c.cluster("target", target)
	ctx, cancel := context.WithCancelCause(t.Context())
	c.cancel = cancel
	go func() {
		defer close(c.ended)
		c.err = c.run(ctx, config)
	}()
	return c
}

func (c *simCopier) run(ctx context.Context, config replicate.Config) error {
	flow, err := replicate.Start(ctx, config)
	if err != nil {
		return err
	}
	defer flow.Close()
	c.begun = true
	c.mu.Lock()
	c.flow = flow
	c.mu.Unlock()
	_, err = flow.Wait()
	return err
}

// copying returns the flow, or nil if it does not copy: not yet, or no more.
func (c *simCopier) copying() *replicate.Flow {
	if c == nil || c.over() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flow
}

func (c *simCopier) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *simCopier) cluster(alias string, b kafkatest.Bootstrap) connect.Cluster {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c.mu.Lock()
		dead := c.dead
		c.mu.Unlock()
		if dead {
			return nil, errors.New("the process is dead")
		}
		conn, err := b.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns[conn] = struct{}{}
		return conn, nil
	}
	return connect.Cluster{Alias: alias, Bootstrap: b.Addresses, Options: append(b.DialOptions(), kgo.Dialer(dial))}
}

// verdict returns the error with which a run ended that it must not end with.
// What keeps it from beginning may be a fault of the history.
func (c *simCopier) verdict() error {
	var usage *replicate.UsageError
	var refused *replicate.RefusedError
	switch {
	case c.err == nil || errors.Is(c.err, errSimStop):
		return nil
	case !c.begun && !errors.As(c.err, &usage) && !errors.As(c.err, &refused):
		return nil
	default:
		return c.err
	}
}

func (c *simCopier) wait(t *testing.T) {
	t.Helper()
	timer := time.NewTimer(simPatience)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		t.Errorf("copier %d has not ended %v after it was told to", c.number, simPatience)
		<-c.ended
	}
}

// kill ends the run as SIGKILL does, and returns the path of the ledger that it
// leaves. Nothing is going on at that moment but what waits: for an answer, for
// the next commit, for a pause to pass. So the file is as its last commit left
// it. (A process that dies amid a commit is the business of the ledger's own
// tests.) From then on the run reaches nobody; what it has sent and the broker
// has not yet taken may take effect later, as it may when a process dies.
func (c *simCopier) kill(t *testing.T) string {
	t.Helper()
	synctest.Wait()
	path := filepath.Join(filepath.Dir(c.path), fmt.Sprintf("after-%d.ledger", c.number))
	if simBookIsThere(c.path) {
		copyFile(t, c.path, path)
	}
	c.mu.Lock()
	c.dead = true
	for conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.cancel(errSimStop)
	return path
}

// simBook returns a ledger for reading, and nil if there is none yet.
func simBook(t *testing.T, path string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func simBookIsThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
