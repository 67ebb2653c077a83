package replicate_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/internal/mirror"
	"apograph/internal/mm2"
	"apograph/ledger"
	"apograph/replicate"
)

// withRights starts a cluster on which user u has these rights alone.
func withRights(t *testing.T, name string, rights ...kfake.ACL) *kafkatest.Cluster {
	t.Helper()
	return kafkatest.NewCluster(t, kafkatest.ClusterOptions{
		Name: name, Login: []kgo.Opt{kgo.SASL(plain.Auth{User: "root", Pass: "r"}.AsMechanism())},
		Kfake: []kfake.Opt{kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "r"), kfake.User("PLAIN", "u", "p", rights...)},
	})
}

func right(resource kmsg.ACLResourceType, name string, operation kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
}

func asUser(alias string, c *kafkatest.Cluster) connect.Cluster {
	return connect.Cluster{Alias: alias, Bootstrap: c.Addresses, Options: []kgo.Opt{kgo.SASL(plain.Auth{User: "u", Pass: "p"}.AsMechanism())}}
}

const (
	aTopic  = kmsg.ACLResourceTypeTopic
	aGroup  = kmsg.ACLResourceTypeGroup
	cluster = kmsg.ACLResourceTypeCluster
)

// TestPlanOfDuties: where each duty writes, and which rights it lacks there: to
// topics, to make them, and to groups, also to such as the target does not have yet.
func TestPlanOfDuties(t *testing.T) {
	source := withRights(t, "source",
		right(aTopic, "t", kmsg.ACLOperationAll), right(aTopic, "mm2-offset-syncs.target.internal", kmsg.ACLOperationDescribe),
		right(cluster, "kafka-cluster", kmsg.ACLOperationDescribe),
		right(aGroup, "may", kmsg.ACLOperationDescribe), right(aGroup, "half", kmsg.ACLOperationDescribe), right(aGroup, "less", kmsg.ACLOperationDescribe))
	target := withRights(t, "target",
		right(aTopic, "t", kmsg.ACLOperationAll), right(aTopic, "heartbeats", kmsg.ACLOperationAll),
		right(aTopic, "source.checkpoints.internal", kmsg.ACLOperationRead), right(aTopic, "source.checkpoints.internal", kmsg.ACLOperationDescribe),
		right(cluster, "kafka-cluster", kmsg.ACLOperationCreate),
		right(aGroup, "may", kmsg.ACLOperationAll), right(aGroup, "half", kmsg.ACLOperationDescribe))
	mustTopic(t, source, "t", nil)
	mustTopic(t, target, "source.checkpoints.internal", nil)
	admin := kadm.NewClient(source.NewClient(t))
	for _, group := range []string{"may", "half", "less", "never"} {
		answer, err := admin.CommitOffsets(t.Context(), group, kadm.Offsets{"t": {0: {Topic: "t", LeaderEpoch: -1}}})
		if err := errors.Join(err, answer.Error()); err != nil {
			t.Fatal(err)
		}
	}
	groups, err := mm2.ParseSelection([]string{".*"}, []string{"never"})
	if err != nil {
		t.Fatal(err)
	}
	config := replicate.Config{
		Source: asUser("source", source), Target: asUser("target", target), LedgerPath: filepath.Join(t.TempDir(), "flow.ledger"), Topics: []string{"t"}, Once: true,
		Translator: func(*ledger.Ledger) mirror.Translator { return nil }, // a plan translates nothing
	}
	config.Mirror.OffsetSyncs.Enabled = true
	config.Mirror.Checkpoints = mirror.Checkpoints{Enabled: true, Groups: groups}
	config.Mirror.GroupSync.Enabled = true
	config.Mirror.Heartbeats = []mirror.Heartbeats{{Source: "source", Target: "target", TopicReplication: 2}}
	plan, err := replicate.MakePlan(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []replicate.DutyPlan{
		{
			Duty: "offset_syncs", On: true, Cluster: "source", Topic: "mm2-offset-syncs.target.internal", Create: true, ReplicationFactor: 1, Groups: -1,
			MissingPermissions: []string{"source topic mm2-offset-syncs.target.internal: CREATE"},
		},
		{
			Duty: "checkpoints", On: true, Cluster: "target", Topic: "source.checkpoints.internal", ReplicationFactor: 1, Groups: 3,
			MissingPermissions: []string{"target topic source.checkpoints.internal: WRITE"},
		},
		{
			Duty: "group_sync", On: true, Cluster: "target", Groups: 3,
			MissingPermissions: []string{"target group half: READ, and 1 more"},
		},
		{Duty: "heartbeats", Pair: "source->target", On: true, Cluster: "target", Topic: "heartbeats", Create: true, ReplicationFactor: 2, TopicOnly: true, Groups: -1},
	}
	if !reflect.DeepEqual(plan.Duties, want) {
		t.Errorf("%+v\nwant\n%+v", plan.Duties, want)
	}
	about := slices.DeleteFunc(slices.Clone(plan.Refusals), func(s string) bool { return !strings.HasPrefix(s, "duty ") })
	if len(about) != 3 || about[0] != "duty offset_syncs: missing permission: "+want[0].MissingPermissions[0] {
		t.Errorf("%q", plan.Refusals)
	}
	// A client that may describe the cluster is told of groups that it may not
	// describe.
	source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.DescribeGroups, Err: kerr.GroupAuthorizationFailed, Count: -1})
	if plan, err = replicate.MakePlan(t.Context(), config, nil); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 2} {
		if got := plan.Duties[i].MissingPermissions; !slices.Contains(got, "source group half: DESCRIBE, and 2 more") {
			t.Errorf("%s: %q", plan.Duties[i].Duty, got)
		}
	}
	config.Mirror = mirror.Settings{}
	if plan, err = replicate.MakePlan(t.Context(), config, nil); err != nil {
		t.Fatal(err)
	}
	off := []replicate.DutyPlan{{Duty: "offset_syncs", Groups: -1}, {Duty: "checkpoints", Groups: -1}, {Duty: "group_sync", Groups: -1}, {Duty: "heartbeats", Groups: -1}}
	if !reflect.DeepEqual(plan.Duties, off) {
		t.Errorf("%+v", plan.Duties)
	}
}
