package replicate_test

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.etcd.io/bbolt"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// TestTopicNewInScopeHasLostNothing: partitions that a topic was given before
// the flow was to copy it are first seen like the rest of it.
func TestTopicNewInScopeHasLostNothing(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "a", nil)
	mustTopic(t, pair.Source, "t", nil)
	config := configFor(t, pair, "a")
	mustRun(t, config)
	mustGrow(t, pair.Source, "t", 2)
	mustAppend(t, pair.Source.Bootstrap, append(on("t", 0, 0, 7), on("t", 1, 0, 7)...)...)
	mustDelete(t, pair.Source, "t", 0, 4)
	mustDelete(t, pair.Source, "t", 1, 4)
	config.Topics = []string{"a", "t"}
	s := mustRun(t, config)
	wantTiles(t, s, map[ledger.Tile]int64{ledger.BeforeStart: 8, ledger.Copied: 6})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestPartitionAddedSinceFormat1: a ledger of the first format remembers no
// topics, and yet a partition that its topic was given since is copied whole.
func TestPartitionAddedSinceFormat1(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 0, 5)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	backToFormat1(t, config.LedgerPath)
	mustGrow(t, pair.Source, "t", 2)
	mustAppend(t, pair.Source.Bootstrap, on("t", 1, 0, 7)...)
	var err error
	if config.Start, err = replicate.ParseStartPoint("latest"); err != nil {
		t.Fatal(err)
	}
	wantTiles(t, mustComplete(t, pair, config), map[ledger.Tile]int64{ledger.Copied: 7})
}

// forgetCaughtUp writes a ledger anew, without the time when it was caught up.
func forgetCaughtUp(t *testing.T, path string) {
	t.Helper()
	old := copyFile(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	from := kafkatest.OpenLedger(t, old, ledger.Options{ReadOnly: true})
	to, err := ledger.Create(path, from.Identity(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for _, p := range from.Pairs() {
		id := p.ID
		p.ID = 0
		ids, err := to.OpenPairs([]ledger.Pair{p})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range from.Entries(id, 0) {
			if err := errors.Join(err, to.Append(ids[0], e)); err != nil {
				t.Fatal(err)
			}
		}
		state := from.State(id)
		state.CaughtUpMillis = -1
		if err := to.SetState(ids[0], state); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Commit(); err != nil {
		t.Fatal(err)
	}
}

// backToFormat1 makes a ledger what one of the first format is: without the
// buckets, the key, and the time that came later.
func backToFormat1(t *testing.T, path string) {
	t.Helper()
	forgetCaughtUp(t, path)
	old, err := bbolt.Open("../testdata/ledgers/formats/1.ledger", 0o400, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	var known []string
	var format []byte
	err = old.View(func(tx *bbolt.Tx) error {
		format = slices.Clone(tx.Bucket([]byte("meta")).Get([]byte("format")))
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error { known = append(known, string(name)); return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		var later [][]byte
		_ = tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			if !slices.Contains(known, string(name)) {
				later = append(later, slices.Clone(name))
			}
			return nil
		})
		for _, name := range later {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte("meta"))
		if err := meta.Delete([]byte("books")); err != nil {
			return err
		}
		return meta.Put([]byte("format"), format)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStartGroupIsNotNeededAgain: where every topic has a book, nobody asks
// where to begin.
func TestStartGroupIsNotNeededAgain(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	source := admin(t, pair.Source.Bootstrap)
	offsets := kadm.Offsets{}
	offsets.AddOffset("t", 0, 2, -1)
	if err := source.CommitAllOffsets(t.Context(), "g", offsets); err != nil {
		t.Fatal(err)
	}
	config := configFor(t, pair, "t")
	var err error
	if config.Start, err = replicate.ParseStartPoint("group:g"); err != nil {
		t.Fatal(err)
	}
	wantTiles(t, mustRun(t, config), map[ledger.Tile]int64{ledger.Copied: 3, ledger.BeforeStart: 2})
	if _, err := source.DeleteGroups(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

func mustDeleteTopic(t *testing.T, c *kafkatest.Cluster, topic string) {
	t.Helper()
	if _, err := admin(t, c.Bootstrap).DeleteTopics(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
}

// TestRecreatedWithMorePartitions: of a topic that was created again nothing is
// copied before a person accepts it, nor of partitions that are new.
func TestRecreatedWithMorePartitions(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 0, 5)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustDeleteTopic(t, pair.Source, "t")
	if err := pair.Source.CreateTopic(t.Context(), "t", 2, nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, on("t", 1, 0, 7)...)
	s := mustRun(t, config)
	wantTiles(t, s, nil)
	if s.Complete || len(s.Stopped) == 0 || s.Stopped[0].Reason != replicate.StopTopicRecreated {
		t.Errorf("summary %+v", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestRecreatedTopicKeepsItsHandsOffTheCopy: the settings of another topic of
// the name, which may be to delete everything, are not those of the copy.
func TestRecreatedTopicKeepsItsHandsOffTheCopy(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	for _, topic := range []string{"t", "u"} {
		mustTopic(t, pair.Source, topic, map[string]string{"retention.ms": "-1"})
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	l := live(t, pair, livingConfig(t, pair, "t", "u"))
	l.at("t", 0, 5)
	mustDeleteTopic(t, pair.Source, "t")
	mustTopic(t, pair.Source, "t", nil)
	l.stopped("t", 0, replicate.StopTopicRecreated)
	source, target := admin(t, pair.Source.Bootstrap), admin(t, pair.Target.Bootstrap)
	for _, value := range []string{"1000000", "2000000"} { // a look at all settings lies between
		change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
		if _, err := source.AlterTopicConfigs(t.Context(), change, "u"); err != nil {
			t.Fatal(err)
		}
		l.untilSetting(target, "u", "retention.ms", value)
	}
	if got := settingOf(t, target, "t", "retention.ms"); got != "-1" {
		t.Errorf("retention.ms of the copy is %s, want that of the topic it is of, -1", got)
	}
	l.end()
}

// TestTopicGoneBeforeItWasMade: a topic that could not be made, and that the
// source has no more, leaves the flow and is not made later.
func TestTopicGoneBeforeItWasMade(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "a", nil)
	mustTopic(t, pair.Target, "a", nil)
	mustTopic(t, pair.Source, "t", nil)
	refusal := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.CreateTopics, Count: -1, Err: kerr.TopicAuthorizationFailed})
	l := live(t, pair, livingConfig(t, pair, "a", "b", "t"))
	l.stopped("t", 0, replicate.StopNotAuthorized)
	l.at("a", 0, 0)
	mustDeleteTopic(t, pair.Source, "t")
	l.until("a", 0, "alone", func(replicate.PartitionStatus) bool { return len(l.Status()) == 1 })
	refusal.Remove()
	mustTopic(t, pair.Source, "b", nil)
	l.at("b", 0, 0) // the topics have been looked at since
	topics, err := admin(t, pair.Target.Bootstrap).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if topics.Has("t") {
		t.Error("topic t was made on the target, and the source has none")
	}
	if stops := l.Ledger().Stops(); len(stops) > 0 {
		t.Errorf("stops in the ledger %+v", stops)
	}
	l.end()
}

// TestLostWasLastKnownBeforeItWent: looks at a paused partition after records
// were deleted do not count as having seen them.
func TestLostWasLastKnownBeforeItWent(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	config := livingConfig(t, pair, "t")
	began := time.Now()
	var later atomic.Int64 // than began, in ns: the flow's clock
	config.Now = func() time.Time { return began.Add(time.Duration(later.Load())) }
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	l := live(t, pair, config)
	l.at("t", 0, 5)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Partition: -1, Paused: true})
	l.stopped("t", 0, replicate.StopPaused)
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	l.until("t", 0, "known to be behind", func(s replicate.PartitionStatus) bool { return s.SourceEnd == 10 })
	mustDelete(t, pair.Source, "t", 0, 8)
	later.Store(int64(time.Hour))
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 1)...)
	l.until("t", 0, "looked at after the deletion", func(s replicate.PartitionStatus) bool { return s.SourceEnd == 11 })
	l.end()
	offline(t, config, func(book *ledger.Ledger) {
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", Partition: -1})
	})
	l = live(t, pair, config)
	l.at("t", 0, 11)
	e, err := l.Ledger().FindSource(l.Ledger().Pairs()[0].ID, 5)
	if err != nil || e.Tile != ledger.Lost || e.Source != (ledger.Range{Start: 5, End: 8}) || e.LastKnownMillis != began.UnixMilli() {
		t.Errorf("entry %+v, %v; want [5, 8) lost, last known at %d", e, err, began.UnixMilli())
	}
	l.end()
}

// TestPartitionsAddedBeforeTheFirstBook: the flow was to copy a topic, and could
// not make it on the target. What the topic was given since is new, and what is
// gone of it is lost.
func TestPartitionsAddedBeforeTheFirstBook(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 0, 7)...)
	mustDelete(t, pair.Source, "t", 0, 3)
	refusal := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.CreateTopics, Count: -1, Err: kerr.TopicAuthorizationFailed})
	config := configFor(t, pair, "t")
	mustRun(t, config)
	refusal.Remove()
	mustGrow(t, pair.Source, "t", 2)
	mustAppend(t, pair.Source.Bootstrap, on("t", 1, 0, 7)...)
	mustDelete(t, pair.Source, "t", 1, 4)
	s := mustRun(t, config)
	wantTiles(t, s, map[ledger.Tile]int64{ledger.BeforeStart: 3, ledger.Lost: 4, ledger.Copied: 7})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}
