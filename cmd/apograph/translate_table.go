package main

import (
	"bytes"
	"io"
	"iter"
	"strconv"
	"strings"
)

// A tableColumn is a column of a table, which may be left out.
type tableColumn struct {
	name         string
	right, shown bool
}

// tableOf returns a table of the columns that are shown.
func tableOf(columns []tableColumn, rows [][]string) *textTable {
	table := &textTable{}
	for _, c := range columns {
		if c.shown {
			table.header = append(table.header, c.name)
			table.right = append(table.right, c.right)
		}
	}
	for _, row := range rows {
		var cells []string
		for i, c := range columns {
			if c.shown {
				cells = append(cells, row[i])
			}
		}
		table.add(cells...)
	}
	return table
}

// columns returns those of the table. Left out are those that no row has: the
// group of offsets without one, and what was done on a target that was not asked.
func (t *translation) columns() [numColumns]tableColumn {
	right := map[int]bool{columnPartition: true, columnSourceOffset: true, columnTargetOffset: true, columnDistance: true,
		columnCopiedTo: true, columnTargetCommitted: true}
	hidden := map[int]bool{columnTopicID: true, columnGroup: !t.grouped, columnTargetCommitted: t.carried == nil, columnAction: t.carried == nil}
	var columns [numColumns]tableColumn
	for i, name := range columnNames() {
		columns[i] = tableColumn{strings.ReplaceAll(strings.ToUpper(name), "_", "-"), right[i], !hidden[i]}
	}
	return columns
}

// A bigTable is a [textTable] whose rows are made anew each time that they are
// gone through, and never all of them there.
type bigTable struct {
	header textTable
	each   iter.Seq[*shownRow] // the row is valid until the next one
}

// A shownRow is the cells of a row as they are shown, one behind the other.
type shownRow struct {
	text   []byte
	ends   []int // in text
	widths []int
}

func (r *shownRow) clear() { r.text, r.ends, r.widths = r.text[:0], r.ends[:0], r.widths[:0] }

// add adds a cell as a table shows it.
func (r *shownRow) add(c *rowCell, isGroup bool) {
	before := len(r.text)
	switch {
	case c.kind == cellNumber:
		r.text = strconv.AppendInt(r.text, c.number, 10)
	case c.kind == cellUnknown:
		r.text = append(r.text, '-')
	case isPlain(c.text) && (!isGroup || len(c.text) <= maxGroup):
		r.text = append(r.text, c.text...)
	default:
		shown := printable(c.text)
		if isGroup {
			shown = shortened(shown)
		}
		r.text = append(r.text, shown...)
		r.end(displayWidth(shown))
		return
	}
	r.end(len(r.text) - before)
}

func (r *shownRow) end(width int) {
	r.ends = append(r.ends, len(r.text))
	r.widths = append(r.widths, width)
}

// cells returns the cells one by one.
func (r *shownRow) cells() []string {
	cells := make([]string, len(r.ends))
	start := 0
	for i, end := range r.ends {
		cells[i], start = string(r.text[start:end]), end
	}
	return cells
}

// table returns the table of the rows.
func (t *translation) table() *bigTable {
	columns := t.columns()
	return &bigTable{header: *tableOf(columns[:], nil), each: func(yield func(*shownRow) bool) {
		maker := t.newRowMaker()
		var row shownRow
		for from := range t.rows() {
			row.clear()
			cells := maker.row(from)
			for i := range cells {
				if columns[i].shown {
					row.add(&cells[i], i == columnGroup)
				}
			}
			if !yield(&row) {
				return
			}
		}
	}}
}

// writeTable writes what [invocation.writeTable] would of a table of all rows.
func (t *translation) writeTable(inv *invocation) error {
	columns := inv.stdout.columns
	if inv.format == formatWide {
		columns = 0
	}
	return t.table().write(inv.stdout, columns)
}

// write writes what [textTable.text] returns.
func (t *bigTable) write(w io.Writer, columns int) error {
	widths := columnWidths([][]string{t.header.header})
	for row := range t.each {
		for i, width := range row.widths {
			widths[i] = max(widths[i], width)
		}
	}
	if columns > 0 && !t.fitsIn(widths, columns) {
		return t.writeBlocks(w, columns)
	}
	if _, err := io.WriteString(w, t.header.line(t.header.header, widths)+"\n"); err != nil {
		return err
	}
	var line []byte
	for row := range t.each {
		line = append(t.appendLine(line[:0], row, widths), '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// appendLine appends a row as [textTable.line] does.
func (t *bigTable) appendLine(line []byte, row *shownRow, widths []int) []byte {
	start := 0
	for i, end := range row.ends {
		if i > 0 {
			line = append(line, "  "...)
		}
		padding := widths[i] - row.widths[i]
		if t.header.right[i] {
			line = appendBlanks(line, padding)
			padding = 0
		}
		line = appendBlanks(append(line, row.text[start:end]...), padding)
		start = end
	}
	return bytes.TrimRight(line, " ")
}

func appendBlanks(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}

// fitsIn reports whether no line takes more than a number of columns.
func (t *bigTable) fitsIn(widths []int, columns int) bool {
	if displayWidth(t.header.line(t.header.header, widths)) > columns {
		return false
	}
	var line []byte
	for row := range t.each {
		if line = t.appendLine(line[:0], row, widths); displayWidth(string(line)) > columns {
			return false
		}
	}
	return true
}

// writeBlocks writes the rows as blocks of lines with a name and a value.
func (t *bigTable) writeBlocks(w io.Writer, columns int) error {
	between := ""
	for row := range t.each {
		if _, err := io.WriteString(w, between+fieldLines(fieldsOf(t.header.header, row.cells()), columns)); err != nil {
			return err
		}
		between = "\n"
	}
	return nil
}
