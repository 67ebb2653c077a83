package kafkatest_test

import (
	"bytes"
	"testing"

	"apograph/internal/kafkatest"
)

// TestLoadHasEverything checks that a load of ordinary size contains what its
// comment promises, by looking at the cluster.
func TestLoadHasEverything(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	ctx := testContext(t)
	load := kafkatest.Load{Seed: 1, Topics: []string{"a", "b"}, Partitions: 2, Records: 3000, Configs: map[string]string{"segment.bytes": "100000"}}
	must(t, load.Run(ctx, pair.Source.Bootstrap))
	if configs := pair.Source.Fake().TopicInfo("a").Configs; *configs["segment.bytes"] != "100000" || *configs["retention.ms"] != "-1" {
		t.Errorf("settings %v", configs)
	}

	seen := make(map[string]int)
	fates := make(map[kafkatest.Fate]int64)
	for _, topic := range load.Topics {
		for p := range load.Partitions {
			records, err := pair.Source.ReadCommitted(ctx, topic, p)
			must(t, err)
			for _, r := range records {
				countFeatures(seen, &r)
			}
			for _, tile := range pair.Source.MustSourceTiles(t, topic, p) {
				fates[tile.Fate] += tile.End - tile.Start
			}
		}
	}
	for _, feature := range []string{
		"null key", "empty key", "null value", "empty value", "large value", "headers", "null header",
		"empty header", "empty header name", "repeated header", "before 1970", "far future",
	} {
		if seen[feature] == 0 {
			t.Errorf("no record with %s", feature)
		}
	}
	for _, fate := range []kafkatest.Fate{kafkatest.Committed, kafkatest.CommitMarker, kafkatest.AbortMarker, kafkatest.Aborted} {
		if fates[fate] == 0 {
			t.Errorf("no offset is %v", fate)
		}
	}
	total := fates[kafkatest.Committed] + fates[kafkatest.Aborted]
	if want := int64(load.Records * len(load.Topics)); total < want || total > want+1500 {
		t.Errorf("%d data records, want about %d", total, want)
	}
	t.Logf("features %v, fates %v", seen, fates)
}

func countFeatures(seen map[string]int, r *kafkatest.Record) {
	count := func(name string, yes bool) {
		if yes {
			seen[name]++
		}
	}
	count("null key", r.Key == nil)
	count("empty key", r.Key != nil && len(r.Key) == 0)
	count("null value", r.Value == nil)
	count("empty value", r.Value != nil && len(r.Value) == 0)
	count("large value", len(r.Value) == 100_000)
	count("headers", len(r.Headers) > 0)
	count("before 1970", r.Timestamp < 0)
	count("far future", r.Timestamp > 4_000_000_000_000)
	names := make(map[string]bool)
	for _, h := range r.Headers {
		count("null header", h.Value == nil)
		count("empty header", h.Value != nil && len(h.Value) == 0)
		count("empty header name", h.Key == "")
		count("repeated header", names[h.Key])
		names[h.Key] = true
	}
}

// TestLoadIsAFunctionOfItsSeed appends the same load to two clusters and
// another one to a third.
func TestLoadIsAFunctionOfItsSeed(t *testing.T) {
	first := batchesOf(t, kafkatest.Load{Seed: 7, Topics: []string{"a"}, Partitions: 2, Records: 500})
	again := batchesOf(t, kafkatest.Load{Seed: 7, Topics: []string{"a"}, Partitions: 2, Records: 500})
	other := batchesOf(t, kafkatest.Load{Seed: 8, Topics: []string{"a"}, Partitions: 2, Records: 500})
	if !bytes.Equal(first, again) {
		t.Errorf("the same load has written %d and %d bytes that differ", len(first), len(again))
	}
	if bytes.Equal(first, other) {
		t.Error("another seed has written the same")
	}
}

// TestLoadThroughClient: the same records, whatever the batches.
func TestLoadThroughClient(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	ctx := testContext(t)
	load := kafkatest.Load{Seed: 9, Topics: []string{"a"}, Partitions: 2, Records: 600}
	must(t, load.Run(ctx, pair.Source.Bootstrap))
	load.ThroughClient = true
	must(t, load.Run(ctx, pair.Target.Bootstrap))
	for p := range load.Partitions {
		ours, err := pair.Source.ReadUncommitted(ctx, "a", p)
		must(t, err)
		theirs, err := pair.Target.ReadUncommitted(ctx, "a", p)
		must(t, err)
		if len(ours) != len(theirs) {
			t.Fatalf("partition %d: %d and %d records", p, len(ours), len(theirs))
		}
		for i := range ours {
			if !sameRecord(ours[i], theirs[i]) || ours[i].Offset != theirs[i].Offset {
				t.Fatalf("partition %d: record %d differs", p, i)
			}
		}
	}
	equal(t, "tiles", tilesOf(t, pair.Target, "a"), tilesOf(t, pair.Source, "a"))
}

// batchesOf runs a load and returns all batches without what the cluster
// chooses: producer ids and the times of markers.
func batchesOf(t *testing.T, load kafkatest.Load) []byte {
	t.Helper()
	dir := t.TempDir()
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{DataDir: dir})
	must(t, load.Run(testContext(t), c.Bootstrap))
	c.Stop()
	var all []byte
	for p := range load.Partitions {
		must(t, kafkatest.RewriteLog(dir, load.Topics[0], p, func(batches [][]byte) [][]byte {
			for _, raw := range batches {
				b, err := kafkatest.DecodeBatch(raw)
				must(t, err)
				b.ProducerID = 0
				if b.Control() {
					b.BaseTimestamp, b.MaxTimestamp, b.Records[0].Timestamp = 0, 0, 0
				}
				raw, err = b.Encode()
				must(t, err)
				all = append(all, raw...)
			}
			return batches
		}))
	}
	return all
}
