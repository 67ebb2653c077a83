package mm2_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

const twoClusters = "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\n"

const oneFlow = twoClusters + "A->B.enabled = true\n"

// parseText returns the configuration and the problems of one kind, or all if the
// kind is "".
func parseText(t *testing.T, text string) *mm2.Config {
	t.Helper()
	f, err := javaprops.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := mm2.ParseConfig(f, mm2.ConfigOptions{LookupEnv: noEnv})
	return c
}

func flowOf(t *testing.T, text string) mm2.FlowConfig {
	t.Helper()
	flows := parseText(t, text).Flows()
	if len(flows) != 1 {
		t.Fatalf("flows %v, want one", flows)
	}
	return flows[0]
}

func TestPrecedence(t *testing.T) {
	tests := []struct {
		name, lines, key string
		want, origin     string
	}{
		{"default", "", "replication.factor", "2", "default"},
		{"top level", "replication.factor=3\n", "replication.factor", "3", "f:5:1 (replication.factor)"},
		{"flow", "A->B.replication.factor=4\nreplication.factor=3\n", "replication.factor", "4", "f:5:1 (A->B.replication.factor)"},
		{"another flow", "B->A.replication.factor=4\n", "replication.factor", "2", "default"},
		{"last of two", "topics=a\ntopics=b\n", "topics", "b", "f:6:1 (topics)"},
		{"old name", "topics.blacklist=x\n", "topics.exclude", "x", "f:5:1 (topics.blacklist)"},
		{"old name of the flow", "A->B.groups.blacklist=x\n", "groups.exclude", "x", "f:5:1 (A->B.groups.blacklist)"},
		{"old and new name", "A->B.topics.blacklist=x\ntopics.exclude=y\n", "topics.exclude", "y", "f:6:1 (topics.exclude)"},
		{"MirrorMaker 1's name", "whitelist=x\n", "topics", "x", "f:5:1 (whitelist)"},
		{"dropped at the top level", "use.defaults.from=source\n", "use.defaults.from", "target", "default"},
		{"of the flow", "A->B.use.defaults.from=source\n", "use.defaults.from", "source", "f:5:1 (A->B.use.defaults.from)"},
		{"our own", "apograph.policy=identity\n", "apograph.policy", "identity", "f:5:1 (apograph.policy)"},
		{"our own of the flow", "apograph.policy=identity\nA->B.apograph.policy=default\n", "apograph.policy", "default", "f:6:1 (A->B.apograph.policy)"},
		{"alias", "", "target.cluster.alias", "B", "mirror maker"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := flowOf(t, oneFlow+tt.lines).Get(tt.key)
			if s.Value != tt.want || s.Origin.String() != tt.origin {
				t.Errorf("%s = %q from %v, want %q from %s", tt.key, s.Value, s.Origin, tt.want, tt.origin)
			}
			if old := s.Origin.Kind == mm2.FromOldName; old != (s.Origin.Key != "" && !strings.HasSuffix(s.Origin.Key, tt.key)) {
				t.Errorf("%v is of an old name: %v", s.Origin, old)
			}
		})
	}
}

func TestFlows(t *testing.T) {
	tests := []struct {
		name, lines string
		want        []string
	}{
		{"none", "", nil},
		{"both ways", "A->B.enabled=true\nB->A.enabled=TRUE\n", []string{"A->B", "B->A"}},
		{"chain", "A->B.enabled=true\nB->C.enabled=true\n", []string{"A->B", "B->C"}},
		{"blanks around true", "A->B.enabled=true \nemit.heartbeats.enabled=false\n", []string{"A->B"}},
		{"not true", "A->B.enabled=yes\n", nil},
		{"all at once", "enabled=true\nB->A.enabled=false\n", []string{"A->B", "A->C", "B->C", "C->A", "C->B"}},
		{"all at once without workers", "enabled=true\nemit.heartbeats.enabled=false\n", nil},
		{"to itself", "A->A.enabled=true\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range parseText(t, "clusters=A,B,C\n"+tt.lines).Flows() {
				got = append(got, f.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("flows %v, want %v", got, tt.want)
			}
		})
	}
}

func TestClientsOfAFlow(t *testing.T) {
	f := flowOf(t, oneFlow+`security.protocol=SSL
A.security.protocol=SASL_SSL
A.sasl.jaas.config=secret-of-a
A.consumer.sasl.jaas.config=secret-of-reader
A.request.timeout.ms=1
A.consumer.max.poll.records=2
A->B.consumer.fetch.min.bytes=3
A->B.source.consumer.fetch.max.bytes=4
A->B.consumer.max.poll.records=9
consumer.poll.timeout.ms=5
B.producer.linger.ms=6
A->B.producer.linger.ms=7
A->B.producer.override.batch.size=8
B.admin.ssl.truststore.location=/t
`)
	check := func(what string, got map[string]mm2.Setting, want map[string]string) {
		t.Helper()
		values := map[string]string{}
		for key, s := range got {
			values[key] = s.Value
			if s.Key != key {
				t.Errorf("%s: %s is under %s", what, s.Key, key)
			}
		}
		if fmt.Sprint(values) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, values, want)
		}
	}
	check("reader", f.SourceClient(), map[string]string{"bootstrap.servers": "a:9092", "security.protocol": "SASL_SSL", "sasl.jaas.config": "secret-of-reader",
		"max.poll.records": "2", "fetch.min.bytes": "3", "fetch.max.bytes": "4", "linger.ms": "7"})
	check("writer", f.TargetClient(), map[string]string{"bootstrap.servers": "b:9092", "security.protocol": "SSL", "linger.ms": "6", "batch.size": "8",
		"fetch.min.bytes": "3", "max.poll.records": "9", "ssl.truststore.location": "/t"})
	check("admin of the source", f.SourceProperties(mm2.Admin), map[string]string{"bootstrap.servers": "a:9092", "security.protocol": "SASL_SSL", "sasl.jaas.config": "secret-of-a"})
	check("admin of the target", f.TargetProperties(mm2.Admin), map[string]string{"bootstrap.servers": "b:9092", "security.protocol": "SSL", "ssl.truststore.location": "/t"})
	check("writer of syncs to the source", f.SyncProducerProperties(false), map[string]string{"bootstrap.servers": "a:9092", "security.protocol": "SASL_SSL", "sasl.jaas.config": "secret-of-a",
		"linger.ms": "7", "override.batch.size": "8"})
}

func TestValues(t *testing.T) {
	f := flowOf(t, oneFlow+`sync.topic.acls.enabled= FALSE
refresh.topics.interval.seconds = 5
sync.topic.configs.interval.seconds=-1
replication.factor= -1
topics = a , b,,a
admin.timeout.ms=1500
A->B.use.defaults.from= source
`)
	every := func(duty string) time.Duration {
		d, err := f.Every(duty)
		if err != nil {
			t.Error(err)
		}
		return d
	}
	if every("refresh.topics") != 5*time.Second || every("sync.topic.acls") != 0 || every("sync.topic.configs") != 0 || every("refresh.groups") != 10*time.Minute {
		t.Error("intervals are wrong")
	}
	if n, err := f.Int("replication.factor"); n != -1 || err != nil {
		t.Errorf("replication.factor = %d, %v", n, err)
	}
	if d, err := f.Millis("admin.timeout.ms"); d != 1500*time.Millisecond || err != nil {
		t.Errorf("admin.timeout.ms = %v, %v", d, err)
	}
	if got := f.List("topics"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("topics %q", got)
	}
	if f.Text("use.defaults.from") != "source" {
		t.Errorf("use.defaults.from %q", f.Text("use.defaults.from"))
	}
	elements := f.Get("topics").Elements()
	if got := fmt.Sprint(elements); got != "[{a 0 f:9:10} {b 4 f:9:14} { 6 f:9:16} {a 7 f:9:17}]" {
		t.Errorf("elements %s", got)
	}
}

func TestPolicyAndTopicsOfAFlow(t *testing.T) {
	f := flowOf(t, oneFlow+"replication.policy.separator=_\ntopics=orders.*\n")
	rules, err := f.Topics()
	if err != nil || rules.Remote("orders") != "A_orders" {
		t.Errorf("rules %+v, %v", rules, err)
	}
	if _, ok := rules.Match("heartbeats"); !ok {
		t.Error("heartbeats are not copied")
	}
	for text, place := range map[string]string{"topics=ok, \\\n  a(\n": "f:6:3: topics", "replication.policy.class=my.Policy\n": "f:5:26: replication.policy.class", "apograph.policy=odd\n": "f:5:17: apograph.policy"} {
		c := parseText(t, oneFlow+text)
		_, err := c.Flows()[0].Topics()
		var bad *mm2.ValueError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), place) {
			t.Errorf("%q: %v, want it at %s", text, err, place)
		}
		if p := first(c, mm2.BadValue); p.Level != mm2.LevelError || !strings.HasPrefix(p.String(), place) {
			t.Errorf("%q: problem %v", text, p)
		}
	}
}

func TestStart(t *testing.T) {
	tests := []struct {
		name, lines string
		want        string
	}{
		{"nothing said", "", "earliest default"},
		{"a reset", "A.consumer.auto.offset.reset=latest\n", "latest A.consumer.auto.offset.reset"},
		{"a reset of the flow", "A->B.consumer.auto.offset.reset=latest\n", "latest A->B.consumer.auto.offset.reset"},
		{"a reset that nobody gets", "consumer.auto.offset.reset=latest\n", "earliest default"},
		{"an age", "A.consumer.auto.offset.reset=by_duration:P1DT2H3M4.5S\n", "ago 26h3m4.5s A.consumer.auto.offset.reset"},
		{"ours over a reset", "A.consumer.auto.offset.reset=latest\napograph.start=group:g\n", "group g apograph.start"},
		{"the flow's over all", "apograph.start=latest\nA->B.apograph.start=2026-01-31T12:00:00Z\n", "time 2026-01-31 A->B.apograph.start"},
		{"the topic's over the flow's", "apograph.start.t=earliest\nA->B.apograph.start=latest\n", "earliest apograph.start.t"},
		{"the flow's topic over the topic", "apograph.start.t=earliest\nA->B.apograph.start.t=latest\n", "latest A->B.apograph.start.t"},
		{"another topic", "apograph.start.u=latest\n", "earliest default"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := flowOf(t, oneFlow+tt.lines).Start("t")
			if err != nil {
				t.Fatal(err)
			}
			words := []string{string(s.Kind)}
			switch s.Kind {
			case mm2.StartAgo:
				words = append(words, s.Ago.String())
			case mm2.StartGroup:
				words = append(words, s.Group)
			case mm2.StartTime:
				words = append(words, s.Time.Format(time.DateOnly))
			}
			from := s.From.Origin.Key
			if from == "" {
				from = string(s.From.Origin.Kind)
			}
			if got := strings.Join(append(words, from), " "); got != tt.want {
				t.Errorf("start %s, want %s", got, tt.want)
			}
		})
	}
	for _, bad := range []string{"apograph.start=yesterday", "apograph.start.t=group:", "A.consumer.auto.offset.reset=none", "A.consumer.auto.offset.reset=by_duration:PT", "A.consumer.auto.offset.reset=Latest"} {
		if p := first(parseText(t, oneFlow+bad+"\n"), mm2.BadValue); p.Level != mm2.LevelError || p.At.Line != 5 {
			t.Errorf("%s: %v, want an error in line 5", bad, p)
		}
	}
}

func first(c *mm2.Config, kind mm2.ProblemKind) mm2.Problem {
	for _, p := range c.Problems() {
		if p.Kind == kind {
			return p
		}
	}
	return mm2.Problem{}
}

// TestProblems: each kind with what causes it, and with what nearly does.
func TestProblems(t *testing.T) {
	const bare = "\x00" // in front of a file that does not begin with oneFlow
	tests := []struct {
		kind       mm2.ProblemKind
		level      mm2.Level
		line       string
		at         string
		suggestion string // a part of it
		near       string
	}{
		{mm2.NoClusters, mm2.LevelError, bare + "A.bootstrap.servers=a", "", "clusters=A, B", "topics=a"},
		{mm2.BadAlias, mm2.LevelError, bare + "clusters=A, B/C", "f:1:13", "", "topics=a"},
		{mm2.SharedLedger, mm2.LevelError, bare + "clusters=A,B-to-C,A-to-B,C\nbootstrap.servers=c:1\nA->B-to-C.enabled=true\nA-to-B->C.enabled=true", "f:4:1", "other aliases", "B->A.enabled=true"},
		{mm2.NoFlow, mm2.LevelError, bare + twoClusters + "A->B.topics=x", "f:1:1", "A->B.enabled=true", "topics=a"},
		{mm2.NoBootstrap, mm2.LevelError, bare + "clusters=A,B\nA->B.enabled=true\nA.bootstrap.servers=a:1", "f:1:1", "B.bootstrap.servers=", "bootstrap.servers=c:1"},
		{mm2.UnknownKey, mm2.LevelWarning, "offset.max.lag=1", "f:5:1", "write offset.lag.max", "offset.lag.max=1"},
		{mm2.UnknownKey, mm2.LevelWarning, "sync.group.offset.enabled=true", "f:5:1", "write sync.group.offsets.enabled", "sync.group.offsets.enabled=true"},
		{mm2.UnknownKey, mm2.LevelWarning, "A->B.emit.checkpoint.interval.seconds=5", "f:5:1", "write A->B.emit.checkpoints.interval.seconds", "A->B.emit.checkpoints.interval.seconds=5"},
		{mm2.UnknownKey, mm2.LevelWarning, "A.bootstrap.server=x", "f:5:1", "write A.bootstrap.servers", "A.ssl.protocol=x"},
		{mm2.UnknownKey, mm2.LevelWarning, "A.max.poll.records=x", "f:5:1", "", "A.consumer.max.poll.records=1"},
		{mm2.UnknownAlias, mm2.LevelWarning, "C.bootstrap.servers=x", "f:5:1", "", "B.bootstrap.servers=x"},
		{mm2.UnknownAlias, mm2.LevelWarning, "A->BB.topics=x", "f:5:1", "write B", "A->B.topics=x"},
		{mm2.UnknownAlias, mm2.LevelWarning, "a->B.topics=x", "f:5:1", "write A", "A->B.topics=x"},
		{mm2.UnknownAlias, mm2.LevelWarning, "b.bootstrap.servers=x", "f:5:1", "write B.bootstrap.servers", "B.bootstrap.servers=x"},
		{mm2.OwnUnknownKey, mm2.LevelError, "apograph.polcy=map", "f:5:1", "write apograph.policy", "apograph.policy=identity"},
		{mm2.OwnUnknownKey, mm2.LevelError, "A->B.apograph.ledger.dir=x", "f:5:1", "write apograph.ledger.dir", "apograph.ledger.dir=x"},
		{mm2.OwnUnknownKey, mm2.LevelError, "A.apograph.start=latest", "f:5:1", "A->B.apograph.start", "A->B.apograph.start=latest"},
		{mm2.WrongLevel, mm2.LevelWarning, "use.defaults.from=source", "f:5:1", "write A->B.use.defaults.from", "A->B.use.defaults.from=source"},
		{mm2.WrongLevel, mm2.LevelWarning, "consumer.auto.offset.reset=latest", "f:5:1", "write A.consumer.auto.offset.reset", "A.consumer.auto.offset.reset=latest"},
		{mm2.WrongLevel, mm2.LevelWarning, "producer.linger.ms=1", "f:5:1", "write B.producer.linger.ms", "B.producer.linger.ms=1"},
		{mm2.WrongLevel, mm2.LevelWarning, "A->B.producer.linger.ms=1", "f:5:1", "A->B.producer.override.linger.ms", "A->B.producer.override.linger.ms=1"},
		{mm2.WrongLevel, mm2.LevelWarning, "A->B.security.protocol=SSL", "f:5:1", "A.security.protocol", "A.security.protocol=SSL"},
		{mm2.WrongLevel, mm2.LevelWarning, "A.topics=x", "f:5:1", "A->B.topics", "topics=x"},
		{mm2.WrongLevel, mm2.LevelWarning, "A.request.timeout.ms=1", "f:5:1", "A.consumer.request.timeout.ms", "A.consumer.request.timeout.ms=1"},
		{mm2.OldKey, mm2.LevelWarning, "topics.blacklist=x", "f:5:1", "write topics.exclude", "topics.exclude=x"},
		{mm2.OldKey, mm2.LevelWarning, "A->B.groups.blacklist=x", "f:5:1", "write A->B.groups.exclude", "A->B.groups.exclude=x"},
		{mm2.OldKeyShadowed, mm2.LevelWarning, "topics.blacklist=x\ntopics.exclude=y", "f:5:1", "", "topics.blacklist=x"},
		{mm2.FlowBlank, mm2.LevelWarning, "A -> B.topics=x", "f:5:1", "without blanks", "A->B.topics=x"},
		{mm2.FlowBlank, mm2.LevelWarning, `A\ ->\ B.topics=x`, "f:5:1", "write A->B.topics", "A->B.topics=x"},
		{mm2.FlowSelf, mm2.LevelWarning, "A->A.enabled=true", "f:5:1", "", "B->A.enabled=true"},
		{mm2.FlowNotEnabled, mm2.LevelWarning, "B->A.topics=x", "f:5:1", "B->A.enabled=true", "B->A.topics=x\nB->A.enabled=false"},
		{mm2.FlowEnabledBlank, mm2.LevelWarning, "B->A.enabled=true ", "f:5:14", "", "B->A.enabled=true"},
		{mm2.EnabledForAll, mm2.LevelWarning, "enabled=true", "f:5:1", "A->B.enabled=true", "enabled=false"},
		{mm2.BadValue, mm2.LevelWarning, "B->A.enabled=yes", "f:5:14", "write true or false", "B->A.enabled=False"},
		{mm2.BadValue, mm2.LevelError, "replication.factor=x", "f:5:20", "", "tasks.max=x"},
		{mm2.BadValue, mm2.LevelError, "checkpoints.topic.replication.factor=40000", "f:5:38", "", "checkpoints.topic.replication.factor=4"},
		{mm2.BadValue, mm2.LevelError, "refresh.topics.interval.seconds=0", "f:5:33", "", "refresh.topics.interval.seconds=1"},
		{mm2.BadValue, mm2.LevelError, "offset-syncs.topic.location=here", "f:5:29", "", "offset-syncs.topic.location=target"},
		{mm2.BadValue, mm2.LevelError, "apograph.refresh.interval=soon", "f:5:27", "", "apograph.refresh.interval=30s"},
		{mm2.BadValue, mm2.LevelError, "A->B.apograph.refresh.interval=-1s", "f:5:32", "", "apograph.refresh.interval=1"},
		{mm2.BadValue, mm2.LevelError, "apograph.policy=map\napograph.policy.map=a=b, (c)=$2", "f:6:26", "", "apograph.policy=map\napograph.policy.map=(c)=$1"},
		{mm2.BadValue, mm2.LevelError, "replication.policy.separator=. ", "f:5:31", "", "replication.policy.separator=__"},
		{mm2.BadValue, mm2.LevelError, "A->B.replication.policy.separator=::", "f:5:35", "", "apograph.policy=identity\nreplication.policy.separator=::"},
		{mm2.BadValue, mm2.LevelError, "topics=a,*", "f:5:10", "", "topics=a,.*"},
		{mm2.BadValue, mm2.LevelWarning, "B->A.enabled=false\nB->A.replication.factor=x", "f:6:25", "", "B->A.enabled=false\nB->A.tasks.max=x"},
		{mm2.BadValue, mm2.LevelWarning, "A->B.use.defaults.from=sauce", "f:5:24", "source or target", "A->B.use.defaults.from=target"},
		{mm2.EmptyElement, mm2.LevelWarning, "topics=a,,b", "f:5:10", "", "topics="},
		{mm2.DoubleElement, mm2.LevelWarning, "topics=a,b, a", "f:5:13", "", "topics=a,b, c"},
		{mm2.Conflict, mm2.LevelError, "emit.offset-syncs.enabled=false\noffset-syncs.topic.location=target", "f:6:1", "", "offset-syncs.topic.location=target"},
		{mm2.RefusedKey, mm2.LevelError, "transforms=t", "f:5:12", "take it out", "transforms="},
		{mm2.RefusedKey, mm2.LevelError, "A->B.predicates=t", "f:5:17", "take it out", "B->A.predicates=t"},
		{mm2.RefusedKey, mm2.LevelError, "value.converter=org.apache.kafka.connect.json.JsonConverter", "f:5:17", "", "value.converter=org.apache.kafka.connect.converters.ByteArrayConverter"},
		{mm2.RefusedKey, mm2.LevelError, "topic.filter.class=my.Filter", "f:5:20", "", "topic.filter.class=org.apache.kafka.connect.mirror.DefaultTopicFilter"},
		{mm2.RefusedKey, mm2.LevelError, "forwarding.admin.class=my.Admin", "f:5:24", "", "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy"},
		{mm2.RefusedKey, mm2.LevelError, "A.consumer.interceptor.classes=my.X", "f:5:32", "", "A.consumer.interceptor.classes="},
		{mm2.RefusedKey, mm2.LevelError, "B.consumer.interceptor.classes=my.X", "f:5:32", "", "B.consumer.interceptor.classes="},
		{mm2.SecurityOfClient, mm2.LevelError, "A.security.protocol=SSL\nA.admin.security.protocol=SASL_SSL", "f:6:1", "ALIAS.security.protocol", "A.security.protocol=SSL\nA.admin.security.protocol=SSL"},
		{mm2.SecurityOfClient, mm2.LevelError, "B.producer.sasl.mechanism=PLAIN\nB.consumer.sasl.mechanism=SCRAM-SHA-256", "f:6:1", "", "B.producer.sasl.mechanism=PLAIN\nA.consumer.sasl.mechanism=SCRAM-SHA-256"},
		{mm2.SecurityOfClient, mm2.LevelError, "A.security.protocol=SSL\nA->B.producer.security.protocol=SASL_SSL", "f:6:1", "", "B.security.protocol=SSL\nA->B.producer.security.protocol=SASL_SSL"},
		{mm2.SecurityOfClient, mm2.LevelError, "A.admin.bootstrap.servers=x:1", "f:5:1", "", "B->A.enabled=true\nA.consumer.sasl.jaas.config=x\nA.producer.sasl.jaas.config=y\nA.sasl.jaas.config=z"},
		{mm2.UnusedOfClient, mm2.LevelNotice, "A.consumer.request.timeout.ms=1\nA.admin.request.timeout.ms=2", "f:6:1", "", "A.consumer.request.timeout.ms=1\nB.admin.request.timeout.ms=2"},
		{mm2.UnusedOfClient, mm2.LevelNotice, "B.consumer.auto.offset.reset=latest", "f:5:1", "", "A.consumer.auto.offset.reset=latest"},
		{mm2.UnusedOfClient, mm2.LevelNotice, "A->B.source.cluster.foo=1", "f:5:1", "", "A->B.source.consumer.foo=1"},
		{mm2.IgnoredKey, mm2.LevelNotice, "tasks.max=4", "f:5:1", "", "topics=x"},
		{mm2.IgnoredKey, mm2.LevelNotice, "B.offset.storage.topic=4", "f:5:1", "", "topics=x"},
		{mm2.IgnoredKey, mm2.LevelNotice, "transforms.t.type=T", "f:5:1", "", "topics=x"},
		{mm2.BetterKey, mm2.LevelNotice, "offset.lag.max=4", "f:5:1", "", "topics=x"},
		{mm2.BetterKey, mm2.LevelNotice, "use.incremental.alter.configs=never", "f:5:1", "", "topics=x"},
		{mm2.IntervalTrap, mm2.LevelNotice, "sync.topic.acls.interval.seconds=-1", "f:5:34", "sync.topic.acls.enabled=false", "sync.topic.acls.interval.seconds=1"},
		{mm2.ProviderRefused, mm2.LevelError, "config.providers=v\nconfig.providers.v.class=my.Vault", "f:6:26", "", "config.providers=v"},
		{mm2.ProviderUnknown, mm2.LevelWarning, "topics=a,${env:X}", "f:5:10", "config.providers=", "topics=a,${env}"},
		{mm2.ProviderFailed, mm2.LevelError, "config.providers=env\nconfig.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\ntopics=${env:X}", "f:7:8", "", "topics=x"},
	}
	for _, tt := range tests {
		name, _, _ := strings.Cut(tt.line, "\n")
		t.Run(string(tt.kind)+" "+name, func(t *testing.T) {
			text := oneFlow + tt.line + "\n"
			if rest, ok := strings.CutPrefix(tt.line, bare); ok {
				text = rest + "\n"
			}
			c := parseText(t, text)
			p := first(c, tt.kind)
			if p.Level != tt.level || p.At.String() != tt.at || !strings.Contains(p.Suggestion, tt.suggestion) || p.Message == "" {
				t.Errorf("%+v; want %s at %s, suggesting %q; all: %v", p, tt.level, tt.at, tt.suggestion, c.Problems())
			}
			if p := first(parseText(t, oneFlow+tt.near+"\n"), tt.kind); p.Kind != "" {
				t.Errorf("%s has the problem as well: %v", tt.near, p)
			}
		})
	}
}

// TestDocumentedFileHasNoProblem: the keys that Kafka's own example has.
func TestFilesWithoutProblems(t *testing.T) {
	for _, text := range []string{oneFlow, oneFlow + `
B->A.enabled = false
topics = foo.*, bar
groups = .*
replication.factor=1
sync.topic.acls.enabled = false
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
A.security.protocol=SASL_SSL
A.consumer.max.poll.records=100
apograph.start.orders=latest
`} {
		f, err := javaprops.Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c, err := mm2.ParseConfig(f, mm2.ConfigOptions{LookupEnv: noEnv})
		if err != nil || len(c.Problems()) > 0 {
			t.Errorf("%q: %v, %v", text, err, c.Problems())
		}
	}
}

func TestConfigErrorHasErrorsAlone(t *testing.T) {
	f, err := javaprops.Parse("f", []byte(oneFlow+"tasks.max=4\ntransforms=t\n"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := mm2.ParseConfig(f, mm2.ConfigOptions{})
	var bad *mm2.ConfigError
	if !errors.As(err, &bad) || len(bad.Problems) != 1 || bad.Problems[0].Kind != mm2.RefusedKey || c == nil {
		t.Errorf("ParseConfig: %v", err)
	}
}

// TestSecretsAreNotShown puts canaries into secrets of all kinds, and prints all
// that there is to print.
func TestSecretsAreNotShown(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.properties"), []byte("pw=canary1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := javaprops.Parse("f", []byte(oneFlow+`config.providers=env, file
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
A.sasl.jaas.config=x required password="canary2";
A.ssl.keystore.password=canary3
A.ssl.keystore.key=canary4
A.sasl.oauthbearer.client.credentials.client.secret=canary5
B.ssl.truststore.location=${file:`+dir+`/s.properties:pw}
topics.exclude=${env:TOPICS}
A.ssl.key.password=a${canary6:x}
B.sasl.password=canary7
canary8xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
`))
	if err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return "canary9(", name == "TOPICS" }
	c, err := mm2.ParseConfig(f, mm2.ConfigOptions{LookupEnv: env})
	flow := c.Flows()[0]
	if s := flow.TargetClient()["ssl.truststore.location"]; s.Value != "canary1" || !s.Secret {
		t.Errorf("a provider's value is %q, secret: %v", s.Value, s.Secret)
	}
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, nil))
	for _, v := range []any{c, flow, flow.Settings(), flow.SourceClient(), flow.TargetClient(), c.Entries(), c.Problems(), err, c.Connector("A", "B", "X"), c.Worker("A", "B"), flow.Get("topics.exclude")} {
		fmt.Fprintf(&out, "%v %+v %#v %s\n", v, v, v, v)
		log.Info("x", "v", v)
		data, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		out.Write(data)
	}
	_, err = flow.Patterns("topics.exclude")
	fmt.Fprint(&out, err)
	if i := strings.Index(out.String(), "canary"); i >= 0 {
		t.Errorf("shown: ...%s", out.String()[max(0, i-200):min(len(out.String()), i+20)])
	}
}

func TestNearestName(t *testing.T) {
	names := []string{"offset.lag.max", "topics", "topics.exclude", "sync.group.offsets.enabled", "groups"}
	for name, want := range map[string]string{"offset.max.lag": "offset.lag.max", "topic": "topics", "tpoics": "topics", "tpoisc": "topics", "topics.exlude": "topics.exclude", "sync.group.offset.enabled": "sync.group.offsets.enabled", "zzz.unlike.anything": ""} {
		if got := mm2.Nearest(name, names); got != want {
			t.Errorf("Nearest(%s) = %q, want %q", name, got, want)
		}
	}
}

func BenchmarkParseConfig(b *testing.B) {
	var text strings.Builder
	text.WriteString("clusters=A,B,C,D\n")
	for i := range 75 {
		fmt.Fprintf(&text, "# group %d\nA->B.topics.x%d = orders-%d, payments\\\\..*\nA.consumer.x%d=1\nB.producer.ssl.x%d=host%d.example.com:9092\n", i, i, i, i, i, i)
	}
	for _, flow := range []string{"A->B", "B->A", "A->C", "C->D"} {
		text.WriteString(flow + ".enabled=true\n")
	}
	data := []byte(text.String())
	for b.Loop() {
		f, err := javaprops.Parse("f", data)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = mm2.ParseConfig(f, mm2.ConfigOptions{LookupEnv: noEnv})
	}
}
