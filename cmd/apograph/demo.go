package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/urfave/cli/v2"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
	"apograph/translate"
	"apograph/verify"
)

func demoCommand() command {
	return command{
		path:    "demo",
		summary: "show the whole story on two clusters inside this process",
		details: "Starts two fake Kafka clusters, fills one with everything that makes copying\n" +
			"hard, copies it, breaks one record of the copy behind the copier's back, finds\n" +
			"exactly that record, and translates a group's offsets with both clusters off.\n" +
			"Takes some seconds. Nothing outside is read or written, unless --keep says so.",
		examples: []string{"apograph demo", "apograph demo --inject none"},
		flags: []cli.Flag{
			&cli.StringFlag{Name: "inject", Value: "mutate", EnvVars: []string{envVar("inject")},
				Usage: "break the copy by `KIND`: none, drop, dup, swap or mutate (default mutate)"},
			// Not from the environment: a directory serves once.
			&cli.StringFlag{Name: "keep", Usage: "keep the ledger, its snapshot and both clusters' logs in `DIR`, which must not exist"},
		},
		exits: []exitCode{exitFaults},
		run:   runDemo,
	}
}

// An injection is a damage that --inject knows.
type injection struct {
	sabotage kafkatest.Sabotage
	told     func(kafkatest.Sabotaged) string // what was done, for a person
}

// injections are the damages that --inject knows. Where a record is gone or
// doubled the later ones move, as if the copier itself had failed.
func injections() map[string]injection {
	return map[string]injection{
		"none": {},
		"drop": {kafkatest.Sabotage{Damage: kafkatest.Drop, Shift: true}, func(s kafkatest.Sabotaged) string {
			return fmt.Sprintf("the record at %d is removed", s.Offset)
		}},
		"dup": {kafkatest.Sabotage{Damage: kafkatest.Duplicate, Shift: true}, func(s kafkatest.Sabotaged) string {
			return fmt.Sprintf("the record at %d is repeated at %d", s.Offset, s.Start)
		}},
		"swap": {kafkatest.Sabotage{Damage: kafkatest.Swap}, func(s kafkatest.Sabotaged) string {
			return fmt.Sprintf("the records at %d and %d are exchanged", s.Start, s.End-1)
		}},
		"mutate": {kafkatest.Sabotage{Damage: kafkatest.MutateValue}, func(s kafkatest.Sabotaged) string {
			return fmt.Sprintf("the value of the record at %d is changed", s.Offset)
		}},
	}
}

func runDemo(ctx context.Context, inv *invocation) error {
	broken, ok := injections()[inv.String("inject")]
	if !ok {
		return usagef("--inject %s: it breaks by none, drop, dup, swap or mutate", quoteArg(inv.String("inject")))
	}
	dir, remove, err := demoDir(inv.String("keep"))
	if err != nil {
		return err
	}
	d := &demo{ctx: ctx, out: inv.stdout, columns: inv.stdout.columns, dir: dir, broken: broken}
	err = d.run()
	if err == nil && inv.String("keep") != "" {
		d.tellKept()
	} else if gone := remove(); gone != nil {
		err = errors.Join(err, gone)
	}
	if err == nil && d.faults {
		return verdict(exitFaults)
	}
	return err
}

// demoDir returns a directory for the demo's files and what removes it.
func demoDir(keep string) (dir string, remove func() error, err error) {
	if keep == "" {
		dir, err = os.MkdirTemp("", "apograph-demo-*")
		return dir, func() error { return os.RemoveAll(dir) }, err
	}
	if _, err := os.Lstat(keep); err == nil {
		return "", nil, usagef("--keep %s: it exists", quoteArg(keep))
	}
	return keep, func() error { return os.RemoveAll(keep) }, os.MkdirAll(keep, 0o755)
}

// A demo is one run of the story.
type demo struct {
	ctx     context.Context
	out     io.Writer
	columns int // of the terminal; 0 for no limit
	dir     string
	broken  injection
	pair    *kafkatest.Pair
	asked   []translate.Query // what was translated
	faults  bool
}

func (d *demo) ledgerPath() string   { return filepath.Join(d.dir, "flow.ledger") }
func (d *demo) snapshotPath() string { return filepath.Join(d.dir, "flow.snapshot") }

// run tells the story. Each step prints what it did.
func (d *demo) run() (err error) {
	d.pair, err = kafkatest.StartPair(kafkatest.Options{DataDir: filepath.Join(d.dir, "clusters")})
	if err != nil {
		return err
	}
	defer d.pair.Close()
	for _, step := range []func() error{d.fill, d.commitGroup, d.copy, d.breakIt, d.verify, d.translate} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// stepColumns is how wide the first column of the story is.
const stepColumns = 11

// step tells the next line of the story.
func (d *demo) step(name, format string, args ...any) {
	line := printable(fmt.Sprintf(format, args...))
	fmt.Fprintf(d.out, "%-*s%s", stepColumns, name, wrapText(line, stepColumns, d.columns))
}

// tellKept says what can be done with what --keep has kept. Commands stand on
// one line each, however long, so that they can be copied.
func (d *demo) tellKept() {
	fmt.Fprintf(d.out, "\nkept in %s; try\n", printable(d.dir))
	path := shellWord(d.ledgerPath())
	fmt.Fprintf(d.out, "  apograph ledger check %s\n", path)
	fmt.Fprintf(d.out, "  apograph ledger export --book source %s\n", path)
	for _, q := range d.asked[:min(1, len(d.asked))] {
		fmt.Fprintf(d.out, "  apograph translate --ledger %s %s:%d:%d\n", path, q.Topic, q.Partition, q.Offset)
	}
}

// shellWord returns a path as a shell takes it for one word, and a command not
// for a flag.
func shellWord(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	plain := func(r rune) bool {
		return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+=:,@%", r))
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(printable(path), "'", `'\''`) + "'"
}

// demoTopics are the topics of the source, with what each is about.
func demoTopics() []kafkatest.Load {
	return []kafkatest.Load{
		{Seed: 1, Topics: []string{"orders", "payments"}, Partitions: 3, Records: 6000, MaxValueBytes: 20_000},
		{Seed: 2, Topics: []string{"customers"}, Partitions: 2, Records: 6000, MaxValueBytes: 5_000, Keyed: true,
			Configs: map[string]string{"cleanup.policy": "compact"}},
		{Seed: 3, Topics: []string{"audit"}, Partitions: 1, Records: 2000, MaxValueBytes: 5_000},
	}
}

// fill makes the source's data: two topics as they come, one that the cleaner
// has been through, one whose head is deleted.
func (d *demo) fill() error {
	for _, load := range demoTopics() {
		if err := load.Run(d.ctx, d.pair.Source.Bootstrap); err != nil {
			return fmt.Errorf("fill the source: %w", err)
		}
	}
	for partition := range int32(2) {
		cleaner := kafkatest.Cleaner{Now: time.Now(), DeleteRetention: 24 * time.Hour}
		if err := d.pair.Source.Clean("customers", partition, cleaner); err != nil {
			return fmt.Errorf("compact customers: %w", err)
		}
	}
	if err := d.pair.Source.DeleteRecords("audit", 0, 700); err != nil {
		return fmt.Errorf("delete the head of audit: %w", err)
	}
	d.step("source", "4 topics, 9 partitions: all codecs, committed and aborted transactions,")
	d.step("", "a compacted topic, one whose head has expired")
	return nil
}

const demoGroup = "billing"

// commitGroup has a consumer group stand in the middle of each partition of
// orders.
func (d *demo) commitGroup() error {
	client, err := d.pair.Source.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(d.ctx, "orders")
	if err != nil {
		return err
	}
	offsets := kadm.Offsets{}
	ends.Each(func(o kadm.ListedOffset) { offsets.AddOffset(o.Topic, o.Partition, o.Offset/2, -1) })
	return admin.CommitAllOffsets(d.ctx, demoGroup, offsets)
}

func (d *demo) clusters() (source, target connect.Cluster) {
	return connect.Cluster{Alias: "source", Bootstrap: d.pair.Source.Addresses},
		connect.Cluster{Alias: "target", Bootstrap: d.pair.Target.Addresses}
}

func (d *demo) copy() error {
	source, target := d.clusters()
	summary, err := replicate.Run(d.ctx, replicate.Config{
		Source: source, Target: target, LedgerPath: d.ledgerPath(), Topics: []string{".*"}, Once: true,
	})
	if err != nil {
		return err
	}
	if !summary.Complete {
		return fmt.Errorf("the copy is not complete: %d partitions stopped, %d waiting", len(summary.Stopped), len(summary.Waiting))
	}
	d.step("replicate", "%d records in %.1f s, each once and in order", summary.Tiles[ledger.Copied], summary.Elapsed.Seconds())
	d.step("", "every other offset explained: %d commit and %d abort markers, %d aborted,",
		summary.Tiles[ledger.CommitMarker], summary.Tiles[ledger.AbortMarker], summary.Tiles[ledger.Aborted])
	d.step("", "%d compacted, %d expired before the start", summary.Tiles[ledger.Compacted], summary.Tiles[ledger.BeforeStart])
	return nil
}

// breakIt spoils one record of the target where no client can see it happen.
func (d *demo) breakIt() error {
	if d.broken.told == nil {
		d.step("inject", "nothing is broken")
		return nil
	}
	s := d.broken.sabotage
	s.Topic, s.Partition, s.Offset, s.Seed = "payments", 1, -1, 7
	done, err := d.pair.Target.Sabotage(s)
	if err != nil {
		return fmt.Errorf("break the copy: %w", err)
	}
	d.step("inject", "payments-1 of the target, behind the copier's back: %s", d.broken.told(done))
	return nil
}

func (d *demo) verify() error {
	source, target := d.clusters()
	report, err := verify.Run(d.ctx, verify.Config{LedgerPath: d.ledgerPath(), Source: &source, Target: &target})
	if err != nil {
		return err
	}
	d.faults = report.Verdict == verify.Faults
	s := report.Summary
	d.step("verify", "%s: %d of %d records equal on both sides", report.Verdict, s.Equal, s.Copied)
	for _, f := range report.Findings {
		if f.Fault {
			d.step("", "%s: %s-%d, source offset %v, target offset %v", f.Kind, f.Topic, f.Partition, f.Source, f.Target)
		}
	}
	return nil
}

// translate switches both clusters off and translates the group from a
// snapshot of the ledger.
func (d *demo) translate() error {
	committed, err := d.committed()
	if err != nil {
		return err
	}
	d.pair.Close()
	if _, err := ledger.SnapshotFile(d.ctx, d.ledgerPath(), d.snapshotPath()); err != nil {
		return err
	}
	l, err := ledger.Open(d.snapshotPath(), ledger.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer l.Close()
	answers, err := translate.NewIndex(l).Forward(d.ctx, committed)
	if err != nil {
		return err
	}
	d.asked = committed
	var rows []string
	for i, a := range answers {
		rows = append(rows, fmt.Sprintf("%s-%d %d -> %d (%v)", committed[i].Topic, committed[i].Partition, committed[i].Offset, a.TargetOffset, a.Status))
	}
	d.step("translate", "group %s, both clusters off: %s", demoGroup, strings.Join(rows, ", "))
	return nil
}

// committed returns what the group has committed on the source.
func (d *demo) committed() ([]translate.Query, error) {
	client, err := d.pair.Source.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	offsets, err := kadm.NewClient(client).FetchOffsets(d.ctx, demoGroup)
	if err = errors.Join(err, offsets.Error()); err != nil {
		return nil, err
	}
	var queries []translate.Query
	for _, o := range offsets.Sorted() {
		queries = append(queries, translate.Query{Topic: o.Topic, Partition: o.Partition, Offset: o.At})
	}
	slices.SortFunc(queries, func(a, b translate.Query) int { return int(a.Partition) - int(b.Partition) })
	return queries, nil
}
