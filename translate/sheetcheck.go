package translate

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// A sheetOrder is the indexes of a sheet's rows by their places, those of one
// place in order.
type sheetOrder struct {
	rows []int32
	ends []int32 // in rows, by place
}

// of returns the rows of a place.
func (o *sheetOrder) of(place int) []int32 {
	start := int32(0)
	if place > 0 {
		start = o.ends[place-1]
	}
	return o.rows[start:o.ends[place]]
}

// byPlace returns the order of the rows that there are now.
func (s *Sheet) byPlace() *sheetOrder {
	if s.order != nil {
		return s.order
	}
	o := &sheetOrder{rows: make([]int32, s.len), ends: make([]int32, len(s.places))}
	next := make([]int32, len(s.places)+1)
	for i := range s.len {
		next[s.row(i).place+1]++
	}
	for place := range s.places {
		next[place+1] += next[place]
	}
	copy(o.ends, next[1:])
	for i := range s.len {
		place := s.row(i).place
		o.rows[next[place]] = int32(i)
		next[place]++
	}
	s.order = o
	return o
}

// Validate is [ResetPlan.Validate].
func (s *Sheet) Validate() error {
	row, before := s.conflict()
	switch {
	case s.fault != nil && (row < 0 || s.fault.Line-1 <= row):
		return s.fault
	case row < 0:
		return nil
	}
	asked := s.Row(row)
	return planErrorf(row+1, "offset %d for %s-%d, but line %d has %d",
		asked.Offset, asked.Topic, asked.Partition, before+1, s.row(before).offset)
}

// conflict returns the first row that has another offset than the first row of
// the same group and place, and that one; -1 if there is none.
func (s *Sheet) conflict() (row, before int) {
	type seen struct{ place, row int32 }
	last := make([]seen, len(s.groups.texts)) // by group
	for group := range last {
		last[group].place = -1
	}
	row, before = -1, -1
	order := s.byPlace()
	for place := range s.places {
		for _, i := range order.of(place) {
			at := s.row(int(i))
			first := &last[at.group]
			if first.place != int32(place) {
				*first = seen{int32(place), i}
				continue
			}
			if s.row(int(first.row)).offset != at.offset {
				if row < 0 || int(i) < row {
					row, before = int(i), int(first.row)
				}
				break
			}
		}
	}
	return row, before
}

// WriteCSV is [ResetPlan.WriteCSV].
func (s *Sheet) WriteCSV(w io.Writer) error {
	if err := s.Validate(); err != nil {
		return err
	}
	groups, topics := quoteAll(s.groups.texts), quoteAll(s.topics.texts)
	buffer := bufio.NewWriter(w)
	for i := range s.len {
		row := s.row(i)
		line := buffer.AvailableBuffer()
		if s.Grouped {
			group := s.groups.texts[row.group]
			if strings.IndexByte(group, '\n') >= 0 {
				return planErrorf(i+1, "group %q has a newline, which Kafka's tool cannot read", group)
			}
			line = append(append(line, groups[row.group]...), ',')
		}
		place := &s.places[row.place]
		line = append(append(line, topics[place.topic]...), ',')
		line = append(strconv.AppendInt(line, int64(place.partition), 10), ',')
		line = append(strconv.AppendInt(line, row.offset, 10), '\n')
		buffer.Write(line)
	}
	return buffer.Flush()
}

func quoteAll(texts []string) []string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quoteField(text)
	}
	return quoted
}
