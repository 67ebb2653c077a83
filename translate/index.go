package translate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"apograph/ledger"
)

// A Query asks for the translation of one offset of a topic-partition.
type Query struct {
	Topic     string
	Partition int32
	Offset    int64
}

// ParseQuery returns the query that is written TOPIC:PARTITION:OFFSET. No topic
// has a colon in its name. The error says what is wrong, without the text.
func ParseQuery(text string) (Query, error) {
	fields := strings.Split(text, ":")
	if len(fields) != 3 {
		return Query{}, errors.New("it is not TOPIC:PARTITION:OFFSET")
	}
	if fault := topicFault(fields[0]); fault != "" {
		return Query{}, errors.New(fault)
	}
	partition, fault := parseNumber("partition", fields[1], math.MaxInt32)
	if fault != "" {
		return Query{}, errors.New(fault)
	}
	offset, fault := parseNumber("offset", fields[2], math.MaxInt64)
	if fault != "" {
		return Query{}, errors.New(fault)
	}
	return Query{fields[0], int32(partition), offset}, nil
}

// An Answer is the answer to a [Query].
type Answer struct {
	// Pair is whose books answer. Where Status is Unknown it is the newest
	// closed generation, or the zero pair if the ledger has no book of the
	// partition.
	Pair ledger.Pair

	Result

	TargetEnd int64 // end of the target book, at the answer or later; 0 without a book
}

// An Index finds books by the names of topic-partitions, as the ledger has them
// when the index is made. Of several generations of a partition the open one
// has the answers. Safe for concurrent use.
type Index struct {
	ledger  *ledger.Ledger
	sources map[partition]ledger.Pair
	targets map[partition]ledger.Pair

	sourceTopics, targetTopics map[string]bool // with a book, open or closed
}

// A partition names a topic's partition on one side.
type partition struct {
	topic  string
	number int32
}

func (p partition) String() string { return fmt.Sprintf("%s-%d", p.topic, p.number) }

// NewIndex returns the index of l.
func NewIndex(l *ledger.Ledger) *Index {
	x := &Index{
		ledger:  l,
		sources: make(map[partition]ledger.Pair),
		targets: make(map[partition]ledger.Pair),

		sourceTopics: make(map[string]bool),
		targetTopics: make(map[string]bool),
	}
	for _, pair := range l.Pairs() {
		keepNewer(x.sources, partition{pair.SourceTopic, pair.Partition}, pair)
		keepNewer(x.targets, partition{pair.TargetTopic, pair.Partition}, pair)
		x.sourceTopics[pair.SourceTopic], x.targetTopics[pair.TargetTopic] = true, true
	}
	return x
}

// keepNewer puts a pair into the index unless there is one that answers rather:
// the open one, or else the one that was opened last.
func keepNewer(index map[partition]ledger.Pair, key partition, pair ledger.Pair) {
	old, ok := index[key]
	isOpen, wasOpen := pair.Closed == nil, old.Closed == nil
	if !ok || isOpen && !wasOpen || isOpen == wasOpen && pair.ID > old.ID {
		index[key] = pair
	}
}

// Forward translates offsets of source topics: one answer a query, in the order
// of queries. Topic is the name on the source.
//
// Errors are those of [ForwardAll]. A topic-partition without a book is no
// error; its answers are Unknown.
func (x *Index) Forward(ctx context.Context, queries []Query) ([]Answer, error) {
	return x.answer(ctx, queries, x.sources, forwards())
}

// Reverse translates offsets of target topics. Topic is the name on the target;
// the rest is as with [Index.Forward].
func (x *Index) Reverse(ctx context.Context, queries []Query) ([]Answer, error) {
	return x.answer(ctx, queries, x.targets, backwards())
}

func (x *Index) answer(ctx context.Context, queries []Query, pairs map[partition]ledger.Pair, d direction) ([]Answer, error) {
	var s Sheet
	for _, q := range queries {
		s.add(nil, []byte(q.Topic), q.Partition, q.Offset)
	}
	if err := x.answerSheet(ctx, &s, pairs, d); err != nil {
		return nil, err
	}
	answers := make([]Answer, len(queries))
	for i := range answers {
		answers[i] = s.Answer(i)
	}
	return answers, nil
}

// SourceTopic returns the name on the source of the topic whose partition is copied
// to one of the target; "" if the ledger has no book of it.
func (x *Index) SourceTopic(topic string, number int32) string {
	return x.targets[partition{topic, number}].SourceTopic
}

// Translate answers the rows of a sheet, in reverse those about offsets of the
// target. Errors are those of [Index.Forward].
func (s *Sheet) Translate(ctx context.Context, x *Index, reverse bool) error {
	if reverse {
		return x.answerSheet(ctx, s, x.targets, backwards())
	}
	return x.answerSheet(ctx, s, x.sources, forwards())
}

// answerSheet answers the rows place by place, in the order in which these are
// first asked for, so that an error repeats.
func (x *Index) answerSheet(ctx context.Context, s *Sheet, pairs map[partition]ledger.Pair, d direction) error {
	for i := range s.len {
		if offset := s.row(i).offset; offset < 0 {
			row := s.Row(i)
			return negative(partition{row.Topic, row.Partition}.String(), offset)
		}
	}
	s.reverse = d.from == "target"
	order := s.byPlace()
	var books reading
	var questions []question
	for i := range s.places {
		place := &s.places[i]
		key := partition{s.topics.texts[place.topic], place.partition}
		questions = questions[:0]
		for _, row := range order.of(i) {
			questions = append(questions, question{s.row(int(row)).offset, int(row)})
		}
		place.pair = pairs[key]
		if err := books.answerAll(ctx, Books{x.ledger, place.pair.ID}, questions, d, s.take); err != nil {
			return err
		}
		place.targetEnd = x.ledger.Committed(place.pair.ID).Target
		if place.pair.ID == 0 {
			s.noBook(order.of(i), d)
		}
	}
	return nil
}

// noBook says of rows that there is no book to answer them.
func (s *Sheet) noBook(rows []int32, d direction) {
	detail := s.detail(fmt.Sprintf("the ledger has no book with this %s partition", d.from))
	for _, row := range rows {
		s.row(int(row)).detail = detail
	}
}
