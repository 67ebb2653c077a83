package javaprops_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"apograph/internal/javaprops"
)

func mustParse(t *testing.T, text string) *javaprops.File {
	t.Helper()
	f, err := javaprops.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPlaces(t *testing.T) {
	tests := []struct {
		name, text, key string
		at, valueAt     string
		bytes           map[int]string // where bytes of the value stand
	}{
		{"a key and its value", "k=ab", "k", "f:1:1", "f:1:3", map[int]string{0: "f:1:3", 1: "f:1:4", 2: "f:1:5"}},
		{"blanks in front and around", "\n  k : ab", "k", "f:2:3", "f:2:7", map[int]string{1: "f:2:8"}},
		{"a continued value", "k=a,\\\n   b", "k", "f:1:1", "f:1:3", map[int]string{1: "f:1:4", 2: "f:2:4", 3: "f:2:5"}},
		{"a value that begins on the next line", "k=\\\r\n\tv", "k", "f:1:1", "f:2:2", map[int]string{0: "f:2:2"}},
		{"an escape", `k=\u0041b\.c`, "k", "f:1:1", "f:1:3", map[int]string{0: "f:1:3", 1: "f:1:9", 2: "f:1:11", 3: "f:1:12"}},
		{"letters of UTF-8 in front", "ä=ö,x", "\u00c3\u00a4", "f:1:1", "f:1:3", map[int]string{0: "f:1:3", 2: "f:1:3", 4: "f:1:4", 5: "f:1:5"}},
		{"no value", "k=", "k", "f:1:1", "f:1:3", map[int]string{0: "f:1:3"}},
		{"no separator", "k", "k", "f:1:1", "f:1:2", map[int]string{0: "f:1:2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, ok := mustParse(t, tt.text).Get(tt.key)
			if !ok {
				t.Fatalf("no %q", tt.key)
			}
			if e.At.String() != tt.at || e.ValueAt.String() != tt.valueAt {
				t.Errorf("key at %v, value at %v, want %s, %s", e.At, e.ValueAt, tt.at, tt.valueAt)
			}
			for i, want := range tt.bytes {
				if got := e.ValuePosition(i); got.String() != want {
					t.Errorf("byte %d of %q at %v, want %s", i, e.Value, got, want)
				}
			}
		})
	}
}

func TestFactsOfEntries(t *testing.T) {
	text := "a=1 \t\n" + // 1: trailing blanks
		"b=app\\.x\\q\\t\\=\n" + // 2: dropped backslashes, a control
		"a=2\n" + // 3: a duplicate
		"c=x,\\\n  #y\n" + // 4: a comment sign in a continued line
		"d=x,\\ \n" + // 6: a backslash that does not continue
		"e=x\\\\ \n" + // 7: one that is itself escaped
		"f=träffic\n" // 8: UTF-8
	f := mustParse(t, text)
	get := func(key string) javaprops.Entry { e, _ := f.Get(key); return e }
	facts := map[string]string{
		"lines":         fmt.Sprint(f.Lines),
		"trailing":      fmt.Sprint(f.Entries[0].Trailing),
		"dropped":       fmt.Sprint(get("b").Dropped),
		"controls":      fmt.Sprint(get("b").Controls),
		"earlier":       fmt.Sprint(get("a").Earlier, f.Entries[0].Earlier.IsZero()),
		"continued":     fmt.Sprint(get("c").Continued),
		"unjoined":      fmt.Sprint(get("d").Unjoined, get("e").Unjoined.IsZero()),
		"high":          fmt.Sprint(get("f").HighAt, " ", get("f").Value, " ", get("f").Meant),
		"last wins":     f.Map()["a"],
		"those counted": fmt.Sprint(len(f.Last()), len(f.Entries)),
	}
	want := map[string]string{
		"lines":         "8",
		"trailing":      "2",
		"dropped":       "[{f:2:6 46 false 3} {f:2:9 113 false 5}]",
		"controls":      "[{f:2:11 116 false 6}]",
		"earlier":       "f:1:1 true",
		"continued":     "[f:5:3]",
		"unjoined":      "f:6:5 true",
		"high":          "f:8:5 trÃ¤ffic träffic",
		"last wins":     "2",
		"those counted": "6 7",
	}
	if !reflect.DeepEqual(facts, want) {
		t.Errorf("got  %v\nwant %v", facts, want)
	}
}

func TestByteOrderMark(t *testing.T) {
	f := mustParse(t, "\ufeffclusters=A")
	if _, ok := f.Get("clusters"); ok || !f.BOM {
		t.Errorf("BOM = %v, entries %v: Java takes the mark for the beginning of the key", f.BOM, f.Entries)
	}
}

func TestRefusedFilesNameThePlace(t *testing.T) {
	var syntax *javaprops.SyntaxError
	if _, err := javaprops.Parse("f", []byte("a=1\nb=x\\u12g4")); !errors.As(err, &syntax) || syntax.At.String() != "f:2:4" {
		t.Errorf("malformed escape: %v, want it at f:2:4", err)
	}
	if _, err := javaprops.ParseUTF8("f", []byte("a=1\r\nb=\xe4")); !errors.As(err, &syntax) || syntax.At.String() != "f:2:3" {
		t.Errorf("no UTF-8: %v, want it at f:2:3", err)
	}
}

func TestReadNamesThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.properties")
	if _, err := javaprops.Read(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("k=v"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := javaprops.Read(path)
	if err != nil || f.Map()["k"] != "v" || f.Entries[0].At.File != path {
		t.Errorf("Read = %+v, %v", f, err)
	}
}

func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "# about flow %d\nA%d->B.topics = orders-%d, payments\\\\..*, \\\n    customers-[0-9]+\nA%d.bootstrap.servers = host%d.example.com:9092\n", i, i, i, i, i)
	}
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := javaprops.Parse("f", data); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWith(t *testing.T) {
	f := mustParse(t, "a=1\nb=2\na=3\nc=4\n")
	over := javaprops.New("-X", map[string]string{"b": "5", "d": "6"})
	all := f.With(over, func(key string) bool { return key == "c" })
	want := map[string]string{"a": "3", "b": "5", "d": "6"}
	if got := all.Map(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	a, _ := all.Get("a")
	b, _ := all.Get("b")
	if a.At.Line != 3 || a.Earlier.Line != 1 || b.At.String() != "-X" || all.Name != f.Name {
		t.Errorf("a stands at %v, before at %v, b at %v, in %s", a.At, a.Earlier, b.At, all.Name)
	}
	if got := f.Map(); len(got) != 3 || got["b"] != "2" {
		t.Errorf("the file itself has changed: %v", got)
	}
}
