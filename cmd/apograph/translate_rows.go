package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"apograph/ledger"
	"apograph/translate"
)

// The columns of a row, in the order of the JSON and CSV forms.
const (
	columnGroup = iota
	columnTopic // on the source
	columnTopicID
	columnPartition
	columnSourceOffset
	columnTargetTopic
	columnTargetOffset
	columnStatus
	columnDistance
	columnCopiedTo        // end of the source book
	columnTargetCommitted // by the group on the target; unknown if nothing, or not asked
	columnAction
	columnDetail
	numColumns
)

func columnNames() [numColumns]string {
	return [numColumns]string{
		"group", "topic", "topic_id", "partition", "source_offset", "target_topic", "target_offset",
		"status", "distance", "copied_to", "target_committed", "action", "detail",
	}
}

// A rowCell is a value of a row: a text, a number, or not known. Not known are
// the group of an offset that has none, the topic on the other side of a
// partition without a book, and the answer where there is none.
type rowCell struct {
	kind   cellKind
	number int64
	text   string
}

type cellKind uint8

const (
	cellUnknown cellKind = iota
	cellNumber
	cellText
)

func numberCell(n int64) rowCell   { return rowCell{kind: cellNumber, number: n} }
func textCell(text string) rowCell { return rowCell{kind: cellText, text: text} }

func offsetCell(offset int64) rowCell {
	if offset == translate.NoOffset {
		return rowCell{}
	}
	return numberCell(offset)
}

func nameCell(name string) rowCell {
	if name == "" {
		return rowCell{}
	}
	return textCell(name)
}

// A rowMaker makes rows of transfers.
type rowMaker struct {
	of    *translation
	ids   map[ledger.TopicID]rowCell
	cells [numColumns]rowCell
}

func (t *translation) newRowMaker() *rowMaker {
	return &rowMaker{of: t, ids: map[ledger.TopicID]rowCell{{}: {}}}
}

// row returns the cells of a row, which are valid until the next one.
func (m *rowMaker) row(from *translate.Transfer) *[numColumns]rowCell {
	c := &m.cells
	c[columnGroup] = rowCell{}
	if m.of.grouped {
		c[columnGroup] = textCell(from.Group)
	}
	c[columnTopic] = nameCell(from.Pair.SourceTopic)
	c[columnTopicID] = m.topicID(from.Pair.SourceTopicID)
	c[columnPartition] = numberCell(int64(from.Partition))
	c[columnSourceOffset] = offsetCell(from.SourceOffset)
	c[columnTargetTopic] = nameCell(from.Pair.TargetTopic)
	c[columnTargetOffset] = offsetCell(from.TargetOffset)
	c[columnStatus] = textCell(from.Status.String())
	c[columnDistance] = numberCell(from.Distance)
	c[columnCopiedTo] = offsetCell(from.CopiedTo)
	c[columnTargetCommitted] = offsetCell(from.TargetCommitted)
	c[columnAction] = textCell(string(from.Decision.Action))
	c[columnDetail] = textCell(m.of.detail(from))
	// Without a book only the topic that was asked for is known.
	if m.of.reverse {
		c[columnTargetTopic] = textCell(from.Topic)
	} else {
		c[columnTopic] = textCell(from.Topic)
	}
	return c
}

// topicID returns the cell of a topic id, as the ledger knows it.
func (m *rowMaker) topicID(id ledger.TopicID) rowCell {
	cell, ok := m.ids[id]
	if !ok {
		cell = textCell(id.String())
		m.ids[id] = cell
	}
	return cell
}

// rowsChunk is how much of the rows is written at once.
const rowsChunk = 64 << 10

// writeRows writes all rows as add appends them.
func (t *translation) writeRows(w io.Writer, add func([]byte, *[numColumns]rowCell) []byte) error {
	maker := t.newRowMaker()
	chunk := make([]byte, 0, rowsChunk+rowsChunk/8)
	for from := range t.rows() {
		if chunk = add(chunk, maker.row(from)); len(chunk) < rowsChunk {
			continue
		}
		if _, err := w.Write(chunk); err != nil {
			return err
		}
		chunk = chunk[:0]
	}
	_, err := w.Write(chunk)
	return err
}

// writeCSV writes a row for each offset, with the names of the JSON form as its
// header. What is not known is empty.
func (t *translation) writeCSV(w io.Writer) error {
	names := columnNames()
	if _, err := io.WriteString(w, strings.Join(names[:], ",")+"\n"); err != nil {
		return err
	}
	return t.writeRows(w, appendCSVRow)
}

func appendCSVRow(b []byte, cells *[numColumns]rowCell) []byte {
	for i := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		switch cell := &cells[i]; cell.kind {
		case cellNumber:
			b = strconv.AppendInt(b, cell.number, 10)
		case cellText:
			b = appendCSVField(b, cell.text)
		}
	}
	return append(b, '\n')
}

// appendCSVField appends a text, fit to be shown, as package encoding/csv does:
// in quotes if it has a comma or a quote, begins with a space, or is \. alone,
// which ends the data for some databases. Other characters for which that has
// quotes [printable] has written otherwise.
func appendCSVField(b []byte, text string) []byte {
	if !isPlain(text) {
		text = printable(text)
	}
	if text == "" || text[0] != ' ' && text != `\.` && strings.IndexByte(text, ',') < 0 && strings.IndexByte(text, '"') < 0 {
		return append(b, text...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(text, `"`, `""`)...)
	return append(b, '"')
}

// isPlain reports whether a text is printing ASCII without quotes and
// backslashes, as nearly all are.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf-1 {
			return false
		}
	}
	return true
}

// writeJSON writes the answer as one document, whose rows come last.
func (t *translation) writeJSON(w io.Writer) error {
	var head bytes.Buffer
	if err := writeJSON(&head, t); err != nil {
		return err
	}
	head.Truncate(head.Len() - len("}\n"))
	head.WriteString(`,"rows":[`)
	if _, err := w.Write(head.Bytes()); err != nil {
		return err
	}
	separator := ""
	err := t.writeRows(w, func(b []byte, cells *[numColumns]rowCell) []byte {
		b = appendJSONObject(append(b, separator...), cells)
		separator = ","
		return b
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}

func appendJSONRow(b []byte, cells *[numColumns]rowCell) []byte {
	return append(appendJSONObject(b, cells), '\n')
}

func appendJSONObject(b []byte, cells *[numColumns]rowCell) []byte {
	opening := byte('{')
	for i, name := range columnNames() {
		b = append(b, opening, '"')
		b = append(b, name...)
		b = append(b, '"', ':')
		switch cell := &cells[i]; cell.kind {
		case cellUnknown:
			b = append(b, "null"...)
		case cellNumber:
			b = strconv.AppendInt(b, cell.number, 10)
		case cellText:
			b = appendJSONText(b, cell.text)
		}
		opening = ','
	}
	return append(b, '}')
}

// appendJSONText appends a text as [writeJSON] does, to which it leaves all but
// the plainest.
func appendJSONText(b []byte, text string) []byte {
	if !isPlain(text) {
		return appendOddJSON(b, text)
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

func appendOddJSON(b []byte, text string) []byte {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic("translate: a text cannot be encoded: " + err.Error())
	}
	return append(b, printableJSON(bytes.TrimSuffix(document.Bytes(), []byte("\n")))...)
}
