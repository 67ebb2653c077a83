package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

// A shuffledLine is a command line in a random order, and what it means.
type shuffledLine struct {
	argv []string
	want string // as echo writes it
}

// newShuffledLine makes up flags and arguments for the echo command and mixes
// them: words keep their order, as do the values of one flag, and each flag
// stays together with its value. All else is up to chance, the spelling too.
func newShuffledLine(seed uint64) shuffledLine {
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }

	words, args := []string{"group", "echo"}, []string{}
	for range random.IntN(5) {
		args = append(args, pick("a", "-", "-5", "name", "echo", "x=y", "", "orders:0:1"))
	}
	words = append(words, args...)

	var units [][]string // flags in order, each with its value
	name, items, wait, execute := "", []string{}, "0s", false
	if random.IntN(2) == 0 {
		name = pick("n", "-", "-3", "a b", "v=w")
		units = append(units, pickUnit(random, []string{"--name", name}, []string{"--name=" + name},
			[]string{"-n", name}, []string{"-n=" + name}))
	}
	if random.IntN(2) == 0 {
		wait = "1m0s"
		units = append(units, pickUnit(random, []string{"--wait", "60s"}, []string{"--wait=1m"}))
	}
	if random.IntN(2) == 0 {
		execute = true
		units = append(units, pickUnit(random, []string{"--execute"}, []string{"-x"}, []string{"--execute=true"}))
	}
	random.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
	for range random.IntN(4) {
		item := pick("a,b", "x{1,2}", "-", "c")
		items = append(items, item)
		units = append(units, pickUnit(random, []string{"--item", item}, []string{"--item=" + item}))
	}

	var argv []string
	for len(words)+len(units) > 0 {
		if len(units) == 0 && random.IntN(4) == 0 {
			argv = append(append(argv, "--"), words...)
			break
		}
		if random.IntN(len(words)+len(units)) < len(words) {
			argv, words = append(argv, words[0]), words[1:]
		} else {
			argv, units = append(argv, units[0]...), units[1:]
		}
	}
	return shuffledLine{argv: argv, want: fmt.Sprintf("args=%q name=%q items=%q wait=%v execute=%t\n",
		args, name, items, wait, execute)}
}

func pickUnit(random *rand.Rand, from ...[]string) []string { return from[random.IntN(len(from))] }

// TestOrderOfFlagsMeansNothing: wherever flags stand, the command gets the same.
func TestOrderOfFlagsMeansNothing(t *testing.T) {
	const seed = 1
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests = 1000
	t.Logf("seed %d", seed)
	properties := gopter.NewProperties(parameters)
	properties.Property("any order is understood alike", prop.ForAll(
		func(seed uint64) string {
			line := newShuffledLine(seed)
			code, stdout, stderr := runTest(t.Context(), nil, line.argv...)
			if code != exitOK || stdout != line.want || stderr != "" {
				return fmt.Sprintf("%q: exit %d, stderr %q, got\n%swant\n%s", line.argv, code, stderr, stdout, line.want)
			}
			return ""
		},
		gen.UInt64(),
	))
	properties.TestingRun(t)
}

// TestAnythingIsUnderstoodOrRefused: no command line makes the frame crash,
// hang, or write to standard output although it exits with 2.
func TestAnythingIsUnderstoodOrRefused(t *testing.T) {
	const seed = 2
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests = 1500
	t.Logf("seed %d", seed)
	word := gen.OneConstOf("group", "echo", "end", "help", "save", "--", "-", "--name", "--name=", "-n", "-nx", "-n=",
		"-x", "--execute", "--execute=", "--item", "--wait", "-o", "--output=json", "-h", "--help", "--version", "-1",
		"", "--=", "---", "-=", "=", "\u2212n", "\x1b", "\xff", "--\xff", "-\u00e9")
	properties := gopter.NewProperties(parameters)
	properties.Property("exit 0 and no message, or exit 2 and no answer", prop.ForAll(
		func(argv []string) string {
			code, stdout, stderr := runTest(t.Context(), echo, argv...)
			switch {
			case code == exitOK && stderr == "":
			case code == exitUsage && stdout == "" && strings.HasPrefix(stderr, "apograph: ") &&
				!strings.Contains(stderr, "internal error") && strings.Count(stderr, "\n") <= 2:
			default:
				return fmt.Sprintf("%q: exit %d, stdout %q, stderr %q", argv, code, stdout, stderr)
			}
			return ""
		},
		gen.SliceOf(word),
	))
	properties.TestingRun(t)
}
