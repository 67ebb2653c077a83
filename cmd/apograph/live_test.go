//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// A liveCase is a copier that runs until it is stopped, on the clusters and the
// ledger of a copyCase.
type liveCase struct {
	*copyCase
	copier *exec.Cmd
	stderr bytes.Buffer // of the copier; read it when that has ended
}

// startLive starts the copier of a case and waits until it answers.
func startLive(t *testing.T, args ...string) *liveCase {
	t.Helper()
	c := &liveCase{copyCase: newCopyCase(t)}
	c.start(args...)
	return c
}

func (c *liveCase) start(args ...string) {
	c.t.Helper()
	c.copier = c.command(append([]string{"-X", "apograph.refresh.interval=200"}, args...)...)
	c.copier.Stderr = &c.stderr
	if err := c.copier.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if c.copier.ProcessState == nil {
			_ = c.copier.Process.Kill()
			_ = c.copier.Wait()
		}
	})
	eventually(c.t, "the copier answers", func() bool {
		code, out, _ := c.ask("status", "-o", "json")
		return code != 10 && code != 11 && strings.Contains(out, `"state":"running"`)
	})
}

// stop ends the copier with a signal and expects a clean stop.
func (c *liveCase) stop(s syscall.Signal) {
	c.t.Helper()
	if err := c.copier.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
	_ = c.copier.Wait()
	if code := c.copier.ProcessState.ExitCode(); code != 128+int(s) {
		c.t.Errorf("the copier ended with %d after %v\n%s", code, s, c.stderr.String())
	}
	if _, err := os.Lstat(c.ledger + ".sock"); err == nil {
		c.t.Error("the socket is still there")
	}
	mustCheck(c.t, c.ledger)
}

// ask runs apograph on the ledger.
func (c *liveCase) ask(args ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	return askLedger(c.t, c.ledger, args...)
}

func askLedger(t *testing.T, path string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "apograph", append(args, "--ledger", path)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// must is ask that expects an exit code.
func (c *liveCase) must(code int, args ...string) (stdout string) {
	c.t.Helper()
	got, stdout, stderr := c.ask(args...)
	if got != code {
		c.t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, stdout, stderr)
	}
	return stdout
}

// status returns the state of each partition.
func (c *liveCase) status() map[string]statusAnswerRow {
	c.t.Helper()
	_, out, errs := c.ask("status", "-o", "json")
	rows := map[string]statusAnswerRow{}
	for _, row := range decodeStatus(c.t, out, errs).Partitions {
		rows[fmt.Sprintf("%s:%d", row.Topic, row.Partition)] = row
	}
	return rows
}

// A statusAnswer has exactly the fields of the contract.
type statusAnswer struct {
	Kind, Schema string
	Flow         struct {
		Source, Target struct {
			Alias     string
			ClusterID string `json:"cluster_id"`
		}
	}
	State      string
	HolderPID  *int `json:"holder_pid"`
	Ledger     map[string]any
	Partitions []statusAnswerRow
}

type statusAnswerRow struct {
	Topic         string
	Partition     int32
	State, Reason string
	Since         *string
	NextRetry     *string  `json:"next_retry"`
	Position      *int64   `json:"position"`
	SourceEnd     *int64   `json:"source_end"`
	TargetEnd     *int64   `json:"target_end"`
	LagRecords    *int64   `json:"lag_records"`
	LagSeconds    *float64 `json:"lag_seconds"`
	Headroom      *float64 `json:"retention_headroom_seconds"`
}

func decodeStatus(t *testing.T, out, errs string) statusAnswer {
	t.Helper()
	var answer statusAnswer
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("status: %q: %v\n%s", out, err, errs)
	}
	return answer
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// caughtUp waits until the copier has booked everything of a partition.
func (c *liveCase) caughtUp(partition string, end int64) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%s is copied to %d", partition, end), func() bool {
		row, ok := c.status()[partition]
		return ok && row.Position != nil && *row.Position == end
	})
}

// TestLivingFlow: whatever is asked of a running copier is answered, and the
// file has the same answers when it has stopped.
func TestLivingFlow(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	c.caughtUp("payments:0", 5)
	if info, err := os.Lstat(c.ledger + ".sock"); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket: %v %v, want one with mode 0600", info, err)
	}

	_, out, errs := c.ask("status", "-o", "json")
	live := decodeStatus(t, out, errs)
	if live.Kind != "StatusReport" || live.Schema != "apograph/status/v1" || live.State != "running" || live.HolderPID == nil ||
		*live.HolderPID != c.copier.Process.Pid || live.Ledger["kind"] != "LedgerInfo" || live.Ledger["path"] != c.ledger ||
		live.Flow.Source.Alias != "source" || len(live.Partitions) != 2 {
		t.Errorf("status %s", out)
	}
	for _, row := range live.Partitions {
		if row.State != "running" || *row.Position != 5 || *row.SourceEnd != 5 || *row.TargetEnd != 5 || *row.LagRecords != 0 || *row.LagSeconds != 0 ||
			row.Since != nil || row.NextRetry != nil {
			t.Errorf("status of %+v", row)
		}
	}
	code, stdout, stderr := c.run("--once")
	if code != 11 || stdout != "" || !strings.Contains(stderr, fmt.Sprint(c.copier.Process.Pid)) {
		t.Errorf("a second copier: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}

	clusters := []string{"--source-bootstrap-server", c.pair.Source.Server(), "--target-bootstrap-server", c.pair.Target.Server()}
	c.append(c.pair.Source, "orders", 5, 5)
	if out := c.must(0, append([]string{"verify", "-o", "json"}, clusters...)...); !strings.Contains(out, `"verdict":"complete"`) || !strings.Contains(out, `"equal":15,`) {
		t.Errorf("verify beside the copier: %s", out)
	}
	questions := [][]string{
		{"translate", "orders:0:3", "payments:0:5", "orders:0:9", "none:0:1", "-o", "json"},
		{"translate", "--reverse", "orders:0:4", "-o", "jsonl"},
		{"ledger", "export", "--book", "source"},
		{"ledger", "export", "--book", "target"},
		{"ledger", "check", "-o", "json"},
		{"ledger", "inspect", "-o", "json"},
		{"status", "-o", "json"},
	}
	answers := map[string]string{}
	for _, q := range questions {
		code, out, errs := c.ask(q...)
		answers[strings.Join(q, " ")] = fmt.Sprintf("exit %d\n%s%s", code, out, errs)
	}
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	for range 2 { // the second one replaces the first
		c.must(0, "ledger", "snapshot", "-o", snapshot)
	}
	mustCheck(t, snapshot)
	streamed := filepath.Join(t.TempDir(), "streamed")
	mustWrite(t, streamed, []byte(c.must(0, "ledger", "snapshot", "-o", "-")))
	mustCheck(t, streamed)

	c.stop(syscall.SIGTERM)
	for _, q := range questions {
		code, out, errs := c.ask(q...)
		got := fmt.Sprintf("exit %d\n%s%s", code, out, errs)
		if diff := cmp.Diff(timeless(t, answers[strings.Join(q, " ")]), timeless(t, got)); diff != "" {
			t.Errorf("%v: live and from the file (-live +file):\n%s", q, diff)
		}
	}
	_, out, errs = c.ask("status", "-o", "json")
	if stopped := decodeStatus(t, out, errs); stopped.State != "stopped" || stopped.HolderPID != nil {
		t.Errorf("status of the stopped flow: %s", out)
	}
}

// timeless takes from an answer what differs by right between a running and a
// stopped flow: who answers, when the last commit was, and how much of the file
// is in use.
func timeless(t *testing.T, answer string) string {
	t.Helper()
	head, body, _ := strings.Cut(answer, "\n")
	var document map[string]any
	if json.Unmarshal([]byte(body), &document) != nil {
		return answer // several lines
	}
	strip := func(m map[string]any) {
		for _, key := range []string{"holder_pid", "last_commit", "bytes", "state"} {
			delete(m, key)
		}
	}
	strip(document)
	if info, ok := document["ledger"].(map[string]any); ok {
		strip(info)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return head + "\n" + string(text)
}

// TestPauseAndResume: a paused topic stands still while others go on, the order
// outlives the copier, and can be given and taken back while none runs.
func TestPauseAndResume(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	var order struct {
		Kind, Schema, State string
		HolderPID           *int `json:"holder_pid"`
		Order               struct {
			Action, Topic, Reason, By string
			Partition                 *int32
			At                        string
		}
		Partitions []statusAnswerRow
	}
	out := c.must(0, "pause", "orders", "--reason", "disk \x1b[31mfull", "-o", "json")
	if err := json.Unmarshal([]byte(out), &order); err != nil {
		t.Fatal(err)
	}
	if order.Kind != "OrderReport" || order.Schema != "apograph/order/v1" || order.HolderPID == nil || order.State != "running" ||
		order.Order.Action != "pause" || order.Order.Partition != nil || !strings.Contains(order.Order.By, "@") ||
		len(order.Partitions) != 1 || order.Partitions[0].State != "paused" || order.Partitions[0].Since == nil {
		t.Errorf("order %s", out)
	}
	c.append(c.pair.Source, "orders", 5, 5)
	c.append(c.pair.Source, "payments", 5, 5)
	c.caughtUp("payments:0", 10)
	if row := c.status()["orders:0"]; row.State != "paused" || row.Reason != "paused" || *row.Position != 5 {
		t.Errorf("the paused partition: %+v", row)
	}
	if text := c.must(0, "status", "-o", "wide"); !strings.Contains(text, `disk \x1b[31mfull`) || strings.Contains(text, "\x1b") {
		t.Errorf("status as text: %q", text)
	}
	if code, _, stderr := c.ask("resume", "orders:0"); code != 2 || !strings.Contains(stderr, "paused as a whole") {
		t.Errorf("resuming a part of a paused topic: exit code %d, %q", code, stderr)
	}
	c.stop(syscall.SIGINT)

	if row := c.status()["orders:0"]; row.State != "paused" {
		t.Errorf("the paused partition, offline: %+v", row)
	}
	c.start()
	if row := c.status()["orders:0"]; row.State != "paused" {
		t.Errorf("the paused partition, after a restart: %+v", row)
	}
	c.must(0, "resume", "orders")
	c.caughtUp("orders:0", 10)
	c.stop(syscall.SIGTERM)

	out = c.must(0, "pause", "payments:0")
	if !strings.Contains(out, "pause payments:0: in the ledger, for the next run") {
		t.Errorf("an order offline: %s", out)
	}
	if row := c.status()["payments:0"]; row.State != "paused" {
		t.Errorf("paused offline: %+v", row)
	}
	c.must(0, "resume", "payments:0")
	if row := c.status()["payments:0"]; row.State != "running" {
		t.Errorf("resumed offline: %+v", row)
	}
	mustCheck(t, c.ledger)
}

// TestSkip: a person has offsets left out, and the books name who and why.
func TestSkip(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	producer, err := c.pair.Source.TransactionalProducer("open", kafkatest.None)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	hang := &kgo.Record{Topic: "orders", Value: []byte("x"), Timestamp: time.UnixMilli(2000)}
	if err := errors.Join(producer.Begin(), producer.Append(t.Context(), hang)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "orders waits behind an open transaction", func() bool { return c.status()["orders:0"].State == "waiting" })
	c.must(0, "pause", "orders:0")
	c.must(2, "resume", "orders:0", "--skip", "4-6", "--reason", "r")
	c.must(2, "resume", "orders:0", "--skip", "5-8", "--reason", "r")
	out := c.must(0, "resume", "orders:0", "--skip", "5-6", "--reason", "hangs for ever", "-o", "json")
	if !strings.Contains(out, `"skip":{"start":5,"end":6}`) || !strings.Contains(out, `"partition":0,`) {
		t.Errorf("the answer: %s", out)
	}
	c.caughtUp("orders:0", 6)
	tiles := c.must(0, "ledger", "export", "--book", "source", "--topics", "orders")
	last := tiles[strings.LastIndex(strings.TrimSuffix(tiles, "\n"), "\n")+1:]
	for _, want := range []string{`"start":5,"end":6,"tile":"filtered"`, "hangs for ever", "@"} {
		if !strings.Contains(last, want) {
			t.Errorf("the last tile lacks %s: %s", want, last)
		}
	}
	c.stop(syscall.SIGTERM)
}

// TestOrdersThatMakeNoSense exit with 2, or for the ledger's sake, and change
// nothing.
func TestOrdersThatMakeNoSense(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.ledger")
	mustWrite(t, damaged, before[:5000])
	for _, tt := range []struct {
		code int
		args []string
	}{
		{2, []string{"pause"}},
		{2, []string{"pause", ":1"}},
		{2, []string{"pause", "orders:x"}},
		{2, []string{"pause", "orders:-1"}},
		{2, []string{"pause", "orders:0:1"}},
		{2, []string{"pause", "orders:7"}},
		{2, []string{"pause", "unknown"}},
		{2, []string{"pause", "orders", "--skip", "1-2"}},
		{2, []string{"pause", "orders", "--reason", "two\nlines"}},
		{2, []string{"resume", "orders:0", "--skip", "28-29"}},                   // no reason
		{2, []string{"resume", "orders", "--skip", "28-29", "--reason", "r"}},    // of a topic
		{2, []string{"resume", "orders:0", "--skip", "28", "--reason", "r"}},     // no range
		{2, []string{"resume", "orders:0", "--skip", "29-28", "--reason", "r"}},  // backwards
		{2, []string{"resume", "orders:0", "--skip", "28-28", "--reason", "r"}},  // empty
		{2, []string{"resume", "orders:0", "--skip", "20-29", "--reason", "r"}},  // already booked
		{2, []string{"resume", "orders:0", "--skip", "28-999", "--reason", "r"}}, // beyond the end
		{2, []string{"resume", "orders:0", "--accept-recreated"}},
		{2, []string{"resume", "orders:0", "--accept-truncated"}},
		{2, []string{"resume", "orders:0", "--recopy"}},
		{10, []string{"pause", "orders", "--ledger", path + ".none"}},
		{12, []string{"pause", "orders", "--ledger", damaged}},
	} {
		args := tt.args
		if !strings.Contains(strings.Join(args, " "), "--ledger") {
			args = append(args, "--ledger", path)
		}
		cmd := exec.CommandContext(t.Context(), "apograph", args...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, _ := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || len(out) > 0 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q; want %d", tt.args, code, out, errs.String(), tt.code)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the ledger has changed (%v)", err)
	}
}

// TestSilentHolder: a process that holds a ledger and does not answer is named
// with exit code 11: one that never listened, and one that is stopped.
func TestSilentHolder(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	if err := c.copier.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, question := range [][]string{{"status"}, {"translate", "orders:0:1"}, {"pause", "orders"}} {
		code, out, errs := c.ask(question...)
		if code != 11 || out != "" || !strings.Contains(errs, fmt.Sprintf("process %d", c.copier.Process.Pid)) {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", question, code, out, errs)
		}
	}
	if err := c.copier.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.must(0, "status")
	c.stop(syscall.SIGTERM)

	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	p := mustStart(t, "apograph-holds", path)
	p.mustSay(t, "held")
	code, out, errs := askLedger(t, path, "status")
	if code != 11 || out != "" || !strings.Contains(errs, fmt.Sprintf("process %d", p.cmd.Process.Pid)) {
		t.Errorf("a holder without a socket: exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	p.stdin.Close()
	p.exitCode()
}

// TestStaleSocket: what a killed copier leaves is no hindrance, neither to
// questions nor to the next copier.
func TestStaleSocket(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	_ = c.copier.Process.Kill()
	_ = c.copier.Wait()
	if _, err := os.Lstat(c.ledger + ".sock"); err != nil {
		t.Fatal(err)
	}
	if row := c.status()["orders:0"]; row.Position == nil || *row.Position != 5 {
		t.Errorf("status beside a stale socket: %+v", row)
	}
	c.start()
	c.stop(syscall.SIGTERM)
}

// TestSocketForALongPath: a path that no socket can have leads to one in a
// private directory, from every name of the ledger.
func TestSocketForALongPath(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("XDG_RUNTIME_DIR", "")
	c := &liveCase{copyCase: newCopyCase(t)}
	directory := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	c.ledger = filepath.Join(directory, "f.ledger")
	c.start()
	c.caughtUp("orders:0", 5)
	own := filepath.Join(temporary, fmt.Sprintf("apograph-%d", os.Getuid()))
	if info, err := os.Lstat(own); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("the directory for sockets: %v %v", info, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(c.ledger, link); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := askLedger(t, link, "status"); code != 0 || !strings.Contains(out, "running as process") {
		t.Errorf("by another name: exit code %d, %q, %q", code, out, errs)
	}
	if err := os.Chmod(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := c.ask("status"); code != 11 {
		t.Errorf("in a directory that is open to others: exit code %d, %q", code, errs)
	}
	if err := os.Chmod(own, 0o700); err != nil {
		t.Fatal(err)
	}
	c.stop(syscall.SIGTERM)
	if left, err := os.ReadDir(own); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v %v", left, err)
	}
}

// TestStatusOfWhatIsWrong: the exit code says that a partition stopped, or else
// that something is lost; the stopped one comes first.
func TestStatusOfWhatIsWrong(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	c.caughtUp("payments:0", 5)
	c.must(0, "pause", "orders")
	c.append(c.pair.Source, "orders", 5, 5)
	if err := c.pair.Source.DeleteRecords("orders", 0, 7); err != nil {
		t.Fatal(err)
	}
	c.must(0, "resume", "orders")
	c.caughtUp("orders:0", 10)
	c.must(3, "status")

	c.append(c.pair.Target, "payments", 100, 1)
	c.append(c.pair.Source, "payments", 5, 1)
	eventually(t, "payments stops", func() bool { return c.status()["payments:0"].State == "stopped" })
	check := func() {
		t.Helper()
		code, out, errs := c.ask("status", "-o", "json")
		rows := decodeStatus(t, out, errs).Partitions
		if first := rows[0]; code != 1 || len(rows) != 2 || first.Topic != "payments" || first.Reason != "foreign_writer" || first.Since == nil {
			t.Errorf("exit code %d, status %s", code, out)
		}
		code, out, errs = c.ask("status", "--stopped", "-o", "json")
		if rows := decodeStatus(t, out, errs).Partitions; code != 1 || len(rows) != 1 || rows[0].Topic != "payments" {
			t.Errorf("--stopped: exit code %d, status %s", code, out)
		}
	}
	check()
	if row := c.status()["payments:0"]; row.NextRetry == nil {
		t.Errorf("a stopped partition: %+v", row)
	}
	c.stop(syscall.SIGTERM)
	check()
}

// TestWatch: an answer every two seconds until the command is interrupted.
func TestWatch(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	for _, format := range []string{"json", "table"} {
		p := mustStart(t, "apograph", "status", "--watch", "--ledger", path, "-o", format)
		heads := 0
		for heads < 2 && p.stdout.Scan() {
			line := p.stdout.Text()
			if strings.HasPrefix(line, `{"kind":"StatusReport"`) || strings.HasPrefix(line, "a -> b: not running") {
				heads++
			} else if format == "json" {
				t.Errorf("line %q", line)
			}
			if strings.Contains(line, "\x1b") {
				t.Errorf("an escape sequence in %q", line)
			}
		}
		p.mustSignal(t, syscall.SIGINT)
		if code := p.exitCode(); code != 130 || heads != 2 {
			t.Errorf("-o %s: exit code %d after %d answers", format, code, heads)
		}
	}
}

// TestStatusInBooks: what the books of the tests say, with what is not known
// left open.
func TestStatusInBooks(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	code, out, errs := askLedger(t, path, "status", "-o", "json")
	answer := decodeStatus(t, out, errs)
	if code != 3 || len(answer.Partitions) != 3 {
		t.Errorf("exit code %d, %s", code, out)
	}
	for _, row := range answer.Partitions {
		if row.SourceEnd != nil || row.LagRecords != nil || row.LagSeconds != nil || row.Headroom != nil || row.Position == nil {
			t.Errorf("row %+v", row)
		}
	}
	l := kafkatest.OpenLedger(t, path, ledger.Options{})
	err := l.SetStop(ledger.Stop{SourceTopic: "new", Partition: 2, Offset: -1, Reason: "target_not_empty", Detail: "d", SinceMillis: 1})
	if err == nil {
		err = l.Commit()
	}
	if err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	code, out, errs = askLedger(t, path, "status", "-o", "json")
	first := decodeStatus(t, out, errs).Partitions[0]
	if code != 1 || first.Topic != "new" || first.State != "stopped" || first.Position != nil || *first.Since != "1970-01-01T00:00:00.001Z" {
		t.Errorf("exit code %d, a stop without a book: %+v", code, first)
	}
}
