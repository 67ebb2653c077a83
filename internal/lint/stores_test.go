package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apograph/internal/lint"
	"apograph/internal/mm2"
)

// TestStores: what keeps a run from using a store stands at its key, without any
// secret.
func TestStores(t *testing.T) {
	const stores = "../connect/testdata/stores/"
	junk := filepath.Join(t.TempDir(), "junk.jks")
	if err := os.WriteFile(junk, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	const inline = "a.ssl.keystore.type = PEM\na.ssl.keystore.certificate.chain = -----BEGIN CERTIFICATE----- canary -----END CERTIFICATE-----\n" +
		"a.ssl.keystore.key = -----BEGIN PRIVATE KEY----- canary -----END PRIVATE KEY-----"
	tests := []struct {
		name, lines string
		line        int // 0: nothing is found
		says        string
	}{
		{"as it should be", "a.ssl.truststore.location = " + stores + "trust.p12\na.ssl.truststore.password = store-canary", 0, ""},
		{"missing", "b.ssl.truststore.location = /nowhere/canary.p12\nb.security.protocol = SSL", 6, "no such file"},
		{"wrong password", "a.ssl.truststore.location = " + stores + "trust.p12\na.ssl.truststore.password = canary", 6, "password is wrong"},
		{"junk", "a.ssl.truststore.location = " + junk, 6, "no PEM entry"},
		{"inline", inline, 8, "not base64"},
		{"nothing uses it", "b.ssl.truststore.location = /nowhere", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := lint.Check("mm2.properties", []byte(flowLines+"a.security.protocol = SSL\n"+tt.lines+"\n"), noEnvironment())
			before := len(of(r, "AP0601"))
			r.CheckStores()
			found := of(r, "AP0601")
			if before > 0 || len(found) != min(tt.line, 1) {
				t.Fatalf("found %v", r.Findings)
			}
			for _, f := range found {
				if f.Line != tt.line || !strings.Contains(f.Message, tt.says) || strings.Contains(strings.ReplaceAll(f.Message, "canary.p12", ""), "canary ") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// TestStoresOfProviders: where a config provider gave the name of a file or another
// value, a finding still says what is wrong, in a whole sentence.
func TestStoresOfProviders(t *testing.T) {
	const provider = "config.providers = env\nconfig.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
	env := map[string]string{"FILE": "../connect/testdata/stores/trust.p12", "GONE": "/nowhere/canary.p12", "MECHANISM": "PLAIN"}
	options := mm2.ConfigOptions{LookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
	for lines, want := range map[string]string{
		"a.ssl.truststore.location = ${env:GONE}":                                                                          "ssl.truststore.location cannot be used, the file whose name a config provider gave: no such file or directory",
		"a.ssl.truststore.location = ${env:FILE}\na.ssl.truststore.password = wrong-one":                                   "cannot be used, the file whose name a config provider gave: the password is wrong, or the file is damaged",
		"b.security.protocol = SASL_SSL\nb.sasl.mechanism = ${env:MECHANISM}\nb.sasl.jaas.config = a.b.NoModule required;": "a connection that cannot be made this way: what another key has from a config provider, which is not shown, does not go with this one",
		"b.security.protocol = ${env:MECHANISM}":                                                                           "a connection that cannot be made this way; what it is about came from a config provider, and is not shown",
	} {
		r := lint.Check("mm2.properties", []byte(flowLines+provider+"a.security.protocol = SSL\n"+lines+"\n"), options)
		r.CheckStores()
		found := of(r, "AP0601")
		if len(found) != 1 || !strings.HasSuffix(found[0].Message, want) {
			t.Errorf("%s:\nfound %v, want %q", lines, found, want)
		}
	}
}
