//go:build kafka

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"apograph/internal/kafkatest"
)

// makeKeys makes a certificate for 127.0.0.1, which is its own authority: for both
// clusters and the sink, and for all who trust them.
func (s *stand) makeKeys() error {
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
	s.ca, s.keys = s.path("ca.pem"), s.path("keys.pem")
	if err := os.WriteFile(s.ca, certificate, 0o600); err != nil {
		return err
	}
	return os.WriteFile(s.keys, slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), certificate), 0o600)
}

// tlsOnly holds everybody to one version and one cipher: the client libraries would
// choose different ones.
var tlsOnly = map[string]string{
	"ssl.enabled.protocols": "TLSv1.3", "ssl.protocol": "TLSv1.3", "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256",
}

// listenTLS gives a cluster a listener with TLS, and returns its address.
func (s *stand) listenTLS(o *kafkatest.KafkaOptions) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	o.Listeners = []kafkatest.KafkaListener{{Name: "TLS", Protocol: "SSL", Port: port}}
	o.Config = maps.Clone(o.Config)
	maps.Copy(o.Config, tlsOnly)
	o.Config["ssl.keystore.type"], o.Config["ssl.keystore.location"] = "PEM", s.keys
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}

// tlsSettings returns MirrorMaker's settings for a cluster with TLS.
func tlsSettings(alias, ca string) []string {
	settings := []string{
		alias + ".security.protocol=SSL",
		alias + ".ssl.truststore.type=PEM",
		alias + ".ssl.truststore.location=" + ca,
	}
	for _, name := range slices.Sorted(maps.Keys(tlsOnly)) {
		settings = append(settings, alias+"."+name+"="+tlsOnly[name])
	}
	return settings
}
