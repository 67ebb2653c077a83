package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// The variables that say how often TestCampaign kills a copier and lets
// something fail, and how often it does at least if they are not set.
const (
	campaignKillsVariable, campaignKills   = "APOGRAPH_CAMPAIGN_KILLS", 20
	campaignFaultsVariable, campaignFaults = "APOGRAPH_CAMPAIGN_FAULTS", 200
)

const (
	flowKills  = 10 // of the copiers of one flow
	flowFaults = 8  // in place at once

	campaignBatch = 2 // flows between two looks at the sum
)

// TestCampaign kills the real binary at any request while connections break,
// brokers answer with errors before and after the append, requests and answers
// are late, leaders move, and brokers forget producers and get requests of the
// dead. Each flow, of a seed, has two fake clusters and a ledger of its own, and
// comes to rest in the end. Then an outside reader compares both clusters:
// nothing is lost, and what is doubled is what the books name. Faults are
// counted where they strike.
func TestCampaign(t *testing.T) {
	kills := fromEnvironment(t, campaignKillsVariable, campaignKills)
	faults := fromEnvironment(t, campaignFaultsVariable, campaignFaults)
	sum := campaignSum{faults: map[string]int64{}}
	most := int(2 * (kills/flowKills + faults/flowFaults + campaignBatch))
	for first := 1; !t.Failed() && first < most && (sum.kills < kills || sum.allFaults() < faults); first += campaignBatch {
		t.Run(fmt.Sprintf("from=%d", first), func(t *testing.T) {
			for seed := first; seed < first+campaignBatch; seed++ {
				t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					t.Parallel()
					sum.add(playFlow(t, uint64(seed)))
				})
			}
		})
	}
	t.Logf("campaign: %v", &sum)
	if sum.kills < kills || sum.allFaults() < faults || sum.lost > 0 || sum.doubled != sum.named || sum.checked != sum.flows {
		t.Errorf("want %d kills and %d faults, nothing lost, all that is doubled named, and all ledgers checked", kills, faults)
	}
}

// A campaignSum is what a campaign adds up.
type campaignSum struct {
	mu sync.Mutex // guards what follows

	flows, kills   int64
	faults         map[string]int64 // that struck, by kind
	records        int64            // committed on the sources
	lost           int64
	doubled, named int64
	checked        int64 // ledgers
}

func (s *campaignSum) add(one *campaignSum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flows, s.kills, s.records = s.flows+1, s.kills+one.kills, s.records+one.records
	s.lost, s.doubled, s.named, s.checked = s.lost+one.lost, s.doubled+one.doubled, s.named+one.named, s.checked+one.checked
	for kind, hits := range one.faults {
		s.faults[kind] += hits
	}
}

func (s *campaignSum) allFaults() (n int64) {
	for _, hits := range s.faults {
		n += hits
	}
	return n
}

func (s *campaignSum) String() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(s.faults)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, s.faults[kind]))
	}
	return fmt.Sprintf("%d kills, %d faults (%s), %d seeds, %d records: %d lost, %d doubled, %d of them named; %d ledgers checked",
		s.kills, s.allFaults(), strings.Join(kinds, ", "), s.flows, s.records, s.lost, s.doubled, s.named, s.checked)
}

// A hardFlow is one flow of a campaign.
type hardFlow struct {
	*testing.T
	sum    campaignSum
	pair   *kafkatest.Pair
	path   string // of the ledger
	topics []string
	rng    *rand.Rand

	places []*kafkatest.FaultHandle // of the faults in place
	kinds  []string
	strays []*kafkatest.FaultHandle // that keep requests of the dead
	moves  sync.WaitGroup           // of leaders
}

func playFlow(t *testing.T, seed uint64) *campaignSum {
	f := &hardFlow{
		T: t, sum: campaignSum{faults: map[string]int64{}}, path: filepath.Join(t.TempDir(), "flow.ledger"), topics: []string{"orders", "payments"},
		rng:  rand.New(rand.NewPCG(seed, 20261130)),
		pair: kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir(), SourceBrokers: 2}),
	}
	for kills, round := 0, 0; kills < flowKills && !t.Failed(); round++ {
		if round > 4*flowKills {
			t.Fatalf("only %d kills in %d rounds", kills, round)
		}
		f.load(round)
		rest := f.trouble()
		switch {
		case round%4 == 3: // this one lives; it may be unable to begin
			code, stderr := copyOnce(t, f.pair, f.path)
			if code > 1 {
				t.Errorf("exit code %d among faults: %s", code, stderr)
			} else if code == 1 {
				t.Logf("round %d: exit code 1: %s", round, stderr)
			}
		case killOnce(t, f.pair, copyArgs(f.pair, f.path), killPoints(), f.rng) != "":
			kills++
			f.sum.kills++
		}
		rest()
		f.lateRequests()
	}
	f.prove()
	return &f.sum
}

func (f *hardFlow) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *hardFlow) load(round int) {
	f.Helper()
	load := kafkatest.Load{Seed: uint64(round), Topics: f.topics, Partitions: 2, Records: 150, MaxValueBytes: 20_000}
	f.must(load.Run(f.Context(), f.pair.Source.Bootstrap))
}

// A campaignFault is what can fail: one of keys, with one of errs.
type campaignFault struct {
	kind   kafkatest.FaultKind
	weight int
	source bool
	keys   []kmsg.Key
	errs   []*kerr.Error
}

// campaignMenu is all that can fail. Fencing is left out: it stops a partition,
// as it must.
func campaignMenu() []campaignFault {
	produce, fetch := []kmsg.Key{kmsg.Produce}, []kmsg.Key{kmsg.Fetch}
	ofTarget := []kmsg.Key{kmsg.Produce, kmsg.Produce, kmsg.Produce, kmsg.ListOffsets, kmsg.Fetch, kmsg.Metadata, kmsg.InitProducerID, kmsg.CreateTopics, kmsg.DescribeConfigs}
	ofSource := []kmsg.Key{kmsg.Fetch, kmsg.Fetch, kmsg.Fetch, kmsg.ListOffsets, kmsg.OffsetForLeaderEpoch, kmsg.Metadata, kmsg.DescribeConfigs}
	return []campaignFault{
		{kafkatest.CutBefore, 4, false, ofTarget, nil},
		{kafkatest.CutAfter, 4, false, ofTarget, nil},
		{kafkatest.CutBefore, 1, true, ofSource, nil},
		{kafkatest.CutAfter, 1, true, ofSource, nil},
		{kafkatest.ErrorBefore, 4, false, produce, []*kerr.Error{
			kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.RequestTimedOut, kerr.KafkaStorageError, kerr.UnknownTopicOrPartition,
			kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID,
		}},
		{kafkatest.ErrorAfter, 4, false, produce, []*kerr.Error{
			kerr.NotLeaderForPartition, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut, kerr.KafkaStorageError,
			kerr.OutOfOrderSequenceNumber, kerr.DuplicateSequenceNumber,
		}},
		{kafkatest.ErrorBefore, 1, false, []kmsg.Key{kmsg.ListOffsets}, []*kerr.Error{kerr.NotLeaderForPartition, kerr.OffsetNotAvailable}},
		{kafkatest.ErrorBefore, 1, true, []kmsg.Key{kmsg.ListOffsets}, []*kerr.Error{kerr.NotLeaderForPartition, kerr.OffsetNotAvailable}},
		{kafkatest.ErrorBefore, 3, true, fetch, []*kerr.Error{
			kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.OffsetNotAvailable, kerr.KafkaStorageError,
		}},
		{kafkatest.DelayBefore, 1, false, produce, nil},
		{kafkatest.DelayAfter, 1, false, produce, nil},
		{kafkatest.Stray, 1, false, produce, nil},
	}
}

// trouble puts faults in place. What it returns takes them away and counts them.
func (f *hardFlow) trouble() (rest func()) {
	ctx, cancel := context.WithCancel(f.Context())
	var menu []campaignFault
	for _, one := range campaignMenu() {
		menu = append(menu, slices.Repeat([]campaignFault{one}, one.weight)...)
	}
	for range flowFaults {
		f.put(menu[f.rng.IntN(len(menu))])
	}
	for range 2 {
		f.moveLeader(ctx)
	}
	return func() {
		cancel()
		f.moves.Wait()
		for i, h := range f.places {
			h.Remove()
			f.sum.faults[f.kinds[i]] += int64(h.Hits())
		}
		f.places, f.kinds = nil, nil
	}
}

// put puts one fault in place.
func (f *hardFlow) put(one campaignFault) {
	f.Helper()
	c := f.pair.Target
	if one.source {
		c = f.pair.Source
	}
	fault := kafkatest.Fault{
		Kind: one.kind, Key: one.keys[f.rng.IntN(len(one.keys))], Skip: f.rng.IntN(12), Count: 1 + f.rng.IntN(6),
		Share: 0.3 + 0.7*f.rng.Float64(), Seed: f.rng.Uint64(),
	}
	if len(one.errs) > 0 {
		fault.Err = one.errs[f.rng.IntN(len(one.errs))]
	}
	if one.kind == kafkatest.DelayBefore || one.kind == kafkatest.DelayAfter {
		fault.Delay = time.Duration(1+f.rng.IntN(150)) * time.Millisecond
	}
	h, err := c.Fault(fault)
	f.must(err)
	f.places, f.kinds = append(f.places, h), append(f.kinds, one.kind.String())
	if one.kind == kafkatest.Stray {
		f.strays = append(f.strays, h)
	}
}

// moveLeader moves the leader of a partition while a request to it is on its
// way, unless ctx ends before.
func (f *hardFlow) moveLeader(ctx context.Context) {
	f.Helper()
	c, key := f.pair.Target, kmsg.Produce
	if f.rng.IntN(3) == 0 {
		c, key = f.pair.Source, kmsg.Fetch
	}
	topic, partition := f.topics[f.rng.IntN(len(f.topics))], f.rng.Int32N(2)
	if c.Fake().PartitionInfo(topic, partition) == nil {
		return // the copier has not made it yet
	}
	kind := []kafkatest.FaultKind{kafkatest.DelayBefore, kafkatest.DelayAfter}[f.rng.IntN(2)]
	h, err := c.Fault(kafkatest.Fault{Kind: kind, Key: key, Skip: f.rng.IntN(8), Delay: 20 * time.Millisecond})
	f.must(err)
	f.places, f.kinds = append(f.places, h), append(f.kinds, "leader moved")
	f.moves.Go(func() {
		if h.Wait(ctx, 1) != nil {
			return
		}
		if _, err := c.MoveLeader(topic, partition); err != nil {
			f.Error(err)
		}
	})
}

// lateRequests lets requests of the dead arrive, now or one day, and has the
// target forget producers.
func (f *hardFlow) lateRequests() {
	f.Helper()
	if f.rng.IntN(3) == 0 {
		topic, partition := f.topics[f.rng.IntN(len(f.topics))], f.rng.Int32N(2)
		if f.pair.Target.Fake().PartitionInfo(topic, partition) != nil {
			f.must(f.pair.Target.ForgetProducers(topic, partition))
			f.sum.faults["producers forgotten"]++
		}
	}
	if f.rng.IntN(2) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	for _, h := range f.strays {
		_, err := h.Deliver(ctx)
		f.must(err)
	}
	f.strays = nil
}

// prove compares both clusters, when everything has come to rest.
func (f *hardFlow) prove() {
	f.Helper()
	if code, stderr := copyOnce(f.T, f.pair, f.path); code != 0 {
		f.Fatalf("exit code %d in the end: %s", code, stderr)
	}
	out, err := exec.CommandContext(f.Context(), "apograph", "ledger", "export", f.path, "--book", "target").Output()
	f.must(err)
	book := bookOf(f.T, out)
	for _, topic := range f.topics {
		source, err := f.pair.Source.ReadTopic(f.Context(), topic)
		f.must(err)
		target, err := f.pair.Target.ReadTopic(f.Context(), topic)
		f.must(err)
		for p := range source {
			found, named := compareRecords(source[p], target[p]), namedDoubles(book, topic, int32(p), source[p])
			if len(found.lost) > 0 || len(found.strange) > 0 || !slices.Equal(found.doubled, named) {
				f.Errorf("%s:%d: lost %v, strange %v, doubled %v, of which the books name %v", topic, p, found.lost, found.strange, found.doubled, named)
			}
			f.sum.records, f.sum.lost = f.sum.records+int64(len(source[p])), f.sum.lost+int64(len(found.lost))
			f.sum.doubled, f.sum.named = f.sum.doubled+int64(len(found.doubled)), f.sum.named+int64(len(named))
		}
	}
	args := slices.Concat([]string{"verify"}, copyArgs(f.pair, f.path)[2:])
	if out, err := exec.CommandContext(f.Context(), "apograph", args...).CombinedOutput(); err != nil {
		f.Errorf("verify: %v: %s", err, out)
	}
	if mustCheck(f.T, f.path); !f.Failed() {
		f.sum.checked++
	}
}

// fromEnvironment returns a number that a variable says, if it is set.
func fromEnvironment(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	value, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
