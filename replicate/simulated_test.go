package replicate_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// Small forms of what the simulation found.

// TestPausedPartitionIsForgotten pauses the only partition that waits at the
// broker, and lets others join later: the broker must not go on answering for
// the one that nobody reads.
func TestPausedPartitionIsForgotten(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "a", nil)
	mustAppend(t, pair.Source.Bootstrap, on("a", 0, 0, 10)...)
	l := live(t, pair, livingConfig(t, pair, "a", "b"))
	l.at("a", 0, 10)
	fetches := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Count: -1, Delay: time.Millisecond, When: func(r kmsg.Request) bool {
		return r.(*kmsg.FetchRequest).MaxWaitMillis == 100
	}})
	if err := fetches.Wait(t.Context(), 2); err != nil { // it waits at the broker
		t.Fatal(err)
	}
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "a", Partition: -1, Paused: true})
	l.stopped("a", 0, replicate.StopPaused)
	mustAppend(t, pair.Source.Bootstrap, on("a", 0, 10, 10)...) // ends the wait, with nobody left
	<-time.After(200 * time.Millisecond)
	mustTopic(t, pair.Source, "b", nil)
	mustAppend(t, pair.Source.Bootstrap, on("b", 0, 0, 10)...)
	l.at("b", 0, 10)
	if err := fetches.Wait(t.Context(), fetches.Hits()+2); err != nil {
		t.Fatal(err)
	}
	before := fetches.Hits()
	<-time.After(time.Second)
	if n := fetches.Hits() - before; n > 20 {
		t.Errorf("%d fetches in a second, in which there was nothing to fetch", n)
	}
	l.end()
}

// TestOrphansOfInterruptedAdoption: the source has lost what a dead copier
// wrote and did not book. That it is lost gets into the books; the target's
// records cannot be read yet. The next attempt knows all the same.
func TestOrphansOfInterruptedAdoption(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() { mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...) })
	mustAppend(t, pair.Source.Bootstrap, numbered(20, 10)...)
	mustDelete(t, pair.Source, "t", 0, 20)
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Fetch, Topic: "t", Count: 2, Err: kerr.NotLeaderForPartition})
	got := mustRun(t, config)
	if len(got.Stopped) > 0 {
		t.Errorf("summary %+v", got)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Lost: 10, ledger.Orphan: 10, ledger.Copied: 10})
}
