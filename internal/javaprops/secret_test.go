package javaprops_test

import (
	"testing"

	"apograph/internal/javaprops"
)

// TestSecret: which keys are hidden, with whatever prefix.
func TestSecret(t *testing.T) {
	for key, want := range map[string]bool{
		"sasl.jaas.config": true, "source.consumer.sasl.jaas.config": true, "a->b.ssl.key.password": true, "ssl.keystore.key": true,
		"ssl.keystore.certificate.chain": true, "a.ssl.truststore.certificates": true, "config.providers.vault.param.token": true, "my.Secret": true,
		"sasl.oauthbearer.token.endpoint.url": false, "target.sasl.oauthbearer.token.endpoint.url": false, "bootstrap.servers": false,
		"sasl.oauthbearer.client.credentials.client.id": false, "sasl.oauthbearer.client.credentials.client.secret": true, "ssl.keystore.location": false, "topics": false,
		"a.aws.access.key": true, "schema.registry.user.info": true, "x.credentials": true, "my.API.key": true, "notssl.truststore.certificates": false,
	} {
		if javaprops.Secret(key) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
}
