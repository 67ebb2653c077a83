//go:build race

package recordbatch_test

const raceDetector = true
