package replicate_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

func planTopic(t *testing.T, plan replicate.Plan, topic string) replicate.TopicPlan {
	t.Helper()
	i := slices.IndexFunc(plan.Topics, func(p replicate.TopicPlan) bool { return p.Topic == topic })
	if i < 0 {
		t.Fatalf("no topic %s in %+v", topic, plan)
	}
	return plan.Topics[i]
}

// TestPlan holds what a dry run says against what the run then does.
func TestPlan(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "new", map[string]string{"retention.ms": "3600000", "min.insync.replicas": "2"})
	mustTopic(t, pair.Source, "there", nil)
	mustTopic(t, pair.Source, "secret", nil)
	mustTopic(t, pair.Source, "__own", nil)
	mustTopic(t, pair.Source, "elsewhere", nil)
	mustTopic(t, pair.Target, "there", map[string]string{"message.timestamp.before.max.ms": "86400000"})
	mustAppend(t, pair.Source.Bootstrap, append(on("new", 0, 0, 10), on("there", 0, 0, 4)...)...)
	config := configFor(t, pair, "new", "there", "secret", "__own")
	config.TopicsExclude = []string{"secr.*"}
	config.Now = func() time.Time { return time.UnixMilli(1_700_000_000_000).Add(time.Minute) }

	plan, err := replicate.MakePlan(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	fresh := planTopic(t, plan, "new")
	if !fresh.In || !fresh.Create || fresh.Partitions != 1 || fresh.ReplicationFactor != 1 || fresh.Records != 10 ||
		fresh.Settings["retention.ms"] != "3600000" || fresh.Settings["min.insync.replicas"] != "" || fresh.Rule != "matched by new" {
		t.Errorf("new: %+v", fresh)
	}
	if fresh.Headroom < 58*time.Minute || fresh.Headroom > time.Hour {
		t.Errorf("new: records of a minute ago, kept for an hour, are safe for %v", fresh.Headroom)
	}
	there := planTopic(t, plan, "there")
	if !there.In || there.Create || there.Records != 4 || len(there.Warnings) != 1 || !strings.Contains(there.Warnings[0], "message.timestamp.before.max.ms") {
		t.Errorf("there: %+v", there)
	}
	for topic, rule := range map[string]string{"secret": "excluded by secr.*", "__own": "internal: Kafka's own, begins with __", "elsewhere": "no pattern matches"} {
		if p := planTopic(t, plan, topic); p.In || p.Rule != rule {
			t.Errorf("%s: %+v", topic, p)
		}
	}
	if len(plan.Refusals) != 0 {
		t.Errorf("refusals %q", plan.Refusals)
	}
	if _, err := os.Stat(config.LedgerPath); err == nil {
		t.Error("a dry run made a ledger")
	}
	if b, err := pair.Target.ReadBounds(t.Context(), "new", 0); err == nil {
		t.Errorf("a dry run made a topic: %+v", b)
	}

	config.Now = nil
	mustRun(t, config)
	mustAppend(t, pair.Source.Bootstrap, on("new", 0, 10, 3)...)
	book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	plan, err = replicate.MakePlan(t.Context(), config, book)
	if err != nil {
		t.Fatal(err)
	}
	if p := planTopic(t, plan, "new"); p.Create || p.Settings != nil || p.Records != 3 {
		t.Errorf("new, the second time: %+v", p)
	}
	if again, err := replicate.MakePlan(t.Context(), config, book); err != nil || !reflect.DeepEqual(plan, again) {
		t.Errorf("the plan changes by being made: %v", err)
	}
}

// TestPlanWithoutAnyRight: a target topic about which nothing may be known is one
// that nothing may be written to.
func TestPlanWithoutAnyRight(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Metadata, Topic: "t", Count: -1, Err: kerr.TopicAuthorizationFailed})
	plan, err := replicate.MakePlan(t.Context(), configFor(t, pair, "t"), nil)
	want := []string{"target topic t: WRITE", "target topic t: READ", "target topic t: DESCRIBE"}
	if p := planTopic(t, plan, "t"); err != nil || !slices.Equal(p.MissingPermissions, want) || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "cannot be seen") {
		t.Errorf("%v, %+v", err, p)
	}
}

// TestPlanAsksForCreate: the right to make topics may be one on their names alone.
func TestPlanAsksForCreate(t *testing.T) {
	allow := func(topic string, operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
	}
	pair := kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir(), TargetKfake: []kfake.Opt{kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "p"),
		kfake.User("PLAIN", "u", "p", allow("may", kmsg.ACLOperationAll), allow("seen", kmsg.ACLOperationDescribe), allow("made", kmsg.ACLOperationCreate))}})
	for _, topic := range []string{"may", "seen", "made", "hid"} {
		mustTopic(t, pair.Source, topic, nil)
	}
	config := configFor(t, pair, ".*")
	config.Target.Options = append(config.Target.Options, kgo.SASL(plain.Auth{User: "u", Pass: "p"}.AsMechanism()))
	plan, err := replicate.MakePlan(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string][]string{
		"may":  nil,
		"seen": {"target topic seen: CREATE"},
		"made": {"target topic made: WRITE", "target topic made: READ", "target topic made: DESCRIBE"},
		"hid":  {"target topic hid: WRITE", "target topic hid: READ", "target topic hid: DESCRIBE", "target topic hid: CREATE"},
	} {
		if p := planTopic(t, plan, topic); !slices.Equal(p.MissingPermissions, want) || p.Create != (topic == "may" || topic == "seen") || len(p.Warnings) != map[bool]int{true: 1}[!p.Create] {
			t.Errorf("%s: %+v", topic, p)
		}
	}
	if b, err := pair.Target.ReadBounds(t.Context(), "may", 0); err == nil {
		t.Errorf("a dry run made a topic: %+v", b)
	}
}

// TestPlanNamesStrangers: what a run would refuse.
func TestPlanNamesStrangers(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	mustAppend(t, pair.Target.Bootstrap, on("t", 0, 0, 4)...)
	plan, err := replicate.MakePlan(t.Context(), configFor(t, pair, "t"), nil)
	if err != nil || len(plan.Refusals) != 1 || !strings.Contains(plan.Refusals[0], "t-0 has offsets") {
		t.Errorf("%v, refusals %q", err, plan.Refusals)
	}
}
