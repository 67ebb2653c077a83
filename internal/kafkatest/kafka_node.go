//go:build kafka

package kafkatest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// controllerID is the node id of a controller that is no broker.
const controllerID = 100

// A kafkaNode is one process of a cluster: a broker, the controller, or both.
type kafkaNode struct {
	id          int
	dir         string
	port        int
	reservation *reservation
	process     *process
	output      *os.File
	launching   bool // started, and not seen in the cluster yet
}

// kafkaClusterID makes an id of Kafka's form from a name.
func kafkaClusterID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// layOut takes the ports and writes the configuration files.
func (k *Kafka) layOut() error {
	quorumPort, err := k.takePort(nil)
	if err != nil {
		return err
	}
	if k.options.Nodes > 1 {
		k.controller = &kafkaNode{id: controllerID, port: quorumPort}
	}
	for id := 1; id <= k.options.Nodes; id++ {
		n := &kafkaNode{id: id}
		if n.port, err = k.takePort(n); err != nil {
			return err
		}
		k.nodes = append(k.nodes, n)
		k.Addresses = append(k.Addresses, net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)))
	}
	for _, n := range k.all() {
		n.dir = filepath.Join(k.dir, fmt.Sprintf("node-%d", n.id))
		if err := os.MkdirAll(n.dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(n.properties(), k.properties(n, quorumPort), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// takePort reserves a port for a node's whole life; for the controller, which is
// never restarted, until it listens.
func (k *Kafka) takePort(n *kafkaNode) (int, error) {
	r, err := reserve()
	if err != nil {
		return 0, err
	}
	if n == nil {
		k.t.Cleanup(r.release)
	} else {
		n.reservation = &r
	}
	return r.port, nil
}

func (n *kafkaNode) properties() string { return filepath.Join(n.dir, "server.properties") }

// properties returns a node's configuration file. Small internal topics, quick
// timeouts and a cleaner that does not wait make tests short; nothing here
// changes what a broker answers.
func (k *Kafka) properties(n *kafkaNode, quorumPort int) []byte {
	voter, roles := controllerID, "broker"
	listeners := fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", n.port)
	advertised := listeners
	controllers := fmt.Sprintf("CONTROLLER://127.0.0.1:%d", quorumPort)
	switch {
	case k.controller == nil:
		voter, roles, listeners = n.id, "broker,controller", listeners+","+controllers
	case n == k.controller:
		roles, listeners, advertised = "controller", controllers, ""
	}
	factor := strconv.Itoa(min(3, k.options.Nodes))
	p := map[string]string{
		"process.roles":                                    roles,
		"node.id":                                          strconv.Itoa(n.id),
		"controller.quorum.voters":                         fmt.Sprintf("%d@127.0.0.1:%d", voter, quorumPort),
		"listeners":                                        listeners,
		"controller.listener.names":                        "CONTROLLER",
		"listener.security.protocol.map":                   "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs":                                         filepath.Join(n.dir, "data"),
		"auto.create.topics.enable":                        "false",
		"default.replication.factor":                       strconv.Itoa(k.options.ReplicationFactor),
		"min.insync.replicas":                              strconv.Itoa(k.options.MinInsync),
		"offsets.topic.replication.factor":                 factor,
		"offsets.topic.num.partitions":                     "4",
		"transaction.state.log.replication.factor":         factor,
		"transaction.state.log.min.isr":                    "1",
		"transaction.state.log.num.partitions":             "4",
		"share.coordinator.state.topic.replication.factor": factor,
		"share.coordinator.state.topic.min.isr":            "1",
		"group.initial.rebalance.delay.ms":                 "0",
		"broker.session.timeout.ms":                        "3000",
		"broker.heartbeat.interval.ms":                     "500",
		"log.cleaner.backoff.ms":                           "200",
		"log.cleaner.dedupe.buffer.size":                   strconv.Itoa(16 << 20),
		"num.network.threads":                              "2",
		"num.io.threads":                                   "4",
	}
	if advertised != "" {
		p["advertised.listeners"] = advertised
		p["inter.broker.listener.name"] = "PLAINTEXT"
	}
	addListeners(p, k.options.Listeners)
	maps.Copy(p, k.options.Config)
	if n != k.controller {
		maps.Copy(p, k.options.NodeConfig[n.id])
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", name, p[name])
	}
	return []byte(b.String())
}

// format prepares every node's data directory, all at once.
func (k *Kafka) format(ctx context.Context) error {
	var wait sync.WaitGroup
	errs := make([]error, len(k.all()))
	for i, n := range k.all() {
		wait.Go(func() {
			out, err := exec.CommandContext(ctx, "java", k.javaArgs(128, "kafka.tools.StorageTool", "format", "-t", k.id, "-c", n.properties())...).CombinedOutput()
			if err != nil {
				errs[i] = fmt.Errorf("format node %d of %s: %w\n%s", n.id, k.options.Name, err, out)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// launch starts a node's process. Its output is appended to one file over all
// its lives.
func (k *Kafka) launch(n *kafkaNode) error {
	if n.output == nil {
		output, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		n.output = output
	}
	args := k.javaArgs(k.options.HeapMB, "kafka.Kafka", n.properties())
	if k.options.JVM != nil {
		args = k.ownJavaArgs(k.options.JVM, "kafka.Kafka", n.properties())
	}
	p, err := startProcess(n.output, "java", args...)
	if err != nil {
		return fmt.Errorf("node %d of %s: %w", n.id, k.options.Name, err)
	}
	n.process, n.launching = p, true
	return nil
}
