package replicate

import (
	"fmt"
	"testing"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/internal/mm2"
)

// BenchmarkDiscovery is what a flow does at each look at its clusters before
// anything of them has changed: it lists the topics of the source, chooses and
// names them, and learns partitions, leaders and settings on both sides. The
// clusters are fake ones, in this process.
func BenchmarkDiscovery(b *testing.B) {
	policy, err := mm2.ParsePolicy(nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, partitions := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("%d partitions", partitions), func(b *testing.B) {
			const each = 5
			pair := kafkatest.NewPair(b, kafkatest.Options{})
			for i := range partitions / each {
				name := fmt.Sprintf("team-%03d.orders.v%d", i%100, i)
				for cluster, topic := range map[*kafkatest.Cluster]string{pair.Source: name, pair.Target: policy.Remote("source", name)} {
					if err := cluster.CreateTopic(b.Context(), topic, each, nil); err != nil {
						b.Fatal(err)
					}
				}
			}
			at := func(alias string, c *kafkatest.Cluster) connect.Cluster {
				return connect.Cluster{Alias: alias, Bootstrap: c.Addresses, Options: c.DialOptions()}
			}
			f, err := newFlow(b.Context(), Config{
				Source: at("source", pair.Source), Target: at("target", pair.Target), LedgerPath: "none",
				Topics: []string{".*"}, TopicsExclude: []string{mm2.DefaultTopicsExclude}, Policy: policy, Heartbeats: true,
			})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			if err := f.connect(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := f.match(nil); err != nil {
					b.Fatal(err)
				}
				topics := sortedTopics(f.topics)
				if f.refuseRoutes(topics, nil); topics[0].stop != nil {
					b.Fatal(topics[0].stop)
				}
				if err := f.inspect(topics); err != nil {
					b.Fatal(err)
				}
				f.lookForDrift(topics)
				if got := len(f.topics) * each; got != partitions {
					b.Fatalf("%d partitions found", got)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(partitions), "µs/partition")
		})
	}
}
