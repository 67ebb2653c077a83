package recordbatch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	rb "apograph/internal/recordbatch"
)

// slowPatch builds the batch that Patch must produce from scratch.
func slowPatch(batch []byte, producerID int64, epoch int16, sequence int32) []byte {
	var f plainHeaderFields
	if err := binary.Read(bytes.NewReader(batch), binary.BigEndian, &f); err != nil {
		panic(err)
	}
	f.BaseOffset = 0
	f.LeaderEpoch = -1
	f.Attributes %= 8
	if f.Attributes < 0 {
		f.Attributes += 8
	}
	f.ProducerID, f.ProducerEpoch, f.BaseSequence = producerID, epoch, sequence
	return plainBatch(f, batch[61:])
}

func TestPatchAgainstSlow(t *testing.T) {
	check := func(f plainHeaderFields, seed int64, size int, producerID int64, epoch int16, sequence int32) bool {
		body := make([]byte, size)
		rand.New(rand.NewSource(seed)).Read(body)
		batch := plainBatch(f, body)
		want := slowPatch(batch, producerID, epoch, sequence)
		rb.Patch(batch, producerID, epoch, sequence)
		return bytes.Equal(batch, want)
	}
	properties := gopter.NewProperties(propertyParameters(300))
	properties.Property("small bodies", prop.ForAll(check,
		genHeader(), gen.Int64(), gen.IntRange(0, 70_000), gen.Int64(), gen.Int16(), gen.Int32()))
	properties.TestingRun(t)

	large := gopter.NewProperties(propertyParameters(5))
	large.Property("bodies up to 2 MB", prop.ForAll(check,
		genHeader(), gen.Int64(), gen.IntRange(70_000, 2<<20), gen.Int64(), gen.Int16(), gen.Int32()))
	large.TestingRun(t)
}

// TestPatchEverySize covers each power of x that a small body can need.
func TestPatchEverySize(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	for size := range 300 {
		body := make([]byte, size)
		rng.Read(body)
		batch := plainBatch(plainHeaderFields{BaseOffset: 9, Magic: 2, Attributes: 0x7c, Count: 1, ProducerID: rng.Int63()}, body)
		want := slowPatch(batch, 1, 2, 3)
		if rb.Patch(batch, 1, 2, 3); !bytes.Equal(batch, want) {
			t.Fatalf("body of %d bytes: patched batch differs from the rebuilt one", size)
		}
	}
}

func TestPatchKeepsHorizonBase(t *testing.T) {
	// The cleaner's batch: its base timestamp is the horizon, its deltas negative.
	f := plainHeaderFields{Magic: 2, Attributes: 0x44, BaseTimestamp: 1_700_000_600_000, MaxTimestamp: 1_700_000_000_000, Count: 1}
	batch := plainBatch(f, []byte("payload"))
	rb.Patch(batch, 5, 0, 0)
	h := mustParse(t, batch)
	if h.BaseTimestamp != f.BaseTimestamp || h.MaxTimestamp != f.MaxTimestamp {
		t.Errorf("timestamps %d, %d, want %d, %d", h.BaseTimestamp, h.MaxTimestamp, f.BaseTimestamp, f.MaxTimestamp)
	}
	if h.Attributes != 4 {
		t.Errorf("attributes %#x, want the codec alone, 4", h.Attributes)
	}
}

// TestPatchDoesNotHideDamage flips each bit that the checksum covers, before and
// after patching: the target's broker must still see it.
func TestPatchDoesNotHideDamage(t *testing.T) {
	honest := mustBuild(t, rb.LZ4, randomRecords(rand.New(rand.NewSource(3)), 4))
	for bit := 21 * 8; bit < len(honest)*8; bit++ {
		before := bytes.Clone(honest)
		before[bit/8] ^= 1 << (bit % 8)
		rb.Patch(before, 8, 1, 99)
		if err := rb.CheckCRC(before); !errors.Is(err, rb.ErrCRC) {
			t.Fatalf("bit %d flipped before patching: CheckCRC = %v, want ErrCRC", bit, err)
		}
		after := bytes.Clone(honest)
		rb.Patch(after, 8, 1, 99)
		after[bit/8] ^= 1 << (bit % 8)
		if err := rb.CheckCRC(after); !errors.Is(err, rb.ErrCRC) {
			t.Fatalf("bit %d flipped after patching: CheckCRC = %v, want ErrCRC", bit, err)
		}
	}
}

// TestPatchTwice: a batch that failed to be sent is patched again.
func TestPatchTwice(t *testing.T) {
	batch := mustBuild(t, rb.Zstd, randomRecords(rand.New(rand.NewSource(4)), 20))
	once := bytes.Clone(batch)
	rb.Patch(once, 8, 1, 99)
	rb.Patch(batch, math.MaxInt64, math.MaxInt16, math.MaxInt32)
	rb.Patch(batch, 8, 1, 99)
	if !bytes.Equal(batch, once) {
		t.Error("patching over a patch differs from patching once")
	}
}

func TestCheckCRC(t *testing.T) {
	batch := mustBuild(t, rb.None, randomRecords(rand.New(rand.NewSource(5)), 4))
	if err := rb.CheckCRC(batch); err != nil {
		t.Fatal(err)
	}
	for at := range len(batch) {
		damaged := bytes.Clone(batch)
		damaged[at] ^= 0x10
		covered := at >= 17 // the checksum itself, and all behind it
		if err := rb.CheckCRC(damaged); errors.Is(err, rb.ErrCRC) != covered {
			t.Errorf("byte %d damaged: CheckCRC = %v, want an error %v", at, err, covered)
		}
	}
}

func TestCRCPowers(t *testing.T) {
	// x^8 by its definition, then each the square of the one before.
	power := uint32(1) << (31 - 8)
	for k, got := range rb.CRCPowers {
		if got != power {
			t.Errorf("power %d = %08x, want %08x", k, got, power)
		}
		power = slowPolynomialProduct(power, power)
	}
	rng := rand.New(rand.NewSource(propertySeed))
	for range 1000 {
		a, b := rng.Uint32(), rng.Uint32()
		if got, want := rb.CRCMultiply(a, b), slowPolynomialProduct(a, b); got != want {
			t.Fatalf("%08x * %08x = %08x, want %08x", a, b, got, want)
		}
	}
}

// slowPolynomialProduct multiplies as at school: all the partial products, then
// the remainder of a division by 1EDC6F41, with bits in their natural order.
func slowPolynomialProduct(a, b uint32) uint32 {
	var product uint64
	for i := range 32 {
		for j := range 32 {
			// Bit 31-i of a reflected value is the coefficient of x^i.
			if a>>(31-i)&1 != 0 && b>>(31-j)&1 != 0 {
				product ^= 1 << (i + j)
			}
		}
	}
	for degree := 63; degree >= 32; degree-- {
		if product>>degree&1 != 0 {
			product ^= 0x11edc6f41 << (degree - 32)
		}
	}
	var reflected uint32
	for i := range 32 {
		reflected |= uint32(product>>i&1) << (31 - i)
	}
	return reflected
}
