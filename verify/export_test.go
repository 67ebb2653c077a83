package verify

// SetGrain makes c cut books more finely than into blocks of 16 MiB: into blocks
// of a number of bytes or offsets, and parts of a number of blocks, around which
// a number of records is read as well.
func (c *Config) SetGrain(bytes, offsets, blocks, context int64) {
	c.grain = grain{bytes: bytes, offsets: offsets, blocks: blocks, context: context}
}

// Await is await.
var Await = await

// ParseState reports whether a state file is intact.
func ParseState(raw []byte) bool {
	_, ok := parseState(raw)
	return ok
}
