package mm2

// Facts of the tables: the definitions (ConfigDef) of Kafka 4.3.1's connectors,
// which a test compares, and of the releases before it.

// key returns a key with a default.
func key(name string, on Connectors, of KeyType, fallback, since string) Key {
	return Key{Name: name, On: on, Type: of, Default: fallback, HasDefault: true, Since: since, Treatment: Honoured}
}

// plain returns a key without a default.
func plain(name string, on Connectors, of KeyType, since string) Key {
	return Key{Name: name, On: on, Type: of, Since: since, Treatment: Honoured}
}

func (k Key) is(t Treatment, reason string) Key {
	k.Treatment, k.Reason = t, reason
	return k
}

func (k Key) of(allowed ...string) Key {
	k.Allowed = allowed
	return k
}

func (k Key) atLeast(n int64) Key {
	k.Min, k.AtLeast = n, true
	return k
}

func (k Key) ours(what string) Key {
	k.Ours = what
	return k
}

func (k Key) until(release string) Key {
	k.Until = release
	return k
}

const (
	ownCode       = "it is code of one's own, which cannot run here"
	settingsClass = policyPackage + "DefaultConfigPropertyFilter"
)

// filterKeys choose topics, groups and settings.
func filterKeys() []Key {
	return []Key{
		key("topics", SourceConnector, ListKey, ".*", "2.4"),
		key("topics.exclude", SourceConnector, ListKey, DefaultTopicsExclude, "2.7"),
		key("topic.filter.class", SourceConnector|CheckpointConnector, ClassKey, policyPackage+"DefaultTopicFilter", "2.4").is(Refused, ownCode),
		key("groups", CheckpointConnector, ListKey, ".*", "2.4"),
		key("groups.exclude", CheckpointConnector, ListKey, DefaultGroupsExclude, "2.7"),
		key("group.filter.class", CheckpointConnector, ClassKey, policyPackage+"DefaultGroupFilter", "2.4").is(Refused, ownCode),
		key("config.properties.exclude", SourceConnector, ListKey, DefaultConfigPropertiesExclude, "2.7"),
		key("config.property.filter.class", SourceConnector, ClassKey, settingsClass, "2.4").is(Refused, ownCode),
		key("use.defaults.from", Filter, StringKey, "target", "3.5"),
	}
}

// topicKeys are the duties of the source connector.
func topicKeys() []Key {
	const newest = "offsets are translated exactly whatever it is; it says how many source offsets lie, at least, between the newest offset sync and the next"
	return []Key{
		key("refresh.topics.enabled", SourceConnector, BoolKey, "true", "2.4"),
		key("refresh.topics.interval.seconds", SourceConnector, LongKey, "600", "2.4").ours("topics and partitions are looked for every 30 seconds"),
		key("sync.topic.configs.enabled", SourceConnector, BoolKey, "true", "2.4"),
		key("sync.topic.configs.interval.seconds", SourceConnector, LongKey, "600", "2.4").ours("settings are looked at whenever topics are looked for"),
		key("sync.topic.acls.enabled", SourceConnector, BoolKey, "true", "2.4"),
		key("sync.topic.acls.interval.seconds", SourceConnector, LongKey, "600", "2.4"),
		key("replication.factor", SourceConnector, IntKey, "2", "2.4").ours("topics are made with the replication factor that they have on the source"),
		key("offset.lag.max", SourceConnector, LongKey, "100", "2.4").is(Better, newest),
		key("offset-syncs.topic.replication.factor", SourceConnector, ShortKey, "3", "2.4"),
		key("offset-syncs.topic.location", SourceConnector|CheckpointConnector, StringKey, "source", "3.0").of("source", "target"),
		key("emit.offset-syncs.enabled", SourceConnector, BoolKey, "true", "3.9"),
		key("consumer.poll.timeout.ms", SourceConnector|CheckpointConnector, LongKey, "1000", "2.4").is(Ignored, "idle partitions wait at the broker"),
		key("heartbeats.replication.enabled", SourceConnector, BoolKey, "true", "4.0"),
		key("metric.names.formats", SourceConnector|CheckpointConnector, ListKey, "legacy", "4.3").of("legacy", "new").is(Ignored, "there is no JMX here"),
	}
}

// groupKeys are the duties of the checkpoint connector.
func groupKeys() []Key {
	return []Key{
		key("refresh.groups.enabled", CheckpointConnector, BoolKey, "true", "2.4"),
		key("refresh.groups.interval.seconds", CheckpointConnector, LongKey, "600", "2.4"),
		key("emit.checkpoints.enabled", CheckpointConnector, BoolKey, "true", "2.4"),
		key("emit.checkpoints.interval.seconds", CheckpointConnector, LongKey, "60", "2.4"),
		key("sync.group.offsets.enabled", CheckpointConnector, BoolKey, "false", "2.7"),
		key("sync.group.offsets.interval.seconds", CheckpointConnector, LongKey, "60", "2.7"),
		key("checkpoints.topic.replication.factor", CheckpointConnector, ShortKey, "3", "2.4"),
	}
}

func heartbeatKeys() []Key {
	return []Key{
		key("emit.heartbeats.enabled", HeartbeatConnector, BoolKey, "true", "2.4"),
		key("emit.heartbeats.interval.seconds", HeartbeatConnector, LongKey, "1", "2.4"),
		key("heartbeats.topic.replication.factor", HeartbeatConnector, ShortKey, "3", "2.4"),
	}
}

// policyKeys are those of all three connectors.
func policyKeys() []Key {
	return []Key{
		key("enabled", AllConnectors, BoolKey, "true", "2.4"),
		plain("source.cluster.alias", AllConnectors, StringKey, "2.4").is(Ignored, "the key of a flow names its clusters"),
		key("target.cluster.alias", AllConnectors, StringKey, "target", "2.4").is(Ignored, "the key of a flow names its clusters"),
		key("replication.policy.class", AllConnectors, ClassKey, policyPackage+"DefaultReplicationPolicy", "2.4").
			is(Refused, ownCode+"; apograph.policy=map renames topics by rules"),
		key("replication.policy.separator", AllConnectors, StringKey, ".", "2.4"),
		key("replication.policy.internal.topic.separator.enabled", AllConnectors, BoolKey, "true", "3.6"),
		key("admin.timeout.ms", AllConnectors, LongKey, "60000", "2.4").is(Ignored, "requests have the timeouts of the client"),
		key("forwarding.admin.class", AllConnectors, ClassKey, "org.apache.kafka.clients.admin.ForwardingAdmin", "3.4").is(Refused, ownCode),
		key("metric.reporters", AllConnectors, ListKey, "org.apache.kafka.common.metrics.JmxReporter", "2.4").is(Ignored, "there is no JMX here"),
	}
}

// connectKeys are what Connect gives to any connector.
func connectKeys() []Key {
	const (
		bytes   = "records are copied byte for byte, which this would break"
		noTask  = "one process copies all partitions"
		noError = "a partition that cannot go on stops, and says why; no record is skipped"
	)
	keys := []Key{
		plain("name", AllConnectors, StringKey, "2.4").is(Ignored, "there are no connectors here"),
		plain("connector.class", AllConnectors, StringKey, "2.4").is(Ignored, "there are no connectors here"),
		plain("connector.plugin.version", AllConnectors, StringKey, "4.1").is(Ignored, "there are no connectors here"),
		key("tasks.max", AllConnectors, IntKey, "1", "2.4").atLeast(1).is(Ignored, noTask),
		key("tasks.max.enforce", AllConnectors, BoolKey, "true", "3.8").is(Ignored, noTask),
		key("transforms", AllConnectors, ListKey, "", "2.4").is(Refused, bytes),
		key("predicates", AllConnectors, ListKey, "", "2.6").is(Refused, bytes),
		key("config.action.reload", AllConnectors, StringKey, "restart", "2.4").of("none", "restart").is(Ignored, "files are read when a process starts"),
		key("errors.retry.timeout", AllConnectors, LongKey, "0", "2.4").is(Ignored, noError),
		key("errors.retry.delay.max.ms", AllConnectors, LongKey, "60000", "2.4").is(Ignored, noError),
		key("errors.tolerance", AllConnectors, StringKey, "none", "2.4").of("none", "all").is(Ignored, noError),
		key("errors.log.enable", AllConnectors, BoolKey, "false", "2.4").is(Ignored, noError),
		key("errors.log.include.messages", AllConnectors, BoolKey, "false", "2.4").is(Ignored, noError),
		key("exactly.once.support", Framework, StringKey, "requested", "3.3").of("requested", "required").anyCase().
			is(Better, "the ledger keeps every record from being copied twice or not at all; nothing is to be switched on"),
		key("transaction.boundary", Framework, StringKey, "poll", "3.3").of("poll", "interval", "connector").anyCase().is(Ignored, "the target is not written in transactions"),
		plain("transaction.boundary.interval.ms", Framework, LongKey, "3.3").atLeast(0).is(Ignored, "the target is not written in transactions"),
		plain("offsets.storage.topic", Framework, StringKey, "3.3").is(Ignored, "positions are in the ledger"),
		key("topic.creation.groups", Framework, ListKey, "", "2.6").is(Ignored, "topics are made with what their source has, as MirrorMaker 2 makes them"),
	}
	for _, c := range []string{"key.converter", "value.converter", "header.converter"} {
		keys = append(keys, plain(c, AllConnectors, ClassKey, "2.4").is(Refused, bytes),
			plain(c+".plugin.version", AllConnectors, StringKey, "4.1").is(Ignored, "there are no converters here"))
	}
	return keys
}

func (k Key) anyCase() Key {
	k.AnyCase = true
	return k
}

// driverKeys are those of the file alone.
func driverKeys() []Key {
	const rest = "processes need no REST server to find one another"
	keys := []Key{
		plain("clusters", Driver, ListKey, "2.4"),
		key("config.providers", AllConnectors|Driver, ListKey, "", "2.4"),
		key("dedicated.mode.enable.internal.rest", Driver, BoolKey, "false", "3.5").is(Ignored, rest),
	}
	for _, name := range []string{"listeners", "rest.advertised.host.name", "rest.advertised.port", "rest.advertised.listener",
		"access.control.allow.origin", "access.control.allow.methods", "response.http.headers.config", "admin.listeners", "rest.extension.classes", "ssl.client.auth"} {
		keys = append(keys, plain(name, Driver|Worker, StringKey, "2.4").is(Ignored, rest))
	}
	return keys
}

// workerKeys are those of a Connect worker that none above is.
func workerKeys() []Key {
	var keys []Key
	add := func(reason string, names ...string) {
		for _, name := range names {
			keys = append(keys, plain(name, Worker, StringKey, "2.4").is(Ignored, reason))
		}
	}
	add("positions are in the ledger", "offset.storage.topic", "offset.storage.replication.factor", "offset.storage.partitions",
		"offset.flush.interval.ms", "offset.flush.timeout.ms", "config.storage.topic", "config.storage.replication.factor",
		"status.storage.topic", "status.storage.replication.factor", "status.storage.partitions", "internal.key.converter", "internal.value.converter")
	add("there is no Connect worker here", "group.id", "client.id", "client.dns.lookup", "connect.protocol", "connections.max.idle.ms",
		"connector.client.config.override.policy", "heartbeat.interval.ms", "inter.worker.key.generation.algorithm", "inter.worker.key.size",
		"inter.worker.key.ttl.ms", "inter.worker.signature.algorithm", "inter.worker.verification.algorithms", "metadata.max.age.ms",
		"metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy", "metrics.num.samples", "metrics.recording.level",
		"metrics.sample.window.ms", "plugin.discovery", "plugin.path", "rebalance.timeout.ms", "receive.buffer.bytes",
		"reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms",
		"scheduled.rebalance.max.delay.ms", "send.buffer.bytes", "session.timeout.ms", "socket.connection.setup.timeout.max.ms",
		"socket.connection.setup.timeout.ms", "task.shutdown.graceful.timeout.ms", "topic.creation.enable", "topic.tracking.allow.reset",
		"topic.tracking.enable", "worker.sync.timeout.ms", "worker.unsync.backoff.ms")
	return append(keys, plain("exactly.once.source.support", Worker, StringKey, "3.3").of("disabled", "enabled", "preparing").anyCase().
		is(Better, "the ledger keeps every record from being copied twice or not at all; nothing is to be switched on"))
}

// ourKeys are apograph's own, all at the top level or of a flow, but for the
// directory of the ledgers.
func ourKeys() []Key {
	return []Key{
		key("apograph.ledger.dir", Ours|Driver, StringKey, ".", ""),
		plain("apograph.start", Ours, StringKey, ""),
		plain("apograph.refresh.interval", Ours, IntervalKey, ""),
		plain("apograph.policy", Ours, StringKey, "").of("default", "identity", "map"),
		key("apograph.policy.map", Ours, ListKey, "", ""),
		key("apograph.sync.group.rewinds", Ours, BoolKey, "false", ""),
		plain("apograph.schema.registry.url", Ours, StringKey, ""),
	}
}

// oldKeys are those that 4.3.1 no longer has.
func oldKeys() []Key {
	const renamed = "its name of today is "
	return []Key{
		plain("topics.blacklist", SourceConnector, ListKey, "2.4").until("3.9").is(Honoured, renamed+"topics.exclude"),
		plain("groups.blacklist", CheckpointConnector, ListKey, "2.4").until("3.9").is(Honoured, renamed+"groups.exclude"),
		plain("config.properties.blacklist", SourceConnector, ListKey, "2.4").until("3.9").is(Honoured, renamed+"config.properties.exclude"),
		key("use.incremental.alter.configs", SourceConnector, StringKey, "requested", "3.5").of("requested", "required", "never").until("3.9").
			is(Better, "settings are always altered one by one"),
		key("add.source.alias.to.metrics", SourceConnector, BoolKey, "false", "3.5").until("3.9").is(Ignored, "metrics always name both clusters"),
		key("auto.include.jmx.reporter", AllConnectors, BoolKey, "true", "3.4").until("3.9").is(Ignored, "there is no JMX here"),
	}
}
