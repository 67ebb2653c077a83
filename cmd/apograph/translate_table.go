package main

import (
	"io"
	"iter"
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
	textTable
	each iter.Seq[[]string] // the cells are valid until the next row
}

// table returns the table of the rows.
func (t *translation) table() *bigTable {
	columns := t.columns()
	table := &bigTable{textTable: *tableOf(columns[:], nil)}
	table.each = func(yield func([]string) bool) {
		maker := t.newRowMaker()
		var texts []string
		for from := range t.rows() {
			texts = texts[:0]
			for i, cell := range maker.row(from) {
				if columns[i].shown {
					texts = append(texts, printable(cell.shown()))
				}
			}
			if !yield(texts) {
				return
			}
		}
	}
	return table
}

// shown returns a cell as a table shows it.
func (c *rowCell) shown() string {
	switch c.kind {
	case cellNumber:
		return number(c.number)
	case cellText:
		return c.text
	default:
		return "-"
	}
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
	widths := columnWidths([][]string{t.header})
	for cells := range t.each {
		for i, cell := range cells {
			widths[i] = max(widths[i], displayWidth(cell))
		}
	}
	if columns > 0 && !t.fitsIn(widths, columns) {
		return t.writeBlocks(w, columns)
	}
	if _, err := io.WriteString(w, t.line(t.header, widths)+"\n"); err != nil {
		return err
	}
	for cells := range t.each {
		if _, err := io.WriteString(w, t.line(cells, widths)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// fitsIn reports whether no line takes more than a number of columns.
func (t *bigTable) fitsIn(widths []int, columns int) bool {
	if displayWidth(t.line(t.header, widths)) > columns {
		return false
	}
	for cells := range t.each {
		if displayWidth(t.line(cells, widths)) > columns {
			return false
		}
	}
	return true
}

// writeBlocks writes the rows as blocks of lines with a name and a value.
func (t *bigTable) writeBlocks(w io.Writer, columns int) error {
	between := ""
	for cells := range t.each {
		if _, err := io.WriteString(w, between+fieldLines(fieldsOf(t.header, cells), columns)); err != nil {
			return err
		}
		between = "\n"
	}
	return nil
}
