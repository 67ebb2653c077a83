package replicate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// lose removes the ledger of a configuration and attaches a new one.
func lose(t *testing.T, config replicate.Config) (replicate.Config, replicate.AttachReport) {
	t.Helper()
	config.LedgerPath = filepath.Join(t.TempDir(), "attached.ledger")
	report, err := replicate.Attach(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.LedgerPath != "" {
		kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
	}
	leftovers, err := filepath.Glob(filepath.Join(filepath.Dir(config.LedgerPath), "*.new-*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left behind: %v %v", leftovers, err)
	}
	return config, report
}

// only returns the single partition of a report, which must have a verdict.
func only(t *testing.T, r replicate.AttachReport, verdict replicate.AttachVerdict) replicate.AttachedPartition {
	t.Helper()
	if len(r.Partitions) != 1 || r.Partitions[0].Verdict != verdict {
		t.Fatalf("report %+v, want one partition that is %s", r, verdict)
	}
	return r.Partitions[0]
}

func TestAttachEverythingMixed(t *testing.T) {
	pair := stored(t)
	load := kafkatest.Load{Seed: 7, Topics: []string{"orders", "payments"}, Partitions: 3, Records: 3000}
	if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	config := configFor(t, pair, "orders", "pay.*")
	mustRun(t, config)
	again, report := lose(t, config)
	for _, p := range report.Partitions {
		if p.Verdict != replicate.Attached || p.Unprovable.Any() {
			t.Errorf("%+v", p)
		}
	}
	sameBooks(t, config.LedgerPath, again.LedgerPath)
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, again.LedgerPath, "orders", "payments")
	more := kafkatest.Load{Seed: 8, Topics: []string{"orders", "payments"}, Partitions: 3, Records: 1000}
	if err := more.Run(t.Context(), pair.Source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	if got := mustRun(t, again); !got.Complete {
		t.Errorf("not complete: %+v", got)
	}
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, again.LedgerPath, "orders", "payments")
}

// sameBooks compares what two ledgers say of every offset, up to the end of the
// second one's books.
func sameBooks(t *testing.T, first, second string) {
	t.Helper()
	a := kafkatest.OpenLedger(t, first, ledger.Options{ReadOnly: true})
	b := kafkatest.OpenLedger(t, second, ledger.Options{ReadOnly: true})
	for _, p := range b.Pairs() {
		for _, q := range a.Pairs() {
			if p.SourceTopic == q.SourceTopic && p.Partition == q.Partition && q.Closed == nil {
				samePair(t, a, q.ID, b, p.ID)
			}
		}
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
}

func samePair(t *testing.T, a *ledger.Ledger, idA ledger.PairID, b *ledger.Ledger, idB ledger.PairID) {
	t.Helper()
	end := b.End(idB)
	for offset := int64(0); offset < end.Source; offset++ {
		x, errX := a.FindSource(idA, offset)
		y, errY := b.FindSource(idB, offset)
		if errX != nil || errY != nil {
			t.Fatalf("source offset %d: %v %v", offset, errX, errY)
		}
		if tileAt(&x, offset) != tileAt(&y, offset) || x.TargetOf(offset) != y.TargetOf(offset) {
			t.Fatalf("source offset %d: %v to %d, and %v to %d", offset, tileAt(&x, offset), x.TargetOf(offset), tileAt(&y, offset), y.TargetOf(offset))
		}
	}
	if other := a.End(idA); other.Target != end.Target {
		t.Errorf("the books end at target offset %d, %d was expected", end.Target, other.Target)
	}
}

func tileAt(e *ledger.Entry, source int64) ledger.Tile {
	for r := range e.Runs() {
		if source >= r.Source.Start && source < r.Source.End {
			return r.Tile
		}
	}
	return e.Tile
}

func TestAttachRefusesWhatIsNoLedger(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	config := configFor(t, pair, "t")
	if err := os.WriteFile(config.LedgerPath, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *ledger.CorruptError
	if _, err := replicate.Attach(t.Context(), config, nil); !errors.As(err, &damaged) {
		t.Errorf("%v, want a damaged ledger", err)
	}
	if got, err := os.ReadFile(config.LedgerPath); err != nil || string(got) != "x" {
		t.Errorf("the file holds %q (%v)", got, err)
	}
}

// TestAttachInALedgerThatIsInUse is refused.
func TestAttachInALedgerThatIsInUse(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	inTens(t, pair.Source.Bootstrap, 0, 20)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{})
	var locked *ledger.LockedError
	if _, err := replicate.Attach(t.Context(), config, nil); !errors.As(err, &locked) {
		t.Errorf("%v, want a ledger that is held", err)
	}
}

// TestAttachLeavesTheScope: an attachment of some topics does not make the flow one
// of these alone.
func TestAttachLeavesTheScope(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	inTens(t, pair.Source.Bootstrap, 0, 20)
	config := configFor(t, pair, "t", "u")
	mustRun(t, config)
	for _, name := range []string{"u", "v"} {
		mustTopic(t, pair.Source, name, nil)
		mustTopic(t, pair.Target, name, nil)
		mustAppend(t, pair.Source.Bootstrap, &kgo.Record{Topic: name, Value: []byte("1")})
		m := kafkatest.Mirror{Source: pair.Source.Bootstrap, Target: pair.Target.Bootstrap, Topic: name, TargetTopic: name}
		if _, err := m.Copy(t.Context(), 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	scopeAfter(t, config, "u", "[t u]")
	scopeAfter(t, config, "v", "[v]") // outside of it: as replicate does when it is started with others
}

func scopeAfter(t *testing.T, config replicate.Config, topic, want string) {
	t.Helper()
	config.Topics = []string{topic}
	report, err := replicate.Attach(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	only(t, report, replicate.Attached)
	l := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	if got := fmt.Sprint(l.Scope().Topics); got != want {
		t.Errorf("%s attached: scope %s, want %s", topic, got, want)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAttachExpiredSource(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	for i := range 5 {
		mustAppend(t, pair.Source.Bootstrap, numbered(10*i, 10)...)
	}
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustDelete(t, pair.Source, "t", 0, 23)
	again, report := lose(t, config)
	p := only(t, report, replicate.Attached)
	if p.BeforeStart != 23 || p.Orphans != 23 || p.Copied != 27 || p.Unprovable != (replicate.Unprovable{BeforeStart: 23, Orphans: 23}) {
		t.Errorf("%+v", p)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(50, 10)...)
	if got := mustRun(t, again); !got.Complete || got.Tiles[ledger.Copied] != 10 {
		t.Errorf("%+v", got)
	}
}

func TestAttachExpiredTarget(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	for i := range 5 {
		mustAppend(t, pair.Source.Bootstrap, numbered(10*i, 10)...)
	}
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustDelete(t, pair.Target, "t", 0, 23)
	_, report := lose(t, config)
	p := only(t, report, replicate.Attached)
	if p.BeforeStart != 23 || p.Orphans != 0 || p.Copied != 27 || p.Unprovable != (replicate.Unprovable{BeforeStart: 23}) {
		t.Errorf("%+v", p)
	}
}

func TestAttachLackingRecord(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 20)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	if _, err := pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "t", Offset: 7, Shift: true}); err != nil {
		t.Fatal(err)
	}
	_, report := lose(t, config)
	p := only(t, report, replicate.AttachRefused)
	t.Log(p.Detail)
	if report.LedgerPath != "" {
		t.Error("a ledger without a book")
	}
}
