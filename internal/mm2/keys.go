package mm2

import (
	"slices"
	"strings"

	"apograph/internal/spelling"
)

// Connectors says which of MirrorMaker 2's parts define a key.
type Connectors uint8

// The parts of MirrorMaker 2.
const (
	SourceConnector     Connectors = 1 << iota // MirrorSourceConnector
	CheckpointConnector                        // MirrorCheckpointConnector
	HeartbeatConnector                         // MirrorHeartbeatConnector
	Driver                                     // connect-mirror-maker itself
	Worker                                     // the Connect worker that it starts for a target
	Ours                                       // apograph; MirrorMaker 2 does not know the key
	// Filter: a class that a connector configures with its own settings. The
	// connector's definition does not have the key, so MirrorMaker 2 drops it at
	// the top level.
	Filter
	// Framework: Connect's, beside what the connector defines; dropped at the
	// top level as well.
	Framework

	// AllConnectors are the three that come with MirrorMaker 2.
	AllConnectors = SourceConnector | CheckpointConnector | HeartbeatConnector
)

// A KeyType says how ConfigDef parses a value.
type KeyType string

// The types of ConfigDef.Type that occur.
const (
	BoolKey   KeyType = "boolean"
	IntKey    KeyType = "int"
	ShortKey  KeyType = "short"
	LongKey   KeyType = "long"
	StringKey KeyType = "string"
	ListKey   KeyType = "list"
	ClassKey  KeyType = "class"

	// IntervalKey is apograph's own: a time, see [ParseInterval].
	IntervalKey KeyType = "interval"
)

// A Treatment says what apograph does about a key.
type Treatment string

const (
	Honoured Treatment = "honoured" // as MirrorMaker 2 does
	Better   Treatment = "better"   // its purpose is served, otherwise and better: Reason says how
	Ignored  Treatment = "ignored"  // there is nothing that it could mean here: Reason says why
	// Refused: a value other than the default is an error, as Reason says.
	Refused Treatment = "refused"
)

// A Key is a setting of a mm2.properties file without the prefix of a cluster or
// of a flow.
type Key struct {
	Name    string
	On      Connectors
	Type    KeyType
	Default string // in the text of a properties file; meaningful if HasDefault
	// HasDefault is false of what is required and of what has no default (null).
	HasDefault bool
	// Ours is what apograph does where a file is silent, if that is another thing
	// than the default: one clause. "" else.
	Ours      string
	Allowed   []string // if not empty: all values, or all elements of a list
	AnyCase   bool     // Allowed is compared without regard to case
	Min       int64    // of a number, if AtLeast
	AtLeast   bool
	Since     string // the first release that has it
	Until     string // the last one; "" while there is none
	Treatment Treatment
	Reason    string // one sentence without its full stop; "" for what is honoured
}

// Removed reports whether the newest release that the table knows, 4.3.1, has
// dropped the key.
func (k Key) Removed() bool { return k.Until != "" }

// ReachesFlows reports whether MirrorMaker 2 passes the key on from the top level
// of the file to its connectors: only what one of them defines, and all that
// begins like a replication policy's (MirrorMakerConfig.connectorBaseConfig).
func (k Key) ReachesFlows() bool {
	return !k.Removed() && k.On&AllConnectors != 0 || strings.HasPrefix(k.Name, "replication.policy") || k.On == Ours
}

// Keys returns the table, by name.
func Keys() []Key {
	keys := slices.Concat(filterKeys(), topicKeys(), groupKeys(), heartbeatKeys(), policyKeys(), connectKeys(), driverKeys(), workerKeys(), ourKeys(), oldKeys())
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return keys
}

// table is what parsing needs of Keys, made once for a file.
type table struct {
	list     []Key
	by       map[string]int
	security []string // SecurityKeys
	names    []string // those, and all others
	ours     []string // of names, apograph's own
}

func newTable() table {
	t := table{list: Keys(), by: map[string]int{}, security: SecurityKeys(), names: SecurityKeys()}
	for i, k := range t.list {
		t.by[k.Name] = i
		t.names = append(t.names, k.Name)
		if k.On&Ours != 0 {
			t.ours = append(t.ours, k.Name)
		}
	}
	return t
}

func (t table) key(name string) (Key, bool) {
	i, ok := t.by[name]
	if !ok {
		return Key{}, false
	}
	return t.list[i], true
}

// LookupKey returns the key of a name without prefixes.
func LookupKey(name string) (Key, bool) { return newTable().key(name) }

// A Renamed key is one of older releases, or of users' habit, with its name of
// today.
type Renamed struct{ Old, New string }

// RenamedKeys are the old names that are honoured: those of before KIP-629, which
// MirrorMaker 2 dropped in 4.0, and those of MirrorMaker 1, which 2 never knew.
func RenamedKeys() []Renamed {
	return []Renamed{
		{"topics.blacklist", "topics.exclude"},
		{"groups.blacklist", "groups.exclude"},
		{"config.properties.blacklist", "config.properties.exclude"},
		{"topics.whitelist", "topics"},
		{"groups.whitelist", "groups"},
		{"whitelist", "topics"},
		{"blacklist", "topics.exclude"},
	}
}

// SecurityKeys returns the names of Kafka's client settings that MirrorMaker 2
// copies from a cluster to each of its clients, and from the top level of the
// file to each cluster: bootstrap.servers, security.protocol, ssl.* and sasl.*
// (MirrorClientConfig.CLIENT_CONFIG_DEF of 4.3.1).
func SecurityKeys() []string { return strings.Fields(securityKeys) }

const securityKeys = `bootstrap.servers security.protocol
sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class
sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url
ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password
ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
ssl.truststore.location ssl.truststore.password ssl.truststore.type`

// Nearest returns the name of names that a misspelt one is most like; "" if none
// is like it.
func Nearest(name string, names []string) string {
	best, distance := "", max(2, len(name)/4)+1
	for _, n := range names {
		if spelling.AtLeast(name, n) >= distance {
			continue
		}
		if d := spelling.Distance([]byte(name), []byte(n)); d < distance {
			best, distance = n, d
		}
	}
	if best != "" {
		return best
	}
	for _, n := range names {
		if sameWords(name, n) {
			return n
		}
	}
	return ""
}

// nearestOurs returns the key of apograph's own that a misspelt one is most like, or
// is the beginning of; "" if there is none.
func (t table) nearestOurs(name string) string {
	rest := make([]string, len(t.ours))
	for i, key := range t.ours {
		if rest[i] = strings.TrimPrefix(key, ourPrefix); strings.HasPrefix(key, name+".") {
			return key
		}
	}
	near := Nearest(strings.TrimPrefix(name, ourPrefix), rest)
	if near == "" {
		return ""
	}
	return ourPrefix + near
}

// sameWords reports whether two names consist of the same words in another order,
// as offset.max.lag and offset.lag.max do.
func sameWords(a, b string) bool {
	split := func(s string) []string {
		words := strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '-' || r == '_' })
		slices.Sort(words)
		return words
	}
	return len(a) == len(b) && slices.Equal(split(a), split(b))
}
