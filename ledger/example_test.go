package ledger_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"apograph/ledger"
)

// A copier books what the target has acknowledged, and anybody can ask
// afterwards where a record went, and why an offset was not copied.
func Example() {
	directory, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(directory)
	flow := ledger.Identity{SourceAlias: "a", TargetAlias: "b"}
	l, err := ledger.Create(filepath.Join(directory, "a-to-b.ledger"), flow, ledger.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ids, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "orders", TargetTopic: "orders", TargetBase: 500}})
	if err != nil {
		log.Fatal(err)
	}
	// Three records, with a transaction marker behind the second one, and then
	// ten offsets that retention took away.
	digest := ledger.Digest(0).Add(0x70df2e0068babe74).Add(0x9a3d48a0d26d4f9c).Add(0xc517aa167e641640)
	err = l.Append(ids[0],
		ledger.Entry{
			Tile:   ledger.Copied,
			Source: ledger.Range{Start: 0, End: 4}, Target: ledger.Range{Start: 500, End: 503},
			Gaps:  []ledger.Gap{{Tile: ledger.CommitMarker, Range: ledger.Range{Start: 2, End: 3}}},
			Bytes: 88, Digest: digest,
		},
		ledger.Entry{
			Tile:   ledger.Lost,
			Source: ledger.Range{Start: 4, End: 14}, Target: ledger.Range{Start: 503, End: 503},
			Cause: ledger.CauseRetention,
		})
	if err != nil {
		log.Fatal(err)
	}
	if err := l.Commit(); err != nil {
		log.Fatal(err)
	}

	e, err := l.FindSource(ids[0], 3)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("source offset 3 is target offset", e.TargetOf(3))
	for e, err := range l.Entries(ids[0], 0) {
		if err != nil {
			log.Fatal(err)
		}
		for r := range e.Runs() {
			fmt.Println(r.Source, r.Tile)
		}
	}
	// Output:
	// source offset 3 is target offset 502
	// [0, 2) copied
	// [2, 3) commit_marker
	// [3, 4) copied
	// [4, 14) lost
}
