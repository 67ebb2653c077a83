package verify_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// A flow is a pair of clusters, a ledger, and a naive copier that fills both the
// target and the ledger: one record after the other, from what the oracle says
// that the source holds. It shares no code with the product but the ledger's
// format.
type flow struct {
	t    *testing.T
	ctx  context.Context
	pair *kafkatest.Pair // nil on real brokers
	path string

	source, target     kafkatest.Bootstrap
	sourceID, targetID string
	rng                *rand.Rand

	// joined bounds how many offsets an entry spans. The ledger joins entries of
	// one commit; with apart each is a commit of its own.
	joined int
	apart  bool
	// compacts says of a topic that what is absent was compacted.
	compacts map[string]bool
	// asPair has the copier write as the pair's producer does, and not as any.
	asPair  bool
	written int32 // records that it has written
	// replaced says of a topic that its target stamps its own times.
	replaced map[string]bool
}

func newFlow(t *testing.T, seed uint64) *flow {
	t.Helper()
	pair := kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir(), TargetBrokers: 1})
	f := flowBetween(t, seed, pair.Source.Bootstrap, pair.Target.Bootstrap)
	f.pair, f.sourceID, f.targetID = pair, pair.Source.ID(), pair.Target.ID()
	return f
}

func flowBetween(t *testing.T, seed uint64, source, target kafkatest.Bootstrap) *flow {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	t.Logf("seed %d", seed)
	return &flow{
		t: t, ctx: ctx, source: source, target: target,
		path: filepath.Join(t.TempDir(), "f.ledger"),
		rng:  rand.New(rand.NewPCG(seed, 1)), joined: 40,
		compacts: map[string]bool{}, replaced: map[string]bool{},
	}
}

func (f *flow) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// open opens the ledger, or makes it.
func (f *flow) open() *ledger.Ledger {
	f.t.Helper()
	l, err := ledger.Open(f.path, ledger.Options{})
	if err == nil {
		return l
	}
	l, err = ledger.Create(f.path, ledger.Identity{
		SourceAlias: "a", TargetAlias: "b",
		SourceClusterID: f.sourceID, TargetClusterID: f.targetID,
	}, ledger.Options{})
	f.must(err)
	kafkatest.CheckLedgerAtEnd(f.t, f.path)
	return l
}

// edit changes the ledger.
func (f *flow) edit(change func(l *ledger.Ledger) error) {
	f.t.Helper()
	l := f.open()
	f.must(change(l))
	f.must(l.Commit())
	f.must(l.Close())
}

func (f *flow) topic(b kafkatest.Bootstrap, topic string) kadm.TopicDetail {
	f.t.Helper()
	details, err := kadm.NewClient(b.NewClient(f.t)).ListTopics(f.ctx, topic)
	f.must(err)
	return details[topic]
}

func (f *flow) topicID(b kafkatest.Bootstrap, topic string) ledger.TopicID {
	f.t.Helper()
	return ledger.TopicID(f.topic(b, topic).ID)
}

// copy copies topics as far as they are decided. Topics that have no book get
// one, and a topic on the target with the given settings.
func (f *flow) copy(configs map[string]string, topics ...string) {
	f.t.Helper()
	f.edit(func(l *ledger.Ledger) error {
		for _, topic := range topics {
			n := int32(len(f.topic(f.source, topic).Partitions))
			if len(pairsOf(l, topic)) == 0 {
				if f.topic(f.target, topic).Err != nil {
					f.must(f.target.CreateTopic(f.ctx, topic, n, configs))
				}
				f.openPairs(l, topic, n)
			}
			for _, pair := range pairsOf(l, topic) {
				f.copyPartition(l, pair)
			}
		}
		return l.SetScope(ledger.Scope{Topics: topics})
	})
}

func pairsOf(l *ledger.Ledger, topic string) []ledger.Pair {
	var pairs []ledger.Pair
	for _, p := range l.Pairs() {
		if p.SourceTopic == topic && p.Closed == nil {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

func (f *flow) openPairs(l *ledger.Ledger, topic string, n int32) {
	f.t.Helper()
	var pairs []ledger.Pair
	for p := range n {
		source, err := f.source.ReadBounds(f.ctx, topic, p)
		f.must(err)
		target, err := f.target.ReadBounds(f.ctx, topic, p)
		f.must(err)
		pairs = append(pairs, ledger.Pair{
			SourceTopic: topic, SourceTopicID: f.topicID(f.source, topic),
			TargetTopic: topic, TargetTopicID: f.topicID(f.target, topic),
			Partition: p, ScopeStart: source.LogStart, TargetBase: target.HighWatermark,
			Producer: ledger.Producer{ID: ourProducer, Epoch: 0},
		})
	}
	_, err := l.OpenPairs(pairs)
	f.must(err)
}

// A cell is one source offset as the naive copier sees it.
type cell struct {
	tile   ledger.Tile
	record *kafkatest.Record
}

// copyPartition copies from the book's end to what is decided now.
func (f *flow) copyPartition(l *ledger.Ledger, pair ledger.Pair) {
	f.t.Helper()
	cells, bounds := f.cells(pair.SourceTopic, pair.Partition)
	for start := l.End(pair.ID).Source; start < int64(len(cells)); {
		end := min(start+1+f.rng.Int64N(int64(f.joined)), int64(len(cells)))
		f.copyChunk(l, pair, cells, start, end)
		if f.apart {
			f.must(l.Commit())
		}
		start = end
	}
	f.must(l.SetState(pair.ID, ledger.State{
		LogStart: bounds.LogStart, LastStable: bounds.LastStable, HighWatermark: bounds.HighWatermark,
		SeenMillis: time.Now().UnixMilli(), CompactSeen: f.compacts[pair.SourceTopic],
	}))
}

// cells returns what every decided offset of a source partition is.
func (f *flow) cells(topic string, partition int32) ([]cell, kafkatest.Bounds) {
	f.t.Helper()
	bounds, err := f.source.ReadBounds(f.ctx, topic, partition)
	f.must(err)
	cells := make([]cell, bounds.LastStable)
	for _, t := range f.source.MustSourceTiles(f.t, topic, partition) {
		for o := t.Start; o < t.End && t.Fate != kafkatest.Undecided; o++ {
			cells[o].tile = f.tileOf(topic, t.Fate)
		}
	}
	records, err := f.source.ReadCommitted(f.ctx, topic, partition)
	f.must(err)
	for i := range records {
		cells[records[i].Offset].record = &records[i]
	}
	for o := range cells {
		if cells[o].tile == ledger.Copied && cells[o].record == nil { // a cleaner came in between
			cells[o].tile = f.tileOf(topic, kafkatest.Absent)
		}
	}
	return cells, bounds
}

func (f *flow) tileOf(topic string, fate kafkatest.Fate) ledger.Tile {
	switch fate {
	case kafkatest.Committed:
		return ledger.Copied
	case kafkatest.CommitMarker:
		return ledger.CommitMarker
	case kafkatest.AbortMarker:
		return ledger.AbortMarker
	case kafkatest.Aborted:
		return ledger.Aborted
	case kafkatest.Absent:
		if f.compacts[topic] {
			return ledger.Compacted
		}
		return ledger.Unexplained
	default:
		return ledger.Lost
	}
}

// copyChunk copies [start, end): one copied entry from the first record to the
// last, if they allow it, and the rest as tiles of their own.
func (f *flow) copyChunk(l *ledger.Ledger, pair ledger.Pair, cells []cell, start, end int64) {
	f.t.Helper()
	for o := start; o < end; {
		if cells[o].tile != ledger.Copied {
			f.append(l, pair, ledger.Entry{Tile: cells[o].tile, Source: ledger.Range{Start: o, End: o + 1}})
			o++
			continue
		}
		last := o
		for i := o; i < end && canBeGap(cells[i].tile); i++ {
			if cells[i].tile == ledger.Copied {
				last = i
			}
		}
		f.copyRun(l, pair, cells, o, last+1)
		o = last + 1
	}
}

func canBeGap(t ledger.Tile) bool { return t <= ledger.Compacted }

// copyRun copies [start, end), which begins and ends with a record, as one
// batch and one entry.
func (f *flow) copyRun(l *ledger.Ledger, pair ledger.Pair, cells []cell, start, end int64) {
	f.t.Helper()
	e := ledger.Entry{Tile: ledger.Copied, Source: ledger.Range{Start: start, End: end}, TimestampsReplaced: f.replaced[pair.SourceTopic]}
	var batch []*kgo.Record
	var hashes []uint64
	for o := start; o < end; o++ {
		c := cells[o]
		if c.tile != ledger.Copied {
			e.Gaps = append(e.Gaps, ledger.Gap{Tile: c.tile, Range: ledger.Range{Start: o, End: o + 1}})
			continue
		}
		batch = append(batch, producible(pair, c.record))
		record := *c.record
		if e.TimestampsReplaced {
			record.Timestamp = 0
		}
		canonical := canonicalBytes(&record)
		hashes = append(hashes, xxhash.Sum64(canonical))
		e.Bytes += int64(len(canonical))
	}
	e.Digest = naiveDigest(hashes)
	if codecs := kafkatest.Codecs(); f.asPair {
		f.writeAsPair(batch)
	} else {
		f.must(f.target.Append(f.ctx, codecs[f.rng.IntN(len(codecs))], batch...))
	}
	f.append(l, pair, e)
}

// ourProducer is the producer id of all pairs.
const ourProducer = 1 << 50

// wrote writes plain records [from, from+n) to partition 0 of the target as the
// pair's producer does, and books nothing.
func (f *flow) wrote(topic string, from, n int) {
	f.t.Helper()
	f.writeAsPair(plainRecords(topic, from, n))
}

// writeAsPair writes a batch of records without headers to the target as the
// pair's producer does. All must be of one partition.
func (f *flow) writeAsPair(batch []*kgo.Record) {
	f.t.Helper()
	var records []kafkatest.BatchRecord
	for _, r := range batch {
		records = append(records, kafkatest.BatchRecord{Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value})
	}
	b := kafkatest.NewBatch(0, records...)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = ourProducer, 0, f.written
	f.written += int32(len(batch))
	raw, err := b.Encode()
	f.must(err)
	_, err = f.target.AppendBatch(f.ctx, batch[0].Topic, batch[0].Partition, raw)
	f.must(err)
}

func producible(pair ledger.Pair, r *kafkatest.Record) *kgo.Record {
	out := &kgo.Record{Topic: pair.TargetTopic, Partition: pair.Partition, Timestamp: time.UnixMilli(r.Timestamp), Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return out
}

// append books an entry where the books end; its target range follows from the
// source's.
func (f *flow) append(l *ledger.Ledger, pair ledger.Pair, e ledger.Entry) {
	f.t.Helper()
	end := l.End(pair.ID)
	e.LeaderEpoch = -1
	if e.Tile == ledger.Copied {
		n := e.Source.Len()
		for _, g := range e.Gaps {
			n -= g.Range.Len()
		}
		e.Target = ledger.Range{Start: end.Target, End: end.Target + n}
	} else if e.Target.Empty() {
		e.Target = ledger.Range{Start: end.Target, End: end.Target}
	}
	f.must(l.Append(pair.ID, e))
}

// canonicalBytes writes a record as the design defines it.
func canonicalBytes(r *kafkatest.Record) []byte {
	field := func(b, v []byte) []byte {
		if v == nil {
			return binary.BigEndian.AppendUint32(b, 0xffffffff)
		}
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(r.Timestamp))
	b = field(field(b, r.Key), r.Value)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Headers)))
	for _, h := range r.Headers {
		b = field(field(b, []byte(h.Key)), h.Value)
	}
	return b
}

// naiveDigest folds hashes as the design defines it.
func naiveDigest(hashes []uint64) ledger.Digest {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 61), big.NewInt(1))
	base := new(big.Int).Mod(new(big.Int).SetUint64(xxhash.Sum64String("apograph/digest/1")), p)
	sum := new(big.Int)
	for _, h := range hashes {
		sum.Mul(sum, base)
		sum.Add(sum, new(big.Int).Mod(new(big.Int).SetUint64(h), p))
		sum.Add(sum, big.NewInt(1))
		sum.Mod(sum, p)
	}
	return ledger.Digest(sum.Uint64())
}

// cluster returns a cluster as the product takes it.
func cluster(b kafkatest.Bootstrap) *connect.Cluster {
	return &connect.Cluster{Bootstrap: b.Addresses, Options: b.DialOptions()}
}

// verify verifies the flow; change may change the configuration.
func (f *flow) verify(mode verify.Mode, change ...func(*verify.Config)) *verify.Report {
	f.t.Helper()
	config := verify.Config{
		LedgerPath: f.path, Mode: mode, Patience: 10 * time.Second, Version: "test",
		Source: cluster(f.source), Target: cluster(f.target),
	}
	for _, c := range change {
		c(&config)
	}
	report, err := verify.Run(f.ctx, config)
	if err != nil {
		f.t.Fatalf("verify %s: %v", mode, err)
	}
	checkSums(f.t, report)
	return report
}

// checkSums checks what a report promises of its counts, from its JSON.
func checkSums(t *testing.T, report *verify.Report) {
	t.Helper()
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Summary    map[string]any   `json:"summary"`
		Partitions []map[string]any `json:"partitions"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	total := map[string]float64{}
	for _, row := range append([]map[string]any{document.Summary}, document.Partitions...) {
		sum := func(names string) float64 {
			n := 0.0
			for name := range strings.FieldsSeq(names) {
				n += row[name].(float64)
			}
			return n
		}
		if got, want := sum("copied commit_markers abort_markers aborted compacted filtered before_start lost unexplained not_copied_yet"), row["source_offsets"]; got != want {
			t.Errorf("offsets add up to %v, not to %v: %v", got, want, row)
		}
		if got, want := sum("equal missing changed reordered not_verified"), row["copied"]; got != want {
			t.Errorf("records add up to %v, not to %v: %v", got, want, row)
		}
	}
	for _, row := range document.Partitions {
		for name, n := range row {
			if n, ok := n.(float64); ok {
				total[name] += n
			}
		}
	}
	for name, n := range document.Summary {
		if name != "partitions" && total[name] != n {
			t.Errorf("summary: %s is %v, the rows add up to %v", name, n, total[name])
		}
	}
}

// findings returns a report's findings as text, one a line.
func findings(report *verify.Report) string {
	var b strings.Builder
	for _, f := range report.Findings {
		fmt.Fprintf(&b, "%s", f.Kind)
		if f.Reason != "" {
			fmt.Fprintf(&b, "(%s)", f.Reason)
		}
		if !f.Fault {
			b.WriteString(" no fault")
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf(" %s-%d source %v target %v", f.Topic, f.Partition, f.Source, f.Target), " ") + "\n")
	}
	return b.String()
}

// expect fails the test unless the report has this verdict and these findings.
func expect(t *testing.T, report *verify.Report, verdict verify.Verdict, want string) {
	t.Helper()
	if report.Verdict != verdict {
		t.Errorf("verdict of mode %s is %s, want %s", report.Mode, report.Verdict, verdict)
	}
	var lines []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line+"\n")
		}
	}
	if got, want := findings(report), strings.Join(lines, ""); got != want {
		t.Errorf("findings of mode %s are\n%swant\n%s", report.Mode, got, want)
		for _, f := range report.Findings {
			t.Logf("%s: %s", f.Kind, f.Detail)
		}
	}
}

func sum64(b []byte) uint64 { return xxhash.Sum64(b) }
