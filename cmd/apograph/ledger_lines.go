package main

import (
	"encoding/csv"
	"strconv"

	"apograph/ledger"
)

// A tileLine is one line of `apograph ledger export`. A copied one has the
// place on the other side and its entry; other tiles have a cause and a reason,
// where the books know them.
type tileLine struct {
	Book        string     `json:"book"`
	Topic       string     `json:"topic"`    // of the book's own side, as are the next five
	TopicID     *string    `json:"topic_id"` // nil if not known
	Partition   int32      `json:"partition"`
	Generation  int32      `json:"generation"`
	Start       int64      `json:"start"`
	End         int64      `json:"end"`
	Tile        string     `json:"tile"`
	TargetTopic string     `json:"target_topic,omitempty"` // in the source's book
	TargetStart *int64     `json:"target_start,omitempty"`
	SourceTopic string     `json:"source_topic,omitempty"` // in the target's book
	SourceStart *int64     `json:"source_start,omitempty"`
	Entry       *entryLine `json:"entry,omitempty"`
	LeaderEpoch int32      `json:"leader_epoch"` // of the source; -1 if not known
	Time        instant    `json:"time"`         // of the commit
	Cause       string     `json:"cause,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	LastKnown   instant    `json:"last_known,omitzero"` // when lost records were last known to exist
}

// An entryLine is the entry of copied records that a line belongs to.
type entryLine struct {
	Start              int64  `json:"start"` // on the source
	End                int64  `json:"end"`
	TargetStart        int64  `json:"target_start"`
	Records            int64  `json:"records"`
	Bytes              int64  `json:"bytes"` // canonical
	Digest             string `json:"digest"`
	TimestampsReplaced bool   `json:"timestamps_replaced,omitempty"` // the digest counts times as 0
}

func entryLineOf(e *ledger.Entry) *entryLine {
	return &entryLine{
		Start:              e.Source.Start,
		End:                e.Source.End,
		TargetStart:        e.Target.Start,
		Records:            e.Records(),
		Bytes:              e.Bytes,
		Digest:             e.Digest.String(),
		TimestampsReplaced: e.TimestampsReplaced,
	}
}

// setSource makes line one of the source's book.
func (line *tileLine) setSource(pair *ledger.Pair, run ledger.Run) {
	line.Topic, line.TopicID = pair.SourceTopic, topicIDOf(pair.SourceTopicID)
	line.Start, line.End = run.Source.Start, run.Source.End
	if run.Tile == ledger.Copied {
		line.TargetTopic, line.TargetStart = pair.TargetTopic, &run.Target.Start
	}
}

// setTarget makes line one of the target's book. Where a record came from is
// known for a copy, first or second; of an orphan only the topic is known.
func (line *tileLine) setTarget(pair *ledger.Pair, entry *ledger.Entry, run ledger.Run) {
	line.Topic, line.TopicID = pair.TargetTopic, topicIDOf(pair.TargetTopicID)
	line.Start, line.End = run.Target.Start, run.Target.End
	switch run.Tile {
	case ledger.Copied:
		line.SourceTopic, line.SourceStart = pair.SourceTopic, &run.Source.Start
	case ledger.Duplicate:
		line.SourceTopic, line.SourceStart = pair.SourceTopic, &entry.Origin.Start
	case ledger.Orphan:
		line.SourceTopic = pair.SourceTopic
	}
}

// A tileWriter writes lines in one of the two formats.
type tileWriter struct {
	out  *output
	csv  *csv.Writer // nil for JSON lines
	book string
}

func newTileWriter(inv *invocation, book string) tileWriter {
	w := tileWriter{out: inv.stdout, book: book}
	if inv.format == formatCSV {
		w.csv = csv.NewWriter(inv.stdout)
	}
	return w
}

// begin writes what comes before the lines: in CSV the names of the columns.
func (w tileWriter) begin() error {
	if w.csv == nil {
		return nil
	}
	other := "target"
	if w.book == bookTarget {
		other = "source"
	}
	return w.csv.Write([]string{
		"book", "topic", "topic_id", "partition", "generation", "start", "end", "tile",
		other + "_topic", other + "_start",
		"entry_start", "entry_end", "entry_target_start", "entry_records", "entry_bytes",
		"entry_digest", "entry_timestamps_replaced",
		"leader_epoch", "time", "cause", "reason", "last_known",
	})
}

func (w tileWriter) write(line tileLine) error {
	if w.csv == nil {
		return writeJSON(w.out, line)
	}
	return w.csv.Write(line.cells())
}

// end writes out what the CSV writer has kept back.
func (w tileWriter) end() error {
	if w.csv == nil {
		return nil
	}
	w.csv.Flush()
	return w.csv.Error()
}

// cells returns the line as the columns of begin. What is not known is empty.
func (line *tileLine) cells() []string {
	topicID := ""
	if line.TopicID != nil {
		topicID = *line.TopicID
	}
	otherTopic, otherStart := line.TargetTopic, line.TargetStart
	if line.Book == bookTarget {
		otherTopic, otherStart = line.SourceTopic, line.SourceStart
	}
	entry := make([]string, 7)
	if e := line.Entry; e != nil {
		entry = []string{
			number(e.Start), number(e.End), number(e.TargetStart), number(e.Records), number(e.Bytes),
			e.Digest, strconv.FormatBool(e.TimestampsReplaced),
		}
	}
	cells := []string{
		line.Book, printable(line.Topic), topicID, number(int64(line.Partition)),
		number(int64(line.Generation)), number(line.Start), number(line.End), line.Tile,
		printable(otherTopic), optionalNumber(otherStart),
	}
	cells = append(cells, entry...)
	return append(cells, number(int64(line.LeaderEpoch)), line.Time.String(),
		line.Cause, printable(line.Reason), line.LastKnown.String())
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func optionalNumber(n *int64) string {
	if n == nil {
		return ""
	}
	return number(*n)
}
