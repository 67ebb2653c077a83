package mm2_test

import (
	"fmt"
	"strings"
	"testing"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// FuzzParseConfig: no file makes it panic, every problem has its place and its
// words, and a value that a secret key has is in none of them.
func FuzzParseConfig(f *testing.F) {
	f.Add(oneFlow + "A.sasl.jaas.config=canary\nA->B.topics=a,,b(\n")
	f.Add("clusters=A,B,A,,\nA -> B.enabled=true\n->.x=1\nA->=1\n.=2\n=3\nA.=4\n")
	f.Add(oneFlow + "A->B.ssl.key.password=canary${canary:canary}\nenabled=true\ntransforms=x\napograph.start.=1\n")
	f.Add(oneFlow + "B->A.enabled= true\nreplication.factor=99999999999999999999\nrefresh.topics.interval.seconds=9223372036854775807\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := javaprops.Parse("f", []byte(text))
		if err != nil {
			return
		}
		c, err := mm2.ParseConfig(file, mm2.ConfigOptions{KeepVariables: true})
		shown := fmt.Sprint(err)
		for _, p := range c.Problems() {
			shown += fmt.Sprintf("%+v\n", p)
			if p.Message == "" || p.At.Line > file.Lines || p.At.IsZero() && p.Kind != mm2.NoClusters {
				t.Errorf("problem %+v of %q", p, text)
			}
		}
		for _, flow := range c.Flows() {
			_, _ = flow.Topics()
			_, _ = flow.Start("t")
			shown += fmt.Sprint(flow.Settings(), flow.SourceClient(), flow.TargetClient())
		}
		secret := true
		for _, e := range file.Entries {
			if strings.Contains(e.Key, "canary") || strings.Contains(e.Value, "canary") && !javaprops.Secret(e.Key) {
				secret = false
			}
		}
		if secret && strings.Contains(shown, "canary") {
			t.Errorf("shown of %q: %s", text, shown)
		}
	})
}
