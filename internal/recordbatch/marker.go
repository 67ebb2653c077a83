package recordbatch

import (
	"encoding/binary"
	"fmt"
)

// Types of the control records that end a transaction (ControlRecordType).
const (
	abortMarker  = 0
	commitMarker = 1

	controlKeySize = 4 // version and type, two bytes each
)

// MarkerType tells whether the control batch with header h, as [Parse] returned
// it, commits or aborts its producer's transaction.
//
// Batch must hold the one control record that brokers write (EndTransactionMarker).
// In a control batch of no records compaction has removed the marker, or a broker
// keeps a producer's state: it ends nothing. Callers must ask for h.Count first;
// here it is an error.
//
// The error is an [*UnknownMarkerError] if the record is well formed but of
// another type, and a [*FormatError] otherwise. As in ControlRecordType.parseTypeId
// versions above 0 are read as version 0, and the key may be longer; the value does
// not matter.
func MarkerType(h Header, batch []byte) (commit bool, err error) {
	switch {
	case !h.Control():
		return false, headerError(attributesAt, "the batch is not a control batch")
	case h.Codec() != None:
		return false, headerError(attributesAt, fmt.Sprintf("a control batch is compressed by %v", h.Codec()))
	case h.Count != 1:
		return false, headerError(countAt, fmt.Sprintf("a control batch holds %d records, not 1", h.Count))
	case len(batch) < HeaderSize:
		return false, headerError(lengthAt, "the batch ends within its header")
	}
	var (
		w Walker
		r Record
	)
	w.ResetBatch(h, batch[HeaderSize:])
	for w.Next(&r) {
	}
	if err := w.Err(); err != nil {
		return false, err
	}
	return markerType(r.Key)
}

func markerType(key []byte) (commit bool, err error) {
	if len(key) < controlKeySize {
		return false, controlKeyError(fmt.Sprintf("the control record's key has %d bytes", len(key)))
	}
	if version := int16(binary.BigEndian.Uint16(key)); version < 0 {
		return false, controlKeyError(fmt.Sprintf("the control record's version is %d", version))
	}
	switch t := int16(binary.BigEndian.Uint16(key[2:])); t {
	case abortMarker:
		return false, nil
	case commitMarker:
		return true, nil
	default:
		return false, &UnknownMarkerError{Type: t}
	}
}

func controlKeyError(reason string) error {
	return &FormatError{InBody: true, Reason: reason}
}
