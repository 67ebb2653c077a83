//go:build kafka

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/internal/kafkatest"
)

// A fileFlow is a file of MirrorMaker 2's, and the ledgers of the copiers that
// run by it.
type fileFlow struct {
	t         *testing.T
	dir, file string
	flows     []string // enabled ones, as A->B
	running   *fileCopier
}

// A namedCluster is a cluster with its alias in a file.
type namedCluster struct {
	alias string
	*kafkatest.Kafka
}

// newFileFlow writes a file that enables flows between clusters. What is not said
// by the settings is as [writeMirrorFile] has it.
func newFileFlow(t *testing.T, clusters []namedCluster, flows []string, settings ...string) *fileFlow {
	t.Helper()
	f := &fileFlow{t: t, dir: t.TempDir(), flows: flows}
	f.file = filepath.Join(f.dir, "mm2.properties")
	f.write(clusters, settings...)
	t.Cleanup(f.check)
	return f
}

// write writes the file anew.
func (f *fileFlow) write(clusters []namedCluster, settings ...string) {
	f.t.Helper()
	writeMirrorFile(f.t, f.file, clusters, f.flows, append([]string{"apograph.ledger.dir=" + f.dir}, settings...)...)
}

// writeMirrorFile writes a file that MirrorMaker 2 takes as well. Where nothing
// else is said, everything is looked at, written and committed every second: that
// is quick, and changes no answer.
func writeMirrorFile(t *testing.T, file string, clusters []namedCluster, flows []string, settings ...string) {
	t.Helper()
	keys := map[string]string{
		"emit.checkpoints.interval.seconds":   "1",
		"sync.group.offsets.enabled":          "true",
		"sync.group.offsets.interval.seconds": "1",
		"refresh.groups.interval.seconds":     "1",
		"refresh.topics.interval.seconds":     "1",
	}
	var aliases []string
	for _, c := range clusters {
		aliases = append(aliases, c.alias)
		keys[c.alias+".bootstrap.servers"] = c.Server()
	}
	keys["clusters"] = strings.Join(aliases, ", ")
	for _, flow := range flows {
		keys[flow+".enabled"] = "true"
	}
	for _, setting := range append(kafkatest.MirrorMakerReplicationFactors(), settings...) {
		key, value, _ := strings.Cut(setting, "=")
		keys[key] = value
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "%s=%s\n", key, keys[key])
	}
	mustWrite(t, file, []byte(b.String()))
}

// ledger returns the path of the ledger of a flow.
func (f *fileFlow) ledger(flow string) string {
	return filepath.Join(f.dir, strings.Replace(flow, "->", "-to-", 1)+".ledger")
}

// check ends the copier and checks what it leaves.
func (f *fileFlow) check() {
	if f.running != nil {
		f.running.end(syscall.SIGKILL)
	}
	for _, flow := range f.flows {
		mustCheck(f.t, f.ledger(flow))
	}
}

// A fileCopier is a copier without an end.
type fileCopier struct {
	command   *exec.Cmd
	out, errs bytes.Buffer
	done      chan struct{}
}

// start starts a copier of all flows.
func (f *fileFlow) start() {
	f.t.Helper()
	c := &fileCopier{done: make(chan struct{})}
	c.command = exec.CommandContext(context.WithoutCancel(f.t.Context()), "apograph", "replicate", "--config", f.file, "-o", "json")
	c.command.Stdout, c.command.Stderr = &c.out, &c.errs
	if err := c.command.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() { _ = c.command.Wait(); close(c.done) }()
	f.running = c
	f.t.Cleanup(func() {
		c.end(syscall.SIGKILL)
		if f.t.Failed() {
			f.t.Logf("the copier by %s said: %s", f.file, c.errs.String())
		}
	})
}

// end ends a copier with a signal, and returns its exit code.
func (c *fileCopier) end(s syscall.Signal) int {
	_ = c.command.Process.Signal(s)
	<-c.done
	return c.command.ProcessState.ExitCode()
}

// stop ends the running copier with SIGTERM and expects a clean end.
func (f *fileFlow) stop() {
	f.t.Helper()
	if code := f.running.end(syscall.SIGTERM); code != 143 {
		f.t.Errorf("the copier: exit code %d, %s\n%s", code, f.running.out.String(), f.running.errs.String())
	}
	f.running = nil
}

// kill ends the running copier with SIGKILL.
func (f *fileFlow) kill() {
	f.t.Helper()
	if code := f.running.end(syscall.SIGKILL); code != -1 {
		f.t.Errorf("the copier ended by itself, with exit code %d\n%s", code, f.running.errs.String())
	}
	f.running = nil
}

// ask runs apograph for one flow, whatever its exit code.
func (f *fileFlow) ask(flow, command string, args ...string) (code int, stdout string) {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), "apograph", append([]string{command, "--config", f.file, "--flow", flow}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, _ := cmd.Output()
	if code = cmd.ProcessState.ExitCode(); code != 0 {
		f.t.Logf("%s %v: exit code %d: %s", command, args, code, errs.String())
	}
	return code, string(out)
}

// A groupRow is what status says of one partition of a group.
type groupRow struct {
	Group, Topic string
	Partition    int32
	SourceOffset *int64 `json:"source_offset"`
	TargetOffset *int64 `json:"target_offset"`
	Committed    *int64
	Action       string
	Reason       string
	TargetTopic  string `json:"target_topic"`
}

// groupRows returns what status says of groups, by group, topic and partition.
func (f *fileFlow) groupRows(flow string) map[groupPlace]groupRow {
	f.t.Helper()
	_, out := f.ask(flow, "status", "-o", "json")
	var answer struct{ Groups []groupRow }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		f.t.Fatalf("status %q: %v", out, err)
	}
	rows := map[groupPlace]groupRow{}
	for _, row := range answer.Groups {
		rows[groupPlace{row.Group, row.Topic, row.Partition}] = row
	}
	return rows
}

// A groupPlace is a partition of a group.
type groupPlace struct {
	group, topic string
	partition    int32
}

func (p groupPlace) String() string { return fmt.Sprintf("%s %s:%d", p.group, p.topic, p.partition) }

// commitAll commits offsets for groups that have no members, with metadata.
func commitAll(t *testing.T, on *kafkatest.Kafka, offsets map[groupPlace]int64) {
	t.Helper()
	byGroup := map[string]kadm.Offsets{}
	for p, at := range offsets {
		of := byGroup[p.group]
		of.Add(kadm.Offset{Topic: p.topic, Partition: p.partition, At: at, LeaderEpoch: -1, Metadata: "by " + p.group})
		byGroup[p.group] = of
	}
	client := kadm.NewClient(on.NewClient(t))
	for group, of := range byGroup {
		answer, err := client.CommitOffsets(t.Context(), group, of)
		if err := errors.Join(err, answer.Error()); err != nil {
			t.Fatalf("commit for %s: %v", group, err)
		}
	}
}

// committedOn returns what groups have committed. It asks until all coordinators
// answer: the first one asked makes the topic of offsets.
func committedOn(t *testing.T, on *kafkatest.Kafka, groups ...string) map[groupPlace]int64 {
	t.Helper()
	client, err := on.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	found := map[groupPlace]int64{}
	answered := within(t, 30*time.Second, func() bool {
		err = nil
		for group, answer := range kadm.NewClient(client).FetchManyOffsets(t.Context(), groups...) {
			err = errors.Join(err, answer.Err)
			answer.Fetched.Each(func(o kadm.OffsetResponse) {
				if o.Err == nil && o.At >= 0 {
					found[groupPlace{group, o.Topic, o.Partition}] = o.At
				}
			})
		}
		return err == nil
	})
	if !answered {
		t.Fatalf("offsets of %v: %v", groups, err)
	}
	return found
}

// groupsOf returns the groups of places, each once.
func groupsOf[V any](places map[groupPlace]V) []string {
	names := map[string]bool{}
	for p := range places {
		names[p.group] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// committedSoon waits until groups have committed what is wanted, and fails the
// test if they never do.
func committedSoon(t *testing.T, on *kafkatest.Kafka, want map[groupPlace]int64) {
	t.Helper()
	var missing []string
	within(t, time.Minute, func() bool {
		missing = nil
		found := committedOn(t, on, groupsOf(want)...)
		for p, at := range want {
			if got, there := found[p]; !there {
				missing = append(missing, fmt.Sprintf("%v has nothing, want %d", p, at))
			} else if got != at {
				missing = append(missing, fmt.Sprintf("%v is at %d, want %d", p, got, at))
			}
		}
		return len(missing) == 0
	})
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("never committed on the target: %s", strings.Join(missing, "; "))
	}
}

// within looks every 200 ms until something holds, and reports whether it did.
func within(t *testing.T, limit time.Duration, holds func() bool) bool {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-deadline.C:
			return false
		case <-t.Context().Done():
			return false
		}
	}
	return true
}

// tablesVariable names the environment variable that says where tables for the
// documents are written to (make mirror-tables).
const tablesVariable = "APOGRAPH_TABLES"

// writeTable shows a table of Markdown, and writes it into the directory of
// tables, if there is one.
func writeTable(t *testing.T, name, text string) {
	t.Helper()
	t.Logf("%s\n%s", name, text)
	dir := os.Getenv(tablesVariable)
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(dir, name+".md"), []byte(text))
}
