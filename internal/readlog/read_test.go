package readlog_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/internal/readlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const topic = "compacted"

func newCluster(t *testing.T, partitions int32) *kafkatest.Cluster {
	t.Helper()
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Name: "A", Brokers: 3, DataDir: t.TempDir()})
	if err := c.CreateTopic(t.Context(), topic, partitions, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	return c
}

func reach(c *kafkatest.Cluster) connect.Cluster {
	return connect.Cluster{Alias: "A", Bootstrap: c.Addresses}
}

func record(partition int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Key: []byte("k"), Value: []byte(value), Timestamp: time.UnixMilli(1000)}
}

func mustAppend(t *testing.T, c *kafkatest.Cluster, records ...*kgo.Record) {
	t.Helper()
	for _, r := range records { // a batch each
		if err := c.Append(t.Context(), kafkatest.None, r); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns the records as "offset value", and what was read.
func read(t *testing.T, ctx context.Context, c *kafkatest.Cluster) (got []string, log readlog.Log, err error) {
	t.Helper()
	log, err = readlog.Read(ctx, reach(c), topic, func(r readlog.Record) {
		switch {
		case r.Err != nil:
			got = append(got, fmt.Sprintf("%d damaged", r.Offset))
		case r.Value == nil:
			got = append(got, fmt.Sprintf("%d null", r.Offset))
		default:
			got = append(got, fmt.Sprintf("%d %s", r.Offset, r.Value))
		}
	})
	return got, log, err
}

func wantRead(t *testing.T, c *kafkatest.Cluster, want ...string) readlog.Log {
	t.Helper()
	got, log, err := read(t, t.Context(), c)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read %q, %v, want %q", got, err, want)
	}
	return log
}

// TestReadAll: what transactions left is read as MirrorMaker 2's consumers do, and
// only partition 0.
func TestReadAll(t *testing.T) {
	c := newCluster(t, 2)
	mustAppend(t, c, record(0, "a"), record(1, "elsewhere"), record(0, "b"))
	if err := c.AppendTransaction(t.Context(), "tx", false, record(0, "aborted")); err != nil {
		t.Fatal(err)
	}
	tombstone := record(0, "")
	tombstone.Value = nil
	mustAppend(t, c, tombstone)
	log := wantRead(t, c, "0 a", "1 b", "2 aborted", "4 null")
	want := readlog.Log{ClusterID: c.ID(), Partitions: 2, Start: 0, End: 5}
	if log != want {
		t.Errorf("%+v, want %+v", log, want)
	}
}

// TestReadEnds: with a marker at its end, with nothing in it, below its start.
func TestReadEnds(t *testing.T) {
	c := newCluster(t, 1)
	wantRead(t, c)
	mustAppend(t, c, record(0, "a"), record(0, "b"))
	if err := c.AppendTransaction(t.Context(), "tx", true, record(0, "c")); err != nil {
		t.Fatal(err)
	}
	wantRead(t, c, "0 a", "1 b", "2 c")
	if err := c.DeleteRecords(topic, 0, 1); err != nil {
		t.Fatal(err)
	}
	if log := wantRead(t, c, "1 b", "2 c"); log.Start != 1 || log.End != 4 {
		t.Errorf("%+v", log)
	}
	if err := c.DeleteRecords(topic, 0, 4); err != nil {
		t.Fatal(err)
	}
	wantRead(t, c)
}

// TestReadInManyAnswers: from a broker that sends one batch at a time.
func TestReadInManyAnswers(t *testing.T) {
	c := newCluster(t, 1)
	var want []string
	for i := range 12 {
		mustAppend(t, c, record(0, fmt.Sprint(i)))
		want = append(want, fmt.Sprint(i, " ", i))
	}
	asked := 0
	c.Fake().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.Fake().KeepControl()
		request := r.(*kmsg.FetchRequest)
		request.MaxBytes, request.Topics[0].Partitions[0].PartitionMaxBytes = 1, 1
		asked++
		return nil, nil, false
	})
	wantRead(t, c, want...)
	if asked < len(want) {
		t.Errorf("%d answers", asked)
	}
}

// TestReadBesideDamage: a batch that cannot be decoded is told, and what stands
// behind it is read.
func TestReadBesideDamage(t *testing.T) {
	for _, damaged := range []int{0, 1, 2} {
		c := newCluster(t, 1)
		mustAppend(t, c, record(0, "a"), record(0, "b"), record(0, "c"))
		c.Stop()
		err := kafkatest.RewriteLog(c.DataDir(), topic, 0, func(batches [][]byte) [][]byte {
			raw := batches[damaged]
			raw[61] = 0x7e // the length of its record, which its checksum says is right
			binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
			return batches
		})
		if err == nil {
			err = c.Restart()
		}
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"0 a", "1 b", "2 c"}
		want[damaged] = fmt.Sprintf("%d damaged", damaged)
		wantRead(t, c, want...)
	}
}

// TestReadBehindACleaner: batches that it has emptied, and an end that it has
// removed.
func TestReadBehindACleaner(t *testing.T) {
	c := newCluster(t, 1)
	mustAppend(t, c, record(0, "a"), record(0, "b"), record(0, "c"))
	edit := func(edit func(*kafkatest.Log)) {
		t.Helper()
		if err := c.EditLog(topic, 0, func(l *kafkatest.Log) error { edit(l); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	edit(func(l *kafkatest.Log) { l.Batches[1] = emptied(l.Batches[1]) })
	wantRead(t, c, "0 a", "2 c")
	edit(func(l *kafkatest.Log) { l.Batches[2] = emptied(l.Batches[2]) })
	wantRead(t, c, "0 a")
	// Nothing at all, as there may be once a segment was rolled behind it.
	asked := 0
	c.Fake().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.Fake().KeepControl()
		request := r.(*kmsg.FetchRequest)
		asked++
		response := request.ResponseKind().(*kmsg.FetchResponse)
		answer, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		answer.Topic, answer.TopicID = request.Topics[0].Topic, request.Topics[0].TopicID
		partition.HighWatermark = 3
		answer.Partitions = append(answer.Partitions, partition)
		response.Topics = append(response.Topics, answer)
		return response, nil, true
	})
	if log := wantRead(t, c); log.End != 3 || asked != 3 {
		t.Errorf("%+v, asked %d times", log, asked)
	}
}

// TestReadFromALaggingLeader: one that has just been elected, and does not know yet
// how much of its log may be read, gives nothing, which is not the end.
func TestReadFromALaggingLeader(t *testing.T) {
	c := newCluster(t, 1)
	mustAppend(t, c, record(0, "a"), record(0, "b"), record(0, "c"))
	asked := 0
	c.Fake().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.Fake().KeepControl()
		request := r.(*kmsg.FetchRequest)
		if asked++; asked > 5 {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.FetchResponse)
		answer, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		answer.Topic, answer.TopicID = request.Topics[0].Topic, request.Topics[0].TopicID
		partition.HighWatermark = 2
		answer.Partitions = append(answer.Partitions, partition)
		response.Topics = append(response.Topics, answer)
		return response, nil, true
	})
	wantRead(t, c, "0 a", "1 b", "2 c")
}

// emptied returns the head of a batch, as a cleaner leaves it.
func emptied(batch []byte) []byte {
	head := slices.Clone(batch[:61])
	binary.BigEndian.PutUint32(head[8:], 61-12)
	binary.BigEndian.PutUint32(head[57:], 0)
	binary.BigEndian.PutUint32(head[17:], crc32.Checksum(head[21:], crc32.MakeTable(crc32.Castagnoli)))
	return head
}

// TestReadCreatesNothing: also where the cluster would make a topic that is asked
// for.
func TestReadCreatesNothing(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Name: "A", Kfake: []kfake.Opt{kfake.AllowAutoTopicCreation()}})
	if _, _, err := read(t, t.Context(), c); !errors.Is(err, readlog.ErrNoTopic) {
		t.Errorf("error %v", err)
	}
	topics, err := kadm.NewClient(c.NewClient(t)).ListTopics(t.Context())
	if err != nil || len(topics) != 0 {
		t.Errorf("topics %v, %v", topics.Names(), err)
	}
	groups, err := kadm.NewClient(c.NewClient(t)).ListGroups(t.Context())
	if err != nil || len(groups) != 0 {
		t.Errorf("groups %v, %v", groups, err)
	}
}

// TestReadThroughFaults: what passes is asked again, what does not is told.
func TestReadThroughFaults(t *testing.T) {
	c := newCluster(t, 1)
	mustAppend(t, c, record(0, "a"), record(0, "b"))
	for _, f := range []kafkatest.Fault{
		{Kind: kafkatest.CutBefore, Key: kmsg.Fetch},
		{Kind: kafkatest.CutAfter, Key: kmsg.Fetch},
		{Kind: kafkatest.CutBefore, Key: kmsg.Metadata},
		{Kind: kafkatest.ErrorBefore, Key: kmsg.Fetch, Err: kerr.NotLeaderForPartition, Topic: topic},
	} {
		t.Run(fmt.Sprint(f.Kind, " ", f.Key), func(t *testing.T) {
			c.MustFault(t, f)
			wantRead(t, c, "0 a", "1 b")
		})
	}
	c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Fetch, Err: kerr.TopicAuthorizationFailed, Topic: topic})
	if got, _, err := read(t, t.Context(), c); !errors.Is(err, kerr.TopicAuthorizationFailed) || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// TestReadIsInterrupted: by the end of its context, with its cause.
func TestReadIsInterrupted(t *testing.T) {
	c := newCluster(t, 1)
	mustAppend(t, c, record(0, "a"))
	gate := make(chan struct{})
	defer close(gate)
	fault := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Gate: gate})
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	go func() {
		if err := fault.Wait(context.WithoutCancel(ctx), 1); err != nil {
			t.Error(err)
		}
		cancel(stop)
	}()
	if _, _, err := read(t, ctx, c); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}
