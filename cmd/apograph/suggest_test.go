package main

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"export", "inspect", "check", "snapshot", "o", "once"}
	for name, want := range map[string]string{
		"exprot": "export", "inspct": "inspect", "Check": "check", "chek": "check",
		"snpashott": "snapshot", "onec": "once",
		"p": "o", "": "o", // one edit away
		"import-all": "", "xxxxx": "",
	} {
		got, ok := nearest(name, names)
		if got != want && ok || ok != (want != "") {
			t.Errorf("nearest(%q) = %q, %t, want %q", name, got, ok, want)
		}
	}
	if _, ok := nearest("x", nil); ok {
		t.Error("nearest found one of none")
	}
}

func TestOrList(t *testing.T) {
	for want, words := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := orList(words); got != want {
			t.Errorf("orList(%q) = %q, want %q", words, got, want)
		}
	}
}
