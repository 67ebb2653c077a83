//go:build kafka

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// The variables that say how often TestKafkaCampaign kills a copier and takes a
// leader away, and what they are if not set.
const (
	killsVariable, fewKills   = "APOGRAPH_KILLS", 10
	lossesVariable, fewLosses = "APOGRAPH_LEADER_LOSSES", 6
)

// A campaign is a flow between two clusters of three brokers that gets no rest.
type campaign struct {
	*realFlow
	t      *testing.T
	topics []string
	rng    *rand.Rand // of the goroutine of the leader losses

	kills   atomic.Int64 // of copiers
	losses  atomic.Int64 // of leaders
	refused atomic.Int64 // copiers that could not begin
	failed  atomic.Int64 // loads that ended half way
	how     map[string]int
}

// TestKafkaCampaign: while producers write, plain and in transactions, leaders
// of both clusters are killed, stopped for longer than their session lasts, or
// restarted, and the copier is killed throughout. In the end an outside reader
// compares both clusters: nothing is lost, and what is doubled is what the books
// name.
func TestKafkaCampaign(t *testing.T) {
	c := startCampaign(t)
	writing, rest := context.WithCancel(t.Context())
	var writers, copier sync.WaitGroup
	written := c.write(writing, &writers)
	c.loseLeadersWhile(&copier)
	rest()
	writers.Wait()
	copier.Wait()
	c.prove(written)
}

func startCampaign(t *testing.T) *campaign {
	t.Helper()
	options := func(name string) kafkatest.KafkaOptions {
		return kafkatest.KafkaOptions{
			Name: name, Nodes: 3, ReplicationFactor: 3, MinInsync: 2, HeapMB: 256,
			Config: map[string]string{"transaction.state.log.min.isr": "2"},
		}
	}
	clusters := kafkatest.StartKafkas(t, options("source"), options("target"))
	c := &campaign{
		realFlow: &realFlow{source: clusters[0], target: clusters[1], ledger: filepath.Join(t.TempDir(), "flow.ledger")},
		t:        t, topics: []string{"plain", "transactions"},
		rng: rand.New(rand.NewPCG(20261130, 1)), how: map[string]int{},
	}
	for _, topic := range c.topics {
		if err := c.source.CreateTopic(t.Context(), topic, 2, kafkatest.LoadConfigs()); err != nil {
			t.Fatal(err)
		}
	}
	// The copier makes the target's topics, so that leaders can be named.
	if code, answer := c.run(t, "replicate", "--once", "--topics", ".*"); code != 0 {
		t.Fatalf("the first copy: exit code %d: %v", code, answer)
	}
	return c
}

// write writes until ctx ends, and returns how many loads were written.
func (c *campaign) write(ctx context.Context, writers *sync.WaitGroup) *atomic.Int64 {
	written := &atomic.Int64{}
	for i, topic := range c.topics {
		writers.Go(func() {
			pace := time.NewTicker(500 * time.Millisecond)
			defer pace.Stop()
			for seed := uint64(i*1_000_000 + 1); ctx.Err() == nil; seed++ {
				load := kafkatest.Load{
					Seed: seed, Topics: []string{topic}, Records: 300, MaxValueBytes: 20_000,
					ThroughClient: true, NoTransactions: topic == "plain",
				}
				// What has begun is ended: transactions too.
				if err := load.Run(context.WithoutCancel(ctx), c.source.Bootstrap); err != nil {
					c.failed.Add(1)
					if err := c.abort(seed, topic); err != nil {
						c.t.Errorf("a producer failed, and its transactions cannot be ended: %v", err)
						return
					}
				}
				written.Add(1)
				<-pace.C
			}
		})
	}
	return written
}

// abort ends what transactions a load may have left open when it failed.
func (c *campaign) abort(seed uint64, topic string) error {
	for i := range 3 {
		p, err := c.source.TransactionalProducer(fmt.Sprintf("load-%d-%d", seed, i), kafkatest.None)
		if err != nil {
			return err
		}
		defer p.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), time.Minute)
		defer cancel()
		if err := errors.Join(p.Begin(), p.Append(ctx, &kgo.Record{Topic: topic, Value: []byte("the end")}), p.End(ctx, false)); err != nil {
			return err
		}
	}
	return nil
}

// killCopiers starts copiers without an end and kills each after a while, until
// ctx ends; then the last one ends by a signal.
func (c *campaign) killCopiers(ctx context.Context) {
	r := rand.New(rand.NewPCG(20261130, 2))
	for {
		child := c.command(context.Background(), "replicate", "--topics", ".*", "-X", "apograph.refresh.interval=1s")
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		var said tailBuffer
		child.Stderr = &said
		if err := child.Start(); err != nil {
			c.t.Error(err)
			return
		}
		ended := make(chan struct{})
		go func() { _ = child.Wait(); close(ended) }()
		life := time.NewTimer(time.Duration(200+r.IntN(6000)) * time.Millisecond)
		select {
		case <-life.C:
			_ = child.Process.Kill()
			c.kills.Add(1)
		case <-ctx.Done():
			_ = child.Process.Signal(syscall.SIGTERM)
		case <-ended:
			// A broker that dies in the first moment of a copier may end it. It has
			// done nothing yet, and is started again.
			if !bytes.Contains(said.data, []byte("apograph: replicate: cluster ")) || child.ProcessState.ExitCode() != 1 {
				c.t.Errorf("a copier without an end ended by itself: %v\n%s", child.ProcessState, said.data)
				return
			}
			c.refused.Add(1)
		}
		life.Stop()
		<-ended
		if ctx.Err() != nil {
			return
		}
	}
}

// A tailBuffer keeps the end of what is written to it.
type tailBuffer struct{ data []byte }

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	b.data = b.data[max(0, len(b.data)-4000):]
	return len(p), nil
}

// loseLeadersWhile takes leaders away, one after the other, while copiers are
// killed, until there were enough of both.
func (c *campaign) loseLeadersWhile(copier *sync.WaitGroup) {
	copying, stop := context.WithCancel(c.t.Context())
	defer stop()
	copier.Go(func() { c.killCopiers(copying) })
	kills, losses := fromEnvironment(c.t, killsVariable, fewKills), fromEnvironment(c.t, lossesVariable, fewLosses)
	for i := int64(0); (c.losses.Load() < losses || c.kills.Load() < kills) && !c.t.Failed(); i++ {
		side := []*kafkatest.Kafka{c.source, c.target}[i%2]
		if err := c.loseLeader(side, i); err != nil {
			c.t.Error(err)
		}
	}
}

// loseLeader takes the leader of a partition away, and gives it back when there
// is another one.
func (c *campaign) loseLeader(k *kafkatest.Kafka, i int64) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	topic, partition := c.topics[c.rng.IntN(len(c.topics))], int32(c.rng.IntN(2))
	if err := k.WaitInSyncEverywhere(ctx); err != nil {
		return fmt.Errorf("before the loss of a leader: %w", err)
	}
	leader, err := k.Leader(ctx, topic, partition)
	if err != nil {
		return err
	}
	take, back, way := k.Kill, k.Restart, "killed"
	switch i / 2 % 3 {
	case 1:
		take, back, way = k.Pause, k.Resume, "stopped for longer than its session"
	case 2:
		take, back, way = k.Stop, k.Restart, "restarted"
	}
	if err := take(leader); err != nil {
		return err
	}
	if _, err := k.WaitLeader(ctx, topic, partition, leader); err != nil {
		return fmt.Errorf("leader %d %s: %w", leader, way, err)
	}
	c.losses.Add(1)
	c.how[way]++
	return back(leader)
}

// prove compares both clusters, as they are when everything has come to rest.
func (c *campaign) prove(written *atomic.Int64) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
	defer cancel()
	for _, k := range []*kafkatest.Kafka{c.source, c.target} {
		if err := k.WaitInSyncEverywhere(ctx); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, topic := range c.topics {
		if err := c.source.WaitDecided(ctx, topic); err != nil {
			c.t.Fatal(err)
		}
	}
	if code, answer := c.run(c.t, "replicate", "--once", "--topics", ".*"); code != 0 || answer["complete"] != true {
		c.t.Errorf("replicate --once: exit code %d: %v", code, answer)
	}
	records, lost, doubled, named := c.compare(ctx)
	c.t.Logf("%d kills of copiers (%d more could not begin), %d leader losses %v, %d loads (%d ended half way), %d records: %d lost, %d doubled, %d of them named",
		c.kills.Load(), c.refused.Load(), c.losses.Load(), c.how, written.Load(), c.failed.Load(), records, lost, doubled, named)
	if code, report := c.run(c.t, "verify"); code != 0 || report["verdict"] != "complete" {
		c.t.Errorf("verify: exit code %d, verdict %v", code, report["verdict"])
	}
	mustCheck(c.t, c.ledger)
}

// compare reads both clusters with the Java client.
func (c *campaign) compare(ctx context.Context) (records, lost, doubled, named int) {
	book := c.export(c.t, "target")
	for _, topic := range c.topics {
		source, err := c.source.JavaReadTopic(ctx, topic)
		if err != nil {
			c.t.Fatal(err)
		}
		target, err := c.target.JavaReadTopic(ctx, topic)
		if err != nil {
			c.t.Fatal(err)
		}
		for p := range source {
			found, books := compareRecords(source[p], target[p]), namedDoubles(book, topic, int32(p), source[p])
			if len(found.lost) > 0 || len(found.strange) > 0 || !slices.Equal(found.doubled, books) {
				c.t.Errorf("%s:%d: lost %v, strange %v, doubled %v, of which the books name %v",
					topic, p, found.lost, found.strange, found.doubled, books)
			}
			records, lost = records+len(source[p]), lost+len(found.lost)
			doubled, named = doubled+len(found.doubled), named+len(books)
		}
	}
	return records, lost, doubled, named
}

// export returns a book of the flow.
func (f *realFlow) export(t *testing.T, book string) []bookLine {
	t.Helper()
	return bookOf(t, f.must(t, 0, "ledger", "export", f.ledger, "--book", book))
}

// must runs apograph and returns its standard output.
func (f *realFlow) must(t *testing.T, code int, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "apograph", args...)
	var said tailBuffer
	cmd.Stderr = &said
	out, _ := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%v: exit code %d, want %d\n%s\n%s", args, got, code, out, said.data)
	}
	return out
}
