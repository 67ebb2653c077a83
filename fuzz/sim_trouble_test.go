package fuzz

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// A simTrouble is what goes wrong in a history beside the faults that every
// history has: one kind in each, so that a failure says where to look.
type simTrouble string

const (
	noTrouble       simTrouble = "no trouble"
	sourceCut       simTrouble = "the source loses its tail"
	sourceRecreated simTrouble = "a source topic is created again"
	targetCut       simTrouble = "the target loses its tail"
	targetRecreated simTrouble = "a target topic is created again"
	targetForgets   simTrouble = "the target forgets producers"
	lateRequests    simTrouble = "requests of the dead arrive late"
	strayRequests   simTrouble = "requests of the dead arrive when they are forgotten"
	foreignWriter   simTrouble = "somebody else writes to the target"
	ledgerRestored  simTrouble = "an older ledger is restored"
	ledgerGone      simTrouble = "the ledger file is deleted or replaced while in use"
	everySource     simTrouble = "the source's troubles together"
)

// simTroubles gives each seed its trouble: the one at seed modulo their number.
func simTroubles() []simTrouble {
	return []simTrouble{
		noTrouble, sourceCut, noTrouble, targetForgets, ledgerGone, sourceRecreated, noTrouble, ledgerRestored,
		noTrouble, targetRecreated, lateRequests, targetCut, noTrouble, everySource, foreignWriter, strayRequests,
	}
}

// trouble makes what the history is about.
func (w *simWorld) trouble(rng *rand.Rand) {
	act := map[simTrouble]func(*rand.Rand){
		sourceCut: w.cutSource, sourceRecreated: w.recreateSource, targetCut: w.cutTarget, targetRecreated: w.recreateTarget,
		targetForgets: w.forget, lateRequests: w.dieLate, strayRequests: w.stray, foreignWriter: w.writeForeign,
		ledgerRestored: w.restore, ledgerGone: w.loseLedger,
		everySource: func(rng *rand.Rand) {
			[]func(*rand.Rand){w.cutSource, w.recreateSource, w.deleteRecords, w.clean}[rng.IntN(4)](rng)
		},
	}[w.history.trouble]
	act(rng)
}

// aPartition chooses a partition of a topic that the copier has made, if there
// is one.
func (w *simWorld) aPartition(rng *rand.Rand) (simPartition, bool) {
	t := w.topic(rng)
	if t == nil {
		return simPartition{}, false
	}
	p := simPartition{t.name, rng.Int32N(t.partitions)}
	return p, w.pair.Target.Fake().PartitionInfo(p.topic, p.partition) != nil
}

// dropWriters ends the producers of the source. Those that come after them have
// producer ids or epochs of their own.
func (w *simWorld) dropWriters() {
	for name, x := range w.writers {
		x.Close()
		delete(w.writers, name)
	}
}

// errSimNothing says that there is nothing to cut.
var errSimNothing = errors.New("nothing to cut")

// cutLog cuts the tail off a partition's log, raising its leader epoch, and
// returns where, and where the log ended: anywhere between two batches, but
// outside of transactions, which would never end, if outside is set.
func cutLog(c *kafkatest.Cluster, p simPartition, outside bool, rng *rand.Rand) (cut, end int64, err error) {
	err = c.EditLog(p.topic, p.partition, func(l *kafkatest.Log) error {
		var places []int // batches in front of which the log may be cut
		open := map[int64]bool{}
		for i, raw := range l.Batches {
			b, err := kafkatest.DecodeBatch(raw)
			if err != nil {
				return err
			}
			if b.BaseOffset >= l.Start && (!outside || len(open) == 0) {
				places = append(places, i)
			}
			if b.Control() {
				delete(open, b.ProducerID)
			} else if b.Transactional() {
				open[b.ProducerID] = true
			}
		}
		if len(places) == 0 {
			return errSimNothing
		}
		at := places[len(places)-1-min(rng.IntN(len(places)), rng.IntN(len(places)))] // rather less than more
		b, err := kafkatest.DecodeBatch(l.Batches[at])
		if err != nil {
			return err
		}
		cut, end = b.BaseOffset, l.End
		l.Batches, l.End = l.Batches[:at], cut
		l.LeaderEpoch++
		return nil
	})
	return cut, end, err
}

// cutSource is an unclean election of a leader that had less.
func (w *simWorld) cutSource(rng *rand.Rand) {
	t := w.topic(rng)
	if t == nil {
		return
	}
	p := simPartition{t.name, rng.Int32N(t.partitions)}
	w.archiveNow(p)
	w.dropWriters()
	cut, end, err := cutLog(w.pair.Source, p, true, rng)
	if errors.Is(err, errSimNothing) {
		return
	}
	w.must(err)
	a := w.archived(p)
	a.eras = append(a.eras, a.now().before(cut))
	a.cutIn = w.removal(p, 0).generation
	for _, removals := range []*[]simRemoval{&a.lost, &a.compacted, &a.before} {
		for i := range *removals {
			r := &(*removals)[i].Range
			r.Start, r.End = min(r.Start, cut), min(r.End, cut)
		}
	}
	w.say("%v of the source: cut from %d to %d", p, end, cut)
	if rng.IntN(2) == 0 { // the log soon is as long as it was
		w.regrow(t, p.partition, end-cut, rng)
	}
}

func (w *simWorld) regrow(t *simTopic, partition int32, atLeast int64, rng *rand.Rand) {
	for n := int64(0); n < min(atLeast, 200); {
		var records []*kgo.Record
		for range 1 + rng.IntN(40) {
			records = append(records, w.record(t, partition, rng))
		}
		w.append(records, rng)
		n += int64(len(records))
	}
}

// recreateSource deletes a topic and creates it again, often with as much in it.
func (w *simWorld) recreateSource(rng *rand.Rand) {
	t := w.topic(rng)
	if t == nil {
		return
	}
	w.endTransactions()
	w.dropWriters()
	for p := range t.partitions {
		w.archiveNow(simPartition{t.name, p})
	}
	w.deleteTopic(w.pair.Source, t.name)
	simWait(w.t, time.Duration(rng.IntN(3))*time.Duration(rng.IntN(3000))*time.Millisecond)
	configs := kafkatest.LoadConfigs()
	if t.compacts {
		configs["cleanup.policy"] = "compact"
	}
	w.must(w.pair.Source.CreateTopic(w.t.Context(), t.name, t.partitions, configs))
	for p := range t.partitions {
		a := w.archived(simPartition{t.name, p})
		a.eras = append(a.eras, newSimEra(w.sourceID(t.name)))
		a.lost, a.compacted, a.before, a.forgotten, a.cutIn, a.cleaned = nil, nil, nil, 0, 0, false
	}
	if t.old = 0; !w.hasLooked() {
		t.old = t.partitions
	}
	w.say("%s is another topic", t.name)
	for p := range t.partitions {
		if rng.IntN(2) == 0 {
			w.regrow(t, p, rng.Int64N(60), rng)
		}
	}
}

func (w *simWorld) deleteTopic(c *kafkatest.Cluster, name string) {
	client, err := c.Client()
	w.must(err)
	defer client.Close()
	w.eventually("delete a topic", func() error {
		ctx, cancel := w.within(30 * time.Second)
		defer cancel()
		answers, err := kadm.NewClient(client).DeleteTopics(ctx, name)
		if err == nil {
			err = answers.Error()
		}
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil
		}
		return err
	})
}

// cutTarget takes back what the target has acknowledged.
func (w *simWorld) cutTarget(rng *rand.Rand) {
	p, ok := w.aPartition(rng)
	if !ok {
		return
	}
	cut, end, err := cutLog(w.pair.Target, p, false, rng)
	if errors.Is(err, errSimNothing) {
		return
	}
	w.must(err)
	w.say("%v of the target: cut from %d to %d", p, end, cut)
}

// recreateTarget deletes a topic of the target and has somebody create it again.
func (w *simWorld) recreateTarget(rng *rand.Rand) {
	p, ok := w.aPartition(rng)
	if !ok {
		return
	}
	partitions := int32(0)
	for w.pair.Target.Fake().PartitionInfo(p.topic, partitions) != nil {
		partitions++
	}
	w.deleteTopic(w.pair.Target, p.topic)
	simWait(w.t, time.Duration(rng.IntN(3))*time.Duration(rng.IntN(3000))*time.Millisecond)
	if w.pair.Target.Fake().TopicInfo(p.topic) == nil {
		w.must(w.pair.Target.CreateTopic(w.t.Context(), p.topic, partitions, nil))
	}
	w.say("%s of the target is another topic", p.topic)
}

// forget has the target forget all producers of a partition, as it does when
// they have expired.
func (w *simWorld) forget(rng *rand.Rand) {
	p, ok := w.aPartition(rng)
	if !ok {
		return
	}
	w.must(w.pair.Target.ForgetProducers(p.topic, p.partition))
	w.say("%v of the target has forgotten its producers", p)
}

// dieLate kills the copier while requests of its are on their way, which arrive
// when another one may already be at work.
func (w *simWorld) dieLate(rng *rand.Rand) {
	h, err := w.pair.Target.Fault(kafkatest.Fault{
		Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Count: 1 + rng.IntN(4), Delay: time.Duration(1+rng.IntN(20_000)) * time.Millisecond,
	})
	w.must(err)
	w.start(rng)
	w.produce(rng)
	simWait(w.t, time.Duration(rng.IntN(3000))*time.Millisecond)
	w.kill(rng)
	w.start(rng)
	w.faults = append(w.faults, h)
	w.say("%d requests arrive late", h.Hits())
}

// writeForeign writes to the target as nobody should, to a partition that has a
// book. Where there is none, a person would have to name the topic in --append,
// and the fake brokers cannot search by time in a bubble, as that takes: they
// would read zstd with the library's decoder, see [kafkatest.Decompressor].
func (w *simWorld) writeForeign(rng *rand.Rand) {
	p, ok := w.aPartition(rng)
	if !ok {
		return
	}
	if _, _, ok := w.open(p); !ok {
		return
	}
	writer, err := w.pair.Target.Producer(kafkatest.None)
	w.must(err)
	defer writer.Close()
	ctx, cancel := w.within(2 * time.Minute)
	defer cancel()
	for range 1 + rng.IntN(3) {
		r := w.record(&simTopic{name: p.topic, partitions: 1, compacts: true}, p.partition, rng)
		w.foreign[r.Timestamp.UnixMilli()] = true
		err = errors.Join(err, writer.Append(ctx, r))
	}
	w.say("foreign records to %v: %v", p, err)
}

// stray kills the copier, has the target forget it, and delivers what was on its
// way.
func (w *simWorld) stray(rng *rand.Rand) {
	p, ok := w.aPartition(rng)
	if !ok {
		return
	}
	h, err := w.pair.Target.Fault(kafkatest.Fault{Kind: kafkatest.Stray, Key: kmsg.Produce, Topic: p.topic, Partitions: []int32{p.partition}, Count: 1 + rng.IntN(2)})
	w.must(err)
	w.start(rng)
	var records []*kgo.Record
	for range 1 + rng.IntN(30) {
		records = append(records, w.record(&simTopic{name: p.topic, compacts: true}, p.partition, rng))
	}
	w.append(records, rng)
	simWait(w.t, time.Duration(rng.IntN(1500))*time.Millisecond)
	if rng.IntN(2) == 0 {
		w.kill(rng)
	}
	if rng.IntN(2) == 0 {
		w.start(rng)
		simWait(w.t, time.Duration(rng.IntN(3000))*time.Millisecond)
	}
	w.must(w.pair.Target.ForgetProducers(p.topic, p.partition))
	ctx, cancel := w.within(time.Minute)
	defer cancel()
	n, err := h.Deliver(ctx)
	w.say("%d requests to %v arrive after all: %v", n, p, err)
}

// restore stops the copier and puts an older copy of its ledger in place, one
// that knows the same pairs.
func (w *simWorld) restore(rng *rand.Rand) {
	if len(w.snapshots) == 0 || rng.IntN(4) == 0 {
		w.snapshot()
		return
	}
	if w.copier != nil && !w.copier.over() {
		if rng.IntN(2) == 0 {
			w.stop(rng)
		} else {
			w.die()
		}
	}
	older := w.snapshots[rng.IntN(len(w.snapshots))]
	if !slices.Equal(w.pairsIn(older), w.pairsIn(w.config.LedgerPath)) {
		w.say("the older ledger knows less")
		return
	}
	w.putBack(older, rng)
}

// putBack goes on with a copy of an older ledger.
func (w *simWorld) putBack(older string, rng *rand.Rand) {
	w.restored++
	path := w.file(fmt.Sprintf("restored-%d.ledger", w.restored))
	copyFile(w.t, older, path)
	w.config.LedgerPath = path
	w.goneSince()
	w.say("%s is restored as %s", older, path)
	w.start(rng)
}

// goneSince notes that what is gone now may be missed by books that are older.
func (w *simWorld) goneSince() {
	l := simBook(w.t, w.config.LedgerPath)
	defer l.Close()
	w.paused = map[simPartition]bool{}
	for _, o := range l.Orders() {
		if o.Paused {
			w.paused[simPartition{o.SourceTopic, o.Partition}] = true
		}
	}
	for _, pair := range l.Pairs() {
		p := simPartition{pair.SourceTopic, pair.Partition}
		at, a := l.Committed(pair.ID).Source, w.archived(p)
		for _, removals := range []*[]simRemoval{&a.lost, &a.compacted, &a.before} {
			for i := range *removals {
				(*removals)[i].Start = min((*removals)[i].Start, at)
			}
		}
	}
}

func (w *simWorld) pairsIn(path string) (known []string) {
	l := simBook(w.t, path)
	if l == nil {
		return []string{"none"}
	}
	defer l.Close()
	for _, pair := range l.Pairs() {
		known = append(known, fmt.Sprintf("%d %s-%d generation %d", pair.ID, pair.SourceTopic, pair.Partition, pair.Generation))
	}
	return known
}

// loseLedger deletes the ledger of the copier that runs, or puts a copy in its
// place. The copier must end, and the person restores what there was.
func (w *simWorld) loseLedger(rng *rand.Rand) {
	if w.copier.copying() == nil {
		w.start(rng)
		return
	}
	w.snapshot()
	older, path, c := w.snapshots[len(w.snapshots)-1], w.config.LedgerPath, w.copier
	if rng.IntN(2) == 0 {
		w.must(os.Remove(path))
	} else {
		copyFile(w.t, older, path+".other")
		w.must(os.Rename(path+".other", path))
	}
	w.produce(rng)
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		w.t.Fatalf("copier %d goes on 10 s after its ledger was taken away", c.number)
	}
	var taken *ledger.CorruptError
	if !errors.As(c.err, &taken) || taken.Law != "file_in_place" {
		w.t.Fatalf("copier %d ended with %v", c.number, c.err)
	}
	w.say("copier %d has ended: %v", c.number, c.err)
	w.copier = nil
	w.putBack(older, rng)
}

// operate does for each partition that has stopped what the advice for its
// reason says.
func (w *simWorld) operate(*rand.Rand) {
	flow := w.copier.copying()
	if flow == nil {
		return
	}
	for _, s := range flow.Status() {
		if s.State != replicate.StateStopped {
			continue
		}
		o := ledger.Order{SourceTopic: s.Topic, Partition: s.Partition, By: "sim", Reason: "the advice"}
		switch s.Reason {
		case replicate.StopTopicRecreated, replicate.StopTargetRecreated:
			o.AcceptRecreated = true
		case replicate.StopSourceTruncated:
			o.AcceptTruncated = true
		case replicate.StopForeignWriter:
			o.TolerateForeign = true
		case replicate.StopTargetLostRecords:
			o.Recopy = true
		}
		if !o.AcceptRecreated && !o.AcceptTruncated && !o.TolerateForeign && !o.Recopy {
			continue
		}
		p := simPartition{s.Topic, s.Partition}
		err := flow.Order(o)
		if err == nil {
			w.noteOrder(p, false)
		}
		w.say("%v has stopped, %s: %s; accepted (%v)", p, s.Reason, s.Detail, err)
	}
}
