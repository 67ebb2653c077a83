package probe_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/internal/lint"
	"apograph/internal/lint/probe"
	"apograph/internal/mm2"
)

// canary is the password of everything here.
const canary = "c4n4ry"

func login(alias string) string {
	return fmt.Sprintf("%s.security.protocol = SASL_PLAINTEXT\n%[1]s.sasl.mechanism = PLAIN\n"+
		"%[1]s.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"%s\";\n", alias, canary)
}

// ask returns what is found in a file when its clusters are asked. Nothing of it
// may hold a password.
func ask(t *testing.T, text string) *lint.Report {
	t.Helper()
	r := lint.Check("mm2.properties", []byte(text), mm2.ConfigOptions{LookupEnv: func(string) (string, bool) { return "", false }})
	facts, err := probe.Ask(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	r.CheckClusters(facts)
	out, err := json.Marshal(r.Findings)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), canary) {
		t.Errorf("a password shows in\n%s", out)
	}
	return r
}

// mustFind fails the test unless there is one finding with a code, and its
// message has all the parts.
func mustFind(t *testing.T, r *lint.Report, code string, parts ...string) {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(r.Findings), func(f lint.Finding) bool { return f.Code != code })
	ok := slices.ContainsFunc(found, func(f lint.Finding) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(f.Message, part) })
	})
	if !ok {
		t.Errorf("%s with %q is not among %+v", code, parts, r.Findings)
	}
}

func mustNotFind(t *testing.T, r *lint.Report, codes ...string) {
	t.Helper()
	for _, f := range r.Findings {
		if slices.Contains(codes, f.Code) {
			t.Errorf("found %+v", f)
		}
	}
}

// TestRightsAndTopics asks a source whose user may not do everything.
func TestRightsAndTopics(t *testing.T) {
	allow := func(topic string, operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
	}
	pair := kafkatest.NewPair(t, kafkatest.Options{SourceKfake: []kfake.Opt{
		kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", canary),
		kfake.User("PLAIN", "u", canary, allow("app.orders", kmsg.ACLOperationAll), allow("app-orders", kmsg.ACLOperationAll), allow("pay", kmsg.ACLOperationDescribe)),
	}})
	for _, topic := range []string{"app.orders", "app-orders", "pay", "hidden"} {
		if err := pair.Source.CreateTopic(t.Context(), topic, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	r := ask(t, "clusters = a, b\na.bootstrap.servers = "+pair.Source.Server()+"\nb.bootstrap.servers = "+pair.Target.Server()+"\na->b.enabled = true\n"+
		login("a")+"topics = app.orders, pay, hidden, gone.*\nreplication.factor = 4\n")
	mustFind(t, r, "AP0702", "READ", "pay")
	mustFind(t, r, "AP0702", "DESCRIBE on 1 topic", "hidden")
	mustFind(t, r, "AP0703", `"gone.*"`)
	mustFind(t, r, "AP0704", "app-orders")
	mustFind(t, r, "AP0710", "3 brokers")
	mustNotFind(t, r, "AP0701", "AP0706", "AP0712", "AP0708")
}

// TestRightsToMake asks as users who may make some topics, by their names alone, and
// not see them all.
func TestRightsToMake(t *testing.T) {
	allow := func(topic string, operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
	}
	rights := func(acls ...kfake.ACL) []kfake.Opt {
		return []kfake.Opt{kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", canary), kfake.User("PLAIN", "u", canary, acls...)}
	}
	pair := kafkatest.NewPair(t, kafkatest.Options{
		SourceKfake: rights(allow("may", kmsg.ACLOperationAll), allow("not", kmsg.ACLOperationAll), allow("hid", kmsg.ACLOperationAll)),
		TargetKfake: rights(allow("a.may", kmsg.ACLOperationAll), allow("a.not", kmsg.ACLOperationDescribe), allow("a.checkpoints.internal", kmsg.ACLOperationAll)),
	})
	for _, topic := range []string{"may", "not", "hid"} {
		if err := pair.Source.CreateTopic(t.Context(), topic, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	r := ask(t, "clusters = a, b\na.bootstrap.servers = "+pair.Source.Server()+"\nb.bootstrap.servers = "+pair.Target.Server()+"\na->b.enabled = true\n"+login("a")+login("b"))
	mustFind(t, r, "AP0702", "the user of b lacks CREATE on 2 topics: a.hid, a.not")
	mustFind(t, r, "AP0702", "the user of b lacks DESCRIBE on 1 topic: a.hid")
	mustFind(t, r, "AP0714", "the user of a lacks DESCRIBE and CREATE on mm2-offset-syncs.b.internal")
	mustFind(t, r, "AP0714", "the user of b lacks DESCRIBE and CREATE on heartbeats")
	for _, f := range r.Findings {
		if strings.Contains(f.Message, "a.may") || strings.Contains(f.Message, "checkpoints") {
			t.Errorf("found %+v", f)
		}
	}
	if b, err := pair.Target.ReadBounds(t.Context(), "a.may", 0); err == nil {
		t.Errorf("lint made a topic: %+v", b)
	}
}

// TestUnreachable: what cannot be reached is told, with where; what can be is
// asked all the same.
func TestUnreachable(t *testing.T) {
	source := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Kfake: []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "another")}})
	target := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Name: "target"})
	r := ask(t, "clusters = a, b, c\na.bootstrap.servers = "+source.Server()+"\nb.bootstrap.servers = "+target.Server()+"\nc.bootstrap.servers = "+target.Server()+
		"\na->b.enabled = true\nb->c.enabled = true\nb->c.topics = gone\n"+login("a"))
	mustFind(t, r, "AP0701", "a", source.Server())
	mustFind(t, r, "AP0706", "b and c")
	mustFind(t, r, "AP0712", "b->c")
}

// TestVariableWithoutAValue: nobody logs in with the text of a variable.
func TestVariableWithoutAValue(t *testing.T) {
	source := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Kfake: []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "${env:NONE}")}})
	clusters := "clusters = a, b\na.bootstrap.servers = " + source.Server() + "\nb.bootstrap.servers = " + source.Server() + "\na->b.enabled = true\n"
	for name, providers := range map[string]string{
		"no value":    "config.providers = env\nconfig.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n",
		"no class":    "config.providers = env\n",
		"no provider": "",
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(t, clusters+providers+strings.ReplaceAll(login("a"), canary, "${env:NONE}"))
			mustFind(t, r, "AP0701", "cluster a was not asked", "no login was tried", "a.sasl.jaas.config")
		})
	}
}

// TestClientFile: one cluster is asked.
func TestClientFile(t *testing.T) {
	cluster := kafkatest.NewCluster(t, kafkatest.ClusterOptions{})
	mustNotFind(t, ask(t, "bootstrap.servers = "+cluster.Server()+"\n"), "AP0701")
	cluster.Stop()
	mustFind(t, ask(t, "bootstrap.servers = "+cluster.Server()+"\n"), "AP0701", cluster.Server())
}

// registry answers as a schema registry that knows one schema, and wants a login.
func registry(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "u" || password != canary:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/base/schemas/ids/7":
			fmt.Fprint(w, `{"schema":"\"string\""}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/base"
}

// TestSchemas: records carry ids that the registry of the target knows or does
// not know; others only look a little like it.
func TestSchemas(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	withID := func(id uint32) []byte { return append(binary.BigEndian.AppendUint32([]byte{0}, id), "payload"...) }
	produce(t, pair.Source, map[string][][]byte{
		"known":    {withID(7), withID(7)},
		"unknown":  {withID(7), withID(8), withID(9)},
		"numbers":  {binary.BigEndian.AppendUint64(nil, 1<<33), binary.BigEndian.AppendUint64(nil, 5)},
		"text":     {[]byte("hello"), nil, {}},
		"once":     {withID(12), []byte("a"), []byte("b")},
		"excluded": {withID(99)},

		// As MirrorMaker 2 writes them: a version of 0, and a time.
		"heartbeats":   {binary.BigEndian.AppendUint64([]byte{0, 0}, 1_780_000_000_000)},
		"z.heartbeats": {binary.BigEndian.AppendUint64([]byte{0, 0}, 1_780_000_000_000)},
	})
	file := "clusters = a, b\na.bootstrap.servers = " + pair.Source.Server() + "\nb.bootstrap.servers = " + pair.Target.Server() + "\na->b.enabled = true\ntopics.exclude = excluded\n"

	r := ask(t, file)
	mustFind(t, r, "AP0708", "known, unknown")
	mustNotFind(t, r, "AP0707", "AP0711", "AP0701")
	for _, f := range r.Findings {
		if f.Code == "AP0708" && strings.Contains(f.Message, "heartbeats") {
			t.Errorf("found %+v", f)
		}
	}

	r = ask(t, file+"apograph.schema.registry.url = http://u:"+canary+"@"+registry(t)+"\n")
	mustFind(t, r, "AP0707", "8, 9", "unknown")
	mustNotFind(t, r, "AP0708", "AP0711")
	for _, f := range r.Findings {
		if f.Code == "AP0707" && !strings.Contains(f.Message, "records of unknown") {
			t.Errorf("found %+v", f)
		}
	}

	r = ask(t, file+"apograph.schema.registry.url = http://u:"+canary+"2@"+registry(t)+"\n")
	mustFind(t, r, "AP0711", "401")
	r = ask(t, file+"apograph.schema.registry.url = http://u:"+canary+"@127.0.0.1:1\n")
	mustFind(t, r, "AP0711", "127.0.0.1:1")
	r = ask(t, file+"apograph.schema.registry.url = "+canary+"\n")
	mustFind(t, r, "AP0711", "no URL")
}

func produce(t *testing.T, c *kafkatest.Cluster, topics map[string][][]byte) {
	t.Helper()
	client := c.NewClient(t)
	defer client.Close()
	for topic, values := range topics {
		if err := c.CreateTopic(t.Context(), topic, 1, nil); err != nil {
			t.Fatal(err)
		}
		for _, value := range values {
			if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
