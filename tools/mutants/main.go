// Command mutants checks the tests: it puts one deliberate bug after the other
// into a copy of the source, and runs the tests that have to notice it. It ends
// with 1 if a bug goes unnoticed, does not compile, or has no place in the source
// any more.
//
//	cd tools && go run ./mutants [-j 2] [-run REGEXP] [-n] [-v] [DIRECTORY]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// A mutant is one deliberate bug.
type mutant struct {
	name string // what it stands for
	file string
	old  string // is exactly once in the file
	new  string
	test string // arguments of go test for the tests that must fail
}

// A verdict says what became of a mutant.
type verdict struct {
	killed bool
	told   string // one line
	took   time.Duration
}

// testLimit bounds the tests of one mutant. A mutant that makes them hang is
// killed.
const testLimit = 4 * time.Minute

func main() {
	workers := flag.Int("j", 2, "how many mutants are tested at once")
	only := flag.String("run", "", "only mutants whose name matches")
	verbose := flag.Bool("v", false, "show what the tests said")
	dry := flag.Bool("n", false, "only look whether each mutant has its place in the source")
	flag.Parse()
	root := ".."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	if err := run(root, *workers, *only, *verbose, *dry); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(root string, workers int, only string, verbose, dry bool) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var chosen []mutant
	for _, m := range mutants() {
		if match.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if dry {
		return places(root, chosen)
	}
	dir, err := os.MkdirTemp("", "mutants-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	verdicts, err := testAll(root, dir, chosen, workers, verbose)
	if err != nil {
		return err
	}
	return report(chosen, verdicts)
}

// places returns an error for each mutant that has no place in the source.
func places(root string, chosen []mutant) error {
	var errs []error
	for _, m := range chosen {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
		if n := strings.Count(string(source), m.old); err == nil && n != 1 {
			err = fmt.Errorf("%s: its text is %d times in %s", m.name, n, m.file)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// testAll has each worker test mutants in a copy of its own.
func testAll(root, dir string, chosen []mutant, workers int, verbose bool) ([]verdict, error) {
	verdicts := make([]verdict, len(chosen))
	next := make(chan int)
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		copied := filepath.Join(dir, fmt.Sprint(w))
		if err := copyTree(root, copied); err != nil {
			return nil, err
		}
		group.Go(func() {
			for i := range next {
				if errs[w] == nil {
					verdicts[i], errs[w] = chosen[i].try(copied, verbose)
					fmt.Fprintf(os.Stderr, "%d of %d: %s: %s\n", i+1, len(chosen), chosen[i].name, verdicts[i].told)
				}
			}
		})
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	group.Wait()
	return verdicts, errors.Join(errs...)
}

// copyTree copies what go builds from, and what tests read.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".git" || name == "bin" || name == "tools"):
			return filepath.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !e.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, info.Mode().Perm())
	})
}

// try puts the mutant into a copy of the tree, tests it, and takes it out again.
func (m mutant) try(dir string, verbose bool) (v verdict, err error) {
	path := filepath.Join(dir, filepath.FromSlash(m.file))
	source, err := os.ReadFile(path)
	if err != nil {
		return verdict{}, err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return verdict{told: fmt.Sprintf("its text is %d times in %s", n, m.file)}, nil
	}
	mutated := strings.Replace(string(source), m.old, m.new, 1)
	if err := os.WriteFile(path, []byte(mutated), 0o644); err != nil {
		return verdict{}, err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, source, 0o644)) }()
	began := time.Now()
	v = m.judge(dir, verbose)
	v.took = time.Since(began)
	return v, nil
}

// judge compiles the tests and runs them.
func (m mutant) judge(dir string, verbose bool) verdict {
	args := strings.Fields(m.test)
	if out, err := goTest(dir, testLimit, append([]string{"-run", "^$", "-vet=off"}, args[:1]...)); err != nil {
		return verdict{told: "does not compile: " + lastLine(out)}
	}
	out, err := goTest(dir, testLimit, append([]string{"-count=1", "-failfast", "-vet=off", "-timeout=100s"}, args...))
	if verbose {
		fmt.Fprintf(os.Stderr, "== %s\n%s\n", m.name, out)
	}
	switch {
	case err == nil:
		return verdict{told: "SURVIVED " + m.test}
	case errors.Is(err, context.DeadlineExceeded):
		return verdict{killed: true, told: "the tests hang"}
	}
	return verdict{killed: true, told: failures(out)}
}

func goTest(dir string, limit time.Duration, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test"}, args...)...)
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, err
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failures names the tests that failed.
func failures(out []byte) string {
	var names []string
	for _, match := range failed.FindAllSubmatch(out, 3) {
		names = append(names, string(match[1]))
	}
	if names == nil {
		return lastLine(out)
	}
	return strings.Join(names, ", ")
}

func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(lines[len(lines)-1])
}

// report prints the table, and returns an error unless all are killed.
func report(chosen []mutant, verdicts []verdict) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	alive := 0
	for i, m := range chosen {
		state := "killed"
		if !verdicts[i].killed {
			state = "ALIVE"
			alive++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.0fs\t%s\n", state, m.name, m.file, verdicts[i].took.Seconds(), verdicts[i].told)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if alive > 0 {
		return fmt.Errorf("%d of %d are alive", alive, len(chosen))
	}
	fmt.Printf("all %d killed\n", len(chosen))
	return nil
}
