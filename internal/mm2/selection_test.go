package mm2_test

import (
	"errors"
	"testing"

	"apograph/internal/mm2"
)

func TestSelection(t *testing.T) {
	tests := []struct {
		name             string
		include, exclude []string
		topic            string
		want             bool
	}{
		{"whole name", []string{"orders"}, nil, "orders", true},
		{"not a part of it", []string{"orders"}, nil, "orders-eu", false},
		{"a list in one string", []string{"a , b"}, nil, "b", true},
		{"several strings", []string{"a", "b"}, nil, "b", true},
		{"alternatives stay together", []string{"a|b"}, nil, "bc", false},
		{"the longest alternative counts", []string{"a|ab"}, nil, "ab", true},
		{"a reluctant star goes as far as it must", []string{"a.*?"}, nil, "abc", true},
		{"a quotation without an end", []string{`\Qa.b`}, nil, "a.b", true},
		{"an anchor in the middle", []string{"a$|^b"}, nil, "ab", false},
		{"a dot means any character", []string{"app.orders"}, nil, "appXorders", true},
		{"an escaped dot does not", []string{`app\.orders`}, nil, "appXorders", false},
		{"star after a letter", []string{"X_Y_*"}, nil, "X_Y_A", false},
		{"exclusion wins", []string{".*"}, []string{"secret.*"}, "secrets", false},
		{"an empty list matches nothing", []string{""}, nil, "a", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := mm2.ParseSelection(tt.include, tt.exclude)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := s.Match(tt.topic); got != tt.want {
				t.Errorf("Match(%q) = %v, want %v", tt.topic, got, tt.want)
			}
		})
	}
}

func TestSelectionNamesTheBrokenElement(t *testing.T) {
	_, err := mm2.ParseSelection([]string{"a,*"}, nil)
	var bad *mm2.PatternError
	if !errors.As(err, &bad) || bad.Element != "*" || bad.Hint() != "patterns are regular expressions: .*" {
		t.Errorf("error %v, want a PatternError for *", err)
	}
}

// TestNoExpressionByItself: what only becomes an expression with something around
// it is none.
func TestNoExpressionByItself(t *testing.T) {
	for _, element := range []string{"a)|(b", "a)(b", ")", "(", "a)|(?:b"} {
		if p, err := mm2.ParsePatterns([]string{element}); err == nil {
			t.Errorf("%q is taken for an expression, which matches %q: %v", element, "axyz", p.Matches("axyz"))
		}
	}
}

func TestIsInternal(t *testing.T) {
	for topic, want := range map[string]bool{
		"mm2-x.internal": true, "A.checkpoints.internal": true, ".ads": true, "__x": true,
		"orders.internal": false, "orders-internal": false, "orders": false, "checkpoints.internal": false,
	} {
		if got := mm2.IsInternal(topic); got != want {
			t.Errorf("IsInternal(%q) = %v, want %v", topic, got, want)
		}
	}
}
