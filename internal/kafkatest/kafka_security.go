//go:build kafka

package kafkatest

import (
	"context"
	"crypto/rsa"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A Listener is one of the secured listeners that [Security.Secure] adds.
type Listener string

// The secured listeners.
const (
	ListenTLS       Listener = "TLS"       // SSL
	ListenMutual    Listener = "MUTUAL"    // SSL, and clients need a certificate
	ListenLogin     Listener = "LOGIN"     // SASL_SSL
	ListenOpenLogin Listener = "OPENLOGIN" // SASL_PLAINTEXT
)

// A Login is a way for a client to show who it is.
type Login string

// The logins. Of those by certificate each has its stores in another format.
const (
	LoginPlain    Login = "PLAIN"
	LoginScram256 Login = "SCRAM-SHA-256"
	LoginScram512 Login = "SCRAM-SHA-512"
	LoginToken    Login = "OAUTHBEARER" // a signed token, from a file
	LoginJKS      Login = "JKS"
	LoginPKCS12   Login = "PKCS12"
	LoginPEM      Login = "PEM"
)

// Logins returns all of them.
func Logins() []Login {
	return []Login{LoginPlain, LoginScram256, LoginScram512, LoginToken, LoginJKS, LoginPKCS12, LoginPEM}
}

// A Security is an authority with the certificates that it has signed: one for
// the brokers of any number of clusters, and one for each user; and the users'
// passwords.
type Security struct {
	t     TB
	dir   string
	users []string

	issuer *rsa.PrivateKey // of tokens
}

// StorePassword protects all stores, and KeyPassword the keys in JKS and PEM.
const (
	StorePassword = "store-canary"
	KeyPassword   = "key-canary"
)

// NewSecurity makes certificates and stores for users, with Go, OpenSSL and
// keytool. It fails the test where one is missing.
func NewSecurity(t TB, users ...string) *Security {
	t.Helper()
	s := &Security{t: t, dir: t.TempDir(), users: users}
	ctx, cancel := context.WithTimeout(t.Context(), kafkaStartTimeout)
	defer cancel()
	if err := s.make(ctx); err != nil {
		t.Fatalf("make certificates: %v", err)
	}
	return s
}

// Path returns a file of the security's directory: ca.pem, broker.pem, and
// for each user USER.pem, USER.jks, USER.p12, USER.token; trust.jks, trust.p12.
func (s *Security) Path(name string) string { return filepath.Join(s.dir, name) }

// Password returns a user's password.
func (s *Security) Password(user string) string { return user + `-"\canary` }

// Principal returns whom brokers take a user for.
func (s *Security) Principal(l Login, user string) string {
	switch l {
	case LoginJKS, LoginPKCS12, LoginPEM:
		return "User:CN=" + user + ",O=apograph"
	}
	return "User:" + user
}

// JavaOptions returns options for a JVM that has to do with tokens: since 4.0 Kafka
// reads no file and asks no endpoint that is not named so
// (org.apache.kafka.sasl.oauthbearer.allowed.urls). For [Kafka.JavaCommand]; the
// brokers have them unless their options say others.
func (s *Security) JavaOptions() []string {
	urls := []string{"file:" + s.Path("jwks.json")}
	for _, user := range s.users {
		urls = append(urls, "file:"+s.Path(user+".token"))
	}
	return []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + strings.Join(urls, ",")}
}

// A Secured is a cluster with secured listeners.
type Secured struct {
	*Security
	ports map[Listener]int
}

// Secure adds the secured listeners to a cluster of one node, an authorizer, and
// users who may log in by PLAIN. Clients of the plain listener, as this package's
// are, may do everything. Settings that o has already win.
func (s *Security) Secure(o *KafkaOptions) *Secured {
	s.t.Helper()
	c := &Secured{Security: s, ports: map[Listener]int{}}
	for _, l := range []KafkaListener{
		{Name: string(ListenTLS), Protocol: "SSL"}, {Name: string(ListenMutual), Protocol: "SSL"},
		{Name: string(ListenLogin), Protocol: "SASL_SSL"}, {Name: string(ListenOpenLogin), Protocol: "SASL_PLAINTEXT"},
	} {
		r, err := reserve()
		if err != nil {
			s.t.Fatalf("reserve a port: %v", err)
		}
		s.t.Cleanup(r.release)
		l.Port, c.ports[Listener(l.Name)] = r.port, r.port
		o.Listeners = append(o.Listeners, l)
	}
	config := s.brokerConfig()
	maps.Copy(config, o.Config)
	o.Config = config
	if o.JVM == nil {
		o.JVM = s.JavaOptions()
	}
	return c
}

func (s *Security) brokerConfig() map[string]string {
	const module = "org.apache.kafka.common.security."
	plain := module + "plain.PlainLoginModule required"
	for _, user := range s.users {
		plain += " user_" + user + "=" + jaasQuote(s.Password(user))
	}
	config := map[string]string{
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":           "User:ANONYMOUS",
		"ssl.keystore.type":     "PEM", "ssl.keystore.location": s.Path("broker.pem"),
		"ssl.truststore.type": "PEM", "ssl.truststore.location": s.Path("ca.pem"),
		"listener.name.mutual.ssl.client.auth": "required",
		"sasl.enabled.mechanisms":              "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
	}
	for _, listener := range []string{"login", "openlogin"} {
		prefix := "listener.name." + listener + "."
		config[prefix+"plain.sasl.jaas.config"] = propertyQuote(plain + ";")
		for _, mechanism := range []string{"scram-sha-256", "scram-sha-512"} {
			config[prefix+mechanism+".sasl.jaas.config"] = module + "scram.ScramLoginModule required;"
		}
		config[prefix+"oauthbearer.sasl.jaas.config"] = module + "oauthbearer.OAuthBearerLoginModule required;"
		config[prefix+"oauthbearer.sasl.server.callback.handler.class"] = module + "oauthbearer.OAuthBearerValidatorCallbackHandler"
		config[prefix+"oauthbearer.sasl.oauthbearer.jwks.endpoint.url"] = "file:" + s.Path("jwks.json")
		config[prefix+"oauthbearer.sasl.oauthbearer.expected.audience"] = tokenAudience
	}
	return config
}

// jaasQuote quotes a value of sasl.jaas.config.
func jaasQuote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// propertyQuote writes a value as a properties file takes it.
func propertyQuote(text string) string { return strings.ReplaceAll(text, `\`, `\\`) }

// Finish gives the users their logins by SCRAM, once the cluster runs.
func (c *Secured) Finish(ctx context.Context, k *Kafka) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} { // a user once a request
		var upserts []kadm.UpsertSCRAM
		for _, user := range c.users {
			upserts = append(upserts, kadm.UpsertSCRAM{User: user, Mechanism: mechanism, Iterations: 4096, Password: c.Password(user)})
		}
		altered, err := kadm.NewClient(client).AlterUserSCRAMs(ctx, nil, upserts)
		if err == nil {
			err = altered.Error()
		}
		if err != nil {
			return fmt.Errorf("give users their logins: %w", err)
		}
	}
	return nil
}

// AllowAll lets a principal do everything with all topics, all groups and the
// cluster.
func (k *Kafka) AllowAll(ctx context.Context, principal string) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	b := kadm.NewACLs().Allow(principal).AllowHosts("*").Topics("*").Groups("*").Clusters().Operations(kadm.OpAll).ResourcePatternType(kadm.ACLPatternLiteral)
	results, err := kadm.NewClient(client).CreateACLs(ctx, b)
	if err != nil {
		return fmt.Errorf("allow %s: %w", principal, err)
	}
	for _, r := range results {
		if r.Err != nil {
			return fmt.Errorf("allow %s: %w", principal, r.Err)
		}
	}
	return nil
}

// Address returns the address of a listener.
func (c *Secured) Address(l Listener) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.ports[l]))
}

// Properties returns a file for Java's clients, and for ours, with which a user
// logs in; lines that are given come last, and so win.
func (c *Secured) Properties(l Login, user string, more ...string) string {
	lines := append(c.login(l, user), more...)
	return strings.Join(lines, "\n") + "\n"
}

func (c *Secured) login(l Login, user string) []string {
	const module = "org.apache.kafka.common.security."
	listener, protocol := ListenLogin, "SASL_SSL"
	trust := []string{"ssl.truststore.location=" + c.Path("trust.jks"), "ssl.truststore.password=" + StorePassword}
	credentials := "username=" + jaasQuote(user) + " password=" + jaasQuote(c.Password(user)) + ";"
	var lines []string
	switch l {
	case LoginPlain:
		lines = []string{"sasl.mechanism=PLAIN", "sasl.jaas.config=" + propertyQuote(module+"plain.PlainLoginModule required "+credentials)}
	case LoginScram256, LoginScram512:
		lines = []string{"sasl.mechanism=" + string(l), "sasl.jaas.config=" + propertyQuote(module+"scram.ScramLoginModule required "+credentials)}
	case LoginToken:
		lines = []string{
			"sasl.mechanism=OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url=file:" + c.Path(user+".token"),
			"sasl.jaas.config=" + module + "oauthbearer.OAuthBearerLoginModule required;",
			"sasl.login.callback.handler.class=" + module + "oauthbearer.OAuthBearerLoginCallbackHandler",
		}
	case LoginJKS:
		listener, protocol = ListenMutual, "SSL"
		lines = []string{"ssl.keystore.location=" + c.Path(user+".jks"), "ssl.keystore.password=" + StorePassword, "ssl.key.password=" + KeyPassword}
	case LoginPKCS12:
		listener, protocol = ListenMutual, "SSL"
		trust = []string{"ssl.truststore.type=PKCS12", "ssl.truststore.location=" + c.Path("trust.p12"), "ssl.truststore.password=" + StorePassword}
		lines = []string{"ssl.keystore.type=PKCS12", "ssl.keystore.location=" + c.Path(user+".p12"), "ssl.keystore.password=" + StorePassword}
	case LoginPEM:
		listener, protocol = ListenMutual, "SSL"
		trust = []string{"ssl.truststore.type=PEM", "ssl.truststore.location=" + c.Path("ca.pem")}
		lines = []string{"ssl.keystore.type=PEM", "ssl.keystore.location=" + c.Path(user+".pem"), "ssl.key.password=" + KeyPassword}
	}
	lines = append([]string{"bootstrap.servers=" + c.Address(listener), "security.protocol=" + protocol}, lines...)
	return append(lines, trust...)
}

// WriteProperties writes Properties into a file of the test's and returns its
// path.
func (c *Secured) WriteProperties(l Login, user string, more ...string) string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "client.properties")
	if err := os.WriteFile(path, []byte(c.Properties(l, user, more...)), 0o600); err != nil {
		c.t.Fatalf("%v", err)
	}
	return path
}
