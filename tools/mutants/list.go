package main

// mutants returns all mutants. The tests named with each are narrow on purpose:
// those that are about the property, not any that happen to fail.
func mutants() []mutant {
	var all []mutant
	for _, list := range [][]mutant{copying(), knowing(), bookkeeping(), telling(), parsing()} {
		all = append(all, list...)
	}
	return all
}

// copying are bugs in what is written to the target.
func copying() []mutant {
	return []mutant{
		{"drop a record and call it compacted", "replicate/assemble.go",
			"		if offset < a.pos {\n			continue\n		}\n		timestamp",
			"		if offset < a.pos || offset%7 == 3 {\n			continue\n		}\n		timestamp",
			"./replicate -run TestCopyOfEverythingMixed"},
		{"send a batch again under a new producer id when its fate is unknown", "replicate/partition.go",
			"		p.reconcile(a)\n", "		p.rotate()\n		p.win.resume()\n",
			"./replicate -run TestEachFaultAtEachStep"},
		{"a batch that the target may forget flies with others", "replicate/window.go",
			"		if u.stale && w.flying > 0 {\n			return nil\n		}\n", "",
			"./replicate -run TestWindowSendsStaleAlone"},
		{"a target that was silent for a day is taken to know the producer", "replicate/partition.go",
			"p.flow.stale(p.win.newest):\n		p.win.suspect()\n", "p.flow.stale(p.win.newest):\n",
			"./replicate -run TestProbesAfterSilence|TestWindowUnderFaults"},
		{"batches are sent to a new leader while the old one has others", "replicate/partition.go",
			"	case p.win.flying > 0 && p.ledAnew():\n		return nil\n", "",
			"./replicate -run TestWaitsForAnswersBeforeANewLeader"},
		{"the memory of a batch in flight is given to the next", "replicate/unit.go",
			"	if u.buffer != nil && u.flying == 0 {\n", "	if u.buffer != nil {\n",
			"./replicate -run TestUnitInFlightKeepsItsBuffer"},
		{"swap the halves of a batch", "replicate/sending.go",
			"	p.win.split(parts...)\n", "	parts[0], parts[1] = parts[1], parts[0]\n	p.win.split(parts...)\n",
			"./replicate -run TestRefusedBatchIsSplitInOrder"},
		{"an abort marker does not end its transaction", "replicate/assemble.go",
			"		t.open = slices.DeleteFunc(t.open, func(id int64) bool { return id == h.ProducerID })\n", "",
			"./replicate -run TestAbortedTransaction|TestCopyOfEverythingMixed"},
		{"data of aborted transactions is copied", "replicate/assemble.go",
			"		return ledger.Aborted, nil\n", "		return ledger.Copied, nil\n",
			"./replicate -run TestAbortedTransaction"},
		{"the end of a batch is that of its last record", "replicate/assemble.go",
			"	a.fill(j.unit, h.NextOffset())\n", "",
			"./replicate -run TestPositionIsTheBatchsEnd"},
		{"read what is not committed", "replicate/fetch.go",
			"	request.IsolationLevel = 1 // read_committed\n", "	request.IsolationLevel = 0\n",
			"./replicate -run TestOpenTransactionAtTheEnd|TestAbortedTransaction"},
		{"a damaged source batch is copied", "replicate/assemble.go",
			"		err = recordbatch.CheckCRC(batch)\n", "		err = nil\n",
			"./replicate -run TestDamageStopsAtItsBatch"},
		{"the sequence number does not go on after a restart", "replicate/recover.go",
			"	p.win = newWindow(p.flow.config.Window, end.Target, p.producer.Next(end.Appended))\n",
			"	p.win = newWindow(p.flow.config.Window, end.Target, p.producer.Sequence)\n",
			"./replicate -run TestStopAndGoOn|TestAdopt"},
		{"a sequence number wraps one early", "ledger/pair.go",
			"& (1<<31 - 1))", "% (1<<31 - 1))",
			"./ledger -run TestProducerNext"},
	}
}

// knowing are bugs in what the copier takes for known.
func knowing() []mutant {
	return []mutant{
		{"a batch without an answer is booked", "replicate/window.go",
			"	case unknown:\n		w.stopFor(holdReconcile, a)\n", "	case unknown:\n		w.retire(i + 1)\n",
			"./replicate -run TestWindow"},
		{"a success proves itself, whatever base offset it names", "replicate/window.go",
			"		if a.base != w.expected(i) {\n", "		if a.base < 0 {\n",
			"./replicate -run TestWindow|TestSuccessElsewhere"},
		{"the target's high watermark is taken for its log end", "replicate/recover.go",
			"offsetQuery{replica: debuggingReplica, timestamp: latestOffset}", "offsetQuery{replica: -1, timestamp: latestOffset}",
			"./replicate -run TestForgottenWhileFollowersLag"},
		{"what the target holds is adopted without a look at its content", "replicate/adopt.go",
			"		if len(a.queue) == 0 || there && hash != a.queue[0].infos[a.next].hash {\n", "		if len(a.queue) == 0 || there && hash == 0 {\n",
			"./replicate -run TestOrphan|TestSourceThatDiffers|TestForeign"},
		{"what somebody else wrote is taken for ours", "replicate/notes.go",
			"	case !b.ours:\n		return verdict{kind: tailStranger", "	case !b.ours && b.base < 0:\n		return verdict{kind: tailStranger",
			"./replicate -run TestForeign|TestCopyOfAnotherCopier"},
		{"a unit matches a batch with other content", "replicate/unit.go",
			" && b.digest == u.entry.Digest", "",
			"./replicate -run TestWindow"},
		{"a new producer id is used before it is durable", "replicate/recover.go",
			"	if err == nil {\n		err = p.flow.ledger.Commit()\n	}\n	if err != nil {\n		p.flow.fail(fmt.Errorf(\"partition %v: record a new producer id",
			"	if err != nil {\n		p.flow.fail(fmt.Errorf(\"partition %v: record a new producer id",
			"./replicate -run TestProducerIDIsDurableBeforeItsUse"},
		{"the log end below the position is taken for truncation", "replicate/loss.go",
			"	case err == nil && end < o.next && (p.cut() || p.cutAhead(o)):\n", "	case err == nil && end < o.next:\n		p.halt(StopSourceTruncated, \"\")\n",
			"./replicate -run TestEndOffsetAloneIsNoTruncation"},
		{"a topic with another id is taken for the same", "replicate/topics.go",
			"id != none && t.id != none && t.id != id:", "id != none && t.id != none && false:",
			"./replicate -run TestRecreated"},
		{"records that were deleted before they were copied are out of scope", "replicate/loss.go",
			"	case c.logStart > a.pos && a.firstSight:\n", "	case c.logStart > a.pos:\n",
			"./replicate -run TestLogStartOvertakesAStoppedCopier|TestWhatIsGoneBeforeItWasSeen"},
		{"after a restart everything is seen for the first time", "replicate/open.go",
			"		firstSight: c.firstSight, compactSeen", "		firstSight: true, compactSeen",
			"./replicate -run TestLogStartOvertakesAStoppedCopier|TestPartitionAddedLater"},
		{"the target's log is not compared in front of where it ends", "replicate/adopting.go",
			"	detail, err := p.compareNewest()\n", "	detail, err := \"\", error(nil)\n",
			"./replicate -run TestHoleThatOthersFilled"},
		{"what a cut made undecided again is left out", "replicate/cut.go",
			"b.start, err = p.decided(next); err != nil", "b.start = next; err != nil",
			"./replicate -run TestCutTookAMarker"},
		{"a producer that was fenced goes on by itself", "replicate/stop.go",
			" && r != StopFenced\n", "\n",
			"./replicate -run TestFenc"},
		{"epochs are known of the open generation alone", "ledger/epoch.go",
			"		below = min(below, pair.ScopeStart)\n	}\n	return -1, 0\n", "		break\n	}\n	return -1, 0\n",
			"./replicate -run TestSecondCutBelowAnEmptyGeneration"},
		{"a gap that nothing explains is called compacted", "replicate/loss.go",
			"	default:\n		e.Tile = ledger.Unexplained\n", "	default:\n		e.Tile = ledger.Compacted\n",
			"./replicate -run TestGapThatNothingExplains"},
		{"a run that waits for an open transaction is complete", "replicate/report.go",
			"		s.Complete = false // also where the transaction is open below the books' end\n", "",
			"./replicate -run TestOpenAgainBelowAGeneration|TestCutTookAMarker"},
		{"a run that lost records is complete", "replicate/report.go",
			"	s.Complete = s.Complete && s.BadTiles == 0\n", "",
			"./replicate -run TestLogStartOvertakesAStoppedCopier|TestGapThatNothingExplains"},
	}
}

// bookkeeping are bugs in the ledger.
func bookkeeping() []mutant {
	return []mutant{
		{"the checksum of a value is not checked", "ledger/value.go",
			"	return payload, binary.BigEndian.Uint64(value) == checksum(bucket, key, payload)\n", "	return payload, true\n",
			"./ledger -run TestFlippedBytes|TestSabotage"},
		{"the digest does not see the order of records", "ledger/digest.go",
			"addMod(mulMod(uint64(d), digestBase), reduce", "addMod(uint64(d), reduce",
			"./ledger -run TestDigest"},
		{"the index finds the page before", "ledger/find.go",
			"return b.offset(pages[i].start) > offset })", "return b.offset(pages[i].start) >= offset })",
			"./ledger -run TestHistoriesAgainstModel"},
		{"readers see what is not committed", "ledger/ledger.go",
			"	tail := p.tail()\n	return Position{Source: tail.end.source, Target: tail.end.target, Appended: tail.after.appended()}\n",
			"	return Position{Source: p.end.source, Target: p.end.target, Appended: p.appended}\n",
			"./ledger -run TestCommitIsTheCommitPoint|TestHistoriesAgainstModel"},
		{"a lost tile is not bad", "ledger/tile.go",
			"return t == Lost || t == Unexplained }", "return t == Unexplained }",
			"./ledger -run TestTiles"},
		{"the journal is not read again", "ledger/load.go",
			"l.loadPages, l.loadJournal, l.loadFlow", "l.loadPages, l.loadFlow",
			"./ledger -run TestJournalIsShort|TestHistoriesAgainstModel|TestCommitIsTheCommitPoint"},
		{"what is queued is forgotten when a commit fails", "ledger/commit.go",
			"		p.queue = append(ch.entries, p.queue...)\n", "",
			"./ledger -run TestFullDisk|TestAppendDuringFailingCommit"},
		{"a hole in the books is no violation", "ledger/check_books.go",
			"	if start != p.end {\n", "	if start != p.end && false {\n",
			"./ledger -run TestSabotage"},
	}
}

// telling are bugs in translation and verification.
func telling() []mutant {
	return []mutant{
		{"translation counts a gap behind the offset", "ledger/entry.go",
			"		below -= min(g.Range.End, source) - g.Range.Start\n", "		below -= g.Range.Len()\n",
			"./translate -run TestAgainstModel"},
		{"translation back is one off at a gap", "ledger/entry.go",
			"		if g.Range.Start > source {\n			break", "		if g.Range.Start >= source {\n			break",
			"./translate -run TestAgainstModel"},
		{"the translation of a lost offset is called exact", "translate/reading.go",
			"	case e.Tile.Bad():\n		if err := s.lost", "	case e.Tile.Bad() && false:\n		if err := s.lost",
			"./translate -run TestPlacesOfDoubt|TestAgainstModel"},
		{"a closed generation answers", "translate/reading.go",
			"	case pair.Closed != nil:\n", "	case pair.Closed != nil && false:\n",
			"./translate -run TestNoBookNoAnswer|TestNewestGeneration"},
		{"verify counts what it could not read as equal", "verify/judge.go",
			"		j.notVerified(u, k, lack{s.outcome.reason(), \"target\"}, true)\n", "		j.counts.Equal++\n",
			"./verify -run TestRetention|TestUnreachable|TestPartitionWithoutLeader"},
		{"verify does not compare what the source has expired with the digest", "verify/judge.go",
			"	if d.mixedOK && !u.torn && d.mixed != u.entry.Digest && j.damaged(u, d) {\n		return\n	}\n", "",
			"./verify -run TestDamageWhereSourceIsGone"},
		{"verify calls what stands behind the books unbooked, whoever wrote it", "verify/tail.go",
			"		return p.ID == i.producer && p.Epoch == i.epoch\n", "		return p.ID >= 0\n",
			"./verify -run TestTailOfAnother|TestTailByProducer"},
		{"verify does not look at ids of topics", "verify/job.go",
			"	if s.state.id == id || s.state.id", "	if s.state.id != id || s.state.id",
			"./verify -run TestSourceRecreated|TestTargetRecreated"},
	}
}

// parsing are bugs in reading what brokers send.
func parsing() []mutant {
	return []mutant{
		{"any control record ends a transaction", "internal/recordbatch/marker.go",
			"	default:\n		return false, &UnknownMarkerError{Type: t}\n", "	default:\n		return false, nil\n",
			"./internal/recordbatch -run TestMarkerType"},
		{"a compressed batch may become as large as it likes", "internal/recordbatch/decoder.go",
			"	return min(d.MaxBytes, math.MaxInt32-zstdSlack)\n", "	return math.MaxInt32 - zstdSlack\n",
			"./internal/recordbatch -run TestBombs|TestLimitIsExact"},
		{"damage is hidden by a new checksum", "internal/recordbatch/patch.go",
			"	be.PutUint32(b[crcAt:], be.Uint32(b[crcAt:])^crcShift(difference, len(b)-countAt))\n", "	be.PutUint32(b[crcAt:], checksum(b[attributesAt:]))\n	_ = difference\n	_ = crcShift\n",
			"./internal/recordbatch -run TestPatchDoesNotHideDamage"},
	}
}
