package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// A takeoverCase is a flow a->b that MirrorMaker 2 has copied by the same file, and
// was stopped.
type takeoverCase struct {
	*configCase
	mirror kafkatest.Mirror
}

func newTakeoverCase(t *testing.T, lines ...string) *takeoverCase {
	t.Helper()
	c := &takeoverCase{configCase: newConfigCase(t, append([]string{"a->b.enabled = true", "topics = orders"}, lines...)...)}
	c.mirror = kafkatest.Mirror{Source: c.a.Bootstrap, Target: c.b.Bootstrap, Topic: "orders", TargetTopic: "a.orders"}
	c.topic(c.a, "orders", 12)
	c.topic(c.b, "a.orders", 0)
	c.transaction(false, 4) // 12 to 16
	c.transaction(true, 5)  // 17 to 22
	c.copies(0, 16)
	c.copies(6, 23)
	internal := map[string]string{"cleanup.policy": "compact"}
	for name, on := range map[string]*kafkatest.Cluster{"mm2-offset-syncs.b.internal": c.a, "mm2-offsets.a.internal": c.b, "heartbeats": c.b} {
		if err := on.CreateTopic(t.Context(), name, 1, internal); err != nil {
			t.Fatal(err)
		}
	}
	c.append(c.b, kafkatest.MirrorSourceOffset("mm2-offsets.a.internal", "a", "orders", 0, 9))
	c.append(c.a, kafkatest.MirrorSync("mm2-offset-syncs.b.internal", "orders", 0, 0, 0), kafkatest.MirrorSync("mm2-offset-syncs.b.internal", "orders", 0, 6, 16))
	return c
}

func (c *takeoverCase) append(on *kafkatest.Cluster, records ...*kgo.Record) {
	c.t.Helper()
	if err := on.Append(c.t.Context(), kafkatest.None, records...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *takeoverCase) transaction(commit bool, n int) {
	c.t.Helper()
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Topic: "orders", Value: []byte{byte(n), byte(i)}, Timestamp: time.UnixMilli(2000)})
	}
	if err := c.a.AppendTransaction(c.t.Context(), "tx", commit, records...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *takeoverCase) copies(from, to int64) {
	c.t.Helper()
	if _, err := c.mirror.Copy(c.t.Context(), from, to); err != nil {
		c.t.Fatal(err)
	}
}

// TestTakeover goes the way of whoever leaves MirrorMaker 2, with its file alone.
func TestTakeover(t *testing.T) {
	c := newTakeoverCase(t)
	stdout, stderr := c.run(2, "replicate", "--once")
	for _, want := range []string{"cluster b holds records that this ledger does not know: a.orders-0 has offsets [0, 31)",
		"MirrorMaker 2 has copied there, by its topic mm2-offsets.a.internal", "restore the flow's ledger from a snapshot", "`apograph attach`", "--append"} {
		_, rest, ok := strings.Cut(stderr, want)
		if !ok {
			t.Errorf("%q is not in\n%s", want, stderr)
		}
		stderr = rest // in this order
	}
	if stdout != "" {
		t.Error(stdout)
	}
	var report attachReport
	c.answer(&report, 0, "attach")
	if len(report.Partitions) != 1 || report.Ledger.Path == nil || *report.Ledger.Path != filepath.Join(c.dir, "a-to-b.ledger") {
		t.Fatalf("%+v", report)
	}
	if p := report.Partitions[0]; p.Copied != 17 || p.Duplicates != 6 || p.Foreign != 8 || p.Aborted != 8 || p.Unprovable != (unprovable{}) {
		t.Errorf("%+v", p)
	}
	c.more("orders", 3)
	c.run(0, "replicate", "--once")
	var verified struct {
		Verdict string
		Summary struct{ Copied, Equal, Duplicates, Foreign, Extra int64 }
	}
	c.answer(&verified, 0, "verify", "--mode", "full")
	if s := verified.Summary; verified.Verdict != "complete" || s.Copied != 20 || s.Equal != 20 || s.Duplicates != 6 || s.Foreign != 8 || s.Extra != 0 {
		t.Errorf("%+v", verified)
	}
	c.oracle(20)
	c.run(2, "attach") // there is a ledger
	mustCheck(t, filepath.Join(c.dir, "a-to-b.ledger"))
}

// TestTakeoverGoesOnInItsLedger: what was refused is attached once its cause is gone,
// into the ledger that the others are in and that replicate has gone on with.
func TestTakeoverGoesOnInItsLedger(t *testing.T) {
	c := newTakeoverCase(t, "topics = orders, payments")
	c.topic(c.a, "payments", 3)
	c.topic(c.b, "a.payments", 0)
	producer, err := c.a.TransactionalProducer("open", kafkatest.None)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	record := &kgo.Record{Topic: "payments", Value: []byte("undecided"), Timestamp: time.UnixMilli(2000)}
	if err := errors.Join(producer.Begin(), producer.Append(t.Context(), record)); err != nil {
		t.Fatal(err)
	}
	payments := kafkatest.Mirror{Source: c.a.Bootstrap, Target: c.b.Bootstrap, Topic: "payments", TargetTopic: "a.payments"}
	if _, err := payments.Copy(t.Context(), 0, 4); err != nil {
		t.Fatal(err)
	}
	out, _ := c.run(3, "attach")
	if !strings.Contains(out, "1 partition: not in the ledger; once the cause is gone, attach again") {
		t.Error(out)
	}
	c.more("orders", 3)
	out, _ = c.run(1, "replicate", "--once")
	if !strings.Contains(out, "let `apograph attach` make the books, in the flow's ledger if that is there") {
		t.Error(out)
	}
	file := filepath.Join(c.dir, "a-to-b.ledger")
	link := filepath.Join(t.TempDir(), "real.ledger")
	if err := errors.Join(os.Rename(file, link), os.Symlink(link, file), os.Chmod(link, 0o600)); err != nil {
		t.Fatal(err)
	}
	before, _ := c.run(0, "ledger", "export", "--book", "source", "-o", "jsonl")
	var first, second ledgerInfo
	c.answer(&first, 0, "ledger", "inspect")

	c.run(3, "attach") // the transaction is open yet
	if err := producer.End(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var report attachReport
	c.answer(&report, 0, "attach")
	if len(report.Partitions) != 1 || report.Partitions[0].Topic != "payments" || report.Partitions[0].Copied != 4 || *report.Ledger.Path != file {
		t.Errorf("%+v", report)
	}
	if after, _ := c.run(0, "ledger", "export", "--book", "source", "-o", "jsonl"); !strings.HasPrefix(after, before) {
		t.Errorf("the books of the others were\n%s\nand are\n%s", before, after)
	}
	if c.answer(&second, 0, "ledger", "inspect"); second.LedgerID != first.LedgerID || second.Topics != 2 {
		t.Errorf("%+v, was %+v", second, first)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link to the ledger: %v %v", info, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the ledger: %v %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(link), "*.new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	c.run(0, "replicate", "--once")
	c.run(0, "verify", "--mode", "full")
	_, stderr := c.run(2, "attach")
	if !strings.Contains(stderr, "exists, and has books of all that the target holds") {
		t.Error(stderr)
	}
	mustCheck(t, file)
}

// more appends to the source.
func (c *takeoverCase) more(name string, n int) {
	c.t.Helper()
	for i := range n {
		c.append(c.a, &kgo.Record{Topic: name, Value: []byte{200, byte(i)}, Timestamp: time.UnixMilli(3000)})
	}
}

// oracle expects the source's committed records on the target, each at least once
// and the first ones in the source's order.
func (c *takeoverCase) oracle(want int) {
	c.t.Helper()
	source, err := c.a.ReadCommitted(c.t.Context(), "orders", 0)
	if err != nil || len(source) != want {
		c.t.Fatalf("%d records, want %d (%v)", len(source), want, err)
	}
	target, err := c.b.ReadCommitted(c.t.Context(), "a.orders", 0)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range target {
		if len(source) > 0 && string(r.Value) == string(source[0].Value) {
			source = source[1:]
		}
	}
	if len(source) > 0 {
		c.t.Errorf("source offset %d is not on the target in its place", source[0].Offset)
	}
}

// TestTakeoverWhileMirrorMakerRuns ends with 5, and names the sign.
func TestTakeoverWhileMirrorMakerRuns(t *testing.T) {
	c := newTakeoverCase(t)
	c.append(c.b, kafkatest.MirrorHeartbeat("heartbeats", "a", "b", time.Now()))
	stdout, stderr := c.run(5, "attach", "-X", "emit.heartbeats.interval.seconds=600")
	if stdout != "" || !strings.Contains(stderr, "MirrorMaker 2, or another copier, is alive: its last heartbeat in topic heartbeats of cluster b is") {
		t.Errorf("%s%s", stdout, stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(c.dir, "*.ledger*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTakeoverWithAnotherFile than MirrorMaker 2 ran with says so, and never that all
// is in the books.
func TestTakeoverWithAnotherFile(t *testing.T) {
	c := newTakeoverCase(t)
	c.topic(c.b, "a.heartbeats", 0)
	servers := func(source, target string) []string {
		return []string{"clusters = " + source + ", " + target, source + ".bootstrap.servers = " + c.a.Server(), target + ".bootstrap.servers = " + c.b.Server(),
			"topics = orders", "apograph.ledger.dir = " + c.dir}
	}
	c.write(append(servers("other", "b"), "other->b.enabled = true")...)
	_, stderr := c.run(2, "attach")
	if !strings.Contains(stderr, "cluster b has none of the topics that the flow copies to, other.orders; but a copier has been at work there, by its a.heartbeats; mm2-offsets.a.internal") {
		t.Error(stderr)
	}
	c.write(append(servers("b", "a"), "a->b.enabled = true")...)
	_, stderr = c.run(2, "attach")
	if !strings.Contains(stderr, "none of the topics that the flow copies to") {
		t.Error(stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(c.dir, "*.ledger*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	c.topic(c.b, "payments", 0)
	c.topic(c.a, "payments", 0)
	c.write(append(servers("a", "b"), "a->b.enabled = true", "a->b.topics = orders, payments", "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy")...)
	stdout, _ := c.run(3, "attach")
	if !strings.Contains(stdout, "MirrorMaker 2 has copied it, by its source offsets or offset syncs, and the target has no topic orders") {
		t.Error(stdout)
	}
}

// TestTakeoverOfSeveralFlows makes a ledger for each.
func TestTakeoverOfSeveralFlows(t *testing.T) {
	c := newTakeoverCase(t, "b->a.enabled = true", "b->a.topics = payments")
	c.topic(c.b, "payments", 4)
	c.topic(c.a, "b.payments", 0)
	back := kafkatest.Mirror{Source: c.b.Bootstrap, Target: c.a.Bootstrap, Topic: "payments", TargetTopic: "b.payments"}
	for range 2 {
		if _, err := back.Copy(t.Context(), 0, 4); err != nil {
			t.Fatal(err)
		}
	}
	var reports attachReports
	c.answer(&reports, 0, "attach", "-X", "heartbeats.replication.enabled=false")
	if len(reports.Flows) != 2 || len(reports.Failed) != 0 || reports.Flows[1].Partitions[0].Duplicates != 4 {
		t.Errorf("%+v", reports)
	}
	for _, name := range []string{"a-to-b.ledger", "b-to-a.ledger"} {
		mustCheck(t, filepath.Join(c.dir, name))
	}
	c.run(2, "attach")
	c.run(0, "replicate", "--once", "-X", "heartbeats.replication.enabled=false")
	c.run(0, "verify", "--mode", "full", "-X", "heartbeats.replication.enabled=false")
}

// TestTakeoverOfOneOfTwoFlows: that one cannot be attached keeps not the other from
// it, and its own code, that nothing was attempted, is not true of both.
func TestTakeoverOfOneOfTwoFlows(t *testing.T) {
	c := newTakeoverCase(t)
	c.write("clusters = a, b, c", "apograph.ledger.dir = "+c.dir, "topics = orders", "a->b.enabled = true", "b->c.enabled = true",
		"a.bootstrap.servers = "+c.a.Server(), "b.bootstrap.servers = "+c.b.Server(), "c.bootstrap.servers = "+c.b.Server())
	stdout, stderr := c.run(1, "attach", "-o", "json")
	var reports attachReports
	if err := json.Unmarshal([]byte(stdout), &reports); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	if len(reports.Flows) != 1 || len(reports.Failed) != 1 || !strings.Contains(reports.Failed[0].Error, "the same cluster") {
		t.Errorf("%+v", reports)
	}
	mustCheck(t, filepath.Join(c.dir, "a-to-b.ledger"))
}
