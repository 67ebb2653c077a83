package fuzz

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// imports says which packages of this module each package may import: down
// only. What is not listed imports none.
var imports = map[string][]string{
	"apograph/cmd/apograph": {
		"apograph/replicate", "apograph/verify", "apograph/translate", "apograph/ledger",
		"apograph/internal/connect", "apograph/internal/groups", "apograph/internal/javaprops", "apograph/internal/kafkatest", "apograph/internal/lint", "apograph/internal/lint/probe", "apograph/internal/mirror", "apograph/internal/mm2", "apograph/internal/pace", "apograph/internal/readlog", "apograph/internal/spelling",
	},
	"apograph/replicate": {
		"apograph/internal/pace",
		"apograph/ledger", "apograph/internal/canon", "apograph/internal/connect", "apograph/internal/mirror", "apograph/internal/mm2", "apograph/internal/recordbatch",
	},
	"apograph/verify": {
		"apograph/ledger", "apograph/internal/canon", "apograph/internal/connect", "apograph/internal/mm2", "apograph/internal/pace",
	},
	"apograph/translate":           {"apograph/ledger", "apograph/internal/groups"},
	"apograph/internal/lint/probe": {"apograph/internal/connect", "apograph/internal/lint"},
	"apograph/internal/lint":       {"apograph/internal/connect", "apograph/internal/javaprops", "apograph/internal/mm2"},
	"apograph/ledger":              {"apograph/internal/canon"},
	"apograph/internal/mirror":     {"apograph/ledger", "apograph/internal/connect", "apograph/internal/groups", "apograph/internal/mm2", "apograph/internal/pace", "apograph/internal/readlog"},
	"apograph/internal/groups":     {"apograph/ledger", "apograph/internal/connect", "apograph/internal/pace"},
	"apograph/internal/readlog":    {"apograph/internal/connect", "apograph/internal/pace"},
	"apograph/internal/mm2":        {"apograph/internal/javaprops", "apograph/internal/spelling"},
	"apograph/internal/connect":    {"apograph/internal/javaprops", "apograph/internal/spelling"},
	"apograph/internal/kafkatest":  {"apograph/ledger"},
}

// outside says which packages alone may import a module, besides tests.
var outside = map[string][]string{
	"github.com/urfave/cli/v2":           {"apograph/cmd/apograph"},
	"go.etcd.io/bbolt":                   {"apograph/ledger"},
	"github.com/twmb/franz-go/pkg/kfake": {"apograph/internal/kafkatest"},
	"github.com/twmb/franz-go/pkg/kgo":   {"apograph/replicate", "apograph/verify", "apograph/internal/connect", "apograph/internal/groups", "apograph/internal/mirror", "apograph/internal/kafkatest", "apograph/internal/lint/probe", "apograph/internal/readlog"},
	"github.com/klauspost/compress/zstd": {"apograph/internal/recordbatch", "apograph/internal/kafkatest"},
	"github.com/twmb/franz-go/pkg/kmsg":  {"apograph/replicate", "apograph/verify", "apograph/internal/connect", "apograph/internal/groups", "apograph/internal/mirror", "apograph/internal/kafkatest", "apograph/internal/lint/probe", "apograph/internal/readlog"},
	"testing":                            {},
	"github.com/leanovate/gopter":        {},
}

// TestImportTable holds the packages to the table: what the binary is linked
// from, tests left out.
func TestImportTable(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "apograph/...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for _, imported := range fields[1:] {
			checkImport(t, fields[0], imported)
		}
	}
}

func checkImport(t *testing.T, from, imported string) {
	t.Helper()
	if strings.HasPrefix(from, "apograph/bench/") {
		return // programs of their own, not linked into the product
	}
	if strings.HasPrefix(imported, "apograph/bench/") {
		t.Errorf("%s imports %s, a benchmark", from, imported)
	}
	if strings.HasPrefix(imported, "apograph/") && !slices.Contains(imports[from], imported) {
		t.Errorf("%s imports %s, which the table does not allow", from, imported)
	}
	if allowed, ok := outside[imported]; ok && !slices.Contains(allowed, from) {
		t.Errorf("%s imports %s, which only %v may", from, imported, allowed)
	}
}

// TestEveryTestOnRealBrokersRuns: `make test-kafka` selects by name, and a test
// that it leaves out would pass unseen.
func TestEveryTestOnRealBrokersRuns(t *testing.T) {
	tagged := 0
	for _, pattern := range []string{"../*/*_test.go", "../*/*/*_test.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "//go:build kafka\n") {
				continue
			}
			tagged++
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "func Test") && !strings.HasPrefix(line, "func TestKafka") {
					t.Errorf("%s: %s", path, line)
				}
			}
		}
	}
	if tagged == 0 {
		t.Error("no test on real brokers was found")
	}
}
