package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// defaultDialTimeout is socket.connection.setup.timeout.ms where it is not set:
// Kafka's default, and kgo's.
const defaultDialTimeout = 10 * time.Second

// A DialError reports what went wrong on the way to one broker, before any
// request was answered.
type DialError struct {
	Address string
	Err     error
	// certificateAsked: the broker wanted a certificate, and there was none to show.
	certificateAsked bool
}

func (e *DialError) Error() string { return fmt.Sprintf("broker %s: %v", e.Address, e.Err) }

func (e *DialError) Unwrap() error { return e.Err }

// options returns what makes every client of the cluster take the way in that
// its settings say.
func (a *access) clientOptions(dial dialer) []kgo.Opt {
	options := append(a.options[:len(a.options):len(a.options)], kgo.DialTimeout(a.dialTimeout))
	if a.tls != nil || dial != nil {
		options = append(options, kgo.Dialer(a.dialer(dial)))
	}
	if a.login != nil {
		options = append(options, kgo.SASL(a.login))
	}
	return options
}

// dialer connects by TCP, or by dial if that is not nil, and then with TLS if the
// settings say so. The whole takes no longer than the dial timeout.
func (a *access) dialer(dial dialer) dialer {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, a.dialTimeout)
		defer cancel()
		plain, err := dial(ctx, network, address)
		if err != nil || a.tls == nil {
			return plain, err
		}
		conn, err := a.secure(ctx, plain, address)
		if err != nil {
			return nil, errors.Join(err, plain.Close())
		}
		return conn, nil
	}
}

// secure does the handshake of TLS with the broker at an address.
func (a *access) secure(ctx context.Context, plain net.Conn, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	c := &conn{address: address}
	config, err := a.tls.config(host, &c.certificateAsked)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(plain, config)
	c.Conn = secured
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, &DialError{Address: address, Err: err, certificateAsked: c.certificateAsked}
	}
	return c, nil
}

// A conn is a connection whose first failure names the broker. With TLS 1.3 a
// broker that misses our certificate says so only after the handshake, in place
// of its first answer.
type conn struct {
	net.Conn
	address          string
	certificateAsked bool
	answered         atomic.Bool
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.answered.Load() {
		return n, err
	}
	if n > 0 {
		c.answered.Store(true)
		return n, err
	}
	var alert tls.AlertError
	if errors.As(err, &alert) || c.certificateAsked && isCut(err) {
		return n, &DialError{Address: c.address, Err: unretried{err}, certificateAsked: c.certificateAsked}
	}
	return n, err
}

// isCut reports whether the other side ended the connection.
func isCut(err error) bool {
	var failed *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &failed) && !failed.Timeout()
}

// unretried hides from kgo the kind of an error after which it would try again.
type unretried struct{ err error }

func (e unretried) Error() string { return e.err.Error() }
