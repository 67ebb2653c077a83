package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"apograph/ledger"
)

// fixtureTime is when everything in the ledgers of these tests happened.
func fixtureTime() time.Time { return time.Date(2026, 11, 29, 20, 13, 51, 7_000_000, time.UTC) }

// makeLedger makes the ledger that the tests of this package look at. It is the
// same every time, and holds every kind of tile, two generations of one
// partition, a topic with another name on the target, and one without an id.
//
//	orders-0, target base 5, scope from 10
//
//	source   0..9   10 11 12  13 14 15 16  17..19  20..24        25     26 27
//	         before  c  c  c  cm  c  c ab am cp cp lost filtered unexpl  c  c
//	target           5  6  7      8  9                     10 11 dup, 12 foreign, 13 orphan, 14 15
func makeLedger(path string) (err error) {
	l, err := ledger.Create(path, ledger.Identity{
		LedgerID:    "fixture-1",
		SourceAlias: "a", TargetAlias: "b",
		SourceClusterID: "cluster-a", TargetClusterID: "cluster-b",
		CreatedMillis: fixtureTime().UnixMilli(),
	}, ledger.Options{Now: fixtureTime})
	if err != nil {
		return err
	}
	ids, err := l.OpenPairs(fixturePairs())
	if err != nil {
		return err
	}
	for i, entries := range fixtureEntries() {
		if err := l.Append(ids[i], entries...); err != nil {
			return err
		}
		if err := l.Commit(); err != nil {
			return err
		}
	}
	if err := reopenPair(l, ids[1]); err != nil {
		return err
	}
	if err := l.Check(context.Background(), func(v ledger.Violation) { err = fmt.Errorf("fixture: %v", v) }); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// mustMakeLedger makes the ledger of the tests at a path, which it returns.
func mustMakeLedger(t *testing.T, path string) string {
	t.Helper()
	if err := makeLedger(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func fixturePairs() []ledger.Pair {
	orders, renamed := fixtureTopicID("orders"), fixtureTopicID("b.orders")
	return []ledger.Pair{
		{SourceTopic: "orders", SourceTopicID: orders, TargetTopic: "b.orders", TargetTopicID: renamed,
			Partition: 0, ScopeStart: 10, TargetBase: 5, Producer: ledger.Producer{ID: 4000, Epoch: 0}},
		{SourceTopic: "orders", SourceTopicID: orders, TargetTopic: "b.orders", TargetTopicID: renamed,
			Partition: 1, Producer: ledger.Producer{ID: 4000, Epoch: 0}},
		{SourceTopic: "audit", TargetTopic: "pay", Partition: 0, TargetBase: 2, Producer: ledger.Producer{ID: 4000}},
	}
}

// fixtureEntries returns the entries of each pair of fixturePairs, behind the
// before_start that opening a pair writes.
func fixtureEntries() [][]ledger.Entry {
	return [][]ledger.Entry{
		{
			{
				Tile: ledger.Copied, Source: ledger.Range{Start: 10, End: 20}, Target: ledger.Range{Start: 5, End: 10},
				Gaps: []ledger.Gap{
					{Tile: ledger.CommitMarker, Range: ledger.Range{Start: 13, End: 14}},
					{Tile: ledger.Aborted, Range: ledger.Range{Start: 16, End: 17}},
					{Tile: ledger.AbortMarker, Range: ledger.Range{Start: 17, End: 18}},
					{Tile: ledger.Compacted, Range: ledger.Range{Start: 18, End: 20}},
				},
				Bytes: 500, Digest: fixtureDigest(1, 2, 3, 4, 5), LeaderEpoch: 3,
			},
			{
				Tile: ledger.Lost, Source: ledger.Range{Start: 20, End: 24}, Target: ledger.Range{Start: 10, End: 10},
				Cause: ledger.CauseRetention, LastKnownMillis: fixtureTime().UnixMilli() - 60_000, LeaderEpoch: -1,
			},
			{
				Tile: ledger.Filtered, Source: ledger.Range{Start: 24, End: 25}, Target: ledger.Range{Start: 10, End: 10},
				Cause: ledger.CausePerson, Reason: "ann: too, \"large\" \u202e", LeaderEpoch: -1,
			},
			{
				Tile: ledger.Unexplained, Source: ledger.Range{Start: 25, End: 26}, Target: ledger.Range{Start: 10, End: 10},
				LeaderEpoch: 3,
			},
			{
				Tile: ledger.Duplicate, Source: ledger.Range{Start: 26, End: 26}, Target: ledger.Range{Start: 10, End: 12},
				Origin: ledger.Range{Start: 11, End: 13}, LeaderEpoch: -1,
			},
			{
				Tile: ledger.Foreign, Source: ledger.Range{Start: 26, End: 26}, Target: ledger.Range{Start: 12, End: 13},
				Cause: ledger.CauseAborted, LeaderEpoch: -1,
			},
			{
				Tile: ledger.Orphan, Source: ledger.Range{Start: 26, End: 26}, Target: ledger.Range{Start: 13, End: 14},
				LeaderEpoch: -1,
			},
			{
				Tile: ledger.Copied, Source: ledger.Range{Start: 26, End: 28}, Target: ledger.Range{Start: 14, End: 16},
				Bytes: 90, Digest: fixtureDigest(6, 7), TimestampsReplaced: true, LeaderEpoch: 4,
			},
		},
		{{
			Tile: ledger.Copied, Source: ledger.Range{Start: 0, End: 3}, Target: ledger.Range{Start: 0, End: 3},
			Bytes: 120, Digest: fixtureDigest(8, 9, 10), LeaderEpoch: 1,
		}},
		{{
			Tile: ledger.Copied, Source: ledger.Range{Start: 0, End: 1}, Target: ledger.Range{Start: 2, End: 3},
			Bytes: 40, Digest: fixtureDigest(11), LeaderEpoch: -1,
		}},
	}
}

// reopenPair closes a pair and opens its next generation, as after the source
// topic was created again.
func reopenPair(l *ledger.Ledger, id ledger.PairID) error {
	pair, _ := l.Pair(id)
	base := l.End(id).Target
	if err := l.ClosePair(id, ledger.Closing{Reason: "topic_recreated", AtMillis: fixtureTime().UnixMilli()}); err != nil {
		return err
	}
	_, err := l.OpenPairs([]ledger.Pair{{
		SourceTopic: pair.SourceTopic, SourceTopicID: fixtureTopicID("orders again"),
		TargetTopic: pair.TargetTopic, TargetTopicID: pair.TargetTopicID,
		Partition: pair.Partition, TargetBase: base, ScopeStart: 2, Producer: pair.Producer,
	}})
	return err
}

// fixtureTopicID returns an id that only depends on a name.
func fixtureTopicID(name string) ledger.TopicID {
	var id ledger.TopicID
	copy(id[:], name+"\xfb\xff")
	return id
}

func fixtureDigest(hashes ...uint64) ledger.Digest {
	var d ledger.Digest
	for _, h := range hashes {
		d = d.Add(h)
	}
	return d
}
