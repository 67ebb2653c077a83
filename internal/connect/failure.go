package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// An UnreachableError reports that no broker of a cluster answered, or none that
// would have us. It holds no secret.
type UnreachableError struct {
	Alias     string
	Bootstrap []string
	Err       error
	Hint      string // the likely cause and what to look at; empty if Err says it all
}

func (e *UnreachableError) Error() string {
	text := fmt.Sprintf("cluster %s (%s) cannot be reached: %v", e.Alias, strings.Join(e.Bootstrap, ","), e.Err)
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Permanent reports whether an error of a client, or of Open, is one that asking
// again does not mend: a login or a certificate that was refused, one side's or the
// other's, or a store that cannot be read. Somebody has to change something first.
func Permanent(err error) bool {
	var (
		store   *StoreError
		login   *LoginError
		refused *refusedError
		dial    *DialError
		cert    *tls.CertificateVerificationError
		alert   tls.AlertError
		record  tls.RecordHeaderError
		config  *ConfigError
	)
	switch {
	case errors.As(err, &login):
		return errors.As(err, &refused) && refused.status >= 400 && refused.status < 500
	case errors.As(err, &dial) && dial.certificateAsked:
		return true
	case errors.As(err, &store), errors.As(err, &config), errors.As(err, &cert), errors.As(err, &alert), errors.As(err, &record):
		return true
	}
	return errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, kerr.UnsupportedSaslMechanism) || errors.Is(err, kerr.IllegalSaslState)
}

// Hint names the likely cause of an error of the cluster's clients, and the settings
// to look at; empty if it is not known.
func (c Cluster) Hint(err error) string { return c.way().hint(err) }

// hint names the likely cause of an error, and the settings to look at; empty if
// it is not known. Its text goes behind the error's.
func (a *access) hint(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		dial      *DialError
		alert     tls.AlertError
	)
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "the broker refuses the login: wrong user or password, or no such user there; see " + a.named("sasl.jaas.config")
	case errors.As(err, &host):
		return "the broker's certificate is one of another host; its names are to include the address that is dialed (" + a.named("bootstrap.servers") + ", or the broker's advertised.listeners), or ssl.endpoint.identification.algorithm is to be empty"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the broker's certificate has expired, or is not valid yet by the clock of this machine"
	case errors.As(err, &invalid):
		return "the broker's certificate is not acceptable"
	case errors.As(err, &authority) && a.tls != nil && a.tls.trust != nil:
		return "the broker's certificate is signed by no authority of the trust store; see " + a.named(a.tls.trust.key)
	case errors.As(err, &authority):
		return "the broker's certificate is signed by no authority that this system trusts, and ssl.truststore.location is not set"
	case errors.As(err, &dial) && dial.certificateAsked && a.tls != nil && a.tls.key != nil:
		return "the broker wants a certificate from us, and none of the key store is signed by an authority that it accepts; see " + a.named(a.tls.key.key)
	case errors.As(err, &dial) && dial.certificateAsked:
		return "the broker wants a certificate from us, and ssl.keystore.location is not set"
	case errors.As(err, &alert) && a.tls != nil && a.tls.key != nil:
		return "the broker refuses the connection, or our certificate; see " + a.named(a.tls.key.key) + " and ssl.enabled.protocols"
	case errors.As(err, &alert):
		return "the broker refuses the connection; see ssl.enabled.protocols and ssl.cipher.suites"
	}
	return ""
}

// named returns a key with the place of its setting, if it has one.
func (a *access) named(key string) string {
	if place := a.where[key]; place != "" {
		return key + " (" + place + ")"
	}
	return key
}

// judge compares what was found out about a listener with the settings; empty if
// there is nothing to tell.
func (a *access) judge(l listener) string {
	wantsTLS := a.protocol == ssl || a.protocol == saslSSL
	speaksTLS := l.protocol == ssl || l.protocol == saslSSL
	if wantsTLS != speaksTLS || l.settled && l.protocol != a.protocol {
		return fmt.Sprintf("broker %s speaks %s there, and %s is %s", l.address, l.protocol, a.named("security.protocol"), a.protocol)
	}
	if a.login == nil || len(l.mechanisms) == 0 {
		return ""
	}
	if !slices.Contains(l.mechanisms, a.login.Name()) {
		return fmt.Sprintf("broker %s takes logins by %s, and %s is %s", l.address, strings.Join(l.mechanisms, ", "), a.named("sasl.mechanism"), a.login.Name())
	}
	return "broker " + l.address + " ends the connection at the login, which is probably wrong; see " + a.named("sasl.jaas.config")
}
