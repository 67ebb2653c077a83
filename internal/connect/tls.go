package connect

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
)

// tlsSettings are the ssl.* properties of a cluster, read.
type tlsSettings struct {
	trust     *store // nil: the authorities of the system
	key       *store // nil: no certificate of our own
	checkHost bool
	min, max  uint16
	suites    []uint16 // of TLS 1.2 and before; nil: Go's choice
}

// tls reads the ssl.* properties as Kafka's DefaultSslEngineFactory and
// SslConfigs say, and leaves problems in p.
func (p *properties) tls() *tlsSettings {
	t := &tlsSettings{trust: p.trustStore(), key: p.keyStore()}
	switch algorithm, given := p.values["ssl.endpoint.identification.algorithm"]; {
	case !given || strings.EqualFold(strings.TrimSpace(algorithm.Value), "https"):
		t.checkHost = true
	case strings.TrimSpace(algorithm.Value) == "":
		p.notice(Unchecked, "ssl.endpoint.identification.algorithm", Warning, "is empty: the name in the broker's certificate is not checked; that an authority of the trust store has signed it still is")
	default:
		p.problem("ssl.endpoint.identification.algorithm", "is neither https nor empty")
	}
	t.min, t.max = p.versions()
	p.cipherSuites(t)
	p.only("ssl.engine.factory.class", "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory")
	return t
}

// only refuses a class that is not the one whose work is done here.
func (p *properties) only(key string, classes ...string) {
	if p.set(key) && !slices.Contains(classes, p.text(key)) {
		p.problem(key, "not supported: "+becauseJava)
	}
}

// trustStore follows DefaultSslEngineFactory.createTruststore.
func (p *properties) trustStore() *store {
	const (
		location, inline, password = "ssl.truststore.location", "ssl.truststore.certificates", "ssl.truststore.password"
	)
	isPEM := strings.EqualFold(p.text("ssl.truststore.type"), "PEM")
	p.storeType("ssl.truststore.type")
	pem, isInline := p.given(inline)
	pass, hasPassword := p.given(password)
	switch {
	case isInline && p.set(location):
		p.problem(inline, "cannot be used together with "+location)
	case isInline && !isPEM:
		p.problem(inline, "needs ssl.truststore.type=PEM")
	case hasPassword && (isPEM || isInline):
		p.problem(password, "cannot be used with ssl.truststore.type=PEM")
	case isInline:
		return &store{key: inline, where: p.values[inline].Where, pem: pem}
	case p.set(location):
		return &store{key: location, where: p.values[location].Where, path: p.text(location), password: pass}
	case hasPassword:
		p.problem(password, "is set, and "+location+" is not")
	}
	return nil
}

// keyStore follows DefaultSslEngineFactory.createKeystore.
func (p *properties) keyStore() *store {
	const (
		location, key, chain, password = "ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.keystore.password"
	)
	isPEM := strings.EqualFold(p.text("ssl.keystore.type"), "PEM")
	p.storeType("ssl.keystore.type")
	private, hasKey := p.given(key)
	certificates, hasChain := p.given(chain)
	pass, hasPassword := p.given(password)
	keyPassword, _ := p.given("ssl.key.password")
	switch {
	case hasKey && p.set(location):
		p.problem(key, "cannot be used together with "+location)
	case hasKey && !isPEM:
		p.problem(key, "needs ssl.keystore.type=PEM")
	case hasKey && !hasChain:
		p.problem(key, "needs "+chain+" beside it")
	case hasChain && !hasKey:
		p.problem(chain, "needs "+key+" beside it")
	case hasPassword && (isPEM || hasKey):
		p.problem(password, "cannot be used with ssl.keystore.type=PEM: ssl.key.password is for the key")
	case hasKey:
		return &store{key: key, where: p.values[key].Where, pem: certificates, privateKey: private, keyPassword: keyPassword}
	case p.set(location) && !hasPassword && !isPEM:
		p.problem(location, "needs "+password+" beside it")
	case p.set(location):
		return &store{key: location, where: p.values[location].Where, path: p.text(location), password: pass, keyPassword: keyPassword}
	case hasPassword:
		p.problem(password, "is set, and "+location+" is not")
	}
	return nil
}

// given is secret for keys of which an empty value is none.
func (p *properties) given(key string) (secret, bool) {
	value, ok := p.secret(key)
	return value, ok && value.reveal() != ""
}

// storeType refuses types that nothing here reads. Which of the others it is the
// store itself says.
func (p *properties) storeType(key string) {
	switch strings.ToUpper(p.text(key)) {
	case "", "JKS", "PKCS12", "PEM":
	default:
		p.noneOf(key, "JKS", "PKCS12", "PEM")
	}
}

// protocolVersions are Java's names of TLS versions, in their order.
var protocolVersions = []struct {
	name    string
	version uint16
}{{"TLSv1", tls.VersionTLS10}, {"TLSv1.1", tls.VersionTLS11}, {"TLSv1.2", tls.VersionTLS12}, {"TLSv1.3", tls.VersionTLS13}}

// versions reads ssl.enabled.protocols, within what ssl.protocol allows: with
// TLSv1.2 there, TLSv1.3 is never used.
func (p *properties) versions() (lowest, highest uint16) {
	most := uint16(tls.VersionTLS13)
	switch name := p.text("ssl.protocol"); name {
	case "", "TLS", "SSL":
	default:
		if most = versionOf(name); most == 0 {
			p.noneOf("ssl.protocol", "TLSv1.3", "TLSv1.2", "TLSv1.1", "TLSv1", "TLS")
			return tls.VersionTLS12, tls.VersionTLS13
		}
	}
	if !p.set("ssl.enabled.protocols") {
		return min(tls.VersionTLS12, most), most
	}
	for _, name := range p.list("ssl.enabled.protocols") {
		version := versionOf(name)
		if version == 0 {
			p.notice(Otherwise, "ssl.enabled.protocols", Warning, fmt.Sprintf("%s is not supported, and left out; supported are TLSv1.3, TLSv1.2, TLSv1.1 and TLSv1", name))
			continue
		}
		if lowest == 0 || version < lowest {
			lowest = version
		}
		if version <= most {
			highest = max(highest, version)
		}
	}
	if highest == 0 {
		p.problem("ssl.enabled.protocols", "leaves no version of TLS that ssl.protocol allows")
	}
	return lowest, highest
}

// versionOf returns 0 for a name that is none.
func versionOf(name string) uint16 {
	for _, v := range protocolVersions {
		if v.name == name {
			return v.version
		}
	}
	return 0
}

// cipherSuites reads ssl.cipher.suites. Of TLS 1.3 Go does not let suites be
// chosen; but a list without any of them means that TLS 1.3 is not to be used, as
// in Java.
func (p *properties) cipherSuites(t *tlsSettings) {
	const key = "ssl.cipher.suites"
	if !p.set(key) {
		return
	}
	modern := 0
	for _, name := range p.list(key) {
		suite, ok := suiteOf(name)
		switch {
		case !ok:
			p.notice(Otherwise, key, Warning, fmt.Sprintf("%s is not supported, and left out", name))
		case slices.Contains(suite.SupportedVersions, tls.VersionTLS13):
			modern++
		default:
			t.suites = append(t.suites, suite.ID)
		}
	}
	switch {
	case modern == 0 && len(t.suites) == 0:
		p.problem(key, "names no cipher suite that is supported")
	case modern == 0:
		t.max = min(t.max, tls.VersionTLS12)
	case len(t.suites) == 0:
		t.min = max(t.min, tls.VersionTLS13)
	}
	if modern > 0 && modern < 3 && t.max >= tls.VersionTLS13 {
		p.notice(Otherwise, key, Info, "of TLS 1.3 all three suites are offered: they cannot be chosen among")
	}
	if t.min > t.max && t.max != 0 {
		p.problem(key, "names no cipher suite of the versions that ssl.enabled.protocols and ssl.protocol allow")
	}
}

// suiteOf finds a suite by Java's name, which is IANA's, with SSL_ in front for
// those that are older than TLS.
func suiteOf(name string) (*tls.CipherSuite, bool) {
	if rest, ok := strings.CutPrefix(name, "SSL_"); ok {
		name = "TLS_" + rest
	}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if suite.Name == name {
			return suite, true
		}
	}
	return nil, false
}

// config makes the configuration of one connection from what the stores hold now.
// asked is set once the broker has asked for a certificate and got none.
func (t *tlsSettings) config(host string, asked *bool) (*tls.Config, error) {
	c := &tls.Config{
		ServerName: host, MinVersion: t.min, MaxVersion: t.max, CipherSuites: t.suites,
		// Verification is VerifyConnection's: Java checks the chain and the name by
		// other rules, and the name not always. It runs on every handshake.
		InsecureSkipVerify: true,
	}
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	c.VerifyConnection = func(state tls.ConnectionState) error { return t.verify(state, roots, host) }
	var pairs []tls.Certificate
	if t.key != nil {
		if pairs, err = t.key.keyPairs(); err != nil {
			return nil, err
		}
	}
	c.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		for i := range pairs {
			if request.SupportsCertificate(&pairs[i]) == nil {
				return &pairs[i], nil
			}
		}
		*asked = true
		return new(tls.Certificate), nil // none
	}
	return c, nil
}

// roots returns nil for those of the system.
func (t *tlsSettings) roots() (*x509.CertPool, error) {
	if t.trust == nil {
		return nil, nil
	}
	trusted, err := t.trust.trusted()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, c := range trusted {
		pool.AddCert(c)
	}
	return pool, nil
}

// verify checks the broker's chain against the roots, always, and its name unless
// that is switched off.
func (t *tlsSettings) verify(state tls.ConnectionState, roots *x509.CertPool, host string) error {
	leaf := state.PeerCertificates[0]
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(options); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
	}
	if !t.checkHost || namesHost(leaf, host) {
		return nil
	}
	return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: x509.HostnameError{Certificate: leaf, Host: host}}
}

// namesHost reports whether a certificate is one of the host. As in Java
// (sun.security.util.HostnameChecker) the common name counts where there is no
// alternative name of type DNS, and never for an address.
func namesHost(c *x509.Certificate, host string) bool {
	if c.VerifyHostname(host) == nil {
		return true
	}
	if len(c.DNSNames) > 0 || c.Subject.CommonName == "" {
		return false
	}
	named := *c // VerifyHostname looks for addresses among addresses alone
	named.DNSNames = []string{c.Subject.CommonName}
	return named.VerifyHostname(host) == nil
}
