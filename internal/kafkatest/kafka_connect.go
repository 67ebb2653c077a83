//go:build kafka

package kafkatest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Classes of Connect, and of MirrorMaker 2's connectors for it.
const (
	connectStandalone     = "org.apache.kafka.connect.cli.ConnectStandalone"
	MirrorCheckpointClass = "org.apache.kafka.connect.mirror.MirrorCheckpointConnector"
	byteArrayConverter    = "org.apache.kafka.connect.converters.ByteArrayConverter"
)

// StartMirrorConnectors starts a Connect worker of a process of its own
// (connect-standalone.sh), which writes to a cluster, with single connectors of
// MirrorMaker 2, given by their properties, name and connector.class among them.
// It ends as [Java.StartMirrorMaker]'s does.
func (j *Java) StartMirrorConnectors(t TB, writesTo Bootstrap, connectors ...map[string]string) *MirrorMaker {
	t.Helper()
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "worker.properties")}
	worker := map[string]string{
		"bootstrap.servers":            writesTo.Server(),
		"key.converter":                byteArrayConverter,
		"value.converter":              byteArrayConverter,
		"header.converter":             byteArrayConverter,
		"offset.storage.file.filename": filepath.Join(dir, "offsets"),
		"offset.flush.interval.ms":     "1000",
		"listeners":                    "http://127.0.0.1:0",
		"plugin.discovery":             "service_load", // the quickest
	}
	all := append([]map[string]string{worker}, connectors...)
	for i, c := range connectors {
		files = append(files, filepath.Join(dir, fmt.Sprintf("connector-%d-%s.properties", i, c["name"])))
	}
	for i, file := range files {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(all[i])) {
			fmt.Fprintf(&b, "%s=%s\n", name, all[i][name])
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatalf("start connectors: %v", err)
		}
	}
	return j.startMirror(t, connectStandalone, files...)
}
