package lint

import (
	"math/rand"
	"regexp"
	"strings"
	"testing"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// shortNames are all names of up to four of a few letters, the short ones first.
func shortNames() []string {
	var all []string
	last := []string{""}
	for range 4 {
		var next []string
		for _, before := range last {
			for _, r := range "abBc-._" {
				next = append(next, before+string(r))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// TestNamesAgainstAllNames: a search finds a name if there is one, a shortest, and
// none if there is none, as matching every short name tells.
func TestNamesAgainstAllNames(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	pieces := []string{"a", "b", "-", `\.`, "_", ".", ".*", "[ab]", "(a|b-)", "a?", "b*", "[^a]", "(?:ab)+", `\w`, `\W`, `\b`, "^", "$", "(?i)B", "a{2}"}
	pattern := func() string {
		var b strings.Builder
		for range 1 + r.Intn(4) {
			b.WriteString(pieces[r.Intn(len(pieces))])
		}
		return b.String()
	}
	empty := 0
	all := shortNames()
	for range 500 {
		in, also, out := pattern(), pattern(), []string{pattern(), pattern()}
		l := language{in: []*automaton{newAutomaton(in), newAutomaton(also)}, out: []*automaton{newAutomaton(out...)}}
		var whole []*regexp.Regexp
		for _, x := range []string{in, also, out[0], out[1]} {
			whole = append(whole, regexp.MustCompile(`\A(?:`+x+`)\z`))
		}
		has := func(name string) bool {
			return whole[0].MatchString(name) && whole[1].MatchString(name) && !whole[2].MatchString(name) && !whole[3].MatchString(name) && name != "." && name != ".."
		}
		want := ""
		for _, name := range all {
			if has(name) {
				want = name
				break
			}
		}
		found, sure := l.names(3)
		switch {
		case !sure:
			t.Errorf("%s, %s, not %s: given up", in, also, out)
		case want == "" && len(found) > 0 && (len(found[0]) <= 4 || !has(found[0])):
			t.Errorf("%s, %s, not %s: found %q", in, also, out, found)
		case want != "" && (len(found) == 0 || len(found[0]) != len(want)):
			t.Errorf("%s, %s, not %s: found %q, want one as short as %q", in, also, out, found, want)
		}
		seen := map[string]bool{}
		for _, name := range found {
			if !has(name) || seen[name] {
				t.Errorf("%s, %s, not %s: found %q", in, also, out, found)
			}
			seen[name] = true
		}
		if len(found) == 0 {
			empty++
		}
	}
	if empty < 100 || empty > 450 {
		t.Errorf("%d of 500 languages are empty", empty)
	}
}

// TestNamesAreLegal: a search knows what may be a topic's name.
func TestNamesAreLegal(t *testing.T) {
	tests := []struct {
		in, out string
		want    string // the shortest; "": none
	}{
		{".*", "", "a"},
		{`\.\.?`, "", ""},
		{`\.+`, "", "..."},
		{"orders; pay", "", ""},
		{"orders|a b", "", "orders"},
		{"x{250}", "", ""},
		{"x{249}", "", strings.Repeat("x", 249)},
		{"ä.*", "", ""},
		{"[^a-zA-Z0-9]", `\.|-`, "_"},
		{"pay-.*", "pay.*", ""},
		{"[ab].*", "a.*|b", "ba"},
	}
	for _, tt := range tests {
		l := language{in: []*automaton{newAutomaton(tt.in)}, out: []*automaton{newAutomaton()}}
		if tt.out != "" {
			l.out = []*automaton{newAutomaton(tt.out)}
		}
		found, sure := l.names(1)
		if got := strings.Join(found, ""); !sure || got != tt.want {
			t.Errorf("%s without %s: %q, %v, want %q", tt.in, tt.out, got, sure, tt.want)
		}
	}
}

// TestASearchEnds: one that would take too long is given up, and says so.
func TestASearchEnds(t *testing.T) {
	l := language{in: []*automaton{newAutomaton(`(a|b)*a(a|b){12}-`), newAutomaton(`(a|b)*b(a|b){12}-`)}}
	if found, sure := l.names(1); sure || found != nil {
		t.Errorf("%q, %v", found, sure)
	}
	if _, sure := (language{in: []*automaton{newAutomaton("(")}}).names(1); sure {
		t.Error("what is no expression matches nothing")
	}
}

// TestScopeOfRules: the language of a flow is what its rules match.
func TestScopeOfRules(t *testing.T) {
	policies := []map[string]string{
		nil,
		{mm2.PolicySeparatorKey: "-"},
		{mm2.PolicyKey: "identity", mm2.PolicySourceAliasKey: "a"},
		{mm2.PolicyKey: "map", mm2.PolicyMapKey: "a=b"},
	}
	parts := []string{"a", "b", ".", "-", "__", "mm2", ".internal", "-internal", ".checkpoints", "-checkpoints", "heartbeats", "x"}
	for i, settings := range policies {
		policy, err := mm2.ParsePolicy(settings)
		if err != nil {
			t.Fatal(err)
		}
		selection, err := mm2.ParseSelection([]string{".*"}, []string{"x.*"})
		if err != nil {
			t.Fatal(err)
		}
		rules := mm2.TopicRules{Selection: selection, Policy: policy, Source: "a", Target: "b", Heartbeats: true}
		c := newChecker(&javaprops.File{}, nil)
		all := c.chosen(rules)
		for _, one := range parts {
			for _, two := range parts {
				for _, three := range parts {
					name := one + two + three
					if mm2.CheckTopicName(name) != nil || rules.Exclude.Matches(name) && rules.Policy.IsHeartbeats(name) {
						continue // the one thing that lists cannot say
					}
					_, want := rules.Match(name)
					names, sure := all.and(c.only(regexp.QuoteMeta(name))).names(1)
					if got := len(names) > 0; !sure || got != want {
						t.Errorf("policy %d: %s is in it: %v, want %v", i, name, got, want)
					}
				}
			}
		}
	}
}
