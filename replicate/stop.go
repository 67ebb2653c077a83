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
	StopRecordTooLarge     StopReason = "record_too_large"
	StopTopicRecreated     StopReason = "topic_recreated"
	StopTopicDeleted       StopReason = "topic_deleted"
	StopSourceTruncated    StopReason = "source_truncated"
	StopTargetDeleted      StopReason = "target_deleted"
	StopTargetRecreated    StopReason = "target_recreated"
	StopTargetLostRecords  StopReason = "target_lost_records"
	StopTargetNotEmpty     StopReason = "target_not_empty"
	StopForeignWriter      StopReason = "foreign_writer"
	StopFenced             StopReason = "fenced"
	StopNotAuthorized      StopReason = "not_authorized"
	StopUnavailable        StopReason = "unavailable"
	StopUnsupportedFormat  StopReason = "unsupported_format"
	StopCorruptSourceBatch StopReason = "corrupt_source_batch"
	StopRecordRefused      StopReason = "record_refused"
	StopPaused             StopReason = "paused"
)

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
	case kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID:
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
