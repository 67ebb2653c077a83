//go:build kafka

package connect_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
)

// read reads a file of this test, in which a backslash is all that is escaped.
func read(t *testing.T, text string) []connect.Setting {
	t.Helper()
	var all []connect.Setting
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		all = append(all, connect.Setting{Key: key, Value: strings.ReplaceAll(value, `\\`, `\`), Where: fmt.Sprintf("client.properties:%d", len(all)+1)})
	}
	return all
}

func cluster(t *testing.T, alias, properties string) connect.Cluster {
	t.Helper()
	c, notices, err := connect.FromProperties(alias, read(t, properties))
	if err != nil || len(notices) > 0 {
		t.Fatalf("%v, %v", notices, err)
	}
	return c
}

// TestKafkaLogins: for each kind of login one file opens a cluster to us, and to
// Java's consumer, which reads what we have written.
func TestKafkaLogins(t *testing.T) {
	security := kafkatest.NewSecurity(t, "ua", "ub")
	o := kafkatest.KafkaOptions{Name: "secured", Config: map[string]string{"connections.max.reauth.ms": "2000"}}
	secured := security.Secure(&o)
	k := kafkatest.StartKafka(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := secured.Finish(ctx, k); err != nil {
		t.Fatal(err)
	}
	for _, l := range []kafkatest.Login{kafkatest.LoginPlain, kafkatest.LoginPEM} {
		if err := k.AllowAll(ctx, security.Principal(l, "ua")); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range kafkatest.Logins() {
		t.Run(string(l), func(t *testing.T) {
			topic := "t-" + strings.ToLower(string(l))
			if err := k.CreateTopic(ctx, topic, 1, nil); err != nil {
				t.Fatal(err)
			}
			path := secured.WriteProperties(l, "ua")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			carryOver(ctx, t, cluster(t, "target", string(text)), topic)
			server, _, _ := strings.Cut(strings.TrimPrefix(string(text), "bootstrap.servers="), "\n")
			var failed strings.Builder
			command := exec.CommandContext(ctx, "java", k.JavaCommand(security.JavaOptions(), kafkatest.ConsoleConsumer, "--bootstrap-server", server, "--command-config", path,
				"--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "1", "--timeout-ms", "60000")...)
			command.Stderr = &failed
			if out, err := command.Output(); err != nil || strings.TrimSpace(string(out)) != "hello" {
				t.Errorf("Java's consumer: %q, %v\n%s", out, err, &failed)
			}
		})
	}
	t.Run("refusals", func(t *testing.T) { refusals(t, secured) })
	t.Run("not allowed", func(t *testing.T) { notAllowed(ctx, t, secured) })
	t.Run("reauthentication", func(t *testing.T) {
		for _, l := range []kafkatest.Login{kafkatest.LoginScram512, kafkatest.LoginToken} {
			t.Run(string(l), func(t *testing.T) {
				t.Parallel()
				reauthentication(ctx, t, k, secured, l)
			})
		}
	})
}

// carryOver writes a record and fetches it.
func carryOver(ctx context.Context, t *testing.T, c connect.Cluster, topic string) {
	t.Helper()
	client, id, err := c.Open(ctx, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if id == "" {
		t.Error("no cluster id")
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("hello")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil || fetches.NumRecords() != 1 || string(fetches.Records()[0].Value) != "hello" {
		t.Errorf("%d records, %v", fetches.NumRecords(), err)
	}
}

// refusals: each way of not getting in is named with the cluster, the address and
// the likely cause, in time.
func refusals(t *testing.T, s *kafkatest.Secured) {
	at := func(l kafkatest.Listener) string { return "bootstrap.servers=" + s.Address(l) }
	trust := "\nssl.truststore.type=PEM\nssl.truststore.location=" + s.Path("ca.pem") + "\n"
	for name, test := range map[string]struct {
		text, address string
		parts         []string
	}{
		"plain client at a TLS port":    {at(kafkatest.ListenTLS) + "\n", s.Address(kafkatest.ListenTLS), []string{"speaks SSL there, and security.protocol is PLAINTEXT"}},
		"plain client at a mutual port": {at(kafkatest.ListenMutual) + "\n", s.Address(kafkatest.ListenMutual), []string{"speaks SSL there, and security.protocol is PLAINTEXT"}},
		"plain client at a login":       {at(kafkatest.ListenOpenLogin) + "\n", s.Address(kafkatest.ListenOpenLogin), []string{"speaks SASL_PLAINTEXT there, and security.protocol is PLAINTEXT"}},
		"TLS client at a plain port":    {at(kafkatest.ListenOpenLogin) + "\nsecurity.protocol=SSL" + trust, s.Address(kafkatest.ListenOpenLogin), []string{"speaks SASL_PLAINTEXT there, and security.protocol (client.properties:2) is SSL"}},
		"TLS client at a login":         {at(kafkatest.ListenLogin) + "\nsecurity.protocol=SSL" + trust, s.Address(kafkatest.ListenLogin), []string{"speaks SASL_SSL there, and security.protocol (client.properties:2) is SSL"}},
		"login where there is none": {s.Properties(kafkatest.LoginScram256, "ua", at(kafkatest.ListenTLS)), s.Address(kafkatest.ListenTLS),
			[]string{"speaks SSL there, and security.protocol (client.properties:2) is SASL_SSL"}},
		"no certificate":        {at(kafkatest.ListenMutual) + "\nsecurity.protocol=SSL" + trust, s.Address(kafkatest.ListenMutual), []string{"wants a certificate from us, and ssl.keystore.location is not set"}},
		"no certificate, 1.2":   {at(kafkatest.ListenMutual) + "\nsecurity.protocol=SSL\nssl.protocol=TLSv1.2" + trust, s.Address(kafkatest.ListenMutual), []string{"wants a certificate from us, and ssl.keystore.location is not set"}},
		"unknown authority":     {at(kafkatest.ListenTLS) + "\nsecurity.protocol=SSL\n", s.Address(kafkatest.ListenTLS), []string{"signed by no authority", "ssl.truststore.location is not set"}},
		"wrong password, PLAIN": {s.Properties(kafkatest.LoginPlain, "ua", wrong("plain.PlainLoginModule", "ua")), s.Address(kafkatest.ListenLogin), []string{"refuses the login: wrong user or password", "sasl.jaas.config (client.properties:7)"}},
		"wrong password, SCRAM": {s.Properties(kafkatest.LoginScram512, "ua", wrong("scram.ScramLoginModule", "ua")), s.Address(kafkatest.ListenLogin), []string{"refuses the login", "sasl.jaas.config (client.properties:7)"}},
		"unknown user, SCRAM":   {s.Properties(kafkatest.LoginScram256, "ua", wrong("scram.ScramLoginModule", "nobody")), s.Address(kafkatest.ListenLogin), []string{"refuses the login"}},
		"unknown mechanism": {s.Properties(kafkatest.LoginPlain, "ua", "sasl.mechanism=AWS_MSK_IAM", "sasl.jaas.config=a.IAMLoginModule required;"), s.Address(kafkatest.ListenLogin),
			[]string{"takes logins by", "SCRAM-SHA-512", "sasl.mechanism (client.properties:7) is AWS_MSK_IAM"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			client, _, err := cluster(t, "target", test.text).Open(t.Context())
			if err == nil {
				client.Close()
				t.Fatal("opened")
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			for _, part := range append(test.parts, "target", test.address) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("a secret is in: %v", err)
			}
		})
	}
}

func wrong(module, user string) string {
	return "sasl.jaas.config=org.apache.kafka.common.security." + module + ` required username="` + user + `" password="wrong-canary";`
}

// notAllowed: a user who may log in and do nothing else gets the broker's answer.
func notAllowed(ctx context.Context, t *testing.T, s *kafkatest.Secured) {
	client, _, err := cluster(t, "target", s.Properties(kafkatest.LoginScram256, "ub")).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	err = client.ProduceSync(ctx, &kgo.Record{Topic: "t-plain", Value: []byte("x")}).FirstErr()
	if !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("got %v", err)
	}
}

// logged keeps all that a client logs.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Level() kgo.LogLevel { return kgo.LogLevelDebug }

func (l *logged) Log(_ kgo.LogLevel, message string, pairs ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(&l.text, message, pairs)
}

// reauthentication: brokers end sessions of 2 seconds, and 30 seconds of records
// come through all the same (KIP-368). The client's log at its finest holds no
// secret.
func reauthentication(ctx context.Context, t *testing.T, k *kafkatest.Kafka, s *kafkatest.Secured, l kafkatest.Login) {
	topic := "re-" + strings.ToLower(string(l))
	if err := k.CreateTopic(ctx, topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	log := new(logged)
	client, _, err := cluster(t, "target", s.Properties(l, "ua")).Open(ctx, kgo.WithLogger(log),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	sent, got := 0, 0
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); sent++ {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: fmt.Append(nil, sent)}).FirstErr(); err != nil {
			t.Fatalf("record %d: %v", sent, err)
		}
		fetches := client.PollFetches(ctx)
		for _, r := range fetches.Records() {
			if string(r.Value) != fmt.Sprint(got) {
				t.Fatalf("record %q, not %d", r.Value, got)
			}
			got++
		}
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		<-ticker.C
	}
	if sent != got || sent < 50 {
		t.Errorf("%d records sent, %d fetched", sent, got)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	text := log.text.String()
	if n := strings.Count(text, "reauthenticat"); n < 10 {
		t.Errorf("reauthenticated %d times", n)
	}
	if strings.Contains(text, "canary") {
		t.Error("a secret is in the client's log")
	}
}
