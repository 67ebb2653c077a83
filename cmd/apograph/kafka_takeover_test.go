//go:build kafka

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"apograph/internal/kafkatest"
)

// TestKafkaTakeover has the real MirrorMaker 2 copy a topic with transactions,
// aborted ones too, kills it before it has flushed a source offset, lets it go on,
// which copies all of it again, and kills it again. Then apograph takes over with
// the same file.
func TestKafkaTakeover(t *testing.T) {
	clusters := kafkatest.StartKafkas(t, kafkatest.KafkaOptions{Name: "a"}, kafkatest.KafkaOptions{Name: "b"})
	k := &realTakeover{t: t, a: clusters[0], b: clusters[1], dir: t.TempDir()}
	k.write()
	k.load(1)
	k.mirror()
	k.load(2)
	k.mirror()

	code, _, stderr := k.apograph("replicate", "--once")
	if code != 2 || !strings.Contains(stderr, "MirrorMaker 2 has copied there") || !strings.Contains(stderr, "apograph attach") {
		t.Errorf("replicate: exit code %d\n%s", code, stderr)
	}
	code, _, stderr = k.apograph("attach") // its workers are members of their group yet
	if code != 5 || !strings.Contains(stderr, "is alive") {
		t.Errorf("attach at once: exit code %d\n%s", code, stderr)
	}
	report := k.attach()
	foreign := k.foreign(report)
	k.load(3)
	if code, stdout, stderr := k.apograph("replicate", "--once"); code != 0 {
		t.Fatalf("replicate: exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr := k.apograph("verify", "--mode", "full", "-o", "json")
	var verified struct {
		Verdict    string
		Partitions []struct {
			Topic                      string
			Partition                  int32
			Copied, Duplicates, Orphan int64
			Foreign                    int64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &verified); err != nil || code != 0 || verified.Verdict != "complete" {
		t.Fatalf("verify: exit code %d: %v\n%s%s", code, err, stdout, stderr)
	}
	var doubles int64
	for _, p := range verified.Partitions {
		if p.Topic != "orders" {
			continue
		}
		doubles += p.Duplicates
		if p.Foreign != foreign[p.Partition] {
			t.Errorf("partition %d: %d foreign records, attach had %d", p.Partition, p.Foreign, foreign[p.Partition])
		}
		k.outside(p.Partition, p.Copied, p.Duplicates, p.Foreign)
		if later := k.lastCopies(p.Partition); later == 0 && p.Duplicates > 0 {
			t.Errorf("partition %d: no record has a later copy, of %d duplicates", p.Partition, p.Duplicates)
		}
	}
	if doubles == 0 {
		t.Error("MirrorMaker has copied nothing twice: the test tests too little")
	}
	t.Logf("%d doubles", doubles)
	mustCheck(t, filepath.Join(k.dir, "a-to-b.ledger"))
}

type realTakeover struct {
	t    *testing.T
	a, b *kafkatest.Kafka
	dir  string
	file string
}

func (k *realTakeover) write() {
	k.t.Helper()
	k.file = filepath.Join(k.dir, "mm2.properties")
	lines := append(kafkatest.MirrorMakerReplicationFactors(),
		"clusters = a, b", "a.bootstrap.servers = "+k.a.Server(), "b.bootstrap.servers = "+k.b.Server(),
		"a->b.enabled = true", "topics = orders", "refresh.topics.interval.seconds = 2")
	if err := os.WriteFile(k.file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// load appends to the source, and returns when no transaction is open.
func (k *realTakeover) load(seed uint64) {
	k.t.Helper()
	load := kafkatest.Load{Seed: seed, Topics: []string{"orders"}, Partitions: 3, Records: 2000, MaxValueBytes: 3000}
	if err := load.Run(k.t.Context(), k.a.Bootstrap); err != nil {
		k.t.Fatal(err)
	}
	if err := k.a.WaitDecided(k.t.Context(), "orders"); err != nil {
		k.t.Fatal(err)
	}
}

// mirror runs MirrorMaker 2 until all of the source is on the target, and kills it.
func (k *realTakeover) mirror() {
	k.t.Helper()
	last := map[int32]string{}
	for p := range int32(3) {
		records, err := k.a.ReadUncommitted(k.t.Context(), "orders", p)
		if err != nil || len(records) == 0 {
			k.t.Fatalf("%d records: %v", len(records), err)
		}
		r := records[len(records)-1]
		last[p] = fmt.Sprintf("%d %q %q", r.Timestamp, r.Key, r.Value)
	}
	m := k.a.StartMirrorMaker(k.t, k.file)
	k.until(5*time.Minute, "all is on the target", func(ctx context.Context) bool {
		if !m.Running() {
			k.t.Fatal("MirrorMaker has ended by itself")
		}
		for p := range int32(3) {
			got, err := k.b.ReadUncommitted(ctx, "a.orders", p)
			if err != nil || len(got) == 0 {
				return false
			}
			if r := got[len(got)-1]; fmt.Sprintf("%d %q %q", r.Timestamp, r.Key, r.Value) != last[p] {
				return false
			}
		}
		return true
	})
	if err := m.Kill(); err != nil {
		k.t.Fatal(err)
	}
}

func (k *realTakeover) until(within time.Duration, what string, holds func(ctx context.Context) bool) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), within)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for !holds(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.t.Fatalf("never: %s", what)
		}
	}
}

func (k *realTakeover) apograph(args ...string) (code int, stdout, stderr string) {
	k.t.Helper()
	cmd := exec.CommandContext(k.t.Context(), "apograph", append(args, "--config", k.file, "-X", "apograph.ledger.dir="+k.dir)...)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

// attach attaches once MirrorMaker's session has timed out.
func (k *realTakeover) attach() (report attachReport) {
	k.t.Helper()
	k.until(2*time.Minute, "attached", func(context.Context) bool {
		code, stdout, stderr := k.apograph("attach", "-o", "json")
		if code == 5 {
			k.t.Log(strings.TrimSpace(stderr))
			return false
		}
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
			k.t.Fatalf("attach: exit code %d: %v\n%s%s", code, err, stdout, stderr)
		}
		return true
	})
	return report
}

// foreign holds a report to what an outside reader counts: the copies of aborted
// records are foreign, and what else is there again is a duplicate.
func (k *realTakeover) foreign(report attachReport) map[int32]int64 {
	k.t.Helper()
	foreign := map[int32]int64{}
	for _, p := range report.Partitions {
		early := p.Topic == "heartbeats" && p.Verdict == "empty" // killed before it has copied one
		if !early && p.Verdict != "attached" || p.Unprovable != (unprovable{}) {
			k.t.Errorf("%+v", p)
		}
		if p.Topic != "orders" {
			continue
		}
		committed := map[string]bool{}
		for _, r := range k.read(k.a.ReadCommitted, "orders", p.Partition) {
			committed[identity(r)] = true
		}
		var timeless int64 // MirrorMaker gives them the time of their copying
		var aborted int64
		for _, r := range k.read(k.b.ReadUncommitted, "a.orders", p.Partition) {
			without := r
			if without.Timestamp = -1; !committed[identity(r)] && !committed[identity(without)] {
				aborted++
			}
			if !committed[identity(r)] && committed[identity(without)] {
				timeless++
			}
		}
		if timeless < p.Replaced {
			k.t.Errorf("partition %d: %d records got a time, an outside reader counts %d copies", p.Partition, p.Replaced, timeless)
		}
		if foreign[p.Partition] = p.Foreign; p.Foreign != aborted || p.Aborted != aborted {
			k.t.Errorf("partition %d: %d foreign, %d of aborted transactions; an outside reader counts %d", p.Partition, p.Foreign, p.Aborted, aborted)
		}
	}
	return foreign
}

func identity(r kafkatest.Record) string {
	return fmt.Sprintf("%d %q %q %v", r.Timestamp, r.Key, r.Value, r.Headers)
}

func (k *realTakeover) read(how func(ctx context.Context, topic string, partition int32) ([]kafkatest.Record, error), topic string, partition int32) []kafkatest.Record {
	k.t.Helper()
	records, err := how(k.t.Context(), topic, partition)
	if err != nil {
		k.t.Fatal(err)
	}
	return records
}

// outside expects the source's committed records on the target, in order, and
// nothing beside them but what is counted.
func (k *realTakeover) outside(partition int32, copied, duplicates, foreign int64) {
	k.t.Helper()
	source := k.read(k.a.ReadCommitted, "orders", partition)
	target := k.read(k.b.ReadUncommitted, "a.orders", partition)
	if int64(len(source)) != copied || int64(len(target)) != copied+duplicates+foreign {
		k.t.Errorf("partition %d: %d records on the source, %d on the target; the books have %d copied, %d duplicates, %d foreign",
			partition, len(source), len(target), copied, duplicates, foreign)
	}
	for _, r := range target {
		if len(source) > 0 && source[0].Timestamp == -1 {
			r.Timestamp = -1
		}
		if len(source) > 0 && identity(r) == identity(source[0]) {
			source = source[1:]
		}
	}
	if len(source) > 0 {
		k.t.Errorf("partition %d: source offset %d is not on the target in its place", partition, source[0].Offset)
	}
}

// lastCopies holds the translation of every source offset up to the last record to an
// outside reader: it lands in the last copy of the first record from there on, the last
// in front of that of the next record. It returns how many records, of those with a time, have an earlier one.
func (k *realTakeover) lastCopies(partition int32) (later int) {
	k.t.Helper()
	source := k.read(k.a.ReadCommitted, "orders", partition)
	target := k.read(k.b.ReadUncommitted, "a.orders", partition)
	want, first := make([]int64, len(source)), map[string]int64{}
	for _, r := range slices.Backward(target) {
		first[identity(r)] = r.Offset
	}
	n := len(target)
	for i, r := range slices.Backward(source) {
		for n--; n >= 0 && !copyOf(target[n], r); n-- {
		}
		if n < 0 {
			k.t.Fatalf("partition %d: source offset %d has no copy in its order", partition, r.Offset)
		}
		want[i] = target[n].Offset
		if at, ok := first[identity(r)]; ok && at < want[i] {
			later++
		}
	}
	var asked strings.Builder
	for offset := range source[len(source)-1].Offset + 1 {
		fmt.Fprintf(&asked, "g%d,orders,%d,%d\n", offset, partition, offset) // one offset to a group
	}
	file := filepath.Join(k.dir, fmt.Sprintf("offsets-%d.csv", partition))
	if err := os.WriteFile(file, []byte(asked.String()), 0o600); err != nil {
		k.t.Fatal(err)
	}
	code, stdout, stderr := k.apograph("translate", "--from-file", file, "-o", "json")
	var answer translateAnswer
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != 0 {
		k.t.Fatalf("translate: exit code %d: %v\n%s", code, err, stderr)
	}
	i, wrong := 0, 0
	for _, row := range answer.Rows {
		if *row.SourceOffset > source[i].Offset {
			i++
		}
		if *row.TargetOffset != want[i] || row.Status != "exact" {
			if wrong++; wrong < 10 {
				k.t.Errorf("partition %d: source offset %d is translated to %d (%s), the last copy is at %d", partition, *row.SourceOffset, *row.TargetOffset, row.Status, want[i])
			}
		}
	}
	k.t.Logf("partition %d: %d offsets translated, %d of %d records have an earlier copy", partition, len(answer.Rows), later, len(source))
	return later
}

// content tells a record without its time, which MirrorMaker gives those that have none.
func content(r kafkatest.Record) string {
	r.Timestamp = 0
	return identity(r)
}

func copyOf(target, source kafkatest.Record) bool {
	return content(target) == content(source) && (source.Timestamp == -1 || target.Timestamp == source.Timestamp)
}
