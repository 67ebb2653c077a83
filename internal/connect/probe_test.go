package connect

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// listen answers requests for a login as a broker's listener does, and returns its
// address. Without mechanisms it takes none.
func listen(t *testing.T, secured bool, mechanisms ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if secured {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{serverPair(t, "server")}})
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answerLogin(c, mechanisms)
		}
	}()
	return l.Addr().String()
}

// answerLogin closes connections with other requests at once, as brokers do with
// sizes that are none.
func answerLogin(c net.Conn, mechanisms []string) {
	defer c.Close()
	var head [12]byte // size, key, version, correlation id
	if _, err := io.ReadFull(c, head[:]); err != nil || head[0] != 0 || binary.BigEndian.Uint16(head[4:]) != 17 {
		return
	}
	response := kmsg.NewPtrSASLHandshakeResponse()
	response.Version, response.SupportedMechanisms, response.ErrorCode = 1, mechanisms, kerr.UnsupportedSaslMechanism.Code
	if len(mechanisms) == 0 {
		response.ErrorCode = kerr.IllegalSaslState.Code
	}
	body := response.AppendTo(slices.Clone(head[8:]))
	_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
}

// TestProbe finds out what listeners speak.
func TestProbe(t *testing.T) {
	for _, test := range []struct {
		secured    bool
		mechanisms []string
		want       string
	}{{false, nil, plaintext}, {true, nil, ssl}, {false, []string{"PLAIN"}, saslPlaintext}, {true, []string{"A", "B"}, saslSSL}} {
		t.Run(test.want, func(t *testing.T) {
			address := listen(t, test.secured, test.mechanisms...)
			got := probe(t.Context(), new(net.Dialer).DialContext, address)
			if got.protocol != test.want || !got.settled || !slices.Equal(got.mechanisms, test.mechanisms) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestJudge: what is said of each listener to each kind of settings.
func TestJudge(t *testing.T) {
	for _, ours := range []string{plaintext, ssl, saslPlaintext, saslSSL} {
		for _, theirs := range []string{plaintext, ssl, saslPlaintext, saslSSL} {
			a := &access{protocol: ours}
			if got := a.judge(listener{protocol: theirs, settled: true}); (got == "") != (ours == theirs) {
				t.Errorf("we %s, they %s: %q", ours, theirs, got)
			}
		}
	}
	a := &access{protocol: saslSSL}
	if got := a.judge(listener{protocol: ssl}); got != "" { // whether it takes logins is not known
		t.Errorf("not settled: %q", got)
	}
}
