//go:build kafka

package verify_test

import (
	"testing"

	"apograph/internal/kafkatest"
	"apograph/verify"
)

// TestKafkaBothSides verifies copies between real brokers: of what the Java client
// and kgo have written, of a topic that the real cleaner has compacted before
// and after it was copied, and of one whose records were deleted.
func TestKafkaBothSides(t *testing.T) {
	clusters := kafkatest.StartKafkas(t, kafkatest.KafkaOptions{Name: "source"}, kafkatest.KafkaOptions{Name: "target"})
	source, target := clusters[0], clusters[1]
	f := flowBetween(t, 1, source.Bootstrap, target.Bootstrap)
	f.sourceID, f.targetID = source.ClusterID(), target.ClusterID()

	f.must(source.CreateTopic(f.ctx, "java", 2, kafkatest.LoadConfigs()))
	f.must(source.JavaLoad(f.ctx, kafkatest.JavaLoad{Topic: "java", Partitions: 2, Records: 1000, Seed: 1}))
	f.must(kafkatest.Load{Seed: 2, Topics: []string{"kgo"}, Partitions: 2, Records: 600}.Run(f.ctx, source.Bootstrap))
	f.must(source.CreateTopic(f.ctx, "empty", 1, nil))
	for _, topic := range []string{"java", "kgo"} {
		f.must(source.WaitDecided(f.ctx, topic))
	}
	f.copy(kafkatest.LoadConfigs(), "java", "kgo", "empty")
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget, verify.ModeBooks} {
		report := f.verify(mode)
		expect(t, report, verify.Complete, "")
		f.compareCounts(report)
	}

	f.must(source.DeleteRecords(f.ctx, "java", 0, 100))
	report := f.verify(verify.ModeFull, func(c *verify.Config) { c.Topics = []string{"java"} })
	if report.Verdict != verify.Inconclusive || len(report.Findings) != 1 || report.Findings[0].Reason != verify.Retention {
		t.Errorf("verdict %s, findings\n%s", report.Verdict, findings(report))
	}

	f.compacts["compacted"] = true
	f.must(source.CreateTopic(f.ctx, "compacted", 1, kafkatest.CompactedConfigs()))
	f.must(source.FillCompacted(f.ctx, "compacted", 4<<20))
	f.joined = 2000
	f.copy(kafkatest.CompactedConfigs(), "compacted")
	only := func(c *verify.Config) { c.Topics = []string{"compacted"} }
	before := f.verify(verify.ModeFull, only)
	if before.Summary.NotVerified == 0 { // unless the cleaner was quicker
		expect(t, before, verify.Complete, "")
	}
	f.must(source.WaitCompacted(f.ctx, "compacted"))
	after := f.verify(verify.ModeFull, only)
	f.expectCompaction(after, before.Summary.Copied)
}

// TestKafkaNodeDown: one of three brokers, without replicas elsewhere, is down.
// Its partition cannot be read; the two others are verified.
func TestKafkaNodeDown(t *testing.T) {
	clusters := kafkatest.StartKafkas(t,
		kafkatest.KafkaOptions{Name: "source"}, kafkatest.KafkaOptions{Name: "target", Nodes: 3, ReplicationFactor: 1})
	source, target := clusters[0], clusters[1]
	f := flowBetween(t, 1, source.Bootstrap, target.Bootstrap)
	f.sourceID, f.targetID = source.ClusterID(), target.ClusterID()
	f.must(kafkatest.Load{Seed: 1, Topics: []string{"t"}, Partitions: 3, Records: 300}.Run(f.ctx, source.Bootstrap))
	f.must(source.WaitDecided(f.ctx, "t"))
	f.copy(kafkatest.LoadConfigs(), "t")
	expect(t, f.verify(verify.ModeFull), verify.Complete, "")

	node, err := target.Leader(f.ctx, "t", 1)
	f.must(err)
	f.must(target.Kill(node))
	report := f.verify(verify.ModeFull)
	for _, p := range report.Partitions {
		leader := p.Partition == 1
		if got := p.Verdict == verify.Inconclusive && p.NotVerified == p.Copied; got != leader {
			t.Errorf("row is %+v", p)
		}
		if !leader && (p.Verdict != verify.Complete || p.Equal != p.Copied) {
			t.Errorf("row is %+v", p)
		}
	}
}
