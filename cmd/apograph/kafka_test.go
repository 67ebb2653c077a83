//go:build kafka

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// kafkaKills is how often TestKafkaSigkill kills a copier.
const kafkaKills = 20

// A realFlow is a flow between two real clusters.
type realFlow struct {
	source, target *kafkatest.Kafka
	ledger         string
}

// startFlow starts a source of one node and a target of three.
func startFlow(t *testing.T) *realFlow {
	t.Helper()
	return &realFlow{
		source: kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "source"}),
		target: kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "target", Nodes: 3, Config: map[string]string{"broker.session.timeout.ms": "9000"}}),
		ledger: filepath.Join(t.TempDir(), "flow.ledger"),
	}
}

// command returns apograph with the flow's clusters and ledger.
func (f *realFlow) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	args = append([]string{name, "--ledger", f.ledger,
		"--source-bootstrap-server", f.source.Server(), "--target-bootstrap-server", f.target.Server()}, args...)
	return exec.CommandContext(ctx, "apograph", args...)
}

// run runs apograph and returns its exit code and standard output as JSON.
func (f *realFlow) run(t *testing.T, name string, args ...string) (code int, answer map[string]any) {
	t.Helper()
	cmd := f.command(t.Context(), name, append(args, "-o", "json")...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%s: standard output %q: %v\n%s", name, out, err, stderr.String())
	}
	if code = cmd.ProcessState.ExitCode(); code != 0 {
		t.Logf("%s: exit code %d: %s\n%s", name, code, out, stderr.String())
	}
	return code, answer
}

// prove expects a complete copy of topics: by the copier, by the verifier, by
// kgo and by the Java client, and sound books.
func (f *realFlow) prove(t *testing.T, topics ...string) {
	t.Helper()
	for _, topic := range topics {
		if err := f.source.WaitDecided(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	list := strings.Join(topics, ",")
	if code, _ := f.run(t, "replicate", "--once", "--topics", list); code != 0 {
		t.Errorf("replicate: exit code %d", code)
	}
	code, report := f.run(t, "verify")
	if code != 0 || report["verdict"] != "complete" {
		t.Errorf("verify: exit code %d, verdict %v", code, report["verdict"])
	}
	kafkatest.Compare(t, f.source.Bootstrap, f.target.Bootstrap, kafkatest.Same(topics...))
	mustCheck(t, f.ledger)
}

// javaAgrees reads both sides of topics with the Java client.
func (f *realFlow) javaAgrees(t *testing.T, topics ...string) {
	t.Helper()
	for _, topic := range topics {
		want, err := f.source.JavaReadTopic(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.target.JavaReadTopic(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for p := range want {
			if d := differenceOfContent(want[p], got[p]); d != "" {
				t.Errorf("%s-%d as the Java client sees it: %s", topic, p, d)
			}
		}
	}
}

// differenceOfContent compares records whose offsets differ by right.
func differenceOfContent(source, target []kafkatest.Record) string {
	if len(source) != len(target) {
		return fmt.Sprintf("%d records on the source, %d on the target", len(source), len(target))
	}
	for i := range source {
		s := source[i]
		s.Offset = target[i].Offset
		if d := kafkatest.DifferenceOf([]kafkatest.Record{s}, target[i:i+1]); d != "" {
			return d
		}
	}
	return ""
}

// TestKafkaMainJob copies what the Java client, kgo and our own producer wrote,
// and what the real cleaner left.
func TestKafkaMainJob(t *testing.T) {
	f := startFlow(t)
	ctx := t.Context()
	fill := errors.Join(
		f.source.CreateTopic(ctx, "java", 2, kafkatest.LoadConfigs()),
		f.source.JavaLoad(ctx, kafkatest.JavaLoad{Topic: "java", Partitions: 2, Records: 3000, Seed: 1}),
		kafkatest.Load{Seed: 2, Topics: []string{"kgo"}, Partitions: 2, Records: 3000, ThroughClient: true}.Run(ctx, f.source.Bootstrap),
		kafkatest.Load{Seed: 3, Topics: []string{"own"}, Partitions: 3, Records: 3000}.Run(ctx, f.source.Bootstrap),
		f.source.CreateTopic(ctx, "compacted", 1, kafkatest.CompactedConfigs()),
		f.source.JavaLoad(ctx, kafkatest.JavaLoad{Topic: "compacted", Partitions: 1, Records: 1000, Seed: 3, Keyed: true}),
		f.source.FillCompacted(ctx, "compacted", 4<<20),
		f.source.WaitCompacted(ctx, "compacted"),
		f.source.CreateTopic(ctx, "expired", 1, kafkatest.LoadConfigs()),
		f.source.JavaLoad(ctx, kafkatest.JavaLoad{Topic: "expired", Partitions: 1, Records: 500, Seed: 4}),
		f.source.DeleteRecords(ctx, "expired", 0, 123),
		f.source.CreateTopic(ctx, "empty", 3, nil),
	)
	if fill != nil {
		t.Fatal(fill)
	}
	topics := []string{"java", "kgo", "own", "compacted", "expired", "empty"}
	f.prove(t, topics...)
	f.javaAgrees(t, topics...)
	settings, err := f.target.Tool(ctx, kafkatest.TopicCommand, []string{"--bootstrap-server", f.target.Server(), "--describe", "--topic", "compacted"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ReplicationFactor: 1", "cleanup.policy=compact", "compression.type=producer", "message.timestamp.after.max.ms=9223372036854775807"} {
		if !strings.Contains(string(settings), want) {
			t.Errorf("target topic: %s\nlacks %s", settings, want)
		}
	}
}

// TestKafkaSigkill kills copiers at random moments while the source grows.
func TestKafkaSigkill(t *testing.T) {
	f := startFlow(t)
	r := rand.New(rand.NewPCG(20261129, 2))
	topics := []string{"orders", "payments"}
	for kill, round := 0, 0; kill < kafkaKills; round++ {
		if round > 10*kafkaKills {
			t.Fatalf("only %d kills in %d rounds", kill, round)
		}
		load := kafkatest.Load{Seed: uint64(round), Topics: topics, Partitions: 2, Records: 600, MaxValueBytes: 20_000}
		if err := load.Run(t.Context(), f.source.Bootstrap); err != nil {
			t.Fatal(err)
		}
		for _, topic := range topics {
			if err := f.source.WaitDecided(t.Context(), topic); err != nil {
				t.Fatal(err)
			}
		}
		child := f.command(t.Context(), "replicate", "--once", "--topics", ".*")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		death := time.AfterFunc(time.Duration(20+r.IntN(180))*time.Millisecond, func() { _ = child.Process.Kill() })
		if err := child.Wait(); err != nil {
			kill++
		}
		death.Stop()
	}
	f.prove(t, topics...)
	f.javaAgrees(t, topics...)
}

// TestKafkaLeaderDiesWithLaggingFollowers: while one follower lags, a batch is in
// the leader's log above the high watermark; then the leader dies. The copy goes
// on with another leader, and nothing is missing or doubled.
func TestKafkaLeaderDiesWithLaggingFollowers(t *testing.T) {
	f := startFlow(t)
	ctx := t.Context()
	load := kafkatest.Load{Seed: 9, Topics: []string{"t"}, Partitions: 1, Records: 30_000, MaxValueBytes: 20_000}
	if err := load.Run(ctx, f.source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	if err := createReplicated(ctx, f.target, "t"); err != nil {
		t.Fatal(err)
	}
	leader, err := f.target.Leader(ctx, "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	lagging := leader%3 + 1
	child := f.command(ctx, "replicate", "--once", "--topics", "t")
	var stderr strings.Builder
	child.Stderr = &stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.target.WaitLogEnd(ctx, leader, "t", 0, 100), f.target.Pause(lagging)); err != nil {
		t.Fatal(err)
	}
	// From now on the leader appends what the paused follower, which is in
	// sync, holds back from the high watermark.
	high, err := f.target.HighWatermark(ctx, leader, "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.target.WaitLogEnd(ctx, leader, "t", 0, high+1); err != nil {
		t.Fatal(err)
	}
	if held, err := f.target.HighWatermark(ctx, leader, "t", 0); err != nil || held != high {
		t.Logf("the high watermark moved from %d to %d (%v)", high, held, err)
	}
	t.Logf("leader %d dies with high watermark %d", leader, high)
	if err := errors.Join(f.target.Kill(leader), f.target.Resume(lagging)); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Errorf("replicate: %v\n%s", err, stderr.String())
	}
	if err := f.target.Restart(leader); err != nil {
		t.Fatal(err)
	}
	f.prove(t, "t")
	f.javaAgrees(t, "t")
}

// createReplicated creates a topic on all three nodes.
func createReplicated(ctx context.Context, k *kafkatest.Kafka, topic string) error {
	_, err := k.Tool(ctx, kafkatest.TopicCommand, []string{"--bootstrap-server", k.Server(), "--create", "--topic", topic,
		"--partitions", "1", "--replication-factor", "3",
		"--config", "message.timestamp.after.max.ms=9223372036854775807", "--config", "message.timestamp.before.max.ms=9223372036854775807",
		"--config", "retention.ms=-1"}, nil)
	return err
}

// TestKafkaSourceCut cuts the source's log below the books while its broker is
// down, as an unclean election does, and lets it grow to less, the same and more
// than it was. None of it is complete, and a person's word goes on from the cut.
func TestKafkaSourceCut(t *testing.T) {
	ctx := t.Context()
	logs := filepath.Join(t.TempDir(), "logs")
	f := &realFlow{
		source: kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "source", Config: map[string]string{"log.dirs": logs}}),
		target: kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "target"}),
		ledger: filepath.Join(t.TempDir(), "flow.ledger"),
	}
	again := map[string]int{"none": 0, "less": 5, "same": 10, "more": 15}
	for topic := range again {
		if err := f.source.CreateTopic(ctx, topic, 1, nil); err != nil {
			t.Fatal(err)
		}
		appendNumbered(t, f.source, topic, "before", 100)
	}
	if code, _ := f.run(t, "replicate", "--once", "--topics", "none,less,same,more"); code != 0 {
		t.Fatalf("replicate: exit code %d", code)
	}
	if err := f.source.Kill(1); err != nil {
		t.Fatal(err)
	}
	for topic := range again {
		cutLog(t, filepath.Join(logs, topic+"-0", "00000000000000000000.log"), 90)
	}
	if err := f.source.Restart(1); err != nil {
		t.Fatal(err)
	}
	for topic, n := range again {
		appendNumbered(t, f.source, topic, "after", n)
	}
	f.mustHoldBackAbove(t, 90, "same", "more")
	code, answer := f.run(t, "replicate", "--once", "--topics", "none,less,same,more")
	stopped, _ := answer["stopped"].([]any)
	if code != 1 || answer["complete"] != false || len(stopped) != 4 {
		t.Errorf("exit code %d, complete %v, stopped %v", code, answer["complete"], stopped)
	}
	for _, s := range stopped {
		if row := s.(map[string]any); row["reason"] != "source_truncated" || row["offset"] != 90.0 {
			t.Errorf("stopped %v", row)
		}
	}
	if code, report := f.run(t, "verify"); code != 3 || report["verdict"] != "faults" {
		t.Errorf("verify: exit code %d, verdict %v", code, report["verdict"])
	}
}

// mustHoldBackAbove translates for groups at a cut that no copier has seen, which is
// exact, and above it, which is unknown.
func (f *realFlow) mustHoldBackAbove(t *testing.T, cut int64, topics ...string) {
	t.Helper()
	client, err := f.source.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for group, at := range map[string]int64{"at": cut, "above": cut + 5} {
		offsets := make(kadm.Offsets)
		for _, topic := range topics {
			offsets.AddOffset(topic, 0, at, -1)
		}
		if _, err := kadm.NewClient(client).CommitOffsets(t.Context(), group, offsets); err != nil {
			t.Fatal(err)
		}
	}
	code, answer := f.run(t, "translate", "--group", "at", "--group", "above")
	rows, _ := answer["rows"].([]any)
	if code != 4 || len(rows) != 2*len(topics) {
		t.Errorf("translate: exit code %d, %v", code, answer)
	}
	for _, r := range rows {
		row := r.(map[string]any)
		if want := map[any]string{"at": "exact", "above": "unknown"}[row["group"]]; row["status"] != want {
			t.Errorf("%v, want %s", row, want)
		}
	}
}

// appendNumbered writes records one by one, so that each is a batch.
func appendNumbered(t *testing.T, k *kafkatest.Kafka, topic, value string, n int) {
	t.Helper()
	producer, err := k.Producer(kafkatest.None)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for i := range n {
		r := &kgo.Record{Topic: topic, Key: []byte("k"), Value: fmt.Appendf(nil, "%s %d", value, i)}
		if err := producer.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// cutLog cuts a segment before the batch that holds offset.
func cutLog(t *testing.T, segment string, offset int64) {
	t.Helper()
	data, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for at < len(data) && int64(binary.BigEndian.Uint64(data[at:])) < offset {
		at += 12 + int(binary.BigEndian.Uint32(data[at+8:]))
	}
	if err := os.Truncate(segment, int64(at)); err != nil {
		t.Fatal(err)
	}
}

// TestKafkaTimestampLimits: the target refuses records older than a day. The
// copy stops at the first such one and names the setting; a dry run warns.
func TestKafkaTimestampLimits(t *testing.T) {
	ctx := t.Context()
	f := &realFlow{
		source: kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "source"}),
		target: kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "target"}),
		ledger: filepath.Join(t.TempDir(), "flow.ledger"),
	}
	limit := map[string]string{"message.timestamp.before.max.ms": "86400000"}
	if err := errors.Join(f.source.CreateTopic(ctx, "t", 1, kafkatest.LoadConfigs()), f.target.CreateTopic(ctx, "t", 1, limit)); err != nil {
		t.Fatal(err)
	}
	producer, err := f.source.Producer(kafkatest.None)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	now := time.Now()
	for _, at := range []time.Time{now, now.Add(-72 * time.Hour), now} {
		if err := producer.Append(ctx, &kgo.Record{Topic: "t", Value: []byte("v"), Timestamp: at}); err != nil {
			t.Fatal(err)
		}
	}
	if code, plan := f.run(t, "replicate", "--dry-run", "--topics", "t"); code != 0 || !strings.Contains(fmt.Sprint(plan["topics"]), "message.timestamp.before.max.ms=86400000") {
		t.Errorf("dry run: exit code %d, %v", code, plan)
	}
	code, answer := f.run(t, "replicate", "--once", "--topics", "t")
	stopped := fmt.Sprint(answer["stopped"])
	if code != 1 || answer["copied"] != 1.0 || !strings.Contains(stopped, "offset:1 ") || !strings.Contains(stopped, "record_refused") ||
		!strings.Contains(stopped, "message.timestamp.before.max.ms=86400000") || !strings.Contains(stopped, "(72h0m") {
		t.Errorf("exit code %d, copied %v, stopped %s", code, answer["copied"], stopped)
	}
	mustCheck(t, f.ledger)
}
