package recordbatch

import (
	"math"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// zstdEncoderWindow is how far back what Encoder writes refers, and thus what its
// readers must hold: a whole batch of the size that brokers accept by default.
const zstdEncoderWindow = 1 << 20

// An Encoder compresses the bodies of batches, each codec at its default level.
// The zero Encoder is ready to use. It keeps the states of the codecs that it has
// used. It must not be copied after its first use, is not safe for concurrent use,
// and starts no goroutine.
//
// Snappy is written as one raw block and lz4 as the Java client writes it. Payloads
// have no checksums of their own, but for gzip, where they are not optional: the
// batch has one.
type Encoder struct {
	gzip *gzip.Writer
	sink appender
	lz4  *lz4.Compressor
	zstd *zstd.Encoder
}

// appender collects what gzip writes.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

// Body appends body, compressed by c, to dst and returns the extended slice. The
// error wraps [ErrUnknownCodec], or comes from a body of 2 GiB or more; dst is
// then returned as it was.
func (e *Encoder) Body(dst []byte, c Codec, body []byte) ([]byte, error) {
	if len(body) > math.MaxInt32-HeaderSize {
		return dst, bodyTooLong(len(body))
	}
	switch c {
	case None:
		return append(dst, body...), nil
	case Gzip:
		return e.appendGzip(dst, body)
	case Snappy:
		start := len(dst)
		dst = slices.Grow(dst, snappy.MaxEncodedLen(len(body)))
		return dst[:start+len(snappy.Encode(dst[start:cap(dst)], body))], nil
	case LZ4:
		if e.lz4 == nil {
			e.lz4 = new(lz4.Compressor)
		}
		return appendLZ4(dst, body, e.lz4), nil
	case Zstd:
		return e.appendZstd(dst, body)
	default:
		return dst, unknownCodec(c)
	}
}

func (e *Encoder) appendGzip(dst, body []byte) ([]byte, error) {
	if e.gzip == nil {
		e.gzip = gzip.NewWriter(&e.sink)
	}
	e.sink.b = dst
	e.gzip.Reset(&e.sink)
	_, err := e.gzip.Write(body)
	if err == nil {
		err = e.gzip.Close()
	}
	out := e.sink.b
	e.sink.b = nil
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (e *Encoder) appendZstd(dst, body []byte) ([]byte, error) {
	if e.zstd == nil {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(zstdEncoderWindow), zstd.WithEncoderCRC(false))
		if err != nil {
			return dst, err
		}
		e.zstd = z
	}
	return e.zstd.EncodeAll(body, dst), nil
}
