//go:build kafka

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// A lossFlow is a flow of one topic between real clusters that several tests
// share, with a ledger of its own.
type lossFlow struct {
	*realFlow
	t       *testing.T
	topic   string
	refresh string                       // how often a copier without an end looks for changes
	old     bool                         // whether records that are appended are an hour old
	kept    map[int32][]kafkatest.Record // what the source held once, by partition; see keep
}

func newLossFlow(t *testing.T, topic string, source, target *kafkatest.Kafka) *lossFlow {
	t.Helper()
	l := &lossFlow{
		realFlow: &realFlow{source: source, target: target, ledger: filepath.Join(t.TempDir(), "flow.ledger")},
		t:        t, topic: topic, refresh: "300ms", kept: map[int32][]kafkatest.Record{},
	}
	t.Cleanup(func() { mustCheck(t, l.ledger) })
	return l
}

func (l *lossFlow) do(errs ...error) {
	l.t.Helper()
	for _, err := range errs {
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// appendBatches appends batches of ten numbered records to the source.
func (l *lossFlow) appendBatches(partition int32, value string, batches int) {
	l.t.Helper()
	p, err := l.source.Producer(kafkatest.None)
	l.do(err)
	defer p.Close()
	var at time.Time
	if l.old {
		at = time.Now().Add(-time.Hour)
	}
	for b := range batches {
		var records []*kgo.Record
		for i := range 10 {
			records = append(records, &kgo.Record{
				Topic: l.topic, Partition: partition, Key: []byte("k"), Value: fmt.Appendf(nil, "%s %d", value, 10*b+i), Timestamp: at,
			})
		}
		l.do(p.Append(l.t.Context(), records...))
	}
}

// keep remembers what the source holds now, besides what it held before.
func (l *lossFlow) keep(partition int32) {
	l.t.Helper()
	now, err := l.source.ReadCommitted(l.t.Context(), l.topic, partition)
	l.do(err)
	for _, r := range now {
		known := slices.ContainsFunc(l.kept[partition], func(old kafkatest.Record) bool { return old.Offset == r.Offset })
		if !known {
			l.kept[partition] = append(l.kept[partition], r)
		}
	}
}

// holds expects the target partition to hold what the source held at the
// offsets of the ranges, in order, and nothing else.
func (l *lossFlow) holds(partition int32, ranges ...[2]int64) {
	l.t.Helper()
	var want []kafkatest.Record
	for _, at := range ranges {
		for _, r := range l.kept[partition] {
			if r.Offset >= at[0] && r.Offset < at[1] {
				want = append(want, r)
			}
		}
	}
	got, err := l.target.ReadUncommitted(l.t.Context(), l.topic, partition)
	l.do(err)
	if d := differenceOfContent(want, got); d != "" {
		l.t.Errorf("%s:%d on the target: %s", l.topic, partition, d)
	}
}

// once copies once and expects an exit code, and why partitions stopped, as
// "partition reason offset".
func (l *lossFlow) once(code int, stopped ...string) map[string]any {
	l.t.Helper()
	got, answer := l.run(l.t, "replicate", "--once", "--topics", l.topic)
	var found []string
	list, _ := answer["stopped"].([]any)
	for _, s := range list {
		row := s.(map[string]any)
		found = append(found, fmt.Sprintf("%v %v %v", row["partition"], row["reason"], row["offset"]))
	}
	if got != code || !slices.Equal(found, stopped) {
		l.t.Errorf("replicate --once: exit code %d, stopped %v; want %d, %v", got, found, code, stopped)
	}
	return answer
}

// books expects the tiles of one partition, all generations of the source's
// book, as "generation:tile[start,end)cause".
func (l *lossFlow) books(partition int32, want ...string) {
	l.t.Helper()
	var got []string
	var last bookLine
	for _, line := range l.export(l.t, "source") {
		if line.Partition != partition {
			continue
		}
		if n := len(got); n > 0 && line.Generation == last.Generation && line.Tile == last.Tile && line.Cause == last.Cause {
			line.Start = last.Start
			got = got[:n-1]
		}
		last = line
		got = append(got, fmt.Sprintf("%d:%s[%d,%d)%s", line.Generation, line.Tile, line.Start, line.End, line.Cause))
		if seen := line.Start > 0; line.Tile == "lost" && (line.LastKnown != "") != seen {
			l.t.Errorf("%s:%d: the lost records [%d, %d) have the last known time %q", l.topic, partition, line.Start, line.End, line.LastKnown)
		}
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("%s:%d: books %v, want %v", l.topic, partition, got, want)
	}
}

// notes expects what the target's book names in one partition beside copies.
func (l *lossFlow) notes(partition int32, want ...string) {
	l.t.Helper()
	var got []string
	for _, line := range l.export(l.t, "target") {
		if line.Partition == partition && line.Tile != "copied" {
			got = append(got, fmt.Sprintf("%d:%s[%d,%d)", line.Generation, line.Tile, line.Start, line.End))
		}
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("%s:%d: notes %v, want %v", l.topic, partition, got, want)
	}
}

// verify expects an exit code, and findings as "kind[start,end)reason" with
// source offsets, or if there are none, "kind target[start,end)reason".
func (l *lossFlow) verify(code int, want ...string) {
	l.t.Helper()
	got, report := l.run(l.t, "verify")
	var found []string
	list, _ := report["findings"].([]any)
	for _, f := range list {
		row := f.(map[string]any)
		reason, _ := row["reason"].(string)
		if source, ok := row["source_offsets"].(map[string]any); ok && source["start"] != source["end"] {
			found = append(found, fmt.Sprintf("%v[%v,%v)%s", row["kind"], source["start"], source["end"], reason))
		} else if target, ok := row["target_offsets"].(map[string]any); ok {
			found = append(found, fmt.Sprintf("%v target[%v,%v)%s", row["kind"], target["start"], target["end"], reason))
		} else {
			found = append(found, fmt.Sprintf("%v%s", row["kind"], reason))
		}
	}
	if got != code || !slices.Equal(found, want) {
		l.t.Errorf("verify: exit code %d, findings %v; want %d, %v", got, found, code, want)
		for _, f := range list {
			l.t.Logf("finding %v", f)
		}
	}
}

// ask runs apograph for an answer, whatever its exit code.
func (l *lossFlow) ask(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), "apograph", append(args, "--ledger", l.ledger)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// order gives a person's order, and expects it to be taken.
func (l *lossFlow) order(args ...string) {
	l.t.Helper()
	if code, out, errs := l.ask(args...); code != 0 {
		l.t.Errorf("%v: exit code %d: %s%s", args, code, out, errs)
	}
}

// status returns the row of a partition, and the exit code.
func (l *lossFlow) status(partition int32) (int, statusAnswerRow) {
	l.t.Helper()
	code, out, _ := l.ask("status", "-o", "json")
	var answer statusAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return code, statusAnswerRow{}
	}
	for _, row := range answer.Partitions {
		if row.Topic == l.topic && row.Partition == partition {
			return code, row
		}
	}
	return code, statusAnswerRow{}
}

// stays expects status to say of a partition that it stopped, with a reason.
func (l *lossFlow) stays(partition int32, code int, reason string) {
	l.t.Helper()
	got, row := l.status(partition)
	if got != code || row.State != "stopped" || row.Reason != reason {
		l.t.Errorf("status: exit code %d, partition %s %q; want %d, stopped %q", got, row.State, row.Reason, code, reason)
	}
}

// living starts a copier without an end. The function that it returns ends it
// with SIGTERM and returns its exit code and what it said.
func (l *lossFlow) living(args ...string) (end func() (int, map[string]any)) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	args = append([]string{"--topics", l.topic, "-X", "apograph.refresh.interval=" + l.refresh, "-o", "json"}, args...)
	cmd := l.command(ctx, "replicate", args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	l.do(cmd.Start())
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	l.t.Cleanup(func() {
		cancel()
		<-done
		if l.t.Failed() {
			l.t.Logf("the copier said: %s", errs.String())
		}
	})
	return func() (int, map[string]any) {
		l.t.Helper()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-done
		var answer map[string]any
		if err := json.Unmarshal([]byte(out.String()), &answer); err != nil {
			l.t.Errorf("replicate said %q: %v\n%s", out.String(), err, errs.String())
		}
		return cmd.ProcessState.ExitCode(), answer
	}
}

// reaches waits until a running copier has booked a partition to an offset.
func (l *lossFlow) reaches(partition int32, offset int64) {
	l.t.Helper()
	l.shows(fmt.Sprintf("%s:%d is booked to %d", l.topic, partition, offset), partition, func(seen statusAnswerRow) bool {
		return seen.Position != nil && *seen.Position >= offset
	})
}

// stops waits until a running copier has stopped a partition.
func (l *lossFlow) stops(partition int32, reason string) {
	l.t.Helper()
	l.shows(fmt.Sprintf("%s:%d stops with %s", l.topic, partition, reason), partition, func(seen statusAnswerRow) bool {
		return seen.State == "stopped" && seen.Reason == reason
	})
}

// shows waits until status shows something of a partition. What has failed is
// tried again with growing pauses, so it may take a while.
func (l *lossFlow) shows(what string, partition int32, holds func(statusAnswerRow) bool) {
	l.t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		_, seen := l.status(partition)
		if holds(seen) {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			row, _ := json.Marshal(seen)
			l.t.Fatalf("never: %s; last seen %s", what, row)
		}
	}
}

// moment waits for a short while on the clock of the brokers, which cannot be
// turned.
func moment(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
