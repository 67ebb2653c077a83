package mm2_test

import (
	"errors"
	"testing"

	"apograph/internal/mm2"
)

// TestPatternsThatCannotBeTakenOver: each is named with the piece at fault and
// its place, whether RE2 refuses it or takes it for something else.
func TestPatternsThatCannotBeTakenOver(t *testing.T) {
	tests := []struct {
		element string
		at      int
		piece   string
	}{
		{`orders(?!-test)`, 6, `(?!`},
		{`a(?=b).*`, 1, `(?=`},
		{`(?<=a)b`, 0, `(?<=`},
		{`(?<!a)b`, 0, `(?<!`},
		{`(?>a*)b`, 0, `(?>`},
		{`(?P<n>a)`, 0, `(?P`},
		{`(a)b\1`, 4, `\1`},
		{`(a)\12`, 3, `\1`}, // RE2: a character by its code
		{`(?<n>a)b\k<n>`, 8, `\k<n>`},
		{`a*+b`, 1, `*+`},
		{`a++`, 1, `++`},
		{`a?+`, 1, `?+`},
		{`ab{2}+`, 2, `{2}+`},
		{`a{1,2`, 1, `{1,2`},
		{`a{x}`, 1, `{x}`},
		{`[a-z&&[^b]]`, 4, `&&`},
		{`[]&&a]`, 2, `&&`},
		{`[a[bc]]`, 2, `[bc]`},
		{`[[:alpha:]]x`, 1, `[:alpha:]`},
		{`x\p{javaLowerCase}`, 1, `\p{javaLowerCase}`},
		{`\p{Alnum}+`, 0, `\p{Alnum}`},
		{`[\p{Alpha}_]`, 1, `\p{Alpha}`},
		{`a\h`, 1, `\h`}, {`a\R`, 1, `\R`}, {`a\X`, 1, `\X`}, {`\Ga`, 0, `\G`}, {`a\Z`, 1, `\Z`}, {`\u0061`, 0, `\u`},
		{`(?x)a b`, 0, `(?x)`},
		{`(?u:a)`, 0, `(?u:`},
		{`a)|(b`, 0, `a)|(b`},
		{`*`, 0, `*`},
		{`a(b`, 0, `a(b`},
		{`x[b-a]`, 2, `b-a`},
		{`ä(?!b)`, 2, `(?!`},
	}
	for _, tt := range tests {
		var bad *mm2.PatternError
		if err := mm2.CheckPattern(tt.element); !errors.As(err, &bad) || bad.At != tt.at || bad.Piece != tt.piece || bad.Element != tt.element {
			t.Errorf("%s: %v, %+v, want %q at %d", tt.element, err, bad, tt.piece, tt.at)
		}
		if _, err := mm2.ParsePatterns([]string{tt.element + "2"}); err == nil && tt.element != `a{1,2` {
			t.Errorf("%s2 is taken", tt.element)
		}
	}
	if _, err := mm2.ParsePatterns([]string{"ä(?!b)"}); err == nil || err.Error() != `"ä(?!b)" cannot be used: "(?!" at character 2 is a negative look-ahead, which cannot be taken over; use the list of what is excluded` {
		t.Errorf("error %v", err)
	}
}

// TestPatternsThatAreTakenOver mean the same in both languages.
func TestPatternsThatAreTakenOver(t *testing.T) {
	tests := []struct {
		list, name string
		want       bool
	}{
		{`\Qa.b\E.*`, "a.bc", true},
		{`\Qa.b\E`, "axb", false},
		{`\Q(?!\E`, "(?!", true},
		{`[a.]b`, ".b", true},
		{`[]a]b`, "]b", true},
		{`[^]a]b`, "ab", false},
		{`[\[&]+`, "[&", true},
		{`a{2}b{1}`, "aab", true},
		{`a+?b*?`, "aabb", true},
		{`(?<n>a)b`, "ab", true},
		{`(?i)ORDERS`, "orders", true},
		{`(?i)ORDERS, PAY`, "pay", true}, // joined to one expression, the flag holds on
		{`(?i:ORDERS), PAY`, "pay", false},
		{`(a|(?i)B), C`, "c", false},
		{`\p{Lu}\pL`, "Ab", true},
		{`a\.b`, "aXb", false},
		{`\x{61}`, "a", true},
		{`\d+\w`, "12a", true},
		{`a\_b\-c`, "a_b-c", true},
	}
	for _, tt := range tests {
		p, err := mm2.ParsePatterns([]string{tt.list})
		if err != nil {
			t.Errorf("%s: %v", tt.list, err)
			continue
		}
		if got := p.Matches(tt.name); got != tt.want {
			t.Errorf("%s matches %s: %t", tt.list, tt.name, got)
		}
	}
}

// TestAQuotationTakesTheRestOfTheList in MirrorMaker 2, which joins the elements.
func TestAQuotationTakesTheRestOfTheList(t *testing.T) {
	var bad *mm2.PatternError
	if _, err := mm2.ParsePatterns([]string{`a\Qb,c`}); !errors.As(err, &bad) || bad.Piece != `\Qb` || bad.At != 1 {
		t.Errorf("%v", err)
	}
}

// TestHints say what was meant.
func TestHints(t *testing.T) {
	for list, want := range map[string]string{
		"a{1,2}": "write a{1,2} as aa?", "a{2}+": "write {2} without the + behind it", "a*+": "write * without the + behind it", "*.x": "patterns are regular expressions: .*.x", "(": "",
	} {
		var bad *mm2.PatternError
		if _, err := mm2.ParsePatterns([]string{list}); !errors.As(err, &bad) || bad.Hint() != want {
			t.Errorf("%s: %v, hint %q", list, err, bad.Hint())
		}
	}
}

// TestDots: which names match through a dot that may have been meant literally.
func TestDots(t *testing.T) {
	tests := []struct {
		list, name   string
		match, stray bool
	}{
		{"app.orders", "app.orders", true, false},
		{"app.orders", "app-orders", true, true},
		{"app.orders", "appXorders", true, true},
		{`app\.orders`, "app-orders", false, false},
		{"app.*", "app-orders", true, false},
		{"app.+", "app-orders", true, false},
		{"a.b,a-b", "a-b", true, false}, // the other one means it
		{"a[.]b", "a.b", true, false},
		{`\Qa.b\E.c`, "a.bXc", true, true},
		{"(a.b|c)x", "a-bx", true, true},
		{"(?i)A.B", "a-b", true, true},
		{"other", "app", false, false},
	}
	for _, tt := range tests {
		s, err := mm2.ParseSelection([]string{tt.list}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := s.Match(tt.name); got != tt.match || s.Include.ThroughDot(tt.name) != tt.stray {
			t.Errorf("%s and %s: matches %t, through a dot %t", tt.list, tt.name, got, s.Include.ThroughDot(tt.name))
		}
	}
	s, err := mm2.ParseSelection([]string{"app.orders"}, []string{"x.y"})
	if err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string]string{
		"app.orders": "matched by app.orders", "appXorders": "matched by app.orders, through a dot that stands for any character",
		"x-y": "excluded by x.y, through a dot that stands for any character",
	} {
		if got, _ := s.Explain(topic); got != want {
			t.Errorf("%s is %q, want %q", topic, got, want)
		}
	}
	if got := mm2.BareDots(`a.b\.c.*[.]\Q.\E.`); len(got) != 2 || got[0] != 1 || got[1] != 16 {
		t.Errorf("bare dots at %v", got)
	}
}

// TestSplitList: where the elements stand.
func TestSplitList(t *testing.T) {
	want := []mm2.ListElement{{"a", 1}, {"", 4}, {"b c", 6}}
	got := mm2.SplitList(" a ,, b c\t")
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if want[i].Text != "" && got[i] != want[i] || got[i].Text != want[i].Text {
			t.Errorf("element %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
