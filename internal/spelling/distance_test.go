package spelling_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/internal/spelling"
)

// slowDistance is optimal string alignment by its definition: the cheapest way
// to treat the last letters, and then the rest.
func slowDistance(a, b []rune) int {
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	x, y := a[:len(a)-1], b[:len(b)-1]
	ways := []int{slowDistance(x, b) + 1, slowDistance(a, y) + 1, slowDistance(x, y) + 1}
	if a[len(x)] == b[len(y)] {
		ways = append(ways, slowDistance(x, y))
	}
	if len(x) > 0 && len(y) > 0 && a[len(x)] == b[len(y)-1] && a[len(x)-1] == b[len(y)] {
		ways = append(ways, slowDistance(x[:len(x)-1], y[:len(y)-1])+1)
	}
	return slices.Min(ways)
}

func TestDistance(t *testing.T) {
	const seed = 3
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests = 500
	t.Logf("seed %d", seed)
	word := gen.SliceOfN(5, gen.OneConstOf('a', 'b', 'c')).FlatMap(func(v any) gopter.Gen {
		return gen.IntRange(0, 5).Map(func(n int) string { return string(v.([]rune)[:n]) })
	}, nil)
	properties := gopter.NewProperties(parameters)
	properties.Property("equals the definition", prop.ForAll(
		func(a, b string) string {
			if got, want := spelling.Distance([]rune(a), []rune(b)), slowDistance([]rune(a), []rune(b)); got != want {
				return fmt.Sprintf("Distance(%q, %q) = %d, want %d", a, b, got, want)
			}
			return ""
		}, word, word))
	properties.Property("is not below what the letters say", prop.ForAll(
		func(a, b string) bool { return spelling.AtLeast(a, b) <= spelling.Distance([]byte(a), []byte(b)) }, word, word))
	properties.TestingRun(t)
	if got := spelling.AtLeast("abcd", "axy"); got != 3 {
		t.Errorf("AtLeast = %d, want 3", got)
	}
}
