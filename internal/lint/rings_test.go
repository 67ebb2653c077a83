package lint_test

import (
	"strconv"
	"strings"
	"testing"

	"apograph/internal/lint"
)

// TestRings: flows that keep names and lead back to where they began are told once,
// however long the way is.
func TestRings(t *testing.T) {
	const three = "clusters = a, b, c\nbootstrap.servers = x:9092\na->b.enabled = true\nb->c.enabled = true\n"
	tests := []struct {
		name, text string
		want       string // the flows; "": none
	}{
		{"three", three + "c->a.enabled = true\n" + identity, "a->b and b->c and c->a"},
		{"a chain", three + identity, ""},
		{"one has prefixes", three + "c->a.enabled = true\na->b." + identity + "b->c." + identity, ""},
		{"one has other topics", three + "c->a.enabled = true\nc->a.topics = x\na->b.topics = y\nb->c.topics = .*\n" + identity, ""},
		{"two have topics in common, not all three", three + "c->a.enabled = true\nc->a.topics = x, y\na->b.topics = y, z\nb->c.topics = x, z\n" + identity, ""},
		{"two of three", three + "c->b.enabled = true\n" + identity, "b->c and c->b"},
		{"each with a policy of its own", three + "c->a.enabled = true\na->b." + identity + "b->c." + identity + "c->a." + identity, "a->b and b->c and c->a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := of(check(tt.text), "AP0502")
			if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0].Message, tt.want+" keep")) {
				t.Errorf("found %v, want %q", found, tt.want)
			}
		})
	}
}

// TestTwoWays: whether rules for names in both directions bring a topic back.
func TestTwoWays(t *testing.T) {
	const ways = "b->a.enabled = true\napograph.policy = map\n"
	tests := []struct {
		name, lines string
		want        string // a code, and what is named; "": neither AP0502 nor AP0512
	}{
		{"each a topic of its own", "a->b.topics = orders\nb->a.topics = pay\na->b.apograph.policy.map = orders=eu-orders\nb->a.apograph.policy.map = pay=us-pay", ""},
		{"each a topic of its own, with one name", "a->b.topics = orders\nb->a.topics = pay\napograph.policy.map = orders=x, pay=x", ""},
		{"patterns that keep apart", `a->b.topics = eu-.*` + "\nb->a.topics = us-.*\napograph.policy.map = (.*)=copy-$1", ""},
		{"what is made is left out", "topics.exclude = copy-.*\napograph.policy.map = (.*)=copy-$1", ""},
		{"there and back", "a->b.topics = orders\nb->a.topics = commands\na->b.apograph.policy.map = orders=commands\nb->a.apograph.policy.map = commands=orders", "AP0502 orders of a"},
		{"there and back by groups", "a->b.topics = orders.*\nb->a.topics = commands.*\na->b.apograph.policy.map = orders(.*)=commands$1\nb->a.apograph.policy.map = commands(.*)=orders$1", "AP0502 orders of a"},
		{"back to another name", "a->b.topics = orders\nb->a.topics = commands\na->b.apograph.policy.map = orders=commands\nb->a.apograph.policy.map = commands=back", ""},
		{"the other way round for a name with both", "a->b.topics = .*-eu\nb->a.topics = eu-.*-us-eu\na->b.apograph.policy.map = (.*)-eu=eu-$1\nb->a.apograph.policy.map = eu-(.*)=$1-eu", "AP0502 -us-eu-eu of a"},
		{"rules for others only", "apograph.policy.map = other=elsewhere", "AP0502 keep names"},
		{"rules for others only, topics apart", "a->b.topics = eu-.*\nb->a.topics = us-.*, other\napograph.policy.map = other=elsewhere", ""},
		{"one way alone", "b->a.enabled = false\na->b.topics = x\napograph.policy.map = x=x", ""},
		{"names that grow", "apograph.policy.map = (.*)=x-$1", "AP0512 under ever new names"},
		{"names that grow beside some that come back", "a->b.apograph.policy.map = (.*)=b-$1\nb->a.apograph.policy.map = b-(.*)=$1", "AP0502 copied back"},
		{"a default in one direction", "b->a.apograph.policy = default\na->b.apograph.policy.map = x=y\nb->a.topics = z", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := check(flowLines + ways + tt.lines + "\n")
			found := append(of(r, "AP0502"), of(r, "AP0512")...)
			code, part, _ := strings.Cut(tt.want, " ")
			if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || found[0].Code != code || !strings.Contains(found[0].Message, part)) {
				t.Errorf("found %v, want %q", found, tt.want)
			}
		})
	}
}

// TestFanIn: whether two flows bring topics of two clusters together.
func TestFanIn(t *testing.T) {
	const two = "clusters = a, b, c\nbootstrap.servers = x:9092\na->c.enabled = true\nb->c.enabled = true\n"
	tests := []struct {
		name, lines string
		want        string // a part of the message; "": nothing
	}{
		{"all of both", identity, "a->c and b->c both keep names"},
		{"one name in common", identity + "a->c.topics = orders, pay\nb->c.topics = ship, pay", "such as pay,"},
		{"patterns with names in common", identity + "a->c.topics = pay.*\nb->c.topics = .*ments", "such as payments,"},
		{"none, as one leaves it out", identity + "a->c.topics = orders, pay\nb->c.topics = ship, pay\nb->c.topics.exclude = pay", ""},
		{"rules that keep apart", "apograph.policy = map\na->c.apograph.policy.map = (.*)=a-$1\nb->c.apograph.policy.map = (.*)=b-$1", ""},
		{"rules that bring together", "apograph.policy = map\na->c.topics = orders\nb->c.topics = commands\napograph.policy.map = orders=all, commands=all", "orders of a and commands of b would both be all on c"},
		{"rules that bring together by groups", "apograph.policy = map\na->c.topics = eu-.*\nb->c.topics = us-.*\napograph.policy.map = [a-z]*-(.*)=$1", "would both be"},
		{"rules of which one is for others", "apograph.policy = map\na->c.topics = eu-.*\nb->c.topics = us-.*\na->c.apograph.policy.map = (.*)=copy-$1\nb->c.apograph.policy.map = x=y", ""},
		{"prefixes in one", "a->c." + identity, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := of(check(two+tt.lines+"\n"), "AP0503")
			if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || !strings.Contains(found[0].Message, tt.want)) {
				t.Errorf("found %v, want %q", found, tt.want)
			}
		})
	}
}

// TestNothingToCopy: what the lists of topics come to, an element each.
func TestNothingToCopy(t *testing.T) {
	tests := []struct {
		lines string
		want  string // codes with their columns
	}{
		{"topics.exclude = .*", "AP0508:1"},
		{"topics = orders, pay\ntopics.exclude = .*", "AP0508:1"},
		{"topics = orders, pay\ntopics.exclude = pay", "AP0318:18"},
		{"topics = orders, .*\ntopics.exclude = ord.*", "AP0318:10"},
		{"topics = orders\ntopics.exclude = ord.*, pay", "AP0508:1"},
		{`topics = x\\.replica`, "AP0318:10"}, // by default
		{"topics = pay-.*\ntopics.exclude = pay-[a-z]*", ""},
		{"topics = (a|b)\ntopics.exclude = a, b", "AP0508:1"},
		{"topics = __consumer_off.*, orders", "AP0509:10"},
		{"topics = orders, __consumer_offsets", "AP0506:18"},
		{`topics = mm2-.*\\.internal, __.*|\\.x`, "AP0509:10 AP0509:29"},
		{"topics = .*internal", ""},
		{"topics = orders; pay", "AP0317:16"},
		{"topics = orders pay", "AP0317:16"},
		{"topics = a, /orders/", "AP0317:13"},
		{"topics = a, !orders", "AP0317:13"},
		{"topics.exclude = a;b", "AP0317:19"},
		{"topics = orders/eu", "AP0317:10"},
		{"groups = a;b", "AP0317:11"},
		{"groups = my group, a/b, *x*", ""},
		{"groups = !console", "AP0317:10"},
		{"config.properties.exclude = a b", "AP0317:30"},
	}
	for _, tt := range tests {
		t.Run(tt.lines, func(t *testing.T) {
			var got []string
			for _, f := range check(flowLines + tt.lines + "\n").Findings {
				switch f.Code {
				case "AP0317", "AP0318", "AP0506", "AP0508", "AP0509":
					got = append(got, f.Code+":"+strconv.Itoa(f.Column))
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("found %v, want %q", got, tt.want)
			}
		})
	}
}

// TestInstead: what to write where a list is written as other tools have it.
func TestInstead(t *testing.T) {
	for lines, want := range map[string]string{
		"topics = a;b": "a,b", "topics = a b": "a, b", "topics = /a.*/": "a.*", "topics = a, !b": "topics.exclude = b", "a->b.topics = !b": "a->b.topics.exclude = b",
	} {
		if found := of(check(flowLines+lines), "AP0317"); len(found) != 1 || found[0].Suggestion != want {
			t.Errorf("%s: %v, want %s", lines, found, want)
		}
	}
}

// TestRulesForNames that do nothing, or too much.
func TestRulesForNames(t *testing.T) {
	tests := []struct{ lines, want string }{
		{"topics = orders, pay\napograph.policy.map = orders=a, pay=b", ""},
		{"topics = orders, pay\napograph.policy.map = orders=a, order=b", `AP0510:33 "order=b" renames no topic: a->b copies none`},
		{"topics = .*\napograph.policy.map = (.*)=x-$1, orders=b", `AP0510:34 "orders=b" renames no topic: the rules in front`},
		{"topics = .*\napograph.policy.map = ord/(.*)=x-$1", `AP0510:23 "ord/(.*)=x-$1" renames no topic: no topic can have`},
		{"topics = orders, pay\napograph.policy.map = orders=a, pay=a", "AP0511:33 orders and pay would both be a"},
		{"topics = orders, pay\napograph.policy.map = .*=a", "AP0511:23 pay and orders would both be a"},
		{"topics = orders\napograph.policy.map = .*=a", ""},
		{"topics = .*\napograph.policy.map = (.*)-eu=$1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.lines, func(t *testing.T) {
			r := check(flowLines + "apograph.policy = map\n" + tt.lines + "\n")
			var got []string
			for _, f := range append(of(r, "AP0510"), of(r, "AP0511")...) {
				got = append(got, f.Code+":"+strconv.Itoa(f.Column)+" "+f.Message)
			}
			if text := strings.Join(got, "\n"); !strings.HasPrefix(text, tt.want) || tt.want == "" && text != "" || len(got) > 1 {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

// TestTheOtherSideIsNotSuggested: no suggestion makes a flow from a cluster to
// itself.
func TestTheOtherSideIsNotSuggested(t *testing.T) {
	for lines, want := range map[string]string{
		"east->eats.enabled = true":    "", // east would be the nearest
		"east->wset.enabled = true":    "write west",
		"wst->east.enabled = true":     "write west",
		"east->q.enabled = true":       "",
		"east => east.enabled = true":  "",
		"east=>west.enabled = true":    "east->west.enabled",
		"east -> east.enabled = true":  "",
		`east\ ->\ east.topics = true`: "",
		"east-east.enabled = true":     "",
		"eastt.bootstrap.servers = x":  "write east.bootstrap.servers",
	} {
		r := check("clusters = east, west\neast.bootstrap.servers = x:9092\nwest.bootstrap.servers = y:9092\neast->west.enabled = true\n" + lines + "\n")
		var codes []string
		suggestion := ""
		for _, f := range r.Findings {
			if f.Line == 5 {
				codes, suggestion = append(codes, f.Code), f.Suggestion
			}
			if strings.Contains(f.Suggestion, "east->east") {
				t.Errorf("%s: %v", lines, f)
			}
		}
		if len(codes) != 1 || want == "" && strings.Contains(suggestion, "east") || !strings.HasPrefix(suggestion, want) {
			t.Errorf("%s: found %v, suggestion %q, want %q", lines, codes, suggestion, want)
		}
	}
}

// TestAliasesAndLedgers: what aliases must not be.
func TestAliasesAndLedgers(t *testing.T) {
	for lines, want := range map[string]string{
		"clusters = a, ../b\na.bootstrap.servers = x:1\nbootstrap.servers = y:1\na->../b.enabled = true":                                                                                                            "AP0414",
		"clusters = a, a->b\na.bootstrap.servers = x:1\nbootstrap.servers = y:1\na->a->b.enabled = true":                                                                                                            "AP0414",
		"clusters = a, b-to-c, a-to-b, c\na.bootstrap.servers = x:1\nb-to-c.bootstrap.servers = y:1\na-to-b.bootstrap.servers = z:1\nc.bootstrap.servers = w:1\na->b-to-c.enabled = true\na-to-b->c.enabled = true": "AP0415",
		"clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = true\napograph.ledger.dir = ../b":                                                                                    "",
	} {
		var got []string
		for _, f := range check(lines).Findings {
			if f.Level == lint.Error {
				got = append(got, f.Code)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", lines, got, want)
		}
	}
}
