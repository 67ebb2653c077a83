package figures

// Names of the candidates, in results, tables and targets.
const (
	Apograph = "apograph"
	Copier   = "copier"
	Floor    = "floor"
	MM2      = "mm2"
	MM2Tuned = "mm2-tuned"
	Reader   = "reader"
)
