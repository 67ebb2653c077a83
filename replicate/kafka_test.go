//go:build kafka

package replicate_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// TestKafkaTopicDuties makes topics on real brokers under the names of the default
// policy, with settings and access control entries as MirrorMaker 2 would, less
// what an exact copy needs; keeps both in step; and takes a cluster without an
// authorizer for what it is.
func TestKafkaTopicDuties(t *testing.T) {
	authorizer := map[string]string{
		"authorizer.class.name":               "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                         "User:ANONYMOUS",
		"allow.everyone.if.no.acl.found":      "true",
		"log.message.timestamp.after.max.ms":  "3600000",
		"log.message.timestamp.before.max.ms": "9223372036854775807",
	}
	clusters := kafkatest.StartKafkas(t,
		kafkatest.KafkaOptions{Name: "source", Config: authorizer}, kafkatest.KafkaOptions{Name: "target", Config: authorizer}, kafkatest.KafkaOptions{Name: "open"})
	source, target, open := clusters[0], clusters[1], clusters[2]
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(source.CreateTopic(t.Context(), "t", 2, map[string]string{"cleanup.policy": "compact", "retention.ms": "1000", "min.insync.replicas": "3", "compression.type": "gzip"}))
	must(source.CreateTopic(t.Context(), "u", 1, map[string]string{"retention.ms": "2000000"}))
	must(target.CreateTopic(t.Context(), "source.u", 1, map[string]string{"segment.ms": "900000"}))
	_, err := admin(t, source.Bootstrap).AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "log.segment.bytes", Value: kadm.StringPtr("77777777")}})
	must(err)
	mustAppend(t, source.Bootstrap, on("u", 0, 0, 9)...)
	for _, entry := range []string{
		"User:alice ALLOW WRITE LITERAL t", "User:bob ALLOW ALL LITERAL t", "User:carol ALLOW READ PREFIXED t", "User:dave DENY READ LITERAL u",
	} {
		mustACL(t, source.Bootstrap, entry)
	}

	config := configFor(t, &kafkatest.Pair{Source: &kafkatest.Cluster{Bootstrap: source.Bootstrap}, Target: &kafkatest.Cluster{Bootstrap: target.Bootstrap}}, ".*")
	config.Policy = mustPolicy(t, nil)
	config.Settings.Mode = replicate.SettingsOfAll
	config.ACLs.Enabled = true
	config.ReplicationFactor = -1
	plan, err := replicate.MakePlan(t.Context(), config, nil)
	must(err)
	if p := planTopic(t, plan, "t"); len(p.LostACLs) != 3 || len(p.ACLs) != 1 || len(plan.Refusals) != 0 || p.Settings["min.insync.replicas"] != "" || p.Settings["segment.bytes"] != "77777777" {
		t.Errorf("%+v, refusals %q", p, plan.Refusals)
	}
	mustRun(t, config)
	wantOn := func(topic string, want ...string) {
		t.Helper()
		wantSettings(t, &kafkatest.Cluster{Bootstrap: target.Bootstrap}, topic, want...)
	}
	wantOn("source.t", "cleanup.policy", "compact", "retention.ms", "1000", "min.insync.replicas", "1", "compression.type", "producer", "segment.bytes", "77777777", "message.timestamp.after.max.ms", "9223372036854775807")
	wantOn("source.u", "retention.ms", "2000000", "segment.ms", "900000", "segment.bytes", "77777777")
	wantACLs := []string{"User:bob ALLOW READ LITERAL source.t", "User:dave DENY READ LITERAL source.u"}
	wantSame(t, "entries", aclsOf(t, target.Bootstrap), wantACLs)

	_, err = admin(t, source.Bootstrap).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "retention.ms"}}, "u")
	must(err)
	mustRun(t, config)
	wantOn("source.u", "retention.ms", "604800000", "segment.ms", "900000")
	wantSame(t, "entries", aclsOf(t, target.Bootstrap), wantACLs)
	names := map[string]string{"t": "source.t", "u": "source.u"}
	proveAs(t, source.Bootstrap, target.Bootstrap, config.LedgerPath, names)

	var log bytes.Buffer
	config.Target, config.LedgerPath = clusterOf("open", open.Bootstrap), config.LedgerPath+"2"
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if s := mustRun(t, config); !s.Complete || strings.Count(log.String(), "the cluster has no authorizer") != 1 {
		t.Errorf("%+v\n%s", s, log.String())
	}
	proveAs(t, source.Bootstrap, open.Bootstrap, config.LedgerPath, names)
}
