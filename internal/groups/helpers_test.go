package groups_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"apograph/internal/connect"
	"apograph/internal/groups"
	"apograph/internal/kafkatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is short enough for brokers that never answer.
const patience = 2 * time.Second

// A fake is a fake cluster, and a connection to it under test.
type fake struct {
	*kafkatest.Cluster
	t     *testing.T
	ctx   context.Context
	under *groups.Cluster
}

func newFake(t *testing.T, o kafkatest.ClusterOptions) *fake {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	f := &fake{Cluster: kafkatest.NewCluster(t, o), t: t, ctx: ctx}
	under, err := groups.Open(ctx, connect.Cluster{Alias: "b", Bootstrap: f.Addresses, Options: f.DialOptions()}, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(under.Close)
	f.under = under
	f.topic("orders", 3)
	return f
}

func (f *fake) topic(name string, partitions int32) {
	f.t.Helper()
	if err := f.CreateTopic(f.ctx, name, partitions, nil); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) topicID(name string) [16]byte {
	f.t.Helper()
	info := f.Fake().TopicInfo(name)
	if info == nil {
		f.t.Fatalf("no topic %s", name)
	}
	return info.TopicID
}

func (f *fake) commit(group, topic string, partition int32, offset int64) {
	f.t.Helper()
	commit(f.ctx, f.t, f.Bootstrap, group, topic, partition, offset)
}

// committed returns what a group has, as the fake itself says.
func (f *fake) committed(group, topic string, partition int32) (offset int64, metadata string, epoch int32) {
	f.t.Helper()
	info := f.Fake().GroupInfo(group)
	if info == nil {
		return groups.NoOffset, "", -1
	}
	commit, ok := info.Commits[topic][partition]
	if !ok {
		return groups.NoOffset, "", -1
	}
	return commit.Offset, commit.Metadata, commit.LeaderEpoch
}

func (f *fake) consume(group string, options ...kgo.Opt) *kgo.Client {
	f.t.Helper()
	return f.Consume(f.ctx, f.t, group, options...)
}

func (f *fake) wish(group string, offset int64) groups.Commit {
	f.t.Helper()
	return wish(f.topicID("orders"), group, offset)
}

// mustAll expects every outcome to be a commit that reads back.
func mustAll(t *testing.T, commits []groups.Commit, outcomes []groups.Outcome) {
	t.Helper()
	for i, outcome := range outcomes {
		want := groups.Outcome{Decision: groups.Decision{Action: groups.DoCommit}, Committed: commits[i].Offset, Sent: true}
		if outcome != want {
			t.Errorf("%+v: %+v, want %+v", commits[i], outcome, want)
		}
	}
}

func groupNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("group-%d", i)
	}
	return names
}
