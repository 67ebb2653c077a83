// Package canon defines the canonical record, the one form in which a record is
// hashed, and its hash.
//
// Two records are the same record, to the ledger and to the verifier, exactly
// when their canonical bytes are equal. The canonical form holds what a consumer
// sees and nothing else:
//
//	timestamp   8 bytes, big-endian, milliseconds since the epoch, as a consumer sees it
//	key         4 bytes, big-endian length, -1 for null; then the bytes
//	value       the same
//	headers     4 bytes, big-endian count; then, for each header in order,
//	            its key and its value, each written as the key above
//
// Offsets, batch boundaries, codecs, producer ids and epochs are left out: they
// differ legitimately between a source and its copy.
//
// The form is part of the ledger's format. Changing one byte of it makes every
// existing ledger unverifiable, so the vectors in testdata never change.
//
// The hash is xxHash64 with seed 0. It finds accidents, not forgeries: whoever
// can choose the records can make two different ones collide.
package canon
