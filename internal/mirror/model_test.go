package mirror

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// A model is the books of one source partition, beside a plain list of what was
// copied.
type model struct {
	t      *testing.T
	ledger *ledger.Ledger
	id     ledger.PairID
	topic  string

	records []copied // that hold, of the source topic as it is now, ascending
}

func newLedger(t *testing.T) *ledger.Ledger {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flow.ledger")
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "A", TargetAlias: "B", SourceClusterID: "a", TargetClusterID: "b"}, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.CheckLedgerAtEnd(t, path)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// newModel opens partition 0 of a topic whose copy begins at a source offset,
// behind what the target holds already.
func newModel(t *testing.T, l *ledger.Ledger, topic string, start, base int64) *model {
	t.Helper()
	ids, err := l.OpenPairs([]ledger.Pair{pairOf(topic, start, base, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return &model{t: t, ledger: l, id: ids[0], topic: topic}
}

func pairOf(topic string, start, base int64, topicID byte) ledger.Pair {
	return ledger.Pair{
		SourceTopic: topic, SourceTopicID: ledger.TopicID{topicID}, TargetTopic: "A." + topic, TargetTopicID: ledger.TopicID{9},
		ScopeStart: start, TargetBase: base, Producer: ledger.Producer{ID: 4000},
	}
}

// append books an entry of so many offsets on each side.
func (m *model) append(tile ledger.Tile, source, target int64) {
	m.t.Helper()
	at := m.ledger.End(m.id)
	e := ledger.Entry{
		Tile: tile, Source: ledger.Range{Start: at.Source, End: at.Source + source}, Target: ledger.Range{Start: at.Target, End: at.Target + target}, LeaderEpoch: 1,
	}
	if tile == ledger.Copied {
		e.Bytes = 100 * target
		for i := range target {
			e.Digest = e.Digest.Add(uint64(at.Target+i) * 0x9e3779b97f4a7c15)
			m.records = append(m.records, copied{at.Source + i, at.Target + i})
		}
	}
	if err := m.ledger.Append(m.id, e); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) copy(n int64)               { m.append(ledger.Copied, n, n) }
func (m *model) gap(t ledger.Tile, n int64) { m.append(t, n, 0) }
func (m *model) foreign(n int64)            { m.append(ledger.Foreign, 0, n) }

func (m *model) commit() {
	m.t.Helper()
	if err := m.ledger.Commit(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) pair() ledger.Pair {
	pair, _ := m.ledger.Pair(m.id)
	return pair
}

// loseTail has the target lose what stands from a target offset on: the next
// generation copies that again, also what earlier ones of the same topics had.
func (m *model) loseTail(target int64) {
	m.t.Helper()
	m.commit()
	now := m.pair()
	cut := m.cutAt(now, target)
	start := cut.Source
	for holder := now; target <= holder.TargetBase; {
		before, ok := m.ledger.Previous(holder.ID)
		if !ok || before.TargetTopic != now.TargetTopic || before.TargetTopicID != now.TargetTopicID || before.SourceTopicID != now.SourceTopicID {
			target = max(target, holder.TargetBase)
			break
		}
		holder, start = before, min(start, m.cutAt(before, target).Source)
	}
	m.reopen(ledger.Closing{Reason: "the target lost records", Cut: &cut}, start, target, now.SourceTopicID, now.TargetTopicID)
	m.records = slices.DeleteFunc(m.records, func(c copied) bool { return c.downstream >= target || c.upstream >= start })
}

// cutSource has the source's log cut at an offset: the target goes on behind what it
// has.
func (m *model) cutSource(source int64) {
	m.t.Helper()
	m.commit()
	now := m.pair()
	m.reopen(ledger.Closing{Reason: "the source was cut"}, source, m.ledger.End(m.id).Target, now.SourceTopicID, now.TargetTopicID)
	m.records = slices.DeleteFunc(m.records, func(c copied) bool { return c.upstream >= source })
}

// lowest returns where the books of the source topic begin that there is now.
func (m *model) lowest() int64 {
	now := m.pair()
	start := now.ScopeStart
	for before, ok := m.ledger.Previous(now.ID); ok && before.SourceTopicID == now.SourceTopicID; before, ok = m.ledger.Previous(before.ID) {
		start = min(start, before.ScopeStart)
	}
	return start
}

func (m *model) cutAt(pair ledger.Pair, target int64) ledger.Cut {
	m.t.Helper()
	cut, err := m.ledger.CutAt(pair.ID, target)
	if err != nil {
		m.t.Fatal(err)
	}
	return cut
}

// recreate has the source topic created again: the target goes on behind what it
// has.
func (m *model) recreate() {
	m.t.Helper()
	m.commit()
	now := m.pair()
	now.SourceTopicID[0]++
	m.reopen(ledger.Closing{Reason: "created again"}, 0, m.ledger.End(m.id).Target, now.SourceTopicID, now.TargetTopicID)
	m.records = nil
}

// deleteTarget has the target topic deleted and made anew: all that the source
// still has is copied again, which is nothing of the first so many offsets.
func (m *model) deleteTarget(lost int64) {
	m.t.Helper()
	m.commit()
	now := m.pair()
	now.TargetTopicID[0]++
	start := m.lowest()
	m.reopen(ledger.Closing{Reason: "made anew", Cut: &ledger.Cut{Source: now.ScopeStart, Target: now.TargetBase}}, start, 0, now.SourceTopicID, now.TargetTopicID)
	if m.records = nil; lost > 0 {
		m.gap(ledger.Lost, lost)
	}
}

func (m *model) reopen(closing ledger.Closing, start, base int64, source, target ledger.TopicID) {
	m.t.Helper()
	next := pairOf(m.topic, start, base, source[0])
	next.TargetTopicID = target
	id, err := m.ledger.Reopen(m.id, closing, next)
	if err != nil {
		m.t.Fatal(err)
	}
	m.id = id
}

// exact is what a group that is to read offset next on the source reads next on
// the target.
func (m *model) exact(offset int64) int64 {
	for _, c := range m.records {
		if c.upstream >= offset {
			return c.downstream
		}
	}
	return m.ledger.Committed(m.id).Target
}

// step does something at random.
func (m *model) step(r *rand.Rand) {
	switch r.IntN(12) {
	default:
		m.copy(1 + r.Int64N(400))
	case 0:
		m.gap(ledger.CommitMarker, 1)
	case 1:
		m.gap(ledger.Aborted, 1+r.Int64N(50))
	case 2:
		m.gap(ledger.Compacted, 1+r.Int64N(300))
	case 3:
		m.foreign(1 + r.Int64N(3))
	case 4:
		if r.IntN(4) == 0 {
			m.recreate()
		}
	case 5:
		switch end := m.ledger.End(m.id); r.IntN(6) {
		case 0, 1:
			m.loseTail(r.Int64N(end.Target + 1))
		case 2:
			m.deleteTarget(r.Int64N(2) * r.Int64N(end.Source+10))
		case 3:
			m.cutSource(end.Source - r.Int64N(min(end.Source-m.lowest(), 500)+1))
		}
	}
}
