//go:build kafka

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
)

// TestKafkaDocs goes through the migration between real clusters, with Kafka's
// own tools where the page has them. Its alternatives run on fake clusters only.
func TestKafkaDocs(t *testing.T) {
	clusters := kafkatest.StartKafkas(t, kafkatest.KafkaOptions{Name: "old"}, kafkatest.KafkaOptions{Name: "new", Nodes: 3})
	page := mustReadPage(t, "../../docs/runbooks/migrate.md", false)
	s := newDocStage(t, clusters[0].Bootstrap, clusters[1].Bootstrap, page.unit, map[string]bool{})
	s.tools = mustMakeTools(t, clusters[0])
	s.fill()
	s.must(clusters[0].WaitDecided(t.Context(), "payments"))
	page.play(s, nil, migrateActs())
}

// mustMakeTools makes the scripts of Kafka's bin directory that the pages use.
func mustMakeTools(t *testing.T, k *kafkatest.Kafka) string {
	dir := t.TempDir()
	for name, class := range map[string]string{
		"kafka-configs.sh":         "kafka.admin.ConfigCommand",
		"kafka-consumer-groups.sh": kafkatest.ConsumerGroupCommand,
		"kafka-transactions.sh":    "org.apache.kafka.tools.TransactionsCommand",
	} {
		var script strings.Builder
		script.WriteString("#!/bin/sh\nexec java")
		for _, arg := range k.JavaCommand([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1"}, class) {
			fmt.Fprintf(&script, " '%s'", arg)
		}
		script.WriteString(" \"$@\"\n")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script.String()), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
