//go:build kafka

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// failoverRecords is how many records the topic of TestKafkaFailover has at least
// before its cleaner comes.
const failoverRecords = 145_000

// TestKafkaFailover copies a topic of 100,000 records, with transactions and holes
// that the real cleaner made, by MirrorMaker 2 and by apograph at once, each to a
// cluster of its own, with 30 groups. Then both copiers and the source are gone,
// and consumers of all kinds go on at the targets. Counted is what they never read
// and what they read again.
func TestKafkaFailover(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	step := func(what string, do func()) {
		do()
		t.Logf("%s: %v", what, time.Since(began).Round(time.Second))
	}
	f := startFailover(ctx, t)
	step("filled", f.fill)
	step("groups stand", f.choose)
	step("copied", func() { f.startCopiers(); f.copiedAll("orders", "puzzle") })
	step("more is appended", func() { f.later(); f.puzzle() })
	step("settled", f.settled)
	f.must(f.mm2.Kill())
	f.flow.kill()
	t.Run("Consumers", func(t *testing.T) { f.consumers(t) })
	t.Run("Puzzle", func(t *testing.T) { f.puzzled(t) })
	t.Run("OffsetSyncs", func(t *testing.T) { f.offsetSyncs(t) })
}

// A failover is a source, and a target for each copier.
type failover struct {
	t                    *testing.T
	ctx                  context.Context
	source, ours, theirs *kafkatest.Kafka
	flow                 *fileFlow
	mm2                  *kafkatest.MirrorMaker
	positions            []failoverPosition
	end                  int64 // of the source, when the idle groups stopped
}

// A failoverPosition is where a group stands on the source.
type failoverPosition struct {
	group     string // a number, and what is special about it
	committed int64
}

func startFailover(ctx context.Context, t *testing.T) *failover {
	t.Helper()
	k := kafkatest.StartKafkas(t, kafkatest.KafkaOptions{Name: "source"}, kafkatest.KafkaOptions{Name: "ours"}, kafkatest.KafkaOptions{Name: "theirs"})
	return &failover{t: t, ctx: ctx, source: k[0], ours: k[1], theirs: k[2]}
}

func (f *failover) must(errs ...error) {
	f.t.Helper()
	if err := errors.Join(errs...); err != nil {
		f.t.Fatal(err)
	}
}

// fill fills the topic, has the cleaner clean it, and removes its beginning.
func (f *failover) fill() {
	f.t.Helper()
	configs := kafkatest.CompactedConfigs()
	configs["cleanup.policy"] = "compact,delete" // else records cannot be deleted
	configs["min.cleanable.dirty.ratio"] = "1"   // not yet
	load := uniqueLoad{seed: 8, topic: "orders", name: "first", records: failoverRecords, batch: 400, padding: 70}
	f.must(
		f.source.CreateTopic(f.ctx, "orders", 1, configs),
		f.source.CreateTopic(f.ctx, "puzzle", 1, kafkatest.LoadConfigs()),
		load.run(f.ctx, f.source),
		f.source.WaitDecided(f.ctx, "orders"),
		f.source.SetTopicConfig(f.ctx, "orders", "min.cleanable.dirty.ratio", "0.01"),
		f.source.WaitCompacted(f.ctx, "orders"),
		f.source.DeleteRecords(f.ctx, "orders", 0, 1000),
	)
	f.appendNumbered("puzzle", 0, 20)
}

// appendNumbered appends records of their numbers as one batch.
func (f *failover) appendNumbered(topic string, from, to int) {
	f.t.Helper()
	var records []*kgo.Record
	for i := from; i < to; i++ {
		records = append(records, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%d", i)})
	}
	f.must(f.source.Append(f.ctx, kafkatest.None, records...))
}

// choose chooses where groups stand, and commits it.
func (f *failover) choose() {
	f.t.Helper()
	tiles := f.source.MustSourceTiles(f.t, "orders", 0)
	f.end = tiles[len(tiles)-1].End
	byFate := map[kafkatest.Fate][]kafkatest.SourceTile{}
	for _, tile := range tiles {
		byFate[tile.Fate] = append(byFate[tile.Fate], tile)
	}
	for fate, of := range byFate {
		f.t.Logf("%v: %d runs", fate, len(of))
	}
	start := tiles[0].End
	f.stand("at 0", 0)
	f.stand("below the log start", start/2)
	f.stand("at the log start", start)
	for _, at := range []struct {
		what     string
		fate     kafkatest.Fate
		fraction int // of eighths of the runs of that fate
	}{
		{"at a commit marker", kafkatest.CommitMarker, 2}, {"at a commit marker", kafkatest.CommitMarker, 7},
		{"at an abort marker", kafkatest.AbortMarker, 4},
		{"in an aborted transaction", kafkatest.Aborted, 1}, {"in an aborted transaction", kafkatest.Aborted, 6},
		{"in a hole", kafkatest.Absent, 1}, {"in a hole", kafkatest.Absent, 4}, {"in a hole", kafkatest.Absent, 6},
	} {
		of := byFate[at.fate]
		if len(of) == 0 {
			f.t.Fatalf("the log has no %v offsets", at.fate)
		}
		tile := of[len(of)*at.fraction/8]
		f.stand(at.what, (tile.Start+tile.End)/2)
	}
	marker := byFate[kafkatest.CommitMarker][len(byFate[kafkatest.CommitMarker])/2]
	f.stand("behind a commit marker", marker.End)
	for tenth := range int64(9) {
		f.stand(fmt.Sprintf("%d tenths of the log", tenth+1), f.end*(tenth+1)/10)
	}
	rng := rand.New(rand.NewPCG(8, 30))
	f.stand("anywhere", start+rng.Int64N(f.end-start))
	f.stand("in mid-stream, classic", f.end-3000)
	f.stand("in mid-stream, consumer", f.end-3000)
	f.stand("100 before the end", f.end-100)
	f.stand("2 before the end", f.end-2)
	f.stand("idle since the end", f.end)
	f.stand("idle since 1 before", f.end-1)
	f.stand("caught up", f.end)
	f.stand("1 behind", f.end-1)
	if len(f.positions) != 30 {
		f.t.Fatalf("%d positions", len(f.positions))
	}
	commitAll(f.t, f.source, f.places())
	// So that MirrorMaker knows of the group.
	commitAll(f.t, f.source, map[groupPlace]int64{{"puzzle", "orders", 0}: f.end})
}

func (f *failover) stand(what string, committed int64) {
	f.positions = append(f.positions, failoverPosition{fmt.Sprintf("%02d %s", len(f.positions)+1, what), committed})
}

func (f *failover) places() map[groupPlace]int64 {
	places := map[groupPlace]int64{}
	for _, p := range f.positions {
		places[groupPlace{p.group, "orders", 0}] = p.committed
	}
	return places
}

func (f *failover) groups() []string {
	var groups []string
	for _, p := range f.positions {
		groups = append(groups, p.group)
	}
	return groups
}

// startCopiers starts both. MirrorMaker has its defaults but for its periods, which
// are shorter, to its advantage: with the default of 60 s between its flushes what
// it knows of a partition's end is older.
func (f *failover) startCopiers() {
	f.t.Helper()
	file := filepath.Join(f.t.TempDir(), "mm2.properties")
	topics := "topics=orders, puzzle"
	writeMirrorFile(f.t, file, []namedCluster{{"A", f.source}, {"M", f.theirs}}, []string{"A->M"},
		topics, "offset.flush.interval.ms=5000", "refresh.groups.interval.seconds=5", "refresh.topics.interval.seconds=5")
	f.mm2 = f.source.StartMirrorMaker(f.t, file)
	f.flow = newFileFlow(f.t, []namedCluster{{"A", f.source}, {"B", f.ours}}, []string{"A->B"}, topics)
	f.flow.start()
}

// soon waits for something that copiers do.
func (f *failover) soon(what string, holds func() bool) {
	f.t.Helper()
	running := func() bool {
		if !f.mm2.Running() {
			f.t.Fatalf("MirrorMaker has ended by itself, before: %s", what)
		}
		return holds()
	}
	if !within(f.t, 2*time.Minute, running) {
		f.t.Fatalf("never: %s", what)
	}
}

// A sourceState is what a topic of the source holds at a time.
type sourceState struct {
	topic          string
	committed, all int64 // records, without and with those of aborted transactions
	last           int64 // offset of the last record
}

func (f *failover) state(topic string) sourceState {
	f.t.Helper()
	f.must(f.source.WaitDecided(f.ctx, topic))
	committed, err := f.source.ReadCommitted(f.ctx, topic, 0)
	f.must(err)
	all, err := f.source.ReadUncommitted(f.ctx, topic, 0)
	f.must(err)
	return sourceState{topic, int64(len(committed)), int64(len(all)), all[len(all)-1].Offset}
}

// copiedAll waits until both have copied what the source holds of topics, and
// MirrorMaker has written a sync of each one's last record. It copies aborted
// records as well.
func (f *failover) copiedAll(topics ...string) {
	f.t.Helper()
	for _, topic := range topics {
		state := f.state(topic)
		f.soon("apograph copies "+topic, func() bool { return f.holds(f.ours, topic, state.committed) })
		f.soon("MirrorMaker copies "+topic, func() bool { return f.holds(f.theirs, topic, state.all) })
		f.soon("MirrorMaker's sync of the end of "+topic, func() bool {
			syncs := f.syncs("mm2-offset-syncs.M.internal", topic)
			return len(syncs) > 0 && syncs[len(syncs)-1].upstream == state.last
		})
	}
}

func (f *failover) holds(target *kafkatest.Kafka, topic string, records int64) bool {
	bounds, err := target.ReadBounds(f.ctx, "A."+topic, 0)
	return err == nil && bounds.HighWatermark == records
}

// later appends more, and some groups go on with it, of which two end in the middle
// of it, with records that they have read and not committed: the others stay where
// they are.
func (f *failover) later() {
	f.t.Helper()
	load := uniqueLoad{seed: 9, topic: "orders", name: "later", records: failoverRecords / 10, batch: 60, padding: 70}
	var consumers sync.WaitGroup
	for suffix, options := range map[string][]kgo.Opt{", classic": nil, ", consumer": {kgo.ServerSideBalancer()}} {
		p := f.position("in mid-stream" + suffix)
		consumers.Go(func() {
			var err error
			if p.committed, err = consumeSome(f.ctx, f.source, p.group, 5_130, 250, options); err != nil {
				f.t.Errorf("group %s: %v", p.group, err)
			}
		})
	}
	f.must(load.run(f.ctx, f.source), f.source.WaitDecided(f.ctx, "orders"))
	consumers.Wait()
	bounds, err := f.source.ReadBounds(f.ctx, "orders", 0)
	f.must(err)
	for _, suffix := range []string{"caught up", "1 behind"} {
		f.position(suffix).committed += bounds.HighWatermark - f.end
	}
	commitAll(f.t, f.source, f.places())
}

// position returns that of one group.
func (f *failover) position(what string) *failoverPosition {
	f.t.Helper()
	i := slices.IndexFunc(f.positions, func(p failoverPosition) bool { return p.group[len("00 "):] == what })
	if i < 0 {
		f.t.Fatalf("no group %q", what)
	}
	return &f.positions[i]
}

// consumeSome has a member of a group read so many records of orders as they come,
// and commit behind every so many. It returns what it has committed.
func consumeSome(ctx context.Context, on *kafkatest.Kafka, group string, records, every int, options []kgo.Opt) (committed int64, err error) {
	client, err := on.Client(append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
	}, options...)...)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for read := 0; read < records; {
		fetches := client.PollRecords(ctx, min(every-read%every, records-read))
		if err := fetches.Err(); err != nil {
			return 0, err
		}
		all := fetches.Records()
		if read += len(all); read%every > 0 || len(all) == 0 {
			continue
		}
		if err := client.CommitRecords(ctx, all...); err != nil {
			return 0, err
		}
		committed = all[len(all)-1].Offset + 1
	}
	return committed, nil
}

// puzzle has MirrorMaker write the syncs of the puzzle, and the group commit when
// they stand.
func (f *failover) puzzle() {
	f.t.Helper()
	want := []offsetSync{{0, 0}, {19, 19}, {101, 101}}
	stand := func(n int) func() bool {
		return func() bool { return slices.Equal(f.syncs("mm2-offset-syncs.M.internal", "puzzle"), want[:n]) }
	}
	f.soon("the syncs (0,0) (19,19)", stand(2))
	f.appendNumbered("puzzle", 20, 102)
	f.soon("the sync (101,101)", stand(3))
	commitAll(f.t, f.source, map[groupPlace]int64{{"puzzle", "puzzle", 0}: 50})
}

// settled waits until no copier has anything to do.
func (f *failover) settled() {
	f.t.Helper()
	f.copiedAll("orders", "puzzle")
	want := map[groupPlace]int64{{"puzzle", "A.puzzle", 0}: 50}
	o := newCopyOracle(f.ctx, f.t, f.source, "orders", f.ours, "A.orders", 0)
	for _, p := range f.positions {
		want[groupPlace{p.group, "A.orders", 0}] = o.exact(p.committed)
	}
	committedSoon(f.t, f.ours, want)
	f.soon("MirrorMaker's checkpoint of the puzzle", func() bool {
		_, there := f.checkpoints(f.theirs, "A.checkpoints.internal")[groupPlace{"puzzle", "A.puzzle", 0}]
		return there
	})
	f.steady()
}

// steady waits until MirrorMaker has committed nothing else for three rounds.
func (f *failover) steady() {
	f.t.Helper()
	var last map[groupPlace]int64
	same := 0
	f.soon("MirrorMaker's commits stand", func() bool {
		now := committedOn(f.t, f.theirs, f.groups()...)
		if fmt.Sprint(now) == fmt.Sprint(last) {
			same++
		} else {
			same = 0
		}
		last = now
		return same >= 15 // looks, five a second
	})
}
