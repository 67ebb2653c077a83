//go:build kafka

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
)

// TestKafkaForeignWriters: somebody else writes to the target topic. What they
// wrote is named, offset by offset, and the partition stops until a person says
// to go on.
func TestKafkaForeignWriters(t *testing.T) {
	clusters := kafkatest.StartKafkas(t,
		kafkatest.KafkaOptions{Name: "source", HeapMB: 256}, kafkatest.KafkaOptions{Name: "target", HeapMB: 256})
	for name, test := range map[string]func(*lossFlow){
		"console":     consoleProducer,
		"interleaved": interleavedWriter,
		"two-copiers": twoCopiers,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLossFlow(t, name, clusters[0], clusters[1])
			l.create(1)
			test(l)
		})
	}
}

// types writes lines with Kafka's console producer.
func (l *lossFlow) types(lines int) {
	l.t.Helper()
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "typed by hand %d\n", i)
	}
	_, err := l.target.Tool(l.t.Context(), kafkatest.ConsoleProducer,
		[]string{"--bootstrap-server", l.target.Server(), "--topic", l.topic}, strings.NewReader(b.String()))
	l.do(err)
}

func consoleProducer(l *lossFlow) {
	l.appendBatches(0, "first", 3)
	l.keep(0)
	stop := l.living()
	l.reaches(0, 30)
	l.types(5)
	l.appendBatches(0, "later", 1)
	l.keep(0)
	l.stops(0, "foreign_writer")
	eventually(l.t, "the commit after the stop", func() bool { return len(l.export(l.t, "target")) > 1 })
	l.notes(0, "1:foreign[30,35)")
	l.order("resume", l.topic) // once: those who wrote were asked to stop
	l.reaches(0, 40)
	l.types(3)
	l.appendBatches(0, "last", 1)
	l.keep(0)
	l.stops(0, "foreign_writer")
	if code, answer := stop(); code != 143 || answer["complete"] != false {
		l.t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	code, answer := l.run(l.t, "replicate", "--once", "--topics", l.topic) // it stays stopped
	if code != 1 || !strings.Contains(fmt.Sprint(answer["stopped"]), "foreign_writer") {
		l.t.Errorf("exit code %d, stopped %v", code, answer["stopped"])
	}
	l.stays(0, 1, "foreign_writer")
	l.order("resume", l.topic, "--tolerate-foreign")
	l.once(0)
	l.notes(0, "1:foreign[30,35)", "1:foreign[45,48)")
	l.types(2)
	l.appendBatches(0, "at last", 1)
	l.keep(0)
	l.once(0) // the word holds
	l.notes(0, "1:foreign[30,35)", "1:foreign[45,48)", "1:foreign[58,60)")
	l.books(0, "1:copied[0,60)")
	for offset, target := range map[string]int64{"29": 29, "30": 35, "39": 44, "40": 48, "50": 60, "60": 70} {
		l.translates(offset, target, map[bool]string{true: "end", false: "exact"}[offset == "60"])
	}
	code, report := l.run(l.t, "verify")
	if summary := report["summary"].(map[string]any); code != 0 || summary["foreign"] != 10.0 || summary["equal"] != 60.0 {
		l.t.Errorf("verify: exit code %d, %v", code, summary)
	}
}

// interleavedWriter writes beside a busy copier that a person told not to mind.
func interleavedWriter(l *lossFlow) {
	l.appendBatches(0, "first", 3)
	l.once(0)
	l.order("resume", l.topic, "--tolerate-foreign")
	stop := l.living()
	done := make(chan struct{})
	go func() { defer close(done); l.foreign(150) }()
	for i := range 30 {
		l.appendBatches(0, fmt.Sprint("later ", i), 1)
	}
	<-done
	l.reaches(0, 330)
	if code, answer := stop(); code != 143 || answer["complete"] != true {
		l.t.Errorf("the copier: exit code %d, %v", code, answer)
	}
	l.once(0)
	source, err := l.source.JavaRead(l.t.Context(), l.topic, 0)
	l.do(err)
	target, err := l.target.JavaRead(l.t.Context(), l.topic, 0)
	l.do(err)
	found := compareRecords(source, target)
	if len(found.lost) > 0 || len(found.doubled) > 0 || len(found.strange) != 150 {
		l.t.Errorf("lost %v, doubled %v, %d of somebody else's 150 records", found.lost, found.doubled, len(found.strange))
	}
	var named []int64
	for _, line := range l.export(l.t, "target") {
		for offset := line.Start; offset < line.End && line.Tile == "foreign"; offset++ {
			named = append(named, offset)
		}
	}
	if !slices.Equal(named, found.strange) {
		l.t.Errorf("the books call %v foreign, an outside reader %v", named, found.strange)
	}
	l.translatesAll(source, target)
}

// translatesAll asks for the place of every record, and looks there.
func (l *lossFlow) translatesAll(source, target []kafkatest.Record) {
	l.t.Helper()
	args := []string{"translate", "-o", "jsonl"}
	for _, r := range source {
		args = append(args, fmt.Sprintf("%s:0:%d", l.topic, r.Offset))
	}
	code, out, errs := l.ask(args...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != len(source) {
		l.t.Fatalf("translate: exit code %d, %d lines of %d\n%s", code, len(lines), len(source), errs)
	}
	for i, line := range lines {
		var row struct {
			At int64 `json:"target_offset"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.At >= int64(len(target)) || contentOf(&target[row.At]) != contentOf(&source[i]) {
			l.t.Fatalf("source offset %d is translated to %q (%v), where another record stands", source[i].Offset, line, err)
		}
	}
}

// twoCopiers have a ledger each, begin both when the target topic is empty, and
// write it at once: both stop, and each one's books say of every target offset
// what it is. A third one cannot even begin.
//
// Neither looks at the target's end unasked, since one that found the other's
// records there first would stop without having written any of its own.
func twoCopiers(l *lossFlow) {
	other, third := newLossFlow(l.t, l.topic, l.source, l.target), &lossFlow{
		realFlow: &realFlow{source: l.source, target: l.target, ledger: filepath.Join(l.t.TempDir(), "flow.ledger")}, t: l.t, topic: l.topic,
	}
	l.once(0)
	other.once(0)
	l.refresh, other.refresh = "1h", "1h"
	end, endOther := l.living(), other.living()
	both := []*lossFlow{l, other}
	for _, f := range both {
		f.begins()
	}
	for i := range 10 {
		l.appendBatches(0, fmt.Sprint("both ", i), 1)
	}
	for _, f := range both {
		f.shows("has written", 0, func(seen statusAnswerRow) bool {
			return seen.Reason == "foreign_writer" || seen.Position != nil && *seen.Position == 100
		})
	}
	l.appendBatches(0, "for who was ahead all the time", 1)
	for _, f := range both {
		f.stops(0, "foreign_writer")
	}
	end()
	endOther()
	for _, f := range both {
		f.stays(0, 1, "foreign_writer")
		f.order("resume", f.topic, "--tolerate-foreign")
		f.once(0)
		target, err := f.target.JavaRead(f.t.Context(), f.topic, 0)
		f.do(err)
		f.namesAll(target)
	}
	late := third.command(l.t.Context(), "replicate", "--once", "--topics", l.topic)
	if out, _ := late.CombinedOutput(); late.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "holds records that this ledger does not know") {
		l.t.Errorf("a third ledger for the topic: exit code %d, %s", late.ProcessState.ExitCode(), out)
	}
}

// begins waits until a copier answers for itself: it knows where the target ends.
func (l *lossFlow) begins() {
	l.t.Helper()
	eventually(l.t, "the copier begins", func() bool {
		_, out, _ := l.ask("status", "-o", "json")
		var answer statusAnswer
		return json.Unmarshal([]byte(out), &answer) == nil && answer.State == "running"
	})
}

// namesAll expects the target's book to begin where the flow did, to leave no
// offset out, and to call copied what, in order, the source holds.
func (l *lossFlow) namesAll(target []kafkatest.Record) {
	l.t.Helper()
	lines := l.export(l.t, "target")
	at := lines[0].Start
	var copied []kafkatest.Record
	for _, line := range lines {
		if line.Start != at {
			l.t.Errorf("the books leave out [%d, %d)", at, line.Start)
		}
		if at = line.End; line.Tile == "copied" {
			copied = append(copied, target[line.Start:line.End]...)
		}
	}
	if at != int64(len(target)) {
		l.t.Errorf("the books end at %d of %d", at, len(target))
	}
	source, err := l.source.JavaRead(l.t.Context(), l.topic, 0)
	l.do(err)
	if d := differenceOfContent(source, copied); d != "" {
		l.t.Errorf("what the books call copied: %s", d)
	}
}
