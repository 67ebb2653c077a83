package figures

// Names of the candidates, in results, tables and targets.
const (
	Apograph = "apograph"
	Copier   = "copier"
	Floor    = "floor"
	MM2      = "mm2"
	MM2Tuned = "mm2-tuned"
	Reader   = "reader"

	// The product built without its proofs: without ledger and digests, and the
	// same with decompression all the same.
	Unproven     = "apograph-unproven"
	Decompressed = "apograph-decompressed"
)
