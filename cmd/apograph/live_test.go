//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		_, out, _ := c.ask("status", "-o", "json")
		return strings.Contains(out, fmt.Sprintf(`"holder_pid":%d,`, c.copier.Process.Pid))
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
	Unaccepted int64
	Accepted   int64
	Doubts     []struct {
		Topic      string
		Partition  int32
		Start, End int64
		Kind       string
	}
	Acceptances []struct {
		Topic      string
		Partition  int32
		Generation int32
		Offsets    struct{ Start, End int64 } `json:"source_offsets"`
		By         string
		At, Reason string
	}
	Partitions []statusAnswerRow
	Groups     []groupAnswerRow
	Omitted    int      `json:"groups_omitted"`
	SyncLag    *float64 `json:"sync_lag_seconds"`
	Duties     []dutyAnswerRow
	Settings   []settingAnswerRow
}

type groupAnswerRow struct {
	Group, Topic   string
	Partition      *int32
	TargetTopic    string `json:"target_topic"`
	SourceOffset   *int64 `json:"source_offset"`
	TargetOffset   *int64 `json:"target_offset"`
	Committed      *int64
	Action, Reason string
}

type dutyAnswerRow struct {
	Duty, Pair, State, Error string
	LastDone                 *string `json:"last_done"`
	Seconds                  *float64
	Since                    *string
	NextRetry                *string `json:"next_retry"`
}

type settingAnswerRow struct {
	Topic, Setting, Source, Target, State string
	TargetTopic                           string `json:"target_topic"`
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
// stopped flow: who answers, when the last commit was, how much of the file is in
// use, and how the settings of topics were when it looked.
func timeless(t *testing.T, answer string) string {
	t.Helper()
	head, body, _ := strings.Cut(answer, "\n")
	var document map[string]any
	if json.Unmarshal([]byte(body), &document) != nil {
		return answer // several lines
	}
	strip := func(m map[string]any) {
		for _, key := range []string{"holder_pid", "last_commit", "bytes", "state", "settings", "duties"} {
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

// TestStatusOfSettings: what differs between the topics is listed while the flow
// runs; of what an exact copy depends on the line for a person says nothing.
func TestStatusOfSettings(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	want := settingAnswerRow{Topic: "orders", TargetTopic: "orders", Setting: "max.message.bytes", Source: "1048588", Target: "1153447", State: "protective"}
	_, out, errs := c.ask("status", "-o", "json")
	if rows := decodeStatus(t, out, errs).Settings; !slices.Contains(rows, want) {
		t.Errorf("settings %+v, want %+v among them", rows, want)
	}
	if _, out, _ = c.ask("status"); strings.Contains(out, "not as on the source") {
		t.Errorf("status: %s", out)
	}
	s := statusReport{Settings: []settingStatus{{State: "protective"}, {State: "target_only"}}}
	if line := (&flowStatus{Report: s}).headline(); !strings.Contains(line, ", settings of target topics not as on the source: 1") {
		t.Errorf("headline %q", line)
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
	if row := c.status()["payments:0"]; row.NextRetry != nil { // a person has to decide
		t.Errorf("a partition with a foreign writer: %+v", row)
	}
	// verify waits for nobody who will not come.
	c.append(c.pair.Target, "payments", 101, 1)
	verify := []string{"verify", "--wait", "1h", "--topics", "payments",
		"--source-bootstrap-server", c.pair.Source.Server(), "--target-bootstrap-server", c.pair.Target.Server()}
	out := c.must(3, verify...)
	wants := []string{"extra payments 0 "}
	if at := c.status()["payments:0"].Position; at == nil || *at < 6 { // its own record may have been found behind the other's, and booked
		wants = append(wants, "not copied yet: behind", "the copier says: stopped, foreign writer")
	}
	for _, want := range wants {
		if !strings.Contains(evenBlanks(out), want) {
			t.Errorf("verify does not say %q:\n%s", want, out)
		}
	}
	c.stop(syscall.SIGTERM)
	check()
	// What others wrote is told once it is booked.
	c.start()
	c.must(0, "resume", "payments")
	c.caughtUp("payments:0", 6)
	out = c.must(0, verify...)
	// The one behind the last copy is booked by then, or is not.
	told := regexp.MustCompile(`\nverdict complete\nBeside the copies the target holds (1 record or transaction marker that others wrote, at payments-0 5|2 records or transaction markers that others wrote, at payments-0 5 7)\. `)
	if !told.MatchString(evenBlanks(out)) {
		t.Errorf("verify does not say what others wrote:\n%s", out)
	}
	c.stop(syscall.SIGTERM)
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
	if _, out, errs = askLedger(t, path, "status"); strings.Count(out, " not running ") != 3 || strings.Contains(out, "  running") {
		t.Errorf("a flow that does not run: %s%s", out, errs)
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
