package mm2

import (
	"maps"
	"slices"
	"strings"
)

// HeartbeatsTopic returns the name of the heartbeats topic.
func (p Policy) HeartbeatsTopic() string { return heartbeats }

// OffsetSyncsTopic returns the name of the topic of offset syncs that bears the
// alias of the cluster on its other side, see [Policy.OffsetSyncsOf].
func (p Policy) OffsetSyncsTopic(alias string) string {
	return "mm2-offset-syncs" + p.internalSeparator() + alias + p.internalSuffix()
}

// OffsetSyncsOf returns the name of the topic of offset syncs of a flow: on the
// source it bears the target's alias, on the target the source's (KIP-716,
// offset-syncs.topic.location).
func (p Policy) OffsetSyncsOf(source, target string, onTarget bool) string {
	if onTarget {
		return p.OffsetSyncsTopic(source)
	}
	return p.OffsetSyncsTopic(target)
}

// CheckpointsTopic returns the name of the topic of checkpoints, on the target,
// of a flow from the cluster with the given alias.
func (p Policy) CheckpointsTopic(source string) string { return source + p.checkpointsSuffix() }

func (p Policy) internalSuffix() string { return p.internalSeparator() + "internal" }

func (p Policy) checkpointsSuffix() string {
	return p.internalSeparator() + "checkpoints" + p.internalSuffix()
}

// IsHeartbeats reports whether a topic is a heartbeats topic, or a copy of one.
func (p Policy) IsHeartbeats(topic string) bool { return p.Original(topic) == heartbeats }

// IsCheckpoints reports whether a topic's name is that of a topic of
// checkpoints.
func (p Policy) IsCheckpoints(topic string) bool {
	return strings.HasSuffix(topic, p.checkpointsSuffix())
}

// IsMM2Internal reports whether a topic's name is that of an internal topic of
// MirrorMaker 2's (KIP-1074).
func (p Policy) IsMM2Internal(topic string) bool {
	return strings.HasPrefix(topic, "mm2") && strings.HasSuffix(topic, p.internalSuffix()) || p.IsCheckpoints(topic)
}

// IsInternal reports whether a topic is internal to Kafka or to a replicator, and
// so never copied, whatever a selection says (ReplicationPolicy.isInternalTopic
// since KIP-1074).
func (p Policy) IsInternal(topic string) bool { return p.internalRule(topic) != "" }

// IsInternal is that of a policy with a dot as its separator.
func IsInternal(topic string) bool { return Policy{}.IsInternal(topic) }

// internalRule says why a topic is internal; "" if it is not.
func (p Policy) internalRule(topic string) string {
	switch {
	case strings.HasPrefix(topic, "__"):
		return "Kafka's own, begins with __"
	case strings.HasPrefix(topic, "."):
		return "begins with a dot"
	case p.IsCheckpoints(topic):
		return "MirrorMaker 2's, *" + p.checkpointsSuffix()
	case p.IsMM2Internal(topic):
		return "MirrorMaker 2's, mm2*" + p.internalSuffix()
	}
	return ""
}

// Hops returns over how many copies a topic came from the cluster with the given
// alias, by its name; -1 if it did not (MirrorClient.countHopsForTopic).
func (p Policy) Hops(topic, alias string) int {
	seen := map[string]bool{}
	for hops := 1; ; hops++ {
		source, ok := p.Source(topic)
		switch {
		case !ok || seen[source]:
			return -1
		case source == alias:
			return hops
		}
		seen[source] = true
		topic, _ = p.Upstream(topic)
	}
}

// ReplicationHops returns the fewest hops from the cluster with the given alias
// to the one that has topics, by its heartbeats topics; -1 if there are none.
func (p Policy) ReplicationHops(topics []string, alias string) int {
	least := -1
	for _, topic := range topics {
		if hops := p.Hops(topic, alias); p.IsHeartbeats(topic) && hops >= 0 && (least < 0 || hops < least) {
			least = hops
		}
	}
	return least
}

// UpstreamClusters returns the aliases of the clusters from which the one that
// has topics is reached, by its heartbeats topics, sorted.
func (p Policy) UpstreamClusters(topics []string) []string {
	found := map[string]bool{}
	for _, topic := range topics {
		if !p.IsHeartbeats(topic) {
			continue
		}
		seen := map[string]bool{}
		for {
			source, ok := p.Source(topic)
			if !ok || seen[source] {
				break
			}
			seen[source], found[source] = true, true
			topic, _ = p.Upstream(topic)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// RemoteTopics returns those of topics that were copied from elsewhere, by their
// names (MirrorClient.remoteTopics), in order.
func (p Policy) RemoteTopics(topics []string) []string {
	return slices.DeleteFunc(slices.Clone(topics), func(topic string) bool {
		_, remote := p.Source(topic)
		return !remote || p.IsInternal(topic)
	})
}
