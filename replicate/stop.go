package replicate

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A StopReason says why a partition cannot go on. The values are part of the
// interface (`reason` in reports).
type StopReason string

const (
	StopRecordTooLarge     StopReason = "record_too_large"     // the target takes no batch that large, not even of this record alone
	StopTopicRecreated     StopReason = "topic_recreated"      // the source has another topic under the name
	StopTopicDeleted       StopReason = "topic_deleted"        // the source topic is gone
	StopSourceTruncated    StopReason = "source_truncated"     // the source's log was cut below the books
	StopTargetDeleted      StopReason = "target_deleted"       // the target topic is gone
	StopTargetRecreated    StopReason = "target_recreated"     // the target has another topic under the name
	StopTargetLostRecords  StopReason = "target_lost_records"  // the target's log ends below the books, or lost what stood behind them
	StopTargetNotEmpty     StopReason = "target_not_empty"     // the target holds records that the ledger does not know
	StopForeignWriter      StopReason = "foreign_writer"       // somebody else wrote to the target partition
	StopFenced             StopReason = "fenced"               // the target refuses our producer id and epoch: somebody else runs under it
	StopNotAuthorized      StopReason = "not_authorized"       // a right is missing, or a cluster does not let us in
	StopUnavailable        StopReason = "unavailable"          // a leader gave no answer for too long, or one that leads nowhere
	StopUnsupportedFormat  StopReason = "unsupported_format"   // batches of a format that cannot be carried over unharmed
	StopCorruptSourceBatch StopReason = "corrupt_source_batch" // the source's bytes are damaged
	StopRecordRefused      StopReason = "record_refused"       // the target refuses a record for another reason than its size
	StopPaused             StopReason = "paused"               // a person said so
)

// retried reports whether a partition that stopped tries again by itself. Where it
// does not, a person's word is needed.
func (r StopReason) retried() bool {
	return r != StopPaused && r != StopForeignWriter && r != StopFenced
}

// A retry says when something that failed is tried again. The zero value is
// that of something that goes well.
type retry struct {
	tries int
	since time.Time
	at    time.Time
}

// failed counts one more failure. The pause doubles up to 64 times first; what
// passes by itself is tried more often.
func (r *retry) failed(now time.Time, first time.Duration, reason StopReason) {
	if r.tries == 0 {
		r.since = now
	}
	doublings := 6
	if reason == StopUnavailable {
		doublings = 1
	}
	r.at = now.Add(first << min(r.tries, doublings))
	r.tries++
}

// codeOf returns the Kafka error code in err, nil if there is none.
func codeOf(err error) *kerr.Error {
	var code *kerr.Error
	if errors.As(err, &code) {
		return code
	}
	return nil
}

// classifyProduce says what the answer to one batch proves (raw produce,
// measured on brokers 3.9 to 4.4). A code that comes with a base offset says
// that the batch reached a log and may survive there; without one the leader
// refused it. Codes not listed prove nothing.
func classifyProduce(code int16, base int64, detail string) answer {
	a := answer{base: base, detail: detail}
	err := kerr.TypedErrorForCode(code)
	if err == kerr.UnknownServerError && code != err.Code {
		a.outcome = unknown // a code of a later Kafka
		return a
	}
	switch err {
	case nil:
		a.outcome = appended
	case kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition, kerr.LeaderNotAvailable,
		kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.UnknownTopicID, kerr.InconsistentTopicID,
		kerr.NotEnoughReplicas, kerr.ThrottlingQuotaExceeded:
		a.outcome = notAppended
		if base >= 0 {
			a.outcome = unknown
		}
	case kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.DuplicateSequenceNumber:
		a.outcome = outOfOrder
	case kerr.InvalidProducerEpoch, kerr.ProducerFenced:
		a.outcome, a.stop = denied, StopFenced
	case kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed:
		a.outcome, a.stop = denied, StopNotAuthorized
	case kerr.MessageTooLarge, kerr.RecordListTooLarge:
		a.outcome, a.stop = refused, StopRecordTooLarge
	case kerr.UnknownServerError, kerr.CorruptMessage, kerr.InvalidTimestamp, kerr.InvalidRecord,
		kerr.TransactionalIDAuthorizationFailed, kerr.UnsupportedCompressionType, kerr.PolicyViolation,
		kerr.InvalidRequest, kerr.UnsupportedForMessageFormat, kerr.InvalidTopicException:
		a.outcome, a.stop = refused, StopRecordRefused
	default:
		a.outcome = unknown
	}
	if err != nil {
		a.detail = joinDetail(err.Message, detail)
	}
	return a
}

func joinDetail(parts ...string) string {
	out := ""
	for _, p := range parts {
		switch {
		case p == "":
		case out == "":
			out = p
		default:
			out += ": " + p
		}
	}
	return out
}
