package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"apograph/bench/figures"
	"apograph/bench/workload"
	"apograph/internal/recordbatch"
)

// fakesTopic is the topic of the fakes, and fakesPartitions its partitions.
const (
	fakesTopic      = "bench"
	fakesPartitions = 4
)

// fakesCommand has the product and the copier copy from a fake source, which has
// varied data in memory, to a fake target, which drops it. Each is a process of its
// own. It needs no brokers and says nothing of them: it shows what the product
// itself costs, and whether a change has made that more.
func fakesCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("fakes", flag.ContinueOnError)
	size := flags.Int("size", 500, "MB of keys and values")
	repeats := flags.Int("repeats", 5, "of each candidate")
	binary := flags.String("apograph", "bin/apograph", "the product")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var results []figures.Result
	for _, codec := range []string{"none", "lz4", "zstd"} {
		found, err := fakesRow(ctx, codec, *size, *repeats, *binary)
		results = append(results, found...)
		if err != nil {
			return fmt.Errorf("fakes, %s: %w", codec, err)
		}
	}
	fmt.Print(figures.Table(results))
	return nil
}

func fakesRow(ctx context.Context, codec string, sizeMB, repeats int, binary string) ([]figures.Result, error) {
	source, stop, err := startFake(ctx, "source", "-codec", codec, "-size", fmt.Sprint(sizeMB))
	if err != nil {
		return nil, err
	}
	defer stop()
	dir, err := os.MkdirTemp("", "apograph-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var results []figures.Result
	for i := range 2 * repeats {
		r := figures.Result{Row: "fakes-1k-" + codec, Candidate: figures.Apograph, Repeat: i / 2, Payload: int64(sizeMB) * 1e6}
		target, stop, err := startFake(ctx, "target")
		if err != nil {
			return results, err
		}
		args := []string{
			binary, "replicate", "--once", "-o", "json", "--stats", "0", "--topics", fakesTopic,
			"--ledger", filepath.Join(dir, fmt.Sprintf("%d.ledger", i)),
			"--source-bootstrap-server", source, "--target-bootstrap-server", target,
		}
		if i%2 == 1 {
			r.Candidate = figures.Copier
			args = []string{self, "copier", "-source", source, "-target", target, "-topic", fakesTopic, "-codec", codec}
		}
		err = timed(ctx, &r, args)
		stop()
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}

// timed runs a process to its end and notes what it cost.
func timed(ctx context.Context, r *figures.Result, args []string) error {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	began := time.Now()
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", r.Candidate, err, out)
	}
	state := command.ProcessState
	r.Whole = figures.Span{
		Seconds: time.Since(began).Seconds(), Payload: float64(r.Payload),
		CPU: (state.UserTime() + state.SystemTime()).Seconds(),
	}
	r.Copy, r.Last = r.Whole, r.Whole
	return nil
}

// startFake starts a fake cluster in a process of its own, and returns its address
// and what ends it.
func startFake(ctx context.Context, args ...string) (address string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	command := exec.CommandContext(ctx, self, args...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := command.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	address, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("fake %s: %w", args[0], err)
	}
	return strings.TrimSpace(address), stop, nil
}

// sourceCommand serves a topic of varied data from memory until it is interrupted.
func sourceCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("source", flag.ContinueOnError)
	name := flags.String("codec", "none", "of the batches")
	size := flags.Int("size", 500, "MB of keys and values")
	record := flags.Int("record", 1<<10, "bytes of a record")
	if err := flags.Parse(args); err != nil {
		return err
	}
	shape := workload.Shape{RecordBytes: *record, BatchBytes: 64 << 10}
	for shape.Codec.String() != *name {
		if shape.Codec++; shape.Codec > recordbatch.Zstd {
			return fmt.Errorf("no codec %q", *name)
		}
	}
	batches, err := shape.Batches(1, time.Now().Add(-time.Hour).UnixMilli())
	if err != nil {
		return err
	}
	return serveFake(ctx, func(servers string) error {
		return fill(ctx, servers, fakesTopic, fakesPartitions, batches, int64(*size)*1e6)
	}, kfake.ClusterID("source"), kfake.SeedTopics(fakesPartitions, fakesTopic))
}

// targetCommand serves a cluster that acknowledges records and drops them, until it
// is interrupted.
func targetCommand(ctx context.Context, _ []string) error {
	return serveFake(ctx, func(string) error { return nil }, kfake.ClusterID("target"), kfake.BlackholeProduce())
}

// serveFake starts a fake cluster of one broker, writes its address to standard
// output once it is prepared, and waits for the end.
func serveFake(ctx context.Context, prepare func(servers string) error, options ...kfake.Opt) error {
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		return err
	}
	defer cluster.Close()
	servers := strings.Join(cluster.ListenAddrs(), ",")
	if err := prepare(servers); err != nil {
		return err
	}
	if _, err := io.WriteString(os.Stdout, servers+"\n"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
