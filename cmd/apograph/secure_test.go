package main

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"apograph/internal/kafkatest"
)

// The secrets of secured clusters all have this word in them, which no output
// may have.
const canary = "canary"

// secureStore returns the path of a store among those of package connect.
func secureStore(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "internal", "connect", "testdata", "stores", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// secureCluster starts a fake cluster with TLS that lets one user in.
func secureCluster(t *testing.T, name, mechanism, password string) *kafkatest.Cluster {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(secureStore(t, "server.pem"), secureStore(t, "server-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	auth := scram.Auth{User: "mm2", Pass: password}
	login := auth.AsSha512Mechanism()
	if mechanism == "SCRAM-SHA-256" {
		login = auth.AsSha256Mechanism()
	}
	return kafkatest.NewCluster(t, kafkatest.ClusterOptions{
		Name: name, DataDir: t.TempDir(),
		TLS:   &tls.Config{Certificates: []tls.Certificate{pair}},
		Login: []kgo.Opt{kgo.SASL(login)},
		Kfake: []kfake.Opt{kfake.EnableSASL(), kfake.Superuser(mechanism, "mm2", password)},
	})
}

// secureLines returns the client properties for a secured cluster, with a prefix.
func secureLines(t *testing.T, prefix, mechanism, password string) []string {
	t.Helper()
	lines := []string{
		"security.protocol = SASL_SSL", "sasl.mechanism = " + mechanism,
		`sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required username="mm2" password="` + password + `";`,
		"ssl.truststore.location = " + secureStore(t, "trust.jks"), "ssl.truststore.password = store-canary",
	}
	for i := range lines {
		lines[i] = prefix + lines[i]
	}
	return lines
}

// newSecureCase is a configCase of two secured clusters. The password of the
// second stands in a file of its own.
func newSecureCase(t *testing.T, lines ...string) *configCase {
	t.Helper()
	c := &configCase{
		t: t, dir: t.TempDir(),
		a: secureCluster(t, "a", "SCRAM-SHA-512", "secret-canary-a"),
		b: secureCluster(t, "b", "SCRAM-SHA-256", "secret-canary-b"),
	}
	c.file = filepath.Join(c.dir, "mm2.properties")
	secrets := filepath.Join(c.dir, "secrets.properties")
	if err := os.WriteFile(secrets, []byte("password=secret-canary-b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{
		"clusters = a, b", "a.bootstrap.servers = " + c.a.Server(), "b.bootstrap.servers = " + c.b.Server(),
		"config.providers = file", "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider",
		"apograph.ledger.dir = " + c.dir,
	}
	all = append(all, secureLines(t, "a.", "SCRAM-SHA-512", "secret-canary-a")...)
	all = append(all, secureLines(t, "b.", "SCRAM-SHA-256", "${file:"+secrets+":password}")...)
	c.write(append(all, lines...)...)
	return c
}

// commit has a group stand at an offset of a topic.
func commit(t *testing.T, at *kafkatest.Cluster, group, topic string, offset int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: offset, LeaderEpoch: -1})
	if _, err := kadm.NewClient(at.NewClient(t)).CommitOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
}

// TestSecuredFileDoesTheWholeJob: an mm2.properties with TLS and logins on both
// sides, one of them by a config provider, is enough for the main job.
func TestSecuredFileDoesTheWholeJob(t *testing.T) {
	c := newSecureCase(t,
		"a->b.enabled = true", "a->b.topics = orders.*", "tasks.max = 4", "sync.group.offsets.enabled = true",
		"a.consumer.fetch.max.bytes = 1000000", "b.producer.compression.type = zstd")
	c.topic(c.a, "orders", 9)
	commit(t, c.a, "billing", "orders", 4)

	var summary replicateAnswer
	c.answer(&summary, 0, "replicate", "--once")
	if summary.Copied != 9 || !summary.Complete {
		t.Errorf("replicate: %+v", summary)
	}
	want, err := c.a.ReadTopic(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	differences, err := c.b.Compare(t.Context(), "orders", "a.orders", want)
	if err != nil || len(differences) > 0 {
		t.Errorf("the copy differs: %v %v", differences, err)
	}

	var report struct{ Verdict, Mode string }
	c.answer(&report, 0, "verify")
	if report.Verdict != "complete" || report.Mode != "full" {
		t.Errorf("verify: %+v", report)
	}
	var translated struct {
		Rows []struct {
			TargetTopic  string `json:"target_topic"`
			TargetOffset int64  `json:"target_offset"`
			Status       string
		}
	}
	c.answer(&translated, 0, "translate", "--group", "billing", "--execute")
	if r := translated.Rows; len(r) != 1 || r[0].TargetTopic != "a.orders" || r[0].TargetOffset != 4 || r[0].Status != "exact" {
		t.Errorf("translate: %+v", r)
	}
	offsets, err := kadm.NewClient(c.b.NewClient(t)).FetchOffsets(t.Context(), "billing")
	if at, ok := offsets.Lookup("a.orders", 0); err != nil || !ok || at.At != 4 {
		t.Errorf("on the target the group stands at %+v, %v", at, err)
	}
	csv := filepath.Join(c.dir, "offsets.csv")
	if err := os.WriteFile(csv, []byte("late,orders,0,7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.run(0, "translate", "--from-file", csv, "--execute")
	offsets, err = kadm.NewClient(c.b.NewClient(t)).FetchOffsets(t.Context(), "late")
	if at, ok := offsets.Lookup("a.orders", 0); err != nil || !ok || at.At != 7 {
		t.Errorf("on the target the group of the file stands at %+v, %v", at, err)
	}
	c.run(0, "status")
	c.run(0, "status", "-o", "json")
	c.run(0, "ledger", "check")
	c.run(0, "ledger", "export", "--book", "target")
	c.run(0, "replicate", "--dry-run", "-o", "json")
	mustCheck(t, filepath.Join(c.dir, "a-to-b.ledger"))
}

// TestCommandConfigs does the same for a flow without a file of its own.
func TestCommandConfigs(t *testing.T) {
	c := newSecureCase(t, "a->b.enabled = true")
	c.topic(c.a, "orders", 3)
	var flags []string
	for _, side := range []struct {
		name, mechanism, password string
		at                        *kafkatest.Cluster
	}{{"source", "SCRAM-SHA-512", "secret-canary-a", c.a}, {"target", "SCRAM-SHA-256", "secret-canary-b", c.b}} {
		path := filepath.Join(c.dir, side.name+".properties")
		lines := append(secureLines(t, "", side.mechanism, side.password), "bootstrap.servers = 127.0.0.1:1")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--"+side.name+"-command-config", path, "--"+side.name+"-bootstrap-server", side.at.Server(),
			"-X", side.name+".request.timeout.ms=20000")
	}
	ledger := []string{"--ledger", filepath.Join(c.dir, "f.ledger")}
	with := func(more ...string) []string { return append(append(more, ledger...), flags...) }
	c.file = ""
	var summary replicateAnswer
	c.answer(&summary, 0, with("replicate", "--once", "--topics", "orders", "--policy", "map", "-X", "apograph.policy.map=or(.*)=copy-of-or$1")...)
	if summary.Copied != 3 || c.records(c.b, "copy-of-orders") != 3 {
		t.Errorf("replicate: %+v", summary)
	}
	var report struct{ Verdict, Mode string }
	c.answer(&report, 0, with("verify")...)
	if report.Verdict != "complete" || report.Mode != "full" {
		t.Errorf("verify: %+v", report)
	}
	c.run(0, with("translate", "orders:0:1")...)
	mustCheck(t, ledger[1])
}

// TestWrongSecretsAreNotTold: whatever is wrong with a login or a store, the error
// says where it stands, and no secret.
func TestWrongSecretsAreNotTold(t *testing.T) {
	c := newSecureCase(t, "a->b.enabled = true")
	c.topic(c.a, "orders", 1)
	tests := []struct {
		name, set string
		code      int
		says      string
	}{
		{"a wrong password", `a.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="mm2" password="wrong-canary";`, 1, "cluster a"},
		{"a wrong password of a store", "a.ssl.truststore.password=wrong-canary", 2, "ssl.truststore.location"},
		{"no such store", "b.ssl.truststore.location=/no/such/store.jks", 2, "/no/such/store.jks"},
		{"a login that is none", "a.sasl.jaas.config=wrong-canary", 2, "sasl.jaas.config"},
		{"a login with a password that has no end", `a.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="mm2" password="wrong-canary`, 2, "sasl.jaas.config"},
		{"an unknown mechanism", "a.sasl.mechanism=GSSAPI", 2, "sasl.mechanism"},
		{"a protocol that is none", "b.security.protocol=SASLSSL", 2, "security.protocol"},
		{"a provider's key that is not there", "b.sasl.jaas.config=${file:/no/such/file:key}", 2, "b.sasl.jaas.config"},
		{"a protocol from where secrets are", "b.security.protocol=${file:SECRETS:password}", 2, "security.protocol"},
		{"a number from where secrets are", "b.producer.request.timeout.ms=${file:SECRETS:password}", 2, "request.timeout.ms"},
		{"an address from where secrets are", "b.bootstrap.servers=h:1,${file:SECRETS:password}", 2, "bootstrap.servers"},
		{"a start from where secrets are", "a->b.apograph.start=${file:SECRETS:password}", 2, "apograph.start"},
		{"an interval from where secrets are", "apograph.refresh.interval=${file:SECRETS:password}", 2, "apograph.refresh.interval"},
		{"no TLS", "a.security.protocol=SASL_PLAINTEXT", 1, "cluster a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr := c.with(t).run(tt.code, "replicate", "--once", "-X", strings.ReplaceAll(tt.set, "SECRETS", filepath.Join(c.dir, "secrets.properties")))
			if !strings.Contains(stderr, tt.says) {
				t.Errorf("standard error lacks %q:\n%s", tt.says, stderr)
			}
			if _, err := os.Stat(filepath.Join(c.dir, "a-to-b.ledger")); err == nil {
				t.Error("there is a ledger")
			}
		})
	}
}
