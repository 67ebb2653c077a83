// Idle measures what many idle partitions cost: how long a start takes, and the
// memory, CPU and fetch requests of a copier that has nothing to do.
//
//	go run ./bench/idle [-partitions 10000] [-busy 100] bin/apograph
//
// Both clusters are fakes in this process, so that the copier's figures are its
// own.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

func main() {
	partitions := flag.Int("partitions", 10_000, "in all")
	busy := flag.Int("busy", 100, "of them, with records")
	perTopic := flag.Int("per-topic", 50, "partitions of a topic")
	idle := flag.Duration("idle", 30*time.Second, "how long to measure")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: idle [FLAG...] BINARY")
	}
	if err := run(flag.Arg(0), *partitions, *busy, *perTopic, *idle); err != nil {
		log.Fatal(err)
	}
}

func run(binary string, partitions, busy, perTopic int, idle time.Duration) error {
	ctx := context.Background()
	pair, err := kafkatest.StartPair(kafkatest.Options{})
	if err != nil {
		return err
	}
	defer pair.Close()
	for i := range partitions / perTopic {
		if err := pair.Source.CreateTopic(ctx, fmt.Sprintf("t%04d", i), int32(perTopic), nil); err != nil {
			return err
		}
	}
	if err := fill(ctx, pair.Source.Bootstrap, busy, perTopic); err != nil {
		return err
	}
	var fetches, fetched atomic.Int64
	pair.Source.Fake().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		pair.Source.Fake().KeepControl()
		fetches.Add(1)
		for _, t := range r.(*kmsg.FetchRequest).Topics {
			fetched.Add(int64(len(t.Partitions)))
		}
		return nil, nil, false
	})
	dir, err := os.MkdirTemp("", "apograph-idle-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "f.ledger")
	for _, name := range []string{"first start", "second start"} {
		if err := measure(ctx, name, binary, path, pair, busy, perTopic, idle, &fetches, &fetched); err != nil {
			return err
		}
	}
	return nil
}

// fill writes a record into each of the busy partitions.
func fill(ctx context.Context, b kafkatest.Bootstrap, busy, perTopic int) error {
	client, err := kgo.NewClient(append(b.DialOptions(), kgo.SeedBrokers(b.Addresses...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return err
	}
	defer client.Close()
	records := make([]*kgo.Record, busy)
	for i := range records {
		records[i] = &kgo.Record{Topic: fmt.Sprintf("t%04d", i/perTopic), Partition: int32(i % perTopic), Value: make([]byte, 1000)}
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

func measure(ctx context.Context, name, binary, path string, pair *kafkatest.Pair, busy, perTopic int, idle time.Duration, fetches, fetched *atomic.Int64) error {
	before, err := pair.Target.ReadBounds(ctx, last(busy, perTopic), int32((busy-1)%perTopic))
	started := time.Now()
	cmd := exec.Command(binary, "replicate", "--ledger", path, "--topics", "t.*",
		"--source-bootstrap-server", strings.Join(pair.Source.Bootstrap.Addresses, ","),
		"--target-bootstrap-server", strings.Join(pair.Target.Bootstrap.Addresses, ","))
	cmd.Stderr, cmd.Stdout = os.Stderr, os.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	want := int64(1)
	if err == nil {
		want = before.HighWatermark + 1
		if err := fill(ctx, pair.Source.Bootstrap, busy, perTopic); err != nil {
			return err
		}
	}
	if err := await(ctx, pair, busy, perTopic, want); err != nil {
		return err
	}
	up := time.Since(started)
	time.Sleep(5 * time.Second) // what a start leaves to do
	n, parts, cpu, at := fetches.Load(), fetched.Load(), cpuOf(cmd.Process.Pid), time.Now()
	time.Sleep(idle)
	took := time.Since(at)
	fmt.Printf("%s: %.1f s until the busy partitions are copied; then idle: %.1f %% of a core, %.1f fetches a second with %.1f partitions each; RSS %s, peak %s; CPU of the start %.1f s\n",
		name, up.Seconds(), 100*(cpuOf(cmd.Process.Pid)-cpu).Seconds()/took.Seconds(),
		float64(fetches.Load()-n)/took.Seconds(), float64(fetched.Load()-parts)/max(float64(fetches.Load()-n), 1),
		status(cmd.Process.Pid, "VmRSS"), status(cmd.Process.Pid, "VmHWM"), cpu.Seconds())
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_ = cmd.Wait()
	return nil
}

func last(busy, perTopic int) string { return fmt.Sprintf("t%04d", (busy-1)/perTopic) }

// await waits until the last busy partition has want records on the target.
func await(ctx context.Context, pair *kafkatest.Pair, busy, perTopic int, want int64) error {
	for range 12_000 {
		b, err := pair.Target.ReadBounds(ctx, last(busy, perTopic), int32((busy-1)%perTopic))
		if err == nil && b.HighWatermark >= want {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the copy never got there")
}

func cpuOf(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func status(pid int, key string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "unknown"
}
