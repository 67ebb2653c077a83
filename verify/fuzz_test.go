package verify

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"apograph/internal/canon"
)

// FuzzState gives state files that are intact, and hold anything, to the parser:
// what it takes is in order, survives being written, and fits no books that it is
// not about.
func FuzzState(f *testing.F) {
	sum := stretch{from: mark{0, 5}, to: mark{100, 95}, records: 90, digest: 7}
	made := newProof(&sum, time.Unix(1_700_000_000, 0))
	p := proven{ledgerID: "x", pairs: map[proofKey]pairState{}}
	for _, found := range []*found{nil, {Counts: Counts{Equal: 89, Missing: 1}, Findings: []Finding{{Kind: Missing, Fault: true, Source: one(3)}}, Moved: true}} {
		made.Found = found
		p.pairs[proofKey{Topic: "t", Mode: ModeFull}] = pairState{Key: proofKey{Topic: "t", Mode: ModeFull}, Proofs: []proof{made}}
		raw, err := p.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw[len(stateHead)+17:])
	}
	f.Add([]byte(`{"pairs":[{"proofs":[{"source_offsets":{"start":5,"end":3}}]}]}`))
	f.Add([]byte(`{"pairs":[{"proofs":[{"source_offsets":{"start":0,"end":9223372036854775807},"target_offsets":{"start":-1,"end":1}}]}]}`))
	f.Add([]byte(`null`))
	entries := randomEntries(rand.New(rand.NewPCG(1, 1)), 50)
	f.Fuzz(func(t *testing.T, body []byte) {
		d, ok := parseState(append(fmt.Appendf(nil, "%s%016x\n", stateHead, canon.Sum(body)), body...))
		if !ok {
			return
		}
		p := proven{ledgerID: d.LedgerID, commit: d.LastCommit.Time, pairs: map[proofKey]pairState{}}
		for _, s := range d.Pairs {
			p.pairs[s.Key] = s
			planner := newPlanner(grain{bytes: 2000, offsets: 50}, s.Proofs)
			for i := range entries {
				planner.add(&entries[i])
			}
			for i := range s.Proofs {
				if cells := planner.covered(&s.Proofs[i]); cells != nil && cells[0].from.source != s.Proofs[i].Source.Start {
					t.Errorf("proof %+v covers %v", s.Proofs[i], cells)
				}
			}
		}
		raw, err := p.encode()
		if err != nil {
			return // a time that JSON cannot hold
		}
		again, ok := parseState(raw)
		if !ok || len(again.Pairs) != len(p.pairs) {
			t.Fatalf("what was written is not read: %s", raw)
		}
		q := proven{ledgerID: again.LedgerID, commit: again.LastCommit.Time, pairs: map[proofKey]pairState{}}
		for _, s := range again.Pairs {
			q.pairs[s.Key] = s
		}
		if twice, err := q.encode(); err != nil || !bytes.Equal(twice, raw) {
			t.Errorf("error %v; written %s\nand read and written again %s", err, raw, twice)
		}
	})
}
