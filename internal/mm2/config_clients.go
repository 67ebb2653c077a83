package mm2

import (
	"slices"
	"strings"
)

// A Client says what a client of a cluster is for.
type Client string

// The clients that MirrorMaker 2 configures apart.
const (
	Producer Client = "producer"
	Consumer Client = "consumer"
	Admin    Client = "admin"
)

// SourceClient returns the properties of the client that reads the source: those
// of its consumer.
func (f FlowConfig) SourceClient() map[string]Setting { return f.SourceProperties(Consumer) }

// TargetClient returns the properties of the client that writes to the target:
// those of its producer.
func (f FlowConfig) TargetClient() map[string]Setting { return f.TargetProperties(Producer) }

// SourceProperties returns the properties that a client of the source cluster has
// in MirrorMaker 2's connectors: of its cluster, bootstrap and security; of the
// flow, A->B.consumer.KEY; of the cluster's role, A.consumer.KEY. The later ones
// win (MirrorConnectorConfig.sourceConsumerConfig and its like).
func (f FlowConfig) SourceProperties(c Client) map[string]Setting { return f.properties("source.", c) }

// TargetProperties returns those of a client of the target cluster. The producer
// of the data is the worker's: it has B.producer.KEY and, above it,
// A->B.producer.override.KEY; what A->B.producer.KEY says is for the producer of
// offset syncs alone.
func (f FlowConfig) TargetProperties(c Client) map[string]Setting {
	if c != Producer {
		return f.properties("target.", c)
	}
	props := f.under("target.cluster.", f.config.keys.security)
	for key, s := range f.config.cluster(f.Target) {
		if name, ok := strings.CutPrefix(key, "producer."); ok && name != "" {
			props[name] = s.as(name)
		}
	}
	props.putAll(f.under("producer.override.", nil))
	return props
}

// SyncProducerProperties returns the properties of the producer that writes
// offset syncs, to the source or to the target.
func (f FlowConfig) SyncProducerProperties(onTarget bool) map[string]Setting {
	if onTarget {
		return f.properties("target.", Producer)
	}
	return f.properties("source.", Producer)
}

func (f FlowConfig) properties(side string, c Client) settings {
	props := f.under(side+"cluster.", f.config.keys.security)
	props.putAll(f.under(string(c)+".", nil))
	props.putAll(f.under(side+string(c)+".", nil))
	return props
}

// under returns the flow's settings whose keys begin with prefix, under the rest
// of the key; only those in names, if there are any.
func (f FlowConfig) under(prefix string, names []string) settings {
	found := settings{}
	for key, s := range f.all {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok || name == "" || names != nil && !slices.Contains(names, name) {
			continue
		}
		// consumer.poll.timeout.ms is the connector's, whatever it looks like.
		if _, ofConnector := f.config.keys.key(key); !ofConnector {
			found[name] = s.as(name)
		}
	}
	return found
}
