//go:build kafka

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// appendOld appends batches of a record each, with times of two days ago: a
// broker that is started again takes the state of their producer for expired.
func (l *lossFlow) appendOld(batches, bytes int) {
	l.t.Helper()
	p, err := l.source.Producer(kafkatest.None)
	l.do(err)
	defer p.Close()
	for i := range batches {
		value := append(fmt.Appendf(nil, "%d %s ", i, l.t.Name()), make([]byte, bytes)...)
		r := &kgo.Record{Topic: l.topic, Key: fmt.Appendf(nil, "%d", time.Now().UnixNano()), Value: value, Timestamp: time.Now().Add(-48 * time.Hour)}
		l.do(p.Append(l.t.Context(), r))
	}
}

// namesDoubles lets the flow come to its end. Then an outside reader compares
// both sides: nothing is missing, and the books name what is doubled.
func (l *lossFlow) namesDoubles() {
	l.t.Helper()
	l.once(0)
	source, err := l.source.JavaRead(l.t.Context(), l.topic, 0)
	l.do(err)
	target, err := l.target.JavaRead(l.t.Context(), l.topic, 0)
	l.do(err)
	found, named := compareRecords(source, target), namedDoubles(l.export(l.t, "target"), l.topic, 0, source)
	l.t.Logf("%d records, %d doubled, %d of them named", len(source), len(found.doubled), len(named))
	if len(source) == 0 || len(found.lost) > 0 || len(found.strange) > 0 || !slices.Equal(found.doubled, named) {
		l.t.Errorf("of %d records lost %v, strange %v, doubled %v, of which the books name %v", len(source), found.lost, found.strange, found.doubled, named)
	}
	if code, report := l.run(l.t, "verify"); code != 0 || report["verdict"] != "complete" {
		l.t.Errorf("verify: exit code %d, verdict %v, findings %v", code, report["verdict"], report["findings"])
	}
}

// start starts a copier that a test is going to kill.
func (l *lossFlow) start() *exec.Cmd {
	l.t.Helper()
	child := l.command(context.Background(), "replicate", "--topics", l.topic)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	l.do(child.Start())
	l.t.Cleanup(func() {
		if child.ProcessState == nil { // the test has failed
			_ = child.Process.Kill()
			_ = child.Wait()
		}
	})
	return child
}

// kill kills a copier. One that has ended by itself fails the test.
func (l *lossFlow) kill(child *exec.Cmd) {
	l.t.Helper()
	_ = child.Process.Kill()
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		l.t.Errorf("a copier without an end ended by itself: %v", err)
	}
}

// TestKafkaUnknownOutcomes: what a copier cannot know when a connection dies, on
// a broker that forgets producers soon.
func TestKafkaUnknownOutcomes(t *testing.T) {
	clusters := kafkatest.StartKafkas(t,
		kafkatest.KafkaOptions{Name: "source", HeapMB: 256},
		kafkatest.KafkaOptions{Name: "target", HeapMB: 256, Config: map[string]string{
			"producer.id.expiration.ms": "2000", "producer.id.expiration.check.interval.ms": "500",
		}})
	for _, test := range []struct {
		name string
		run  func(*lossFlow)
	}{
		{"late-requests", lateRequests},
		{"throttled", throttled},
		{"broker-killed", brokerKilled},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLossFlow(t, test.name, clusters[0], clusters[1])
			l.create(1)
			l.appendOld(1, 10)
			l.once(0)
			test.run(l)
		})
	}
}

// brokerKilled kills the target's broker while it is written to, and starts it
// again: what it had appended last may be unanswered, and it does not know the
// producer any more. Every other time the copier dies as well.
func brokerKilled(l *lossFlow) {
	r := rand.New(rand.NewPCG(20261130, 3))
	copier := l.start()
	for round := range 6 {
		end, err := l.target.ReadBounds(l.t.Context(), l.topic, 0)
		l.do(err)
		written := make(chan struct{})
		go func() {
			defer close(written)
			l.appendOld(300, 2000)
		}()
		l.do(l.target.WaitLogEnd(l.t.Context(), 1, l.topic, 0, end.HighWatermark+int64(20+r.IntN(150))))
		switch round % 3 {
		case 0: // the answers that are under way are lost
			l.do(l.target.Kill(1))
		case 1: // it stands still with requests in its sockets, and dies
			l.do(l.target.Pause(1))
			moment(l.t, 300*time.Millisecond)
			l.do(l.target.Kill(1))
		default: // it is told to end
			l.do(l.target.Stop(1))
		}
		if round%2 == 1 {
			l.kill(copier)
		}
		<-written
		l.do(l.target.Restart(1))
		if round%2 == 1 {
			copier = l.start()
		}
		source, err := l.source.ReadBounds(l.t.Context(), l.topic, 0)
		l.do(err)
		l.reaches(0, source.HighWatermark)
	}
	l.kill(copier)
	l.namesDoubles()
}

// lateRequests: a broker stands still with a batch in its socket, the copier
// that sent it dies, and its successor asks what is there. Then the broker goes
// on, and carries out what the dead one wanted.
func lateRequests(l *lossFlow) {
	defer func() { _ = l.target.Resume(1) }()
	for round := range 4 {
		copier := l.start()
		l.appendOld(1, 10) // so that its connection stands
		end, err := l.source.ReadBounds(l.t.Context(), l.topic, 0)
		l.do(err)
		l.reaches(0, end.HighWatermark)
		if round%2 == 1 { // the broker has forgotten the producer
			l.forgotten()
		}
		l.do(l.target.Pause(1))
		l.appendOld(1, 20_000) // less than a socket takes
		eventually(l.t, "a batch waits in the broker's socket", func() bool { return l.waiting() > 20_000 })
		l.kill(copier)
		copier = l.start()
		moment(l.t, time.Duration(100+200*round)*time.Millisecond)
		l.do(l.target.Resume(1))
		l.appendOld(2, 10)
		l.reaches(0, end.HighWatermark+3)
		l.kill(copier)
	}
	l.namesDoubles()
}

// forgotten waits until the broker knows no producer of the partition.
func (l *lossFlow) forgotten() {
	l.t.Helper()
	eventually(l.t, "the producers are forgotten", func() bool {
		n, err := l.target.ActiveProducers(l.t.Context(), l.topic, 0)
		return err == nil && n == 0
	})
}

// waiting returns how many bytes wait in the sockets of the target's broker, as
// /proc/net/tcp has it.
func (l *lossFlow) waiting() (n int64) {
	l.t.Helper()
	_, port, _ := strings.Cut(l.target.Addresses[0], ":")
	number, err := strconv.Atoi(port)
	l.do(err)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		l.do(err)
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(line)
			if len(fields) < 5 || !strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
				continue
			}
			_, received, _ := strings.Cut(fields[4], ":")
			bytes, err := strconv.ParseInt(received, 16, 64)
			l.do(err)
			n = max(n, bytes)
		}
	}
	return n
}

// throttled: the broker holds back its answers after it has appended, and the
// copier is killed again and again while it waits.
func throttled(l *lossFlow) {
	l.do(l.target.LimitClients(l.t.Context(), 300_000))
	defer func() { l.do(l.target.LimitClients(l.t.Context(), 0)) }()
	l.appendOld(200, 10_000)
	r := rand.New(rand.NewPCG(20261130, 4))
	for range 8 {
		copier := l.start()
		moment(l.t, time.Duration(200+r.IntN(700))*time.Millisecond)
		l.kill(copier)
	}
	l.namesDoubles()
}
