package verify

import (
	"encoding/json"
	"time"
)

// A Verdict is the answer in one word. The values are part of reports and never
// change.
type Verdict string

const (
	// Complete: everything that was asked for is proven, there is no fault, and
	// nobody had to accept anything for that.
	Complete Verdict = "complete"

	// Faults: at least one finding is a fault.
	Faults Verdict = "faults"

	// Inconclusive: there is no fault, but a part is not proven.
	Inconclusive Verdict = "inconclusive"

	// CompleteWithAcceptedLosses: there is no fault and nothing unproven but what
	// people have accepted ([ledger.Acceptance]): bad tiles, or doubts.
	CompleteWithAcceptedLosses Verdict = "complete_with_accepted_losses"
)

// A Report is the answer of [Run]. It marshals to a document of the schema
// apograph/verify/v1.
type Report struct {
	Kind    string  `json:"kind"`
	Schema  string  `json:"schema"`
	Mode    Mode    `json:"mode"`
	Verdict Verdict `json:"verdict"`
	Flow    Flow    `json:"flow"`

	Started  Time   `json:"started"`
	Finished Time   `json:"finished"`
	Version  string `json:"version"` // of the program, from [Config.Version]

	// OldestProof is when the oldest run began of those whose results were taken
	// over; null if everything was read now. What has happened since to the
	// records that were read then, the report cannot tell.
	OldestProof Time `json:"oldest_proof"`

	Scope      ScopeInfo   `json:"scope"`
	Summary    Summary     `json:"summary"`
	Partitions []Partition `json:"partitions"` // by topic, partition, generation
	Findings   []Finding   `json:"findings"`   // by topic, partition, offset
	Omitted    int         `json:"findings_omitted"`

	// Beside says where the foreign records of [Counts] stand, for a person; by
	// topic, partition, offset.
	Beside []Beside `json:"-"`
}

// A Flow names the two clusters of a ledger, as the ledger does.
type Flow struct {
	Source Cluster `json:"source"`
	Target Cluster `json:"target"`
}

// A Cluster names one cluster of a flow.
type Cluster struct {
	Alias     string `json:"alias"`
	ClusterID string `json:"cluster_id"`
}

// A ScopeInfo says what was asked for.
type ScopeInfo struct {
	Topics string `json:"topics"` // the patterns, for a person
	Until  Until  `json:"until"`

	// Sample is the slice that was asked for, as "i/n"; null for everything.
	Sample *string `json:"sample"`

	// SourceEndSeenAt is when the ends of the source were seen: before anything
	// was read, or, without a source, the oldest time at which the copier saw
	// the end of a partition in scope. Zero is unknown.
	SourceEndSeenAt Time `json:"source_end_seen_at"`

	// OutOfScope lists the topics that are left out: of those that have a book and,
	// if the source was asked, of all that it shows and that MM2 does not call
	// internal; and what was asked for and is nowhere to be found.
	OutOfScope []OutOfScope `json:"out_of_scope"`
}

// An OutOfScope is a topic that the report says nothing about.
type OutOfScope struct {
	Topic  string      `json:"topic"`
	Reason ScopeReason `json:"reason"`
}

// A ScopeReason says why a topic is out of scope.
type ScopeReason string

const (
	Excluded    ScopeReason = "excluded"    // left out by a pattern
	NotMatched  ScopeReason = "not_matched" // no pattern has it, of those asked for or else of the flow's
	WithoutBook ScopeReason = "no_book"     // there is nothing to compare: no such topic, or no pattern that says whether the flow has it
)

// Counts counts source offsets, records and target offsets. Two equations hold
// in each partition and in the sum:
//
//	source_offsets = copied + commit_markers + abort_markers + aborted + compacted
//	               + filtered + before_start + lost + unexplained + not_copied_yet
//	copied         = equal + missing + changed + reordered + not_verified
//
// A copied record that the source no longer holds (a finding diverged) counts as
// not verified, one of which the source holds another version as changed.
// A committed source record that the book does not call copied is a finding
// missing, but counts only as what the book calls it.
type Counts struct {
	SourceOffsets int64 `json:"source_offsets"` // from 0 to the source end, or to the books' end if that is further
	Copied        int64 `json:"copied"`
	CommitMarkers int64 `json:"commit_markers"`
	AbortMarkers  int64 `json:"abort_markers"`
	Aborted       int64 `json:"aborted"`
	Compacted     int64 `json:"compacted"`
	Filtered      int64 `json:"filtered"`
	BeforeStart   int64 `json:"before_start"`
	Lost          int64 `json:"lost"`
	Unexplained   int64 `json:"unexplained"`
	NotCopiedYet  int64 `json:"not_copied_yet"`

	Equal       int64 `json:"equal"`
	Missing     int64 `json:"missing"`
	Changed     int64 `json:"changed"`
	Reordered   int64 `json:"reordered"`
	NotVerified int64 `json:"not_verified"`

	// ProvenEarlier counts the copied records of which the result was taken
	// over from an earlier run ([Config.Resume]); they are counted above as well.
	ProvenEarlier int64 `json:"proven_earlier"`

	Extra      int64 `json:"extra"`      // target records and markers without an entry
	Duplicates int64 `json:"duplicates"` // second copies, named by the ledger or found
	Foreign    int64 `json:"foreign"`    // named by the ledger
	Orphans    int64 `json:"orphans"`    // named by the ledger
	AfterBook  int64 `json:"after_book"` // target offsets behind the book, until [UntilBook]

	// TimestampsReplaced counts records that were compared without their time,
	// because the target topic stamped its own.
	TimestampsReplaced int64 `json:"timestamps_replaced"`
}

// add adds the counts of d to c.
func (c *Counts) add(d *Counts) {
	for i, n := range d.all() {
		*c.all()[i] += *n
	}
}

// all returns every count in the order of the fields.
func (c *Counts) all() []*int64 {
	return []*int64{
		&c.SourceOffsets, &c.Copied, &c.CommitMarkers, &c.AbortMarkers, &c.Aborted, &c.Compacted,
		&c.Filtered, &c.BeforeStart, &c.Lost, &c.Unexplained, &c.NotCopiedYet,
		&c.Equal, &c.Missing, &c.Changed, &c.Reordered, &c.NotVerified, &c.ProvenEarlier,
		&c.Extra, &c.Duplicates, &c.Foreign, &c.Orphans, &c.AfterBook, &c.TimestampsReplaced,
	}
}

// balanced reports whether both equations of [Counts] hold.
func (c *Counts) balanced() bool {
	offsets := c.Copied + c.CommitMarkers + c.AbortMarkers + c.Aborted + c.Compacted +
		c.Filtered + c.BeforeStart + c.Lost + c.Unexplained + c.NotCopiedYet
	records := c.Equal + c.Missing + c.Changed + c.Reordered + c.NotVerified
	return offsets == c.SourceOffsets && records == c.Copied
}

// A Summary is the sum over all partitions.
type Summary struct {
	Partitions int `json:"partitions"` // source partitions in scope, with a book or without
	Counts
}

// A Partition is one row: a pair of the ledger, or a source partition that has
// none.
type Partition struct {
	Topic       string  `json:"topic"`
	TopicID     *string `json:"topic_id"` // as the book has it; nil if unknown
	Partition   int32   `json:"partition"`
	Generation  int32   `json:"generation"`   // 0: no book
	TargetTopic *string `json:"target_topic"` // nil: no book

	// Source and Target are what was asked for: from the first offset that is
	// in scope and still held, to the end. Target is nil without a book.
	Source Range  `json:"source"`
	Target *Range `json:"target"`

	Verdict Verdict `json:"verdict"`
	Counts
}

// A Time is a time in a report: RFC 3339, UTC, milliseconds; null if it is zero.
type Time struct{ time.Time }

// MarshalJSON returns the time as a string, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (t *Time) UnmarshalJSON(text []byte) error {
	var parsed *time.Time
	if err := json.Unmarshal(text, &parsed); err != nil {
		return err
	}
	t.Time = time.Time{}
	if parsed != nil {
		t.Time = *parsed
	}
	return nil
}

// timeOf returns the time at a number of milliseconds since 1970.
func timeOf(millis int64) Time { return Time{time.UnixMilli(millis)} }
