package main

import (
	"io"
	"strings"
)

// A textTable is plain aligned text: columns two blanks apart, no lines drawn,
// no colour, no blanks at the end of a line. Cells are escaped with [printable].
type textTable struct {
	header []string // empty for none
	right  []bool   // columns aligned to the right, as numbers are
	rows   [][]string
}

func (t *textTable) add(cells ...string) { t.rows = append(t.rows, cells) }

// text returns the table, each line cut to a number of columns; 0 for no limit.
func (t *textTable) text(columns int) string {
	var lines [][]string
	if len(t.header) > 0 {
		lines = append(lines, t.header)
	}
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(cell)
		}
		lines = append(lines, cells)
	}
	widths := columnWidths(lines)
	var text strings.Builder
	for _, cells := range lines {
		text.WriteString(snip(t.line(cells, widths), columns) + "\n")
	}
	return text.String()
}

func columnWidths(lines [][]string) []int {
	var widths []int
	for _, cells := range lines {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], displayWidth(cell))
		}
	}
	return widths
}

func (t *textTable) line(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		padding := strings.Repeat(" ", widths[i]-displayWidth(cell))
		if i < len(t.right) && t.right[i] {
			b.WriteString(padding + cell)
		} else {
			b.WriteString(cell + padding)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// writeTable writes t as text: for [formatTable] cut to the width of the
// terminal, if standard output is one, so that nothing wraps.
func (inv *invocation) writeTable(t *textTable) error {
	columns := inv.stdout.columns
	if inv.format == formatWide {
		columns = 0
	}
	_, err := io.WriteString(inv.stdout, t.text(columns))
	return err
}
