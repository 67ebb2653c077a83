package mirror_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/internal/kafkatest"
)

// exactOffset is what a group at an offset of the source has on the target, found
// the slow way: where the first record stands there that the group has yet to
// read. Records are known by their values.
func exactOffset(source, target []kafkatest.Record, offset int64) int64 {
	at := make(map[string]int64)
	end := int64(0)
	for _, r := range target {
		at[string(r.Value)] = r.Offset
		end = r.Offset + 1
	}
	for _, r := range source {
		if there, ok := at[string(r.Value)]; ok && r.Offset >= offset {
			return there
		}
	}
	return end
}

// TestCheckpointsAreExact: over random logs with transactions, of which the end is
// not copied, a group at every offset gets the very record that it is to read
// next, from checkpoints and on the target alike.
func TestCheckpointsAreExact(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(8)
	parameters.MinSuccessfulTests = 6
	properties := gopter.NewProperties(parameters)
	properties.Property("as the slow way says", prop.ForAll(func(seed uint64) string {
		return checkExact(t, seed)
	}, gen.UInt64()))
	properties.TestingRun(t)
}

// checkExact returns what is wrong with the log of a seed; "" if nothing.
func checkExact(t *testing.T, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 8))
	w := newGroupWorld(t, kafkatest.Options{})
	next := 0
	grow := func(steps int) {
		for range steps {
			records := w.records("orders", 0, 1+random.IntN(5))
			for _, r := range records {
				r.Value = fmt.Appendf(nil, "%d", next)
				next++
			}
			var err error
			switch random.IntN(4) {
			case 0:
				err = w.pair.Source.AppendTransaction(t.Context(), "tx", false, records...)
			case 1:
				err = w.pair.Source.AppendTransaction(t.Context(), "tx", true, records...)
			default:
				err = w.pair.Source.Append(t.Context(), kafkatest.None, records...)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	grow(3 + random.IntN(15))
	w.copy()
	grow(random.IntN(4))
	bounds, err := w.pair.Source.ReadBounds(t.Context(), "orders", 0)
	if err != nil {
		t.Fatal(err)
	}
	for offset := range bounds.HighWatermark + 1 {
		commitFor(t, w.pair.Source.Bootstrap, fmt.Sprint(offset), "orders", 0, offset, "")
	}
	w.round()
	defer w.stop()
	source, sourceErr := w.pair.Source.ReadCommitted(t.Context(), "orders", 0)
	target, targetErr := w.pair.Target.ReadCommitted(t.Context(), "orders", 0)
	if sourceErr != nil || targetErr != nil {
		t.Fatal(sourceErr, targetErr)
	}
	got := make(map[string]int64)
	for _, c := range w.checkpoints() {
		got[c.Group] = c.Downstream
	}
	for offset := range bounds.HighWatermark + 1 {
		group, want := fmt.Sprint(offset), exactOffset(source, target, offset)
		if there, ok := got[group]; !ok || there != want || w.on(group, "orders", 0) != want {
			return fmt.Sprintf("source offset %d: checkpoint %d, %t; on the target %d; want %d", offset, there, ok, w.on(group, "orders", 0), want)
		}
	}
	return ""
}
