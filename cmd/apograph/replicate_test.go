package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// A copyCase is a pair with a few records, and a ledger path.
type copyCase struct {
	t      *testing.T
	pair   *kafkatest.Pair
	ledger string
}

func newCopyCase(t *testing.T) *copyCase {
	t.Helper()
	c := &copyCase{t: t, pair: kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir()}), ledger: filepath.Join(t.TempDir(), "flow.ledger")}
	for _, topic := range []string{"orders", "payments"} {
		if err := c.pair.Source.CreateTopic(t.Context(), topic, 1, nil); err != nil {
			t.Fatal(err)
		}
		c.append(c.pair.Source, topic, 0, 5)
	}
	return c
}

func (c *copyCase) append(to *kafkatest.Cluster, topic string, from, n int) {
	c.t.Helper()
	for i := range n {
		r := &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "v%d", from+i), Timestamp: time.UnixMilli(1000)}
		if err := to.Append(c.t.Context(), kafkatest.None, r); err != nil {
			c.t.Fatal(err)
		}
	}
}

// command returns apograph replicate with the case's flags, where args do not
// give others: a flag with two values is refused.
func (c *copyCase) command(args ...string) *exec.Cmd {
	all := append([]string{"replicate", "-o", "json"}, args...)
	for _, flag := range [][2]string{
		{"--ledger", c.ledger}, {"--topics", ".*"},
		{"--source-bootstrap-server", c.pair.Source.Server()}, {"--target-bootstrap-server", c.pair.Target.Server()},
	} {
		if !slices.Contains(args, flag[0]) {
			all = append(all, flag[0], flag[1])
		}
	}
	return exec.CommandContext(c.t.Context(), "apograph", all...)
}

// run returns exit code, standard output and standard error.
func (c *copyCase) run(args ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	cmd := c.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// summary runs once, expects an exit code and returns the JSON.
func (c *copyCase) summary(wantCode int, args ...string) replicateAnswer {
	c.t.Helper()
	code, stdout, stderr := c.run(append(args, "--once")...)
	if code != wantCode {
		c.t.Fatalf("exit code %d, want %d\n%s%s", code, wantCode, stdout, stderr)
	}
	var answer replicateAnswer
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil || strings.Count(stdout, "\n") != 1 {
		c.t.Fatalf("standard output %q: %v", stdout, err)
	}
	return answer
}

// A replicateAnswer has exactly the fields of the contract.
type replicateAnswer struct {
	Kind, Schema string
	Flow         struct{ Source, Target string }

	Topics, Partitions                                             int
	Copied, Bytes, Aborted, Compacted, Filtered, Lost, Unexplained int64
	Duplicates, Foreign, Orphans, Accepted, Unaccepted             int64
	CommitMarkers                                                  int64 `json:"commit_markers"`
	AbortMarkers                                                   int64 `json:"abort_markers"`
	BeforeStart                                                    int64 `json:"before_start"`
	BehindOpenTransaction                                          int64 `json:"behind_open_transaction"`

	Waiting []struct {
		Topic      string
		Partition  int32
		Offset     int64
		Since      *string
		ProducerID *int64 `json:"producer_id"`
	}
	Stopped []struct {
		Topic          string
		Partition      int32
		Offset         int64
		Reason, Detail string
	}
	Doubts []struct {
		Topic      string
		Partition  int32
		Start, End int64
		Kind       string
	}
	Complete bool
	Seconds  float64
}

func TestReplicateAnswersAndExitCodes(t *testing.T) {
	c := newCopyCase(t)
	first := c.summary(0)
	if first.Kind != "ReplicateSummary" || first.Schema != "apograph/replicate/v1" || first.Flow.Source != "source" ||
		!first.Complete || first.Copied != 10 || first.Topics != 2 || first.Partitions != 2 || first.Waiting == nil || first.Stopped == nil {
		t.Errorf("summary %+v", first)
	}
	if again := c.summary(0); again.Copied != 0 || !again.Complete {
		t.Errorf("a second run: %+v", again)
	}
	mustCheck(t, c.ledger)

	t.Run("an open transaction is 4", func(t *testing.T) {
		producer, err := c.pair.Source.TransactionalProducer("open", kafkatest.None)
		if err != nil {
			t.Fatal(err)
		}
		defer producer.Close()
		if err := producer.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := producer.Append(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("x"), Timestamp: time.UnixMilli(2000)}); err != nil {
			t.Fatal(err)
		}
		got := c.summary(4)
		if len(got.Waiting) != 1 || got.Waiting[0].Offset != 5 || *got.Waiting[0].Since != "1970-01-01T00:00:02.000Z" || got.BehindOpenTransaction != 1 || got.Complete {
			t.Errorf("summary %+v", got)
		}
		t.Run("with a loss it is 3", func(t *testing.T) {
			c.append(c.pair.Source, "payments", 5, 5)
			if err := c.pair.Source.DeleteRecords("payments", 0, 7); err != nil {
				t.Fatal(err)
			}
			if got := c.summary(3); got.Lost != 2 || got.Copied != 3 {
				t.Errorf("summary %+v", got)
			}
			t.Run("and for ever", func(t *testing.T) {
				if got := c.summary(3); got.Lost != 0 || got.Complete {
					t.Errorf("summary %+v", got)
				}
			})
		})
		t.Run("with a stopped partition it is 1", func(t *testing.T) {
			c.append(c.pair.Target, "payments", 100, 1)
			c.append(c.pair.Source, "payments", 10, 1)
			got := c.summary(1)
			if len(got.Stopped) != 1 || got.Stopped[0].Reason != "foreign_writer" || got.Stopped[0].Offset != 10 || len(got.Waiting) != 1 {
				t.Errorf("summary %+v", got)
			}
		})
		if err := producer.End(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	})
	mustCheck(t, c.ledger)
}

// TestReplicateThatCannotStart: a sentence, the right code, nothing on standard
// output, and nothing written.
func TestReplicateThatCannotStart(t *testing.T) {
	c := newCopyCase(t)
	tests := []struct {
		name    string
		prepare func(t *testing.T)
		args    []string
		code    int
		says    string
	}{
		{"no such cluster", nil, []string{"--target-bootstrap-server", "127.0.0.1:1"}, 1, "cluster target (127.0.0.1:1)"},
		{"nothing matches", nil, []string{"--topics", "nothing"}, 2, "nothing"},
		{"a broken pattern", nil, []string{"--topics", "*"}, 2, `"*"`},
		{"two aliases alike", nil, []string{"--source-alias", "x", "--target-alias", "x"}, 2, "alias"},
		{"an address without a port", nil, []string{"--source-bootstrap-server", "host"}, 2, "host:port"},
		{"an empty ledger file", func(t *testing.T) { mustWrite(t, c.ledger, nil) }, nil, 12, "flow.ledger"},
		{"a file that is no ledger", func(t *testing.T) { mustWrite(t, c.ledger, bytes.Repeat([]byte("x"), 70_000)) }, nil, 12, "flow.ledger"},
		{"a directory that does not exist", func(t *testing.T) { c.ledger = filepath.Join(t.TempDir(), "no", "such.ledger") }, nil, 1, "such.ledger"},
		{"a target that is not empty", func(t *testing.T) {
			if err := c.pair.Target.CreateTopic(t.Context(), "orders", 1, nil); err != nil {
				t.Fatal(err)
			}
			c.append(c.pair.Target, "orders", 100, 1)
		}, nil, 2, "orders-0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c.t, c.ledger = t, filepath.Join(t.TempDir(), "flow.ledger")
			if tt.prepare != nil {
				tt.prepare(t)
			}
			before, _ := os.ReadFile(c.ledger)
			code, stdout, stderr := c.run(append(tt.args, "--once")...)
			if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.says) || strings.Contains(stderr, "goroutine") {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d and %q", code, stdout, stderr, tt.code, tt.says)
			}
			if after, _ := os.ReadFile(c.ledger); !bytes.Equal(before, after) {
				t.Error("the ledger file was changed")
			}
		})
	}
}

// TestReplicateStopsCleanly: a signal ends a copier with everything booked that
// the target holds, and the next one goes on.
func TestReplicateStopsCleanly(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			c := newCopyCase(t)
			produced := c.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Delay: time.Millisecond})
			cmd := c.command()
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := produced.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Process.Signal(signal)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 128+int(signal) {
				t.Errorf("exit code %d after %v: %s", code, signal, stderr.String())
			}
			if got := c.summary(0); !got.Complete {
				t.Errorf("the next run: %+v", got)
			}
			kafkatest.Compare(t, c.pair.Source.Bootstrap, c.pair.Target.Bootstrap, kafkatest.Same("orders", "payments"))
			mustCheck(t, c.ledger)
		})
	}
}

// TestReplicateRefusesASecondOne: the ledger is held, and the holder is named.
func TestReplicateRefusesASecondOne(t *testing.T) {
	c := newCopyCase(t)
	produced := c.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Delay: time.Millisecond})
	first := c.command()
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = first.Process.Signal(syscall.SIGTERM)
		_ = first.Wait()
		mustCheck(t, c.ledger)
	}()
	if err := produced.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := c.run("--once")
	if code != 11 || stdout != "" || !strings.Contains(stderr, fmt.Sprint(first.Process.Pid)) {
		t.Errorf("exit code %d, stdout %q, stderr %q; want 11 and the pid %d", code, stdout, stderr, first.Process.Pid)
	}
}
