package recordbatch_test

import (
	"testing"

	rb "apograph/internal/recordbatch"
)

// TestNoAllocation measures the steady state: what a replicator does with each
// batch must not make garbage.
func TestNoAllocation(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		records := benchRecords(100)
		var body []byte
		for i := range records {
			records[i].OffsetDelta = int32(i)
			body = records[i].Encode(body)
		}
		h, batch := packBatch(fm.codec, len(records), fm.pack(t, body))
		var (
			d rb.Decoder
			w rb.Walker
			r rb.Record
		)
		step := func(name string, f func()) {
			f()
			allocs := testing.AllocsPerRun(100, f)
			if allocs != 0 && !(raceDetector && name == "Body" && fm.codec == rb.Zstd) {
				t.Errorf("%s: %v allocations, want 0", name, allocs)
			}
		}
		step("Peek and Parse", func() {
			_, _, err := rb.Peek(batch)
			if _, err2 := rb.Parse(batch); err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
		})
		step("Patch", func() { rb.Patch(batch, 1, 2, 3) })
		step("CheckCRC", func() {
			if err := rb.CheckCRC(batch); err != nil {
				t.Fatal(err)
			}
		})
		step("Body", func() {
			if _, err := d.Body(h, batch); err != nil {
				t.Fatal(err)
			}
		})
		step("walk", func() {
			w.ResetBatch(h, body)
			for w.Next(&r) {
				headers := r.Headers()
				for _, _, ok := headers.Next(); ok; _, _, ok = headers.Next() {
				}
			}
			if w.Err() != nil {
				t.Fatal(w.Err())
			}
		})
	})
}

// TestBuilderDoesNotAllocate: joining batches must not make garbage either.
func TestBuilderDoesNotAllocate(t *testing.T) {
	eachCodec(t, func(t *testing.T, codec rb.Codec) {
		records := benchRecords(100)
		var (
			b   rb.Builder
			dst []byte
			err error
		)
		build := func() {
			b.Reset(codec)
			for i := range records {
				b.Append(&records[i], int64(i))
			}
			if dst, err = b.Seal(dst[:0], 1, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		build()
		if allocs := testing.AllocsPerRun(20, build); allocs != 0 {
			t.Errorf("%v allocations, want 0", allocs)
		}
	})
}

func TestMarkerTypeDoesNotAllocate(t *testing.T) {
	batch := mustJavaBatches(t)["commit-marker"]
	h := mustParse(t, batch)
	if allocs := testing.AllocsPerRun(100, func() {
		if _, err := rb.MarkerType(h, batch); err != nil {
			t.Fatal(err)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}
