package verify_test

import (
	"testing"

	"apograph/internal/kafkatest"
	"apograph/verify"
)

// TestCleanCopies verifies copies with which nothing is wrong.
func TestCleanCopies(t *testing.T) {
	for seed := range uint64(3) {
		f := newFlow(t, seed)
		f.must(kafkatest.Load{Seed: seed, Topics: []string{"mixed", "more"}, Partitions: 3, Records: 600}.Run(f.ctx, f.pair.Source.Bootstrap))
		f.must(f.pair.Source.CreateTopic(f.ctx, "empty", 2, nil))
		f.copy(nil, "mixed", "more", "empty")
		for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget, verify.ModeBooks} {
			for _, until := range []verify.Until{verify.UntilSourceEnd, verify.UntilBook} {
				report := f.verify(mode, func(c *verify.Config) { c.Until = until })
				expect(t, report, verify.Complete, "")
				f.compareCounts(report)
			}
		}
	}
}

// compareCounts compares a report of a clean copy with what the oracle counts
// on the source.
func (f *flow) compareCounts(report *verify.Report) {
	f.t.Helper()
	for i := range report.Partitions {
		p := &report.Partitions[i]
		var want verify.Counts
		for _, tile := range f.source.MustSourceTiles(f.t, p.Topic, p.Partition) {
			n := tile.End - tile.Start
			want.SourceOffsets += n
			switch tile.Fate {
			case kafkatest.Committed:
				want.Copied += n
			case kafkatest.CommitMarker:
				want.CommitMarkers += n
			case kafkatest.AbortMarker:
				want.AbortMarkers += n
			case kafkatest.Aborted:
				want.Aborted += n
			default:
				f.t.Fatalf("%s-%d holds %v at %d", p.Topic, p.Partition, tile.Fate, tile.Start)
			}
		}
		want.Equal = want.Copied
		if report.Mode == verify.ModeBooks {
			want.Equal, want.NotVerified = 0, want.Copied
		}
		if p.Counts != want {
			f.t.Errorf("mode %s: counts of %s-%d are %+v, want %+v", report.Mode, p.Topic, p.Partition, p.Counts, want)
		}
	}
}
