package replicate_test

import (
	"slices"
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

// TestFencingIsNotForgotten: a run that comes after one that stopped for another
// reason does not go on where somebody else runs under the producer id. A person's
// word lets it go on, and the id is not used again, also if the run that takes
// another one is a later one.
func TestFencingIsNotForgotten(t *testing.T) {
	pair, config := copied(t, 10)
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	fenced := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "t", Err: kerr.InvalidProducerEpoch})
	wantStop(t, mustRun(t, config), replicate.StopFenced)
	fenced.Remove()
	before := producers(t, config)
	denied(t, pair, config)
	wantStop(t, mustRun(t, config), replicate.StopFenced)
	if after := producers(t, config); len(after) != len(before) {
		t.Errorf("producers %+v, were %+v: nobody has said to go on", after, before)
	}
	order(t, config, ledger.Order{SourceTopic: "t"})
	denied(t, pair, config)
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	after := producers(t, config)
	if last := after[len(after)-1]; last.ID < 0 || slices.Contains(before, last) {
		t.Errorf("producers %+v, were %+v: want another one", after, before)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 20})
}

// TestFencedWhileRunning: time does not lift it; an order through the running flow
// does, and what is sent then has another producer id.
func TestFencedWhileRunning(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := livingConfig(t, pair, "t")
	l := live(t, pair, config)
	l.at("t", 0, 5)
	fenced := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "t", Err: kerr.InvalidProducerEpoch})
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	if s := l.stopped("t", 0, replicate.StopFenced); !s.NextRetry.IsZero() {
		t.Errorf("it is to be tried again at %v", s.NextRetry)
	}
	fenced.Remove()
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t"})
	l.at("t", 0, 10)
	l.end()
	if all := producers(t, config); all[len(all)-1].ID == all[0].ID || all[len(all)-1].ID < 0 {
		t.Errorf("producers %+v", all)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 10})
}
