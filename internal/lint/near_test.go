package lint_test

import (
	"strings"
	"testing"

	"apograph/internal/lint"
)

// nearMisses are, by code, lines that look much like what the code is about, and
// are right.
var nearMisses = map[string][]string{
	"AP0101": {`a.ssl.truststore.location = \u002fetc\u002Ftrust.jks`, `a.ssl.truststore.location = C:\\users\\trust.jks`},
	"AP0102": {"a->b.topics = orders\ntopics = orders"},
	"AP0103": {"topics = orders  ", `replication.policy.separator = .\u005f`},
	"AP0104": {"topics = orders", "topics = orders \\\n  , payments", "replication.policy.separator = .  "},
	"AP0105": {"topics = orders#1", "a.sasl.jaas.config = x required password=\"a #b\";", "  # topics = orders # all"},
	"AP0106": {`topics = "orders`, `a.sasl.jaas.config = "x"`},
	"AP0107": {`topics = app\\.orders`, `a.bootstrap.servers = a\:9092`, "topics = orders,\\\n pay"},
	"AP0108": {`topics = tr\u00e4ffic`, "# träffic"},
	"AP0109": {"# \ufeff"},
	"AP0110": {"topics = orders,\\\n  payments", "# a remark \\\ntopics = orders"},
	"AP0111": {"topics.exclude =", "a.client.id:"},
	"AP0112": {`a.ssl.truststore.location = C:\\trust.jks`},
	"AP0201": {"offset.lag.max = 1", "a.consumer.fetch.min.bytes = 1", "dedicated.mode.enable.internal.rest = true"},
	"AP0202": {"a->b.topic.creation.default.partitions = 1", "config.providers.file.param.allowed.paths = /etc"},
	"AP0203": {"topics.exclude = secret.*"},
	"AP0204": {"replication.policy.separator = .", "a->b.use.defaults.from = source", "offset.storage.replication.factor = 1"},
	"AP0205": {"a->b.producer.override.linger.ms = 5", "b.producer.linger.ms = 5"},
	"AP0206": {"topics = orders", "replication.factor = 3"},
	"AP0207": {"replication.factor = 3"},
	"AP0208": {"tasks.max = 4"},
	"AP0209": {"apograph.ledger.dir = /var", "a->b.apograph.start = latest", "apograph.start.orders = earliest"},
	"AP0211": {"apograph.refresh.interval = 5s\nreplication.factor = -1", "a->b.refresh.topics.interval.seconds = 60\nreplication.factor = 3"},
	"AP0220": {"a->b.transforms =", "topics = transforms"},
	"AP0221": {"value.converter = org.apache.kafka.connect.converters.ByteArrayConverter"},
	"AP0222": {"a.consumer.interceptor.classes ="},
	"AP0223": {"replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy", "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter"},
	"AP0301": {"sync.topic.configs.enabled = TRUE", "replication.factor = -1", "refresh.topics.interval.seconds = 0"},
	"AP0302": {"topics = orders, orders2", "topics = orders\na->b.topics = orders"},
	"AP0303": {"topics =", "topics = orders , payments"},
	"AP0304": {"a.client.id = ${x", "a.client.id = $x", "a.client.id = ${env:X}"},
	"AP0305": {"replication.factor = three", "b->a.enabled = true\nb->a.topics = *", "b->a.enabled = false\nb->a.replication.factor = -1"},
	"AP0306": {"a.client.id = ${x", "config.providers = env\nconfig.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\na.client.id = ${env:NONE}"},
	"AP0307": {"a->b.use.defaults.from = target", "use.defaults.from = sauce"},
	"AP0310": {"topics = .*", "topics = (?!a)b", "topics = a{1,2}"},
	"AP0311": {"topics = (a|b), [ab], (c)", "topics = (a, b", `topics = \\(a, b\\)`, `topics = \\Qa\\E, b`, "topics = shard-[0-9]{1}, shard-[0-9]{2}", `topics = a\\{1, 2\\}`, `topics = a\\{1,2}`, "topics = a{2"},
	"AP0312": {"topics = (?:a|b)c", "topics = (?i)orders", "topics = ("},
	"AP0313": {"topics = X_Y_.*", "topics = (ab)*", "topics = [a-z]*", "topics = orders\\\\*"},
	"AP0314": {"topics = orders.*", "topics = .*orders", `topics = app\\.orders`, "topics = app[.]orders", `topics = \\Qapp.orders\\E`, "topics = app.?orders"},
	"AP0315": {"topics.exclude =", "a->b.topics = .*"},
	"AP0316": {"topics = ^orders$", "topics = (^a$|^b$)", `topics = a\\$b`},
	"AP0317": {"topics = orders, pay", "topics = (a b|c)", "topics = orders$.*", "topics = \"orders\"", "topics = orders # all", "groups = my group"},
	"AP0318": {"topics = orders, pay\ntopics.exclude = secret.*", "topics = .*\ntopics.exclude = secret.*", "topics = a, __x", "topics = pay-.*, x\ntopics.exclude = pay-[a-z]+"},
	"AP0320": {"b->a.enabled = false\nb->a.refresh.topics.interval.seconds = 0", "refresh.topics.interval.seconds = 1", "refresh.topics.interval.seconds = x"},
	"AP0321": {"refresh.topics.interval.seconds = 1", "replication.factor = -1"},
	"AP0322": {"offset.lag.max = 1"},
	"AP0323": {"replication.factor = -1", "offset-syncs.topic.replication.factor = 1"},
	"AP0324": {"replication.factor = 3", "checkpoints.topic.replication.factor = 2"},
	"AP0325": {"replication.policy.separator = .", "replication.policy.separator = --", "replication.policy.separator ="},
	"AP0326": {"replication.policy.separator = .", "replication.policy.separator = _"},
	"AP0327": {"emit.checkpoints.enabled = false", "sync.group.offsets.enabled = true"},
	"AP0328": {"emit.offset-syncs.enabled = false", "offset-syncs.topic.location = target"},
	"AP0329": {"apograph.refresh.interval = 30000", "apograph.refresh.interval = 1s", "apograph.refresh.interval = 1h", "apograph.refresh.interval = soon"},
	"AP0330": {"replication.policy.separator = __", "replication.policy.separator = -"},
	"AP0401": {"topics = orders"},
	"AP0402": {"a->b.topics = orders", "b->a.emit.heartbeats.enabled = false"},
	"AP0403": {"b->a.enabled = false"},
	"AP0404": {"b->a.enabled = false", "a.b = x", "a-c.enabled = true"},
	"AP0405": {"b->a.enabled = false"},
	"AP0406": {"bootstrap.servers = everywhere:9092", "b->a.enabled = true"},
	"AP0407": {"b->a.enabled = FALSE", "b->a.enabled = True"},
	"AP0408": {"replication.policy.separator = -"},
	"AP0409": {"a->b.enabled = true"},
	"AP0410": {"a.consumer.fetch.min.bytes = 1", "bootstrap.servers = c:9092"},
	"AP0411": {"b->a.enabled = true"},
	"AP0412": {"a.admin.bootstrap.servers = b:9092", "clusters = a, b, c\na.bootstrap.servers = a:9092\nb.bootstrap.servers = b:9092\nc.bootstrap.servers = b:9092\na->b.enabled = true"},
	"AP0413": {"enabled = false", "b->a.enabled = true"},
	"AP0414": {"clusters = a, b-c_d.e\nbootstrap.servers = x:9092\na->b-c_d.e.enabled = true"},
	"AP0415": {"clusters = a, a-to-b, b-to-c, c\nbootstrap.servers = x:9092\na->b-to-c.enabled = true\na->c.enabled = true"},
	"AP0501": {"b->a.enabled = true", "sync.group.offsets.enabled = true", "b->a.enabled = true\nsync.group.offsets.enabled = true\na->b.sync.group.offsets.enabled = false"},
	"AP0502": {"b->a.enabled = true", identity, "b->a.enabled = true\n" + identity + "a->b.topics = eu-.*\nb->a.topics = us-.*"},
	"AP0503": {identity, "clusters = a, b, c\nbootstrap.servers = x:9092\na->c.enabled = true\nb->c.enabled = true\n" + identity + "a->c.topics = orders\nb->c.topics = (pay|ship).*"},
	"AP0504": {"topics = orders.*", "topics.exclude = _.*, connect-.*, .*-changelog, .*-repartition"},
	"AP0505": {"apograph.policy = identity", "apograph.policy = map\napograph.policy.map = orders=commands, (.*)-eu=eu-$1"},
	"AP0506": {"topics = consumer_offsets", "topics = .*"},
	"AP0507": {identity + "topics = heartbeats", "topics = app-heartbeats", identity + "topics = heartbeats-app"},
	"AP0508": {"topics.exclude = .+-x", "topics = orders, pay\ntopics.exclude = orders", "topics =\ntopics.exclude = .*"},
	"AP0509": {"topics = _.*", "topics = mm2-orders", "topics = __consumer_offsets", "topics = .*internal"},
	"AP0510": {"apograph.policy = map\napograph.policy.map = orders=a, (.*)=x-$1", "apograph.policy = map\napograph.policy.map = heartbeats=beats"},
	"AP0511": {"apograph.policy = map\napograph.policy.map = orders=a, pay=b, (.*)-eu=$1", "apograph.policy = map\ntopics = orders\napograph.policy.map = orders=a, pay=a"},
	"AP0512": {"apograph.policy = map\napograph.policy.map = (.*)=x-$1", "b->a.enabled = true\na->b.topics = eu-.*\nb->a.topics = us-.*\napograph.policy = map\napograph.policy.map = (.*)=x-$1"},
	"AP0601": {"a.security.protocol = SSL", "a.security.protocol = sasl_ssl\na.sasl.mechanism = PLAIN\na.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"p\";"},
	"AP0602": {"a.consumer.client.rack = r1"},
	"AP0603": {"a.consumer.fetch.min.bytes = 1", "a.ssl.truststore.location = x"},
	"AP0604": {"a.security.protocol = SASL_PLAINTEXT\na.sasl.mechanism = SCRAM-SHA-256", "a.security.protocol = SASL_SSL\na.sasl.mechanism = PLAIN"},
	"AP0605": {"a.security.protocol = SSL\na.ssl.endpoint.identification.algorithm = https", "a.ssl.endpoint.identification.algorithm ="},
	"AP0606": {"a.security.protocol = SSL\na.ssl.truststore.location = x", "a.sasl.jaas.config ="},
	"AP0609": {"a.security.protocol = SSL\na.admin.security.protocol = SSL", "a.admin.sasl.mechanism = PLAIN", "a.sasl.jaas.config = x\na.consumer.sasl.jaas.config = y"},
	"AP0610": {"a.consumer.client.id = a\na.admin.client.id = a", "b.admin.request.timeout.ms = 60000"},
	"AP0608": {"a.consumer.request.timeout.ms = 20000", "a.consumer.fetch.min.bytes = 1"},
	"AP0607": {"a.consumer.client.dns.lookup = use_all_dns_ips", "a.security.protocol = SSL\na.ssl.endpoint.identification.algorithm ="},
}

const identity = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"

// TestNearMisses: every code that a file alone can have is kept from what only
// looks like it.
func TestNearMisses(t *testing.T) {
	for _, c := range lint.Codes() {
		lines := nearMisses[c.ID]
		if len(lines) == 0 && !strings.HasPrefix(c.ID, "AP07") {
			t.Errorf("%s has no near miss", c.ID)
		}
		for _, text := range lines {
			if got := of(check(whole(text)), c.ID); len(got) > 0 {
				t.Errorf("%s: found in\n%s\n%v", c.ID, text, got)
			}
		}
	}
}
