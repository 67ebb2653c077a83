package translate_test

import (
	"math"
	"strings"
	"testing"

	"apograph/ledger"
	"apograph/translate"
)

// mustGenerations returns a ledger in which
//
//	orders-0  is closed, open again, and copied to b.orders-0
//	orders-1  is closed
//	old-2     was copied to b.orders-2, and is closed
//	orders-2  is copied to b.orders-2 now
//	a.b-c-0   is copied to its own name
func mustGenerations(t *testing.T) *ledger.Ledger {
	t.Helper()
	l := mustCreate(t)
	for _, partition := range []int32{0, 1} {
		books := newHistory(0, 0).copied("rrr", 0).mustBook(t, l, partition)
		mustClose(t, l, books.Pair)
	}
	newHistory(0, 3).copied("r-r", 0).mustBook(t, l, 0)
	mustOpen(t, l, ledger.Pair{SourceTopic: "old", TargetTopic: "b.orders", Partition: 2}, "rrrr", true)
	mustOpen(t, l, ledger.Pair{SourceTopic: "orders", TargetTopic: "b.orders", Partition: 2, TargetBase: 4}, "rr", false)
	mustOpen(t, l, ledger.Pair{SourceTopic: "a.b-c", TargetTopic: "a.b-c"}, "-r", false)
	return l
}

func mustClose(t *testing.T, l *ledger.Ledger, id ledger.PairID) {
	t.Helper()
	if err := l.ClosePair(id, ledger.Closing{Reason: "topic_recreated"}); err != nil {
		t.Fatal(err)
	}
}

// mustOpen opens a pair and books a plan of [history.copied] in it.
func mustOpen(t *testing.T, l *ledger.Ledger, pair ledger.Pair, plan string, closed bool) {
	t.Helper()
	ids, err := l.OpenPairs([]ledger.Pair{pair})
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory(pair.ScopeStart, pair.TargetBase).copied(plan, 0)
	if err := l.Append(ids[0], h.steps[0].entry); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	if closed {
		mustClose(t, l, ids[0])
	}
}

// A named is what of an answer the tests compare.
type named struct {
	topic      string // on the other side
	generation int32
	status     translate.Status
	offset     int64
}

func TestIndex(t *testing.T) {
	index := translate.NewIndex(mustGenerations(t))
	query := func(topic string, partition int32, offset int64) translate.Query {
		return translate.Query{Topic: topic, Partition: partition, Offset: offset}
	}
	tests := []struct {
		name    string
		reverse bool
		query   translate.Query
		want    named
	}{
		{"the open generation answers", false, query("orders", 0, 1), named{"b.orders", 2, translate.Exact, 4}},
		{"the same partition again", false, query("orders", 0, 3), named{"b.orders", 2, translate.End, 5}},
		{"a closed generation has no answer", false, query("orders", 1, 1), named{"b.orders", 1, translate.Unknown, -1}},
		{"of two topics with one target the open one", false, query("orders", 2, 1), named{"b.orders", 1, translate.Exact, 5}},
		{"and not the closed one", false, query("old", 2, 1), named{"b.orders", 1, translate.Unknown, -1}},
		{"dots and dashes", false, query("a.b-c", 0, 0), named{"a.b-c", 1, translate.Exact, 0}},
		{"no such topic", false, query("pay", 0, 0), named{"", 0, translate.Unknown, -1}},
		{"no such partition", false, query("orders", 7, 0), named{"", 0, translate.Unknown, -1}},
		{"names of the target are none of the source", false, query("b.orders", 0, 0), named{"", 0, translate.Unknown, -1}},
		{"back", true, query("b.orders", 0, 4), named{"orders", 2, translate.Exact, 2}},
		{"back below the open generation", true, query("b.orders", 0, 1), named{"orders", 2, translate.BeforeStart, 0}},
		{"back to a closed generation", true, query("b.orders", 1, 1), named{"orders", 1, translate.Unknown, -1}},
		{"back to the topic that is copied now", true, query("b.orders", 2, 5), named{"orders", 1, translate.Exact, 1}},
		{"back by the name of the source", true, query("orders", 0, 4), named{"", 0, translate.Unknown, -1}},
	}
	var queries [2][]translate.Query // forward, reverse
	for _, tt := range tests {
		queries[way(tt.reverse)] = append(queries[way(tt.reverse)], tt.query)
	}
	forward, err := index.Forward(t.Context(), queries[0])
	if err != nil {
		t.Fatal(err)
	}
	reverse, err := index.Reverse(t.Context(), queries[1])
	if err != nil {
		t.Fatal(err)
	}
	answers := [2][]translate.Answer{forward, reverse}
	for _, tt := range tests {
		// Answers come in the order of queries.
		rest := &answers[way(tt.reverse)]
		got := (*rest)[0]
		*rest = (*rest)[1:]
		asked, other, offset := got.SourceOffset, got.Pair.TargetTopic, got.TargetOffset
		if tt.reverse {
			asked, other, offset = got.TargetOffset, got.Pair.SourceTopic, got.SourceOffset
		}
		result := named{other, got.Pair.Generation, got.Status, offset}
		if result != tt.want || asked != tt.query.Offset || (got.Detail == "") != got.Status.IsExact() {
			t.Errorf("%s: %+v: %+v of %d (%s), want %+v", tt.name, tt.query, result, asked, got.Detail, tt.want)
		}
	}
}

func way(reverse bool) int {
	if reverse {
		return 1
	}
	return 0
}

func TestParseQuery(t *testing.T) {
	tests := map[string]translate.Query{
		"orders:0:881204":                       {Topic: "orders", Partition: 0, Offset: 881204},
		"a.b-c_D9:12:0":                         {Topic: "a.b-c_D9", Partition: 12, Offset: 0},
		"orders:2147483647:9223372036854775807": {Topic: "orders", Partition: math.MaxInt32, Offset: math.MaxInt64},
		"orders:007:0010":                       {Topic: "orders", Partition: 7, Offset: 10},
		"__consumer_offsets:0:1":                {Topic: "__consumer_offsets", Partition: 0, Offset: 1},
		strings.Repeat("x", 249) + ":0:1":       {Topic: strings.Repeat("x", 249), Partition: 0, Offset: 1},
		"-orders:0:1":                           {Topic: "-orders", Partition: 0, Offset: 1},
	}
	for text, want := range tests {
		if got, err := translate.ParseQuery(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		strings.Repeat("x", 250) + ":0:5", "", "orders", "orders:0", "orders:0:", ":0:5", "orders::5", "orders:0:5:6", "a:orders:0:5", "orders-0:5",
		"orders:0:-1", "orders:-1:0", "orders:0:5.0", "orders:0:1e3", "orders:0:0x5", "orders:0:1_000", "orders:0:latest",
		"orders:2147483648:0", "orders:0:9223372036854775808", "ord*:0:5", ".:0:5", "..:0:5", "or ders:0:5", "ördrar:0:5",
	} {
		if got, err := translate.ParseQuery(text); err == nil {
			t.Errorf("%q: %+v, want an error", text, got)
		}
	}
}
