package mm2_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestBeats: over all flows of a file, each pair with a worker is written once, and
// by a flow that is connected to its target.
func TestBeats(t *testing.T) {
	tests := []struct {
		name, lines string
		want        []string // flow: pairs
	}{
		{"one way", "clusters=A,B\nA->B.enabled=true", []string{"A->B: A->B B->A"}},
		{"both ways", "clusters=A,B\nA->B.enabled=true\nB->A.enabled=true", []string{"A->B: A->B", "B->A: B->A"}},
		{"not back", "clusters=A,B\nA->B.enabled=true\nB->A.emit.heartbeats.enabled=false", []string{"A->B: A->B"}},
		{"off", "clusters=A,B\nA->B.enabled=true\nemit.heartbeats.enabled=false", []string{"A->B: A->B"}},
		{"out", "clusters=A,B,C\nA->B.enabled=true\nA->C.enabled=true", []string{"A->B: A->B B->A C->A C->B", "A->C: A->C B->C"}},
		{"in", "clusters=A,B,C\nA->C.enabled=true\nB->C.enabled=true", []string{"A->C: A->C B->A C->A", "B->C: A->B B->C C->B"}},
		{"one that nobody copies", "clusters=A,B,C\nA->B.enabled=true", []string{"A->B: A->B B->A C->A C->B"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.lines
			for _, alias := range []string{"A", "B", "C"} {
				text += "\n" + alias + ".bootstrap.servers=h:1"
			}
			c := parseText(t, text)
			var got []string
			for _, f := range c.Flows() {
				beats := c.Beats(f)
				if beats[0].Pair() != f.Pair() {
					t.Errorf("the first of %v is %v", f, beats[0])
				}
				var names []string
				for _, b := range beats {
					names = append(names, b.String())
				}
				slices.Sort(names)
				got = append(got, fmt.Sprintf("%v: %s", f, strings.Join(names, " ")))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
