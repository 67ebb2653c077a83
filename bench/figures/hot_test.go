package figures_test

import (
	"strings"
	"testing"

	"apograph/bench/figures"
)

func TestHot(t *testing.T) {
	got, err := figures.Hot(strings.NewReader(`goos: linux
pkg: apograph/internal/recordbatch
cpu: one
,bin/bench.txt,
,sec/op,CI
Parse-2,3.083e-07,49%
Walk/record=100-16,0.00008474,0%
geomean,5e-06,

,bin/bench.txt,
,B/s,CI
Walk/record=100-16,1.2e+09,3%
geomean,1e9,

pkg: apograph/ledger
,bin/bench.txt,
,allocs/op,CI
Find-2,11,0%
geomean,,
`))
	want := "| function | time | MB/s | allocations |\n| --- | --- | --- | --- |\n" +
		"| recordbatch.Parse | 308 ns ± 49% |  |  |\n" +
		"| recordbatch.Walk/record=100 | 84.7 us | 1200 ± 3% |  |\n" +
		"| ledger.Find |  |  | 11 |\n"
	if err != nil || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	if _, err := figures.Hot(strings.NewReader("pkg: a\n,sec/op,CI\nParse-2,fast,1%\n")); err == nil {
		t.Error("a word is a number")
	}
}
