package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// pipe returns both ends of a connection by TCP: that of net.Pipe has no buffer,
// so that two sides that both write, as with an alert, would wait for ever.
func pipe(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

// settings reads lines key=value, each with its number as its place.
func settings(lines ...string) []Setting {
	var all []Setting
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		all = append(all, Setting{Key: key, Value: value, Where: "client.properties:" + string(rune('1'+len(all)))})
	}
	return all
}

// broker starts a fake cluster and returns its address.
func broker(t *testing.T, options ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append(options, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// secured returns the TLS of a broker.
func secured(t *testing.T, name string, auth tls.ClientAuthType) kfake.Opt {
	t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{serverPair(t, name)}, ClientAuth: auth}
	pool, err := (&tlsSettings{trust: &store{path: stored("ca.pem")}}).roots()
	if err != nil {
		t.Fatal(err)
	}
	config.ClientCAs = pool
	return kfake.TLS(config)
}

// carry sends a record through a cluster and fetches it back.
func carry(t *testing.T, lines ...string) {
	t.Helper()
	c, _, err := FromProperties("target", settings(lines...))
	if err != nil {
		t.Fatal(err)
	}
	client, id, err := c.Open(t.Context(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if id == "" {
		t.Error("no cluster id")
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	fetches := client.PollFetches(t.Context())
	if err := fetches.Err(); err != nil || fetches.NumRecords() == 0 || string(fetches.Records()[0].Value) != "v" {
		t.Errorf("%d records, %v", fetches.NumRecords(), err)
	}
}

// refused opens a cluster and returns the error, which must come in time, name the
// cluster and an address, and be without secrets.
func refused(t *testing.T, lines ...string) error {
	t.Helper()
	c, _, err := FromProperties("target", settings(lines...))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	client, _, err := c.Open(t.Context())
	if err == nil {
		client.Close()
		t.Fatal("opened")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) {
		t.Fatalf("got %T: %v", err, err)
	}
	for _, part := range []string{"target", c.Bootstrap[0]} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("a secret is in: %v", err)
	}
	return err
}

func trusting(address string, more ...string) []string {
	return append([]string{"bootstrap.servers=" + address, "security.protocol=SSL",
		"ssl.truststore.location=" + stored("trust.jks"), "ssl.truststore.password=" + storePassword}, more...)
}

// TestStoresAtBrokers does the whole way with each kind of store.
func TestStoresAtBrokers(t *testing.T) {
	address := broker(t, secured(t, "server", tls.RequireAndVerifyClientCert))
	chain, err := os.ReadFile(stored("client-chain.pem"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(stored("key-pbes2-aes256.pem"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(stored("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string][]string{
		"jks": {"ssl.keystore.location=" + stored("key.jks"), "ssl.keystore.password=" + storePassword, "ssl.key.password=" + keyPassword,
			"ssl.truststore.location=" + stored("trust.jks"), "ssl.truststore.password=" + storePassword},
		"pkcs12": {"ssl.keystore.type=PKCS12", "ssl.keystore.location=" + stored("key.p12"), "ssl.keystore.password=" + storePassword,
			"ssl.truststore.type=PKCS12", "ssl.truststore.location=" + stored("trust.p12"), "ssl.truststore.password=" + storePassword},
		"pkcs12 named jks": {"ssl.keystore.location=" + stored("key-pkcs12.jks"), "ssl.keystore.password=" + storePassword,
			"ssl.truststore.location=" + stored("trust-pkcs12.jks"), "ssl.truststore.password=" + storePassword},
		"one store for both": {"ssl.keystore.location=" + stored("mixed.p12"), "ssl.keystore.password=" + storePassword,
			"ssl.truststore.location=" + stored("mixed.p12"), "ssl.truststore.password=" + storePassword},
		"pem files": {"ssl.keystore.type=PEM", "ssl.keystore.location=" + stored("key-pbes1-3des.pem"), "ssl.key.password=" + keyPassword,
			"ssl.truststore.type=PEM", "ssl.truststore.location=" + stored("ca.pem")},
		"pem inline": {"ssl.keystore.type=PEM", "ssl.keystore.key=" + string(whole), "ssl.keystore.certificate.chain=" + string(chain), "ssl.key.password=" + keyPassword,
			"ssl.truststore.type=PEM", "ssl.truststore.certificates=" + string(ca)},
	} {
		t.Run(name, func(t *testing.T) {
			carry(t, append(lines, "bootstrap.servers="+address, "security.protocol=SSL")...)
		})
	}
}

// TestRefusals: each way of not getting in is named, in time.
func TestRefusals(t *testing.T) {
	open, mutual := broker(t), broker(t, secured(t, "server", tls.RequireAndVerifyClientCert))
	plainTLS := broker(t, secured(t, "server", tls.NoClientCert))
	logins := broker(t, kfake.EnableSASL(), kfake.User("SCRAM-SHA-512", "ua", "right-canary"))
	const jaas = `sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="ua" password="%s";`
	tests := map[string]struct {
		lines []string
		parts []string
	}{
		"plain client at a TLS port":       {[]string{"bootstrap.servers=" + plainTLS}, []string{"speaks", "SSL", "security.protocol", "PLAINTEXT"}},
		"plain client at a mutual port":    {[]string{"bootstrap.servers=" + mutual}, []string{"speaks SSL", "security.protocol"}},
		"TLS client at a plain port":       {trusting(open), []string{"speaks", "PLAINTEXT", "security.protocol (client.properties:2) is SSL"}},
		"plain client where logins are":    {[]string{"bootstrap.servers=" + logins}, []string{"speaks SASL_PLAINTEXT", "security.protocol is PLAINTEXT"}},
		"TLS client where logins are":      {trusting(logins), []string{"speaks SASL_PLAINTEXT", "security.protocol (client.properties:2) is SSL"}},
		"no certificate":                   {trusting(mutual), []string{"wants a certificate from us", "ssl.keystore.location is not set"}},
		"no certificate, TLS 1.2":          {trusting(mutual, "ssl.enabled.protocols=TLSv1.2"), []string{"wants a certificate from us"}},
		"unknown authority":                {[]string{"bootstrap.servers=" + plainTLS, "security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.location=" + stored("client.pem")}, []string{"no authority of the trust store", "ssl.truststore.location (client.properties:4)"}},
		"system's authorities":             {[]string{"bootstrap.servers=" + plainTLS, "security.protocol=SSL"}, []string{"ssl.truststore.location is not set"}},
		"unknown authority, no name check": {[]string{"bootstrap.servers=" + plainTLS, "security.protocol=SSL", "ssl.endpoint.identification.algorithm=", "ssl.truststore.type=PEM", "ssl.truststore.location=" + stored("client.pem")}, []string{"no authority of the trust store"}},
		"wrong password": {[]string{"bootstrap.servers=" + logins, "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-512",
			strings.Replace(jaas, "%s", "wrong-canary", 1)}, []string{"the login, which is probably wrong", "sasl.jaas.config (client.properties:4)"}}, // kfake ends the connection without a word
		"wrong mechanism": {[]string{"bootstrap.servers=" + logins, "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url=file:" + stored("ca.pem")},
			[]string{"takes logins by PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", "sasl.mechanism (client.properties:3) is OAUTHBEARER"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a fake broker takes a handshake of TLS for a long request, and waits
			err := refused(t, test.lines...)
			for _, part := range test.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// TestHostNames: the certificate of the fake brokers is one of localhost and
// 127.0.0.1.
func TestHostNames(t *testing.T) {
	address := broker(t, secured(t, "server", tls.NoClientCert))
	named := broker(t, secured(t, "common-name", tls.NoClientCert))
	port := address[strings.LastIndexByte(address, ':'):]
	elsewhere := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	open := func(bootstrap string, dial dialer, more ...string) error {
		c, _, err := FromProperties("a", settings(trusting(bootstrap, more...)...))
		if err != nil {
			t.Fatal(err)
		}
		c.Dial = dial
		client, _, err := c.Open(t.Context())
		if err == nil {
			client.Close()
		}
		return err
	}
	if err := open("localhost"+port, nil); err != nil {
		t.Errorf("localhost: %v", err)
	}
	err := open("kafka.example"+port, elsewhere)
	if err == nil || !strings.Contains(err.Error(), "certificate is one of another host") || !strings.Contains(err.Error(), "kafka.example") {
		t.Errorf("another host: %v", err)
	}
	if err := open("kafka.example"+port, elsewhere, "ssl.endpoint.identification.algorithm="); err != nil {
		t.Errorf("another host, not checked: %v", err)
	}
	if err := open(named, nil); err == nil || !strings.Contains(err.Error(), "another host") {
		t.Errorf("an address against a common name: %v", err)
	}
	c := certificate(t, "common-name.pem")
	for host, want := range map[string]bool{"localhost": true, "LOCALHOST": true, "other": false, "127.0.0.1": false} {
		if namesHost(c, host) != want {
			t.Errorf("common name localhost, host %s: %v", host, !want)
		}
	}
}

// TestRotation: a trust store that is replaced counts for the next connection.
func TestRotation(t *testing.T) {
	path := t.TempDir() + "/trust.pem"
	put := func(name string) {
		data, err := os.ReadFile(stored(name))
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("client.pem")
	address := broker(t, secured(t, "server", tls.NoClientCert))
	c, _, err := FromProperties("a", settings("bootstrap.servers="+address, "security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.location="+path))
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ping(t.Context()); err == nil {
		t.Fatal("the broker was trusted")
	}
	put("trust.jks") // another format, too
	if err := client.Ping(t.Context()); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
}
