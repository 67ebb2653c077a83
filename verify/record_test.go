package verify

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

// TestMillisSurviveNanoseconds: kgo makes time.Unix(0, millis*1e6) of a record's
// time, which overflows; what was put in comes out.
func TestMillisSurviveNanoseconds(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20261203)
	t.Logf("seed %d", parameters.Seed())
	properties := gopter.NewProperties(parameters)
	same := func(millis int64) bool { return millisOf(time.Unix(0, millis*1e6)) == millis }
	properties.Property("times within 2^57 ms of 1970", prop.ForAll(same, gen.Int64Range(-1<<57, 1<<57-1)))
	properties.Property("times of today", prop.ForAll(same, gen.Int64Range(0, 1<<42)))
	properties.TestingRun(t)
	for _, millis := range []int64{0, 1, -1, 1<<57 - 1, -1 << 57, math.MaxInt64 / 1_000_000, math.MinInt64 / 1_000_000} {
		if !same(millis) {
			t.Errorf("%d ms come out as %d", millis, millisOf(time.Unix(0, millis*1e6)))
		}
	}
}

// TestControlKind: key of a marker, version and type of two bytes each.
func TestControlKind(t *testing.T) {
	for _, tt := range []struct {
		key  []byte
		want itemKind
	}{
		{[]byte{0, 0, 0, 0}, abortMarker},
		{[]byte{0, 0, 0, 1}, commitMarker},
		{[]byte{0, 7, 0, 1, 9}, commitMarker},
		{[]byte{0, 0, 0, 2}, otherControl},
		{[]byte{0, 0, 1, 0}, otherControl},
		{[]byte{0, 0, 0}, otherControl},
		{nil, otherControl},
	} {
		if got := controlKind(tt.key); got != tt.want {
			t.Errorf("controlKind(%v) = %v, want %v", tt.key, got, tt.want)
		}
	}
}

// FuzzFirstBatch cuts bytes of a fetch answer behind the first batch: never
// beyond them, and at the length that it says if that is within.
func FuzzFirstBatch(f *testing.F) {
	whole := make([]byte, 70)
	binary.BigEndian.PutUint64(whole, 40)
	binary.BigEndian.PutUint32(whole[8:], 49)
	whole[16] = 2
	binary.BigEndian.PutUint32(whole[23:], 4)
	f.Add(whole)
	f.Add(whole[:17])
	f.Add(append(bytes.Clone(whole[:61]), whole...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) < 17 {
			return // never asked for
		}
		first, last := firstBatch(bytes.Clone(raw))
		says := int64(int32(binary.BigEndian.Uint32(raw[8:]))) + 12
		if !bytes.HasPrefix(raw, first) || says > 17 && says <= int64(len(raw)) && int64(len(first)) != says {
			t.Errorf("first batch of %d bytes has %d, says %d", len(raw), len(first), says)
		}
		base := int64(binary.BigEndian.Uint64(raw))
		if raw[16] == 2 && len(first) >= 27 {
			base += int64(int32(binary.BigEndian.Uint32(raw[23:])))
		}
		if last != base {
			t.Errorf("last offset is %d, want %d", last, base)
		}
	})
}
