package connect

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain: nothing that this package starts outlives its client.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
