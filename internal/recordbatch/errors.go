package recordbatch

import (
	"errors"
	"fmt"
)

// ErrTruncated means that the bytes end inside a batch. See [Peek].
var ErrTruncated = errors.New("record batch is cut off")

// ErrCRC means that a batch is not what was written: its checksum differs. See
// [CheckCRC].
var ErrCRC = errors.New("record batch checksum differs")

// ErrTooLarge means that a decompressed body would exceed [Decoder.MaxBytes].
// The error that wraps it is a [*TooLargeError].
var ErrTooLarge = errors.New("decompressed record batch exceeds the limit")

// ErrUnknownCodec means that a batch claims a codec that this package does not
// know.
var ErrUnknownCodec = errors.New("unknown compression codec")

// ErrEmptyBatch means that a batch of no records was to be sealed, which no
// broker accepts. See [Builder.Seal].
var ErrEmptyBatch = errors.New("record batch has no records")

// A FormatError reports bytes that break the format of a record batch. It is
// never transient: the same bytes fail again.
type FormatError struct {
	// Record is the index within the batch of the record that is broken, -1 if
	// it is the header or the bytes behind the last record.
	Record int

	// At is where the problem was seen: in bytes from the start of the batch if
	// InBody is false, else from the start of the decompressed body.
	At     int
	InBody bool

	Reason string // for a person; not for parsing
}

// Error says where the format is broken and how.
func (e *FormatError) Error() string {
	switch {
	case e.Record >= 0:
		return fmt.Sprintf("record %d at body byte %d: %s", e.Record, e.At, e.Reason)
	case e.InBody:
		return fmt.Sprintf("record batch body byte %d: %s", e.At, e.Reason)
	default:
		return fmt.Sprintf("record batch header byte %d: %s", e.At, e.Reason)
	}
}

func headerError(at int, reason string) error {
	return &FormatError{Record: -1, At: at, Reason: reason}
}

// A DecompressError reports a body that its codec cannot read, or whose own
// checksum or size is wrong. It is never transient.
type DecompressError struct {
	Codec Codec
	Err   error
}

// Error names the codec and what it said.
func (e *DecompressError) Error() string {
	return fmt.Sprintf("decompress %v record batch: %v", e.Codec, e.Err)
}

// Unwrap returns what the codec said.
func (e *DecompressError) Unwrap() error { return e.Err }

// A TooLargeError reports a body that decompresses to more than the limit. It
// wraps [ErrTooLarge].
type TooLargeError struct {
	Codec    Codec
	MaxBytes int // the limit that was in force

	// Size is what the payload says that it decompresses to, 0 if it does not
	// say. A hostile payload may say anything above MaxBytes.
	Size int64
}

// Error names the codec, the limit and, if known, the size.
func (e *TooLargeError) Error() string {
	if e.Size > 0 {
		return fmt.Sprintf("%v: %v, %d bytes, limit %d", ErrTooLarge, e.Codec, e.Size, e.MaxBytes)
	}
	return fmt.Sprintf("%v: %v, limit %d", ErrTooLarge, e.Codec, e.MaxBytes)
}

// Unwrap returns [ErrTooLarge].
func (e *TooLargeError) Unwrap() error { return ErrTooLarge }

// An UnknownMarkerError reports a control record that ends no transaction: a
// record of the KRaft quorum, or one of a type that Kafka had not assigned. See
// [MarkerType].
type UnknownMarkerError struct {
	Type int16 // ControlRecordType
}

// Error names the type.
func (e *UnknownMarkerError) Error() string {
	return fmt.Sprintf("control record of type %d is neither a commit nor an abort marker", e.Type)
}

func unknownCodec(c Codec) error {
	return fmt.Errorf("%w: %d", ErrUnknownCodec, int8(c))
}

// decodeError returns the error of a decompression as [Decoder.Body] documents it.
func decodeError(c Codec, err error) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	return &DecompressError{Codec: c, Err: err}
}

func bodyTooLong(size int) error {
	return fmt.Errorf("record batch body of %d bytes is longer than the format allows", size)
}
