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

	targetEnd int64 // end of the target book, at the answer or later
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
	byPartition := make(map[partition][]int)
	var order []partition // in which they are first asked for, so that an error repeats
	for i, q := range queries {
		key := partition{q.Topic, q.Partition}
		if q.Offset < 0 {
			return nil, negative(key.String(), q.Offset)
		}
		if _, ok := byPartition[key]; !ok {
			order = append(order, key)
		}
		byPartition[key] = append(byPartition[key], i)
	}
	answers := make([]Answer, len(queries))
	for _, key := range order {
		if err := x.answerPartition(ctx, queries, byPartition[key], answers, pairs[key], d); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// answerPartition answers the queries with the given indexes, which are all for
// one partition, from the books of pair; the zero pair if there are none.
func (x *Index) answerPartition(ctx context.Context, queries []Query, indexes []int, answers []Answer, pair ledger.Pair, d direction) error {
	offsets := make([]int64, len(indexes))
	for i, index := range indexes {
		offsets[i] = queries[index].Offset
	}
	results, err := all(ctx, Books{x.ledger, pair.ID}, offsets, d)
	if err != nil {
		return err
	}
	for i, index := range indexes {
		answers[index] = Answer{Pair: pair, Result: results[i], targetEnd: x.ledger.Committed(pair.ID).Target}
		if pair.ID == 0 {
			answers[index].Detail = fmt.Sprintf("the ledger has no book with this %s partition", d.from)
		}
	}
	return nil
}
