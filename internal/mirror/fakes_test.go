package mirror

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/internal/mm2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is two fake clusters, a flow between them, and what its duties say.
type world struct {
	*kafkatest.Pair
	t      *testing.T
	config Config
	log    *log
}

// A log is what was said.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// times is how often something was said.
func (l *log) times(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func newWorld(t *testing.T, settings Settings) *world {
	t.Helper()
	return worldOn(t, kafkatest.Options{}, settings)
}

func worldOn(t *testing.T, o kafkatest.Options, settings Settings) *world {
	t.Helper()
	w := &world{Pair: kafkatest.NewPair(t, o), t: t, log: &log{}}
	policy, err := mm2.ParsePolicy(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.config = Config{
		Source: connect.Cluster{Alias: "A", Bootstrap: w.Source.Addresses, Options: w.Source.DialOptions()},
		Target: connect.Cluster{Alias: "B", Bootstrap: w.Target.Addresses, Options: w.Target.DialOptions()},
		Topics: mm2.TopicRules{Policy: policy, Source: "A", Target: "B"}, Settings: settings,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	return w
}

// withBook gives the flow a ledger with a book of orders-0.
func (w *world) withBook() *model {
	w.t.Helper()
	w.config.Ledger = newLedger(w.t)
	return newModel(w.t, w.config.Ledger, "orders", 0, 0)
}

// start returns the duties of a process.
func (w *world) start() *Mirror {
	w.t.Helper()
	m, err := Start(w.t.Context(), w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(m.Close)
	return m
}

// once does all duties in a process of its own.
func (w *world) once() []*DutyError {
	w.t.Helper()
	m := w.start()
	defer m.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	return m.Once(ctx)
}

func (w *world) mustOnce() {
	w.t.Helper()
	for _, err := range w.once() {
		w.t.Fatal(err)
	}
}

// records returns what a topic holds, as the harness's own client reads it.
func records(t *testing.T, b kafkatest.Bootstrap, topic string) (all []*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	bounds, err := b.ReadBounds(ctx, topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	client := b.NewClient(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	for int64(len(all)) < bounds.HighWatermark {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

// syncsOf returns the syncs of a topic, in words.
func syncsOf(t *testing.T, b kafkatest.Bootstrap, topic string) (all []string) {
	t.Helper()
	for _, r := range records(t, b, topic) {
		s, err := mm2.ParseOffsetSync(r.Key, r.Value)
		if err != nil || len(r.Headers) > 0 || time.Since(r.Timestamp) > time.Minute {
			t.Errorf("%+v: %v", r, err)
		}
		all = append(all, fmt.Sprintf("%s-%d %d %d", s.Topic, s.Partition, s.Upstream, s.Downstream))
	}
	return all
}

// put writes a sync as somebody else would.
func put(t *testing.T, b kafkatest.Bootstrap, topic string, s mm2.OffsetSync) {
	t.Helper()
	key, value, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Append(t.Context(), kafkatest.None, &kgo.Record{Topic: topic, Key: key, Value: value}); err != nil {
		t.Fatal(err)
	}
}
