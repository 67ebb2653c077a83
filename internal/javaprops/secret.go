package javaprops

import "strings"

// secretWords are what names of keys that hold secrets have in common. Not only
// properties of clients are asked about: config providers and plugins have keys of
// their own.
var secretWords = []string{
	"password", "passphrase", "secret", "token", "credential", "jaas", "private.key", "keystore.key",
	"apikey", "api.key", "access.key", "basic.auth", "user.info",
}

// secretNames are properties of Kafka's clients that it declares as passwords
// (ConfigDef.Type.PASSWORD) although their names do not say so.
var secretNames = []string{"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}

// notSecret are keys with such a word whose value is none.
var notSecret = []string{
	"sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.credentials.client.id", "delegation.token.expiry.time.ms",
}

// Secret reports whether the value of a key must not be shown, whatever prefix the
// key has: what Kafka declares as a password, and all whose name says so.
func Secret(key string) bool {
	key = strings.ToLower(key)
	for _, name := range notSecret {
		if hasName(key, name) {
			return false
		}
	}
	for _, name := range secretNames {
		if hasName(key, name) {
			return true
		}
	}
	for _, word := range secretWords {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// hasName reports whether key is name, bare or behind a prefix.
func hasName(key, name string) bool {
	prefix, ok := strings.CutSuffix(key, name)
	return ok && (prefix == "" || strings.HasSuffix(prefix, "."))
}
