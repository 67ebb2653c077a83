package lint_test

import (
	"strings"
	"testing"

	"apograph/internal/lint"
)

// TestOneMistakeOneFinding: an example has one mistake, and so one finding that is
// more than a notice.
func TestOneMistakeOneFinding(t *testing.T) {
	more := map[string]int{
		"AP0201": 2, // of two keys
		"AP0109": 2, // without its first key the file is refused
	}
	for _, c := range lint.Codes() {
		if c.Example == "" {
			continue
		}
		var told []lint.Finding
		for _, f := range check(whole(c.Example)).Findings {
			if f.Level != lint.Notice {
				told = append(told, f)
			}
		}
		want := 1
		if n, ok := more[c.ID]; ok {
			want = n
		}
		if c.Level == lint.Notice {
			want = 0
		}
		if len(told) != want {
			t.Errorf("%s: found %d, want %d: %v", c.ID, len(told), want, told)
		}
	}
}

// TestMistakesThatLookLikeSeveral are told once.
func TestMistakesThatLookLikeSeveral(t *testing.T) {
	for lines, want := range map[string]string{
		"a.consumer.interceptor.classes = x":        "AP0222",
		"b.producer.interceptor.classes = x":        "AP0222",
		"a->b.consumer.override.fetch.min.byte = 1": "AP0205",
		"a->b.consumer.override.x = 1":              "AP0205",
		"topics = a,,,b,":                           "AP0303",
		"topics = a,a,a":                            "AP0302",
		"clusters = a,,b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true":  "AP0303",
		"clusters = a,b,b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true": "AP0302",
		"a.security.protocol = SALS_SSL\na.sasl.mechanism = PLAIN":                                    "AP0601",
		"a.security.protocol = SASL_SSL\na.sasl.mechanism = GSSAPI":                                   "AP0601",
		"topics = (orders, pay)":                                            "AP0311",
		"topics = x, [a,b], y":                                              "AP0311",
		`topics = \\Qa,b\\E`:                                                "AP0311",
		"topics = \"orders\"":                                               "AP0106",
		"refresh.topics.interval.seconds = 60 # a minute":                   "AP0301",
		"sync.topic.acls.enabled = \"true\"":                                "AP0301",
		"a => b.topics = x":                                                 "AP0404",
		"a-b.topics = x":                                                    "AP0404",
		"apograph.refresh.interval = soon":                                  "AP0301",
		"apograph.refresh.interval = 0":                                     "AP0301",
		"apograph.refresh.intervall = 5s":                                   "AP0209",
		"apograph.policy = map\napograph.policy.map = orders":               "AP0505",
		"apograph.policy = map\napograph.policy.map = (.*)=$2":              "AP0505",
		"apograph.policy = map\napograph.policy.map = orders=":              "AP0505",
		`apograph.policy = map` + "\n" + `apograph.policy.map = (.*)=x-\\1`: "AP0505",
		"apograph.policy = map\napograph.policy.map = (.*)=$1/x":            "AP0505",
		"apograph.policy = map\napograph.policy.map = (a, b)=x":             "AP0505",
	} {
		var got []string
		for _, f := range check(whole(lines)).Findings {
			if f.Level != lint.Notice {
				got = append(got, f.Code)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: found %v, want %s", lines, got, want)
		}
	}
}

// TestOwnKeys: what a misspelt key of apograph's own was probably meant for.
func TestOwnKeys(t *testing.T) {
	for key, want := range map[string]string{
		"apograph.refresh.intervall": "write apograph.refresh.interval", "apograph.ledger": "write apograph.ledger.dir", "apograph.polciy.map": "write apograph.policy.map",
		"a->b.apograph.strat": "write a->b.apograph.start", "apograph.topics": "", "apograph.anything.else": "",
	} {
		found := of(check(flowLines+key+" = x\n"), "AP0209")
		if len(found) != 1 || found[0].Suggestion != want || found[0].Level != lint.Error {
			t.Errorf("%s: %v, want %q", key, found, want)
		}
	}
}

// TestOctal: a properties file has no octal numbers.
func TestOctal(t *testing.T) {
	found := of(check(flowLines+`topics = \0141`), "AP0107")
	if len(found) != 1 || !strings.Contains(found[0].Message, `"0141"`) || !strings.Contains(found[0].Message, "octal") || !strings.Contains(found[0].Suggestion, `\u`) {
		t.Errorf("%v", found)
	}
	found = of(check(flowLines+`a.ssl.key.password = pass\0141`), "AP0107")
	if len(found) != 1 || strings.Contains(found[0].Message, "pass0141") || !strings.Contains(found[0].Message, "octal") {
		t.Errorf("%v", found)
	}
}

// TestDefaultsAreTold once, with what MirrorMaker 2 has, where a file is silent.
func TestDefaultsAreTold(t *testing.T) {
	found := of(check("clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\nb->a.enabled = true\nb->a.replication.factor = 3\n"), "AP0211")
	if len(found) != 1 || found[0].Level != lint.Notice || found[0].Line != 4 {
		t.Fatalf("%v", found)
	}
	for _, part := range []string{"every 30 seconds (refresh.topics.interval.seconds: 600)", "(sync.topic.configs.interval.seconds: 600)", "on the source (replication.factor: 2)"} {
		if !strings.Contains(found[0].Message, part) {
			t.Errorf("%q lacks %q", found[0].Message, part)
		}
	}
}
