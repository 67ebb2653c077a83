package translate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/ledger"
	"apograph/translate"
)

// A logRecord is a record of the source's log, which is told from all others by
// its number.
type logRecord struct {
	number int
	epoch  int32
}

// A copyRecord is one of the target.
type copyRecord struct {
	number int
	source int64
}

// A cutWorld is a source whose log is cut now and then, its copy, and groups that
// have read in it, of which the oracle remembers what.
type cutWorld struct {
	ledger *ledger.Ledger
	pair   ledger.PairID
	now    int64 // of the ledger's clock, in milliseconds

	source []logRecord
	target []copyRecord
	epoch  int32
	next   int
	groups []logGroup

	// rough has books that do not know all epochs, and either clients that send stale
	// epochs or logs from before a cut that come back: with both nothing tells a commit
	// in an epoch that went on from one in a log where it had ended.
	rough   *rand.Rand
	stale   bool
	never   map[int]bool // records that are not copied, as the books say
	earlier [][]logRecord
}

// A logGroup is a group that has committed.
type logGroup struct {
	transfer translate.Transfer
	read     map[int]bool
	epoch    int32 // that a client would have sent
	kept     bool  // the ledger remembers the commit, from before all cuts
}

func newCutWorld(dir string) (w *cutWorld, err error) {
	w = &cutWorld{now: 1_790_000_000_000}
	clock := func() time.Time { return time.UnixMilli(w.now) }
	w.ledger, err = ledger.Create(filepath.Join(dir, "flow.ledger"), ledger.Identity{LedgerID: "test", SourceAlias: "a", TargetAlias: "b"}, ledger.Options{Now: clock})
	if err != nil {
		return nil, err
	}
	ids, err := w.ledger.OpenPairs([]ledger.Pair{{SourceTopic: "orders", TargetTopic: "b.orders"}})
	if err == nil {
		w.pair = ids[0]
	}
	return w, err
}

// produce appends n records to the source.
func (w *cutWorld) produce(n int) {
	for range n {
		w.source = append(w.source, logRecord{w.next, w.epoch})
		w.next++
	}
}

// copy copies at most n records, in entries that have one epoch each.
func (w *cutWorld) copy(n int) error {
	for range n {
		at := w.ledger.End(w.pair)
		if at.Source >= int64(len(w.source)) {
			break
		}
		r := w.source[at.Source]
		e := ledger.Entry{
			Tile: ledger.Copied, Source: ledger.Range{Start: at.Source, End: at.Source + 1}, Target: ledger.Range{Start: at.Target, End: at.Target + 1},
			Bytes: 20, LeaderEpoch: r.epoch,
		}
		if copied := w.roughen(&e, r); copied {
			w.target = append(w.target, copyRecord{r.number, at.Source})
		}
		if err := w.ledger.Append(w.pair, e); err != nil {
			return err
		}
	}
	return w.ledger.Commit()
}

// roughen makes an entry now and then one of a record that is left out, of which no epoch
// is known, or has one that was compacted away join it, of which nothing is known.
func (w *cutWorld) roughen(e *ledger.Entry, r logRecord) (copied bool) {
	if w.rough == nil {
		return true
	}
	switch next := int(e.Source.End); {
	case w.rough.IntN(4) == 0:
		*e = ledger.Entry{Tile: ledger.Filtered, Cause: ledger.CausePerson, Reason: "left out", Source: e.Source, Target: ledger.Range{Start: e.Target.Start, End: e.Target.Start}, LeaderEpoch: -1}
		w.never[r.number] = true
		return false
	case w.rough.IntN(4) == 0 && next < len(w.source):
		e.Source.End++
		e.Gaps = []ledger.Gap{{Tile: ledger.Compacted, Range: ledger.Range{Start: int64(next), End: e.Source.End}}}
		w.never[w.source[next].number] = true
	}
	return true
}

// commit has a group commit an offset, of which the ledger may have committed the
// translation since.
func (w *cutWorld) commit(offset int64, keep bool) error {
	id := fmt.Sprint("g", len(w.groups))
	g := logGroup{read: make(map[int]bool), epoch: -1, kept: keep && len(w.ledger.Pairs()) == 1}
	for _, r := range w.source[:offset] {
		g.read[r.number], g.epoch = true, r.epoch
	}
	if w.stale && offset > 0 && w.rough.IntN(3) == 0 {
		g.epoch = w.source[w.rough.Int64N(offset)].epoch
	}
	g.transfer = translate.NewTransfer(translate.PlanRow{Group: id, Query: translate.Query{Topic: "orders", Offset: offset}}, "")
	w.groups = append(w.groups, g)
	if !keep {
		return nil
	}
	w.now++
	kept := ledger.GroupCommit{Topic: "b.orders", Offset: 1, Source: offset, AtMillis: w.now}
	return w.ledger.KeepGroupCommits(map[string][]ledger.GroupCommit{id: {kept}})
}

// cutSource has the source lose its end, and a person accept that.
func (w *cutWorld) cutSource(at int64) error {
	was := w.source
	if w.rough != nil && at >= w.ledger.End(w.pair).Source {
		return nil // where generations before knew more, only epochs tell of it
	}
	w.source = was[:at:at]
	if w.rough != nil {
		if n := len(w.earlier); n > 0 && !w.stale && w.rough.IntN(2) == 0 {
			back := w.earlier[w.rough.IntN(n)]
			for at = 0; at < int64(min(len(back), len(was))) && back[at] == was[at]; {
				at++
			}
			w.source = back[:len(back):len(back)]
		}
		w.earlier = append(w.earlier, was)
	}
	w.epoch++
	end := w.ledger.End(w.pair)
	if at >= end.Source {
		return nil
	}
	return w.reopen(ledger.Closing{Reason: "source_truncated"}, at, end.Target)
}

// cutTarget has the target lose its end, which is copied again.
func (w *cutWorld) cutTarget(at int64) error {
	start := w.ledger.End(w.pair).Source
	for _, r := range w.target[at:] {
		start = min(start, r.source)
	}
	if at == int64(len(w.target)) {
		return nil
	}
	w.target = w.target[:at]
	cut, err := w.ledger.CutAt(w.pair, at)
	if err != nil {
		return err
	}
	return w.reopen(ledger.Closing{Reason: "target_lost_records", Cut: &cut}, start, at)
}

func (w *cutWorld) reopen(closing ledger.Closing, start, base int64) (err error) {
	w.now++
	next := ledger.Pair{SourceTopic: "orders", TargetTopic: "b.orders", ScopeStart: start, TargetBase: base}
	w.pair, err = w.ledger.Reopen(w.pair, closing, next)
	w.now++
	return err
}

// fault returns what is wrong with where a group goes on at a target offset: a
// record of the source that it has not read and does not come by, or one that it
// has read and comes by again.
func (w *cutWorld) fault(g *logGroup, at int64) string {
	ahead := make(map[int]bool)
	for _, r := range w.target[at:] {
		ahead[r.number] = true
		if g.read[r.number] && w.rough == nil {
			return fmt.Sprintf("reads record %d again", r.number)
		}
	}
	for _, r := range w.source[:w.ledger.Committed(w.pair).Source] {
		if !g.read[r.number] && !ahead[r.number] && !w.never[r.number] {
			return fmt.Sprintf("misses record %d", r.number)
		}
	}
	return ""
}

// check translates what groups have committed, with the epochs of their commits and
// without.
func (w *cutWorld) check() error {
	index := translate.NewIndex(w.ledger)
	for _, epochs := range []bool{true, false} {
		var transfers []translate.Transfer
		for i := range w.groups {
			t := w.groups[i].transfer
			if t.Epoch = -1; epochs {
				t.Epoch = w.groups[i].epoch
			}
			transfers = append(transfers, t)
		}
		if err := index.Translate(context.Background(), transfers, false); err != nil {
			return err
		}
		for i := range transfers {
			t, g := &transfers[i], &w.groups[i]
			doubtful := t.Doubtful && t.Status == translate.Unknown && t.TargetOffset == translate.NoOffset && t.Detail != ""
			switch {
			case doubtful && g.epoch < 0, doubtful && !epochs && !g.kept, doubtful && w.rough != nil:
				continue
			case t.Status == translate.Unknown || t.Doubtful:
				return fmt.Errorf("epochs %t, kept %t: offset %d of epoch %d: %+v", epochs, g.kept, t.Offset, g.epoch, t.Result)
			}
			if fault := w.fault(g, t.TargetOffset); fault != "" {
				return fmt.Errorf("epochs %t, kept %t: offset %d of epoch %d: %+v: %s", epochs, g.kept, t.Offset, g.epoch, t.Result, fault)
			}
		}
	}
	return nil
}

// checkCommits returns what is wrong with the world of a seed.
func checkCommits(dir string, seed uint64, rough bool) (err error) {
	random := rand.New(rand.NewPCG(seed, 3))
	w, err := newCutWorld(dir)
	if err != nil {
		return err
	}
	if rough {
		w.rough, w.stale, w.never = rand.New(rand.NewPCG(seed, 4)), seed%2 == 0, make(map[int]bool)
	}
	defer func() {
		if closeErr := checkAndClose(w.ledger); err == nil {
			err = closeErr
		}
	}()
	for range 3 + random.IntN(30) {
		switch random.IntN(8) {
		case 0:
			err = w.cutSource(random.Int64N(int64(len(w.source)) + 1))
		case 1:
			err = w.cutTarget(random.Int64N(int64(len(w.target)) + 1))
		case 2:
			w.epoch++ // of a leader that had all
		case 3, 4:
			err = w.commit(random.Int64N(w.ledger.End(w.pair).Source+1), random.IntN(2) == 0)
		default:
			w.produce(random.IntN(8))
			err = w.copy(random.IntN(10))
		}
		if err != nil {
			return err
		}
		if err := w.check(); err != nil {
			return err
		}
	}
	return nil
}

// TestCommitsOverCuts: over random histories of a log that is cut, and of a target
// that loses its end and gets it again, each group goes on with what it has not read,
// by the leader epoch of its commit, or by what the ledger remembers of it. Where there
// is neither, it has no answer, or the same.
func TestCommitsOverCuts(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(propertySeed)
	parameters.MinSuccessfulTests = 400
	properties := gopter.NewProperties(parameters)
	for _, rough := range []bool{false, true} {
		properties.Property(fmt.Sprintf("as the slow way says, rough %t", rough), prop.ForAllNoShrink(
			func(seed uint64) (string, error) { return "", checkCommits(t.TempDir(), seed, rough) }, gen.UInt64(),
		))
	}
	properties.TestingRun(t)
}

// TestCommitSeenBeforeACut: what a group is known to have had before a cut, as by a
// checkpoint of that time, is of the log from before it. An offset that somebody asks
// for is one of the log that there is.
func TestCommitSeenBeforeACut(t *testing.T) {
	w, err := newCutWorld(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checkAndClose(w.ledger); err != nil {
			t.Error(err)
		}
	})
	w.produce(10)
	before := w.now
	if err := errors.Join(w.copy(10), w.cutSource(6)); err != nil {
		t.Fatal(err)
	}
	w.produce(20)
	if err := w.copy(20); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		epoch  int32
		seen   int64
		status translate.Status
		target int64
	}{
		{-1, before, translate.Exact, 8},
		{-1, w.now, translate.Unknown, translate.NoOffset},
		{-1, 0, translate.Unknown, translate.NoOffset},
		{0, 0, translate.Exact, 8},
		{1, before, translate.Exact, 12},
		{translate.NewestEpoch, before, translate.Exact, 12},
	} {
		x := translate.NewTransfer(translate.PlanRow{Group: "g", Query: translate.Query{Topic: "orders", Offset: 8}}, "")
		x.Epoch, x.SeenMillis = tt.epoch, tt.seen
		transfers := []translate.Transfer{x}
		err := translate.NewIndex(w.ledger).Translate(t.Context(), transfers, false)
		if x = transfers[0]; err != nil || x.Status != tt.status || x.TargetOffset != tt.target || x.Doubtful != (tt.status == translate.Unknown) {
			t.Errorf("epoch %d, seen %d: %+v, %v, want %v %d", tt.epoch, tt.seen, x.Result, err, tt.status, tt.target)
		}
	}
}

// TestReverseOverALostEnd: the target had lost its end, and got the same records again,
// but for one that the source had compacted away by then. What a group has committed on
// the target behind that place may be of the log from before, and has no answer; in front
// of it both logs are the same. An offset that somebody asks for is of the log that there is.
func TestReverseOverALostEnd(t *testing.T) {
	l := mustCreate(t)
	books := newHistory(0, 0).copied("rrrrrrrrrr", 0).mustBook(t, l, 0)
	cut, err := l.CutAt(books.Pair, 4)
	if err != nil {
		t.Fatal(err)
	}
	next := newHistory(4, 4).orders(0)
	id, err := l.Reopen(books.Pair, ledger.Closing{Cut: &cut}, next)
	if err != nil {
		t.Fatal(err)
	}
	again := ledger.Entry{
		Tile: ledger.Copied, Source: ledger.Range{Start: 4, End: 10}, Target: ledger.Range{Start: 4, End: 9}, Bytes: 20,
		Gaps: []ledger.Gap{{Tile: ledger.Compacted, Range: ledger.Range{Start: 6, End: 7}}},
	}
	if err := errors.Join(l.Append(id, again), l.Commit()); err != nil {
		t.Fatal(err)
	}
	for _, epoch := range []int32{-1, 0, translate.NewestEpoch} {
		for offset, source := range []int64{0, 1, 2, 3, 4, 5, 7, 8, 9, 10} {
			x := translate.NewTransfer(translate.PlanRow{Group: "g", Query: translate.Query{Topic: "b.orders", Offset: int64(offset)}}, "")
			x.Epoch = epoch
			transfers := []translate.Transfer{x}
			err := translate.NewIndex(l).Translate(t.Context(), transfers, true)
			x = transfers[0]
			if doubtful := offset > 5 && epoch != translate.NewestEpoch; err != nil || x.Doubtful != doubtful || (x.Status == translate.Unknown) != doubtful {
				t.Errorf("epoch %d, target offset %d: %+v, %v", epoch, offset, x.Result, err)
			} else if !doubtful && x.SourceOffset != source {
				t.Errorf("epoch %d, target offset %d: %+v, want %d", epoch, offset, x.Result, source)
			}
		}
	}
}
