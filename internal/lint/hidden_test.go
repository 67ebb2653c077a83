package lint_test

import (
	"encoding/json"
	"strings"
	"testing"

	"apograph/internal/lint"
	"apograph/internal/mm2"
)

// provided returns a file with the value of its n-th line taken out: it comes from
// a config provider, which changes it a little. fine is false if there is no such
// line.
func provided(lines string, n int, change func(string) string) (text string, options mm2.ConfigOptions, fine bool) {
	all := strings.Split(lines, "\n")
	if n >= len(all) {
		return "", options, false
	}
	key, value, ok := strings.Cut(all[n], " = ")
	if !ok || strings.HasPrefix(key, "config.providers") || strings.HasPrefix(key, "#") {
		return "", options, false
	}
	all[n] = key + " = ${env:VALUE}"
	text = whole(strings.Join(all, "\n")) + "config.providers = env\nconfig.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
	return text, mm2.ConfigOptions{LookupEnv: func(name string) (string, bool) { return change(strings.TrimSpace(value)), name == "VALUE" }}, true
}

// TestWhatProvidersGiveIsNotShown: of no finding, whatever is wrong with the value
// or with what depends on it, and of no explanation.
func TestWhatProvidersGiveIsNotShown(t *testing.T) {
	const canary = "c4n4ry"
	changes := map[string]func(string) string{
		"in front":   func(v string) string { return canary + v },
		"behind":     func(v string) string { return v + canary },
		"a last one": func(v string) string { return v + ", *" + canary },
		"alone":      func(string) string { return canary },
	}
	found := map[string]bool{}
	for _, c := range lint.Codes() {
		for _, example := range []string{c.Example, c.Better} {
			for name, change := range changes {
				for n := 0; ; n++ {
					text, options, fine := provided(example, n, change)
					if n > strings.Count(example, "\n") {
						break
					}
					if !fine {
						continue
					}
					r := lint.Check("f", []byte(text), options)
					explained, _ := r.Explain(canary + "-orders")
					for i := range explained {
						explained[i].Topic = ""
						explained[i].TargetTopic = strings.ReplaceAll(explained[i].TargetTopic, canary+"-orders", "")
						explained[i].Source, explained[i].Target = "", "" // aliases are what it is asked for
					}
					r.CheckClusters(facts())
					shown, err := json.Marshal([]any{r.Findings, explained})
					if err != nil {
						t.Fatal(err)
					}
					if strings.Contains(strings.ToLower(string(shown)), canary) {
						t.Errorf("%s, %s: shown of line %d of\n%s\n%s", c.ID, name, n, text, shown)
					}
					for _, f := range r.Findings {
						found[f.Code] = true
					}
				}
			}
		}
	}
	for _, code := range []string{"AP0301", "AP0310", "AP0312", "AP0325", "AP0505", "AP0601", "AP0411"} {
		if !found[code] {
			t.Errorf("%s was never found", code)
		}
	}
}

// TestAProvidersValueIsLookedAt: a finding about it says what is wrong, and where.
func TestAProvidersValueIsLookedAt(t *testing.T) {
	text, options, _ := provided("topics = *orders", 0, func(v string) string { return v })
	found := of(lint.Check("f", []byte(text), options), "AP0310")
	if len(found) != 1 || found[0].Line != 5 || found[0].Key != "topics" || found[0].Message != "an invalid pattern; what it is about came from a config provider, and is not shown" || found[0].Suggestion != "" {
		t.Errorf("%+v", found)
	}
}
