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

// text returns the table in lines of at most a number of columns; 0 for no
// limit. Nothing is left out, but the middle of a long group id: where the table is too wide, each row
// becomes a block of lines with a name and a value, in which long values are
// wrapped. A table without a header, whose rows are a name and a value, is such
// a block itself.
func (t *textTable) text(columns int) string {
	lines := t.escaped()
	widths := columnWidths(lines)
	var text strings.Builder
	for _, cells := range lines {
		text.WriteString(t.line(cells, widths) + "\n")
	}
	if columns <= 0 || fits(text.String(), columns) {
		return text.String()
	}
	if len(t.header) == 0 {
		return fieldLines(lines, columns)
	}
	var blocks []string
	for _, cells := range lines[1:] {
		blocks = append(blocks, fieldLines(fieldsOf(lines[0], cells), columns))
	}
	return strings.Join(blocks, "\n")
}

// escaped returns the header, if there is one, and the rows, fit to be shown.
func (t *textTable) escaped() [][]string {
	var lines [][]string
	if len(t.header) > 0 {
		lines = append(lines, t.header)
	}
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = printable(cell); i < len(t.header) && strings.HasSuffix(t.header[i], "GROUP") {
				cells[i] = shortened(cells[i])
			}
		}
		lines = append(lines, cells)
	}
	return lines
}

// fits reports whether no line of text takes more than a number of columns.
func fits(text string, columns int) bool {
	for line := range strings.Lines(text) {
		if displayWidth(strings.TrimSuffix(line, "\n")) > columns {
			return false
		}
	}
	return true
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

// fieldsOf returns the cells of a row under their names, without those that
// are empty.
func fieldsOf(header, cells []string) [][]string {
	var fields [][]string
	for i, cell := range cells {
		if cell != "" {
			name := strings.ReplaceAll(strings.ToLower(header[i]), "-", " ")
			fields = append(fields, []string{name + ":", cell})
		}
	}
	return fields
}

// minValueColumns is how narrow the column of values may be beside that of the
// names: any offset fits. Where it would be narrower, a value stands below its
// name.
const minValueColumns = 20

// fieldLines returns fields, each a name and a value, in lines of at most a
// number of columns.
func fieldLines(fields [][]string, columns int) string {
	indent := columnWidths(fields)[0] + 2
	below := columns-indent < minValueColumns
	if below {
		indent = 2
	}
	var text strings.Builder
	for _, field := range fields {
		name, value := field[0], strings.Join(field[1:], "  ")
		switch {
		case value == "":
			text.WriteString(wrapText(name, 0, columns))
		case below:
			text.WriteString(wrapText(name, 0, columns) + "  " + wrapText(value, indent, columns))
		default:
			text.WriteString(name + strings.Repeat(" ", indent-displayWidth(name)) + wrapText(value, indent, columns))
		}
	}
	return text.String()
}

// wrapText returns s, which begins in column indent, in lines of at most a
// number of columns; 0 for no limit. Lines end between words; only a word that
// is wider than a line goes on in the next one, whole.
func wrapText(s string, indent, columns int) string {
	s = strings.TrimRight(s, " ")
	room := max(columns-indent, 2)
	if columns <= 0 || displayWidth(s) <= room {
		return s + "\n"
	}
	var lines []string
	line, width := "", 0
	for word := range strings.SplitSeq(s, " ") {
		for rest := word; ; {
			taken := displayWidth(rest)
			switch {
			case line != "" && width+1+taken <= room:
				line, width = line+" "+rest, width+1+taken
			case line != "":
				lines, line, width = append(lines, line), "", 0
				continue
			case taken <= room:
				line, width = rest, taken
			default:
				head := rest[:prefixWithin(rest, room)]
				lines, rest = append(lines, head), rest[len(head):]
				continue
			}
			break
		}
	}
	lines = append(lines, line)
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent)) + "\n"
}

// prefixWithin returns how many bytes of s fit into a number of columns, at
// least one character.
func prefixWithin(s string, columns int) int {
	width := 0
	for i, r := range s {
		if width += runeWidth(r); width > columns && i > 0 {
			return i
		}
	}
	return len(s)
}

// writeTable writes t as text: for [formatTable] within the width of the
// terminal, if standard output is one, so that nothing wraps by itself.
func (inv *invocation) writeTable(t *textTable) error {
	columns := inv.stdout.columns
	if inv.format == formatWide {
		columns = 0
	}
	_, err := io.WriteString(inv.stdout, t.text(columns))
	return err
}

// writeText writes a line of words, escaped, in as many lines as the terminal
// needs.
func (inv *invocation) writeText(line string) error {
	columns := inv.stdout.columns
	if inv.format == formatWide {
		columns = 0
	}
	_, err := io.WriteString(inv.stdout, wrapText(printable(line), 0, columns))
	return err
}
