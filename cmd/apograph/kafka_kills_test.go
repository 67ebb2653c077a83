//go:build kafka

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"apograph/internal/kafkatest"
)

// liveKills is how often TestKafkaLiveKills kills a copier.
const liveKills = 100

//go:embed testdata/librdkafka_load.py
var librdkafkaLoad string

// TestKafkaLiveKills kills copiers that run without an end while the Java
// client, kgo and librdkafka write: transactions with commits and aborts, times
// before 1970 and far ahead. In the end nothing is missing and nothing doubled.
//
// librdkafka takes part if APOGRAPH_LIBRDKAFKA names a Python that has
// confluent_kafka (make test-kafka-librdkafka sees to that).
func TestKafkaLiveKills(t *testing.T) {
	f := startFlow(t)
	topics := []string{"java", "kgo"}
	python := os.Getenv("APOGRAPH_LIBRDKAFKA")
	if python != "" {
		topics = append(topics, "librdkafka")
	}
	for _, topic := range topics {
		if err := f.source.CreateTopic(t.Context(), topic, 2, kafkatest.LoadConfigs()); err != nil {
			t.Fatal(err)
		}
	}
	writing, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	write := func(load func(ctx context.Context, seed int) error) {
		writers.Go(func() {
			for seed := 1; writing.Err() == nil; seed++ {
				// What has begun is ended: transactions too.
				if err := load(context.WithoutCancel(writing), seed); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	write(func(ctx context.Context, seed int) error {
		return f.source.JavaLoad(ctx, kafkatest.JavaLoad{Topic: "java", Partitions: 2, Records: 3000, Seed: int64(seed)})
	})
	write(func(ctx context.Context, seed int) error {
		return kafkatest.Load{Seed: uint64(seed), Topics: []string{"kgo"}, Records: 400, MaxValueBytes: 20_000, ThroughClient: true}.Run(ctx, f.source.Bootstrap)
	})
	if python != "" {
		write(func(ctx context.Context, seed int) error {
			out, err := exec.CommandContext(ctx, python, "-c", librdkafkaLoad, f.source.Server(), "librdkafka", strconv.Itoa(seed)).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("librdkafka: %w: %s", err, out)
			}
			return err
		})
	}
	r := rand.New(rand.NewPCG(20261129, 4))
	for range liveKills {
		killRunning(t, f, time.Duration(100+r.IntN(900))*time.Millisecond)
	}
	stop()
	writers.Wait()
	f.prove(t, topics...)
	f.javaAgrees(t, topics...)
}

// killRunning starts a copier without an end and kills it after a while.
func killRunning(t *testing.T, f *realFlow, after time.Duration) {
	t.Helper()
	child := f.command(t.Context(), "replicate", "--topics", ".*")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	death := time.AfterFunc(after, func() { _ = child.Process.Kill() })
	defer death.Stop()
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("a copier without an end ended by itself: %v", err)
	}
}
