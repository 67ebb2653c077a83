package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apograph/internal/lint"
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
