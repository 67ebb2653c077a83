package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// A docStage is where the commands of a page run: two clusters, one directory,
// and what a shell would know.
type docStage struct {
	t              *testing.T
	source, target kafkatest.Bootstrap
	dir            string
	env            map[string]string
	unit           string    // what systemctl starts
	copier         *exec.Cmd // nil while none runs
	tools          string    // a directory with Kafka's tools; "" without Java
	stood          map[string]bool
}

// addresses are what pages call the clusters, and where they have the binary. This
// is the one place where words of a page are replaced.
func (s *docStage) addresses() *strings.Replacer {
	return strings.NewReplacer(
		"old-1:9092,old-2:9092", s.source.Server(), "new-1:9092,new-2:9092", s.target.Server(),
		"a:9092", s.source.Server(), "b:9092", s.target.Server(),
		"/usr/local/bin/apograph", "apograph",
	)
}

func newDocStage(t *testing.T, source, target kafkatest.Bootstrap, unit string, stood map[string]bool) *docStage {
	return &docStage{t: t, source: source, target: target, dir: t.TempDir(), env: map[string]string{}, unit: unit, stood: stood}
}

// do runs one step of a page, as often as the page says.
func (s *docStage) do(step docStep) {
	s.t.Helper()
	if s.exports(step.script) {
		return
	}
	if instead, ok := s.standIn(step); ok {
		if instead != nil {
			instead(s, step)
		}
		return
	}
	if strings.Contains(step.script, "apograph ") && !step.stated {
		s.t.Errorf("%s: the page does not state the exit code", step.place)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		stdout, stderr, code := s.run(step.script)
		wrong := step.wrong(stdout, code)
		if wrong == "" {
			return
		}
		if !step.repeat || ctx.Err() != nil {
			s.t.Fatalf("%s: %s\n%s\n--- standard output\n%s--- standard error\n%s", step.place, step.script, wrong, stdout, stderr)
		}
		waitFor(ctx, 200*time.Millisecond)
	}
}

// wrong says in what an answer is not what the page says; "" for nothing.
func (step docStep) wrong(stdout string, code int) string {
	switch {
	case code != step.exit:
		return fmt.Sprintf("exit code %d, the page says %d", code, step.exit)
	case step.output != nil && !shownAs(step.output).MatchString(evenBlanks(stdout)):
		return "the page shows\n" + strings.Join(step.output, "\n")
	}
	return ""
}

// exports does what a shell would with a block of nothing but export.
func (s *docStage) exports(script string) bool {
	found := map[string]string{}
	for line := range strings.Lines(script) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if !ok || !strings.HasPrefix(line, "export ") {
			return false
		}
		found[name] = s.addresses().Replace(value)
	}
	maps.Copy(s.env, found)
	return true
}

func (s *docStage) run(script string) (stdout, stderr string, code int) {
	s.t.Helper()
	cmd := s.shell(s.addresses().Replace(script))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// shell returns a shell with the environment of the stage. It ends at the first
// command that fails, as a reader would.
func (s *docStage) shell(script string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), "sh", "-e", "-c", script)
	cmd.Dir, cmd.Env = s.dir, os.Environ()
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		cmd.Env = append(cmd.Env, name+"="+s.env[name])
	}
	if s.tools != "" {
		cmd.Env = append(cmd.Env, "PATH="+s.tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return cmd
}

// startCopier starts what runs until it is stopped, and returns once it answers.
func (s *docStage) startCopier(script string) {
	s.t.Helper()
	if s.copier != nil {
		s.t.Fatal("a copier runs already")
	}
	s.copier = s.shell("exec " + s.addresses().Replace(script))
	s.copier.Stderr = &lockedBuffer{}
	s.must(s.copier.Start())
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for code := -1; code != 0; _, _, code = s.run("apograph status --config mm2.properties") {
		if ctx.Err() != nil {
			s.t.Fatalf("the copier does not answer:\n%s", s.copier.Stderr)
		}
		waitFor(ctx, 50*time.Millisecond)
	}
}

// stopCopier ends it as systemd would, and expects the code of that.
func (s *docStage) stopCopier() {
	s.t.Helper()
	if s.copier == nil {
		s.t.Fatal("no copier runs")
	}
	s.must(s.copier.Process.Signal(syscall.SIGTERM))
	_ = s.copier.Wait()
	if code := s.copier.ProcessState.ExitCode(); code != int(exitTerminated) {
		s.t.Errorf("the copier ended with %d:\n%s", code, s.copier.Stderr)
	}
	s.copier = nil
}

// admin runs something with an admin client of a cluster.
func (s *docStage) admin(at kafkatest.Bootstrap, do func(context.Context, *kadm.Client) error) {
	s.t.Helper()
	client, err := at.Client()
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	if err := do(s.t.Context(), kadm.NewClient(client)); err != nil {
		s.t.Fatal(err)
	}
}

// commit commits offsets for a group that has no members.
func (s *docStage) commit(at kafkatest.Bootstrap, group string, offsets ...kadm.Offset) {
	s.t.Helper()
	var all kadm.Offsets
	for _, o := range offsets {
		all.Add(o)
	}
	s.admin(at, func(ctx context.Context, admin *kadm.Client) error { return admin.CommitAllOffsets(ctx, group, all) })
}

func (s *docStage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// fill makes what the pages find on the source: three topics, one of them
// compacted, a transaction that was committed and one that was aborted, and the
// groups of a service and of a connector.
func (s *docStage) fill() {
	s.t.Helper()
	ctx := s.t.Context()
	for _, topic := range []string{"orders", "payments", "customers"} {
		settings := map[string]string{}
		if topic == "customers" {
			settings["cleanup.policy"] = "compact"
		}
		s.must(s.source.CreateTopic(ctx, topic, 2, settings))
		s.must(s.source.Append(ctx, kafkatest.None, docRecords(topic, 40)...))
	}
	s.must(s.source.AppendTransaction(ctx, "bank", true, &kgo.Record{Topic: "payments", Value: []byte("paid"), Timestamp: time.Now()}))
	s.must(s.source.AppendTransaction(ctx, "bank", false, &kgo.Record{Topic: "payments", Partition: 1, Value: []byte("not paid"), Timestamp: time.Now()}))
	at := func(topic string, partition int32, offset int64) kadm.Offset {
		return kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: -1}
	}
	s.commit(s.source, "billing", at("orders", 0, 15), at("orders", 1, 15), at("payments", 0, 22))
	s.commit(s.source, "connect-archive", at("orders", 0, 7), at("orders", 1, 7))
}

// docRecords returns records for the two partitions of a topic, in turn.
func docRecords(topic string, n int) (records []*kgo.Record) {
	for i := range n {
		records = append(records, &kgo.Record{
			Topic: topic, Partition: int32(i % 2), Key: fmt.Appendf(nil, "%d", i), Value: fmt.Appendf(nil, "%s %d", topic, i), Timestamp: time.Now(),
		})
	}
	return records
}

func (s *docStage) follow(steps []docStep) {
	for _, step := range steps {
		s.do(step)
	}
}

// mirrored makes what a MirrorMaker 2 leaves that has copied everything and was
// stopped: the records, and the last offset of each partition as Connect keeps
// it.
func (s *docStage) mirrored() {
	ctx := s.t.Context()
	s.must(s.target.CreateTopic(ctx, "mm2-offsets.old.internal", 25, map[string]string{"cleanup.policy": "compact"}))
	for _, topic := range []string{"orders", "payments", "customers"} {
		s.must(s.target.CreateTopic(ctx, topic, 2, nil))
		for partition := range int32(2) {
			s.must(s.mirror(ctx, topic, partition))
		}
	}
}

func (s *docStage) mirror(ctx context.Context, topic string, partition int32) error {
	records, err := s.source.ReadCommitted(ctx, topic, partition)
	if err != nil {
		return err
	}
	var copies []*kgo.Record
	for _, r := range records {
		copies = append(copies, &kgo.Record{Topic: topic, Partition: partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)})
	}
	if err := s.target.Append(ctx, kafkatest.None, copies...); err != nil {
		return err
	}
	return s.target.Append(ctx, kafkatest.None, connectOffset("old", topic, partition, records[len(records)-1].Offset))
}

// connectOffset returns the record in which Connect keeps the offset of the last
// record that MirrorMaker 2 has copied.
func connectOffset(source, topic string, partition int32, offset int64) *kgo.Record {
	return &kgo.Record{
		Topic:     "mm2-offsets." + source + ".internal",
		Key:       fmt.Appendf(nil, `["MirrorSourceConnector",{"cluster":%q,"partition":%d,"topic":%q}]`, source, partition, topic),
		Value:     fmt.Appendf(nil, `{"offset":%d}`, offset),
		Timestamp: time.Now(),
	}
}
