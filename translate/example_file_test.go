package translate_test

import (
	"context"
	"fmt"
	"log"

	"apograph/ledger"
	"apograph/translate"
)

// A ledger file, or a snapshot of one, is all that a program needs: no cluster, no
// client, no apograph that runs. Of each topic the ledger knows the name on either
// side, so that questions are asked in the words of the side they come from.
func ExampleIndex() {
	l, err := ledger.Open("../testdata/ledgers/good.ledger", ledger.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	index, ctx := translate.NewIndex(l), context.Background()

	there, err := index.Forward(ctx, []translate.Query{
		{Topic: "orders", Partition: 1, Offset: 24}, // a transaction marker
		{Topic: "pay", Partition: 0, Offset: 18},    // retention was quicker than the copier
		{Topic: "audit", Partition: 0, Offset: 3},   // all is read
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range there {
		fmt.Println(a.SourceOffset, "->", a.Pair.TargetTopic, a.TargetOffset, a.Status)
	}
	back, err := index.Reverse(ctx, []translate.Query{{Topic: "a.orders", Partition: 1, Offset: 22}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(back[0].TargetOffset, "->", back[0].Pair.SourceTopic, back[0].SourceOffset, back[0].Status)
	// Output:
	// 24 -> a.orders 22 exact
	// 18 -> a.pay 8 lost
	// 3 -> a.audit 3 end
	// 22 -> orders 25 exact
}

// Where a consumer goes on after a failover: each partition at the answer for what
// it has committed, and nowhere at all where the answer is not exact, unless
// somebody has decided that.
func ExampleIndex_failover() {
	l, err := ledger.Open("../testdata/ledgers/good.ledger", ledger.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	committed := []translate.Query{{Topic: "orders", Partition: 0, Offset: 3}, {Topic: "orders", Partition: 1, Offset: 660}, {Topic: "orders", Partition: 2, Offset: 9}}
	answers, err := translate.NewIndex(l).Forward(context.Background(), committed)
	if err != nil {
		log.Fatal(err)
	}
	for i, a := range answers {
		if !a.Status.IsExact() {
			fmt.Printf("%s-%d: %s: %s\n", committed[i].Topic, committed[i].Partition, a.Status, a.Detail)
			continue
		}
		fmt.Printf("seek %s-%d to %d\n", a.Pair.TargetTopic, a.Pair.Partition, a.TargetOffset)
	}
	// Output:
	// seek a.orders-0 to 28
	// seek a.orders-1 to 600
	// orders-2: unknown: the ledger has no book with this source partition
}
