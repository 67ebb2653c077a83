package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A translationRow is a row of the JSON form as the contract has it.
type translationRow struct {
	Group           *string `json:"group"`
	Topic           *string `json:"topic"`
	TopicID         *string `json:"topic_id"`
	Partition       int32   `json:"partition"`
	SourceOffset    *int64  `json:"source_offset"`
	TargetTopic     *string `json:"target_topic"`
	TargetOffset    *int64  `json:"target_offset"`
	Status          string  `json:"status"`
	Distance        int64   `json:"distance"`
	CopiedTo        *int64  `json:"copied_to"`
	TargetCommitted *int64  `json:"target_committed"`
	Action          string  `json:"action"`
	Detail          string  `json:"detail"`
}

// mustTranslate translates the offsets of a file and returns the rows.
func mustTranslate(t *testing.T, path, offsets string, flags ...string) []translationRow {
	t.Helper()
	var out, errs bytes.Buffer
	argv := append([]string{"apograph", "translate", "--ledger", path, "--from-file", "-", "-o", "jsonl"}, flags...)
	code := run(t.Context(), argv, strings.NewReader(offsets), &out, &errs)
	if code != 0 && code != 4 || errs.Len() > 0 {
		t.Fatalf("exit %d, stderr %q", code, errs.String())
	}
	var rows []translationRow
	decoder := json.NewDecoder(&out)
	decoder.DisallowUnknownFields()
	for decoder.More() {
		var row translationRow
		if err := decoder.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestTranslateAgreesWithExport translates every offset of random ledgers, and
// looks the answers up in what `ledger export` says.
func TestTranslateAgreesWithExport(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	path := filepath.Join(t.TempDir(), "f.ledger")
	models := mustMakeModel(t, path, rand.New(rand.NewPCG(seed, 0)))
	source, target := mustExport(t, path, bookSource), mustExport(t, path, bookTarget)
	asked := 0
	for topic := range models {
		copied := "copy-of-" + topic
		sourceEnd, targetEnd := bookEnd(source, topic), bookEnd(target, copied)
		for offset, row := range mustTranslate(t, path, allOffsets(topic, sourceEnd)) {
			want := firstCopied(source, topic, int64(offset), targetEnd)
			if row.TargetOffset == nil || *row.TargetOffset != want || row.CopiedTo == nil || *row.CopiedTo != sourceEnd {
				t.Errorf("%s: offset %d: %+v, want %d", topic, offset, row, want)
			}
			asked++
		}
		for offset, row := range mustTranslate(t, path, allOffsets(copied, targetEnd), "--reverse") {
			want := firstCopied(target, copied, int64(offset), sourceEnd)
			if row.SourceOffset == nil || *row.SourceOffset != want {
				t.Errorf("%s: offset %d: %+v, want %d", copied, offset, row, want)
			}
			asked++
		}
	}
	if asked < 1000 {
		t.Errorf("the model holds %d offsets only", asked)
	}
}

// allOffsets returns the lines that ask for every offset of a topic up to and
// with end, each for a group of its own.
func allOffsets(topic string, end int64) string {
	var lines strings.Builder
	for offset := range end + 1 {
		fmt.Fprintf(&lines, "group-%d,%s,0,%d\n", offset, topic, offset)
	}
	return lines.String()
}

// bookEnd returns where the lines of a topic end.
func bookEnd(lines []tileLine, topic string) (end int64) {
	for _, line := range lines {
		if line.Topic == topic {
			end = line.End
		}
	}
	return end
}

// firstCopied returns the offset on the other side of the first copied record
// at or after offset, or otherwise.
func firstCopied(lines []tileLine, topic string, offset, otherwise int64) int64 {
	for _, line := range lines {
		if line.Topic != topic || line.Tile != "copied" || line.End <= offset {
			continue
		}
		place := line.SourceStart
		if line.Book == bookSource {
			place = line.TargetStart
		}
		return *place + max(offset-line.Start, 0)
	}
	return otherwise
}

// TestTranslateKeepsTheOrder asks for many offsets at once, in no order.
func TestTranslateKeepsTheOrder(t *testing.T) {
	const seed, rows = 3, 30_000
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	var asked strings.Builder
	offsets := make([]int64, rows)
	for i := range offsets {
		offsets[i] = random.Int64N(40)
		fmt.Fprintf(&asked, "group-%d,orders,0,%d\n", i, offsets[i])
	}
	want := map[int64]int64{}
	for offset := range int64(40) {
		want[offset] = *mustTranslate(t, path, fmt.Sprintf("orders,0,%d\n", offset))[0].TargetOffset
	}
	answer := mustTranslate(t, path, asked.String())
	if len(answer) != rows {
		t.Fatalf("%d rows, want %d", len(answer), rows)
	}
	for i, row := range answer {
		if *row.Group != fmt.Sprintf("group-%d", i) || *row.SourceOffset != offsets[i] || *row.TargetOffset != want[offsets[i]] {
			t.Fatalf("row %d: %+v, want offset %d -> %d", i, row, offsets[i], want[offsets[i]])
		}
	}
}

// TestTranslateHeldLedger: a ledger that another process writes is exit code 11
// with the id of that process.
func TestTranslateHeldLedger(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	holder := mustStart(t, "apograph-holds", path)
	holder.mustSay(t, "held")
	code, stdout, stderr := mustRun(t, "translate", "--ledger", path, "orders:0:5")
	if want := fmt.Sprintf("in use by process %d\n", holder.cmd.Process.Pid); code != 11 || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, stdout %q, stderr %q, want 11 and %q", code, stdout, stderr, want)
	}
}

// TestTranslateDamagedBook: damage that opening a ledger does not meet is exit
// code 12, without a part of an answer.
func TestTranslateDamagedBook(t *testing.T) {
	path := mustMakeLong(t, filepath.Join(t.TempDir(), "f.ledger"))
	content := mustRead(t, path)
	for _, at := range mustFindAll(t, content, "needle", 0) {
		content[at] ^= 1
	}
	mustWrite(t, path, content)
	code, stdout, stderr := mustRun(t, "translate", "--ledger", path, "t:0:399", "t:0:3")
	if code != 12 || stdout != "" || !strings.Contains(stderr, path+" is damaged: pages ") {
		t.Errorf("exit %d, stdout %q, stderr %q, want 12 and the bucket pages", code, stdout, stderr)
	}
}

func TestTranslateInterrupted(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&signalError{syscall.SIGINT})
	var out, errs bytes.Buffer
	code := run(ctx, []string{"apograph", "translate", "--ledger", path, "orders:0:5"}, strings.NewReader(""), &out, &errs)
	if code != 130 || out.Len() > 0 {
		t.Errorf("exit %d, stdout %q, stderr %q, want 130 and nothing", code, out.String(), errs.String())
	}
}

// TestTranslateLeavesTheLedgerAlone compares the file before and after.
func TestTranslateLeavesTheLedgerAlone(t *testing.T) {
	mustHaveNoTemporaries(t)
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	before := mustRead(t, path)
	if code, _, stderr := mustRun(t, "translate", "--ledger", path, "orders:0:10"); code != 0 {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	if !bytes.Equal(mustRead(t, path), before) {
		t.Error("the ledger has changed")
	}
}

// TestTranslateUnprintableGroup: the name of a group cannot control a terminal.
// A file for Kafka's tool holds it as it is, so that it is no answer for one.
func TestTranslateUnprintableGroup(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	const offsets = "\x1b[31mred,orders,0,10\nblue,orders,0,3\n"
	for _, output := range []string{"table", "wide", "json", "jsonl", "csv"} {
		var out, errs bytes.Buffer
		argv := []string{"apograph", "translate", "--ledger", path, "--from-file", "-", "-o", output}
		run(t.Context(), argv, strings.NewReader(offsets), &out, &errs)
		if strings.ContainsRune(out.String()+errs.String(), '\x1b') || !strings.Contains(out.String(), "[31mred") {
			t.Errorf("%s: %q, %q", output, out.String(), errs.String())
		}
	}
	for _, terminal := range []bool{false, true} {
		var out, errs bytes.Buffer
		f := newFrame(commands(), strings.NewReader(offsets), &out, &errs)
		f.stdout.terminal = terminal
		code := f.run(t.Context(), []string{"apograph", "translate", "--ledger", path, "--from-file", "-", "--format", "kafka-csv"})
		want, wantCode := "\"\x1b[31mred\",b.orders,0,5\n", exitUnproven
		if terminal {
			want, wantCode = "", exitError
		}
		if code != wantCode || out.String() != want || strings.ContainsRune(errs.String(), '\x1b') {
			t.Errorf("terminal %t: exit %d, %q, %q, want %d and %q", terminal, code, out.String(), errs.String(), wantCode, want)
		}
	}
}

// TestTranslateUnreadableFile: a file that is there and cannot be read is a
// failure, not wrong use.
func TestTranslateUnreadableFile(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	directory := t.TempDir()
	code, stdout, stderr := mustRun(t, "translate", "--ledger", path, "--from-file", directory)
	if code != 1 || stdout != "" || !strings.Contains(stderr, directory) {
		t.Errorf("exit %d, stdout %q, stderr %q, want 1 and the name", code, stdout, stderr)
	}
}
