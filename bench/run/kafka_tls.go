//go:build kafka

package main

import (
	"maps"
	"net"
	"slices"
	"strconv"

	"apograph/internal/kafkatest"
)

// makeKeys makes the files of both clusters' certificate.
func (s *stand) makeKeys() error {
	s.ca, s.keys = s.path("ca.pem"), s.path("keys.pem")
	return writeKeys(s.ca, s.keys)
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
