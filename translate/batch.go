package translate

import (
	"cmp"
	"context"
	"slices"
)

// ForwardAll is [Forward] for many offsets of one pair: it returns their
// answers in the order of offsets, all as of the same commit. It reads each
// part of the ledger that it needs about once, whatever that order is.
//
// The error is that of the first offset that cannot be translated, or the cause
// of the end of ctx; there are no answers then.
func ForwardAll(ctx context.Context, b Books, offsets []int64) ([]Result, error) {
	return all(ctx, b, offsets, forwards())
}

// ReverseAll is [Reverse] for many offsets of one pair, as [ForwardAll].
func ReverseAll(ctx context.Context, b Books, offsets []int64) ([]Result, error) {
	return all(ctx, b, offsets, backwards())
}

// batchSize is how many offsets are translated between two looks at whether the
// caller still wants them.
const batchSize = 1024

// A question is an offset and its index in the order asked.
type question struct {
	offset int64
	index  int
}

func all(ctx context.Context, b Books, offsets []int64, d direction) ([]Result, error) {
	questions := make([]question, len(offsets))
	for i, offset := range offsets {
		if offset < 0 {
			return nil, negative(b.String(), offset)
		}
		questions[i] = question{offset, i}
	}
	results := make([]Result, len(offsets))
	var s reading
	err := s.answerAll(ctx, b, questions, d, func(i int, r Result) { results[i] = r })
	if err != nil {
		return nil, err
	}
	return results, nil
}

// answerAll answers questions about a pair, which it sorts, and hands over each
// answer with the index of its question. It reads the books anew, with the memory
// of what s read before.
func (s *reading) answerAll(ctx context.Context, b Books, questions []question, d direction, take func(int, Result)) error {
	why, err := s.open(b)
	if err != nil {
		return err
	}
	if why != "" {
		for _, q := range questions {
			take(q.index, d.unknown(q.offset, why))
		}
		return nil
	}
	slices.SortFunc(questions, func(a, b question) int { return cmp.Compare(a.offset, b.offset) })
	for batch := range slices.Chunk(questions, batchSize) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := s.answer(batch, d, take); err != nil {
			return err
		}
	}
	return nil
}

// answer translates questions, which ascend, and hands over the answers.
func (s *reading) answer(questions []question, d direction, take func(int, Result)) error {
	for _, q := range questions {
		r, err := d.translate(s, q.offset)
		if err != nil {
			return s.located(d, q.offset, err)
		}
		take(q.index, r)
	}
	return nil
}
