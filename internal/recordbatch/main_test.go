package recordbatch_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes any goroutine that is left behind a failure.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
