//go:build kafka

package kafkatest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// MirrorMakerClass is the main class of MirrorMaker 2 as a process of its own
// (connect-mirror-maker.sh); its argument is a properties file.
const MirrorMakerClass = "org.apache.kafka.connect.mirror.MirrorMaker"

// MirrorMakerReplicationFactors are the settings that MirrorMaker 2 needs to make
// topics on clusters of one node, its own topics included.
func MirrorMakerReplicationFactors() []string {
	var settings []string
	for _, of := range []string{"", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.", "offset.storage.", "status.storage.", "config.storage."} {
		settings = append(settings, of+"replication.factor=1")
	}
	return settings
}

// What a source connector of MirrorMaker 2 does when it starts, and from then on
// from time to time, for [MirrorMaker.Did].
const (
	MirrorMakerMakesTopics   = "creating downstream topic-partitions"
	MirrorMakerSyncsACLs     = "syncing topic ACLs"
	MirrorMakerSyncsSettings = "syncing topic configs"
)

// A MirrorMaker is a process of the real MirrorMaker 2, or of connectors of its.
type MirrorMaker struct {
	t       TB
	process *process
	output  *os.File
	log     string
}

// StartMirrorMaker starts MirrorMaker 2 with a properties file. It is killed at the
// test's end at the latest; what it logged is shown if the test has failed.
func (j *Java) StartMirrorMaker(t TB, properties string) *MirrorMaker {
	t.Helper()
	return j.startMirror(t, MirrorMakerClass, properties)
}

func (j *Java) startMirror(t TB, mainClass string, files ...string) *MirrorMaker {
	t.Helper()
	m := &MirrorMaker{t: t, log: filepath.Join(t.TempDir(), "mirror-maker.log")}
	var err error
	if m.output, err = os.Create(m.log); err != nil {
		t.Fatalf("start MirrorMaker: %v", err)
	}
	const logger = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.connect.mirror"
	jvm := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", logger + "=info"}
	if m.process, err = startProcess(m.output, "java", j.JavaCommand(jvm, mainClass, files...)...); err != nil {
		t.Fatalf("start MirrorMaker: %v", err)
	}
	t.Cleanup(m.close)
	return m
}

func (m *MirrorMaker) close() {
	if err := m.Kill(); err != nil {
		m.t.Errorf("kill MirrorMaker: %v", err)
	}
	_ = m.output.Close()
	if m.t.Failed() {
		m.t.Logf("end of MirrorMaker's log:\n%s", tail(m.log, 8000))
	}
}

// Running reports whether the process has not ended.
func (m *MirrorMaker) Running() bool { return m.process.running() }

// Kill ends MirrorMaker with SIGKILL. Its workers stay members of their groups
// until the coordinators miss them.
func (m *MirrorMaker) Kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return m.process.stop(ctx, syscall.SIGKILL)
}

// Did reports whether the source connector of a flow has done one of its duties
// to the end, by what it logs: a duty that changes nothing leaves no other trace.
// Requests that change something may still be on their way.
func (m *MirrorMaker) Did(source, target, duty string) (bool, error) {
	data, err := os.ReadFile(m.log)
	if err != nil {
		return false, err
	}
	thread := fmt.Sprintf("[Scheduler for MirrorSourceConnector: %s->%s|MirrorSourceConnector-%s]", source, target, duty)
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, thread) && strings.Contains(line, duty+" took ") {
			return true, nil
		}
	}
	return false, nil
}
