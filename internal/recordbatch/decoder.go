package recordbatch

import (
	"bytes"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// DefaultMaxBytes is the limit of a [Decoder] that sets none: 64 MiB, which is 64
// times what a Kafka broker accepts as a compressed batch by default.
const DefaultMaxBytes = 64 << 20

// A Decoder decompresses the bodies of batches. The zero Decoder is ready to use.
// It is meant to be kept: it reuses its buffer, which grows to the largest body
// seen, and its codecs' states. It must not be copied after its first use, is not
// safe for concurrent use, and starts no goroutine.
type Decoder struct {
	// MaxBytes is the most that one body may decompress to, in bytes. 0 or less
	// means [DefaultMaxBytes]. It may change between calls.
	//
	// It bounds memory too, before decompressing where the payload tells its size,
	// and while decompressing where it does not. The buffer never exceeds MaxBytes
	// by more than a block of zstd, 128 KiB; while it grows, the smaller one that
	// it replaces is there as well. A zstd payload in many small blocks without a
	// declared size needs the window that it declares besides, and is refused if
	// that exceeds both MaxBytes and 8 MiB.
	MaxBytes int

	buf          []byte       // the last body; its capacity is what is reused
	source       bytes.Reader // the payload, for codecs that read a stream
	gzip         gzip.Reader
	zstd         *zstd.Decoder // for whole payloads
	stream       *zstd.Decoder // for streams, with windows of up to streamWindow
	streamWindow uint64
}

// Body returns the decompressed body of batch, one whole batch with header h as
// [Parse] returned it. For [None] it is a subslice of batch, whatever its size;
// otherwise it is the decoder's buffer, valid until the next call. A batch of no
// records has an empty body.
//
// The error is a [*TooLargeError] if the body would exceed MaxBytes, a
// [*DecompressError] if the payload is broken, or wraps [ErrUnknownCodec]. What is
// in the payload behind the end of its codec's stream is ignored where Kafka's
// Java client does not read it: behind the last gzip member, behind the first lz4
// frame, and up to three bytes behind the last snappy block.
func (d *Decoder) Body(h Header, batch []byte) ([]byte, error) {
	if len(batch) < HeaderSize {
		return nil, headerError(lengthAt, "the batch ends within its header")
	}
	payload := batch[HeaderSize:]
	if h.Count == 0 {
		return payload[:0], nil
	}
	var (
		body []byte
		err  error
	)
	switch h.Codec() {
	case None:
		return payload, nil
	case Gzip:
		body, err = d.gunzip(payload)
	case Snappy:
		body, err = d.unsnappy(payload)
	case LZ4:
		body, err = d.unlz4(payload)
	case Zstd:
		body, err = d.unzstd(payload)
	default:
		return nil, unknownCodec(h.Codec())
	}
	d.source.Reset(nil) // the batch may be reused or freed
	if err != nil {
		return nil, decodeError(h.Codec(), err)
	}
	return body, nil
}

// limit returns the most that a body may have. Lengths in a batch are int32, so
// none is larger than that, less what the buffer needs behind it.
func (d *Decoder) limit() int {
	if d.MaxBytes <= 0 {
		return DefaultMaxBytes
	}
	return min(d.MaxBytes, math.MaxInt32-zstdSlack)
}

// tooLarge returns the error of a body that exceeds the limit. size is what the
// payload says that it is, 0 if unknown.
func (d *Decoder) tooLarge(c Codec, size uint64) error {
	return &TooLargeError{Codec: c, MaxBytes: d.limit(), Size: int64(min(size, math.MaxInt64))}
}

// reserve returns out with a capacity of at least n, and makes that capacity the
// decoder's buffer. It doubles, so that a body that grows block by block is copied
// a bounded number of times, but not beyond most unless n asks for it.
func (d *Decoder) reserve(out []byte, n, most int) []byte {
	if cap(out) >= n {
		return out
	}
	grown := make([]byte, len(out), max(n, min(2*cap(out), most)))
	copy(grown, out)
	d.buf = grown
	return grown
}

// fill appends all that r has to out, within the limit.
func (d *Decoder) fill(c Codec, out []byte, r io.Reader) ([]byte, error) {
	// One byte more than the limit tells a body that ends there from one that
	// does not.
	most := d.limit() + 1
	for len(out) < most {
		if len(out) == cap(out) {
			out = d.reserve(out, min(len(out)+minRead, most), most)
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if err == io.EOF && len(out) < most {
			return out, nil
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
	}
	return nil, d.tooLarge(c, 0)
}

// minRead is the least room that fill gives to a reader, unless the limit is nearer.
const minRead = 4 << 10
