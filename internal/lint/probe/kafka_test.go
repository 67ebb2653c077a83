//go:build kafka

package probe_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/internal/kafkatest"
)

// TestKafkaRights asks a real broker as a user who may do nothing, and as one who
// may do everything: what the file of a Java client says is all that it takes.
func TestKafkaRights(t *testing.T) {
	security := kafkatest.NewSecurity(t, "ua", "ub")
	o := kafkatest.KafkaOptions{Name: "rights"}
	secured := security.Secure(&o)
	k := kafkatest.StartKafka(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := secured.Finish(ctx, k); err != nil {
		t.Fatal(err)
	}
	if err := k.AllowAll(ctx, security.Principal(kafkatest.LoginPlain, "ua")); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"orders", "a.orders"} {
		if err := k.CreateTopic(ctx, topic, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	file := func(source, target string) string {
		text := "clusters = a, b\na->b.enabled = true\ntopics = orders\n"
		for alias, user := range map[string]string{"a": source, "b": target} {
			properties, err := os.ReadFile(secured.WriteProperties(kafkatest.LoginPlain, user))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(properties)) {
				text += alias + "." + line
			}
		}
		return text
	}
	r := ask(t, file("ua", "ua"))
	mustFind(t, r, "AP0706", "a and b")
	mustNotFind(t, r, "AP0701", "AP0702", "AP0703", "AP0712", "AP0713")

	r = ask(t, file("ub", "ua"))
	mustFind(t, r, "AP0702", "the user of a lacks DESCRIBE on 1 topic", "orders")
	mustNotFind(t, r, "AP0701", "AP0703")

	r = ask(t, file("ua", "ub"))
	mustFind(t, r, "AP0713", "the user of b lacks ALTER")
	mustFind(t, r, "AP0702", "the user of b lacks CREATE on 1 topic: a.orders")
	mustFind(t, r, "AP0714", "the user of b lacks DESCRIBE and CREATE on a.checkpoints.internal")

	client, err := k.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	// No right on the cluster, but on the names of topics.
	acl := kadm.NewACLs().Allow(security.Principal(kafkatest.LoginPlain, "ub")).AllowHosts("*").Topics("a.").Operations(kadm.OpAll).ResourcePatternType(kadm.ACLPatternPrefixed)
	if _, err := kadm.NewClient(client).CreateACLs(ctx, acl); err != nil {
		t.Fatal(err)
	}
	if err := k.CreateTopic(ctx, "pay", 1, nil); err != nil {
		t.Fatal(err)
	}
	r = ask(t, strings.Replace(file("ua", "ub"), "topics = orders", "topics = orders, pay", 1))
	mustNotFind(t, r, "AP0701", "AP0702", "AP0703")
	mustFind(t, r, "AP0714", "the user of b lacks DESCRIBE and CREATE on heartbeats")
}
