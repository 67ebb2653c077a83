package mm2_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// Golden files that testdata/Effective.java writes with the classes of Kafka
// 4.3.1. APOGRAPH_GOLDEN_JAVA=DIR makes them anew; DIR has the distribution's libs.
const (
	goldenKeys      = "testdata/keys-4.3.1.txt"
	goldenEffective = "testdata/effective-4.3.1.txt"
	goldenConfigs   = 120
)

// configLines are what generated files are made of.
var configLines = strings.Split(`A->B.enabled=true|A->B.enabled=TRUE|A->B.enabled=true |A->B.enabled=no|B->A.enabled=true|C->B.enabled=true|A->C.enabled=false
A.bootstrap.servers=a:9092|B.bootstrap.servers=b:9092|bootstrap.servers=c:9092|security.protocol=SSL|A.security.protocol=SASL_SSL|A.consumer.security.protocol=PLAINTEXT
B.sasl.jaas.config=x required;|sasl.mechanism=PLAIN|B.producer.sasl.mechanism=SCRAM-SHA-256|ssl.truststore.location=/t|A.admin.ssl.truststore.location=/u
topics=a, b|A->B.topics=c|topics.exclude=|A->B.topics.exclude=x|topics.blacklist=y|A->B.topics.blacklist=z|groups=g|groups.blacklist=h|A.topics=q
replication.policy.separator=_|A->B.replication.policy.separator=-|replication.policy.own=1|replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy
use.defaults.from=source|A->B.use.defaults.from=source|exactly.once.support=required|A->B.exactly.once.support=required|transaction.boundary=poll
producer.linger.ms=1|A.producer.linger.ms=2|B.producer.linger.ms=3|A->B.producer.linger.ms=4|A->B.producer.override.linger.ms=5|B.producer.override.linger.ms=6
consumer.max.poll.records=1|A.consumer.max.poll.records=2|A->B.consumer.max.poll.records=3|A->B.source.consumer.max.poll.records=4|consumer.poll.timeout.ms=9|A.consumerx=1
admin.timeout.ms=7|A.admin.timeout.ms=8|B.admin.request.timeout.ms=9|A.request.timeout.ms=5|B.request.timeout.ms=6|B.client.id=x|A->B.client.id=y|client.id=z
tasks.max=4|taskx=1|workerx=2|offset.storage.topic=o|B.offset.storage.topic=p|offset.storage=raw|status.storage.partitions=3|config.storage.topic=s|offset.flush.interval.ms=1
key.converter=k|A->B.value.converter=v|B.header.converter=h|key.converter.x=1|B.exactly.once.source.support=enabled|transforms=t|transforms.t.type=T|A->B.transforms=u
emit.heartbeats.enabled=false|A->B.emit.heartbeats.enabled=true|C->A.emit.heartbeats.enabled=true|emit.checkpoints.enabled=false|heartbeats.replication.enabled=false
name=n|A->B.name=m|source.cluster.alias=zz|A->B.target.cluster.alias=yy|A->B.source.cluster.bootstrap.servers=flow:1|enabled=true|metric.names.formats=new
A->B.=empty|A.=empty|A=bare|A->B=bare|A-> B.topics=blank|unknown.key=1|A->B.my.own=1|config.action.reload=none|use.incremental.alter.configs=never|topic.creation.enable=false`, "|")

func generatedConfig(r *rand.Rand) string {
	lines := []string{"clusters=A, B, C"}
	pool := strings.Split(strings.Join(configLines, "\n"), "\n")
	for range 3 + r.Intn(8) {
		lines = append(lines, strings.Replace(pool[r.Intn(len(pool))], "A-> B", `A->\ B`, 1))
	}
	return strings.Join(lines, "\n") + "\n"
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func TestConfigAgainstMirrorMaker(t *testing.T) {
	if libs := os.Getenv("APOGRAPH_GOLDEN_JAVA"); libs != "" {
		writeGoldenConfigs(t, libs)
	}
	all := lines(t, goldenEffective)
	if len(all) != 4*goldenConfigs {
		t.Fatalf("%s has %d lines, want %d", goldenEffective, len(all), 4*goldenConfigs)
	}
	for i := 0; i < len(all); i += 4 {
		text, err := hex.DecodeString(all[i])
		if err != nil {
			t.Fatal(err)
		}
		if all[i+1] == "error" {
			t.Errorf("line %d: MirrorMaker 2 refuses\n%s", i+1, text)
			continue
		}
		f, err := javaprops.Parse("f", text)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := mm2.ParseConfig(f, mm2.ConfigOptions{LookupEnv: noEnv})
		var herders []string
		for _, pair := range c.Herders() {
			herders = append(herders, pair.String())
		}
		slices.Sort(herders)
		compare(t, i, text, "herders", strings.Join(herders, "\t"), all[i+1])
		compare(t, i, text, "source connector", sorted(c.Connector("A", "B", "MirrorSourceConnector")), all[i+2])
		compare(t, i, text, "worker", sorted(c.Worker("A", "B")), all[i+3])
	}
}

func compare(t *testing.T, line int, text []byte, what, got, want string) {
	t.Helper()
	for _, field := range strings.Split(got, "\t") {
		if !slices.Contains(strings.Split(want, "\t"), field) {
			t.Errorf("line %d: %s has %s beside MirrorMaker 2's, of\n%s", line+1, what, field, text)
		}
	}
	for _, field := range strings.Split(want, "\t") {
		if !slices.Contains(strings.Split(got, "\t"), field) {
			t.Errorf("line %d: %s lacks %s, of\n%s", line+1, what, field, text)
		}
	}
}

func sorted(props map[string]mm2.Setting) string {
	var all []string
	for key, s := range props {
		all = append(all, key+"="+s.Value)
	}
	slices.Sort(all)
	return strings.Join(all, "\t")
}

// TestKeysAgainstMirrorMaker holds the table to the definitions of the connectors.
func TestKeysAgainstMirrorMaker(t *testing.T) {
	connectors := map[string]mm2.Connectors{"source": mm2.SourceConnector, "checkpoint": mm2.CheckpointConnector, "heartbeat": mm2.HeartbeatConnector}
	defined := map[string]mm2.Connectors{}
	security := mm2.SecurityKeys()
	var client []string
	for _, line := range lines(t, goldenKeys) {
		fields := strings.Split(line, "\t")
		of, name := fields[0], fields[1]
		if of == "client" {
			client = append(client, name)
			continue
		}
		if slices.Contains(security, name) {
			continue
		}
		k, ok := mm2.LookupKey(name)
		if !ok || k.Removed() {
			t.Errorf("%s of the %s connector is not in the table", name, of)
			continue
		}
		defined[name] |= connectors[of]
		got := []string{strings.ToUpper(string(k.Type))}
		if k.HasDefault {
			got = append(got, k.Default)
		}
		if !slices.Equal(got, fields[2:]) {
			t.Errorf("%s of the %s connector: %q, want %q", name, of, got, fields[2:])
		}
	}
	for _, k := range mm2.Keys() {
		if on := k.On & mm2.AllConnectors; !k.Removed() && on != defined[k.Name] {
			t.Errorf("%s is of connectors %b, want %b", k.Name, on, defined[k.Name])
		}
	}
	slices.Sort(security)
	if !slices.Equal(security, client) {
		t.Errorf("security keys %v, want %v", security, client)
	}
}

func writeGoldenConfigs(t *testing.T, libs string) {
	t.Helper()
	dir := t.TempDir()
	classes := libs + "/*" + string(os.PathListSeparator) + dir
	run := func(stdin string, name string, args ...string) string {
		command := exec.Command(name, args...)
		command.Stdin = strings.NewReader(stdin)
		var stderr bytes.Buffer
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, stderr.Bytes())
		}
		return string(out)
	}
	run("", "javac", "-cp", classes, "-d", dir, "testdata/Effective.java")
	const class = "org.apache.kafka.connect.mirror.Effective"
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(goldenKeys, run("", "java", "-cp", classes, class, "keys"))
	var in []string
	r := rand.New(rand.NewSource(11))
	for range goldenConfigs {
		in = append(in, hex.EncodeToString([]byte(generatedConfig(r))))
	}
	out := strings.Split(run(strings.Join(in, "\n")+"\n", "java", "-cp", classes, class), "\n")
	var text strings.Builder
	for i, file := range in {
		fmt.Fprintf(&text, "%s\n%s\n", file, strings.Join(out[3*i:3*i+3], "\n"))
	}
	write(goldenEffective, text.String())
}
