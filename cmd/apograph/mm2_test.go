package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/internal/mm2"
)

// TestMM2Script runs the scripts of `apograph mm2` on the clusters of
// [TestVerifyScript]. Beside the usual commands a script has
//
//	produce COUNT                             append records to orders-0 on the source
//	internal SIDE TOPIC                       make a topic of one partition on source or target
//	sync SIDE TOPIC NAME PARTITION U D        append an offset sync
//	checkpoint TOPIC GROUP NAME PARTITION U D METADATA   append a checkpoint to a topic of the target
//	heartbeat TOPIC SOURCE TARGET MILLIS      append a heartbeat to a topic of the target
//	raw SIDE TOPIC KEY VALUE                  append a record; hexadecimal, or - for null
//	steady                                    replace what differs between runs in the last answer
//	exits CODE PROGRAM...                     run a program that must exit with this code
func TestMM2Script(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script/mm2",
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               startClusters,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"produce": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(produceOrders(pairOf(ts), 0, atoi(ts, args[0])))
			},
			"internal": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(sideOf(ts, args[0]).CreateTopic(context.Background(), args[1], 1, map[string]string{"cleanup.policy": "compact"}))
			},
			"sync": func(ts *testscript.TestScript, _ bool, args []string) {
				key, value, err := mm2.OffsetSync{Topic: args[2], Partition: int32(atoi(ts, args[3])), Upstream: atoi64(ts, args[4]), Downstream: atoi64(ts, args[5])}.Encode()
				ts.Check(err)
				appendInternal(ts, args[0], args[1], key, value)
			},
			"checkpoint": func(ts *testscript.TestScript, _ bool, args []string) {
				key, value, err := mm2.Checkpoint{Group: args[1], Topic: args[2], Partition: int32(atoi(ts, args[3])),
					Upstream: atoi64(ts, args[4]), Downstream: atoi64(ts, args[5]), Metadata: args[6]}.Encode()
				ts.Check(err)
				appendInternal(ts, sideTarget, args[0], key, value)
			},
			"heartbeat": func(ts *testscript.TestScript, _ bool, args []string) {
				key, value, err := mm2.Heartbeat{Source: args[1], Target: args[2], Timestamp: atoi64(ts, args[3])}.Encode()
				ts.Check(err)
				appendInternal(ts, sideTarget, args[0], key, value)
			},
			"raw": func(ts *testscript.TestScript, _ bool, args []string) {
				appendInternal(ts, args[0], args[1], unhex(ts, args[2]), unhex(ts, args[3]))
			},
			"steady": steadyLedger,
			"exits":  exits,
		},
	})
}

func sideOf(ts *testscript.TestScript, side string) *kafkatest.Cluster {
	if side == sideSource {
		return pairOf(ts).Source
	}
	return pairOf(ts).Target
}

func appendInternal(ts *testscript.TestScript, side, topic string, key, value []byte) {
	ts.Check(sideOf(ts, side).Append(context.Background(), kafkatest.None,
		&kgo.Record{Topic: topic, Key: key, Value: value, Timestamp: fixtureTime()}))
}

func atoi64(ts *testscript.TestScript, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	ts.Check(err)
	return n
}

func unhex(ts *testscript.TestScript, s string) []byte {
	if s == "-" {
		return nil
	}
	b, err := hex.DecodeString(s)
	ts.Check(err)
	return append([]byte{}, b...)
}

// steadyLedger replaces what is random in a ledger.
func steadyLedger(ts *testscript.TestScript, _ bool, _ []string) {
	out := ts.ReadFile("stdout")
	for _, r := range [][2]string{{`"ledger_id":"[^"]*"`, `"ledger_id":"ID"`}, {`"last_commit":"[^"]*"`, `"last_commit":"TIME"`}} {
		out = regexp.MustCompile(r[0]).ReplaceAllString(out, r[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs("steady"), []byte(out), 0o600))
}

// TestMM2MakesNothing: a topic that is not there is told, with what to do, and
// neither topics nor groups come to be.
func TestMM2MakesNothing(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Name: "B", Kfake: []kfake.Opt{kfake.AllowAutoTopicCreation()}})
	for _, what := range []string{"offset-syncs", "checkpoints", "heartbeats"} {
		code, stdout, stderr := mustRun(t, "mm2", what, "--target-bootstrap-server", c.Server(), "--source-alias", "A", "--target-alias", "B")
		if code != int(exitError) || stdout != "" || !strings.Contains(stderr, "cluster B has no topic ") || !strings.Contains(stderr, "--topic") {
			t.Errorf("%s: exit code %d, %q, %q", what, code, stdout, stderr)
		}
	}
	admin := kadm.NewClient(c.NewClient(t))
	topics, err := admin.ListTopicsWithInternal(t.Context())
	groups, groupsErr := admin.ListGroups(t.Context())
	if err != nil || groupsErr != nil || len(topics)+len(groups) != 0 {
		t.Errorf("%v %v, %v %v", topics.Names(), groups, err, groupsErr)
	}
}

// TestMM2TellsMuchDamage: of a topic of something else not every record is told,
// and how many more there are is.
func TestMM2TellsMuchDamage(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Name: "B", Brokers: 1, DataDir: t.TempDir()})
	if err := c.CreateTopic(t.Context(), "orders", 3, nil); err != nil {
		t.Fatal(err)
	}
	var records []*kgo.Record
	for i := range maxDamage + 23 {
		records = append(records, &kgo.Record{Topic: "orders", Value: fmt.Appendf(nil, "%d", i)})
	}
	if err := c.Append(t.Context(), kafkatest.None, records...); err != nil {
		t.Fatal(err)
	}
	args := []string{"mm2", "heartbeats", "--target-bootstrap-server", c.Server(), "--topic", "orders"}
	code, stdout, stderr := mustRun(t, append(args, "-o", "json")...)
	var answer struct {
		Rows           []json.RawMessage `json:"rows"`
		Damaged        []json.RawMessage `json:"damaged"`
		DamagedOmitted int               `json:"damaged_omitted"`
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatal(err)
	}
	if code != int(exitFaults) || len(answer.Rows) != 0 || len(answer.Damaged) != maxDamage || answer.DamagedOmitted != 23 {
		t.Errorf("exit code %d, %+v", code, answer)
	}
	if !strings.Contains(stderr, "topic orders has 3 partitions") {
		t.Errorf("stderr %q", stderr)
	}
	if _, stdout, _ = mustRun(t, args...); !strings.Contains(stdout, "and 23 more") || strings.Count(stdout, "key: null") != maxDamage {
		t.Errorf("table %q", stdout)
	}
	if _, stdout, stderr = mustRun(t, append(args, "-o", "jsonl")...); stdout != "" || !strings.Contains(stderr, "23 records more") {
		t.Errorf("lines %q, %q", stdout, stderr)
	}
}

// TestMM2KeepsTheLastOfEachKey compares with a list of all records.
func TestMM2KeepsTheLastOfEachKey(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Name: "B", Brokers: 1, DataDir: t.TempDir()})
	if err := c.CreateTopic(t.Context(), "A.checkpoints.internal", 1, nil); err != nil {
		t.Fatal(err)
	}
	last := map[string]int64{}
	var all []string
	for i := range int64(60) {
		p := mm2.Checkpoint{Group: fmt.Sprint("g", i%4), Topic: "A.t", Partition: int32(i % 3), Upstream: i, Downstream: 100 - i}
		key, value, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Append(t.Context(), kafkatest.None, &kgo.Record{Topic: "A.checkpoints.internal", Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
		last[fmt.Sprint(p.Group, p.Partition)] = i
		all = append(all, fmt.Sprint(i, " ", i, " ", 100-i))
	}
	type row struct {
		Group                        string
		Partition                    int32
		Offset, Upstream, Downstream int64
	}
	read := func(args ...string) (rows []row) {
		code, stdout, stderr := mustRun(t, append([]string{"mm2", "checkpoints", "--target-bootstrap-server", c.Server(), "--source-alias", "A", "-o", "jsonl"}, args...)...)
		if code != 0 || stderr != "" {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
		for line := range strings.Lines(stdout) {
			var r row
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			rows = append(rows, r)
		}
		return rows
	}
	kept := read()
	if len(kept) != len(last) {
		t.Errorf("%d rows, want %d", len(kept), len(last))
	}
	for _, r := range kept {
		if want := last[fmt.Sprint(r.Group, r.Partition)]; r.Upstream != want || r.Offset != want {
			t.Errorf("%+v, want %d", r, want)
		}
	}
	if !slices.IsSortedFunc(kept, func(a, b row) int {
		return strings.Compare(fmt.Sprint(a.Group, a.Partition), fmt.Sprint(b.Group, b.Partition))
	}) {
		t.Errorf("not in order: %v", kept)
	}
	var got []string
	for _, r := range read("--all") {
		got = append(got, fmt.Sprint(r.Offset, " ", r.Upstream, " ", r.Downstream))
	}
	if !slices.Equal(got, all) {
		t.Errorf("all: %v", got)
	}
	if some := read("--all", "--group", "g1", "--group", "g3"); len(some) != 30 {
		t.Errorf("%d rows of two groups of four", len(some))
	}
}

// TestMM2OfACutSource: where the source's log was cut below the books, an offset
// may be that of another record now, and there is no exact answer.
func TestMM2OfACutSource(t *testing.T) {
	c := newGroupCase(t)
	if err := c.pair.Target.CreateTopic(t.Context(), "source.checkpoints.internal", 1, nil); err != nil {
		t.Fatal(err)
	}
	key, value, err := mm2.Checkpoint{Group: "g", Topic: "orders", Partition: 1, Upstream: 3, Downstream: 2}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.pair.Target.Append(t.Context(), kafkatest.None, &kgo.Record{Topic: "source.checkpoints.internal", Key: key, Value: value}); err != nil {
		t.Fatal(err)
	}
	args := []string{"mm2", "checkpoints", "--target-bootstrap-server", c.pair.Target.Server(), "--ledger", c.ledger, "-o", "jsonl"}
	code, stdout, stderr := mustRun(t, args...)
	if code != 0 || !strings.Contains(stdout, `"exact":3,"difference":1,"status":"exact"`) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if err := c.pair.Source.LoseTail("orders", 1, 4); err != nil {
		t.Fatal(err)
	}
	c.produce(c.pair.Source, "orders", 1, 20)
	if code, stderr := copyOnce(t, c.pair, c.ledger); code != int(exitError) {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	code, stdout, stderr = mustRun(t, args...)
	if code != 0 || !strings.Contains(stdout, `"exact":null,"difference":null,"status":"unknown"`) || !strings.Contains(stdout, "was cut below the books") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
