package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A flowModel is what a ledger must hold beside the pairs, as plain maps.
type flowModel struct {
	topics map[string]SeenTopic // by id, or by name
	made   map[string]madeTopic // the same
	orders map[string]Order     // by topic and partition
	stops  map[string]Stop
}

func (m flowModel) clone() flowModel {
	return flowModel{maps.Clone(m.topics), maps.Clone(m.made), maps.Clone(m.orders), maps.Clone(m.stops)}
}

// text returns what flowOf must return.
func (m flowModel) text() string {
	topics, orders, stops := []SeenTopic{}, []Order(nil), []Stop{}
	made := slices.Collect(maps.Values(m.made))
	slices.SortFunc(made, func(a, b madeTopic) int { return strings.Compare(a.name+string(a.id[:]), b.name+string(b.id[:])) })
	for _, s := range m.topics {
		topics = append(topics, s)
	}
	sortSeen(topics)
	for _, o := range m.orders {
		orders = append(orders, o)
	}
	slices.SortFunc(orders, func(a, b Order) int {
		return strings.Compare(a.SourceTopic, b.SourceTopic)*10 + int(a.Partition-b.Partition)
	})
	for _, s := range m.stops {
		stops = append(stops, s)
	}
	slices.SortFunc(stops, func(a, b Stop) int {
		return strings.Compare(a.SourceTopic, b.SourceTopic)*10 + int(a.Partition-b.Partition)
	})
	return formatRecord(topics, made, orders, stops)
}

// A flowWorld is a ledger and what it must hold beside the pairs: now, and
// after a crash.
type flowWorld struct {
	t            *testing.T
	rand         *rand.Rand
	l            *Ledger
	now, durable flowModel
}

// TestFlowHistories drives the books beside the pairs of ledgers that begin in
// format 1 through random histories, with commits of entries, restarts, crashes
// and copies, and compares them with plain maps.
func TestFlowHistories(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			w := &flowWorld{t: t, rand: rand.New(rand.NewPCG(seed, 21)), l: mustOpen(t, copyOfFormat(t, 1))}
			w.now = flowModel{map[string]SeenTopic{}, map[string]madeTopic{}, map[string]Order{}, map[string]Stop{}}
			w.durable = w.now.clone()
			for range 200 {
				w.step()
				if got, want := flowOf(t, w.l), w.now.text(); got != want {
					t.Fatalf("%s, want %s", got, want)
				}
			}
		})
	}
}

func (w *flowWorld) step() {
	topic, partition := fmt.Sprintf("t%d", w.rand.IntN(4)), int32(w.rand.IntN(4)-1)
	key := fmt.Sprint(topic, " ", partition)
	switch w.rand.IntN(12) {
	case 0, 1:
		w.see(topic)
	case 2, 3:
		w.order(key, topic, partition)
	case 4, 5:
		s := Stop{SourceTopic: topic, Partition: partition, Offset: w.rand.Int64N(9) - 1, Reason: "unavailable",
			Detail: strings.Repeat("d", w.rand.IntN(200)), Tries: int32(w.rand.IntN(3))}
		mustStop(w.t, w.l, s)
		w.now.stops[key] = s
	case 6:
		mustClear(w.t, w.l, topic, partition)
		delete(w.now.stops, key)
	case 7:
		mustAppend(w.t, w.l, 3, copiedEntry(w.l.End(3), 2))
		mustCommit(w.t, w.l)
		w.durable = w.now.clone()
	case 8:
		w.l = reopen(w.t, w.l)
		w.now = w.durable.clone()
	case 9, 10:
		w.makeTopic(topic)
	default:
		if got, want := flowOf(w.t, crashed(w.t, w.l)), w.durable.text(); got != want {
			w.t.Fatalf("after a crash: %s, want %s", got, want)
		}
	}
}

func (w *flowWorld) see(topic string) {
	s := SeenTopic{Name: topic, ID: TopicID{byte(w.rand.IntN(6))}, SeenMillis: 1 + w.rand.Int64N(99),
		Partitions: w.rand.Int32N(400), FromStart: w.rand.IntN(2) == 0}
	known := knownBy(topic, s.ID)
	mustSee(w.t, w.l, s)
	if _, ok := w.now.topics[known]; !ok {
		w.now.topics[known] = s
		w.durable = w.now.clone()
	}
	if got, ok, err := w.l.SeenTopic(topic, s.ID); err != nil || !ok || got != w.now.topics[known] {
		w.t.Fatalf("SeenTopic = %+v, %t, %v, want %+v", got, ok, err, w.now.topics[known])
	}
}

// knownBy returns what a topic is known by.
func knownBy(topic string, id TopicID) string {
	if id == (TopicID{}) {
		return "name " + topic
	}
	return fmt.Sprint("id ", id)
}

func (w *flowWorld) makeTopic(topic string) {
	m := madeTopic{name: topic, id: TopicID{byte(w.rand.IntN(6))}}
	for _, key := range []string{"a", "b", "cleanup.policy"} {
		if w.rand.IntN(2) == 0 {
			m.settings = append(m.settings, setting{key, strings.Repeat("v", w.rand.IntN(3)*600)})
		}
	}
	mustMake(w.t, w.l, m)
	known := knownBy(topic, m.id)
	if fmt.Sprint(w.now.made[known]) != fmt.Sprint(m) {
		w.now.made[known] = m
		w.durable = w.now.clone()
	}
}

func (w *flowWorld) order(key, topic string, partition int32) {
	o := Order{SourceTopic: topic, Partition: partition, Paused: w.rand.IntN(2) == 0, Recopy: w.rand.IntN(3) == 0,
		Reason: strings.Repeat("r", w.rand.IntN(200)), AtMillis: 1 + w.rand.Int64N(99)}
	mustOrder(w.t, w.l, o)
	before, had := w.now.orders[key]
	orders := o.Paused || o.Recopy
	delete(w.now.orders, key)
	if orders {
		w.now.orders[key] = o
	}
	if had && before != o || !had && orders {
		w.durable = w.now.clone()
	}
}

// TestFlowAtOnce: all of it may be called by many while entries are appended
// and committed.
func TestFlowAtOnce(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	loop := make(chan error)
	go func() { loop <- l.CommitLoop(ctx) }()
	const workers, rounds = 4, 60
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() { writeFlowAlong(t, l, w, rounds) })
		wait.Go(func() { readFlowAlong(t, l, rounds) })
	}
	wait.Go(func() {
		for range rounds {
			if err := l.Append(id, copiedEntry(l.End(id), 1)); err != nil {
				t.Error(err)
			}
		}
	})
	wait.Wait()
	cancel()
	if err := <-loop; err != nil {
		t.Fatal(err)
	}
	want := flowOf(t, l)
	if got := seenOf(t, l); len(got) != (workers+1)*rounds {
		t.Errorf("%d topics, want %d", len(got), (workers+1)*rounds)
	}
	if got := flowOf(t, reopen(t, l)); got != want {
		t.Errorf("after a restart: %s, want %s", got, want)
	}
}

// writeFlowAlong writes what is its own, and topics that all write.
func writeFlowAlong(t *testing.T, l *Ledger, w, rounds int) {
	topic := fmt.Sprintf("t%d", w)
	for i := range rounds {
		err := errors.Join(
			l.SetStop(Stop{SourceTopic: topic, Partition: int32(i % 5), Reason: "r", Tries: int32(i)}),
			l.ClearStop(topic, int32(i%3)),
			l.SeeTopics([]SeenTopic{{Name: topic, ID: TopicID{byte(w), byte(i)}}, {Name: "shared", ID: TopicID{99, byte(i)}}}),
			l.SetOrder(Order{SourceTopic: topic, Partition: int32(i % 5), Paused: i%2 == 0}),
			l.SetMade(topic, TopicID{byte(w), byte(i % 7)}, map[string]string{"k": topic}),
		)
		if err != nil || !l.TopicSeen("shared", TopicID{99, byte(i)}) {
			t.Errorf("round %d: %v", i, err)
			return
		}
	}
}

func readFlowAlong(t *testing.T, l *Ledger, rounds int) {
	for range rounds {
		for s, err := range l.SeenTopics() {
			if err != nil || s.Name == "" {
				t.Errorf("%+v, %v", s, err)
				return
			}
		}
		_, _, _ = l.Orders(), l.Stops(), l.Identity()
		for i := range byte(7) {
			if settings, ok := l.MadeTopic("t0", TopicID{0, i}); ok && settings["k"] != "t0" {
				t.Errorf("made with %v", settings)
			}
			if s, ok, err := l.SeenTopic("", TopicID{99, i}); err != nil || ok && s.Name != "shared" {
				t.Errorf("seen as %+v, %v", s, err)
			}
		}
	}
}

// TestListOfBucketsOnManyPages: small buckets lie inside the list of buckets,
// which may so outgrow a page of the file.
func TestListOfBucketsOnManyPages(t *testing.T) {
	l := mustCreate(t)
	text := strings.Repeat("x", 700)
	mustOrder(t, l, Order{SourceTopic: "t", Paused: true, Reason: text})
	mustSee(t, l, manyTopics(8)...)
	mustStop(t, l, Stop{SourceTopic: "t", Reason: "r", Detail: text})
	if err := l.SetScope(Scope{Topics: []string{text[:500]}}); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		mustOpenPairs(t, l, Pair{SourceTopic: "t", TargetTopic: "t", Partition: int32(i)})
		mustAppend(t, l, PairID(i+1), copiedEntry(Position{}, 8))
		mustCommit(t, l)
	}
	b := mustReadFile(t, l.path)
	if n, err := parseNode(0, b[rootOf(newestFirst(b))*fileBlock:][:fileBlock]); err != nil || n.leaf {
		t.Fatalf("the list of buckets lies on one page: the test tests nothing (%v)", err)
	}
	want := flowOf(t, l)
	if got := flowOf(t, reopen(t, l)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// newestFirst returns a file with the newer meta page in front.
func newestFirst(b []byte) []byte {
	b = slices.Clone(b)
	if b[fileBlock+fileHeader+48] > b[fileHeader+48] {
		copy(b[:fileBlock], b[fileBlock:2*fileBlock])
	}
	return b
}
