//go:build kafka

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/internal/kafkatest"
)

// TestKafkaSecuredFile does the main job between brokers with TLS, SCRAM and an
// authorizer on both sides, from nothing but an mm2.properties.
func TestKafkaSecuredFile(t *testing.T) {
	security := kafkatest.NewSecurity(t, "mm2")
	options := []kafkatest.KafkaOptions{{Name: "a"}, {Name: "b"}}
	logins := []kafkatest.Login{kafkatest.LoginScram512, kafkatest.LoginScram256}
	secured := []*kafkatest.Secured{security.Secure(&options[0]), security.Secure(&options[1])}
	clusters := kafkatest.StartKafkas(t, options...)
	a, b := clusters[0], clusters[1]

	dir := t.TempDir()
	c := &configCase{t: t, dir: dir, file: filepath.Join(dir, "mm2.properties")}
	lines := []string{
		"clusters = a, b", "a->b.enabled = true", "a->b.topics = orders.*, payments", "b->a.enabled = true", "b->a.topics = answers",
		"replication.factor = 1", "tasks.max = 8", "offset.storage.replication.factor = 1", "a->b.sync.group.offsets.enabled = true",
		"apograph.ledger.dir = " + dir,
	}
	for i, alias := range []string{"a.", "b."} {
		ctx := t.Context()
		if err := errors.Join(secured[i].Finish(ctx, clusters[i]), clusters[i].AllowAll(ctx, secured[i].Principal(logins[i], "mm2"))); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(secured[i].Properties(logins[i], "mm2")) {
			lines = append(lines, alias+strings.TrimSpace(line))
		}
	}
	c.write(lines...)

	if err := errors.Join(
		kafkatest.Load{Seed: 1, Topics: []string{"orders-eu", "payments"}, Partitions: 2, Records: 2000}.Run(t.Context(), a.Bootstrap),
		kafkatest.Load{Seed: 2, Topics: []string{"answers"}, Partitions: 1, Records: 1000, ThroughClient: true}.Run(t.Context(), b.Bootstrap),
	); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"orders-eu", "payments"} {
		if err := a.WaitDecided(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	for i, group := range []string{"billing", "shipping"} {
		commitReal(t, a.Bootstrap, group, "orders-eu", int64(100*(i+1)))
	}

	var got summariesAnswer
	c.answer(&got, 0, "replicate", "--once")
	if len(got.Flows) != 2 || !got.Flows[0].Complete || !got.Flows[1].Complete {
		t.Errorf("replicate: %+v", got)
	}
	kafkatest.Compare(t, a.Bootstrap, b.Bootstrap, map[string]string{"orders-eu": "a.orders-eu", "payments": "a.payments"})
	kafkatest.Compare(t, b.Bootstrap, a.Bootstrap, map[string]string{"answers": "b.answers"})

	var verified struct {
		Flows []struct{ Verdict, Mode string }
	}
	c.answer(&verified, 0, "verify")
	if len(verified.Flows) != 2 || verified.Flows[0].Verdict != "complete" || verified.Flows[1].Mode != "full" {
		t.Errorf("verify: %+v", verified)
	}
	var translated struct {
		Rows []struct {
			Group        string
			TargetOffset int64 `json:"target_offset"`
			Status       string
		}
	}
	c.answer(&translated, 0, "translate", "--flow", "a->b", "--group", "billing", "--group", "shipping", "--execute")
	if len(translated.Rows) != 2 {
		t.Fatalf("translate: %+v", translated)
	}
	for _, row := range translated.Rows {
		offsets, err := admin(t, b.Bootstrap).FetchOffsets(t.Context(), row.Group)
		if at, ok := offsets.Lookup("a.orders-eu", 0); err != nil || !ok || at.At != row.TargetOffset || row.Status != "exact" {
			t.Errorf("group %s: %+v on the target, translated %+v, %v", row.Group, at, row, err)
		}
	}
	c.run(0, "status")
	for _, flow := range []string{"a->b", "b->a"} {
		c.run(0, "ledger", "check", "--flow", flow)
		c.run(0, "ledger", "inspect", "--flow", flow)
	}
	_, stderr := c.run(1, "replicate", "--once", "-X", "a.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=mm2 password=wrong-canary;")
	if !strings.Contains(stderr, "cluster a") {
		t.Errorf("a wrong password: %s", stderr)
	}
}

func admin(t *testing.T, b kafkatest.Bootstrap) *kadm.Client {
	t.Helper()
	return kadm.NewClient(b.NewClient(t))
}

// commitReal has a group stand at an offset of the first partition of a topic.
func commitReal(t *testing.T, b kafkatest.Bootstrap, group, topic string, offset int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, offset, -1)
	if err := admin(t, b).CommitAllOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(fmt.Errorf("commit for %s: %w", group, err))
	}
}
