package connect

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestJAASGolden compares with what Kafka's JaasConfig made of the same texts;
// testdata/jaas/Golden.java wrote them down. What Kafka takes for an option
// without a name is refused here, and there.
func TestJAASGolden(t *testing.T) {
	file, err := os.Open("testdata/jaas/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	accepted, lines := 0, bufio.NewScanner(file)
	for lines.Scan() {
		var want struct {
			Text, Module string
			Options      map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		got, err := parseJAAS(want.Text)
		switch {
		case want.Module == "" && err == nil:
			t.Errorf("%q: accepted", want.Text)
			continue
		case want.Module == "":
			continue
		case err != nil:
			t.Errorf("%q: %v", want.Text, err)
			continue
		}
		accepted++
		same := got.class == want.Module && len(got.options) == len(want.Options)
		for name, value := range want.Options {
			same = same && got.option(name) == value
		}
		if !same {
			options := map[string]string{}
			for name := range got.options {
				options[name] = got.option(name)
			}
			t.Errorf("%q:\n got %s %q\nwant %s %q", want.Text, got.class, options, want.Module, want.Options)
		}
	}
	if err := lines.Err(); err != nil || accepted < 90 {
		t.Errorf("%d accepted, %v", accepted, err)
	}
}

// FuzzJAAS: whatever is wrong with a text, the error holds no piece of it.
func FuzzJAAS(f *testing.F) {
	for _, text := range []string{
		`m required username="a" password="XcanaryX";`,
		`m required username="a" password="Xcanary"X";`,
		`m required username="a" password=Xcanary X;`,
		`m required password="Xcanary`,
		`XcanaryX`, `m XcanaryX;`, `m required XcanaryX;`, `m required a=1 Xcanary`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "X", "canary")
		_, err := parseJAAS(text)
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
