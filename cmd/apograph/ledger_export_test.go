package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"apograph/ledger"
)

// A bookModel is one pair, offset by offset.
type bookModel struct {
	base   int64 // first offset of the target's book
	source []sourceOffset
	target []targetOffset // from base on
}

// A sourceOffset says what became of one offset; the rest only counts if it was
// copied.
type sourceOffset struct {
	tile   string
	target int64
	hash   uint64
	bytes  int64
}

// A targetOffset says where a record came from; -1 if that is not known.
type targetOffset struct {
	tile   string
	source int64
}

// digestOf folds hashes by the definition of the digest, with big integers:
// d = (d * R + (h mod P) + 1) mod P, P = 2^61 - 1.
func digestOf(hashes []uint64) string {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 61), big.NewInt(1))
	r := big.NewInt(0x8baf25199c6ad16)
	d := new(big.Int)
	for _, h := range hashes {
		term := new(big.Int).Mod(new(big.Int).SetUint64(h), p)
		d.Mul(d, r).Add(d, term).Add(d, big.NewInt(1)).Mod(d, p)
	}
	return fmt.Sprintf("%016x", d)
}

// grow makes up one entry, and writes it down in the model offset by offset.
func (m *bookModel) grow(random *rand.Rand) ledger.Entry {
	source, target := int64(len(m.source)), m.base+int64(len(m.target))
	e := ledger.Entry{
		Source: ledger.Range{Start: source, End: source}, Target: ledger.Range{Start: target, End: target},
		LeaderEpoch: random.Int32N(2),
	}
	n := 1 + random.Int64N(5)
	switch kind := random.IntN(10); {
	case kind < 5:
		m.growCopied(random, &e)
	case kind < 8:
		tiles := []ledger.Tile{ledger.CommitMarker, ledger.AbortMarker, ledger.Aborted, ledger.Compacted,
			ledger.Lost, ledger.Unexplained}
		e.Tile = tiles[random.IntN(len(tiles))]
		e.Source.End += n
		for range n {
			m.source = append(m.source, sourceOffset{tile: e.Tile.String()})
		}
	default:
		e.Tile = []ledger.Tile{ledger.Foreign, ledger.Orphan}[random.IntN(2)]
		origin := int64(-1)
		if source >= n && random.IntN(2) == 0 {
			e.Tile, origin = ledger.Duplicate, source-n
			e.Origin = ledger.Range{Start: origin, End: source}
		}
		e.Target.End += n
		for i := range n {
			from := origin
			if origin >= 0 {
				from += i
			}
			m.target = append(m.target, targetOffset{tile: e.Tile.String(), source: from})
		}
	}
	return e
}

// growCopied makes e a batch of records with gaps between them.
func (m *bookModel) growCopied(random *rand.Rand, e *ledger.Entry) {
	gaps := []ledger.Tile{ledger.CommitMarker, ledger.AbortMarker, ledger.Aborted, ledger.Compacted}
	e.Tile = ledger.Copied
	for e.Records() < 1+random.Int64N(6) {
		if random.IntN(3) == 0 {
			gap := ledger.Gap{Tile: gaps[random.IntN(len(gaps))], Range: ledger.Range{Start: e.Source.End, End: e.Source.End + 1}}
			e.Gaps = append(e.Gaps, gap)
			m.source = append(m.source, sourceOffset{tile: gap.Tile.String()})
		} else {
			record := sourceOffset{tile: "copied", target: e.Target.End, hash: random.Uint64(), bytes: 20 + random.Int64N(100)}
			m.source = append(m.source, record)
			m.target = append(m.target, targetOffset{tile: "copied", source: e.Source.End})
			e.Bytes += record.bytes
			e.Digest = e.Digest.Add(record.hash)
			e.Target.End++
		}
		e.Source.End++
	}
}

// mustMakeModel makes a ledger with random books and returns them by the names
// of their source topics.
func mustMakeModel(t *testing.T, path string, random *rand.Rand) map[string]*bookModel {
	t.Helper()
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b"}, ledger.Options{Now: fixtureTime})
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*bookModel{}
	for i := range 3 {
		topic, base := fmt.Sprintf("t%d", i), random.Int64N(3)
		ids, err := l.OpenPairs([]ledger.Pair{{SourceTopic: topic, TargetTopic: "copy-of-" + topic, TargetBase: base}})
		if err != nil {
			t.Fatal(err)
		}
		m := &bookModel{base: base}
		for range random.IntN(300) {
			if err := l.Append(ids[0], m.grow(random)); err != nil {
				t.Fatal(err)
			}
			if random.IntN(20) == 0 {
				mustCommit(t, l)
			}
		}
		mustCommit(t, l)
		models[topic] = m
	}
	if err := l.Check(t.Context(), func(v ledger.Violation) { t.Errorf("%v", v) }); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return models
}

func mustCommit(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
}

// mustExport returns the lines of a book, and fails if its CSV says anything
// else.
func mustExport(t *testing.T, path, book string) []tileLine {
	t.Helper()
	code, text, stderr := mustRun(t, "ledger", "export", path, "--book", book)
	if code != 0 || stderr != "" {
		t.Fatalf("export %s: exit %d, stderr %q", book, code, stderr)
	}
	_, table, _ := mustRun(t, "ledger", "export", path, "--book", book, "-o", "csv")
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var lines []tileLine
	i := 0
	for document := range strings.Lines(text) {
		i++
		var line tileLine
		flat := map[string]string{}
		if err := json.Unmarshal([]byte(document), &line); err != nil {
			t.Fatal(err)
		}
		flatten(t, flat, "", json.RawMessage(document))
		for column, name := range rows[0] {
			got := rows[min(i, len(rows)-1)][column]
			if name == "entry_timestamps_replaced" && got == "false" {
				got = "" // absent from JSON
			}
			if got != flat[name] {
				t.Errorf("%s: column %s of row %d is %q, JSON says %q", book, name, i, got, flat[name])
			}
		}
		lines = append(lines, line)
	}
	if len(rows) != i+1 {
		t.Errorf("%s: %d rows of CSV, %d lines of JSON", book, len(rows)-1, i)
	}
	return lines
}

// flatten writes the fields of a JSON object into flat, those of an inner one
// with the outer name before theirs.
func flatten(t *testing.T, flat map[string]string, prefix string, document json.RawMessage) {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		var text string
		switch {
		case value[0] == '{':
			flatten(t, flat, prefix+name+"_", value)
		case string(value) == "null":
		case json.Unmarshal(value, &text) == nil:
			flat[prefix+name] = text
		default:
			flat[prefix+name] = string(value)
		}
	}
}

// TestExportTilesBothAxes compares both books of random ledgers with a model
// that holds every single offset: lines leave nothing out and say nothing
// twice, entries add up, and their digests are those of the records.
func TestExportTilesBothAxes(t *testing.T) {
	mustHaveNoTemporaries(t)
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 6))
		path := filepath.Join(t.TempDir(), "f.ledger")
		models := mustMakeModel(t, path, random)
		t.Run("seed "+strconv.FormatUint(seed, 10), func(t *testing.T) {
			next := map[string]int64{}
			for _, line := range mustExport(t, path, bookSource) {
				checkSourceLine(t, models[line.Topic], line, next)
			}
			for topic, m := range models {
				if next[topic] != int64(len(m.source)) {
					t.Errorf("source: lines of %s end at %d, want %d", topic, next[topic], len(m.source))
				}
			}
			clear(next)
			for _, line := range mustExport(t, path, bookTarget) {
				topic := strings.TrimPrefix(line.Topic, "copy-of-")
				checkTargetLine(t, models[topic], line, topic, next)
			}
			for topic, m := range models {
				if next[topic] != int64(len(m.target)) {
					t.Errorf("target: lines of %s end %d behind their start, want %d", topic, next[topic], len(m.target))
				}
			}
		})
	}
}

func checkSourceLine(t *testing.T, m *bookModel, line tileLine, next map[string]int64) {
	t.Helper()
	if line.Start != next[line.Topic] || line.End <= line.Start || line.SourceTopic != "" || line.SourceStart != nil {
		t.Fatalf("source: line %+v, want one from %d on", line, next[line.Topic])
	}
	next[line.Topic] = line.End
	for i, o := range m.source[line.Start:line.End] {
		copied := o.tile == "copied"
		if o.tile != line.Tile || copied != (line.TargetStart != nil) || copied != (line.TargetTopic == "copy-of-"+line.Topic) {
			t.Fatalf("source: line %+v, but offset %d is %+v", line, line.Start+int64(i), o)
		}
		if copied && *line.TargetStart+int64(i) != o.target {
			t.Fatalf("source: line %+v, but offset %d was copied to %d", line, line.Start+int64(i), o.target)
		}
	}
	checkEntry(t, m, line)
}

func checkTargetLine(t *testing.T, m *bookModel, line tileLine, topic string, next map[string]int64) {
	t.Helper()
	if line.Start != m.base+next[topic] || line.End <= line.Start || line.TargetTopic != "" || line.TargetStart != nil {
		t.Fatalf("target: line %+v, want one from %d on", line, m.base+next[topic])
	}
	next[topic] = line.End - m.base
	for i, o := range m.target[line.Start-m.base : line.End-m.base] {
		known := o.source >= 0
		if o.tile != line.Tile || known != (line.SourceStart != nil) || (o.tile != "foreign") != (line.SourceTopic == topic) {
			t.Fatalf("target: line %+v, but offset %d is %+v", line, line.Start+int64(i), o)
		}
		if known && *line.SourceStart+int64(i) != o.source {
			t.Fatalf("target: line %+v, but offset %d came from %d", line, line.Start+int64(i), o.source)
		}
	}
	checkEntry(t, m, line)
}

// checkEntry recomputes the entry of a copied line from its single records.
func checkEntry(t *testing.T, m *bookModel, line tileLine) {
	t.Helper()
	if (line.Entry != nil) != (line.Tile == "copied") {
		t.Fatalf("line %+v: an entry belongs to copied lines", line)
	}
	if line.Entry == nil {
		return
	}
	var want entryLine
	want.Start, want.End = line.Entry.Start, line.Entry.End
	var hashes []uint64
	records := slices.DeleteFunc(slices.Clone(m.source[want.Start:want.End]), func(o sourceOffset) bool { return o.tile != "copied" })
	for _, o := range records {
		hashes = append(hashes, o.hash)
		want.Bytes += o.bytes
	}
	want.TargetStart, want.Records, want.Digest = records[0].target, int64(len(records)), digestOf(hashes)
	if *line.Entry != want {
		t.Fatalf("line %+v: entry %+v, want %+v", line, *line.Entry, want)
	}
}

// TestExportEndsAtTheCut: the lines of a generation whose end the target lost stop
// there, in both books, whichever later generation began below; the model of each
// generation holds every single offset that was booked.
func TestExportEndsAtTheCut(t *testing.T) {
	mustHaveNoTemporaries(t)
	for seed := range uint64(12) {
		t.Run("seed "+strconv.FormatUint(seed, 10), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.ledger")
			models, cuts := mustCutModel(t, path, rand.New(rand.NewPCG(seed, 7)))
			for _, book := range []string{bookSource, bookTarget} {
				next, told := make([]map[string]int64, len(models)), map[int64]int32{}
				for _, line := range mustExport(t, path, book) {
					i := line.Generation - 1
					if next[i] == nil {
						next[i] = map[string]int64{}
					}
					if book == bookSource {
						checkSourceLine(t, models[i], line, next[i])
					} else {
						checkTargetLine(t, models[i], line, "t", next[i])
					}
					for at := line.Start; at < line.End && line.Tile != "before_start"; at++ {
						if before, twice := told[at]; twice {
							t.Fatalf("%s: offset %d stands in generations %d and %d", book, at, before, line.Generation)
						}
						told[at] = line.Generation
					}
				}
				for i, m := range models {
					want := min(int64(len(m.source)), cuts[i].Source)
					if book == bookTarget {
						want = max(min(int64(len(m.target)), cuts[i].Target-m.base), 0)
					}
					if next[i]["t"] != want {
						t.Errorf("%s: generation %d has lines for %d offsets, want %d", book, i+1, next[i]["t"], want)
					}
				}
			}
		})
	}
}

// mustCutModel makes a ledger with three generations of one partition, each but the
// last cut off by the target at random, and returns them offset by offset, and where
// the books of each hold no more.
func mustCutModel(t *testing.T, path string, random *rand.Rand) (models []*bookModel, cuts []ledger.Cut) {
	t.Helper()
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b"}, ledger.Options{Now: fixtureTime})
	if err != nil {
		t.Fatal(err)
	}
	pair := ledger.Pair{SourceTopic: "t", TargetTopic: "copy-of-t"}
	ids, err := l.OpenPairs([]ledger.Pair{pair})
	if err != nil {
		t.Fatal(err)
	}
	m, id := &bookModel{}, ids[0]
	for {
		for range 10 + random.IntN(30) {
			if err := l.Append(id, m.grow(random)); err != nil {
				t.Fatal(err)
			}
		}
		mustCommit(t, l)
		models = append(models, m)
		if len(models) == 3 {
			break
		}
		// The log ends there, which may be below where this generation began.
		cut := m.cutAt(random.Int64N(m.base + int64(len(m.target)) + 1))
		cuts = append(cuts, cut)
		next := cut
		for i, c := range cuts[:len(cuts)-1] {
			if at := models[i].cutAt(cut.Target); at.Target < c.Target {
				cuts[i], next = at, ledger.Cut{Source: min(next.Source, at.Source), Target: at.Target}
			}
		}
		if cut.Target <= m.base {
			cut = m.cutAt(m.base)
			cuts[len(cuts)-1] = ledger.Cut{Source: next.Source, Target: m.base}
		}
		pair.ScopeStart, pair.TargetBase = next.Source, next.Target
		if id, err = l.Reopen(id, ledger.Closing{Reason: "target_lost_records", Cut: &cut}, pair); err != nil {
			t.Fatal(err)
		}
		m = &bookModel{base: next.Target}
		for range next.Source {
			m.source = append(m.source, sourceOffset{tile: "before_start"})
		}
	}
	if err := l.Check(t.Context(), func(v ledger.Violation) { t.Errorf("%v", v) }); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return models, append(cuts, ledger.Cut{Source: math.MaxInt64, Target: math.MaxInt64})
}

// cutAt returns where a log that ends at a target offset cuts off the model: at the
// first copied record that it lacks; at the end if it lacks none.
func (m *bookModel) cutAt(target int64) ledger.Cut {
	for at, o := range m.source {
		if o.tile == "copied" && o.target >= target {
			return ledger.Cut{Source: int64(at), Target: target}
		}
	}
	return ledger.Cut{Source: int64(len(m.source)), Target: target}
}
