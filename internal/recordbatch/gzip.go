package recordbatch

import (
	"encoding/binary"
)

const (
	gzipTrailerSize  = 8
	deflateExpansion = 1032 // the most that one byte of deflate can become
)

// gunzip decompresses gzip members up to the end of the payload, or up to bytes
// that are not the header of a member: java.util.zip.GZIPInputStream, which Kafka
// reads with, takes those for padding. Every member's checksum and size count.
func (d *Decoder) gunzip(payload []byte) ([]byte, error) {
	out := d.reserve(d.buf[:0], gzipHint(payload, d.limit())+1, d.limit()+1)
	d.source.Reset(payload)
	for members := 0; ; members++ {
		err := d.gzip.Reset(&d.source)
		if err != nil && members > 0 {
			return out, nil
		}
		if err == nil {
			d.gzip.Multistream(false)
			out, err = d.fill(Gzip, out, &d.gzip)
		}
		if err != nil {
			return nil, err
		}
	}
}

// gzipHint returns a guess at how much the payload decompresses to, within what it
// can decompress to and within limit. A payload of one member ends with its size.
func gzipHint(payload []byte, limit int) int {
	if len(payload) < gzipTrailerSize {
		return 0
	}
	size := uint64(binary.LittleEndian.Uint32(payload[len(payload)-4:]))
	return int(min(size, uint64(len(payload))*deflateExpansion, uint64(limit)))
}
