package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// soon is how long a command may take to say that a ledger is no good.
const soon = 10 * time.Second

// A faultCase is a flow that has copied something, whose ledger is spoiled again
// and again.
type faultCase struct {
	*copyCase
	good []byte           // the ledger as it was
	ends map[string]int64 // of the target's logs
}

// newFaultCase copies enough topics for a ledger of several levels of pages.
func newFaultCase(t *testing.T) *faultCase {
	t.Helper()
	mustHaveNoTemporaries(t)
	c := &faultCase{copyCase: newCopyCase(t)}
	if err := c.pair.Source.CreateTopic(t.Context(), "wide", 150, nil); err != nil {
		t.Fatal(err)
	}
	for round := range 3 { // until commits are folded into pages
		var records []*kgo.Record
		for i := range int64(400) {
			records = append(records, &kgo.Record{Topic: "wide", Partition: int32(i % 150), Value: fmt.Appendf(nil, "%d", round), Timestamp: time.UnixMilli(i)})
		}
		if err := c.pair.Source.Append(t.Context(), kafkatest.None, records...); err != nil {
			t.Fatal(err)
		}
		c.summary(0)
	}
	c.good, c.ends = mustRead(t, c.ledger), c.targetEnds()
	c.append(c.pair.Source, "orders", 5, 5) // there is something to do
	return c
}

func (c *faultCase) targetEnds() map[string]int64 {
	c.t.Helper()
	client, err := c.pair.Target.Client()
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	listed, err := kadm.NewClient(client).ListEndOffsets(c.t.Context())
	if err = errors.Join(err, listed.Error()); err != nil {
		c.t.Fatal(err)
	}
	ends := map[string]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[fmt.Sprintf("%s:%d", o.Topic, o.Partition)] = o.Offset })
	return ends
}

// An opener is a command that opens a ledger.
type opener struct {
	name string
	args []string
	// reads says what the command reads of the pages of the books: the heads of
	// what is kept in memory if it is false.
	reads bool
	// answers is that standard output says what is wrong with the file.
	answers bool
	// writes is that the command needs to write the ledger.
	writes bool
	// sizes is that the command says how large the ledger is.
	sizes bool
}

// openers returns each command that opens a ledger, in each of its forms. What
// they write goes to a directory.
func (c *faultCase) openers(directory string) []opener {
	source := []string{"--source-bootstrap-server", c.pair.Source.Server()}
	target := []string{"--target-bootstrap-server", c.pair.Target.Server()}
	both := slices.Concat(source, target)
	with := func(words []string, more ...string) []string { return slices.Concat(words, more) }
	return []opener{
		{name: "replicate", args: with(both, "replicate", "--topics", ".*"), writes: true},
		{name: "replicate --once", args: with(both, "replicate", "--topics", ".*", "--once"), writes: true},
		{name: "replicate --dry-run", args: with(both, "replicate", "--topics", ".*", "--dry-run")},
		{name: "verify", args: with(both, "verify"), reads: true},
		{name: "verify --resume", args: with(both, "verify", "--resume"), reads: true},
		{name: "verify --mode target", args: with(target, "verify"), reads: true},
		{name: "verify --mode books", args: []string{"verify", "--mode", "books"}, reads: true},
		{name: "translate", args: []string{"translate", "orders:0:1"}},
		{name: "translate --reverse", args: []string{"translate", "orders:0:1", "--reverse"}},
		{name: "translate --group", args: with(both, "translate", "--group", "g"), sizes: true},
		{name: "translate --execute", args: with(both, "translate", "--group", "g", "--execute"), sizes: true},
		{name: "status", args: []string{"status"}, sizes: true},
		{name: "status --watch", args: []string{"status", "--watch"}, sizes: true},
		{name: "ledger inspect", args: []string{"ledger", "inspect"}, sizes: true},
		{name: "ledger check", args: []string{"ledger", "check", "-o", "json"}, reads: true, answers: true},
		{name: "ledger export source", args: []string{"ledger", "export", "--book", "source"}, reads: true},
		{name: "ledger export target", args: []string{"ledger", "export", "--book", "target"}, reads: true},
		{name: "ledger snapshot", args: []string{"ledger", "snapshot", "-o", filepath.Join(directory, "snapshot")}, reads: true},
		{name: "ledger snapshot -", args: []string{"ledger", "snapshot", "-o", "-"}, reads: true},
		{name: "ledger migrate", args: []string{"ledger", "migrate", "-o", filepath.Join(directory, "migrated")}, reads: true},
		{name: "ledger accept", args: []string{"ledger", "accept", "orders:0:1-2", "--reason", "r"}, writes: true},
		{name: "pause", args: []string{"pause", "orders"}, writes: true},
		{name: "resume", args: []string{"resume", "orders:0"}, writes: true},
	}
}

// A told is what a command said.
type told struct {
	code           exitCode
	stdout, stderr string
	took           time.Duration
}

// ask runs a command on a ledger, behind a change of its process.
func (c *faultCase) ask(o opener, path string, change func(*exec.Cmd)) told {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), 3*soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, "apograph", append(slices.Clone(o.args), "--ledger", path)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if change != nil {
		change(cmd)
	}
	started := time.Now()
	if err := cmd.Run(); cmd.ProcessState == nil {
		c.t.Fatalf("%q did not start: %v", cmd.Args, err)
	}
	return told{exitCode(cmd.ProcessState.ExitCode()), out.String(), errs.String(), time.Since(started)}
}

// fault returns what is wrong with what a command said about a ledger at a path;
// it should have named the path and these words.
func (got told) fault(o opener, want exitCode, words ...string) string {
	trace := func(text string) bool { return strings.Contains(text, "goroutine ") || strings.Contains(text, "panic") }
	switch {
	case got.code != want:
		return fmt.Sprintf("exit code %d, want %d", got.code, want)
	case got.took > soon:
		return fmt.Sprintf("took %v", got.took)
	case trace(got.stderr) || trace(got.stdout):
		return "a stack trace"
	case got.stdout != "" && !o.answers:
		return "standard output is not empty"
	case o.answers && want == exitDamaged && !strings.Contains(got.stdout, `"verdict":"damaged"`):
		return "the answer does not say that the ledger is damaged"
	}
	for _, word := range words {
		if !strings.Contains(got.stderr, word) {
			return fmt.Sprintf("standard error lacks %q", word)
		}
	}
	return ""
}

// TestSpoiledLedgers: whatever has become of the file, each command that opens it
// says so within 10 s, names the file and the law, leaves it as it is, and writes
// nothing to the target.
func TestSpoiledLedgers(t *testing.T) {
	c := newFaultCase(t)
	directory := t.TempDir()
	path := filepath.Join(directory, "f.ledger")
	for _, d := range damages(t, c.good) {
		for _, o := range c.openers(t.TempDir()) {
			mustWrite(t, path, d.file)
			if !d.seenBy(o) {
				continue
			}
			got := c.ask(o, path, nil)
			if fault := got.fault(o, exitDamaged, path, "law "); fault != "" {
				t.Errorf("%s, %s: %s\n%s%s", d.name, o.name, fault, got.stdout, got.stderr)
			}
			if !bytes.Equal(mustRead(t, path), d.file) {
				t.Fatalf("%s, %s: the file was changed", d.name, o.name)
			}
			os.Remove(path + ".verify")
			if files, err := os.ReadDir(directory); err != nil || len(files) != 1 {
				t.Fatalf("%s, %s: the directory holds %v (%v), want the ledger alone", d.name, o.name, files, err)
			}
		}
		if ends := c.targetEnds(); !maps.Equal(ends, c.ends) {
			t.Fatalf("%s: the target's logs end at %v, want %v", d.name, ends, c.ends)
		}
	}
}

// A damage is a ledger that is none any more.
type damage struct {
	name string
	file []byte
}

// seenBy reports whether a command reads what is damaged. Those that only read
// need neither what is in the list of free pages nor, as a rule, the index by
// target offset, but for those that say how large the ledger is, which need the
// list's length; those that write look at how all pages hang together first.
func (d *damage) seenBy(o opener) bool {
	inIndex, inList := strings.HasSuffix(d.name, " of targets"), strings.HasSuffix(d.name, "freelist")
	switch {
	case strings.HasPrefix(d.name, "longer"): // key, by which only bbolt goes
		return o.writes || o.name == "ledger check"
	case !inIndex && !inList, o.name == "ledger check", o.name == "ledger migrate":
		return true
	case inList && o.sizes && strings.HasPrefix(d.name, "flipped head"):
		return true
	default:
		return o.writes && (inList || strings.HasPrefix(d.name, "flipped head"))
	}
}

// damages returns a good ledger spoiled in every way that disks, people and
// other programs have.
func damages(t *testing.T, good []byte) []damage {
	t.Helper()
	const page = 4096
	pages := pagesOf(t, good)
	end := int(pages["end"][0]) * page
	var all []damage
	add := func(name string, file []byte) { all = append(all, damage{name, file}) }
	changed := func(change func(b []byte)) []byte {
		b := slices.Clone(good)
		change(b)
		return b
	}
	flip := func(name string, at int) { add(name, changed(func(b []byte) { b[at] ^= 0x10 })) }

	add("zero length", nil)
	add("one byte", good[:1])
	add("another file", []byte("TOPIC  PARTITION\norders 0\n"))
	add("zeros", make([]byte, len(good)))
	for _, at := range []int{100, page, page + 100, 2 * page, end / 2, end - page, end - 1} {
		add(fmt.Sprintf("cut at byte %d of %d", at, end), good[:at])
	}
	for i := range 2 {
		flip(fmt.Sprintf("flipped in meta %d", i), i*page+16+20)
		add(fmt.Sprintf("torn meta %d", i), changed(func(b []byte) { clear(b[i*page+48 : (i+1)*page]) }))
	}
	add("flipped in both metas", changed(func(b []byte) { b[16+40] ^= 1; b[page+16+40] ^= 1 }))
	for _, kind := range slices.Sorted(maps.Keys(pages)) {
		if kind == "end" {
			continue
		}
		at := int(pages[kind][0]) * page
		flip("flipped head of "+kind, at+8)
		if kind == "freelist" {
			flip("flipped entry of "+kind, at+16)
			continue
		}
		flip("flipped first element of "+kind, at+16+8)
		used := usedOf(good[at:])
		if kind == "branch of pairs" || kind == "branch of state" { // whose keys have four bytes
			flip("longer first key of "+kind, at+16+4)
			flip("longer second key of "+kind, at+16+16+4)
		}
		if strings.HasPrefix(kind, "leaf") {
			flip("flipped last value of "+kind, at+used-1)
		}
		add("torn "+kind, changed(func(b []byte) { clear(b[at+used/2 : at+used]) }))
	}
	return all
}

// usedOf returns how much of a leaf or branch page is in use.
func usedOf(b []byte) (used int) {
	for i := range int(binary.NativeEndian.Uint16(b[10:])) {
		e := 16 + 16*i
		number := func(at int) int { return int(binary.NativeEndian.Uint32(b[e+at:])) }
		if binary.NativeEndian.Uint16(b[8:]) == isBranch {
			used = max(used, e+number(0)+number(4))
		} else {
			used = max(used, e+number(4)+number(8)+number(12))
		}
	}
	return used
}

// Types of pages in a bbolt file.
const (
	isBranch = 1
	isLeaf   = 2
)

// pagesOf returns the pages of a bbolt file (its format is in internal/common of
// bbolt: Page, Meta, InBucket) by what they are for: "branch of pairs", "leaf of
// pairs", "freelist"; "end" has the number of pages.
func pagesOf(t *testing.T, b []byte) map[string][]uint64 {
	t.Helper()
	const page = 4096
	u16, u32, u64 := binary.NativeEndian.Uint16, binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	meta := b[16:]
	if other := b[page+16:]; u64(other[48:]) > u64(meta[48:]) {
		meta = other
	}
	pages := map[string][]uint64{"freelist": {u64(meta[32:])}, "end": {u64(meta[40:])}}
	var walk func(id uint64, bucket string)
	walk = func(id uint64, bucket string) {
		p := b[id*page:]
		for i := range int(u16(p[10:])) {
			e := p[16+16*i:]
			switch u16(p[8:]) {
			case isBranch:
				walk(u64(e[8:]), bucket)
			case isLeaf:
				if key := e[u32(e[4:]):]; u32(e) == 1 {
					if root := u64(key[u32(e[8:]):]); root != 0 {
						walk(root, string(key[:u32(e[8:])]))
					}
				}
			}
		}
		kind := map[uint16]string{isBranch: "branch of ", isLeaf: "leaf of "}[u16(p[8:])]
		pages[kind+bucket] = append(pages[kind+bucket], id)
	}
	walk(u64(meta[16:]), "buckets")
	for _, kind := range []string{"branch of pairs", "leaf of pages", "leaf of targets", "leaf of journal"} {
		if len(pages[kind]) == 0 {
			t.Fatalf("no %s in %v", kind, pages)
		}
	}
	return pages
}
