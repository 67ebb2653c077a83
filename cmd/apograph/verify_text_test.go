package main

import (
	"fmt"
	"strings"
	"testing"

	"apograph/verify"
)

// TestVerifyText: of findings that are no faults the first few of each kind are
// shown, all others are, and those that are not are counted.
func TestVerifyText(t *testing.T) {
	r := &verify.Report{}
	add := func(n int, f verify.Finding) {
		for i := range n {
			f.Source = &verify.Range{Start: int64(i), End: int64(i) + 1}
			r.Findings = append(r.Findings, f)
		}
	}
	add(25, verify.Finding{Kind: verify.Duplicate, Topic: "t"})
	add(10, verify.Finding{Kind: verify.NotVerified, Reason: verify.Retention, Topic: "t"})
	add(11, verify.Finding{Kind: verify.NotVerified, Reason: verify.Moving, Topic: "t"})
	add(25, verify.Finding{Kind: verify.Duplicate, Fault: true, Topic: "t"})
	add(12, verify.Finding{Kind: verify.Lost, Topic: "t", Accepted: &verify.Accepted{}})
	got := map[string]int{}
	var rest []string
	for _, row := range verifyFindings(r).rows {
		if row[1] == "-" {
			rest = append(rest, row[0]+" "+row[5])
			continue
		}
		got[row[0]]++
	}
	want := map[string]int{"named duplicate": 10, "not verified: retention": 10, "not verified: moving": 10, "duplicate": 25, "accepted: lost": 12}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rows %v, want %v", got, want)
	}
	if text := strings.Join(rest, "; "); !strings.Contains(text, "named duplicate and 15 more") || !strings.Contains(text, "moving and 1 more") || len(rest) != 2 {
		t.Errorf("of the rest it says %q", text)
	}
}

// TestBesideText: where others wrote is told of a few partitions.
func TestBesideText(t *testing.T) {
	at := func(start, end int64) verify.Range { return verify.Range{Start: start, End: end} }
	r := &verify.Report{}
	if text := besideText(r); text != "" {
		t.Errorf("of nothing it says %q", text)
	}
	r.Beside = []verify.Beside{{Topic: "a", Offsets: 20, First: []verify.Range{at(3, 4), at(6, 8)}}, {Topic: "b", Offsets: 2, First: []verify.Range{at(0, 2)}}}
	if text, want := besideText(r), "holds 22 records or transaction markers that others wrote, at a-0 3 [6, 8) and 17 more, b-0 [0, 2). "; !strings.Contains(text, want) {
		t.Errorf("it says %q, want %q", text, want)
	}
	for p := range int32(5) {
		r.Beside = append(r.Beside, verify.Beside{Topic: "c", Partition: p, Offsets: 1, First: []verify.Range{at(0, 1)}})
	}
	if text, want := besideText(r), "holds 27 records or transaction markers that others wrote, at a-0 3 [6, 8) and 17 more, b-0 [0, 2), c-0 0, and in 4 partitions more. "; !strings.Contains(text, want) {
		t.Errorf("it says %q, want %q", text, want)
	}
}
