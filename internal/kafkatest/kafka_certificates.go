//go:build kafka

package kafkatest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// certificateLife is longer than any test, both ways.
const certificateLife = 24 * time.Hour

// make writes all files of a security.
func (s *Security) make(ctx context.Context) error {
	for _, tool := range []string{"openssl", "keytool"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("tests with certificates need %s, which is not installed", tool)
		}
	}
	if err := s.makeIssuer(); err != nil {
		return err
	}
	authority, key, err := newAuthority()
	if err != nil {
		return err
	}
	ca := certificatePEM(authority.Raw)
	broker, err := issue(authority, key, &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost", Organization: []string{"apograph"}}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err == nil {
		err = errors.Join(s.write("ca.pem", ca), s.write("broker.pem", append(broker, ca...)))
	}
	if err != nil {
		return err
	}
	for _, store := range []struct{ kind, file string }{{"JKS", "trust.jks"}, {"PKCS12", "trust.p12"}} {
		if err := run(ctx, nil, "keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", s.Path("ca.pem"),
			"-keystore", s.Path(store.file), "-storetype", store.kind, "-storepass", StorePassword); err != nil {
			return err
		}
	}
	for _, user := range s.users {
		own, err := issue(authority, key, &x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: []string{"apograph"}}})
		if err != nil {
			return err
		}
		if err := s.userStores(ctx, user, append(own, ca...)); err != nil {
			return err
		}
	}
	return nil
}

// userStores writes a user's key and certificates in all formats, and a token.
func (s *Security) userStores(ctx context.Context, user string, all []byte) error {
	p12, jks, encrypted := s.Path(user+".p12"), s.Path(user+".jks"), &bytes.Buffer{}
	if err := runTo(ctx, encrypted, bytes.NewReader(all), "openssl", "pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-passout", "pass:"+KeyPassword); err != nil {
		return err // Java 17 reads no newer encryption in PEM
	}
	if err := run(ctx, bytes.NewReader(all), "openssl", "pkcs12", "-export", "-name", user, "-passout", "pass:"+StorePassword, "-out", p12); err != nil {
		return err
	}
	if err := run(ctx, nil, "keytool", "-importkeystore", "-noprompt", "-srckeystore", p12, "-srcstoretype", "PKCS12", "-srcstorepass", StorePassword, "-srcalias", user,
		"-destkeystore", jks, "-deststoretype", "JKS", "-deststorepass", StorePassword, "-destkeypass", KeyPassword, "-destalias", user); err != nil {
		return err
	}
	_, certificates, _ := bytes.Cut(all, []byte("-----END PRIVATE KEY-----\n"))
	token, err := s.Token(user, time.Now().Add(time.Hour))
	return errors.Join(err, s.write(user+".pem", append(encrypted.Bytes(), certificates...)), s.write(user+".token", []byte(token)))
}

// makeIssuer makes the key that tokens are signed with, and the file that brokers
// check them by (RFC 7517).
func (s *Security) makeIssuer() (err error) {
	if s.issuer, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return err
	}
	encode := base64.RawURLEncoding.EncodeToString
	return s.write("jwks.json", fmt.Appendf(nil, `{"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":"apograph","n":%q,"e":%q}]}`,
		encode(s.issuer.N.Bytes()), encode(big.NewInt(int64(s.issuer.E)).Bytes())))
}

// Token returns a signed token that names a user, as a token endpoint would issue
// it (RFC 7519).
func (s *Security) Token(user string, end time.Time) (string, error) {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","kid":"apograph"}`)) + "." +
		encode(fmt.Appendf(nil, `{"sub":%q,"aud":%q,"iat":%d,"exp":%d}`, user, tokenAudience, time.Now().Unix(), end.Unix()))
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.issuer, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + encode(signature), nil
}

// tokenAudience is whom tokens are for.
const tokenAudience = "apograph-test"

func (s *Security) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(s.dir, name), data, 0o600)
}

func newAuthority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "apograph test authority"},
		NotBefore: time.Now().Add(-certificateLife), NotAfter: time.Now().Add(certificateLife),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	authority, err := x509.ParseCertificate(der)
	return authority, key, err
}

// issue returns a new key, in PKCS#8, and its certificate, both as PEM.
func issue(authority *x509.Certificate, signer *ecdsa.PrivateKey, template *x509.Certificate) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template.NotBefore, template.NotAfter = authority.NotBefore, authority.NotAfter
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), certificatePEM(der)...), nil
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func run(ctx context.Context, in *bytes.Reader, name string, args ...string) error {
	return runTo(ctx, new(bytes.Buffer), in, name, args...)
}

func runTo(ctx context.Context, out *bytes.Buffer, in *bytes.Reader, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	var failed bytes.Buffer
	command.Stdout, command.Stderr = out, &failed
	if in != nil {
		command.Stdin = in
	}
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, &failed)
	}
	return nil
}
