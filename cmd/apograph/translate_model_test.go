package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
)

// TestTranslateGroupsAgainstModel commits random offsets of many groups on both
// sides of a copy with transactions, aborted and compacted records, runs the
// command with all flags in turn, and compares rows and commits with a model: the
// two lists of records as a consumer reads them.
func TestTranslateGroupsAgainstModel(t *testing.T) {
	const seed, rounds, groups = 20261129, 6, 40
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	m := newGroupModel(t)
	for round := range rounds {
		rewind, skipActive := round&1 != 0, round&2 != 0
		args := []string{"--execute"}
		if rewind {
			args = append(args, "--allow-rewind")
		}
		if skipActive {
			args = append(args, "--skip-active")
		}
		var asked []modelCommit
		for i := range groups {
			group := fmt.Sprintf("r%d-g%02d", round, i)
			args = append(args, "--group", group)
			asked = append(asked, m.commitRandomly(group, random)...)
		}
		if round%3 == 0 {
			member := m.consume(m.pair.Target.Bootstrap, asked[0].group)
			defer member.Close()
			asked = m.activate(asked)
		}
		m.expect(args, asked, rewind, skipActive)
	}
}

type groupModel struct {
	*groupCase
	source, target [][]kafkatest.Record // of orders, by partition
	end            []int64              // of the source
}

// newGroupModel makes a copy of a topic with everything in it.
func newGroupModel(t *testing.T) *groupModel {
	t.Helper()
	m := &groupModel{groupCase: &groupCase{
		t: t, pair: kafkatest.NewPair(t, kafkatest.Options{SourceBrokers: 2, DataDir: t.TempDir()}), ledger: filepath.Join(t.TempDir(), "flow.ledger"),
	}}
	load := kafkatest.Load{
		Seed: 7, Topics: []string{"orders", "payments"}, Partitions: 3, Records: 1500, MaxValueBytes: 500, Keyed: true,
		Configs: map[string]string{"cleanup.policy": "compact"},
	}
	if err := load.Run(t.Context(), m.pair.Source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	for partition := range int32(2) {
		if err := m.pair.Source.Clean("orders", partition, kafkatest.Cleaner{}); err != nil {
			t.Fatal(err)
		}
	}
	m.replicate()
	var err error
	if m.source, err = m.pair.Source.ReadTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if m.target, err = m.pair.Target.ReadTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	for partition := range m.source {
		bounds, err := m.pair.Source.ReadBounds(t.Context(), "orders", int32(partition))
		if err != nil {
			t.Fatal(err)
		}
		m.end = append(m.end, bounds.HighWatermark)
	}
	return m
}

// translate returns the target offset of the first record at or after offset.
func (m *groupModel) translate(partition int32, offset int64) (int64, string) {
	for i, record := range m.source[partition] {
		if record.Offset >= offset {
			return m.target[partition][i].Offset, "exact"
		}
	}
	end := int64(len(m.target[partition]))
	if offset > m.end[partition] {
		return end, "beyond_copied"
	}
	return end, "end"
}

// A modelCommit is what a group has committed for a partition on both sides.
type modelCommit struct {
	group     string
	partition int32
	source    int64
	target    int64 // -1: nothing
	active    bool  // the group has members on the target
}

func (m *groupModel) commitRandomly(group string, random *rand.Rand) (commits []modelCommit) {
	for partition := range int32(3) {
		if partition > 0 && random.IntN(2) == 0 {
			continue
		}
		c := modelCommit{group, partition, random.Int64N(m.end[partition] + 4), -1, false}
		switch random.IntN(4) {
		case 0:
			c.target = random.Int64N(int64(len(m.target[partition])) + 1)
		case 1:
			c.target, _ = m.translate(partition, c.source)
		}
		m.commit(m.pair.Source, group, "orders", partition, c.source)
		if c.target >= 0 {
			m.commit(m.pair.Target, group, "orders", partition, c.target)
		}
		commits = append(commits, c)
	}
	return commits
}

// activate says that the first group has members.
func (m *groupModel) activate(commits []modelCommit) []modelCommit {
	for i := range commits {
		commits[i].active = commits[i].group == commits[0].group
	}
	return commits
}

// expect runs the command and compares what it says, and what the target has.
func (m *groupModel) expect(args []string, asked []modelCommit, rewind, skipActive bool) {
	m.t.Helper()
	refused := asked[0].active && !skipActive
	wantCode := 0
	var want []string
	after := make(map[modelCommit]int64)
	for _, c := range asked {
		offset, status := m.translate(c.partition, c.source)
		action := "commit"
		switch {
		case status == "beyond_copied", c.active:
			action = "skip"
		case c.target == offset:
			action = "none"
		case c.target > offset && !rewind, refused:
			action = "skip"
		}
		has := c.target
		if action == "commit" {
			has = offset
		}
		if action == "skip" {
			wantCode = 4
		}
		after[c] = has
		text := "-"
		if has >= 0 {
			text = fmt.Sprint(has)
		}
		want = append(want, fmt.Sprintf("%s orders-%d %d->%d %s %s %s", c.group, c.partition, c.source, offset, status, action, text))
	}
	if refused {
		wantCode = 5
	}
	answer := m.groupCase.translate(wantCode, args...)
	answer.rows(m.t, want...)
	for c, offset := range after {
		got := int64(-1)
		if info := m.pair.Target.Fake().GroupInfo(c.group); info != nil {
			if commit, ok := info.Commits["orders"][c.partition]; ok {
				got = commit.Offset
			}
		}
		if got != offset {
			m.t.Errorf("%s: %+v has %d on the target, want %d", strings.Join(args[:2], " "), c, got, offset)
		}
	}
}
