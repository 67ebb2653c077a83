package connect

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/javaprops"
	"apograph/internal/spelling"
)

// FromProperties makes a cluster of the client properties of a Java client:
// bootstrap.servers, security.protocol and all else that [Keys] lists. Of two
// settings of one key the later wins, as in a Java file. No file that the
// settings name is read and nothing is dialed; see [Cluster.Check].
//
// Notices tell what was accepted and changes nothing, and what Kafka's clients
// would only warn of. The error is a [*ConfigError] that lists all that is wrong.
func FromProperties(alias string, settings []Setting) (Cluster, []Notice, error) {
	p := &properties{values: make(map[string]Setting, len(settings))}
	for _, s := range settings {
		p.values[s.Key] = s
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		p.judge(p.values[name])
	}
	c := Cluster{Alias: alias, Bootstrap: p.bootstrap(), access: p.access()}
	if len(p.problems) > 0 {
		return Cluster{}, p.notices, &ConfigError{Alias: alias, Problems: p.problems}
	}
	return c, p.notices, nil
}

// properties are settings while they are read.
type properties struct {
	values   map[string]Setting // by key
	notices  []Notice
	problems []Problem
}

// judge says of one setting whether it is known, well formed, and obeyed.
func (p *properties) judge(s Setting) {
	key, ok := Lookup(s.Key)
	switch {
	case !ok && isElsewhere(s.Key):
	case !ok:
		p.unknown(s)
	case key.Treatment == Refused && strings.TrimSpace(s.Value) != "":
		p.problem(s.Key, "not supported: "+key.Reason)
	default:
		if err := key.Check(s.Value); err != nil && !javaprops.Secret(s.Key) {
			p.problem(s.Key, err.Error())
		} else if key.Treatment == Ignored && !isAsHere(s) {
			p.ignored(key)
		}
	}
}

func (p *properties) ignored(key Key) {
	if key.Name == "isolation.level" { // its author wants records of transactions that were aborted
		p.notice(Otherwise, key.Name, Warning, "is not obeyed: "+key.Reason)
		return
	}
	p.notice(Unneeded, key.Name, Info, "has no effect: "+key.Reason)
}

// isAsHere reports whether a setting that is ignored asks for what is done anyway.
func isAsHere(s Setting) bool {
	switch value := strings.TrimSpace(s.Value); s.Key {
	case "acks":
		return value == "all" || value == "-1"
	case "enable.idempotence", "check.crcs":
		return strings.EqualFold(value, "true")
	case "isolation.level":
		return value == "read_committed"
	}
	return false
}

// isElsewhere reports whether a key belongs to config providers (KIP-421), which
// have been asked when settings come here.
func isElsewhere(key string) bool { return strings.HasPrefix(key, "config.providers.") }

func (p *properties) unknown(s Setting) {
	text := "no client of Kafka knows this key"
	near := Nearest(s.Key)
	if near != "" {
		text += "; did you mean " + near + "?"
	}
	p.notices = append(p.notices, Notice{Key: s.Key, Where: s.Where, Kind: Unknown, Level: Warning, Suggestion: near, Text: text})
}

func (p *properties) notice(kind NoticeKind, key string, level Level, text string) {
	p.notices = append(p.notices, Notice{Key: key, Where: p.values[key].Where, Kind: kind, Level: level, Text: text})
}

func (p *properties) problem(key, text string) {
	p.problems = append(p.problems, Problem{Key: key, Where: p.values[key].Where, Text: text})
}

// noneOf reports a value that is none of those that there are, and suggests the
// one that is most like it.
func (p *properties) noneOf(key string, values ...string) {
	near, distance := "", 4
	for _, value := range values {
		if d := spelling.Distance([]byte(strings.ToUpper(p.text(key))), []byte(strings.ToUpper(value))); d < distance {
			near, distance = value, d
		}
	}
	p.problems = append(p.problems, Problem{Key: key, Where: p.values[key].Where, Text: "is none of " + strings.Join(values, ", "), Suggestion: near})
}

// text returns a value without the blanks around it, as ConfigDef.parseType
// reads strings; empty if the key is not set.
func (p *properties) text(key string) string { return strings.TrimSpace(p.values[key].Value) }

// secret returns the value of a secret key, and whether it is set. Blanks around
// it do not count, as for Kafka (ConfigDef.parseType).
func (p *properties) secret(key string) (secret, bool) {
	s, ok := p.values[key]
	return hide(strings.TrimSpace(s.Value)), ok
}

// set reports whether a key has a value that is not empty.
func (p *properties) set(key string) bool { return p.text(key) != "" }

func (p *properties) list(key string) []string {
	var list []string
	for item := range strings.SplitSeq(p.values[key].Value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// bootstrap reads host:port,...; a scheme before it is allowed, as Kafka's
// ClientUtils.parseAndValidateAddresses does.
func (p *properties) bootstrap() []string {
	var addresses []string
	for _, address := range p.list("bootstrap.servers") {
		if _, after, ok := strings.Cut(address, "://"); ok {
			address = after
		}
		if err := CheckAddress(address); err != nil {
			p.problem("bootstrap.servers", err.Error())
			continue
		}
		addresses = append(addresses, address)
	}
	if len(addresses) == 0 && !slices.ContainsFunc(p.problems, func(q Problem) bool { return q.Key == "bootstrap.servers" }) {
		p.problem("bootstrap.servers", "not set: it is to name host:port of at least one broker")
	}
	return addresses
}

// millis reads a duration; def if it is not set. Of what kgo does not take the
// nearest that it takes is used, and said.
func (p *properties) millis(key string, def, least, most time.Duration) time.Duration {
	if !p.set(key) {
		return def
	}
	n, err := strconv.ParseInt(p.text(key), 10, 64)
	if err != nil {
		return def // judge has reported it
	}
	asked := time.Duration(min(n, int64(most/time.Millisecond)+1)) * time.Millisecond
	used := min(max(asked, least), most)
	if used != asked && n >= 0 {
		p.notice(Otherwise, key, Info, fmt.Sprintf("%d ms is used: it may be %d to %d", used.Milliseconds(), least.Milliseconds(), most.Milliseconds()))
	}
	return used
}

// clientOptions returns what goes to every client besides security.
func (p *properties) clientOptions() []kgo.Opt {
	var options []kgo.Opt
	if p.set("client.id") {
		options = append(options, kgo.ClientID(p.text("client.id")))
	}
	if p.set("client.rack") {
		options = append(options, kgo.Rack(p.text("client.rack")))
	}
	if p.set("request.timeout.ms") {
		options = append(options, kgo.RequestTimeoutOverhead(p.millis("request.timeout.ms", 0, 100*time.Millisecond, 15*time.Minute)))
	}
	if p.set("connections.max.idle.ms") {
		options = append(options, kgo.ConnIdleTimeout(p.idle()))
	}
	if p.set("metadata.max.age.ms") {
		age := p.millis("metadata.max.age.ms", 0, 100*time.Millisecond, time.Hour)
		options = append(options, kgo.MetadataMaxAge(age), kgo.MetadataMinAge(min(age, 5*time.Second)))
	}
	if p.text("client.dns.lookup") == "resolve_canonical_bootstrap_servers_only" {
		p.notice(Otherwise, "client.dns.lookup", Warning, "names are dialed as they are written, with all their addresses tried: canonical names are only needed for Kerberos")
	}
	return options
}

// idle reads connections.max.idle.ms, of which a negative value means never.
func (p *properties) idle() time.Duration {
	const most = 15 * time.Minute
	if strings.HasPrefix(p.text("connections.max.idle.ms"), "-") {
		return most
	}
	return p.millis("connections.max.idle.ms", 0, 100*time.Millisecond, most)
}
