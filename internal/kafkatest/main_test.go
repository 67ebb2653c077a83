package kafkatest_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"apograph/internal/kafkatest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// testContext bounds a test that waits for clusters.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// diskPair starts a pair whose logs can be rewritten.
func diskPair(t *testing.T) *kafkatest.Pair {
	t.Helper()
	return kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir()})
}
