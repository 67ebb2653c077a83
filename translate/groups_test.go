package translate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"apograph/internal/groups"
	"apograph/translate"
)

// TestSelect chooses what has a book, in order, and says what it leaves out.
func TestSelect(t *testing.T) {
	index := translate.NewIndex(mustGenerations(t))
	group := translate.GroupOffsets{
		Group: groups.Group{ID: "g", Kind: groups.Classic, State: "Empty"},
		Offsets: groups.Offsets{At: map[groups.Partition]groups.Offset{
			{Topic: "orders", Number: 10}:  {At: 0, Metadata: "ten"},  // a partition without a book, of a topic that has one
			{Topic: "orders", Number: 2}:   {At: 1, Metadata: "two"},  // copied
			{Topic: "orders", Number: 1}:   {At: 2},                   // closed
			{Topic: "orders", Number: 0}:   {At: -1},                  // nothing committed
			{Topic: "old", Number: 2}:      {At: 3},                   // only ever closed
			{Topic: "a.b-c", Number: 0}:    {At: 0, Metadata: "zero"}, // zero is an offset
			{Topic: "other", Number: 0}:    {At: 5},
			{Topic: "other", Number: 1}:    {At: -1},
			{Topic: "b.orders", Number: 0}: {At: 1}, // a topic of the target
		}},
	}
	tests := []struct {
		reverse           bool
		rows, null, other []string
	}{
		{
			rows:  []string{"a.b-c-0 0 zero", "old-2 3 ", "orders-1 2 ", "orders-2 1 two", "orders-10 0 ten"},
			null:  []string{"orders-0"},
			other: []string{"b.orders", "other"},
		},
		{
			reverse: true,
			rows:    []string{"a.b-c-0 0 zero", "b.orders-0 1 "},
			other:   []string{"old", "orders", "other"},
		},
	}
	for _, tt := range tests {
		got := index.Select(group, tt.reverse)
		var rows, null []string
		for _, x := range got.Transfers {
			if x.Group != "g" || x.TargetCommitted != translate.NoOffset || x.Decision.Action != groups.None {
				t.Errorf("%+v", x)
			}
			rows = append(rows, fmt.Sprintf("%s-%d %d %s", x.Topic, x.Partition, x.Offset, x.Metadata))
		}
		for _, p := range got.Null {
			null = append(null, p.String())
		}
		if !slices.Equal(rows, tt.rows) || !slices.Equal(null, tt.null) || !slices.Equal(got.NoBook, tt.other) {
			t.Errorf("reverse %t: %q, null %q, no book %q", tt.reverse, rows, null, got.NoBook)
		}
		if err := index.Translate(t.Context(), got.Transfers, tt.reverse); err != nil {
			t.Error(err)
		}
		if x := got.Transfers[0]; x.Status != translate.Exact || x.TargetOffset != 0 && !tt.reverse {
			t.Errorf("reverse %t: %+v", tt.reverse, x)
		}
	}
}

// TestTranslateTransfersRefused: the errors are those of queries.
func TestTranslateTransfersRefused(t *testing.T) {
	index := translate.NewIndex(mustGenerations(t))
	transfers := []translate.Transfer{translate.NewTransfer(translate.PlanRow{Group: "g", Query: translate.Query{Topic: "orders", Offset: -1}}, "")}
	err := index.Translate(t.Context(), transfers, false)
	if !errors.Is(err, translate.ErrNegativeOffset) || !strings.Contains(err.Error(), "orders-0") {
		t.Errorf("%v", err)
	}
}
