package connect

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Passwords of testdata/stores/make.sh.
const (
	storePassword = "store-canary"
	keyPassword   = "key-canary"
)

func stored(name string) string { return filepath.Join("testdata", "stores", name) }

// certificate reads the first certificate of a PEM file with Go's own reader.
func certificate(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(stored(name))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFixturesDoNotExpire: tests with an end date fail one day for nobody's fault.
func TestFixturesDoNotExpire(t *testing.T) {
	for _, name := range []string{"ca.pem", "server.pem", "common-name.pem", "client.pem"} {
		if c := certificate(t, name); c.NotAfter.Before(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)) || c.NotBefore.Year() > 2020 {
			t.Errorf("%s is valid from %s to %s", name, c.NotBefore, c.NotAfter)
		}
	}
}

// TestKeyStores reads one key from stores of every kind that keytool and OpenSSL
// make. That the key belongs to the certificate is seen by signing with it.
func TestKeyStores(t *testing.T) {
	tests := []struct {
		file, password, keyPassword string
		chain                       int
		fault                       string // a part of the error
	}{
		{"key.p12", storePassword, "", 2, ""},
		{"key-legacy.p12", storePassword, "", 2, ""},
		{"key-pkcs12.jks", storePassword, "", 2, ""},
		{"key.jks", storePassword, keyPassword, 2, ""},
		{"key-same.jks", storePassword, "", 2, ""},
		{"mixed.jks", storePassword, keyPassword, 2, ""},
		{"mixed.p12", storePassword, "", 2, ""},
		{"key-plain.pem", "", "", 2, ""},
		{"key-plain.pem", "", keyPassword, 2, ""}, // a password too many
		{"key-pkcs1.pem", "", "", 1, ""},
		{"key-pbes1-3des.pem", "", keyPassword, 2, ""},
		{"key-pbes1-2des.pem", "", keyPassword, 2, ""},
		{"key-pbes1-md5.pem", "", keyPassword, 2, ""},
		{"key-pbes1-sha1.pem", "", keyPassword, 2, ""},
		{"key-pbes2-3des.pem", "", keyPassword, 2, ""},
		{"key-pbes2-aes128-sha1.pem", "", keyPassword, 2, ""},
		{"key-pbes2-aes192-sha512.pem", "", keyPassword, 2, ""},
		{"key-pbes2-aes256.pem", "", keyPassword, 2, ""},

		{"key.p12", "wrong", "", 0, "password is wrong"},
		{"key.p12", "", "", 0, "its password is not set"},
		{"key.jks", "wrong", keyPassword, 0, "password is wrong"},
		{"key.jks", storePassword, "", 0, "ssl.key.password"},
		{"key.jks", storePassword, "wrong", 0, "ssl.key.password"},
		{"trust.jks", storePassword, "", 0, "no private key"},
		{"trust.p12", storePassword, "", 0, "private key missing"},
		{"key.jceks", storePassword, "", 0, "JCEKS"},
		{"key-pbes2-aes256.pem", "", "", 0, "ssl.key.password is not set"},
		{"key-pbes2-aes256.pem", "", "wrong", 0, "password is wrong"},
		{"key-pbes1-3des.pem", "", "wrong", 0, "password is wrong"},
		{"key-pbes1-rc2.pem", "", keyPassword, 0, "1.2.840.113549.1.12.1.5"},
		{"key-scrypt.pem", "", keyPassword, 0, "1.3.6.1.4.1.11591.4.11"},
		{"key-old.pem", "", keyPassword, 0, "openssl pkcs8 -topk8"},
		{"ca.pem", "", "", 0, "holds 0 PEM entries named PRIVATE KEY"},
		{"missing.jks", storePassword, "", 0, "no such file"},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			s := store{key: "ssl.keystore.location", where: "a.properties:7", path: stored(test.file), password: hide(test.password), keyPassword: hide(test.keyPassword)}
			pairs, err := s.keyPairs()
			if test.fault != "" {
				checkStoreFault(t, err, test.fault, test.file)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(pairs) != 1 || !bytes.Equal(pairs[0].Certificate[0], certificate(t, "client.pem").Raw) || len(pairs[0].Certificate) != test.chain {
				t.Fatalf("%d pairs, the first with %d certificates", len(pairs), len(pairs[0].Certificate))
			}
			shakeHands(t, pairs[0])
		})
	}
}

func checkStoreFault(t *testing.T, err error, fault, file string) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{fault, "ssl.keystore.location (a.properties:7)", file} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	for _, canary := range []string{storePassword, keyPassword} {
		if strings.Contains(err.Error(), canary) {
			t.Errorf("a password is in: %v", err)
		}
	}
}

// shakeHands proves the possession of a key to a server.
func shakeHands(t *testing.T, pair tls.Certificate) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, "ca.pem"))
	near, far := pipe(t)
	server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{serverPair(t, "server")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots})
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	client := tls.Client(near, &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "localhost"})
	if err := client.Handshake(); err != nil {
		t.Errorf("client: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("server: %v", err)
	}
}

func serverPair(t *testing.T, name string) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(stored(name+".pem"), stored(name+"-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestChainOfAKeyIsNotTrusted: of a store with a key Java trusts what belongs to the
// key, not who signed it.
func TestChainOfAKeyIsNotTrusted(t *testing.T) {
	for _, name := range []string{"key.p12", "key-pkcs12.jks", "key.jks", "key-same.jks"} {
		s := store{key: "ssl.truststore.location", path: stored(name), password: hide(storePassword)}
		trusted, err := s.trusted()
		if err != nil || len(trusted) != 1 || trusted[0].Equal(certificate(t, "ca.pem")) {
			t.Errorf("%s: %v, %d certificates", name, err, len(trusted))
		}
	}
}

// TestTrustStores reads the authority from stores of every kind.
func TestTrustStores(t *testing.T) {
	tests := []struct {
		file, password string
		certificates   int // the authority, and in mixed stores what is trusted besides
		fault          string
	}{
		{"trust.jks", storePassword, 1, ""},
		{"trust.jks", "", 1, ""}, // Java does not check it then
		{"trust.p12", storePassword, 1, ""},
		{"trust-pkcs12.jks", storePassword, 1, ""},
		{"trust-open.p12", "", 1, ""},
		{"ca.pem", "", 1, ""},
		{"client-chain.pem", "", 2, ""},
		{"mixed.jks", storePassword, 2, ""},
		{"mixed.p12", storePassword, 2, ""},

		{"trust.jks", "wrong", 0, "password is wrong"},
		{"trust.p12", "wrong", 0, "password is wrong"},
		{"trust.p12", "", 0, "its password is not set"},
		{"trust-openssl.p12", storePassword, 0, "keytool -importcert"},
		{"key.jceks", storePassword, 0, "JCEKS"},
		{"server-key.pem", "", 0, "no PEM entry named CERTIFICATE"},
		{"missing.p12", "", 0, "no such file"},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			s := store{key: "ssl.truststore.location", path: stored(test.file), password: hide(test.password)}
			trusted, err := s.trusted()
			if test.fault != "" {
				if err == nil || !strings.Contains(err.Error(), test.fault) || strings.Contains(err.Error(), storePassword) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ca, found := certificate(t, "ca.pem"), false
			for _, c := range trusted {
				found = found || c.Equal(ca)
			}
			if !found || len(trusted) != test.certificates {
				t.Errorf("%d certificates, the authority among them: %v", len(trusted), found)
			}
		})
	}
}

// TestKeyFindsItsCertificate: whatever stands first.
func TestKeyFindsItsCertificate(t *testing.T) {
	var text string
	for _, name := range []string{"ca.pem", "key-plain.pem"} {
		data, err := os.ReadFile(stored(name))
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	pairs, err := pemPair(text, text, nil)
	if err != nil || !bytes.Equal(pairs[0].Certificate[0], certificate(t, "client.pem").Raw) || len(pairs[0].Certificate) != 2 {
		t.Fatalf("%v", err)
	}
	shakeHands(t, pairs[0])
	ca, err := os.ReadFile(stored("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pemPair(text, string(ca), nil); err == nil || !strings.Contains(err.Error(), "none of the certificates belongs") {
		t.Errorf("got %v", err)
	}
}

// TestPEMInOneLine: a value of a properties file that goes on over several lines
// has no line breaks left.
func TestPEMInOneLine(t *testing.T) {
	data, err := os.ReadFile(stored("client-chain.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		strings.ReplaceAll(string(data), "\n", " "),
		strings.ReplaceAll(string(data), "\n", ""),
		strings.ReplaceAll(string(data), "\n", "\r\n"),
		"Bag Attributes\n  friendlyName: a\nsubject=CN = x\n" + string(data),
		strings.TrimSpace(string(data)),
	} {
		found, err := pemCertificates(text)
		if err != nil || len(found) != 2 || !found[0].Equal(certificate(t, "client.pem")) {
			t.Errorf("%d certificates, %v of %.80q", len(found), err, text)
		}
	}
}

// FuzzStores: no file makes the readers panic, take memory without bound, or show
// a password.
func FuzzStores(f *testing.F) {
	paths, err := filepath.Glob(stored("*.*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 4000 && filepath.Ext(path) != ".sh" {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(data, []byte{0x30}) && len(data) > 100 {
			data = data[:100] // PKCS12 is another's, whose iterations are not bounded
		}
		path := filepath.Join(t.TempDir(), "store")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := store{key: "ssl.keystore.location", path: path, password: hide(storePassword), keyPassword: hide(keyPassword)}
		_, err1 := s.keyPairs()
		_, err2 := s.trusted()
		_, err3 := decryptKey(bytes.Clone(data), keyPassword)
		for _, err := range []error{err1, err2, err3} {
			if err != nil && (strings.Contains(err.Error(), storePassword) || strings.Contains(err.Error(), keyPassword)) {
				t.Error(err)
			}
		}
	})
}
