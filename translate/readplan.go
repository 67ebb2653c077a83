package translate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxPlanLine is the longest line of a plan, in bytes: a group id and a topic
// name, which the protocol bounds at 32767 bytes each, with room for quotes.
const maxPlanLine = 256 << 10

// planBuffer is how much of a plan is read at once.
const planBuffer = 64 << 10

const byteOrderMark = "\ufeff"

// ReadResetPlan reads a plan in the form of Kafka's tool, whose first line says
// whether it is grouped. It takes what that tool writes, and what it reads,
// less what it would read otherwise than it was meant:
//
//   - a line with too few columns, or with an empty partition or offset, for
//     which it takes 0;
//   - a carriage return inside a line, behind which it reads nothing;
//   - what [ResetPlan.Validate] refuses.
//
// Empty lines may stand at the end only, where --export leaves one. The error
// is a [*PlanError], or that of r.
func ReadResetPlan(r io.Reader) (ResetPlan, error) {
	sheet, err := ReadSheet(r)
	if sheet == nil {
		return ResetPlan{}, err
	}
	return sheet.Plan(), err
}

// ReadSheet is [ReadResetPlan] into a sheet, which is nil after an error.
func ReadSheet(r io.Reader) (*Sheet, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, planBuffer), maxPlanLine)
	lines.Split(splitLines)
	var s Sheet
	empty := 0 // lines since the last row
	number := 0
	for lines.Scan() {
		number++
		line := lines.Bytes()
		if isEmptyLine(line) {
			empty++
			continue
		}
		if empty > 0 {
			return nil, planErrorf(number-empty, "is empty, and lines follow")
		}
		if s.addPlain(line) {
			continue
		}
		if err := s.addLine(number, string(line)); err != nil {
			return nil, err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, planErrorf(number+1, "is longer than %d bytes", maxPlanLine)
	case err != nil:
		return nil, fmt.Errorf("read reset plan: %w", err)
	case s.len == 0:
		return nil, planErrorf(1, "there are no offsets")
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &s, nil
}

func isEmptyLine(line []byte) bool {
	return len(line) == 0 || line[0] == '\r' && len(bytes.Trim(line, "\r")) == 0
}

// addPlain adds the row in a line that is written as nearly all are: the columns
// of a row before it, without quotes, and numbers of nothing but some digits. It
// returns false for any other, which [Sheet.addLine] reads to the same effect.
func (s *Sheet) addPlain(line []byte) bool {
	if s.len == 0 || bytes.IndexByte(line, '"') >= 0 || bytes.IndexByte(line, '\r') >= 0 {
		return false
	}
	var group []byte
	rest := line
	if s.Grouped {
		end := bytes.IndexByte(rest, ',')
		if end < 0 {
			return false
		}
		group, rest = rest[:end], rest[end+1:]
	}
	end := bytes.IndexByte(rest, ',')
	if end < 0 {
		return false
	}
	topic, rest := rest[:end], rest[end+1:]
	partition, rest, ok := cutDigits(rest, 9)
	if !ok || len(rest) == 0 || rest[0] != ',' {
		return false
	}
	offset, rest, ok := cutDigits(rest[1:], 18)
	if !ok || len(rest) > 0 || s.len == maxSheetRows {
		return false
	}
	s.add(group, topic, int32(partition), offset)
	return true
}

// cutDigits returns the number that a text starts with, and the rest; false if
// it has no digit or more than most.
func cutDigits(text []byte, most int) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		if i == most {
			return 0, nil, false
		}
		n = n*10 + int64(text[i]-'0')
		i++
	}
	return n, text[i:], i > 0
}

// splitLines is bufio.ScanLines, but leaves the carriage returns to the parser.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// addLine adds the row in a line.
func (s *Sheet) addLine(number int, line string) error {
	if number == 1 && strings.HasPrefix(line, byteOrderMark) {
		// It would become part of the first name.
		return planErrorf(number, "starts with a byte order mark")
	}
	fields, fault := splitFields(line)
	if fault != "" {
		return planErrorf(number, "%s", fault)
	}
	if s.len == 0 {
		s.Grouped = isGrouped(fields)
	}
	want := "topic,partition,offset"
	if s.Grouped {
		want = "group," + want
	}
	columns := strings.Count(want, ",") + 1
	// Kafka's tool lets a line end with a comma.
	if len(fields) == columns+1 && fields[columns] == "" {
		fields = fields[:columns]
	}
	if len(fields) != columns {
		return planErrorf(number, "has %d columns where %s is expected", len(fields), want)
	}
	row, fault := readRow(fields, s.Grouped)
	if fault != "" {
		return planErrorf(number, "%s", fault)
	}
	if s.len == maxSheetRows {
		return planErrorf(number, "is one too many: there are more than %d", maxSheetRows)
	}
	s.Add(row)
	return nil
}

// isGrouped reports whether the first line of a plan is of the form with
// groups. Kafka's tool tries the other one first, and three columns are one of
// four if the last is left out.
func isGrouped(fields []string) bool {
	if len(fields) < 4 {
		return false
	}
	_, fault := readRow(fields, false)
	return len(fields) > 4 || fields[3] != "" || fault != ""
}

// splitFields splits a line into its columns.
func splitFields(line string) (fields []string, fault string) {
	line = strings.TrimRight(line, "\r")
	for {
		var field string
		if strings.HasPrefix(line, `"`) {
			field, line, fault = cutQuoted(line[1:])
		} else {
			field, line, fault = cutBare(line)
		}
		if fault != "" {
			return nil, fault
		}
		fields = append(fields, field)
		if line == "" {
			return fields, ""
		}
		line = line[1:] // the comma
	}
}

// cutBare returns the value up to the next comma, and the rest from there. A
// quote within the value is an ordinary character.
func cutBare(line string) (value, rest, fault string) {
	end := strings.IndexByte(line, ',')
	if end < 0 {
		end = len(line)
	}
	if strings.ContainsRune(line[:end], '\r') {
		return "", "", "has a carriage return in the middle"
	}
	return line[:end], line[end:], ""
}

// cutQuoted returns the value up to the closing quote, and the rest from the
// comma behind it. Two quotes within the value stand for one.
func cutQuoted(line string) (value, rest, fault string) {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(line, `"`)
		if !ok {
			return "", "", "has a quote that is not closed"
		}
		b.WriteString(before)
		if line, ok = strings.CutPrefix(after, `"`); !ok {
			rest = after
			break
		}
		b.WriteByte('"')
	}
	behind, _, _ := strings.Cut(rest, ",")
	if strings.ContainsRune(behind, '\r') || strings.TrimFunc(behind, isBlank) != "" {
		return "", "", fmt.Sprintf("has %q behind a closing quote", behind)
	}
	return b.String(), rest[len(behind):], ""
}
