package translate

import (
	"iter"
	"math"

	"apograph/ledger"
)

// A Sheet holds the rows of a [ResetPlan], and their answers once there are
// any, in little memory: 40 bytes a row, each name once, and the details of
// inexact answers. It is made for files of millions of rows. One goroutine uses
// it.
type Sheet struct {
	Grouped bool // the rows name their groups

	rows   []*sheetChunk
	len    int
	groups names
	topics names
	places []sheetPlace
	at     map[sheetKey]int32 // index in places

	reverse bool     // the offsets are the target's
	details []string // the first is empty

	fault *PlanError // of the first row that no tool could act upon
	order *sheetOrder
}

// chunkRows is how many rows are allocated at once: a slice that grows would
// be copied time and again.
const chunkRows = 4096

type sheetChunk [chunkRows]sheetRow

// A sheetRow is a row without pointers, which the garbage collector need not
// look at.
type sheetRow struct {
	offset   int64
	answer   int64 // on the other side
	distance int64
	place    int32
	group    int32
	detail   int32
	status   Status
}

// A sheetPlace is a topic-partition, and what all answers about it share.
type sheetPlace struct {
	topic     int32
	partition int32
	pair      ledger.Pair
	copiedTo  int64
	targetEnd int64
}

type sheetKey struct{ topic, partition int32 }

// maxSheetRows is how many rows an index can tell apart.
const maxSheetRows = math.MaxInt32

// names are different texts, each with its number.
type names struct {
	texts []string
	index map[string]int32
	last  int32 // number of the text that was looked up last
}

// number returns the number of a text, and whether it is a new one.
func (n *names) number(text []byte) (number int32, isNew bool) {
	if len(n.texts) > 0 && n.texts[n.last] == string(text) {
		return n.last, false
	}
	number, ok := n.index[string(text)]
	if !ok {
		if n.index == nil {
			n.index = make(map[string]int32)
		}
		number = int32(len(n.texts))
		n.texts = append(n.texts, string(text))
		n.index[n.texts[number]] = number
	}
	n.last = number
	return number, !ok
}

// NewSheet returns the sheet of a plan. It is not validated.
func NewSheet(p *ResetPlan) *Sheet {
	s := &Sheet{Grouped: p.Grouped}
	for _, row := range p.Rows {
		s.Add(row)
	}
	return s
}

// Plan returns the rows of the sheet as a plan.
func (s *Sheet) Plan() ResetPlan {
	p := ResetPlan{Grouped: s.Grouped}
	if s.len > 0 {
		p.Rows = make([]PlanRow, s.len)
	}
	for i := range p.Rows {
		p.Rows[i] = s.Row(i)
	}
	return p
}

// Len returns the number of rows.
func (s *Sheet) Len() int { return s.len }

func (s *Sheet) row(i int) *sheetRow { return &s.rows[i/chunkRows][i%chunkRows] }

// Row returns the row with the given index, from 0.
func (s *Sheet) Row(i int) PlanRow {
	row := s.row(i)
	return PlanRow{s.groups.texts[row.group], s.query(row)}
}

func (s *Sheet) query(row *sheetRow) Query {
	place := &s.places[row.place]
	return Query{s.topics.texts[place.topic], place.partition, row.offset}
}

// Add adds a row at the end.
func (s *Sheet) Add(row PlanRow) {
	s.add([]byte(row.Group), []byte(row.Topic), row.Partition, row.Offset)
}

// add adds a row, of whose texts it keeps nothing.
func (s *Sheet) add(group, topic []byte, partition int32, offset int64) {
	if s.len%chunkRows == 0 {
		s.rows = append(s.rows, new(sheetChunk))
	}
	number, newGroup := s.groups.number(group)
	place, newPlace := s.place(topic, partition)
	*s.row(s.len) = sheetRow{offset: offset, answer: NoOffset, place: place, group: number}
	s.len++
	s.order = nil
	if newGroup || newPlace || offset < 0 {
		s.inspect(s.len - 1)
	}
}

// place returns the index of a topic-partition, and whether it is a new one.
func (s *Sheet) place(topic []byte, partition int32) (place int32, isNew bool) {
	number, _ := s.topics.number(topic)
	key := sheetKey{number, partition}
	place, ok := s.at[key]
	if !ok {
		if s.at == nil {
			s.at = make(map[sheetKey]int32)
		}
		place = int32(len(s.places))
		s.places = append(s.places, sheetPlace{topic: number, partition: partition, copiedTo: NoOffset})
		s.at[key] = place
	}
	return place, !ok
}

// inspect notes the fault of the first row that has one. Names are looked at
// where they come first.
func (s *Sheet) inspect(i int) {
	if s.fault != nil {
		return
	}
	row := s.Row(i)
	if fault := row.fault(); fault != "" {
		s.fault = planErrorf(i+1, "%s", fault)
	}
}

// SetGroup makes all rows those of one group. There must be no answers yet.
func (s *Sheet) SetGroup(group string) {
	all := Sheet{Grouped: true}
	for i := range s.len {
		row := s.Row(i)
		row.Group = group
		all.Add(row)
	}
	*s = all
}

// HasGroup reports whether a row is of the group.
func (s *Sheet) HasGroup(group string) bool {
	_, ok := s.groups.index[group]
	return ok
}

// KeepGroups removes the rows of all other groups. There must be no answers yet.
func (s *Sheet) KeepGroups(groups []string) {
	keep := make([]bool, len(s.groups.texts))
	for _, group := range groups {
		if number, ok := s.groups.index[group]; ok {
			keep[number] = true
		}
	}
	kept := Sheet{Grouped: s.Grouped}
	for i := range s.len {
		if keep[s.row(i).group] {
			kept.Add(s.Row(i))
		}
	}
	*s = kept
}

// take takes the answer to a row.
func (s *Sheet) take(i int, r Result) {
	row := s.row(i)
	row.status, row.distance, row.answer = r.Status, r.Distance, r.TargetOffset
	if s.reverse {
		row.answer = r.SourceOffset
	}
	row.detail = s.detail(r.Detail)
	s.places[row.place].copiedTo = r.CopiedTo
}

// detail returns the number of a text, which is often the one before.
func (s *Sheet) detail(text string) int32 {
	if text == "" {
		return 0
	}
	if len(s.details) == 0 {
		s.details = append(s.details, "")
	}
	if s.details[len(s.details)-1] != text {
		s.details = append(s.details, text)
	}
	return int32(len(s.details) - 1)
}

// Answer returns the answer to the row with the given index, which is Unknown
// before there is one.
func (s *Sheet) Answer(i int) Answer {
	var a Answer
	s.answer(s.row(i), &a)
	return a
}

func (s *Sheet) answer(row *sheetRow, a *Answer) {
	place := &s.places[row.place]
	a.Pair, a.TargetEnd = place.pair, place.targetEnd
	a.Status, a.Distance, a.CopiedTo = row.status, row.distance, place.copiedTo
	a.SourceOffset, a.TargetOffset = row.offset, row.answer
	if s.reverse {
		a.SourceOffset, a.TargetOffset = row.answer, row.offset
	}
	a.Detail = ""
	if row.detail > 0 {
		a.Detail = s.details[row.detail]
	}
}

// IsExact reports whether all answers are.
func (s *Sheet) IsExact() bool {
	for i := range s.len {
		if !s.row(i).status.IsExact() {
			return false
		}
	}
	return true
}

// SetAnswer takes an answer that was found elsewhere, as by [Index.Forward]. All
// that are about one topic-partition must be as of the same commit.
func (s *Sheet) SetAnswer(i int, a *Answer, reverse bool) {
	s.reverse = reverse
	place := &s.places[s.row(i).place]
	place.pair, place.targetEnd = a.Pair, a.TargetEnd
	s.take(i, a.Result)
}

// Transfers returns the rows with their answers, each as it begins its way, in
// order. It is the same variable each time, which must not be changed.
func (s *Sheet) Transfers() iter.Seq[*Transfer] {
	return func(yield func(*Transfer) bool) {
		t := NewTransfer(PlanRow{}, "")
		for i := range s.len {
			row := s.row(i)
			t.Group, t.Query = s.groups.texts[row.group], s.query(row)
			s.answer(row, &t.Answer)
			if !yield(&t) {
				return
			}
		}
	}
}
