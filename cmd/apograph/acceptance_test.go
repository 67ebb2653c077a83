package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"apograph/internal/kafkatest"
)

// TestAcceptance does the main job with the real binary on 200,000 records of
// every kind, and judges its answers by what it prints alone: with readers, a
// digest and a model of translation of the test's own.
func TestAcceptance(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir()})
	topics := []string{"orders", "payments", "customers"}
	for i, topic := range topics {
		load := kafkatest.Load{Seed: uint64(i), Topics: []string{topic}, Partitions: 4, Records: 67_000, MaxValueBytes: 10_000, Keyed: topic == "customers"}
		if topic == "customers" {
			load.Configs = map[string]string{"cleanup.policy": "compact"}
		}
		if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
			t.Fatal(err)
		}
	}
	for partition := range int32(4) {
		if err := pair.Source.Clean("customers", partition, kafkatest.Cleaner{}); err != nil {
			t.Fatal(err)
		}
	}
	a := &acceptance{t: t, ledger: filepath.Join(t.TempDir(), "flow.ledger"), pair: pair}
	a.expect(0, "replicate", "--once", "--topics", ".*")
	a.expect(0, "verify")
	a.expect(0, "ledger", "check")
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same(topics...))
	a.read(topics)
	pair.Close()
	a.ledger = a.snapshot()
	a.exportTiles()
	a.translateEverything()
}

// An acceptance is what the test knows of a copy without asking the product.
type acceptance struct {
	t      *testing.T
	pair   *kafkatest.Pair
	ledger string

	partitions []*knownPartition
}

// A knownPartition is one partition as the oracle reads both sides.
type knownPartition struct {
	topic          string
	number         int32
	end            int64 // of the source
	source, target []kafkatest.Record
}

// expect runs apograph and returns its standard output.
func (a *acceptance) expect(code int, args ...string) []byte {
	a.t.Helper()
	args = append(args, "--ledger", a.ledger)
	if args[0] == "replicate" || args[0] == "verify" {
		args = append(args, "--source-bootstrap-server", a.pair.Source.Server(), "--target-bootstrap-server", a.pair.Target.Server())
	}
	cmd := exec.CommandContext(a.t.Context(), "apograph", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		a.t.Fatalf("apograph %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, out, stderr.String())
	}
	return out
}

func (a *acceptance) read(topics []string) {
	a.t.Helper()
	for _, topic := range topics {
		source, err := a.pair.Source.ReadTopic(a.t.Context(), topic)
		if err != nil {
			a.t.Fatal(err)
		}
		target, err := a.pair.Target.ReadTopic(a.t.Context(), topic)
		if err != nil {
			a.t.Fatal(err)
		}
		for i := range source {
			bounds, err := a.pair.Source.ReadBounds(a.t.Context(), topic, int32(i))
			if err != nil {
				a.t.Fatal(err)
			}
			a.partitions = append(a.partitions, &knownPartition{topic, int32(i), bounds.HighWatermark, source[i], target[i]})
		}
	}
}

func (a *acceptance) snapshot() string {
	path := filepath.Join(a.t.TempDir(), "snapshot")
	a.expect(0, "ledger", "snapshot", "-o", path)
	return path
}

// A exportedTile is one line of an export.
type exportedTile struct {
	Topic       string
	Partition   int32
	Start, End  int64
	Tile        string
	TargetStart *int64 `json:"target_start"`
	SourceStart *int64 `json:"source_start"`
	Entry       *struct {
		Start, End  int64
		TargetStart int64 `json:"target_start"`
		Records     int64
		Bytes       int64
		Digest      string
	}
}

func (a *acceptance) export(book string) map[string][]exportedTile {
	a.t.Helper()
	lines := map[string][]exportedTile{}
	scanner := bufio.NewScanner(bytes.NewReader(a.expect(0, "ledger", "export", "--book", book, "-o", "jsonl")))
	for scanner.Scan() {
		var line exportedTile
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			a.t.Fatalf("export: %q: %v", scanner.Text(), err)
		}
		key := fmt.Sprintf("%s-%d", line.Topic, line.Partition)
		lines[key] = append(lines[key], line)
	}
	return lines
}

// exportTiles holds the exports to tiling both axes, to having each record
// where the oracle sees it, and to digests of what the oracle reads.
func (a *acceptance) exportTiles() {
	source, target := a.export("source"), a.export("target")
	for _, p := range a.partitions {
		name := fmt.Sprintf("%s-%d", p.topic, p.number)
		a.tiles(name+" source", source[name], p.end)
		a.tiles(name+" target", target[name], int64(len(p.target)))
		a.copied(name, source[name], p)
		a.digests(name, source[name], p)
	}
}

func (a *acceptance) tiles(name string, lines []exportedTile, end int64) {
	a.t.Helper()
	position := int64(0)
	for _, line := range lines {
		if line.Start != position || line.End <= line.Start {
			a.t.Fatalf("%s: %s [%d, %d) after %d", name, line.Tile, line.Start, line.End, position)
		}
		position = line.End
	}
	if position != end {
		a.t.Errorf("%s: the book ends at %d, the log at %d", name, position, end)
	}
}

// copied expects the copied lines to pair the i-th record of the source with
// the i-th of the target.
func (a *acceptance) copied(name string, lines []exportedTile, p *knownPartition) {
	a.t.Helper()
	i := 0
	for _, line := range lines {
		if line.Tile != "copied" {
			continue
		}
		for k := range line.End - line.Start {
			if i >= len(p.source) || line.Start+k != p.source[i].Offset || *line.TargetStart+k != p.target[i].Offset {
				a.t.Fatalf("%s: source offset %d is booked at %d; it is record %d", name, line.Start+k, *line.TargetStart+k, i)
			}
			i++
		}
	}
	if i != len(p.source) {
		a.t.Errorf("%s: %d records are booked as copied, the source has %d", name, i, len(p.source))
	}
}

// digests recomputes the digest of every entry from the records themselves.
func (a *acceptance) digests(name string, lines []exportedTile, p *knownPartition) {
	a.t.Helper()
	seen := map[int64]bool{}
	for _, line := range lines {
		e := line.Entry
		if e == nil || e.Records == 0 || seen[e.TargetStart] {
			continue
		}
		seen[e.TargetStart] = true
		digest, size := slowDigest(p.source[e.TargetStart : e.TargetStart+e.Records])
		if digest != e.Digest || size != e.Bytes {
			a.t.Errorf("%s entry [%d, %d): digest %s over %d bytes, want %s over %d", name, e.Start, e.End, e.Digest, e.Bytes, digest, size)
		}
	}
}

// slowDigest is the digest of the design, with numbers of any size.
func slowDigest(records []kafkatest.Record) (digest string, size int64) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 61), big.NewInt(1))
	r, _ := new(big.Int).SetString("8baf25199c6ad16", 16)
	d := new(big.Int)
	for _, record := range records {
		canonical := slowCanonical(record)
		size += int64(len(canonical))
		h := new(big.Int).SetUint64(xxhash.Sum64(canonical))
		d.Mul(d, r).Add(d, h.Mod(h, p)).Add(d, big.NewInt(1)).Mod(d, p)
	}
	return fmt.Sprintf("%016x", d), size
}

func slowCanonical(r kafkatest.Record) []byte {
	var b bytes.Buffer
	number := func(n int64, bytes int) {
		for i := bytes - 1; i >= 0; i-- {
			b.WriteByte(byte(n >> (8 * i)))
		}
	}
	field := func(v []byte) {
		if v == nil {
			number(-1, 4)
			return
		}
		number(int64(len(v)), 4)
		b.Write(v)
	}
	number(r.Timestamp, 8)
	field(r.Key)
	field(r.Value)
	number(int64(len(r.Headers)), 4)
	for _, h := range r.Headers {
		field([]byte(h.Key))
		field(h.Value)
	}
	return b.Bytes()
}

// translateEverything translates every offset from 0 to beyond the end, both
// ways, as a plan in Kafka's own form, and compares with counting.
func (a *acceptance) translateEverything() {
	const beyond = 3
	var forward, backward strings.Builder
	var wantTarget, wantSource []int64
	for _, p := range a.partitions {
		next := 0
		for offset := range p.end + 1 + beyond {
			for next < len(p.source) && p.source[next].Offset < offset {
				next++
			}
			// A plan has one offset for a group and partition: each is a group here.
			fmt.Fprintf(&forward, "g%d,%s,%d,%d\n", offset, p.topic, p.number, offset)
			wantTarget = append(wantTarget, int64(next))
		}
		for offset := range int64(len(p.target)) + 1 + beyond {
			want := p.end
			if offset < int64(len(p.target)) {
				want = p.source[offset].Offset
			}
			fmt.Fprintf(&backward, "g%d,%s,%d,%d\n", offset, p.topic, p.number, offset)
			wantSource = append(wantSource, want)
		}
	}
	a.translateFile(forward.String(), wantTarget)
	a.translateFile(backward.String(), wantSource, "--reverse")
}

func (a *acceptance) translateFile(plan string, want []int64, flags ...string) {
	a.t.Helper()
	path := filepath.Join(a.t.TempDir(), "plan.csv")
	if err := os.WriteFile(path, []byte(plan), 0o600); err != nil {
		a.t.Fatal(err)
	}
	// 4: some offsets lie beyond what is copied.
	out := a.expect(4, append([]string{"translate", "--from-file", path, "-o", "csv"}, flags...)...)
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil {
		a.t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	asked, answer := column["source_offset"], column["target_offset"]
	if len(flags) > 0 {
		asked, answer = answer, asked
	}
	if rows = rows[1:]; len(rows) != len(want) {
		a.t.Fatalf("%d answers to %d questions", len(rows), len(want))
	}
	for i, row := range rows {
		if got, err := strconv.ParseInt(row[answer], 10, 64); err != nil || got != want[i] {
			a.t.Fatalf("%v: offset %s translates to %s, want %d", flags, row[asked], row[answer], want[i])
		}
	}
}
