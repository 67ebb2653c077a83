package mm2_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"apograph/internal/mm2"
)

// TestFindCuts: where a list is split inside of one expression.
func TestFindCuts(t *testing.T) {
	tests := []struct {
		list string
		want []mm2.Cut
	}{
		{"a, x{1,2}", []mm2.Cut{{4, 6, 9, "a quantifier"}}},
		{"x{1,}", []mm2.Cut{{1, 3, 5, "a quantifier"}}},
		{"a{2}, b{,3}", nil},
		{"(orders, pay)", []mm2.Cut{{0, 7, 13, "a group"}}},
		{"x, (a(b, c)d)", []mm2.Cut{{5, 7, 11, "a group"}}},
		{"(a, (b, c))", []mm2.Cut{{0, 2, 11, "a group"}, {4, 6, 10, "a group"}}},
		{"(a|b), (c)", nil},
		{"(a, b", nil}, // does not end
		{`\(a, b\)`, nil},
		{"[a,b]", []mm2.Cut{{0, 2, 5, "a class"}}},
		{"[a], [b]", nil},
		{"[],]x", []mm2.Cut{{0, 2, 4, "a class"}}},
		{`[\],]`, []mm2.Cut{{0, 3, 5, "a class"}}},
		{"[(], (b)", nil},
		{"[a, b", nil},
		{`\Qa,b\E`, []mm2.Cut{{0, 3, 7, "a quotation"}}},
		{`\Q(\E, b)`, nil},
		{`\Qa, b`, nil},
		{`(\Q)\E, b)`, []mm2.Cut{{0, 6, 10, "a group"}}},
		{`x{1,2}, y, [a,b], (\Qa,b\E, z{2,3}?)`, []mm2.Cut{{1, 3, 6, "a quantifier"}, {11, 13, 16, "a class"}, {19, 22, 26, "a quotation"}, {18, 26, 36, "a group"}, {29, 31, 34, "a quantifier"}}},
		{"", nil},
		{"a, b", nil},
	}
	for _, tt := range tests {
		cuts := mm2.FindCuts(tt.list)
		if !slices.Equal(cuts, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.list, cuts, tt.want)
		}
		if _, err := mm2.ParsePatterns([]string{tt.list}); cuts != nil && err == nil {
			t.Errorf("%s is taken", tt.list)
		}
	}
}

// TestCutListsSayWhy.
func TestCutListsSayWhy(t *testing.T) {
	for list, at := range map[string]int{"x(orders, pay)": 1, "orders{1,2}": 6, "pay, x{1,}": 1, "pay, a[b,c]": 1, `\Qa,b\E`: 0} {
		var bad *mm2.PatternError
		if _, err := mm2.ParsePatterns([]string{list}); !errors.As(err, &bad) || bad.At != at || !strings.Contains(bad.Why, "cut at its comma") {
			t.Errorf("%s: %v", list, err)
		}
	}
	_, err := mm2.ParsePolicy(map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: "x=y, (a, b)=c"})
	var bad *mm2.PolicyError
	if !errors.As(err, &bad) || bad.At != 5 || !strings.Contains(err.Error(), "a group is cut at its comma") {
		t.Errorf("%v", err)
	}
}
