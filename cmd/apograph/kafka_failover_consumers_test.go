//go:build kafka

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

//go:embed testdata/librdkafka_failover.py
var librdkafkaFailover string

// A failoverClient has consumers of groups go on at a target, to its end.
type failoverClient struct {
	name string
	goOn func(ctx context.Context, on *kafkatest.Kafka, topic string, groups []string) (map[string]kafkatest.Resumption, error)
}

// failoverClients are all kinds of consumers, with both protocols: librdkafka's
// if APOGRAPH_LIBRDKAFKA names a Python that has confluent_kafka.
func failoverClients() []failoverClient {
	java := func(protocol string) failoverClient {
		return failoverClient{"Java " + protocol, func(ctx context.Context, on *kafkatest.Kafka, topic string, groups []string) (map[string]kafkatest.Resumption, error) {
			return on.JavaFailOver(ctx, on.Bootstrap, kafkatest.FailOver{Topic: topic, Protocol: protocol, Reset: "earliest", Groups: groups})
		}}
	}
	clients := []failoverClient{
		java("classic"), java("consumer"),
		{"kgo classic", kgoFailOver()}, {"kgo consumer", kgoFailOver(kgo.ServerSideBalancer())},
	}
	python := os.Getenv("APOGRAPH_LIBRDKAFKA")
	if python == "" {
		return clients
	}
	for _, protocol := range []string{"classic", "consumer"} {
		clients = append(clients, failoverClient{"librdkafka " + protocol, func(ctx context.Context, on *kafkatest.Kafka, topic string, groups []string) (map[string]kafkatest.Resumption, error) {
			cmd := exec.CommandContext(ctx, python, "-c", librdkafkaFailover, on.Server(), topic, protocol)
			cmd.Stdin = strings.NewReader(strings.Join(groups, "\n") + "\n")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				return nil, fmt.Errorf("librdkafka: %w: %s", err, errs.String())
			}
			return kafkatest.ParseResumptions(out)
		}})
	}
	return clients
}

// kgoFailOver has consumers of kgo go on.
func kgoFailOver(options ...kgo.Opt) func(context.Context, *kafkatest.Kafka, string, []string) (map[string]kafkatest.Resumption, error) {
	return func(ctx context.Context, on *kafkatest.Kafka, topic string, groups []string) (map[string]kafkatest.Resumption, error) {
		bounds, err := on.ReadBounds(ctx, topic, 0)
		if err != nil {
			return nil, err
		}
		const atOnce = 4
		got, errs := make([]kafkatest.Resumption, len(groups)), make([]error, len(groups))
		var consumers sync.WaitGroup
		for first := range atOnce {
			consumers.Go(func() {
				for i := first; i < len(groups); i += atOnce {
					got[i], errs[i] = kgoGoesOn(ctx, on, topic, groups[i], bounds, options)
				}
			})
		}
		consumers.Wait()
		all := map[string]kafkatest.Resumption{}
		for i, group := range groups {
			all[group] = got[i]
		}
		return all, errors.Join(errs...)
	}
}

func kgoGoesOn(ctx context.Context, on *kafkatest.Kafka, topic, group string, bounds kafkatest.Bounds, options []kgo.Opt) (kafkatest.Resumption, error) {
	starts := make(chan int64, 1)
	fetched := func(_ context.Context, _ *kgo.Client, answer *kmsg.OffsetFetchResponse) error {
		start := bounds.LogStart
		for _, g := range answer.Groups {
			for _, t := range g.Topics {
				for _, p := range t.Partitions {
					if p.Offset >= 0 {
						start = p.Offset
					}
				}
			}
		}
		select {
		case starts <- start:
		default:
		}
		return nil
	}
	client, err := on.Client(append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.OnOffsetsFetched(fetched),
	}, options...)...)
	if err != nil {
		return kafkatest.Resumption{}, err
	}
	defer client.Close()
	var start int64
	select {
	case start = <-starts:
	case <-ctx.Done():
		return kafkatest.Resumption{}, context.Cause(ctx)
	}
	var records []kafkatest.Record
	for position := start; position < bounds.HighWatermark; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return kafkatest.Resumption{}, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			records = append(records, kafkatest.Record{Offset: r.Offset, Value: r.Value})
			position = r.Offset + 1
		})
	}
	got := kafkatest.ResumptionOf(records, 0)
	got.Start = start
	return got, nil
}

// A failoverRow is what became of one group at one target.
type failoverRow struct {
	start, exact  int64
	again, missed int
}

// consumers has all groups go on at both targets with all clients, each of which
// must get what stands there, and counts.
func (f *failover) consumers(t *testing.T) {
	kafkatest.Compare(t, f.source.Bootstrap, f.ours.Bootstrap, map[string]string{"orders": "A.orders", "puzzle": "A.puzzle"})
	ours, theirs := f.rows(t, f.ours), f.rows(t, f.theirs)
	for i, p := range f.positions {
		if o := ours[i]; o.start != o.exact || o.again != 0 || o.missed != 0 {
			t.Errorf("group %s, at %d, goes on at %d of apograph's target, exact is %d: %d again, %d missed", p.group, p.committed, o.start, o.exact, o.again, o.missed)
		}
		if m := theirs[i]; m.missed != 0 {
			t.Errorf("group %s misses %d records at MirrorMaker's target", p.group, m.missed)
		}
	}
	f.table(t, ours, theirs)
}

// rows has all groups go on at one target.
func (f *failover) rows(t *testing.T, target *kafkatest.Kafka) []failoverRow {
	t.Helper()
	const topic = "A.orders"
	o := newCopyOracle(f.ctx, t, f.source, "orders", target, topic, 0)
	committed := committedOn(t, target, f.groups()...)
	for _, client := range failoverClients() {
		got, err := client.goOn(f.ctx, target, topic, f.groups())
		if err != nil {
			t.Fatalf("%s: %v", client.name, err)
		}
		for _, group := range f.groups() {
			// Without a commit, auto.offset.reset=earliest decides.
			want := kafkatest.ResumptionOf(o.target, committed[groupPlace{group, topic, 0}])
			if got[group] != want {
				t.Errorf("%s, group %s: %+v, want %+v", client.name, group, got[group], want)
			}
		}
	}
	var rows []failoverRow
	for _, p := range f.positions {
		row := failoverRow{start: committed[groupPlace{p.group, topic, 0}], exact: o.exact(p.committed)}
		row.again, row.missed = o.outcome(p.committed, row.start)
		rows = append(rows, row)
	}
	return rows
}

// table writes one line a position, and the sum of all.
func (f *failover) table(t *testing.T, ours, theirs []failoverRow) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| group | committed | MirrorMaker 2: goes on at | exact | read again | missed | apograph: goes on at | exact | read again | missed |\n")
	b.WriteString("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for i, p := range f.positions {
		m, o := theirs[i], ours[i]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n",
			p.group, p.committed, m.start, m.exact, m.again, m.missed, o.start, o.exact, o.again, o.missed)
	}
	var names []string
	for _, client := range failoverClients() {
		names = append(names, client.name)
	}
	fmt.Fprintf(&b, "\nRead again: MirrorMaker 2 median %s; apograph median %s. Missed: %d and %d. Each position with %s.\n",
		spread(theirs), spread(ours), sumMissed(theirs), sumMissed(ours), strings.Join(names, ", "))
	writeTable(t, "failover", b.String())
}

// spread says the median and the largest of what is read again.
func spread(rows []failoverRow) string {
	var all []int
	for _, row := range rows {
		all = append(all, row.again)
	}
	return spreadOf(all)
}

func spreadOf(all []int) string {
	all = slices.Sorted(slices.Values(all))
	return fmt.Sprintf("%d, largest %d", (all[(len(all)-1)/2]+all[len(all)/2])/2, all[len(all)-1])
}

func sumMissed(rows []failoverRow) (sum int) {
	for _, row := range rows {
		sum += row.missed
	}
	return sum
}
