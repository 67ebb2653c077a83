package replicate_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// A clock is moved by hand.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) forward(d time.Duration) { c.ns.Add(int64(d)) }

// doubtful is a compacted source topic, and a flow whose time is moved by hand.
type doubtful struct {
	t      *testing.T
	pair   *kafkatest.Pair
	config replicate.Config
	clock  *clock
}

func newDoubtful(t *testing.T, configs ...string) *doubtful {
	t.Helper()
	d := &doubtful{t: t, pair: stored(t), clock: newClock()}
	settings := map[string]string{"cleanup.policy": "compact"}
	for i := 0; i < len(configs); i += 2 {
		settings[configs[i]] = configs[i+1]
	}
	mustTopic(t, d.pair.Source, "t", settings)
	d.config = configFor(t, d.pair, "t")
	d.config.Now = d.clock.now
	return d
}

// records appends n records in batches of five.
func (d *doubtful) records(from, n int) {
	d.t.Helper()
	for end := from + n; from < end; from += 5 {
		mustAppend(d.t, d.pair.Source.Bootstrap, numbered(from, 5)...)
	}
}

// without takes the batches away that hold one of the offsets.
func (d *doubtful) without(offsets ...int64) {
	d.t.Helper()
	editSource(d.t, d.pair, func(batches [][]byte) [][]byte {
		return slices.DeleteFunc(batches, func(raw []byte) bool {
			b, err := kafkatest.DecodeBatch(raw)
			if err != nil {
				d.t.Error(err)
			}
			return slices.ContainsFunc(offsets, func(o int64) bool { return o >= b.BaseOffset && o < b.NextOffset() })
		})
	})
}

// run copies, with the clock moved forward before.
func (d *doubtful) run(after time.Duration) {
	d.t.Helper()
	d.clock.forward(after)
	if s := mustRun(d.t, d.config); len(s.Stopped) > 0 || s.BadTiles > 0 {
		d.t.Fatalf("summary %+v", s)
	}
}

// want holds the newest generation to its doubts, as a reader of the file sees
// them.
func (d *doubtful) want(want ...ledger.Range) {
	d.t.Helper()
	book := kafkatest.OpenLedger(d.t, d.config.LedgerPath, ledger.Options{ReadOnly: true})
	defer book.Close()
	var got []ledger.Range
	for _, x := range book.Doubts(book.Pairs()[len(book.Pairs())-1].ID) {
		if x.Kind != ledger.StaleKeys || x.AtMillis == 0 {
			d.t.Errorf("doubt %+v", x)
		}
		got = append(got, x.Range)
	}
	if !slices.Equal(got, want) {
		d.t.Errorf("doubts %v, want %v", got, want)
	}
}

// TestStaleKeysPossible: a gap in a compacted topic that is reached later than
// delete.retention.ms after the copy was last at the source's end casts doubt
// on keys that were copied before it.
func TestStaleKeysPossible(t *testing.T) {
	const day = 24 * time.Hour
	for name, scenario := range map[string]func(d *doubtful){
		"within a day": func(d *doubtful) {
			d.records(0, 10)
			d.run(0)
			d.records(10, 20)
			d.without(15)
			d.run(day)
			d.want()
		},
		"a gap between batches, later": func(d *doubtful) {
			d.records(0, 10)
			d.run(0)
			d.records(10, 20)
			d.without(15)
			d.run(day + time.Millisecond)
			d.want(ledger.Range{Start: 15, End: 20})
			d.run(0)
			d.want(ledger.Range{Start: 15, End: 20})
		},
		"several gaps are one doubt, from the first to the last": func(d *doubtful) {
			d.records(0, 10)
			d.run(0)
			d.records(10, 50)
			d.without(10, 25, 35, 50)
			d.run(2 * day)
			d.want(ledger.Range{Start: 10, End: 55})
		},
		"a gap inside a sparse batch": func(d *doubtful) {
			d.records(0, 10)
			d.run(0)
			d.records(10, 10)
			d.sparse(10)
			d.run(2 * day)
			d.want(ledger.Range{Start: 10, End: 14})
		},
		"no gap": func(d *doubtful) {
			d.records(0, 10)
			d.run(0)
			d.records(10, 20)
			d.run(2 * day)
			d.want()
		},
		"nothing was copied before": func(d *doubtful) {
			d.run(0)
			d.records(0, 10)
			d.without(0)
			d.run(2 * day)
			d.want()
		},
		"caught up in between, by a run that found nothing new": func(d *doubtful) {
			d.records(0, 10)
			d.run(0)
			d.run(20 * time.Hour)
			d.records(10, 20)
			d.without(15)
			d.run(20 * time.Hour)
			d.want()
		},
		"caught up by the run that copied": func(d *doubtful) {
			d.records(0, 10)
			d.run(0)
			d.records(10, 10)
			d.run(20 * time.Hour)
			d.records(20, 20)
			d.without(25)
			d.run(20 * time.Hour)
			d.want()
		},
		"a doubt of long ago stays": func(d *doubtful) {
			d.records(0, 10)
			d.run(0)
			d.records(10, 20)
			d.without(15)
			d.run(2 * day)
			d.records(30, 20)
			d.without(35)
			d.run(2 * day)
			d.want(ledger.Range{Start: 15, End: 20}, ledger.Range{Start: 35, End: 40})
		},
		"first copied long after the topic was made": func(d *doubtful) {
			d.records(0, 30)
			d.without(15)
			d.run(99 * day)
			d.want()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(newDoubtful(t))
		})
	}
}

// sparse leaves of the batch at an offset only the last record.
func (d *doubtful) sparse(base int64) {
	d.t.Helper()
	editSource(d.t, d.pair, func(batches [][]byte) [][]byte {
		for i, raw := range batches {
			b, err := kafkatest.DecodeBatch(raw)
			if err != nil {
				d.t.Fatal(err)
			}
			if b.BaseOffset == base {
				b.Records = b.Records[len(b.Records)-1:]
				batches[i] = encode(d.t, b)
			}
		}
		return batches
	})
}

// TestStaleKeysByTheTopicsSetting: how long tombstones are kept is the source
// topic's to say.
func TestStaleKeysByTheTopicsSetting(t *testing.T) {
	for keeps, want := range map[string][]ledger.Range{"1000": {{Start: 15, End: 20}}, "7200000": nil} {
		d := newDoubtful(t, "delete.retention.ms", keeps)
		d.records(0, 10)
		d.run(0)
		d.records(10, 20)
		d.without(15)
		d.run(time.Hour)
		d.want(want...)
	}
}

// TestStaleKeysOfAnEarlierGeneration: what an earlier generation copied to the
// same target counts.
func TestStaleKeysOfAnEarlierGeneration(t *testing.T) {
	d := newDoubtful(t)
	d.records(0, 10)
	d.run(0)
	mustDeleteTopic(t, d.pair.Source, "t")
	mustTopic(t, d.pair.Source, "t", map[string]string{"cleanup.policy": "compact"})
	if s := mustRun(t, d.config); len(s.Stopped) != 1 {
		t.Fatalf("summary %+v", s)
	}
	offline(t, d.config, func(book *ledger.Ledger) {
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true})
	})
	d.run(0)
	d.records(0, 10)
	d.without(0)
	d.run(48 * time.Hour)
	d.want(ledger.Range{Start: 0, End: 5})
}

// TestIdleIsCaughtUp: a flow that waits at the source's end is caught up all the
// time, and the ledger says so to the next one.
func TestIdleIsCaughtUp(t *testing.T) {
	d := newDoubtful(t)
	d.records(0, 10)
	config := livingConfig(t, d.pair, "t")
	config.Now, config.LedgerPath = d.clock.now, d.config.LedgerPath
	l := live(t, d.pair, config)
	l.at("t", 0, 10)
	d.clock.forward(20 * time.Hour)
	l.until("t", 0, "known to be caught up", func(replicate.PartitionStatus) bool {
		return l.Ledger().State(l.Ledger().Pairs()[0].ID).CaughtUpMillis == d.clock.now().UnixMilli()
	})
	l.end()
	d.records(10, 20)
	d.without(15)
	d.run(20 * time.Hour)
	d.want()
}

// TestStaleKeysBehindALostTail: a generation that begins where the target lost its
// tail is late for keys that the one before has copied, however lately it began;
// and a doubt of that one comes up again with what is copied again.
func TestStaleKeysBehindALostTail(t *testing.T) {
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		scenario func(d *doubtful)
		want     []ledger.Range
	}{
		"new records, after a long stop": {func(d *doubtful) {
			d.loseTail(5)
			d.records(10, 20)
			d.without(15)
			d.recopy(10 * day)
		}, []ledger.Range{{Start: 15, End: 20}}},
		"new records, in time": {func(d *doubtful) {
			d.loseTail(5)
			d.records(10, 20)
			d.without(15)
			d.recopy(day)
		}, nil},
		"a doubt that stood behind the cut": {func(d *doubtful) {
			d.records(10, 20)
			d.without(15)
			d.run(10 * day)
			d.loseTail(5)
			d.recopy(0)
		}, []ledger.Range{{Start: 15, End: 20}}},
		"a gap that came up since, in what is copied again": {func(d *doubtful) {
			for range 10 { // always at the source's end
				d.run(day)
			}
			d.loseTail(5)
			d.records(10, 5)
			d.without(6)
			d.recopy(0)
		}, []ledger.Range{{Start: 5, End: 10}}},
		"the same, of a copy that has just begun": {func(d *doubtful) {
			d.loseTail(5)
			d.records(10, 5)
			d.without(6)
			d.recopy(0)
		}, nil},
		"the next generation was at the source's end": {func(d *doubtful) {
			d.loseTail(5)
			d.recopy(10 * day)
			d.records(10, 20)
			d.without(15)
			d.run(day)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDoubtful(t)
			d.records(0, 5)
			d.run(0)
			d.records(5, 5)
			d.run(0)
			tt.scenario(d)
			d.want(tt.want...)
		})
	}
}

// loseTail makes the target forget, and the flow notice.
func (d *doubtful) loseTail(end int64) {
	d.t.Helper()
	if err := d.pair.Target.LoseTail("t", 0, end); err != nil {
		d.t.Fatal(err)
	}
	wantStop(d.t, mustRun(d.t, d.config), replicate.StopTargetLostRecords)
}

// recopy copies what is lost again, with the clock moved forward before.
func (d *doubtful) recopy(after time.Duration) {
	d.t.Helper()
	order(d.t, d.config, ledger.Order{SourceTopic: "t", Recopy: true})
	d.run(after)
}
