//go:build kafka

package kafkatest

import (
	"fmt"
	"net"
	"strconv"
)

// A KafkaListener is one more listener of a broker: a secured one, or one whose
// advertised address is that of a proxy.
type KafkaListener struct {
	Name       string // of capitals; the package's own are PLAINTEXT and CONTROLLER
	Protocol   string // as in listener.security.protocol.map; empty means PLAINTEXT
	Port       int    // on 127.0.0.1
	Advertised int    // the port on 127.0.0.1 that clients are told; 0 means Port
}

// addListeners adds listeners to a broker's settings.
func addListeners(p map[string]string, listeners []KafkaListener) {
	for _, l := range listeners {
		protocol, advertised := l.Protocol, l.Advertised
		if protocol == "" {
			protocol = "PLAINTEXT"
		}
		if advertised == 0 {
			advertised = l.Port
		}
		p["listener.security.protocol.map"] += "," + l.Name + ":" + protocol
		p["listeners"] += "," + l.Name + "://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port))
		p["advertised.listeners"] += "," + l.Name + "://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(advertised))
	}
}

// PIDs returns the process ids of the brokers, in the order of their node ids.
// Where there is one broker it is the controller too.
func (k *Kafka) PIDs() ([]int, error) {
	pids := make([]int, len(k.nodes))
	for i, n := range k.nodes {
		if n.process == nil || !n.process.running() {
			return nil, fmt.Errorf("node %d of %s does not run", n.id, k.options.Name)
		}
		pids[i] = n.process.command.Process.Pid
	}
	return pids, nil
}
