package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// dialOptions returns how clients reach a cluster whose certificate, or whose
// authority's, is in a file; none of no file, which is without TLS.
func dialOptions(ca string) ([]kgo.Opt, error) {
	config, err := tlsConfig(ca)
	if config == nil || err != nil {
		return nil, err
	}
	return []kgo.Opt{kgo.DialTLSConfig(config)}, nil
}

func tlsConfig(ca string) (*tls.Config, error) {
	if ca == "" {
		return nil, nil
	}
	certificate, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	if !config.RootCAs.AppendCertsFromPEM(certificate) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	return config, nil
}

// writeKeys makes a certificate for 127.0.0.1, which is its own authority, and writes
// it into one file for those who trust it, and with its key into another for those
// who have it.
func writeKeys(ca, keys string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(7 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(ca, certificate, 0o600); err != nil {
		return err
	}
	return os.WriteFile(keys, slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), certificate), 0o600)
}
