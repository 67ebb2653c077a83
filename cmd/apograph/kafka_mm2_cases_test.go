//go:build kafka

package main

import (
	"maps"
	"slices"
	"strings"

	"apograph/internal/kafkatest"
)

// A mirrorCase is a file, the clusters that it is used on, and what MirrorMaker 2
// makes of it there.
type mirrorCase struct {
	file        string            // its name, without .properties
	environment map[string]string // that the file refers to
	clusters    []string          // aliases of the first, second and third cluster
	before      map[string]estate // by alias
	flows       []mirrorFlow      // enabled ones
	idle        []string          // duties that the file turns off for all flows
	copies      []mirrorCopy      // all that MirrorMaker makes
	restamped   []string          // copies to whose records MirrorMaker's target gives other times
	left        []string          // copies that apograph does not make
	steady      int               // looks at clusters that do not change any more, where duties of one flow wait for those of another
	rounds      int               // of apograph, where it takes more than one to reach the end of a chain
	differs     []difference
}

// A mirrorFlow is one flow of a file.
type mirrorFlow struct {
	source, target string
	idle           []string // duties that the file turns off for this flow
}

// An estate is what stands on a cluster before anybody copies.
type estate struct {
	topics  map[string]kafkatest.TopicState
	acls    []kafkatest.ACL
	brokers map[string]string // settings of all brokers
}

// A place is a topic of a cluster.
type place struct{ cluster, topic string }

// A mirrorCopy is a topic and its copy.
type mirrorCopy struct{ source, target place }

// copied returns copies from one cluster to another, of topics whose name is
// given a prefix.
func copied(source, target, prefix string, topics ...string) []mirrorCopy {
	var all []mirrorCopy
	for _, name := range topics {
		all = append(all, mirrorCopy{place{source, name}, place{target, prefix + name}})
	}
	return all
}

// topic returns a topic with settings written as key=value.
func topic(partitions int, records int64, settings ...string) kafkatest.TopicState {
	s := kafkatest.TopicState{Partitions: partitions, Records: records, Settings: map[string]string{}}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		s.Settings[key] = value
	}
	return s
}

// acl returns an ACL on topics of a name, written as permission, operation,
// pattern, name and principal.
func acl(text string) kafkatest.ACL {
	f := strings.Fields(text)
	return kafkatest.ACL{Resource: "TOPIC", Name: f[3], Pattern: f[2], Principal: "User:" + f[4], Host: "*", Operation: f[1], Permission: f[0]}
}

// shop is a cluster of a business, with a topic for each thing that copiers have
// been seen to get wrong. No two names differ by dots and underscores alone, of
// which MirrorMaker's task would die: its consumer's metrics then have one name.
func shop(separator, source, target string) estate {
	e := estate{
		topics: map[string]kafkatest.TopicState{
			"orders":      topic(3, 30, "retention.ms=86400000", "segment.bytes=2097152", "min.insync.replicas=1"),
			"accounts":    topic(2, 20, "cleanup.policy=compact", "retention.bytes=10000000", "unclean.leader.election.enable=true"),
			"stamped":     topic(1, 10, "message.timestamp.type=LogAppendTime", "max.message.bytes=2097152"),
			"timed":       topic(1, 10, "message.timestamp.before.max.ms=86400000", "compression.type=zstd"),
			"empty":       topic(4, 0),
			"payments.v1": topic(1, 10, "delete.retention.ms=1000"), // a dot, and no alias before it

			target + separator + "loop": topic(1, 5), // a cycle, by its name
			source + separator + "own":  topic(1, 5), // none (before KAFKA-9914)

			"my.internal":               topic(1, 5), // not internal any more (KIP-1074)
			"my-internal":               topic(1, 5),
			"mm2-notes.internal":        topic(1, 5), // excluded by default
			"past.checkpoints.internal": topic(1, 5),
			"orders.replica":            topic(1, 5), // excluded by default
			"__hidden":                  topic(1, 5),
			".hidden":                   topic(1, 5),

			"heartbeats":                   topic(1, 5, "cleanup.policy=compact"),
			"Z" + separator + "heartbeats": topic(1, 5, "cleanup.policy=compact"), // of a cluster further up
			"myheartbeats":                 topic(1, 5),
		},
		acls: []kafkatest.ACL{
			acl("ALLOW READ LITERAL orders reader"),
			acl("ALLOW DESCRIBE LITERAL orders reader"),
			acl("ALLOW WRITE LITERAL orders writer"),
			acl("ALLOW ALL LITERAL accounts owner"),
			acl("DENY WRITE LITERAL accounts intern"),
			acl("DENY ALL LITERAL stamped intern"),
			acl("ALLOW ALTER_CONFIGS LITERAL stamped owner"),
			acl("ALLOW READ PREFIXED ord reader"),
			acl("ALLOW READ LITERAL * auditor"),
			acl("ALLOW READ LITERAL ghost reader"), // of no topic
			acl("ALLOW READ LITERAL orders.replica reader"),
			acl("ALLOW READ LITERAL __hidden reader"),
			acl("ALLOW READ LITERAL " + target + separator + "loop reader"),
			{Resource: "TOPIC", Name: "payments.v1", Pattern: "LITERAL", Principal: "User:reader", Host: "10.0.0.7", Operation: "READ", Permission: "ALLOW"},
			{Resource: "GROUP", Name: "orders", Pattern: "LITERAL", Principal: "User:reader", Host: "*", Operation: "READ", Permission: "ALLOW"},
		},
	}
	if separator != "." {
		e.topics["mm2-remarks"+separator+"internal"] = topic(1, 5)
		e.topics["late"+separator+"checkpoints"+separator+"internal"] = topic(1, 5)
		e.topics[target+".ring"] = topic(1, 5)
	}
	return e
}

// only returns an estate with some of its topics.
func (e estate) only(names ...string) estate {
	e.topics = maps.Clone(e.topics)
	maps.DeleteFunc(e.topics, func(name string, _ kafkatest.TopicState) bool { return !slices.Contains(names, name) })
	return e
}

// and returns an estate with one more topic.
func (e estate) and(name string, t kafkatest.TopicState) estate {
	e.topics = maps.Clone(e.topics)
	if e.topics == nil {
		e.topics = map[string]kafkatest.TopicState{}
	}
	e.topics[name] = t
	return e
}

const unlimited = "9223372036854775807"

// exact is what README says of settings that a copy depends on which keeps every
// record, with its time.
const exact = "Never overwritten is what an exact copy depends on: `compression.type`, `message.timestamp.*`, and `max.message.bytes`, which is only raised"

// protected are the differences that apograph's protective settings make.
func protected(more ...difference) []difference {
	return append([]difference{
		{what: "setting message.timestamp.after.max.ms", apograph: unlimited, readme: exact},
		{what: "setting message.timestamp.before.max.ms", apograph: unlimited, readme: exact, seldom: true},
		{what: "setting message.timestamp.type", apograph: "CreateTime", readme: exact, seldom: true},
		{what: "setting compression.type", apograph: "producer", readme: exact, seldom: true},
		// Of a topic that says nothing, and of one with 2 MiB: ten percent more.
		{what: "setting max.message.bytes", apograph: "1153447", readme: exact, seldom: true},
		{what: "setting max.message.bytes", apograph: "2306868", readme: exact, seldom: true},
	}, more...)
}

func mirrorCases() []mirrorCase {
	return slices.Concat(namingCases(), flowCases(), settingCases(), writtenCases())
}

// namingCases are about policies.
func namingCases() []mirrorCase {
	everywhere := []string{"orders", "accounts", "stamped", "timed", "empty", "payments.v1", "my.internal", "my-internal"}
	return []mirrorCase{
		{
			file:     "default",
			clusters: []string{"A", "B"},
			before:   map[string]estate{"A": shop(".", "A", "B")},
			flows:    []mirrorFlow{{source: "A", target: "B"}},
			copies:   copied("A", "B", "A.", append(everywhere, "A.own", "heartbeats", "Z.heartbeats", "myheartbeats")...),
			differs:  protected(),
		},
		{
			file:     "identity",
			clusters: []string{"old", "new"},
			before:   map[string]estate{"old": shop(".", "old", "new")},
			flows:    []mirrorFlow{{source: "old", target: "new"}},
			copies: append(copied("old", "new", "", append(everywhere, "old.own", "new.loop")...),
				copied("old", "new", "old.", "heartbeats", "Z.heartbeats", "myheartbeats")...),
			differs: protected(),
		},
		{
			file:     "separator",
			clusters: []string{"eu", "us"},
			before:   map[string]estate{"eu": shop("-", "eu", "us")},
			flows:    []mirrorFlow{{source: "eu", target: "us"}},
			copies: copied("eu", "us", "eu-", append(everywhere, "eu-own", "us.ring", "past.checkpoints.internal",
				"heartbeats", "Z-heartbeats", "myheartbeats")...),
			differs: protected(),
		},
		{
			file:     "internal-separator-off",
			clusters: []string{"A", "B"},
			before:   map[string]estate{"A": shop("_", "A", "B")},
			flows:    []mirrorFlow{{source: "A", target: "B"}},
			copies: copied("A", "B", "A_", append(everywhere, "A_own", "B.ring", "mm2-remarks_internal", "late_checkpoints_internal",
				"heartbeats", "Z_heartbeats", "myheartbeats")...),
			differs: protected(),
		},
	}
}

// flowCases are about several flows.
func flowCases() []mirrorCase {
	return []mirrorCase{
		{
			file:     "active-active",
			clusters: []string{"primary", "backup"},
			before: map[string]estate{
				"primary": shop(".", "primary", "backup").only("orders", "accounts", "backup.loop", "primary.own", "heartbeats"),
				"backup":  shop(".", "backup", "primary").only("orders", "payments.v1", "heartbeats"),
			},
			flows: []mirrorFlow{{source: "primary", target: "backup"}, {source: "backup", target: "primary"}},
			copies: append(copied("primary", "backup", "primary.", "orders", "accounts", "primary.own", "heartbeats"),
				copied("backup", "primary", "backup.", "orders", "payments.v1", "heartbeats")...),
			differs: protected(),
		},
		{
			file:     "fan-in",
			clusters: []string{"eu.west", "B", "hub"},
			before: map[string]estate{
				"eu.west": shop(".", "eu.west", "hub").only("orders", "accounts", "stamped"),
				"B":       shop(".", "B", "hub").only("orders", "payments.v1"),
			},
			flows:   []mirrorFlow{{source: "eu.west", target: "hub"}, {source: "B", target: "hub"}},
			copies:  append(copied("eu.west", "hub", "eu.west.", "orders", "accounts"), copied("B", "hub", "B.", "orders", "payments.v1")...),
			differs: protected(),
		},
		{
			file:     "fan-out",
			clusters: []string{"A", "B", "C"},
			before:   map[string]estate{"A": shop(".", "A", "B").only("orders", "accounts", "stamped")},
			flows: []mirrorFlow{
				{source: "A", target: "B", idle: []string{kafkatest.MirrorMakerSyncsACLs}},
				{source: "A", target: "C"},
			},
			copies:  append(copied("A", "B", "A.", "orders", "accounts"), copied("A", "C", "A__", "orders")...),
			differs: protected(),
		},
		{
			file:     "chain",
			clusters: []string{"A", "B", "C"},
			before: map[string]estate{
				"A": shop(".", "A", "B").only("orders", "accounts", "stamped"),
				"B": estate{}.and("orders", topic(1, 7)).and("heartbeats", topic(1, 0, "cleanup.policy=compact")),
			},
			flows: []mirrorFlow{{source: "A", target: "B"}, {source: "B", target: "C"}},
			copies: append(copied("A", "B", "A.", "orders", "accounts"),
				copied("B", "C", "B.", "orders", "A.orders", "A.accounts", "heartbeats")...),
			steady:  12,
			rounds:  2, // the second flow sees what the first has made when it looks again
			differs: protected(difference{cluster: "C", what: "setting max.message.bytes", apograph: "1268792", readme: exact}),
		},
		{
			file:     "heartbeats-off",
			clusters: []string{"A", "B"},
			before:   map[string]estate{"A": shop(".", "A", "B")},
			flows:    []mirrorFlow{{source: "A", target: "B"}},
			copies:   copied("A", "B", "A.", "orders", "heartbeats", "Z.heartbeats", "myheartbeats"),
			differs:  protected(),
		},
	}
}

// settingCases are about topics' settings, partitions and ACLs.
func settingCases() []mirrorCase {
	three := shop(".", "A", "B").only("orders", "accounts", "stamped")
	flow := []mirrorFlow{{source: "A", target: "B"}}
	return []mirrorCase{
		{
			file:     "defaults-from-source",
			clusters: []string{"A", "B"},
			before:   map[string]estate{"A": three},
			flows:    flow,
			copies:   copied("A", "B", "A.", "orders", "accounts", "stamped"),
			differs:  protected(),
		},
		{
			file:     "defaults-from-target",
			clusters: []string{"A", "B"},
			before: map[string]estate{
				"A": three,
				"B": estate{}.and("A.orders", topic(1, 0, "retention.ms=1000000", "flush.ms=5000", "min.insync.replicas=1")).
					and("A.accounts", topic(3, 0)),
			},
			flows:  flow,
			copies: copied("A", "B", "A.", "orders", "accounts", "stamped"),
			differs: protected(difference{
				topic: "A.orders", what: "setting flush.ms", mm2: absent, apograph: "5000",
				readme: "A setting that somebody made on the target alone stays (MirrorMaker 2 takes it away",
			}),
		},
		{
			file:     "sync-off",
			clusters: []string{"A", "B"},
			before: map[string]estate{
				"A": three,
				"B": estate{}.and("A.orders", topic(3, 0, "retention.ms=1000000", "flush.ms=5000")),
			},
			flows:   flow,
			idle:    []string{kafkatest.MirrorMakerSyncsACLs, kafkatest.MirrorMakerSyncsSettings},
			copies:  copied("A", "B", "A.", "orders", "accounts", "stamped"),
			differs: protected(),
		},
		{
			file:     "cluster-defaults",
			clusters: []string{"A", "B"},
			before: map[string]estate{"A": {
				topics:  shop(".", "A", "B").only("orders", "accounts", "empty").topics,
				brokers: map[string]string{"log.retention.ms": "172800000", "log.segment.bytes": "3145728"},
			}},
			flows:   flow,
			copies:  copied("A", "B", "A.", "orders", "accounts", "empty"),
			differs: protected(),
		},
	}
}

// oldNames is what README says of keys that MirrorMaker 2 has forgotten.
const oldNames = "old names of keys (`topics.blacklist`) still count"

// writtenCases are about lists, and how a file is written.
func writtenCases() []mirrorCase {
	flow := []mirrorFlow{{source: "A", target: "B"}}
	return []mirrorCase{
		{
			file:      "excludes",
			clusters:  []string{"A", "B"},
			before:    map[string]estate{"A": shop(".", "A", "B")},
			flows:     flow,
			copies:    copied("A", "B", "A.", "orders", "accounts", "stamped", "timed", "payments.v1", "my-internal"),
			restamped: []string{"A.stamped"},
			differs:   protected(),
		},
		{
			file:     "blacklist",
			clusters: []string{"A", "B"},
			before:   map[string]estate{"A": shop(".", "A", "B").only("orders", "accounts", "stamped")},
			flows:    flow,
			copies:   copied("A", "B", "A.", "orders", "accounts", "stamped"),
			left:     []string{"A.accounts"},
			differs: protected(
				difference{topic: "A.accounts", what: "*", apograph: absent, readme: oldNames},
				difference{what: "acl ALLOW READ TOPIC LITERAL A.accounts User:owner *", apograph: absent, readme: oldNames},
				difference{what: "acl DENY WRITE TOPIC LITERAL A.accounts User:intern *", apograph: absent, readme: oldNames},
				difference{topic: "A.orders", what: "setting retention.ms", mm2: "86400000", apograph: absent, readme: oldNames},
				// The list takes the place of the default one.
				difference{what: "setting min.insync.replicas", mm2: absent, apograph: "1", readme: oldNames},
			),
		},
		{
			file:        "java-format",
			environment: map[string]string{"APOGRAPH_TEST_TOPIC": "empty"},
			clusters:    []string{"A", "B"},
			before:      map[string]estate{"A": shop(".", "A", "B")},
			flows:       flow,
			copies:      copied("A", "B", "A.", "orders", "accounts", "payments.v1", "stamped", "empty", "heartbeats", "Z.heartbeats"),
			restamped:   []string{"A.stamped"},
			differs:     protected(),
		},
		{
			file:     "wrong-level",
			clusters: []string{"A", "B"},
			before:   map[string]estate{"A": shop(".", "A", "B").only("orders", "accounts", "stamped")},
			flows:    flow,
			copies:   copied("A", "B", "A.", "orders", "accounts"),
			differs:  protected(),
		},
	}
}
