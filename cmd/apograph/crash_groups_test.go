package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/internal/mm2"
)

// groupKills is how often TestSigkillGroups kills a copier.
const groupKills = 25

// TestSigkillGroups kills the real binary while it commits for groups and writes
// checkpoints, before and after these take effect. What it has committed itself
// is never taken for the doing of a group's owner: in the end each group is where
// it is on the source, in both.
func TestSigkillGroups(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	if err := pair.Source.CreateTopic(t.Context(), "orders", 1, nil); err != nil {
		t.Fatal(err)
	}
	points := []killPoint{
		{key: kmsg.OffsetCommit, most: 3}, {key: kmsg.OffsetCommit, most: 3}, {key: kmsg.OffsetFetch, most: 4}, {key: kmsg.ListGroups, most: 1},
		{key: kmsg.FindCoordinator, most: 2}, {key: kmsg.Produce, most: 3}, {onSource: true, key: kmsg.OffsetFetch, most: 1},
	}
	r := rand.New(rand.NewPCG(20261130, 8))
	path := filepath.Join(t.TempDir(), "flow.ledger")
	duties := []string{"-X", "emit.checkpoints.enabled=true", "-X", "sync.group.offsets.enabled=true"}
	admin := kadm.NewClient(pair.Source.NewClient(t))
	groups := []string{"one", "two", "three"}
	at := map[string]int64{}
	hits := map[string]int{}
	for kill, round := 0, 0; kill < groupKills && round < 4*groupKills; round++ {
		appendNumbers(t, pair.Source.Bootstrap, r, 20*round)
		for _, group := range groups {
			at[group] += r.Int64N(20)
			if err := admin.CommitAllOffsets(t.Context(), group, kadm.Offsets{"orders": {0: {Topic: "orders", At: at[group]}}}); err != nil {
				t.Fatal(err)
			}
		}
		if point := killOnce(t, pair, append(copyArgs(pair, path), duties...), points, r); point != "" {
			hits[point]++
			kill++
		}
	}
	t.Logf("killed in %v", hits)
	if len(hits) < len(points) {
		t.Errorf("killed at %d places only", len(hits))
	}
	if code, stderr := copyOnce(t, pair, path, duties...); code != 0 {
		t.Fatalf("exit code %d after the last kill: %s", code, stderr)
	}
	mustCheck(t, path)
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("orders"))
	written := lastCheckpoints(t, pair.Target.Bootstrap)
	for _, group := range groups {
		want := placeOnTarget(t, pair, at[group])
		info := pair.Target.Fake().GroupInfo(group)
		if info == nil || info.Commits["orders"][0].Offset != want {
			t.Errorf("group %s at %d on the source has %+v on the target, want %d", group, at[group], info, want)
		}
		if got := written[group]; got.Upstream != at[group] || got.Downstream != want {
			t.Errorf("group %s at %d on the source has checkpoint %+v, want %d", group, at[group], got, want)
		}
	}
}

// appendNumbers appends twenty records, some of them in transactions that are
// aborted.
func appendNumbers(t *testing.T, on kafkatest.Bootstrap, r *rand.Rand, from int) {
	t.Helper()
	for i := range 4 {
		var records []*kgo.Record
		for k := range 5 {
			records = append(records, &kgo.Record{Topic: "orders", Value: fmt.Append(nil, from+5*i+k)})
		}
		var err error
		if r.IntN(3) == 0 {
			err = on.AppendTransaction(t.Context(), "tx", r.IntN(2) == 0, records...)
		} else {
			err = on.Append(t.Context(), kafkatest.None, records...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// placeOnTarget returns where the record is that a group at an offset of the
// source is to read next, found by its value.
func placeOnTarget(t *testing.T, pair *kafkatest.Pair, offset int64) int64 {
	t.Helper()
	source, err := pair.Source.ReadCommitted(t.Context(), "orders", 0)
	if err != nil {
		t.Fatal(err)
	}
	target, err := pair.Target.ReadCommitted(t.Context(), "orders", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range source {
		if r.Offset < offset {
			continue
		}
		for _, copied := range target {
			if string(copied.Value) == string(r.Value) {
				return copied.Offset
			}
		}
	}
	return target[len(target)-1].Offset + 1
}

// lastCheckpoints returns the last checkpoint of each group.
func lastCheckpoints(t *testing.T, on kafkatest.Bootstrap) map[string]mm2.Checkpoint {
	t.Helper()
	records, err := on.ReadCommitted(t.Context(), "source.checkpoints.internal", 0)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]mm2.Checkpoint{}
	for _, r := range records {
		c, err := mm2.ParseCheckpoint(r.Key, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		last[c.Group] = c
	}
	return last
}
