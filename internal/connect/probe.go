package connect

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A listener is what was found out about a broker's listener that does not do
// what the settings expect.
type listener struct {
	address    string
	protocol   string   // as security.protocol names it; empty if it was not found out
	settled    bool     // whether it takes logins was found out, too
	mechanisms []string // of logins
}

// probeTimeout bounds the probe of one address.
const probeTimeout = 3 * time.Second

// probe asks what a listener speaks: whether it answers a handshake of TLS, and
// what it says to a request for a login (SaslHandshake, which a listener without
// logins refuses with ILLEGAL_SASL_STATE). No credentials are sent, and nothing
// that it says is used but for a message to a person; hence no certificate is
// checked.
func probe(ctx context.Context, dial dialer, address string) listener {
	l := listener{address: address}
	for _, secured := range []bool{true, false} {
		if l.try(ctx, dial, secured) {
			return l
		}
	}
	return l
}

// try reports whether the listener speaks TLS, or does not, as asked.
func (l *listener) try(ctx context.Context, dial dialer, secured bool) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c, err := dial(ctx, "tcp", l.address)
	if err != nil {
		return false
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok && c.SetDeadline(deadline) != nil {
		return false
	}
	without, with := plaintext, saslPlaintext
	if secured {
		without, with = ssl, saslSSL
		client := tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10}) // see probe
		err := client.HandshakeContext(ctx)
		var alert tls.AlertError
		if errors.As(err, &alert) {
			l.protocol = ssl
			return true
		}
		if err != nil {
			return false
		}
		c = client
	}
	l.settle(c, without, with)
	if secured && l.protocol == "" {
		l.protocol = ssl
	}
	return l.protocol != ""
}

// settle finds out whether the listener takes logins.
func (l *listener) settle(c net.Conn, without, with string) {
	code, mechanisms, err := askLogin(c)
	switch {
	case err != nil:
	case errors.Is(kerr.ErrorForCode(code), kerr.IllegalSaslState):
		l.protocol, l.settled = without, true
	default:
		l.protocol, l.settled, l.mechanisms = with, true, mechanisms
	}
}

// askLogin sends SaslHandshake, version 1, with a mechanism that there is not.
func askLogin(c net.Conn) (code int16, mechanisms []string, err error) {
	request := kmsg.NewPtrSASLHandshakeRequest()
	request.Version, request.Mechanism = 1, "NONE"
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("apograph")).AppendRequest(nil, request, 1)
	if _, err := c.Write(frame); err != nil {
		return 0, nil, err
	}
	var head [8]byte // size, correlation id
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 4 || size > 1<<16 || binary.BigEndian.Uint32(head[4:]) != 1 {
		return 0, nil, errors.New("not an answer")
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(c, body); err != nil {
		return 0, nil, err
	}
	response := kmsg.NewPtrSASLHandshakeResponse()
	response.Version = 1
	if err := response.ReadFrom(body); err != nil {
		return 0, nil, err
	}
	return response.ErrorCode, response.SupportedMechanisms, nil
}
