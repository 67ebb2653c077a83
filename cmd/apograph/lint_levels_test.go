package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/internal/lint"
	"apograph/internal/mm2"
)

// A levelsCase is the clusters that the examples of docs/lint.md speak of. All of
// them have an empty topic, orders, and one that every flow copies, so that there is
// always something to do.
type levelsCase struct {
	t       *testing.T
	servers map[string]string
}

func newLevelsCase(t *testing.T) *levelsCase {
	c := &levelsCase{t, map[string]string{}}
	for _, name := range []string{"a", "b", "c", "d"} {
		cluster := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Name: name})
		for _, topic := range []string{"orders", "heartbeats"} {
			if err := cluster.CreateTopic(t.Context(), topic, 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		c.servers[name] = cluster.Server()
	}
	return c
}

var exampleServer = regexp.MustCompile(`\b([abcd]):9092\b`)

// file returns what an example stands for, with clusters and a directory that there
// are.
func (c *levelsCase) file(lines, dir string) string {
	if !strings.Contains(lines, "clusters =") && !strings.Contains(lines, "\na->b.enabled = true") {
		lines = "clusters = a, b\na.bootstrap.servers = a:9092\nb.bootstrap.servers = b:9092\na->b.enabled = true\n" + lines
	}
	lines = strings.ReplaceAll(lines, "/var/lib/apograph", dir)
	if !strings.Contains(lines, "apograph.ledger") {
		lines += "\napograph.ledger.dir = " + dir
	}
	return exampleServer.ReplaceAllStringFunc(lines, func(s string) string { return c.servers[s[:1]] }) + "\n"
}

// TestLevelsAreWhatARunDoes: lint tells of an error where a run is refused, with exit
// code 2 and nothing written, and nowhere else. Files that log in are not run where
// they are taken: the clusters have no login.
func TestLevelsAreWhatARunDoes(t *testing.T) {
	refused := 0
	for _, code := range lint.Codes() {
		for _, lines := range []string{code.Example, code.Better} {
			if lines == "" {
				continue
			}
			t.Run(code.ID, func(t *testing.T) {
				if newLevelsCase(t).hold(code.ID, lines) {
					refused++
				}
			})
		}
	}
	if refused < 20 {
		t.Errorf("only %d files are refused", refused)
	}
}

// hold runs an example, and reports whether it is refused.
func (c *levelsCase) hold(code, lines string) bool {
	dir := c.t.TempDir()
	text, path := c.file(lines, dir), filepath.Join(dir, "mm2.properties")
	mustWrite(c.t, path, []byte(text))
	found := lint.Check(path, []byte(text), mm2.ConfigOptions{}).Findings
	wrong := lint.Count(found).Errors > 0
	if !wrong && (strings.Contains(lines, "security.protocol") || code == "AP0503") {
		return false // whether two clusters have topics of one name, only they know: AP0709
	}
	exit, _, stderr := mustRun(c.t, "replicate", "--once", "--config", path)
	if (exit == int(exitUsage)) != wrong {
		c.t.Errorf("exit code %d, with\n%s%s%v", exit, text, stderr, found)
	}
	c.ledgers(code, dir, wrong)
	return wrong
}

// ledgers checks the ledgers that a run has made; it must not have made one if it
// was refused.
func (c *levelsCase) ledgers(what, dir string, refused bool) {
	c.t.Helper()
	made, err := filepath.Glob(filepath.Join(dir, "*.ledger*"))
	if err != nil || refused && len(made) > 0 {
		c.t.Errorf("%s: %v, %v were made", what, err, made)
	}
	for _, path := range made {
		if exit, out, errs := mustRun(c.t, "ledger", "check", path); exit != 0 {
			c.t.Errorf("%s: ledger check exits with %d: %s%s", what, exit, out, errs)
		}
	}
}

// TestWhatClustersSayIsAnError where a run comes to no good end either.
func TestWhatClustersSayIsAnError(t *testing.T) {
	c := newLevelsCase(t)
	const two = "clusters = a, b\na.bootstrap.servers = a:9092\nb.bootstrap.servers = %s\na->b.enabled = true\n"
	for code, lines := range map[string]string{
		"AP0701": fmt.Sprintf(two, "127.0.0.1:1"),
		"AP0706": fmt.Sprintf(two, "localhost:"+c.servers["a"][strings.LastIndexByte(c.servers["a"], ':')+1:]),
		"AP0709": "clusters = a, b, c\na.bootstrap.servers = a:9092\nb.bootstrap.servers = b:9092\nc.bootstrap.servers = c:9092\na->c.enabled = true\nb->c.enabled = true\napograph.policy = map\napograph.policy.map = orders=all",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "mm2.properties")
		mustWrite(t, path, []byte(c.file(lines, dir)))
		_, out, _ := mustRun(t, "lint", path, "--connect")
		if !strings.Contains(out, "error "+code) {
			t.Errorf("%s is not found: %s", code, out)
		}
		if exit, _, stderr := mustRun(t, "replicate", "--once", "--config", path); exit == 0 {
			t.Errorf("%s: a run is content: %s", code, stderr)
		}
		c.ledgers(code, dir, false)
	}
}
