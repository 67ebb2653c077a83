package mm2_test

import (
	"errors"
	"strings"
	"testing"

	"apograph/internal/mm2"
)

// TestFindCut: where a list is split inside of one expression.
func TestFindCut(t *testing.T) {
	tests := []struct {
		list, what  string
		from, comma int
	}{
		{"a, x{1,2}", "a quantifier", 4, 6},
		{"x{1,}", "a quantifier", 1, 3},
		{"a{2}, b{,3}", "", 0, 0},
		{"(orders, pay)", "a group", 0, 7},
		{"x, (a(b, c)d)", "a group", 5, 7},
		{"(a|b), (c)", "", 0, 0},
		{"(a, b", "", 0, 0}, // does not end
		{`\(a, b\)`, "", 0, 0},
		{"[a,b]", "a class", 0, 2},
		{"[a], [b]", "", 0, 0},
		{"[],]x", "a class", 0, 2},
		{`[\],]`, "a class", 0, 3},
		{"[(], (b)", "", 0, 0},
		{"[a, b", "", 0, 0},
		{`\Qa,b\E`, "a quotation", 0, 3},
		{`\Q(\E, b)`, "", 0, 0},
		{`\Qa, b`, "", 0, 0},
		{`(\Q)\E, b)`, "a group", 0, 6},
		{"", "", 0, 0},
		{"a, b", "", 0, 0},
	}
	for _, tt := range tests {
		cut, ok := mm2.FindCut(tt.list)
		if want := (mm2.Cut{From: tt.from, Comma: tt.comma, What: tt.what}); cut != want || ok != (tt.what != "") {
			t.Errorf("%s: %+v, %v, want %+v", tt.list, cut, ok, want)
		}
		if _, err := mm2.ParsePatterns([]string{tt.list}); ok && err == nil {
			t.Errorf("%s is taken", tt.list)
		}
	}
}

// TestCutListsSayWhy.
func TestCutListsSayWhy(t *testing.T) {
	for list, at := range map[string]int{"x(orders, pay)": 1, "pay, a[b,c]": 1, `\Qa,b\E`: 0} {
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
