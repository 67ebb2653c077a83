package kafkatest

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A Decompressor is kgo's default one with a zstd decoder that has no
// finalizer. kgo's closes a channel from a finalizer, which runs outside every
// synctest bubble and ends the process ("close of synctest channel from outside
// bubble") when the decoder was made inside one. So clients that may read zstd
// on a kfake.VirtualNetwork need it; [Bootstrap.DialOptions] has it.
//
// It is safe for concurrent use.
type Decompressor struct {
	zstd *zstd.Decoder
	rest kgo.Decompressor
}

// maxDecompressed bounds what one batch may become.
const maxDecompressed = 1 << 30

// NewDecompressor returns a Decompressor. Nothing needs to be closed: a decoder
// of this kind runs no goroutines.
func NewDecompressor() *Decompressor {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDecompressed))
	if err != nil {
		panic("kafkatest: zstd refuses constant options: " + err.Error())
	}
	return &Decompressor{zstd: d, rest: kgo.DefaultDecompressor()}
}

// Decompress implements [kgo.Decompressor].
func (d *Decompressor) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec != kgo.CodecZstd {
		return d.rest.Decompress(src, codec)
	}
	out, err := d.zstd.DecodeAll(src, nil)
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return out, nil
}
