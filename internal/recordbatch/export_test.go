package recordbatch

// What the tests of single algorithms need.
var (
	CRCPowers   = crcPowers
	CRCMultiply = crcMultiply
	XXH32       = xxh32
	LZ4BlockLen = lz4BlockLen
	ZstdBounds  = zstdBounds
	AppendVar   = appendVarint
	AppendLong  = appendVarlong
	Varint      = varint
	Varlong     = varlong
	VarintLen   = varintLen
	VarlongLen  = varlongLen
)

// ZstdSlack is what a decoder needs beyond its limit for zstd.
const ZstdSlack = zstdSlack
