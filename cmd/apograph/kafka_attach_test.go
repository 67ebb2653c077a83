//go:build kafka

package main

import (
	"path/filepath"
	"testing"

	"apograph/internal/kafkatest"
)

// TestKafkaAttach loses the ledger of a copy between real brokers, with
// transactions, and goes on with a new one.
func TestKafkaAttach(t *testing.T) {
	f := &realFlow{
		source: kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "source"}),
		target: kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "target"}),
		ledger: filepath.Join(t.TempDir(), "flow.ledger"),
	}
	load := func(seed uint64) {
		t.Helper()
		l := kafkatest.Load{Seed: seed, Topics: []string{"orders"}, Partitions: 3, Records: 2000, MaxValueBytes: 5000, Configs: kafkatest.LoadConfigs()}
		if err := l.Run(t.Context(), f.source.Bootstrap); err != nil {
			t.Fatal(err)
		}
	}
	load(1)
	f.prove(t, "orders")
	f.ledger = filepath.Join(t.TempDir(), "new.ledger")
	code, report := f.run(t, "attach", "--topics", "orders")
	if code != 0 {
		t.Fatalf("attach: exit code %d: %v", code, report)
	}
	for _, p := range report["partitions"].([]any) {
		if p.(map[string]any)["verdict"] != "attached" {
			t.Errorf("%v", p)
		}
	}
	load(2)
	f.prove(t, "orders")
	f.javaAgrees(t, "orders")
}
