package mm2_test

import (
	"regexp"
	"slices"
	"testing"

	"apograph/internal/mm2"
)

func matchesWholeOf(t *testing.T, expression, name string) bool {
	t.Helper()
	re, err := regexp.Compile(`\A(?:` + expression + `)\z`)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return re.MatchString(name)
}

// TestRenames: what a rule makes is matched by the expression of what it makes, and
// what it came from is found again.
func TestRenames(t *testing.T) {
	const rules = `orders=commands, (.*)-eu=eu-$1, (?i)Pay(ment)?s?=money$1, t(a)(b)?=$2$1$2, x.*=one, v(?<n>\d+)=${n}v, w.*=$0-copy`
	p := policy(t, mm2.PolicyKey, "map", mm2.PolicyMapKey, rules)
	renames := p.Renames()
	names := []string{"orders", "pay-eu", "-eu", "payments", "PAYS", "pay", "ta", "tab", "x", "xyz", "v12", "w", "w-1", "other"}
	ones := map[string]bool{}
	for _, r := range renames {
		ones[r.Rule] = r.One
		if rules[r.At:r.At+len(r.Rule)] != r.Rule {
			t.Errorf("%s is not at %d", r.Rule, r.At)
		}
	}
	for rule, want := range map[string]bool{"orders=commands": true, "(.*)-eu=eu-$1": false, "x.*=one": true, "w.*=$0-copy": false} {
		if got, ok := ones[rule]; !ok || got != want {
			t.Errorf("%s makes one name: %v", rule, got)
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(renames, func(r mm2.Rename) bool { return matchesWholeOf(t, r.From, name) })
		made := p.Remote("S", name)
		if i < 0 {
			if made != name {
				t.Errorf("%s becomes %s by no rule", name, made)
			}
			continue
		}
		if !matchesWholeOf(t, renames[i].To, made) {
			t.Errorf("%s: %s becomes %s, which %s does not match", renames[i].Rule, name, made, renames[i].To)
		}
		if before, ok := renames[i].Before(made); !ok || !matchesWholeOf(t, before, name) && name != "tab" {
			t.Errorf("%s: %s is made of %s, %v, not of %s", renames[i].Rule, made, before, ok, name)
		}
	}
	if before, ok := renames[0].Before("other"); ok {
		t.Errorf("orders=commands makes other of %s", before)
	}
}

// TestInternalExpressions match what is internal, with every separator.
func TestInternalExpressions(t *testing.T) {
	names := []string{"__x", "_x", ".x", "x.", "mm2.internal", "mm2-offset-syncs.b.internal", "mm2-offset-syncs_b_internal", "a.checkpoints.internal", "a_checkpoints_internal", "checkpoints.internal",
		".checkpoints.internal", "x.internal", "x_internal", "mm2x", "heartbeats"}
	for _, separator := range []string{".", "_", "--", "::"} {
		p := policy(t, mm2.PolicySeparatorKey, separator)
		for _, name := range names {
			got := slices.ContainsFunc(p.InternalExpressions(), func(x string) bool { return matchesWholeOf(t, x, name) })
			if got != p.IsInternal(name) {
				t.Errorf("with %s, %s is internal: %v", separator, name, got)
			}
		}
	}
}
