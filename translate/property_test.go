package translate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/ledger"
	"apograph/translate"
)

// propertySeed is fixed so that a failure repeats. gopter prints it with a failure.
const propertySeed = 20261129

// An answer is what the oracle says, and what of a result it can be compared
// with.
type answer struct {
	status   translate.Status
	offset   int64
	distance int64
	copiedTo int64
}

// forward is the definition of a translation, one offset at a time.
func (h *history) forward(offset int64) answer {
	want := answer{translate.End, h.targetEnd(), 0, h.sourceEnd()}
	for c := offset; c < h.sourceEnd(); c++ {
		if h.source[c].tile == ledger.Copied {
			want.status, want.offset = translate.Exact, h.source[c].target
			break
		}
	}
	switch {
	case offset > h.sourceEnd():
		want.status, want.distance = translate.BeyondCopied, offset-h.sourceEnd()
	case offset < h.scope:
		want.status, want.distance = translate.BeforeStart, h.scope-offset
	case h.isBad(offset):
		want.status = translate.Lost
		for c := offset; h.isBad(c); c++ {
			want.distance++
		}
	}
	return want
}

func (h *history) isBad(offset int64) bool {
	if offset >= h.sourceEnd() {
		return false
	}
	tile := h.source[offset].tile
	return tile == ledger.Lost || tile == ledger.Unexplained
}

// reverse is the definition of a translation back.
func (h *history) reverse(offset int64) answer {
	want := answer{translate.End, h.sourceEnd(), 0, h.sourceEnd()}
	for c := max(offset, h.base); c < h.targetEnd(); c++ {
		if source := h.target[c-h.base]; source >= 0 {
			want.status, want.offset = translate.Exact, source
			break
		}
	}
	switch {
	case offset > h.targetEnd():
		want.status, want.distance = translate.BeyondCopied, offset-h.targetEnd()
	case offset < h.base:
		want.status, want.distance = translate.BeforeStart, h.base-offset
	}
	return want
}

func forwardOf(r translate.Result) answer {
	return answer{r.Status, r.TargetOffset, r.Distance, r.CopiedTo}
}

func reverseOf(r translate.Result) answer {
	return answer{r.Status, r.SourceOffset, r.Distance, r.CopiedTo}
}

// beyond is how far behind the ends of the books offsets are asked for.
const beyond = 4

// checkAgainst compares every answer about a history with the oracle's, one by
// one, in a batch and in a reading in another order, some offsets twice.
func (h *history) checkAgainst(books translate.Books, order *rand.Rand) error {
	ways := []struct {
		name string
		end  int64
		one  func(translate.Books, int64) (translate.Result, error)
		all  func(context.Context, translate.Books, []int64) ([]translate.Result, error)
		want func(int64) answer
		got  func(translate.Result) answer
	}{
		{"Forward", h.sourceEnd(), translate.Forward, translate.ForwardAll, h.forward, forwardOf},
		{"Reverse", h.targetEnd(), translate.Reverse, translate.ReverseAll, h.reverse, reverseOf},
	}
	for _, way := range ways {
		var offsets []int64
		var answers []translate.Result // by offset
		for offset := range way.end + beyond {
			result, err := way.one(books, offset)
			if err != nil {
				return err
			}
			if got, want := way.got(result), way.want(offset); got != want {
				return fmt.Errorf("%s(%d) = %+v, want %+v", way.name, offset, got, want)
			}
			answers = append(answers, result)
			for range order.Intn(3) {
				offsets = append(offsets, offset)
			}
		}
		order.Shuffle(len(offsets), func(i, j int) { offsets[i], offsets[j] = offsets[j], offsets[i] })
		sorted, err := way.all(context.Background(), books, offsets)
		if err != nil {
			return err
		}
		unsorted, err := translate.InOrder(books, offsets, way.name == "Reverse")
		if err != nil {
			return err
		}
		for i, offset := range offsets {
			if one := answers[offset]; sorted[i] != one || unsorted[i] != one {
				return fmt.Errorf("%s(%d) = %+v, but %+v in a batch and %+v in a reading", way.name, offset, one, sorted[i], unsorted[i])
			}
		}
	}
	return nil
}

// checkIndex asks by name, where the open generation has the answers, and asks
// the closed ones, which have none.
func (h *history) checkIndex(books translate.Books) error {
	index := translate.NewIndex(books.Ledger)
	var forward, reverse []translate.Query
	for offset := range h.sourceEnd() + beyond {
		forward = append(forward, translate.Query{Topic: "orders", Offset: offset})
	}
	for offset := range h.targetEnd() + beyond {
		reverse = append(reverse, translate.Query{Topic: "b.orders", Offset: offset})
	}
	answers, err := index.Forward(context.Background(), forward)
	if err != nil {
		return err
	}
	for i, query := range forward {
		if got, want := forwardOf(answers[i].Result), h.forward(query.Offset); got != want || answers[i].Pair.ID != books.Pair {
			return fmt.Errorf("forward by name: %+v: %+v, want %+v", query, answers[i], want)
		}
	}
	if answers, err = index.Reverse(context.Background(), reverse); err != nil {
		return err
	}
	for i, query := range reverse {
		if got, want := reverseOf(answers[i].Result), h.reverse(query.Offset); got != want || answers[i].Pair.ID != books.Pair {
			return fmt.Errorf("reverse by name: %+v: %+v, want %+v", query, answers[i], want)
		}
	}
	for _, pair := range books.Ledger.Pairs() {
		closed := translate.Books{Ledger: books.Ledger, Pair: pair.ID}
		r, err := translate.Forward(closed, h.scope)
		if pair.Closed != nil && (err != nil || r.Status != translate.Unknown || r.TargetOffset != translate.NoOffset) {
			return fmt.Errorf("closed generation %d: %+v, %v", pair.Generation, r, err)
		}
	}
	return nil
}

// checkLaws holds what must be so whatever the history.
func (h *history) checkLaws(books translate.Books) error {
	last := int64(-1)
	for offset := range h.sourceEnd() + beyond {
		forward, err := translate.Forward(books, offset)
		if err != nil {
			return err
		}
		x := forward.TargetOffset
		switch {
		case x < last:
			return fmt.Errorf("not monotone: Forward(%d) = %d, after %d", offset, x, last)
		case x < h.base || x > h.targetEnd():
			return fmt.Errorf("Forward(%d) = %d is not in [%d, %d]", offset, x, h.base, h.targetEnd())
		case x < h.targetEnd() && h.target[x-h.base] < 0:
			return fmt.Errorf("Forward(%d) = %d is a note", offset, x)
		}
		last = x
		back, err := translate.Reverse(books, x)
		if err != nil {
			return err
		}
		first := offset
		for first < h.sourceEnd() && h.source[first].tile != ledger.Copied {
			first++
		}
		if forward.Status == translate.Exact && (back.Status != translate.Exact || back.SourceOffset != first) {
			return fmt.Errorf("Reverse(Forward(%d)) = %+v, want exact %d", offset, back, first)
		}
	}
	return nil
}

func TestAgainstModel(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(propertySeed)
	parameters.MinSuccessfulTests = 150
	parameters.MaxSize = 60
	order := rand.New(rand.NewSource(propertySeed))
	properties := gopter.NewProperties(parameters)
	properties.Property("every offset in both directions", prop.ForAll(
		func(numbers []uint32) (string, error) {
			h := decode(numbers)
			return "", h.withLedger(func(books translate.Books) error {
				return errors.Join(h.checkAgainst(books, order), h.checkIndex(books), h.checkLaws(books))
			})
		},
		gen.SliceOf(gen.UInt32()),
	))
	properties.TestingRun(t)
}

// TestAgainstModelOverManyPages is the same over histories that fill pages, so
// that searches find them in the file, and cursors read ahead.
func TestAgainstModelOverManyPages(t *testing.T) {
	for seed := range int64(2) {
		rng := rand.New(rand.NewSource(propertySeed + seed))
		numbers := make([]uint32, 700)
		for i := range numbers {
			numbers[i] = rng.Uint32()
			if rng.Intn(40) == 0 {
				// A stretch of one kind, of which cursors make the most.
				for j := i; j > max(0, i-100); j-- {
					numbers[j] = numbers[i]
				}
			}
		}
		h := decode(numbers)
		err := h.withLedger(func(books translate.Books) error {
			return errors.Join(h.checkAgainst(books, rng), h.checkIndex(books), h.checkLaws(books))
		})
		if err != nil {
			t.Errorf("seed %d: %v", propertySeed+seed, err)
		}
	}
}
