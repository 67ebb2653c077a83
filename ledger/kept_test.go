package ledger

import (
	"slices"
	"testing"
)

func mustLift(t testing.TB, l *Ledger, reasons ...string) {
	t.Helper()
	if err := l.LiftStop("t", 0, reasons...); err != nil {
		t.Fatal(err)
	}
}

// TestStopsKeepWhatStaysTrue goes through stops of one partition: what the ledger
// says then, in memory and in the file, and what each of the words is held to be.
func TestStopsKeepWhatStaysTrue(t *testing.T) {
	l := mustCreate(t)
	stop := func(reason string, offset int64) func() {
		return func() { mustStop(t, l, Stop{SourceTopic: "t", Offset: offset, Reason: reason}) }
	}
	lift := func(reasons ...string) func() { return func() { mustLift(t, l, reasons...) } }
	for i, step := range []struct {
		do     func()
		reason string // shown; "": there is no stop
		offset int64
		holds  []string
		cut    int64 // -2: none
	}{
		{stop("unavailable", 5), "unavailable", 5, nil, -2},
		{stop(Fenced, 5), Fenced, 5, []string{Fenced}, -2},
		{stop("paused", 6), "paused", 6, []string{Fenced}, -2},
		{stop(SourceTruncated, 3), SourceTruncated, 3, []string{SourceTruncated, Fenced}, 3},
		{stop("paused", 7), "paused", 7, []string{SourceTruncated, Fenced}, 3},
		{stop(ForeignWriter, 7), ForeignWriter, 7, []string{ForeignWriter, SourceTruncated, Fenced}, 3},
		{stop(TargetLostRecords, 7), TargetLostRecords, 7, []string{ForeignWriter, SourceTruncated, TargetLostRecords, Fenced}, 3},
		{stop("unavailable", 8), "unavailable", 8, []string{ForeignWriter, SourceTruncated, TargetLostRecords, Fenced}, 3},
		{lift("paused", ForeignWriter), "unavailable", 8, []string{SourceTruncated, TargetLostRecords, Fenced}, 3},
		{lift("unavailable"), SourceTruncated, 3, []string{SourceTruncated, TargetLostRecords, Fenced}, 3},
		{stop(SourceTruncated, -1), SourceTruncated, -1, []string{SourceTruncated, TargetLostRecords, Fenced}, -1},
		{stop("paused", 8), "paused", 8, []string{SourceTruncated, TargetLostRecords, Fenced}, -1},
		{lift(SourceTruncated, "paused"), TargetLostRecords, 8, []string{TargetLostRecords, Fenced}, -2},
		{lift(TargetLostRecords), Fenced, 8, []string{Fenced}, -2},
		{lift(Fenced), "", 0, nil, -2},
		{stop(ForeignWriter, 9), ForeignWriter, 9, []string{ForeignWriter}, -2},
		{stop("paused", 9), "paused", 9, []string{ForeignWriter}, -2},
		{func() { mustClear(t, l, "t", 0) }, "", 0, nil, -2},
		{stop("paused", 9), "paused", 9, nil, -2},
	} {
		step.do()
		mustCommit(t, l)
		l = reopen(t, l)
		mustCheckFile(t, copyOf(t, l.path))
		s, ok := l.Stop("t", 0)
		if ok != (step.reason != "") || s.Reason != step.reason || s.Offset != step.offset {
			t.Errorf("step %d: %+v, want %q at %d", i, s, step.reason, step.offset)
		}
		for _, word := range []string{ForeignWriter, SourceTruncated, TargetLostRecords, Fenced} {
			if s.Holds(word) != slices.Contains(step.holds, word) {
				t.Errorf("step %d: %s holds: %v", i, word, s.Holds(word))
			}
		}
		if at, cut := s.Truncated(); cut != (step.cut > -2) || cut && at != step.cut {
			t.Errorf("step %d: cut at %d, %v, want %d", i, at, cut, step.cut)
		}
	}
}

// TestKeptReasonsLiftTheFormat: an older version would not see them.
func TestKeptReasonsLiftTheFormat(t *testing.T) {
	l := mustOpen(t, copyOfFormat(t, formatFlow))
	mustStop(t, l, Stop{SourceTopic: "t", Reason: ForeignWriter})
	mustCommit(t, l)
	if got := l.Identity().Format; got != formatFlow {
		t.Errorf("format %d for a stop that keeps nothing", got)
	}
	mustStop(t, l, Stop{SourceTopic: "t", Reason: "paused"})
	mustCommit(t, l)
	l = reopen(t, l)
	if s, _ := l.Stop("t", 0); l.Identity().Format != format || !s.Holds(ForeignWriter) {
		t.Errorf("format %d, stop %+v", l.Identity().Format, s)
	}
	mustCheckFile(t, copyOf(t, l.path))
}

// TestStopsThatCannotKeep what they say they do are damage.
func TestStopsThatCannotKeep(t *testing.T) {
	key := partitionKey(partition{"t", 0})
	for name, s := range map[string]Stop{
		"its own reason":      {Reason: ForeignWriter, Kept: keptOf(ForeignWriter)},
		"an unknown one":      {Reason: "paused", Kept: keptKnown + 1},
		"a cut below nowhere": {Reason: "paused", Kept: keptTruncated, CutAt: -2},
	} {
		if got, err := decodeStop(key, stopValue(key, &s)[checksumSize:]); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
