package connect

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

// Kafka's names of how to talk to a listener (SecurityProtocol).
const (
	plaintext     = "PLAINTEXT"
	ssl           = "SSL"
	saslPlaintext = "SASL_PLAINTEXT"
	saslSSL       = "SASL_SSL"
)

// An access is what client properties say about the way into a cluster. It does
// not change once it is made.
type access struct {
	protocol    string
	dialTimeout time.Duration
	options     []kgo.Opt
	tls         *tlsSettings      // nil without TLS
	login       sasl.Mechanism    // nil without SASL
	where       map[string]string // places of settings, for hints
}

// access reads what it can and leaves problems in p.
func (p *properties) access() *access {
	protocol, ok := p.protocol()
	a := &access{
		protocol:    protocol,
		dialTimeout: p.millis("socket.connection.setup.timeout.ms", 10*time.Second, 100*time.Millisecond, 2*time.Minute),
		options:     p.clientOptions(),
		where:       map[string]string{},
	}
	for key, s := range p.values {
		a.where[key] = s.Where
	}
	if a.protocol == ssl || a.protocol == saslSSL {
		a.tls = p.tls()
	} else if ok {
		p.idleSettings(a.protocol, "ssl.truststore.location", "ssl.truststore.certificates", "ssl.truststore.password",
			"ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.keystore.password", "ssl.key.password")
	}
	if a.protocol == saslPlaintext || a.protocol == saslSSL {
		a.login = p.login()
	} else if ok {
		p.idleSettings(a.protocol, "sasl.jaas.config", "sasl.mechanism")
	}
	return a
}

// idleSettings warns of settings whose author believes in a protection that the
// protocol does not have.
func (p *properties) idleSettings(protocol string, keys ...string) {
	for _, key := range keys {
		if p.set(key) {
			p.notice(Idle, key, Warning, "has no effect with security.protocol="+protocol)
		}
	}
}

// protocol returns what security.protocol says; not ok if it is none, of which
// nothing follows for other settings.
func (p *properties) protocol() (name string, ok bool) {
	name = strings.ToUpper(p.text("security.protocol"))
	switch name {
	case "":
		return plaintext, true
	case plaintext, ssl, saslPlaintext, saslSSL:
		return name, true
	}
	p.noneOf("security.protocol", plaintext, ssl, saslPlaintext, saslSSL)
	return plaintext, false
}

// A dialer connects to a broker.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)
