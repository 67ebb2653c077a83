//go:build !race

package recordbatch_test

// raceDetector is whether the race detector watches. It makes sync.Pool forget at
// random, so that zstd, which keeps tables in pools, then allocates.
const raceDetector = false
