package replicate

import (
	"testing"
	"time"

	"apograph/internal/recordbatch"
)

// land answers a unit as appended where it must stand.
func land(w *window, u *unit) {
	w.answered(u, answer{outcome: appended, base: w.expected(w.index(u))})
}

// A wary partition with a window of five and a clock, behind leader epoch 7.
func waryPartition() (p *partition, clock *time.Time) {
	now := time.Unix(1_700_000_000, 0)
	clock = &now
	target := &cluster{topics: map[string]topicState{"t": {leaders: []leader{{1, 7}}}}}
	p = &partition{flow: &Flow{target: target, config: Config{Now: func() time.Time { return now }}}, target: topicPartition{"t", 0}}
	p.flow.producerMemory.Store(int64(defaultProducerMemory))
	p.win, p.comparedAt = newWindow(5, 0, 0), 7
	return p, clock
}

// queue adds n units of records of now.
func (p *partition) queueNow(n int) {
	for range n {
		u := testUnit(1, 1)
		u.maxTimestamp = p.flow.now().UnixMilli()
		p.win.add(u)
	}
}

func (p *partition) sendAll() (all []*unit) {
	for u := p.toSend(); u != nil; u = p.toSend() {
		all = append(all, u)
	}
	return all
}

// TestProbesAfterSilence: a target forgets a producer of which nothing has come
// for its expiry, and then takes any sequence number: the first batch goes alone.
func TestProbesAfterSilence(t *testing.T) {
	p, clock := waryPartition()
	p.queueNow(4)
	for _, want := range []int{1, 3} {
		sent := p.sendAll()
		if len(sent) != want {
			t.Fatalf("%d units in flight, want %d", len(sent), want)
		}
		for _, u := range sent {
			land(p.win, u)
		}
	}
	*clock = clock.Add(25 * time.Hour)
	p.queueNow(3)
	sent := p.sendAll()
	if len(sent) != 1 {
		t.Fatalf("%d units in flight behind a day of silence, want 1", len(sent))
	}
	land(p.win, sent[0])
	if sent = p.sendAll(); len(sent) != 2 {
		t.Errorf("%d units in flight once the target knows the producer, want 2", len(sent))
	}
}

// TestWaitsForAnswersBeforeANewLeader: behind what is in flight with the old leader
// nothing goes to the new one.
func TestWaitsForAnswersBeforeANewLeader(t *testing.T) {
	p, _ := waryPartition()
	p.queueNow(1)
	land(p.win, p.toSend())
	p.queueNow(3)
	first := p.toSend()
	p.flow.target.topics["t"].leaders[0].epoch = 8
	if u := p.toSend(); first == nil || u != nil {
		t.Fatalf("a unit goes to the new leader while one is in flight with the old one")
	}
}

// TestRefusedIsNotProven: where an older unit was refused, what stands in its place
// is somebody else's: a later success at the place that it was to have proves
// nothing, whatever the hold.
func TestRefusedIsNotProven(t *testing.T) {
	for _, c := range []struct {
		name  string
		first []answer
	}{
		{"refused", []answer{{outcome: refused}}},
		{"denied", []answer{{outcome: denied}}},
		{"not appended, then unknown", []answer{{outcome: notAppended}, {outcome: unknown}}},
	} {
		w := newWindow(5, 0, 0)
		w.probe = false
		var units []*unit
		for i := range len(c.first) + 1 {
			units = append(units, testUnit(1, uint64(i+1)))
			w.add(units[i])
			w.next()
		}
		for i, a := range c.first {
			w.answered(units[i], a)
		}
		land(w, units[len(c.first)])
		if got := w.retired(); len(got) != 0 {
			t.Errorf("%s: %d units are booked as appended, the first of which was refused", c.name, len(got))
		}
	}
}

// TestPartsOfARefusedBatchAreAsOldAsTheirRecords: half of a batch may be older than
// what the target remembers of a producer, and the whole not.
func TestPartsOfARefusedBatchAreAsOldAsTheirRecords(t *testing.T) {
	p, clock := waryPartition()
	p.flow.toolPool.New = func() any { return &tools{buffers: &buffers{}} }
	p.flow.reader = &source{budget: newBudget(1 << 20)}
	var b recordbatch.Builder
	for _, age := range []time.Duration{48 * time.Hour, 0} {
		b.Append(&recordbatch.Record{Value: []byte{1}}, clock.Add(-age).UnixMilli())
	}
	batch, err := b.Seal(nil, -1, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	a := newTestAssembler()
	units, err := assembleAll(a, batch)
	if err != nil || len(units) != 1 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	p.win.add(units[0])
	p.win.answered(p.toSend(), answer{outcome: refused})
	p.refused(answer{})
	if parts := p.win.open; len(parts) != 2 || !parts[0].stale || parts[1].stale {
		t.Errorf("%d parts, of which the first has records of two days ago: stale %v and %v", len(parts), parts[0].stale, parts[1].stale)
	}
}

// TestUnitIsAsOldAsItsRecords: of a batch in whose midst the copy goes on, the newest
// record may be one that is not sent.
func TestUnitIsAsOldAsItsRecords(t *testing.T) {
	var b recordbatch.Builder
	for _, at := range []int64{9000, 1000, 2000} {
		b.Append(&recordbatch.Record{Value: []byte{1}}, at)
	}
	batch, err := b.Seal(nil, -1, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	a := newTestAssembler()
	a.pos = 1
	units, err := assembleAll(a, batch)
	if err != nil || len(units) != 1 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	if units[0].maxTimestamp != 2000 {
		t.Errorf("the newest record is of %d ms, want 2000", units[0].maxTimestamp)
	}
}

// TestJoinsLessAfterTooLarge: where the target's limit is not known, or is another than
// it says, what is joined later is no larger than what it takes.
func TestJoinsLessAfterTooLarge(t *testing.T) {
	p, _ := waryPartition()
	p.flow.toolPool.New = func() any { return &tools{buffers: &buffers{}} }
	p.flow.reader = &source{budget: newBudget(1 << 30)}
	a := newTestAssembler()
	var data []byte
	for base := range int64(8) {
		data = append(data, valueBatch(base, 100<<10)...)
	}
	units, err := assembleAll(a, data)
	if err != nil || len(units) != 1 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	refusedBytes := len(units[0].batch)
	p.asm = *a
	p.win.add(units[0])
	p.win.answered(p.toSend(), answer{outcome: refused, stop: StopRecordTooLarge})
	p.refused(answer{outcome: refused, stop: StopRecordTooLarge})
	p.asm.pos = 0
	p.asm.tools = a.tools
	units, err = assembleAll(&p.asm, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range units {
		if len(u.batch) > refusedBytes/2+recordbatch.HeaderSize {
			t.Errorf("a batch of %d bytes is joined, where one of %d was too large", len(u.batch), refusedBytes)
		}
	}
}
