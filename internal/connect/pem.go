package connect

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// pemEntry finds an entry as Kafka's DefaultSslEngineFactory.PemParser does, that
// is in one line too, as a value in a properties file often is. The groups are the
// entry's name, its headers and its base64 text.
var pemEntry = regexp.MustCompile(`-+BEGIN\s*([^-]*?(?:CERTIFICATE|PRIVATE\s+KEY))\s*-+\s*((?:[^\r\n:]*:[^\r\n]*[\r\n]+)*)([a-zA-Z0-9/+=\s]*)-+END[^-]*-{1,5}`)

// pemBlocks returns the bytes of all certificates, or of all private keys with
// their names and headers.
func pemBlocks(text, kind string) (blocks []pemBlock, err error) {
	for _, found := range pemEntry.FindAllStringSubmatch(text, -1) {
		name := strings.Join(strings.Fields(found[1]), " ")
		if !strings.HasSuffix(name, kind) {
			continue
		}
		der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(found[3]), ""))
		if err != nil {
			return nil, fmt.Errorf("entry %d named %s is not base64", len(blocks)+1, kind)
		}
		blocks = append(blocks, pemBlock{name: name, headers: found[2], der: der})
	}
	return blocks, nil
}

type pemBlock struct {
	name, headers string
	der           []byte
}

func pemCertificates(text string) ([]*x509.Certificate, error) {
	blocks, err := pemBlocks(text, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		return nil, errors.New("holds no PEM entry named CERTIFICATE")
	}
	certificates := make([]*x509.Certificate, len(blocks))
	for i, b := range blocks {
		if certificates[i], err = x509.ParseCertificate(b.der); err != nil {
			return nil, fmt.Errorf("certificate %d: %w", i+1, err)
		}
	}
	return certificates, nil
}

// pemKey returns the one private key in text.
func pemKey(text string, password secret) (crypto.PrivateKey, error) {
	blocks, err := pemBlocks(text, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	if len(blocks) != 1 {
		return nil, fmt.Errorf("holds %d PEM entries named PRIVATE KEY; there is to be one", len(blocks))
	}
	b := blocks[0]
	switch {
	case strings.Contains(b.headers, "ENCRYPTED"):
		return nil, errors.New("the private key is encrypted in OpenSSL's old way, which Kafka cannot read either: openssl pkcs8 -topk8 makes the right form of it")
	case b.name == "ENCRYPTED PRIVATE KEY" && password.reveal() == "":
		return nil, errNoKeyPassword
	case b.name == "ENCRYPTED PRIVATE KEY":
		if b.der, err = decryptKey(b.der, password.reveal()); err != nil {
			return nil, err
		}
	}
	return parseKey(b.der)
}

var (
	errNoKeyPassword = errors.New("the private key is encrypted and ssl.key.password is not set")
	errWrongPassword = errors.New("the password is wrong, or the file is damaged")
)

// parseKey reads PKCS#8, and the two forms that OpenSSL wrote before.
func parseKey(der []byte) (crypto.PrivateKey, error) {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	return nil, errors.New("the private key is of no known form (RSA, EC and Ed25519 keys in PKCS#8 are)")
}

// keyPair puts a key together with its chain: the certificate with its public key
// first, then the issuer of each as far as they are there.
func keyPair(key crypto.PrivateKey, certificates []*x509.Certificate) (tls.Certificate, error) {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return tls.Certificate{}, errors.New("the private key cannot sign")
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return tls.Certificate{}, errors.New("the private key is of an unknown kind")
	}
	for _, leaf := range certificates {
		if public.Equal(leaf.PublicKey) {
			return tls.Certificate{Certificate: chainOf(leaf, certificates), PrivateKey: key, Leaf: leaf}, nil
		}
	}
	return tls.Certificate{}, errors.New("none of the certificates belongs to the private key")
}

func chainOf(leaf *x509.Certificate, certificates []*x509.Certificate) [][]byte {
	chain := [][]byte{leaf.Raw}
	for last := leaf; len(chain) <= len(certificates) && last.CheckSignatureFrom(last) != nil; {
		issuer := issuerOf(last, certificates)
		if issuer == nil {
			break
		}
		chain, last = append(chain, issuer.Raw), issuer
	}
	return chain
}

func issuerOf(c *x509.Certificate, certificates []*x509.Certificate) *x509.Certificate {
	for _, candidate := range certificates {
		if candidate != c && string(candidate.RawSubject) == string(c.RawIssuer) && c.CheckSignatureFrom(candidate) == nil {
			return candidate
		}
	}
	return nil
}
