package replicate_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// denied runs a flow that may not look at its source, so that its partition stops
// for that.
func denied(t *testing.T, pair *kafkatest.Pair, config replicate.Config) {
	t.Helper()
	f := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.ListOffsets, Topic: "t", Count: -1, Err: kerr.TopicAuthorizationFailed})
	defer f.Remove()
	wantStop(t, mustRun(t, config), replicate.StopNotAuthorized)
}

// paused runs a flow whose topic is paused, and resumes it.
func paused(t *testing.T, _ *kafkatest.Pair, config replicate.Config) {
	t.Helper()
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1, Paused: true})
	wantStop(t, mustRun(t, config), replicate.StopPaused)
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1})
}

// TestForeignWriterIsNotForgotten: a run that stops for another reason does not
// resume a partition that somebody else writes to; a person does, once.
func TestForeignWriterIsNotForgotten(t *testing.T) {
	pair, config := copied(t, 10)
	mustAppend(t, pair.Target.Bootstrap, numbered(100, 3)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 5)...)
	wantStop(t, mustRun(t, config), replicate.StopForeignWriter)
	denied(t, pair, config)
	denied(t, pair, config)
	wantStop(t, mustRun(t, config), replicate.StopForeignWriter)
	denied(t, pair, config)
	order(t, config, ledger.Order{SourceTopic: "t"})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("resumed: %+v", s)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 15, ledger.Foreign: 3})
}

// TestSourceCutIsNotForgotten: a cut of the source that nothing shows any more
// holds over stops for other reasons, until a person accepts it.
func TestSourceCutIsNotForgotten(t *testing.T) {
	for name, between := range map[string]func(*testing.T, *kafkatest.Pair, replicate.Config){"denied": denied, "paused": paused} {
		t.Run(name, func(t *testing.T) {
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			tens(t, pair, 0, 30)
			config := configFor(t, pair, "t")
			mustRun(t, config)
			tens(t, pair, 30, 60)
			diverges(pair.Source, 30, 20)
			wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
			if err := pair.Source.Restart(); err != nil { // nobody says so any more
				t.Fatal(err)
			}
			between(t, pair, config)
			s := mustRun(t, config)
			wantStop(t, s, replicate.StopSourceTruncated)
			if len(s.Stopped) == 1 && s.Stopped[0].Offset != 20 {
				t.Errorf("stopped at %d, want 20, where the logs part", s.Stopped[0].Offset)
			}
			between(t, pair, config)
			order(t, config, ledger.Order{SourceTopic: "t", Partition: -1, AcceptTruncated: true})
			s = mustRun(t, config)
			wantTiles(t, s, map[ledger.Tile]int64{ledger.BeforeStart: 20, ledger.Copied: 40})
			if !s.Complete {
				t.Errorf("accepted: %+v", s)
			}
			offline(t, config, func(book *ledger.Ledger) {
				if stops := book.Stops(); len(stops) > 0 {
					t.Errorf("the next generation has gone on, and stops are left: %+v", stops)
				}
			})
		})
	}
}

// TestFencingIsNotForgotten: the producer id that the target refused is not used
// again by a run that comes after one that stopped for another reason.
func TestFencingIsNotForgotten(t *testing.T) {
	pair, config := copied(t, 10)
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	fenced := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "t", Err: kerr.InvalidProducerEpoch})
	wantStop(t, mustRun(t, config), replicate.StopFenced)
	fenced.Remove()
	before := producers(t, config)
	denied(t, pair, config)
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	if after := producers(t, config); len(after) != len(before)+1 {
		t.Errorf("producers %+v, were %+v: want one more", after, before)
	}
}
