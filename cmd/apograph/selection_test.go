package main

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestSelection(t *testing.T) {
	topics := []string{"orders", "orders-eu", "app.orders", "app-orders", "pay1", "pay22", "x,y"}
	tests := []struct {
		name string
		argv []string
		want []string
	}{
		{"no flag", nil, topics},
		{"an empty list matches as no flag", []string{"--topics", " , "}, topics},
		{"whole names", []string{"--topics", "orders"}, []string{"orders"}},
		{"an alternative is one expression", []string{"--topics", "orders|pay1"}, []string{"orders", "pay1"}},
		{"a list", []string{"--topics", "orders, pay.*"}, []string{"orders", "pay1", "pay22"}},
		{"a repeated flag", []string{"--topics", "orders", "--topics", "pay1"}, []string{"orders", "pay1"}},
		{"a dot is any character", []string{"--topics", "app.orders"}, []string{"app.orders", "app-orders"}},
		{"a dot that is one", []string{"--topics", `app\.orders`}, []string{"app.orders"}},
		{"exclusion wins", []string{"--topics", ".*orders.*", "--topics-exclude", "app.*,orders-.*"}, []string{"orders"}},
		{"exclusion alone", []string{"--topics-exclude", "[ao].*"}, []string{"pay1", "pay22", "x,y"}},
		{"nothing left", []string{"--topics", "zz"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := selectTopics(t, topics, tt.argv)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%q chooses %q (%v), want %q", tt.argv, got, err, tt.want)
			}
		})
	}
	for _, argv := range [][]string{{"--topics", "ok,*"}, {"--topics-exclude", "a(?=b)"}} {
		_, err := selectTopics(t, topics, argv)
		var usage *usageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: error %v, want a usage error", argv, err)
		}
	}
}

// selectTopics returns the topics that the flags in argv choose.
func selectTopics(t *testing.T, topics, argv []string) (chosen []string, err error) {
	t.Helper()
	table := commandTable{{path: "select", flags: selectionFlags(), run: func(_ context.Context, inv *invocation) error {
		s, selectionErr := newSelection(inv)
		for _, topic := range topics {
			if selectionErr == nil && s.has(topic) {
				chosen = append(chosen, topic)
			}
		}
		err = selectionErr
		return nil
	}}}
	f := newFrame(table, nil, &lockedBuffer{}, &lockedBuffer{})
	if code := f.run(t.Context(), append([]string{"apograph", "select"}, argv...)); code != exitOK {
		t.Fatalf("%q: exit %d", argv, code)
	}
	return chosen, err
}
