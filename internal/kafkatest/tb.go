package kafkatest

import "context"

// TB is the part of testing.TB that the helpers use. *testing.T, *testing.B
// and *testing.F satisfy it. The package does not import testing, so that a
// program (apograph demo) can use the parts that return errors.
//
// The context ends just before the cleanup functions run, so a cleanup that
// talks to a cluster needs [context.WithoutCancel].
type TB interface {
	Helper()
	Name() string
	Context() context.Context
	Cleanup(func())
	TempDir() string
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}
