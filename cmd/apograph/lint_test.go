package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/internal/lint"
)

// TestLintConnect: a cluster that is gone is a finding, not a failure; one that
// answers is none.
func TestLintConnect(t *testing.T) {
	here := kafkatest.NewCluster(t, kafkatest.ClusterOptions{})
	if err := here.CreateTopic(t.Context(), "orders", 1, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mm2.properties")
	text := "clusters = a, b\na.bootstrap.servers = " + here.Server() + "\nb.bootstrap.servers = 127.0.0.1:1\na->b.enabled = true\ntopics = orders, payments\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := mustRun(t, "lint", path, "--connect", "-o", "json")
	var report struct{ Findings []lint.Finding }
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != int(exitFaults) || errs != "" {
		t.Fatalf("exit code %d, %v, stdout %q, stderr %q", code, err, out, errs)
	}
	var codes []string
	for _, f := range report.Findings {
		codes = append(codes, f.Code)
	}
	if got := strings.Join(codes, " "); got != "AP0701 AP0211 AP0703" {
		t.Errorf("found %s: %+v", got, report.Findings)
	}
}

// TestNoSecretShows: whatever is said of a configuration in whichever form, a
// password is not in it.
func TestNoSecretShows(t *testing.T) {
	const canary = "c4n4ry"
	t.Setenv("LINT_TEST_PASSWORD", canary)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.properties")
	path := filepath.Join(dir, "mm2.properties")
	text := strings.NewReplacer("CANARY", canary, "SECRET", secret).Replace(`clusters = a, b
config.providers = file, env
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
a.security.protocol = SASL_SSL
a.sasl.mechanism = SCRAM-SHA-512
a.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="CANARY";
a.ssl.truststore.password = ${file:SECRET:truststore}
a.ssl.keystore.key = CANARY
a.client.id = ${env:LINT_TEST_PASSWORD}
a.consumer.client.rack = ${env:LINT_TEST_PASSWORD}
b.security.protocol = SASL_PLAINTEXT
b.sasl.mechanism = OAUTHBEARER
b.sasl.oauthbearer.client.credentials.client.secret = CANARY
b.sasl.oauthbearer.token.endpoint.url = http://u:CANARY@127.0.0.1:1/token
b.producer.ssl.key.pasword = CANARY
apograph.schema.registry.url = http://u:CANARY@127.0.0.1:1
`)
	for name, content := range map[string]string{path: text, secret: "truststore=" + canary + "\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{
		{"lint", path}, {"lint", path, "-o", "json"}, {"lint", path, "--connect"}, {"lint", path, "--explain", "orders"},
		{"config", "show", "--config", path}, {"config", "show", "--config", path, "--origin"}, {"config", "show", "--config", path, "--origin", "-o", "json"},
	} {
		code, out, errs := mustRun(t, argv...)
		if strings.Contains(out+errs, canary) {
			t.Errorf("%v: exit code %d, shows a password:\n%s%s", argv, code, out, errs)
		}
		if out == "" {
			t.Errorf("%v: exit code %d, says nothing: %s", argv, code, errs)
		}
	}
}
