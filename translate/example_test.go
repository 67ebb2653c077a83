package translate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"apograph/ledger"
	"apograph/translate"
)

// exampleLedger makes a ledger of one partition of orders, which is called
// b.orders on the target. Its scope starts at source offset 100. Records 100 to
// 102 are one transaction, 104 to 106 another one that was aborted, and 108 is
// one more record; 109 to 118 retention has removed before they were copied.
func exampleLedger() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	path = filepath.Join(dir, "a-to-b.ledger")
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b"}, ledger.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	h := newHistory(100, 0).copied("rrrcxxxar", 0).absent(ledger.Lost, 10).copied("r", 0)
	if _, err := h.book(l, 0); err != nil {
		log.Fatal(err)
	}
	return path, func() { os.RemoveAll(dir) }
}

// A ledger file is all that is needed: the clusters may be switched off. It is
// opened for reading only, and soon closed, as nobody can open it for writing
// meanwhile.
func Example() {
	path, remove := exampleLedger()
	defer remove()

	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	answers, err := translate.NewIndex(l).Forward(context.Background(), []translate.Query{
		{Topic: "orders", Partition: 0, Offset: 105},
		{Topic: "orders", Partition: 0, Offset: 120},
		{Topic: "orders", Partition: 0, Offset: 125},
		{Topic: "orders", Partition: 9, Offset: 105},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range answers {
		fmt.Printf("%d -> %q %d %s %q\n", a.SourceOffset, a.Pair.TargetTopic, a.TargetOffset, a.Status, a.Detail)
	}
	// Output:
	// 105 -> "b.orders" 3 exact ""
	// 120 -> "b.orders" 5 end ""
	// 125 -> "b.orders" 5 beyond_copied "the source book ends at offset 120"
	// 105 -> "" -1 unknown "the ledger has no book with this source partition"
}

func ExampleForward() {
	path, remove := exampleLedger()
	defer remove()
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	books := translate.Books{Ledger: l, Pair: l.Pairs()[0].ID}
	for _, committed := range []int64{90, 103, 112} {
		r, err := translate.Forward(books, committed)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d -> %d %s %d %q\n", committed, r.TargetOffset, r.Status, r.Distance, r.Detail)
	}
	// Output:
	// 90 -> 0 before_start 10 "the scope starts at source offset 100"
	// 103 -> 3 exact 0 ""
	// 112 -> 4 lost 7 "source offsets [112, 119) were never copied; 112 is lost (retention)"
}

func ExampleReverse() {
	path, remove := exampleLedger()
	defer remove()
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	books := translate.Books{Ledger: l, Pair: l.Pairs()[0].ID}
	for _, committed := range []int64{2, 3, 5} {
		r, err := translate.Reverse(books, committed)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(committed, "->", r.SourceOffset, r.Status)
	}
	// Output:
	// 2 -> 102 exact
	// 3 -> 108 exact
	// 5 -> 120 end
}

func ExampleForwardAll() {
	path, remove := exampleLedger()
	defer remove()
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	books := translate.Books{Ledger: l, Pair: l.Pairs()[0].ID}
	results, err := translate.ForwardAll(context.Background(), books, []int64{119, 101, 108})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.SourceOffset, "->", r.TargetOffset)
	}
	// Output:
	// 119 -> 4
	// 101 -> 1
	// 108 -> 3
}

// What `kafka-consumer-groups --reset-offsets --export` has written becomes
// what --from-file reads on the other cluster.
func ExampleReadResetPlan() {
	path, remove := exampleLedger()
	defer remove()
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	exported := "billing,orders,0,105\nnightly report,orders,0,120\n"
	plan, err := translate.ReadResetPlan(strings.NewReader(exported))
	if err != nil {
		log.Fatal(err)
	}
	queries := make([]translate.Query, len(plan.Rows))
	for i, row := range plan.Rows {
		queries[i] = row.Query
	}
	answers, err := translate.NewIndex(l).Forward(context.Background(), queries)
	if err != nil {
		log.Fatal(err)
	}
	for i, a := range answers {
		if !a.Status.IsExact() {
			log.Fatal(a.Detail)
		}
		plan.Rows[i].Topic, plan.Rows[i].Offset = a.Pair.TargetTopic, a.TargetOffset
	}
	if err := plan.WriteCSV(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// billing,b.orders,0,3
	// "nightly report",b.orders,0,5
}
