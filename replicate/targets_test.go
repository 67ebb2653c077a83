package replicate_test

import (
	"testing"

	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// TestIdlePartitionNoticesItsTarget: what befalls the target is noticed although
// there is nothing to copy.
func TestIdlePartitionNoticesItsTarget(t *testing.T) {
	for _, x := range []struct {
		reason replicate.StopReason
		befall func(*testing.T, *kafkatest.Pair)
	}{
		{replicate.StopForeignWriter, func(t *testing.T, p *kafkatest.Pair) { mustAppend(t, p.Target.Bootstrap, numbered(100, 1)...) }},
		{replicate.StopTargetLostRecords, func(t *testing.T, p *kafkatest.Pair) {
			if err := p.Target.LoseTail("t", 0, 3); err != nil {
				t.Error(err)
			}
		}},
		{replicate.StopTargetDeleted, func(t *testing.T, p *kafkatest.Pair) { mustDeleteTopic(t, p.Target, "t") }},
		{replicate.StopTargetRecreated, func(t *testing.T, p *kafkatest.Pair) {
			mustDeleteTopic(t, p.Target, "t")
			mustTopic(t, p.Target, "t", nil)
		}},
	} {
		t.Run(string(x.reason), func(t *testing.T) {
			t.Parallel()
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			appendBig(t, pair, 0, 5)
			l := live(t, pair, livingConfig(t, pair, "t"))
			l.at("t", 0, 5)
			x.befall(t, pair)
			l.stopped("t", 0, x.reason)
			l.end()
		})
	}
}
