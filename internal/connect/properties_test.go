package connect

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"apograph/internal/javaprops"
)

// problems makes a cluster that must be refused, and returns why.
func problems(t *testing.T, lines ...string) string {
	t.Helper()
	_, _, err := FromProperties("a", settings(lines...))
	var config *ConfigError
	if !errors.As(err, &config) {
		t.Fatalf("%q: got %v", lines, err)
	}
	return err.Error()
}

// TestKeysAreSorted: Lookup searches by halves.
func TestKeysAreSorted(t *testing.T) {
	names := []string{}
	for k := range Keys() {
		names = append(names, k.Name)
		if (k.Treatment == Ignored || k.Treatment == Refused) == (k.Reason == "") {
			t.Errorf("%s: treatment %d and reason %q", k.Name, k.Treatment, k.Reason)
		}
		if got, ok := Lookup(k.Name); !ok || got != k {
			t.Errorf("%s is not found", k.Name)
		}
	}
	if !slices.IsSorted(names) || len(names) != 141 {
		t.Errorf("%d keys; sorted: %v", len(names), slices.IsSorted(names))
	}
}

// TestRefusedSettings: what cannot be obeyed is named, with its place.
func TestRefusedSettings(t *testing.T) {
	const b = "bootstrap.servers=a:1"
	for _, test := range []struct {
		lines []string
		part  string
	}{
		{nil, "bootstrap.servers: not set"},
		{[]string{"bootstrap.servers=a"}, `bootstrap.servers (client.properties:1): "a" is not host:port`},
		{[]string{"bootstrap.servers=a:1,b:99999"}, "no valid port"},
		{[]string{b, "security.protocol=TLS"}, "security.protocol (client.properties:2): is none of PLAINTEXT, SSL"},
		{[]string{b, "security.protocol=SASL-SSL"}, "did you mean SASL_SSL?"},
		{[]string{b, "security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA512"}, "did you mean SCRAM-SHA-512?"},
		{[]string{b, "security.protocol=SASL_SSL"}, "sasl.mechanism: not set; a Java client would then use GSSAPI"},
		{[]string{b, "security.protocol=SASL_SSL", "sasl.mechanism=GSSAPI"}, "Kerberos"},
		{[]string{b, "security.protocol=SASL_SSL", "sasl.mechanism=CRAM"}, "is none of PLAIN"},
		{[]string{b, "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN"}, "sasl.jaas.config: not set"},
		{[]string{b, "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.jaas.config=a.ScramLoginModule required username=a password=b;"}, "does not name the login module of PLAIN"},
		{[]string{b, "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.jaas.config=a.PlainLoginModule required username=a;"}, "has no option password"},
		{[]string{b, "security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER", "sasl.jaas.config=a.OAuthBearerLoginModule required;"}, "sasl.oauthbearer.token.endpoint.url: not set"},
		{[]string{b, "security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url=https://x", "sasl.login.callback.handler.class=my.Handler"}, "sasl.login.callback.handler.class (client.properties:5): not supported"},
		{[]string{b, "security.protocol=SASL_SSL", "sasl.mechanism=AWS_MSK_IAM", "sasl.jaas.config=s.IAMLoginModule required awsRoleArn=a;"}, "credential_process"},
		{[]string{b, "security.protocol=SSL", "ssl.engine.factory.class=my.Factory"}, "ssl.engine.factory.class (client.properties:3): not supported"},
		{[]string{b, "security.protocol=SSL", "ssl.provider=BC"}, "ssl.provider (client.properties:3): not supported"},
		{[]string{b, "security.providers=my.P"}, "security.providers"},
		{[]string{b, "interceptor.classes=my.I"}, "interceptor.classes"},
		{[]string{b, "sasl.login.class=my.L"}, "sasl.login.class"},
		{[]string{b, "security.protocol=SSL", "ssl.endpoint.identification.algorithm=ldaps"}, "neither https nor empty"},
		{[]string{b, "security.protocol=SSL", "ssl.truststore.type=BCFKS"}, "none of JKS, PKCS12, PEM"},
		{[]string{b, "security.protocol=SSL", "ssl.truststore.password=x"}, "ssl.truststore.location is not"},
		{[]string{b, "security.protocol=SSL", "ssl.truststore.certificates=x"}, "needs ssl.truststore.type=PEM"},
		{[]string{b, "security.protocol=SSL", "ssl.keystore.location=x"}, "needs ssl.keystore.password"},
		{[]string{b, "security.protocol=SSL", "ssl.keystore.type=PEM", "ssl.keystore.key=x"}, "needs ssl.keystore.certificate.chain"},
		{[]string{b, "security.protocol=SSL", "ssl.keystore.type=PEM", "ssl.keystore.location=x", "ssl.keystore.password=y"}, "ssl.key.password is for the key"},
		{[]string{b, "security.protocol=SSL", "ssl.protocol=TLSv1.2", "ssl.enabled.protocols=TLSv1.3"}, "leaves no version"},
		{[]string{b, "security.protocol=SSL", "ssl.protocol=TLSv9"}, "ssl.protocol"},
		{[]string{b, "security.protocol=SSL", "ssl.cipher.suites=TLS_MY_OWN"}, "names no cipher suite"},
		{[]string{b, "security.protocol=SSL", "ssl.enabled.protocols=TLSv1.3", "ssl.cipher.suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, "of the versions"},
		{[]string{b, "request.timeout.ms=1s"}, `request.timeout.ms (client.properties:2): "1s" is not of type int`},
		{[]string{b, "sasl.login.refresh.window.factor=0.1", "security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url=file:x"}, "is not between 0.5 and 1"},
	} {
		if got := problems(t, test.lines...); !strings.Contains(got, test.part) {
			t.Errorf("%q: %s", test.lines, got)
		}
	}
}

// TestNotices: what is accepted and changes nothing is said, and nothing else.
func TestNotices(t *testing.T) {
	const b = "bootstrap.servers=a:1, SSL://b:2 ,[::1]:3"
	for _, test := range []struct {
		line  string
		want  string // of the only notice; empty: none
		level Level
		kind  NoticeKind
	}{
		{"client.id=x", "", Info, Unneeded},
		{"auto.offset.reset=earliest", "", Info, Unneeded},
		{"config.providers=file", "", Info, Unneeded},
		{"config.providers.file.class=x", "", Info, Unneeded},
		{"acks=1", "has no effect: records are always written with acks=all", Info, Unneeded},
		{"acks=all", "", Info, Unneeded},
		{"enable.idempotence=TRUE", "", Info, Unneeded},
		{"isolation.level=read_committed", "", Info, Unneeded},
		{"isolation.level=read_uncommitted", "always read_committed", Warning, Otherwise},
		{"compression.type=lz4", "codec", Info, Unneeded},
		{"interceptor.classes=", "", Info, Unneeded},
		{"sasl.mechansim=PLAIN", "did you mean sasl.mechanism?", Warning, Unknown},
		{"my.own.key=1", "no client of Kafka knows this key", Warning, Unknown},
		{"request.timeout.ms=1", "100 ms is used", Info, Otherwise},
		{"request.timeout.ms= 20000 ", "", Info, Unneeded},
		{"client.dns.lookup=resolve_canonical_bootstrap_servers_only", "Kerberos", Warning, Otherwise},
		{"connections.max.idle.ms=-1", "", Info, Unneeded},
		{"sasl.mechanism=PLAIN", "has no effect with security.protocol=PLAINTEXT", Warning, Idle},
		{"ssl.truststore.location=x", "has no effect with security.protocol=PLAINTEXT", Warning, Idle},
		{"ssl.truststore.password=x", "has no effect with security.protocol=PLAINTEXT", Warning, Idle},
		{"ssl.key.password=x", "has no effect with security.protocol=PLAINTEXT", Warning, Idle},
		{"ssl.endpoint.identification.algorithm=", "", Info, Unneeded},
		{"metadata.max.age.ms=99999999999", "3600000 ms is used", Info, Otherwise},
	} {
		c, notices, err := FromProperties("a", settings(b, test.line))
		if err != nil || fmt.Sprint(c.Bootstrap) != "[a:1 b:2 [::1]:3]" {
			t.Errorf("%s: %v, %v", test.line, c.Bootstrap, err)
			continue
		}
		if client, err := c.Client(); err != nil {
			t.Errorf("%s: %v", test.line, err)
		} else {
			client.Close()
		}
		if len(notices) == 0 && test.want == "" {
			continue
		}
		if len(notices) != 1 || test.want == "" || !strings.Contains(notices[0].Text, test.want) || notices[0].Level != test.level || notices[0].Kind != test.kind ||
			notices[0].Where != "client.properties:2" {
			t.Errorf("%s: %+v", test.line, notices)
		}
	}
}

// TestCiphersAndVersions: what Java's settings mean to Go.
func TestCiphersAndVersions(t *testing.T) {
	for _, test := range []struct {
		lines    []string
		min, max uint16 // 12 is TLS 1.2
		suites   int
	}{
		{nil, 12, 13, 0},
		{[]string{"ssl.protocol=TLSv1.2"}, 12, 12, 0},
		{[]string{"ssl.protocol=TLS", "ssl.enabled.protocols=TLSv1.1, TLSv1.2"}, 11, 12, 0},
		{[]string{"ssl.enabled.protocols=TLSv1.3"}, 13, 13, 0},
		{[]string{"ssl.enabled.protocols=SSLv3,TLSv1.2"}, 12, 12, 0},
		{[]string{"ssl.protocol=TLSv1.2", "ssl.enabled.protocols=TLSv1.2,TLSv1.3"}, 12, 12, 0},
		{[]string{"ssl.cipher.suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,SSL_RSA_WITH_3DES_EDE_CBC_SHA,TLS_DHE_X"}, 12, 12, 2},
		{[]string{"ssl.cipher.suites=TLS_AES_128_GCM_SHA256"}, 13, 13, 0},
		{[]string{"ssl.cipher.suites=TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, 12, 13, 1},
	} {
		c, _, err := FromProperties("a", settings(append(test.lines, "bootstrap.servers=a:1", "security.protocol=SSL")...))
		if err != nil {
			t.Errorf("%q: %v", test.lines, err)
			continue
		}
		got := c.access.tls
		if got.min != 0x0301+test.min-10 || got.max != 0x0301+test.max-10 || len(got.suites) != test.suites {
			t.Errorf("%q: %x to %x, %d suites", test.lines, got.min, got.max, len(got.suites))
		}
	}
	_, notices, err := FromProperties("a", settings("bootstrap.servers=a:1", "security.protocol=SSL", "ssl.enabled.protocols=SSLv3,TLSv1.2"))
	if err != nil || len(notices) != 1 || !strings.Contains(notices[0].Text, "SSLv3 is not supported") || !strings.Contains(notices[0].Text, "supported are TLSv1.3,") {
		t.Errorf("%v, %v", notices, err)
	}
}

// secretLines are settings with six kinds of secrets, each with a canary in it.
func secretLines(canary string) []string {
	jaas := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(canary)
	return []string{
		"bootstrap.servers=127.0.0.1:1", "security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER",
		`sasl.jaas.config=a.OAuthBearerLoginModule required clientId="a" clientSecret="` + jaas + `" ` + `extension_x="` + jaas + `";`,
		"sasl.oauthbearer.token.endpoint.url=https://127.0.0.1:1/token",
		"sasl.oauthbearer.client.credentials.client.secret=" + canary,
		"ssl.truststore.location=" + stored("trust.jks"), "ssl.truststore.password=" + canary,
		"ssl.keystore.type=PEM", "ssl.keystore.key=" + canary, "ssl.keystore.certificate.chain=" + canary, "ssl.key.password=" + canary,
		"ssl.keystore.password=", "basic.auth.user.info=" + canary, "my.api.key=" + canary,
	}
}

// printed is all that can be made to say something.
func printed(all []Setting) string {
	var b strings.Builder
	c, notices, err := FromProperties("a", all)
	handler := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	handler.Debug("x", "settings", all, "cluster", fmt.Sprintf("%+v", c), "notices", notices, "err", err)
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "settings", all, "one", all[0])
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&b, verb+verb+verb+verb+verb, all, all[len(all)-1], c, notices, err)
		fmt.Fprintf(&b, verb, &c)
		if c.access != nil {
			fmt.Fprintf(&b, verb+verb+verb, *c.access, c.access.tls, c.access.login)
			if c.access.tls != nil {
				fmt.Fprintf(&b, verb+verb+verb, *c.access.tls, *c.access.tls.trust, c.access.tls.key)
			}
		}
	}
	if data, err := json.Marshal(all); err == nil {
		b.Write(data)
	}
	if err := c.Check(); err != nil {
		fmt.Fprintf(&b, "%v %+v %#v", err, err, err)
	}
	return b.String()
}

// FuzzSecrets: no secret comes out of anything, whatever it looks like and
// whatever is wrong with the settings beside it.
func FuzzSecrets(f *testing.F) {
	f.Add("canary-1", "")
	f.Add(`ca"nary`, "security.protocol=SSL")
	f.Add("canary;x=", "ssl.keystore.password=canary;x=")
	f.Add("-----BEGIN PRIVATE KEY-----canary-----END PRIVATE KEY-----", "sasl.mechanism=PLAIN")
	f.Add("canary canary", `sasl.jaas.config=a.PlainLoginModule required password="canary canary"`)
	f.Fuzz(func(t *testing.T, canary, line string) {
		canary = "CANARY" + canary
		if strings.Contains(line, "CANARY") {
			return
		}
		key, value, _ := strings.Cut(line, "=")
		if javaprops.Secret(key) {
			value += canary
		}
		out := printed(append(settings(secretLines(canary)...), Setting{Key: key, Value: value, Where: "x:1"}))
		if at := strings.Index(out, "CANARY"); at >= 0 {
			t.Errorf("the secret is shown: %.300s", out[max(0, at-150):])
		}
		if at := strings.Index(out, "43414e415259"); at >= 0 { // %x of it
			t.Errorf("the secret is shown in hex: %.300s", out[max(0, at-150):])
		}
	})
}

// TestSecretsOfClients: what Kafka declares as a password is never shown.
func TestSecretsOfClients(t *testing.T) {
	for key := range Keys() {
		if key.Type == Password && !javaprops.Secret("a.consumer."+key.Name) {
			t.Errorf("%s is shown", key.Name)
		}
	}
}
