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

// SourceClient returns the properties of the one client of the source: those of
// MirrorMaker 2's consumer and, where these say nothing, of its other clients
// there. It is not to be changed.
func (f FlowConfig) SourceClient() map[string]Setting { return f.made.source() }

func (f FlowConfig) sourceClient() settings {
	return oneClient(f.properties("source.", Consumer), f.properties("source.", Admin), f.syncProducer("source."))
}

// TargetClient returns the properties of the one client of the target: those of
// MirrorMaker 2's producer and, where these say nothing, of its other clients
// there. It is not to be changed.
func (f FlowConfig) TargetClient() map[string]Setting { return f.made.target() }

func (f FlowConfig) targetClient() settings {
	return oneClient(f.TargetProperties(Producer), f.properties("target.", Admin), f.properties("target.", Consumer), f.syncProducer("target."))
}

// oneClient returns the properties of a client that stands for several, the first
// of which counts most.
func oneClient(clients ...settings) settings {
	one := settings{}
	for i, props := range clients {
		for _, s := range props {
			// override.KEY is for the worker's producer, and where a topic begins only what
			// reads it can say.
			if !strings.HasPrefix(s.Key, "override.") && (i == 0 || s.Key != resetKey) {
				one.putIfAbsent(s)
			}
		}
	}
	return one
}

// syncProducer returns what the file says of the producer of offset syncs on one
// side. A->B.producer.KEY is for the side where they are.
func (f FlowConfig) syncProducer(side string) settings {
	if (side == "target.") == (f.Text("offset-syncs.topic.location") == "target") {
		return f.properties(side, Producer)
	}
	return f.under(side+"producer.", nil)
}

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
