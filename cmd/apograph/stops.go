package main

import (
	"slices"

	"apograph/replicate"
)

// A stopAdvice is one row of the table of reasons to stop.
type stopAdvice struct {
	reason replicate.StopReason
	advice string // what a person can do, one line without a period
}

// stopAdvices returns the table of reasons why a partition stops and of what
// can be done about each: the only one, which README copies. The other
// partitions go on meanwhile, and a stopped one is tried again, with growing
// pauses and at the next start; not so where somebody else is at work.
func stopAdvices() []stopAdvice {
	return []stopAdvice{
		{replicate.StopRecordTooLarge, "raise `max.message.bytes` of the target topic, and its `segment.bytes` if that is smaller; or leave the record out: `apograph resume TOPIC:PARTITION --skip START-END --reason TEXT`"},
		{replicate.StopTopicRecreated, "the copy of the topic that was deleted stays proven; `apograph resume TOPIC --accept-recreated` closes its book and copies the new topic behind it; if the target topic is gone as well, it stops `target_deleted` next, and both words stand"},
		{replicate.StopTopicDeleted, "if it was meant, leave the topic out with --topics-exclude; what is copied stays proven by the ledger. Once it is created again, the reason is topic_recreated"},
		{replicate.StopSourceTruncated, "the target holds records that the source no longer has: look there for an unclean leader election; `apograph resume TOPIC:PARTITION --accept-truncated` closes the book, notes such records, and goes on from where the source's log was cut"},
		{replicate.StopTargetDeleted, "create nothing there by hand: `apograph resume TOPIC --recopy` makes the topic again and copies all of it that the source still has; or leave the topic out with --topics-exclude"},
		{replicate.StopTargetRecreated, "`apograph resume TOPIC --recopy` closes the book and copies the topic again into the new one, which must be empty; or leave the topic out with --topics-exclude"},
		{replicate.StopTargetLostRecords, "the target lost records that it had acknowledged: `apograph verify` says which; look there for an unclean leader election. `apograph resume TOPIC:PARTITION --recopy` copies a lost end again; what is missing in the middle stays missing, as order cannot be put back: copy the topic anew"},
		{replicate.StopTargetNotEmpty, "where another flow is named: leave the topic out of one of the two with --topics-exclude, or `topics.exclude` of that flow. Else restore the flow's ledger from a snapshot; if there is none, or MirrorMaker 2 made the copy, stop replicate and let `apograph attach` make the books, in the flow's ledger if that is there; and only if the target's records are not copies of the source's, name the topic in --append"},
		{replicate.StopForeignWriter, "somebody else wrote to the target topic: find out who, and stop them; `apograph ledger export --book target` says at which offsets. Then `apograph resume TOPIC:PARTITION` goes on behind their records, and stops at the next ones; `apograph resume TOPIC:PARTITION --tolerate-foreign` goes on beside them for good. Where it is MirrorMaker 2 that came back, stop it for good first; instead of `resume`, the ledger may be moved away and `apograph attach` make a new one, in which each record that it copied a second time is a `duplicate` by name"},
		{replicate.StopFenced, "another process wrote with this flow's producer id: make sure that only one replicator runs for this target, with the newest ledger. Then `apograph resume TOPIC:PARTITION` books what is there and goes on, under a producer id of its own"},
		{replicate.StopNotAuthorized, "give the user of the cluster that is named the right that is named; where the cluster refuses the login or the certificate itself, put that right: stores, tokens and files of credentials are read again by themselves, the configuration is not"},
		{replicate.StopUnavailable, "bring the partition's leader back: it goes on where it stopped"},
		{replicate.StopUnsupportedFormat, "the source's batches have a format that cannot be carried over unharmed: see the detail; the topic must be copied by a consumer and a producer"},
		{replicate.StopCorruptSourceBatch, "the source's log is damaged at this offset: try a leader on another replica, whose log may be whole; or leave the offsets out: `apograph resume TOPIC:PARTITION --skip START-END --reason TEXT`"},
		{replicate.StopPaused, "a person paused it: `apograph resume TOPIC[:PARTITION]` lets it go on"},
		{replicate.StopRecordRefused, "change the setting of the target topic that the detail names; or leave the record out: `apograph resume TOPIC:PARTITION --skip START-END --reason TEXT`"},
	}
}

// adviceFor returns what can be done about a reason; nothing about one that is
// not in the table.
func adviceFor(reason replicate.StopReason) string {
	for _, row := range stopAdvices() {
		if row.reason == reason {
			return row.advice
		}
	}
	return ""
}

// stopReasons returns why partitions stopped, each reason once, in order.
func (s replicateSummary) stopReasons() []string {
	var reasons []string
	for _, p := range s.Stopped {
		reasons = append(reasons, p.Reason)
	}
	return slices.Compact(slices.Sorted(slices.Values(reasons)))
}
