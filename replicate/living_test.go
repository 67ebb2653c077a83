package replicate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// A living is a flow that runs while its clusters change.
type living struct {
	*replicate.Flow
	ended  chan struct{} // closed when it has
	t      *testing.T
	pair   *kafkatest.Pair
	config replicate.Config
	stop   context.CancelCauseFunc
}

// livingConfig looks for changes and tries again often, so that tests need not
// wait.
func livingConfig(t *testing.T, pair *kafkatest.Pair, topics ...string) replicate.Config {
	config := configFor(t, pair, topics...)
	config.Once = false
	config.RefreshInterval = 100 * time.Millisecond
	config.RetryAfter = 50 * time.Millisecond
	return config
}

func live(t *testing.T, pair *kafkatest.Pair, config replicate.Config) *living {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	flow, err := replicate.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	l := &living{flow, make(chan struct{}), t, pair, config, cancel}
	go func() {
		defer close(l.ended)
		_, _ = flow.Wait()
	}()
	return l
}

var errStop = errors.New("stop of the test")

// end stops the flow cleanly.
func (l *living) end() replicate.Summary {
	l.t.Helper()
	l.stop(errStop)
	summary, err := l.Wait()
	if !errors.Is(err, errStop) {
		l.t.Fatalf("the flow ended with %v", err)
	}
	l.Close()
	kafkatest.CheckLedgerAtEnd(l.t, l.config.LedgerPath)
	return summary
}

// until waits until the state of a partition is as told. Nothing but the test's
// own deadline ends it early.
func (l *living) until(topic string, partition int32, what string, ok func(replicate.PartitionStatus) bool) replicate.PartitionStatus {
	l.t.Helper()
	deadline := time.After(30 * time.Second)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		for _, s := range l.Status() {
			if s.Topic == topic && s.Partition == partition && ok(s) {
				return s
			}
		}
		select {
		case <-ticker.C:
		case <-l.ended:
			summary, err := l.Wait()
			l.t.Fatalf("the flow has ended: %v, %+v", err, summary)
		case <-deadline:
			l.t.Fatalf("%s-%d: never %s; status %+v", topic, partition, what, l.Status())
		}
	}
}

// at waits until the committed book of a partition ends at a source offset.
func (l *living) at(topic string, partition int32, position int64) replicate.PartitionStatus {
	l.t.Helper()
	return l.until(topic, partition, "at its end", func(s replicate.PartitionStatus) bool { return s.Position == position })
}

func (l *living) stopped(topic string, partition int32, reason replicate.StopReason) replicate.PartitionStatus {
	l.t.Helper()
	return l.until(topic, partition, "stopped: "+string(reason), func(s replicate.PartitionStatus) bool { return s.Reason == reason })
}

func on(topic string, partition int32, from, n int) []*kgo.Record {
	records := numbered(from, n)
	for _, r := range records {
		r.Topic, r.Partition = topic, partition
	}
	return records
}

func admin(t *testing.T, b kafkatest.Bootstrap) *kadm.Client {
	t.Helper()
	client, err := clusterOf("admin", b).Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

func TestNewTopicAndNewPartitionsWhileRunning(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "a", nil)
	mustAppend(t, pair.Source.Bootstrap, on("a", 0, 0, 10)...)
	l := live(t, pair, livingConfig(t, pair, "a", "b.*"))
	l.at("a", 0, 10)

	mustTopic(t, pair.Source, "b1", nil)
	mustTopic(t, pair.Source, "c", nil)
	mustAppend(t, pair.Source.Bootstrap, on("b1", 0, 0, 7)...)
	l.at("b1", 0, 7)

	if _, err := admin(t, pair.Source.Bootstrap).UpdatePartitions(t.Context(), 3, "a"); err != nil {
		t.Fatal(err)
	}
	l.at("a", 2, 0)
	mustAppend(t, pair.Source.Bootstrap, append(on("a", 2, 0, 5), on("a", 0, 10, 3)...)...)
	l.at("a", 2, 5)
	l.at("a", 0, 13)
	if s := l.end(); !s.Complete || s.Topics != 2 || s.Partitions != 4 {
		t.Errorf("summary %+v", s)
	}
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, l.config.LedgerPath, "a", "b1")
}

// TestFlowWithoutTopicsWaits begins before there is anything to copy.
func TestFlowWithoutTopicsWaits(t *testing.T) {
	pair := stored(t)
	l := live(t, pair, livingConfig(t, pair, "later"))
	mustTopic(t, pair.Source, "later", nil)
	mustAppend(t, pair.Source.Bootstrap, on("later", 0, 0, 4)...)
	l.at("later", 0, 4)
	l.end()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, l.config.LedgerPath, "later")
}

// TestWhatIsGoneBeforeItWasSeen tells what is out of scope from what was lost:
// it depends on whether the topic, or the partition, existed before the flow.
func TestWhatIsGoneBeforeItWasSeen(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "old", nil)
	mustAppend(t, pair.Source.Bootstrap, on("old", 0, 0, 10)...)
	mustDelete(t, pair.Source, "old", 0, 4)
	config := livingConfig(t, pair, "old", "new")
	config.RefreshInterval = time.Hour // the next run looks
	l := live(t, pair, config)
	l.at("old", 0, 10)
	l.end()

	mustTopic(t, pair.Source, "new", nil)
	mustAppend(t, pair.Source.Bootstrap, on("new", 0, 0, 10)...)
	mustDelete(t, pair.Source, "new", 0, 3)
	if _, err := admin(t, pair.Source.Bootstrap).UpdatePartitions(t.Context(), 2, "old"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, on("old", 1, 0, 10)...)
	mustDelete(t, pair.Source, "old", 1, 2)
	l = live(t, pair, config)
	l.at("new", 0, 10)
	l.at("old", 1, 10)
	l.end()

	book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	for _, p := range book.Pairs() {
		tiles := book.Totals(p.ID).Tiles
		want := map[string][2]int64{"old-0": {4, 0}, "old-1": {0, 2}, "new-0": {0, 3}}[p.SourceTopic+"-"+string(rune('0'+p.Partition))]
		if got := [2]int64{tiles[ledger.BeforeStart], tiles[ledger.Lost]}; got != want {
			t.Errorf("%s-%d: before start and lost %v, want %v", p.SourceTopic, p.Partition, got, want)
		}
	}
}

func mustDelete(t *testing.T, c *kafkatest.Cluster, topic string, partition int32, offset int64) {
	t.Helper()
	if err := c.DeleteRecords(topic, partition, offset); err != nil {
		t.Fatal(err)
	}
}

// TestOnePartitionMissedAtFirstSight cannot see one partition of a topic in the
// first run: what it had lost by then is out of scope all the same.
func TestOnePartitionMissedAtFirstSight(t *testing.T) {
	pair := stored(t)
	if err := pair.Source.CreateTopic(t.Context(), "t", 2, nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, append(on("t", 0, 0, 10), on("t", 1, 0, 10)...)...)
	mustDelete(t, pair.Source, "t", 0, 4)
	mustDelete(t, pair.Source, "t", 1, 6)
	config := configFor(t, pair, "t")
	fault := pair.Source.MustFault(t, kafkatest.Fault{
		Kind: kafkatest.ErrorBefore, Key: kmsg.ListOffsets, Topic: "t", Partitions: []int32{1}, Count: -1, Err: kerr.TopicAuthorizationFailed,
	})
	first := mustRun(t, config)
	if len(first.Stopped) != 1 || first.Complete {
		t.Errorf("first run %+v", first)
	}
	fault.Remove()
	second := mustComplete(t, pair, config)
	wantTiles(t, second, map[ledger.Tile]int64{ledger.BeforeStart: 6, ledger.Copied: 4})
}

func TestStoppedPartitionIsTriedAgain(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 0, 10)...)
	fault := pair.Target.MustFault(t, kafkatest.Fault{
		Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "t", Count: -1, Err: kerr.TopicAuthorizationFailed,
	})
	l := live(t, pair, livingConfig(t, pair, "t"))
	s := l.stopped("t", 0, replicate.StopNotAuthorized)
	if s.State != replicate.StateStopped || s.Since.IsZero() || s.NextRetry.Before(s.Since) || s.LagRecords != 10 {
		t.Errorf("status %+v", s)
	}
	fault.Remove()
	l.at("t", 0, 10)
	if s := l.until("t", 0, "running", func(s replicate.PartitionStatus) bool { return s.State == replicate.StateRunning }); s.LagRecords != 0 || s.Lag != 0 {
		t.Errorf("status %+v", s)
	}
	l.until("t", 0, "without a stop in the ledger", func(replicate.PartitionStatus) bool { return len(l.Ledger().Stops()) == 0 })
	l.end()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, l.config.LedgerPath, "t")
}

func TestPauseAndResume(t *testing.T) {
	pair := stored(t)
	for _, topic := range []string{"a", "b"} {
		mustTopic(t, pair.Source, topic, nil)
		mustAppend(t, pair.Source.Bootstrap, on(topic, 0, 0, 10)...)
	}
	l := live(t, pair, livingConfig(t, pair, "a", "b"))
	l.at("a", 0, 10)
	l.at("b", 0, 10)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "a", Partition: -1, Paused: true, By: "ann", Reason: "audit"})
	s := l.stopped("a", 0, replicate.StopPaused)
	if s.State != replicate.StatePaused || !s.NextRetry.IsZero() || !strings.Contains(s.Detail, "ann") || !strings.Contains(s.Detail, "audit") {
		t.Errorf("status %+v", s)
	}
	mustAppend(t, pair.Source.Bootstrap, append(on("a", 0, 10, 5), on("b", 0, 10, 5)...)...)
	l.at("b", 0, 15)
	l.until("a", 0, "known to be behind", func(s replicate.PartitionStatus) bool { return s.SourceEnd == 15 && s.LagRecords == 5 })
	if s := l.Status()[0]; s.Topic != "a" || s.Position != 10 {
		t.Errorf("a went on, or does not come first: %+v", s)
	}
	var usage *replicate.UsageError
	if err := l.Order(ledger.Order{SourceTopic: "a", Partition: 0}); !errors.As(err, &usage) {
		t.Errorf("a partition of a paused topic was resumed: %v", err)
	}
	l.end()

	l = live(t, pair, l.config) // the order outlives the process
	l.stopped("a", 0, replicate.StopPaused)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "a", Partition: -1})
	l.at("a", 0, 15)
	l.end()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, l.config.LedgerPath, "a", "b")
}

func mustOrder(t *testing.T, order func(ledger.Order) error, o ledger.Order) {
	t.Helper()
	if err := order(o); err != nil {
		t.Fatal(err)
	}
}

// TestSkip leaves out a record that the target does not take, by a person's
// word.
func TestSkip(t *testing.T) {
	for _, offline := range []bool{false, true} {
		pair := stored(t)
		mustTopic(t, pair.Source, "t", nil)
		mustTopic(t, pair.Target, "t", map[string]string{"max.message.bytes": "20000"})
		records := on("t", 0, 0, 10)
		records[6].Value = make([]byte, 50_000)
		mustAppend(t, pair.Source.Bootstrap, records...)
		config := livingConfig(t, pair, "t")
		l := live(t, pair, config)
		l.stopped("t", 0, replicate.StopRecordTooLarge)
		l.at("t", 0, 6) // all before it is copied
		var usage *replicate.UsageError
		for _, bad := range []ledger.Range{{Start: 5, End: 7}, {Start: 7, End: 8}, {Start: 6, End: 11}, {Start: 6, End: 6}} {
			if bad.Empty() {
				continue
			}
			if err := l.Order(ledger.Order{SourceTopic: "t", Skip: bad, Reason: "x"}); !errors.As(err, &usage) {
				t.Errorf("skip of %v was accepted: %v", bad, err)
			}
		}
		order := ledger.Order{SourceTopic: "t", Partition: 0, Skip: ledger.Range{Start: 6, End: 7}, Reason: "broken upload", By: "ann@host"}
		if offline {
			l.end()
			book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{})
			mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, order)
			if err := book.Close(); err != nil {
				t.Fatal(err)
			}
			l = live(t, pair, config)
		} else {
			mustOrder(t, l.Order, order)
		}
		l.at("t", 0, 10)
		if orders := l.Ledger().Orders(); len(orders) != 0 {
			t.Errorf("orders left: %+v", orders)
		}
		e, err := l.Ledger().FindSource(l.Ledger().Pairs()[0].ID, 6)
		if err != nil || e.Tile != ledger.Filtered || !strings.Contains(e.Reason, "broken upload") || !strings.Contains(e.Reason, "ann@host") {
			t.Errorf("entry of the record left out: %+v, %v", e, err)
		}
		s := l.end()
		if s.BadTiles != 0 {
			t.Errorf("summary %+v", s)
		}
	}
}

// TestRecreatedTopic is deleted and created again while the flow runs; it stays
// as it is until a person accepts that.
func TestRecreatedTopic(t *testing.T) {
	for _, waits := range []bool{false, true} {
		t.Run(fmt.Sprintf("the person waits until it is noticed %v", waits), func(t *testing.T) { recreate(t, waits) })
	}
}

func recreate(t *testing.T, waits bool) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 0, 10)...)
	config := livingConfig(t, pair, "t")
	if !waits {
		config.RetryAfter = time.Hour
	}
	l := live(t, pair, config)
	l.at("t", 0, 10)
	source := admin(t, pair.Source.Bootstrap)
	if _, err := source.DeleteTopics(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	l.stopped("t", 0, replicate.StopTopicDeleted)
	if err := l.Order(ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true}); err == nil {
		t.Error("accepted while there is no topic")
	}
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 100, 25)...)
	if waits {
		l.stopped("t", 0, replicate.StopTopicRecreated)
		if s := l.Status()[0]; s.Position != 10 {
			t.Errorf("status %+v", s)
		}
	}
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true})
	l.at("t", 0, 25)
	if orders := l.Ledger().Orders(); len(orders) != 0 {
		t.Errorf("orders left: %+v", orders)
	}
	if err := l.Order(ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true}); err == nil {
		t.Error("accepted again, with nothing to accept")
	}
	pairs := l.Ledger().Pairs()
	if len(pairs) != 2 || pairs[0].Closed == nil || pairs[1].Generation != 2 || pairs[1].TargetBase != 10 {
		t.Errorf("pairs %+v", pairs)
	}
	if s := l.end(); s.Tiles[ledger.Copied] != 35 || !s.Complete {
		t.Errorf("summary %+v", s)
	}
}

// TestSettingsFollowTheSource keeps the settings of topics that the flow made,
// leaves those that somebody else made, and what an exact copy needs.
func TestSettingsFollowTheSource(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "made", map[string]string{"retention.ms": "1000000"})
	mustTopic(t, pair.Source, "theirs", nil)
	mustTopic(t, pair.Target, "theirs", map[string]string{"retention.ms": "5"})
	config := livingConfig(t, pair, "made", "theirs")
	l := live(t, pair, config)
	source, target := admin(t, pair.Source.Bootstrap), admin(t, pair.Target.Bootstrap)
	l.untilSetting(target, "made", "retention.ms", "1000000")
	set := func(c *kadm.Client, topic, key string, value *string) {
		t.Helper()
		op := kadm.SetConfig
		if value == nil {
			op = kadm.DeleteConfig
		}
		if _, err := c.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: op, Name: key, Value: value}}, topic); err != nil {
			t.Fatal(err)
		}
	}
	value := kadm.StringPtr
	set(target, "made", "segment.ms", value("900000"))
	set(source, "made", "retention.ms", value("2000000"))
	set(source, "made", "min.insync.replicas", value("2"))
	set(source, "made", "compression.type", value("gzip"))
	set(source, "theirs", "retention.ms", value("7"))
	l.untilSetting(target, "made", "retention.ms", "2000000")
	set(source, "made", "cleanup.policy", value("compact"))
	l.untilSetting(target, "made", "cleanup.policy", "compact")
	for key, want := range map[string]string{"segment.ms": "900000", "compression.type": "producer", "min.insync.replicas": "1"} {
		if got := settingOf(t, target, "made", key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if got := settingOf(t, target, "theirs", "retention.ms"); got != "5" {
		t.Errorf("the setting of a topic that we did not make is now %s", got)
	}
	l.end()
	l = live(t, pair, config) // what was set is remembered
	set(source, "made", "retention.ms", nil)
	l.untilSetting(target, "made", "retention.ms", "604800000")
	l.end()
}

func (l *living) untilSetting(c *kadm.Client, topic, key, value string) {
	l.t.Helper()
	deadline := time.After(20 * time.Second)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		got := settingOf(l.t, c, topic, key)
		if got == value {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			l.t.Fatalf("topic %s: %s is %s and never became %s", topic, key, got, value)
		}
	}
}

func settingOf(t *testing.T, c *kadm.Client, topic, key string) string {
	t.Helper()
	resources, err := c.DescribeTopicConfigs(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resources {
		for _, s := range r.Configs {
			if s.Key == key && s.Value != nil {
				return *s.Value
			}
		}
	}
	return ""
}

func TestStartPoints(t *testing.T) {
	pair := stored(t)
	b := pair.Source.Bootstrap
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, b, on("t", 0, 0, 10)...) // at 1_700_000_000_000 ms and following
	mustTopic(t, pair.Source, "other", nil)
	mustAppend(t, b, on("other", 0, 0, 3)...)
	offsets := kadm.Offsets{}
	offsets.AddOffset("t", 0, 4, -1)
	if _, err := admin(t, b).CommitOffsets(t.Context(), "g", offsets); err != nil {
		t.Fatal(err)
	}
	third := numbered(0, 4)[3].Timestamp.UTC().Format(time.RFC3339Nano)
	for text, want := range map[string][2]int64{
		"earliest": {0, 0}, "latest": {10, 3}, "group:g": {4, 0}, third: {3, 3}, "2100-01-01T00:00:00Z": {10, 3},
		"1969-12-31T23:59:59.999Z": {0, 0}, "1960-01-01T00:00:00Z": {0, 0}, "1970-01-01T00:00:00Z": {0, 0},
	} {
		pair := &kafkatest.Pair{Source: pair.Source, Target: kafkatest.NewCluster(t, kafkatest.ClusterOptions{})}
		config := configFor(t, pair, "t", "other")
		var err error
		if config.Start, err = replicate.ParseStartPoint(text); err != nil {
			t.Fatal(err)
		}
		s := mustRun(t, config)
		if !s.Complete {
			t.Errorf("%s: %+v", text, s)
		}
		book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
		for _, p := range book.Pairs() {
			if start := want[map[string]int{"t": 0, "other": 1}[p.SourceTopic]]; p.ScopeStart != start {
				t.Errorf("start %s: %s begins at %d, want %d", text, p.SourceTopic, p.ScopeStart, start)
			}
		}
	}
	config := configFor(t, pair, "t")
	config.Start, _ = replicate.ParseStartPoint("group:nobody")
	var usage *replicate.UsageError
	if _, err := replicate.Run(t.Context(), config); !errors.As(err, &usage) {
		t.Errorf("a group that has committed nothing: %v", err)
	}
}
