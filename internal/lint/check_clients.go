package lint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"apograph/internal/connect"
	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// A clientSetting is a property of a client with its place in the file.
type clientSetting struct {
	mm2.Setting
	whole string // the key as it stands in the file
}

// A client is a cluster's one client, with its settings.
type client struct {
	alias  string
	byKey  map[string]clientSetting
	places string // of the settings
}

// clients returns the clients with which the flows that run read and write, or the one
// that the file is about.
func (c *checker) clients() []client {
	if c.kind == Client {
		return []client{{alias: "this file", byKey: c.clientSettings()}}
	}
	var all []client
	add := func(alias string, settings map[string]mm2.Setting) {
		one := client{alias: alias, byKey: placed(settings)}
		places := []string{alias}
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			places = append(places, settings[key].Origin.Key)
		}
		one.places = strings.Join(places, " ")
		if !slices.ContainsFunc(all, func(other client) bool { return other.places == one.places }) {
			all = append(all, one)
		}
	}
	for _, f := range c.running {
		add(f.Source, f.SourceClient())
		add(f.Target, f.TargetClient())
	}
	return all
}

// connections reports what each cluster's clients make of their settings.
func (c *checker) connections() {
	for _, one := range c.clients() {
		c.clientOf(one)
	}
}

// CheckStores adds to the findings what keeps the key and trust stores that the file
// names from being used. It reads them, as a run does.
func (r *Report) CheckStores() {
	c := r.checker
	if c == nil {
		return
	}
	c.findings = r.Findings
	for _, one := range c.clients() {
		cluster, _, err := connect.FromProperties(one.alias, connectSettings(one.byKey))
		if err != nil {
			continue // told
		}
		for _, err := range cluster.StoreErrors() {
			var bad *connect.StoreError
			if !errors.As(err, &bad) {
				continue
			}
			at, key := c.placeOf(one, bad.Key)
			c.unusable(at, key, bad)
		}
	}
	r.Findings = sorted(c.findings)
}

// unusable reports a store that cannot be used. Why that is says nothing of a
// setting's value; the name of a file that a config provider gave does.
func (c *checker) unusable(at javaprops.Position, key string, bad *connect.StoreError) {
	file := ""
	switch {
	case bad.Path == "":
	case c.hidden.from(bad.Path) != bad.Path:
		file = ", the file whose name a config provider gave"
	default:
		file = ", file " + bad.Path
	}
	f := Finding{Code: "AP0601", Line: at.Line, Column: at.Column, Message: fmt.Sprintf("%s cannot be used%s: %v", bad.Key, file, bad.Err)}
	if !c.singles[f] {
		c.singles[f] = true
		f.File, f.Key, f.Level = c.file.Name, key, c.levels[f.Code]
		c.findings = append(c.findings, c.hidden.cut(f))
	}
}

// placeOf returns where a property of a client stands, and its whole key.
func (c *checker) placeOf(one client, key string) (javaprops.Position, string) {
	s, ok := one.byKey[key]
	if !ok {
		return c.place(one.alias + ".bootstrap.servers"), key
	}
	return s.Origin.At, s.whole
}

func placed(settings map[string]mm2.Setting) map[string]clientSetting {
	byKey := map[string]clientSetting{}
	for key, s := range settings {
		byKey[key] = clientSetting{s, s.Origin.Key}
	}
	return byKey
}

func (c *checker) clientSettings() map[string]clientSetting {
	byKey := map[string]clientSetting{}
	for _, s := range c.config.Entries() {
		byKey[s.Key] = clientSetting{s, s.Key}
	}
	return byKey
}

// clientOf reports what a cluster's client makes of its settings.
func (c *checker) clientOf(one client) {
	_, notices, err := connect.FromProperties(one.alias, connectSettings(one.byKey))
	place := func(key string) (javaprops.Position, string) { return c.placeOf(one, key) }
	var bad *connect.ConfigError
	if errors.As(err, &bad) {
		for _, p := range bad.Problems {
			if p.Key == "bootstrap.servers" && p.Where == "" {
				continue // a flow without addresses has a code of its own; clients may be given theirs apart
			}
			at, key := place(p.Key)
			if c.told(key, "AP0222") {
				continue
			}
			c.single("AP0601", at, key, p.Key+" "+p.Text, p.Suggestion) // a colon behind a secret key would have the text hidden
		}
	}
	c.clientNotices(one.alias, notices, place)
	c.clientTraps(one.byKey)
}

// connectSettings returns settings as connect takes them, in a fixed order.
func connectSettings(byKey map[string]clientSetting) []connect.Setting {
	var settings []connect.Setting
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		s := byKey[key]
		settings = append(settings, connect.Setting{Key: key, Value: s.Value, Where: s.Origin.At.String()})
	}
	return settings
}

// single adds a finding unless it is there: settings of the top level reach
// several clusters.
func (c *checker) single(code string, at javaprops.Position, key, message, suggestion string) {
	if one := (Finding{Code: code, Line: at.Line, Column: at.Column, Message: message}); !c.singles[one] {
		c.singles[one] = true
		c.add(code, at, key, message, suggestion)
	}
}

// clientNotices reports what a client takes and does not need, all of it in one
// finding, and what no client knows.
func (c *checker) clientNotices(alias string, notices []connect.Notice, place func(string) (javaprops.Position, string)) {
	var names []string
	var first connect.Notice
	for _, n := range notices {
		at, key := place(n.Key)
		switch {
		case n.Kind == connect.Unchecked:
			// AP0605 tells of it
		case c.told(key, "AP02", "AP0304", "AP0306", "AP0601"):
			// it has no effect, or is refused
		case n.Kind == connect.Unknown:
			c.single("AP0603", at, key, "no client of Kafka knows this key", n.Suggestion)
		case n.Kind == connect.Idle:
			c.single("AP0606", at, key, n.Key+" "+n.Text, "security.protocol = SASL_SSL, SSL or SASL_PLAINTEXT")
		case n.Kind == connect.Otherwise && n.Level == connect.Warning:
			c.single("AP0607", at, key, n.Text, n.Suggestion)
		case n.Kind == connect.Otherwise:
			c.single("AP0608", at, key, n.Key+": "+n.Text, "")
		default:
			if names == nil {
				first = n
			}
			names = append(names, n.Key)
		}
	}
	if len(names) == 0 {
		return
	}
	at, key := place(first.Key)
	message := first.Key + " " + first.Text
	if len(names) > 1 {
		message = fmt.Sprintf("clients of %s have no use for %s", alias, strings.Join(names, ", "))
	}
	c.single("AP0602", at, key, message, "")
}

// clientTraps reports settings of a login or of TLS that do not do what they look
// like.
func (c *checker) clientTraps(byKey map[string]clientSetting) {
	value := func(key string) string { return strings.ToUpper(strings.TrimSpace(byKey[key].Value)) }
	protocol, mechanism := value("security.protocol"), value("sasl.mechanism")
	if s, ok := byKey["ssl.endpoint.identification.algorithm"]; ok && value("ssl.endpoint.identification.algorithm") == "" && strings.HasSuffix(protocol, "SSL") {
		c.single("AP0605", s.Origin.At, s.whole, "the host names of brokers are not checked", "")
	}
	if s := byKey["security.protocol"]; protocol == "SASL_PLAINTEXT" && (mechanism == "PLAIN" || mechanism == "OAUTHBEARER") {
		c.single("AP0604", s.Origin.At, s.whole, mechanism+" over SASL_PLAINTEXT sends the password or token to the broker unencrypted", "SASL_SSL, or SCRAM")
	}
}
