package ledger

import "strings"

// editRecord writes the record of a pair anew.
func (e *editor) editRecord(id PairID, edit func(*pairRecord)) {
	e.t.Helper()
	key := pairKey(id)
	r, err := decodePair(id, e.payload(bucketPairs, key))
	if err != nil {
		e.t.Fatal(err)
	}
	edit(r)
	e.put(bucketPairs, key, pairValue(key, r))
}

// editAccepted writes the acceptance of pair 6 that starts at an offset anew,
// under its own key.
func (e *editor) editAccepted(start int64, edit func(*acceptance)) {
	e.t.Helper()
	key := acceptedKey(6, start)
	_, a, err := decodeAccepted(key, e.payload(bucketAccepted, key))
	if err != nil {
		e.t.Fatal(err)
	}
	e.remove(bucketAccepted, key)
	edit(&a)
	key = acceptedKey(6, a.Range.Start)
	e.put(bucketAccepted, key, acceptedValue(key, &a))
}

// editDoubt does the same with a doubt.
func (e *editor) editDoubt(start int64, edit func(*Doubt)) {
	e.t.Helper()
	key := doubtKey(6, &Doubt{Range: Range{start, 0}})
	_, d, err := decodeDoubt(key, e.payload(bucketDoubts, key))
	if err != nil {
		e.t.Fatal(err)
	}
	e.remove(bucketDoubts, key)
	edit(&d)
	key = doubtKey(6, &d)
	e.put(bucketDoubts, key, doubtValue(key, &d))
}

// markSabotages returns ways to break the laws of cuts, acceptances and doubts.
// Pair 6 is what mustCutOff makes.
func markSabotages() []sabotage {
	cut := func(name string, edit func(*pairRecord)) sabotage {
		return edited(name, lawCut, bucketPairs, func(e *editor) { e.editRecord(6, edit) })
	}
	accepted := func(name, law string, start int64, edit func(*acceptance)) sabotage {
		return edited(name, law, bucketAccepted, func(e *editor) { e.editAccepted(start, edit) })
	}
	doubt := func(name, law string, start int64, edit func(*Doubt)) sabotage {
		return edited(name, law, bucketDoubts, func(e *editor) { e.editDoubt(start, edit) })
	}
	return []sabotage{
		cut("cut-beyond", func(r *pairRecord) { r.Closed.Cut.Source = 25 }),
		cut("cut-target-beyond", func(r *pairRecord) { r.Closed.Cut.Target = 14 }),
		cut("cut-bad", func(r *pairRecord) { r.cutBad++ }),
		cut("cut-successor", func(r *pairRecord) { r.Closed.Cut.Source = 18 }),
		edited("cut-elsewhere", lawCut, bucketPages, func(e *editor) { e.editRecord(6, func(r *pairRecord) { r.Closed.Cut.Target = 12 }) }),
		accepted("accepted-copied", lawAccepted, 10, func(a *acceptance) { a.Range.Start = 9 }),
		accepted("accepted-behind", lawAccepted, 18, func(a *acceptance) { a.Range.End = 25 }),
		accepted("accepted-bad", lawAccepted, 10, func(a *acceptance) { a.bad-- }),
		accepted("accepted-too-bad", lawAccepted, 10, func(a *acceptance) { a.bad = 3 }),
		accepted("accepted-overlap", lawAccepted, 18, func(a *acceptance) { a.Range.Start = 11 }),
		accepted("accepted-nothing", lawAccepted, 10, func(a *acceptance) { a.Range.End = 10 }),
		accepted("accepted-without-reason", lawAccepted, 10, func(a *acceptance) { a.Reason = "" }),
		accepted("accepted-by", lawEncoding, 10, func(a *acceptance) { a.By = strings.Repeat("x", maxText+1) }),
		edited("accepted-lost", lawKeys, bucketAccepted, func(e *editor) { e.remove(bucketAccepted, acceptedKey(6, 10)) }),
		edited("accepted-key", lawKeys, bucketAccepted, func(e *editor) { e.seal(bucketAccepted, []byte("abc"), nil) }),
		edited("accepted-of-no-pair", lawPair, bucketAccepted, func(e *editor) {
			key := acceptedKey(66, 10)
			e.put(bucketAccepted, key, acceptedValue(key, &acceptance{Acceptance{Range: Range{10, 11}, Reason: "x"}, 1}))
		}),
		edited("accepted-flag", lawEncoding, bucketAccepted, func(e *editor) {
			b := e.payload(bucketAccepted, acceptedKey(6, 10))
			b[0] |= 1
			e.seal(bucketAccepted, acceptedKey(6, 10), b)
		}),
		doubt("doubt-beyond", lawDoubts, 18, func(d *Doubt) { d.Range.End = 25 }),
		doubt("doubt-touches", lawDoubts, 18, func(d *Doubt) { d.Range.Start = 5 }),
		doubt("doubt-of-nothing", lawDoubts, 18, func(d *Doubt) { d.Range.End = 18 }),
		doubt("doubt-kind", lawDoubts, 18, func(d *Doubt) { d.Kind = 1 }),
		doubt("doubt-time", lawDoubts, 18, func(d *Doubt) { d.AtMillis = -1 }),
		edited("doubt-that-was-accepted", lawAccepted, bucketAccepted, func(e *editor) {
			e.editDoubt(18, func(d *Doubt) { d.Range.Start = 19 })
		}),
		edited("doubt-lost", lawKeys, bucketDoubts, func(e *editor) { e.remove(bucketDoubts, doubtKey(6, &Doubt{Range: Range{2, 5}})) }),
		edited("doubt-key", lawKeys, bucketDoubts, func(e *editor) { e.seal(bucketDoubts, []byte("abc"), nil) }),
		edited("doubt-of-no-pair", lawPair, bucketDoubts, func(e *editor) {
			d := &Doubt{Range: Range{1, 2}}
			e.put(bucketDoubts, doubtKey(66, d), doubtValue(doubtKey(66, d), d))
		}),
		edited("marks-lost", lawKeys, bucketMeta, func(e *editor) { e.remove(bucketMeta, []byte(metaMarks)) }),
		edited("format-3-without-marks", lawBuckets, bucketDoubts, func(e *editor) {
			if err := e.tx.DeleteBucket([]byte(bucketDoubts)); err != nil {
				e.t.Fatal(err)
			}
		}),
		edited("format-2-of-marks", lawEncoding, bucketPairs, func(e *editor) {
			for _, bucket := range []string{bucketAccepted, bucketDoubts, bucketGroups} {
				if err := e.tx.DeleteBucket([]byte(bucket)); err != nil {
					e.t.Fatal(err)
				}
			}
			e.remove(bucketMeta, []byte(metaMarks))
			e.remove(bucketMeta, []byte(metaGroups))
			e.seal(bucketMeta, []byte(metaFormat), []byte{0, 2})
		}),
	}
}
