package lint_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"apograph/internal/lint"
)

// TestMisspeltKeys: the nearest real key is suggested, also where the file is only
// a part of one.
func TestMisspeltKeys(t *testing.T) {
	const lines = "offset.max.lag=1\nsync.group.offset.enabled=true\nemit.checkpoint.interval.seconds=5\n"
	for name, text := range map[string]string{"in a flow": flowLines + lines, "alone": lines} {
		t.Run(name, func(t *testing.T) {
			found := of(check(text), "AP0201")
			if len(found) != 3 {
				t.Fatalf("found %v", found)
			}
			for i, want := range []string{"offset.lag.max", "sync.group.offsets.enabled", "emit.checkpoints.interval.seconds"} {
				if !strings.HasSuffix(found[i].Suggestion, want) || found[i].Level != lint.Warning {
					t.Errorf("%v, want %s", found[i], want)
				}
			}
		})
	}
}

// TestPlaces: a finding stands at the character that it is about.
func TestPlaces(t *testing.T) {
	tests := []struct {
		code, text string
		line       int
		column     int
	}{
		{"AP0107", `a->b.topics = orders, app\.orders`, 5, 26},
		{"AP0107", "topics = orders,\\\n   app\\.orders", 6, 7},
		{"AP0310", "topics = orders, *", 5, 18},
		{"AP0310", "topics = \\u006frders, *", 5, 23},
		{"AP0311", "topics = a, x{1,2}", 5, 16},
		{"AP0312", "topics = a, b(?!c)", 5, 14},
		{"AP0313", "topics = a, X_Y_*", 5, 17},
		{"AP0314", "topics = a, app.orders", 5, 16},
		{"AP0314", `topics = app\.orders, app.pay`, 5, 26},
		{"AP0302", "topics = a, b ,a", 5, 16},
		{"AP0105", "topics = a # all", 5, 12},
		{"AP0104", "topics = abc  ", 5, 13},
		{"AP0506", "topics = a, __consumer_offsets", 5, 13},
		{"AP0301", "sync.topic.acls.enabled=yes", 5, 25},
		{"AP0411", "clusters = a, b, c\nbootstrap.servers = x:9092\na->b.enabled = true", 1, 18},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			text := whole(tt.text)
			found := of(check(text), tt.code)
			if len(found) != 1 || found[0].Line != tt.line || found[0].Column != tt.column {
				t.Errorf("found %v, want one at %d:%d of\n%s", found, tt.line, tt.column, text)
			}
		})
	}
}

// TestEachCutIsTold: a comma inside of one pattern hides nothing of the rest of the list.
func TestEachCutIsTold(t *testing.T) {
	r := check(flowLines + "topics = orders{1,2}, x(?!y), pay[a,b], app.z, (\\\\d{2}+)\n")
	var found []string
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Code, "AP031") {
			found = append(found, fmt.Sprintf("%s at %d", f.Code, f.Column))
		}
	}
	if got := strings.Join(found, ", "); got != "AP0311 at 18, AP0312 at 24, AP0311 at 36, AP0314 at 44, AP0312 at 52" {
		t.Errorf("found %s in %v", got, r.Findings)
	}
}

// TestOrder: findings are in the order of the file, what has no place in it last.
func TestOrder(t *testing.T) {
	var codes []string
	for _, f := range check("topics = orders  \na->b.enabled = yes\noffset.max.lag = 1\n").Findings {
		codes = append(codes, f.Code)
	}
	if got := strings.Join(codes, " "); got != "AP0104 AP0407 AP0201 AP0401" {
		t.Errorf("found %s", got)
	}
}

// TestKinds: a file is told by its keys.
func TestKinds(t *testing.T) {
	tests := map[string]lint.Kind{
		flowLines:                           lint.MirrorMaker2,
		"offset.lag.max = 1":                lint.MirrorMaker2,
		"":                                  lint.MirrorMaker2,
		"a -> b.enabled = true\ntopics = x": lint.MirrorMaker2,
		"a.bootstrap.servers = x:9\nsecurity.protocol = SSL":        lint.MirrorMaker2,
		"bootstrap.servers = x:9":                                   lint.Client,
		"security.protocol=SSL\nssl.truststore.locaton=x":           lint.Client,
		"bootstrap.servers=x:9\nclient.id=c\nacks=all\nlinger.ms=5": lint.Client,
	}
	for text, want := range tests {
		if got := check(text).Kind; got != want {
			t.Errorf("%q is read as %s, want %s", text, got, want)
		}
	}
}

// TestSampleOfKafka: the file that comes with Kafka has nothing that is wrong.
func TestSampleOfKafka(t *testing.T) {
	const sample = `# specify any number of cluster aliases
clusters = A, B
A.bootstrap.servers = A_host1:9092, A_host2:9092, A_host3:9092
B.bootstrap.servers = B_host1:9092, B_host2:9092, B_host3:9092
A->B.enabled = true
A->B.topics = .*
B->A.enabled = true
B->A.topics = .*
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
`
	r := check(sample)
	if !lint.Count(r.Findings).Clean() {
		t.Errorf("%v", r.Findings)
	}
	if ignored := of(r, "AP0206"); len(ignored) != 1 || ignored[0].Line != 13 || !strings.Contains(ignored[0].Message, "status.storage.replication.factor") {
		t.Errorf("what is ignored is told as %v", ignored)
	}
}

// TestExplain is the table of topics and patterns of which users are not sure.
func TestExplain(t *testing.T) {
	tests := []struct {
		topics, topic string
		copied, dot   bool
		at            string // line:column of the pattern; "" for none
		rule          string // a part of it
	}{
		{"X_Y_A|X_Y_B", "X_Y_A", true, false, "5:10", "matched"},
		{"X_Y_A|X_Y_B", "X_Y_C", false, false, "", "no pattern"},
		{"a, X_Y_.*", "X_Y_C", true, false, "5:13", "matched"},
		{"X_Y_*", "X_Y_A", false, false, "", "no pattern"},
		{"orders", "orders-eu", false, false, "", "no pattern"},
		{"", "orders", false, false, "", "no pattern"},
		{"app.orders", "app.orders", true, false, "5:10", "matched"},
		{"app.orders", "app-orders", true, true, "5:10", "dot"},
		{`app\.orders`, "appXorders", true, true, "5:10", "dot"},
		{`app\\.orders`, "app.orders", true, false, "5:10", "matched"},
		{`app\\.orders`, "app-orders", false, false, "", "no pattern"},
		{".*", "mm2-x.internal", false, false, "", "internal"},
		{".*", "A.checkpoints.internal", false, false, "", "internal"},
		{".*", ".ads", false, false, "", "internal"},
		{".*", "__x", false, false, "", "internal"},
		{".*", "orders.internal", true, false, "5:10", "matched"},
		{".*", "orders-internal", true, false, "5:10", "matched"},
		{".*", "b.orders", false, false, "5:10", "cycle"},
		{".*", "x.replica", false, false, "0:0", "excluded"},
		{"x", "heartbeats", true, false, "", "heartbeats"},
	}
	for _, tt := range tests {
		t.Run(tt.topics+" "+tt.topic, func(t *testing.T) {
			all, ok := check(flowLines + "topics = " + tt.topics + "\n").Explain(tt.topic)
			if !ok || len(all) != 1 {
				t.Fatalf("%v", all)
			}
			x := all[0]
			at := ""
			if x.Pattern != "" {
				at = fmt.Sprintf("%d:%d", x.Line, x.Column)
			}
			if x.Copied != tt.copied || x.ThroughDot != tt.dot || at != tt.at || !strings.Contains(x.Rule, tt.rule) {
				t.Errorf("%+v, want %+v", x, tt)
			}
			if want := "a." + tt.topic; x.Copied && x.TargetTopic != want || !x.Copied && x.TargetTopic != "" {
				t.Errorf("the target topic is %q", x.TargetTopic)
			}
		})
	}
}

// TestSecrets: no finding holds what is secret, whatever is wrong with it.
func TestSecrets(t *testing.T) {
	const canary = "c4n4ry"
	keys := []string{"a.ssl.keystore.password", "a.ssl.key.password", "a.ssl.truststore.password", "a.ssl.keystore.key", "a.sasl.jaas.config",
		"a.sasl.oauthbearer.client.credentials.client.secret", "ssl.keystore.password", "a.consumer.sasl.jaas.config", "b.producer.ssl.key.password", "a->b.sasl.jaas.config",
		"a->b.consumer.ssl.key.password", "a.ssl.keystore.pasword", "c.sasl.jaas.config", "config.providers.x.param.secret"}
	values := []string{canary, `"` + canary + `"`, canary + `\q`, canary + "  ", canary + " # x", canary + `\t`, "ä" + canary, `x password="` + canary + `";`, "${file:/" + canary + ":x}", canary + ",\\\n#" + canary}
	for _, protocol := range []string{"", "SASL_SSL", "SSL"} {
		for _, key := range keys {
			for _, value := range values {
				if strings.HasPrefix(value, "${") {
					value = "x" + value // the path of a reference is no secret, its value would be
				}
				text := flowLines + "a.security.protocol = " + protocol + "\na.sasl.mechanism = PLAIN\n" + key + " = " + value + "\n" + key + " = " + value + "\n"
				out, err := json.Marshal(check(text).Findings)
				if err != nil {
					t.Fatal(err)
				}
				if shown := strings.ReplaceAll(string(out), "/"+canary, ""); strings.Contains(shown, canary) {
					t.Errorf("%s = %s shows in\n%s", key, value, out)
				}
			}
		}
	}
}

// BenchmarkCheck looks at a file of 300 lines with ten clusters, each of which
// logs in, a ring of flows, and some twenty misspelt keys.
func BenchmarkCheck(b *testing.B) {
	data := []byte(bigFile())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if r := lint.Check("mm2.properties", data, noEnvironment()); len(r.Flows) != 10 {
			b.Fatal(len(r.Flows))
		}
	}
}

// BenchmarkCheckUnknown looks at files in which all flows between four clusters run,
// with lists of 30 patterns, and with many keys that nobody knows.
func BenchmarkCheckUnknown(b *testing.B) {
	for _, unknown := range []int{99, 20_000} {
		b.Run(fmt.Sprint(unknown), func(b *testing.B) {
			var text strings.Builder
			text.WriteString("clusters = c0, c1, c2, c3\nbootstrap.servers = h:9092\n")
			for i := range 12 {
				flow := fmt.Sprintf("c%d->c%d", i/3, (i/3+i%3+1)%4)
				fmt.Fprintf(&text, "%s.enabled = true\n%s.topics = t-[a-z]+.*", flow, flow)
				for j := range 29 {
					fmt.Fprintf(&text, ", t%d-[a-z]+.*", j)
				}
				text.WriteString("\n")
			}
			for i := range unknown {
				fmt.Fprintf(&text, "%s.some.unknown.setting.%d = 1\n", []string{"c0", "c1.consumer", "c2.producer", "c0->c1"}[i%4], i)
			}
			data := []byte(text.String())
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if r := lint.Check("mm2.properties", data, noEnvironment()); len(r.Flows) != 12 {
					b.Fatal(len(r.Flows))
				}
			}
		})
	}
}

func bigFile() string {
	var text strings.Builder
	text.WriteString("clusters = c0, c1, c2, c3, c4, c5, c6, c7, c8, c9\n")
	for i := range 10 {
		fmt.Fprintf(&text, "c%d.bootstrap.servers = c%d:9092\nc%d.security.protocol = SASL_SSL\nc%d.sasl.mechanism = SCRAM-SHA-512\n", i, i, i, i)
		fmt.Fprintf(&text, "c%d.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required username=\"u\" password=\"p\";\n", i)
		next := (i + 1) % 10
		fmt.Fprintf(&text, "c%d->c%d.enabled = true\nc%d->c%d.topics = app%d.orders, pay-%d-.*, ship\\.%d\n", i, next, i, next, i, i, i)
		for _, key := range []string{"groups", "topics.exclude", "sync.topic.acls.enabled", "emit.checkpoints.enabled", "replication.factor", "offset.max.lag"} {
			fmt.Fprintf(&text, "c%d->c%d.%s = %s\n", i, next, key, map[string]string{"groups": ".*", "topics.exclude": "a.b, c"}[key])
		}
		for _, key := range []string{"consumer.fetch.min.bytes", "consumer.max.poll.records", "producer.acks", "producer.linger.ms", "producer.max.in.fligth", "ssl.truststore.password"} {
			fmt.Fprintf(&text, "c%d.%s = 1\n", i, key)
		}
	}
	for strings.Count(text.String(), "\n") < 300 {
		text.WriteString("# a line\n")
	}
	return text.String()
}

// TestKeysOfEveryRole: what the file gives to any client of a cluster is looked at,
// whichever of MirrorMaker 2's clients it is.
func TestKeysOfEveryRole(t *testing.T) {
	for key, code := range map[string]string{
		"a.admin.foo": "AP0603", "a.producer.foo": "AP0603", "b.consumer.foo": "AP0603", "a->b.admin.foo": "AP0603", "a->b.target.consumer.foo": "AP0603",
		"a.admin.ssl.truststore.locaton": "AP0603", "a.producer.ssl.truststore.location": "AP0606", "b.consumer.sasl.mechanism": "AP0606",
		"a.producer.acks": "AP0602", "b.group.id": "AP0204",
	} {
		if found := of(check(flowLines+key+" = 1\n"), code); len(found) != 1 || found[0].Line != 5 {
			t.Errorf("%s: found %v", key, check(flowLines+key+" = 1\n").Findings)
		}
	}
}

// TestOneCauseIsToldOnce: what flows have from the default of topics is told once in a
// file, and what each says itself at each.
func TestOneCauseIsToldOnce(t *testing.T) {
	const both = "b->a.enabled = true\n"
	for lines, want := range map[string]int{
		both:                         1,
		both + "topics = .*\n":       1,
		both + "a->b.topics = .*\n":  2,
		both + "a->b.topics = pay\n": 1,
		both + "b->a.topics = x\n":   1,
		both + "a->b.topics = .*\nb->a.topics = .*\n":             2,
		both + "topics.exclude = _.*, connect-.*, .*-c.*, .*-r.*": 0,
	} {
		if found := of(check(flowLines+lines), "AP0504"); len(found) != want {
			t.Errorf("%s: found %d, want %d: %v", lines, len(found), want, found)
		}
	}
}
