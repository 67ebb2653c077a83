package replicate

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

// change spoils the first record of the target that the source still has, or a
// later one. One of the same producer follows that both have: without it, what
// was written last may be what the source has lost. It returns false if there is
// none.
func (m *modelCopy) change(first bool) bool {
	var at []int
	last := map[producerKey]int{}
	for i, t := range m.target {
		if int64(i) >= m.targetStart && !t.gone && !t.second && t.origin >= 0 && m.present(t.origin) {
			at, last[t.producer] = append(at, i), i
		}
	}
	at = slices.DeleteFunc(at, func(i int) bool { return last[m.target[i].producer] == i })
	if len(at) == 0 {
		return false
	}
	i := at[0]
	if !first {
		i = at[m.r.IntN(len(at))]
	}
	m.target[i].hash = m.r.Uint64()
	return true
}

// TestAttachNeverHidesAChange: a record that differs from the one that the
// source still has is refused, whatever else has happened to either side.
func TestAttachNeverHidesAChange(t *testing.T) {
	const seed = 20261130
	t.Logf("seed %d", seed)
	for _, c := range modelCases() {
		if c.thin {
			continue // what is gone from the target leaves more than one explanation
		}
		t.Run(c.name, func(t *testing.T) {
			parameters := gopter.DefaultTestParametersWithSeed(seed)
			parameters.MinSuccessfulTests = 300
			properties := gopter.NewProperties(parameters)
			properties.Property("refused", prop.ForAll(func(seed uint64, first bool) (string, error) {
				m := c.play(seed, 0)
				if !m.change(first) {
					return "", nil
				}
				b, at, err := m.attach()
				if err == nil {
					return "", fmt.Errorf("attached; the books: %v, from %+v", m.agrees(b, at), at)
				}
				var refusal *alignError
				if errors.As(err, &refusal) || errors.Is(err, errNothingMatches) {
					err = nil
				}
				return "", err
			}, gen.UInt64(), gen.Bool()))
			properties.TestingRun(t)
		})
	}
}
