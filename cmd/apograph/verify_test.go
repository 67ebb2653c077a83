package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// TestVerifyScript runs the scripts of `apograph verify`, which need clusters.
// Each has two fake ones, at the addresses in SOURCE and TARGET, with topic
// orders on the source: partition 0 holds ten records, partition 1 a transaction
// of three. Beside the usual commands a script has
//
//	topic NAME                make a topic on the source that holds one record
//	produce COUNT             append records to orders-0 on the source
//	spoil DAMAGE OFFSET       change orders-0 on the target behind everyone's back
//	expire OFFSET             delete the records of orders-0 on the source below it
//	unplug                    stop the target cluster
//	ledger FILE               make the ledger of makeLedger
//	hold FILE COMMAND...      run a program while a ledger is in use
//	steady                    replace what differs between runs in the last answer
//	exits CODE PROGRAM...     run a program that must exit with this code
func TestVerifyScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script/verify",
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               startClusters,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"produce": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(produceOrders(pairOf(ts), 0, atoi(ts, args[0])))
			},
			"topic": makeTopic,
			"empty": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(pairOf(ts).Target.CreateTopic(context.Background(), args[0], 2, nil))
			},
			"spoil": spoil,
			"expire": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(pairOf(ts).Source.DeleteRecords("orders", 0, int64(atoi(ts, args[0]))))
			},
			"unplug": func(ts *testscript.TestScript, _ bool, _ []string) { pairOf(ts).Target.Stop() },
			"ledger": func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(makeLedger(ts.MkAbs(args[0]))) },
			"hold":   hold,
			"steady": steady,
			"exits":  exits,
		},
	})
}

// clustersKey is where an environment keeps its clusters.
type clustersKey struct{}

func startClusters(env *testscript.Env) error {
	pair, err := kafkatest.StartPair(kafkatest.Options{DataDir: filepath.Join(env.WorkDir, ".clusters"), TargetBrokers: 1})
	if err != nil {
		return err
	}
	env.Defer(pair.Close)
	env.Values[clustersKey{}] = pair
	env.Setenv("SOURCE", pair.Source.Server())
	env.Setenv("TARGET", pair.Target.Server())
	if err := pair.Source.CreateTopic(context.Background(), "orders", 2, nil); err != nil {
		return err
	}
	if err := produceOrders(pair, 0, 10); err != nil {
		return err
	}
	return pair.Source.AppendTransaction(context.Background(), "t", true, orders(1, 0, 3)...)
}

func pairOf(ts *testscript.TestScript) *kafkatest.Pair {
	return ts.Value(clustersKey{}).(*kafkatest.Pair)
}

func orders(partition int32, from, n int) []*kgo.Record {
	var records []*kgo.Record
	for i := from; i < from+n; i++ {
		records = append(records, &kgo.Record{Topic: "orders", Partition: partition, Value: fmt.Appendf(nil, "order %d", i), Timestamp: fixtureTime().Add(time.Duration(i) * time.Second)})
	}
	return records
}

// produceOrders appends n records to a partition of the source.
func produceOrders(pair *kafkatest.Pair, partition int32, n int) error {
	bounds, err := pair.Source.ReadBounds(context.Background(), "orders", partition)
	if err != nil {
		return err
	}
	return pair.Source.Append(context.Background(), kafkatest.None, orders(partition, int(bounds.HighWatermark), n)...)
}

func makeTopic(ts *testscript.TestScript, _ bool, args []string) {
	ctx, source := context.Background(), pairOf(ts).Source
	ts.Check(source.CreateTopic(ctx, args[0], 1, nil))
	ts.Check(source.Append(ctx, kafkatest.None, &kgo.Record{Topic: args[0], Value: []byte("v"), Timestamp: fixtureTime()}))
}

func spoil(ts *testscript.TestScript, _ bool, args []string) {
	damages := map[string]kafkatest.Sabotage{
		"drop":   {Damage: kafkatest.Drop, Shift: true},
		"double": {Damage: kafkatest.Duplicate, Shift: true},
		"mutate": {Damage: kafkatest.MutateValue},
		"swap":   {Damage: kafkatest.Swap},
		"insert": {Damage: kafkatest.Insert},
	}
	s, ok := damages[args[0]]
	if !ok {
		ts.Fatalf("unknown damage %s", args[0])
	}
	s.Topic, s.Offset = "orders", int64(atoi(ts, args[1]))
	_, err := pairOf(ts).Target.Sabotage(s)
	ts.Check(err)
}

// hold holds a ledger as a copier does while a program runs that must find it
// in use.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	l, err := ledger.Open(ts.MkAbs(args[0]), ledger.Options{})
	ts.Check(err)
	exits(ts, neg, append([]string{strconv.Itoa(int(exitLocked))}, args[1:]...))
	ts.Check(l.Close())
}

// steady replaces, in the standard output of the last program, times, topic ids,
// producer ids, the version and durations, and writes it to the file steady.
func steady(ts *testscript.TestScript, _ bool, _ []string) {
	out := []byte(ts.ReadFile("stdout"))
	for _, r := range []struct{ what, with string }{
		{`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ`, "TIME"},
		{`"topic_id":"[^"]{22}"`, `"topic_id":"ID"`},
		{`producer id -?\d+`, "producer id N"},
		{`"version":"[^"]*"`, `"version":"V"`},
		{`(?m)^time( +)[\d.]+ s$`, "time${1}T s"},
	} {
		out = regexp.MustCompile(r.what).ReplaceAll(out, []byte(r.with))
	}
	ts.Check(os.WriteFile(ts.MkAbs("steady"), out, 0o600))
}

func atoi(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// TestVerifyTells shows the progress of a verification, and that a report never
// holds an escape sequence.
func TestVerifyTells(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"apograph", "verify", "--ledger", path}, nil, &stdout, &stderr)
	if code != int(exitFaults) {
		t.Errorf("exit code %d, standard error %s", code, stderr.String())
	}
	if bytes.ContainsRune(stdout.Bytes(), '\x1b') || bytes.Contains(stdout.Bytes(), []byte("\u202e")) {
		t.Errorf("the report could act on a terminal: %q", stdout.String())
	}
}
