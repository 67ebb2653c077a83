package replicate_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// configFor returns a run of the whole pair into a ledger of the test's own.
func configFor(t *testing.T, pair *kafkatest.Pair, topics ...string) replicate.Config {
	t.Helper()
	return replicate.Config{
		Source:     clusterOf("source", pair.Source.Bootstrap),
		Target:     clusterOf("target", pair.Target.Bootstrap),
		LedgerPath: filepath.Join(t.TempDir(), "flow.ledger"),
		Topics:     topics,
		Once:       true,
		Logger:     slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}
}

func clusterOf(alias string, b kafkatest.Bootstrap) connect.Cluster {
	return connect.Cluster{Alias: alias, Bootstrap: b.Addresses, Options: b.DialOptions()}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

func TestCopyOfEverythingMixed(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	load := kafkatest.Load{Seed: 1, Topics: []string{"orders", "payments"}, Partitions: 3, Records: 3000}
	if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	config := configFor(t, pair, "orders", "pay.*")
	summary, err := replicate.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if !summary.Complete {
		t.Errorf("not complete: %+v", summary)
	}
	t.Logf("%+v", summary)
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, "orders", "payments")
}

// TestManyTimesTheQueue copies far more than a partition may have fetched and
// not yet assembled, through a budget that holds one fetch.
func TestManyTimesTheQueue(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	load := kafkatest.Load{Seed: 4, Topics: []string{"t"}, Partitions: 2, Records: 60_000, MaxValueBytes: 30_000}
	if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	config := configFor(t, pair, "t")
	config.MemoryBytes = 1 << 20
	summary, err := replicate.Run(t.Context(), config)
	if err != nil || !summary.Complete || summary.Bytes < 10<<20 {
		t.Fatalf("not complete, or too little: %v %+v", err, summary)
	}
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, "t")
}

// copyFile keeps a ledger as it is now.
func copyFile(t *testing.T, from string) (to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to = filepath.Join(t.TempDir(), "older.ledger")
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}
