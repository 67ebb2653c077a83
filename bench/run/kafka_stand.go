//go:build kafka

package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/bench/delay"
	"apograph/internal/kafkatest"
)

// brokerJVM is how kafka-server-start.sh runs a broker.
var brokerJVM = slices.Concat([]string{"-Xmx1G", "-Xms1G"}, performanceJVM)

// performanceJVM is what kafka-run-class.sh adds for every process.
var performanceJVM = []string{
	"-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
	"-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
}

// brokerConfig has the threads of a broker's defaults, which tests lower, and gives
// deleted topics' disk space back at once, not after a minute.
var brokerConfig = map[string]string{
	"num.network.threads": "3", "num.io.threads": "8",
	"log.segment.delete.delay.ms":     "1000",
	"log.retention.check.interval.ms": "3600000", "log.retention.ms": "-1",
}

// A stand is what a run has: the clusters, a directory, and the cleaning up of
// both. It stands in for a test where kafkatest wants one.
type stand struct {
	ctx      context.Context
	dir      string
	cleanups []func()
	failed   atomic.Bool

	source, target *kafkatest.Kafka
	sink           string // address that drops what it is sent
	ca, keys       string // files of the certificate of both clusters and of the sink, without and with its key; empty: no TLS

	sourceServer, targetServer string // as the candidates see them
}

// A standFailure is what Fatalf ends a run with.
type standFailure string

func (f standFailure) Error() string { return string(f) }

// withStand starts the clusters, calls f, and cleans up, whatever happens. The
// candidates, and they alone, see the cluster that is far in the row from a
// distance, and both over TLS if the row says so.
func withStand(ctx context.Context, row row, f func(*stand) error) (err error) {
	dir, err := os.MkdirTemp("", "apograph-bench-")
	if err != nil {
		return err
	}
	s := &stand{ctx: ctx, dir: dir}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(standFailure)
			if !ok {
				panic(r)
			}
			s.failed.Store(true)
			err = failure
		}
		for _, cleanup := range slices.Backward(s.cleanups) {
			cleanup()
		}
	}()
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	if row.TLS {
		if err := s.makeKeys(); err != nil {
			return err
		}
	}
	if err := s.startClusters(row); err != nil {
		return err
	}
	if err := s.startSink(); err != nil {
		return err
	}
	return f(s)
}

// startSink starts the process that the floor writes to.
func (s *stand) startSink() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.CommandContext(s.ctx, self, "sink", "-keys", s.keys)
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	s.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	s.sink = strings.TrimSpace(address)
	return err
}

// oneWay is the delay to a cluster that is far, in each direction.
const oneWay = 50 * time.Millisecond

func (s *stand) startClusters(row row) error {
	options := []kafkatest.KafkaOptions{{Name: "source"}, {Name: "target"}}
	servers := make([]string, len(options))
	for i := range options {
		o := &options[i]
		o.JVM, o.Config = brokerJVM, brokerConfig
		if row.Remembered > 0 && o.Name == "target" {
			o.Config = maps.Clone(brokerConfig)
			o.Config["producer.id.expiration.ms"] = strconv.FormatInt(row.Remembered.Milliseconds(), 10)
		}
		var err error
		switch {
		case row.TLS:
			servers[i], err = s.listenTLS(o)
		case o.Name == row.Far:
			servers[i], err = s.listenFar(o)
		}
		if err != nil {
			return err
		}
	}
	clusters := kafkatest.StartKafkas(s, options...)
	for i, k := range clusters {
		if servers[i] == "" {
			servers[i] = k.Server()
		}
	}
	s.source, s.target = clusters[0], clusters[1]
	s.sourceServer, s.targetServer = servers[0], servers[1]
	return nil
}

// listenFar gives a cluster a listener behind a proxy, and returns its address.
func (s *stand) listenFar(o *kafkatest.KafkaOptions) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	proxy, err := delay.Start(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), oneWay)
	if err != nil {
		return "", err
	}
	s.Cleanup(proxy.Close)
	o.Listeners = []kafkatest.KafkaListener{{Name: "FAR", Port: port, Advertised: proxy.Port()}}
	return proxy.Address(), nil
}

// freePort returns a port that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (s *stand) Helper()                         {}
func (s *stand) Name() string                    { return "bench" }
func (s *stand) Context() context.Context        { return s.ctx }
func (s *stand) Cleanup(f func())                { s.cleanups = append(s.cleanups, f) }
func (s *stand) Failed() bool                    { return s.failed.Load() }
func (s *stand) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (s *stand) Errorf(format string, args ...any) {
	s.failed.Store(true)
	s.Logf(format, args...)
}

func (s *stand) Fatalf(format string, args ...any) {
	panic(standFailure(fmt.Sprintf(format, args...)))
}

func (s *stand) TempDir() string {
	dir, err := os.MkdirTemp(s.dir, "")
	if err != nil {
		s.Fatalf("%v", err)
	}
	return dir
}

// path returns where a file of the run's lies.
func (s *stand) path(name string) string { return filepath.Join(s.dir, name) }

// sweep deletes all topics of the target, and those that MirrorMaker has made at
// the source, except the brokers' own: each candidate finds clusters like the
// first.
func (s *stand) sweep(ctx context.Context) error {
	ours := func(name string) bool { return !strings.HasPrefix(name, "__") }
	if err := deleteTopics(ctx, s.target, ours); err != nil {
		return err
	}
	return deleteTopics(ctx, s.source, func(name string) bool {
		return strings.HasPrefix(name, "mm2-") || strings.HasSuffix(name, ".internal") || name == "heartbeats"
	})
}

func deleteTopics(ctx context.Context, k *kafkatest.Kafka, which func(name string) bool) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	topics, err := kadm.NewClient(client).ListTopics(ctx)
	if err != nil {
		return err
	}
	for _, name := range topics.Names() {
		if which(name) {
			if err := k.DeleteTopic(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordsAt returns how many offsets a topic has; none if it is not there.
func recordsAt(ctx context.Context, client *kgo.Client, topic string) (int64, error) {
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	var sum int64
	listed.Each(func(l kadm.ListedOffset) {
		if l.Err == nil {
			sum += l.Offset
		}
	})
	return sum, nil
}
