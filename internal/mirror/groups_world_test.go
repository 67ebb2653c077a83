package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
	"apograph/internal/groups"
	"apograph/internal/kafkatest"
	"apograph/internal/mirror"
	"apograph/internal/mm2"
	"apograph/ledger"
	"apograph/replicate"
	"apograph/translate"
)

// checkpointsTopic is where the flow a->b has its checkpoints.
const checkpointsTopic = "a.checkpoints.internal"

// A groupWorld is two clusters, a copy between them, and the duties about groups,
// which the test lets do one round at a time.
type groupWorld struct {
	t        *testing.T
	pair     *kafkatest.Pair
	path     string
	settings mirror.Settings
	policy   mm2.Policy
	topics   string
	clock    time.Time

	book *ledger.Ledger
	m    *mirror.Mirror
	log  lines
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// since returns what was logged since it was called last.
func (l *lines) since() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func clusterOf(alias string, b kafkatest.Bootstrap) connect.Cluster {
	return connect.Cluster{Alias: alias, Bootstrap: b.Addresses, Options: b.DialOptions()}
}

func selection(t testing.TB, include, exclude string) mm2.Selection {
	t.Helper()
	s, err := mm2.ParseSelection([]string{include}, []string{exclude})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newGroupWorld has topic orders with 3 partitions on the source, and the duties
// that the settings enable.
func newGroupWorld(t *testing.T, options kafkatest.Options) *groupWorld {
	t.Helper()
	w := &groupWorld{
		t: t, pair: kafkatest.NewPair(t, options), path: filepath.Join(t.TempDir(), "flow.ledger"), topics: "orders|payments",
		clock: time.UnixMilli(1_800_000_000_000),
	}
	w.settings.Checkpoints = mirror.Checkpoints{Enabled: true, Groups: selection(t, ".*", mm2.DefaultGroupsExclude), RefreshGroups: 10 * time.Minute}
	w.settings.GroupSync.Enabled = true
	w.createTopic(w.pair.Source, "orders", 3)
	kafkatest.CheckLedgerAtEnd(t, w.path)
	t.Cleanup(w.stop)
	return w
}

func (w *groupWorld) createTopic(on *kafkatest.Cluster, topic string, partitions int32) {
	w.t.Helper()
	if err := on.CreateTopic(w.t.Context(), topic, partitions, nil); err != nil {
		w.t.Fatal(err)
	}
}

// produce appends n records to a partition of the source.
func (w *groupWorld) produce(topic string, partition int32, n int) {
	w.t.Helper()
	if err := w.pair.Source.Append(w.t.Context(), kafkatest.None, w.records(topic, partition, n)...); err != nil {
		w.t.Fatal(err)
	}
}

// transact appends n records in a transaction: a commit or an abort marker
// follows them.
func (w *groupWorld) transact(topic string, partition int32, n int, commit bool) {
	w.t.Helper()
	if err := w.pair.Source.AppendTransaction(w.t.Context(), "tx", commit, w.records(topic, partition, n)...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *groupWorld) records(topic string, partition int32, n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil, "v%d", i), Timestamp: w.clock}
	}
	return records
}

// copy stops the duties, copies all that is on the source, and begins the duties
// anew, as a process that is started again does.
func (w *groupWorld) copy() {
	w.t.Helper()
	w.stop()
	summary, err := replicate.Run(w.t.Context(), replicate.Config{
		Source: clusterOf("a", w.pair.Source.Bootstrap), Target: clusterOf("b", w.pair.Target.Bootstrap),
		LedgerPath: w.path, Topics: []string{w.topics}, Policy: w.policy, Once: true, Now: func() time.Time { return w.clock },
	})
	if err != nil {
		w.t.Fatalf("copy: %v, %+v", err, summary)
	}
	w.begin()
}

// begin opens the ledger and starts the duties.
func (w *groupWorld) begin() {
	w.t.Helper()
	var err error
	if w.book, err = ledger.Open(w.path, ledger.Options{}); err != nil {
		w.t.Fatal(err)
	}
	w.start()
}

// start starts the duties, with the memory of a new process.
func (w *groupWorld) start() {
	w.t.Helper()
	if w.m != nil {
		w.m.Close()
	}
	var err error
	w.m, err = mirror.Start(w.t.Context(), mirror.Config{
		Source: clusterOf("a", w.pair.Source.Bootstrap), Target: clusterOf("b", w.pair.Target.Bootstrap), Ledger: w.book,
		Topics:   mm2.TopicRules{Selection: selection(w.t, w.topics, ""), Source: "a", Target: "b", Policy: w.policy},
		Settings: w.settings, Translate: books{w.book}, Now: func() time.Time { return w.clock },
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *groupWorld) stop() {
	if w.m != nil {
		w.m.Close()
		w.m = nil
	}
	if w.book != nil {
		if err := w.book.Close(); err != nil {
			w.t.Error(err)
		}
		w.book = nil
	}
}

// books translates by a ledger.
type books struct{ ledger *ledger.Ledger }

func (b books) Forward(ctx context.Context, positions []mirror.Position) ([]mirror.Translation, error) {
	transfers := make([]translate.Transfer, len(positions))
	for i, p := range positions {
		transfers[i] = translate.NewTransfer(translate.PlanRow{Group: p.Group, Query: translate.Query{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset}}, "")
		transfers[i].Epoch = p.Epoch
	}
	err := translate.NewIndex(b.ledger).Translate(ctx, transfers, false)
	translations := make([]mirror.Translation, len(transfers))
	for i, a := range transfers {
		translations[i] = mirror.Translation{
			Status: mirror.Status(a.Status.String()), Offset: a.TargetOffset, Doubtful: a.Doubtful, Pair: a.Pair.ID,
			TargetTopic: a.Pair.TargetTopic, SourceTopicID: a.Pair.SourceTopicID, TargetTopicID: a.Pair.TargetTopicID,
		}
	}
	return translations, err
}

// round lets each duty do its work once. An hour passes before, so that groups
// are listed again.
func (w *groupWorld) round() {
	w.t.Helper()
	if errs := w.try(); len(errs) > 0 {
		w.t.Fatal(errs)
	}
}

func (w *groupWorld) try() []*mirror.DutyError {
	w.clock = w.clock.Add(time.Hour)
	return w.m.Once(w.t.Context())
}

// commit commits for a group as any administrator would.
func (w *groupWorld) commit(on *kafkatest.Cluster, group, topic string, partition int32, offset int64) {
	w.t.Helper()
	commitFor(w.t, on.Bootstrap, group, topic, partition, offset, "by hand")
}

func commitFor(t testing.TB, on kafkatest.Bootstrap, group, topic string, partition int32, offset int64, metadata string) {
	t.Helper()
	commitOf(t, on, group, kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: 7, Metadata: metadata})
}

func commitOf(t testing.TB, on kafkatest.Bootstrap, group string, o kadm.Offset) {
	t.Helper()
	client, err := on.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := kadm.NewClient(client).CommitOffsets(t.Context(), group, kadm.Offsets{o.Topic: {o.Partition: o}})
	if err := errors.Join(err, answer.Error()); err != nil {
		t.Fatalf("commit %d for %s: %v", o.At, group, err)
	}
}

// on returns what a group has on the target, as the fake itself says.
func (w *groupWorld) on(group, topic string, partition int32) int64 {
	w.t.Helper()
	offset, _, _ := w.onTarget(group, topic, partition)
	return offset
}

func (w *groupWorld) onTarget(group, topic string, partition int32) (offset int64, metadata string, epoch int32) {
	w.t.Helper()
	info := w.pair.Target.Fake().GroupInfo(group)
	if info == nil {
		return groups.NoOffset, "", -1
	}
	commit, ok := info.Commits[topic][partition]
	if !ok {
		return groups.NoOffset, "", -1
	}
	return commit.Offset, commit.Metadata, commit.LeaderEpoch
}

// row returns what is said of a group in a partition.
func (w *groupWorld) row(group, topic string, partition int32) mirror.GroupStatus {
	w.t.Helper()
	rows := w.m.Groups().Rows
	var found []mirror.GroupStatus
	for _, r := range rows {
		if r.Group == group && r.Topic == topic && r.Partition == partition {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("%d rows of %s in %s-%d: %+v", len(found), group, topic, partition, rows)
	}
	return found[0]
}

// mustRow compares action, reason and what the group has on the target, in
// orders-0.
func (w *groupWorld) mustRow(group string, action groups.Action, reason mirror.Reason, committed int64) {
	w.t.Helper()
	r := w.row(group, "orders", 0)
	if r.Action != action || r.Reason != reason || r.Committed != committed {
		w.t.Errorf("%s: %+v, want %s %q at %d", group, r, action, reason, committed)
	}
	if got := w.on(group, "orders", 0); got != committed {
		w.t.Errorf("%s has %d on the target, want %d", group, got, committed)
	}
}

// mustSay looks for texts in the one line that was logged about a group since it was
// called last; without a text, there is none.
func (w *groupWorld) mustSay(group string, texts ...string) {
	w.t.Helper()
	log, of := w.log.since(), ""
	for line := range strings.Lines(log) {
		if strings.Contains(line, " group="+group) {
			of += line
		}
	}
	for _, text := range texts {
		if !strings.Contains(of, text) {
			w.t.Errorf("%q is not said of %s: %s", text, group, log)
		}
	}
	if strings.Count(of, "\n") != min(len(texts), 1) {
		w.t.Errorf("of %s is said %s", group, of)
	}
}

// checkpoints returns all checkpoints that were ever written, in order.
func (w *groupWorld) checkpoints() []mm2.Checkpoint {
	w.t.Helper()
	records, err := w.pair.Target.ReadCommitted(w.t.Context(), checkpointsTopic, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	all := make([]mm2.Checkpoint, 0, len(records))
	for _, r := range records {
		c, err := mm2.ParseCheckpoint(r.Key, r.Value)
		if err != nil {
			w.t.Fatalf("%+v: %v", r, err)
		}
		all = append(all, c)
	}
	return all
}

// mustWrite compares the checkpoints that were written since n, as texts.
func (w *groupWorld) mustWrite(n *int, want ...string) {
	w.t.Helper()
	all := w.checkpoints()
	var got []string
	for _, c := range all[*n:] {
		got = append(got, fmt.Sprintf("%s %s-%d %d->%d %s", c.Group, c.Topic, c.Partition, c.Upstream, c.Downstream, c.Metadata))
	}
	if *n = len(all); strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("checkpoints\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func deleteTopic(t testing.TB, on *kafkatest.Cluster, topic string) {
	t.Helper()
	client, err := on.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
}

// elsewhere returns a group that another broker of the source coordinates.
func (w *groupWorld) elsewhere(group string) string {
	w.t.Helper()
	admin := kadm.NewClient(w.pair.Source.NewClient(w.t))
	ids := []string{group}
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("%s%d", group, i))
	}
	found := admin.FindGroupCoordinators(w.t.Context(), ids...)
	for _, id := range ids {
		if found[id].NodeID != found[group].NodeID {
			return id
		}
	}
	w.t.Fatalf("all groups have one coordinator: %+v", found)
	return ""
}
