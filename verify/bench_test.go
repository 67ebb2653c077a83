package verify_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// benchFlow copies records of 1 KiB, in batches of 64, in four partitions.
func benchFlow(b *testing.B, records int, codec kafkatest.Codec) (*kafkatest.Pair, string) {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	pair := kafkatest.NewPair(b, kafkatest.Options{TargetBrokers: 1})
	path := filepath.Join(b.TempDir(), "f.ledger")
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b", SourceClusterID: pair.Source.ID(), TargetClusterID: pair.Target.ID()}, ledger.Options{})
	must(err)
	rng := rand.New(rand.NewPCG(1, 1))
	var pairs []ledger.Pair
	const partitions = 4
	for p := range int32(partitions) {
		pairs = append(pairs, ledger.Pair{SourceTopic: "t", TargetTopic: "t", Partition: p, Producer: ledger.Producer{ID: 1}})
	}
	ids, err := l.OpenPairs(pairs)
	must(err)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		must(c.CreateTopic(b.Context(), "t", partitions, nil))
	}
	source, err := pair.Source.Producer(codec)
	must(err)
	defer source.Close()
	target, err := pair.Target.Producer(codec)
	must(err)
	defer target.Close()
	const batch = 64
	for at := int64(0); at < int64(records/partitions); at += batch {
		for p := range int32(partitions) {
			var one, two []*kgo.Record
			var hashes []uint64
			for i := range int64(batch) {
				value := make([]byte, 1000)
				for k := range value {
					value[k] = "abcdefghijklmnop"[rng.IntN(16)]
				}
				r := kgo.Record{Topic: "t", Partition: p, Key: []byte("some key"), Value: value, Timestamp: time.UnixMilli(1_700_000_000_000 + at + i)}
				other := r
				one, two = append(one, &r), append(two, &other)
				hashes = append(hashes, hashOf(&kafkatest.Record{Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}))
			}
			must(source.Append(b.Context(), one...))
			must(target.Append(b.Context(), two...))
			r := ledger.Range{Start: at, End: at + batch}
			must(l.Append(ids[p], ledger.Entry{Tile: ledger.Copied, Source: r, Target: r, Bytes: 1 << 16, Digest: naiveDigest(hashes), LeaderEpoch: -1}))
		}
	}
	must(l.Commit())
	must(l.Close())
	return pair, path
}

// BenchmarkVerify compares verification in mode full with what it cannot beat:
// the same consumer reading both sides and doing nothing with them.
func BenchmarkVerify(b *testing.B) {
	for _, codec := range []kafkatest.Codec{kafkatest.None, kafkatest.LZ4} {
		const records = 122_880
		pair, path := benchFlow(b, records, codec)
		b.Run(codec.String()+"/consume", func(b *testing.B) {
			b.SetBytes(2 * records * 1024)
			for b.Loop() {
				var both sync.WaitGroup
				both.Go(func() { consumeAll(b, pair.Source, records, kgo.ReadCommitted()) })
				both.Go(func() { consumeAll(b, pair.Target, records, kgo.ReadUncommitted()) })
				both.Wait()
			}
		})
		b.Run(codec.String()+"/verify", func(b *testing.B) {
			b.SetBytes(2 * records * 1024)
			for b.Loop() {
				report, err := verify.Run(b.Context(), verify.Config{LedgerPath: path, Source: cluster(pair.Source.Bootstrap), Target: cluster(pair.Target.Bootstrap)})
				if err != nil {
					b.Fatal(err)
				}
				if report.Verdict != verify.Complete || report.Summary.Equal != records {
					b.Fatalf("verdict %s, %+v", report.Verdict, report.Summary)
				}
			}
		})
	}
}

// BenchmarkSample reads every other block: what it costs to begin anew at each,
// and to read around it.
func BenchmarkSample(b *testing.B) {
	const records = 245_760 // four blocks in each partition
	pair, path := benchFlow(b, records, kafkatest.None)
	for of := 1; of <= 2; of++ {
		b.Run(verify.Slice{Index: 1, Of: of}.String(), func(b *testing.B) {
			b.SetBytes(2 * records * 1024 / int64(of))
			for b.Loop() {
				report, err := verify.Run(b.Context(), verify.Config{
					LedgerPath: path, Source: cluster(pair.Source.Bootstrap), Target: cluster(pair.Target.Bootstrap), Sample: verify.Slice{Index: 1, Of: of},
				})
				if err != nil {
					b.Fatal(err)
				}
				if report.Verdict == verify.Faults || report.Summary.Equal == 0 {
					b.Fatalf("verdict %s, %+v", report.Verdict, report.Summary)
				}
			}
		})
	}
}

func consumeAll(b *testing.B, c *kafkatest.Cluster, records int, level kgo.IsolationLevel) {
	client := c.NewClient(b, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords())
	defer client.Close()
	for n := 0; n < records; {
		fetches := client.PollFetches(context.WithoutCancel(b.Context()))
		if err := fetches.Err(); err != nil {
			b.Error(err)
			return
		}
		n += fetches.NumRecords()
	}
}
