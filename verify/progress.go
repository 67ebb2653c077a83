package verify

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Progress says how far a run has come.
type Progress struct {
	Waiting string // what is waited for, before anything is read; else ""

	Partitions int   // to be read
	Finished   int   // of them
	Records    int64 // read so far, on both sides
	Bytes      int64 // of them: keys, values and headers

	Offsets int64 // read so far, on both sides
	Total   int64 // to be read

	Elapsed time.Duration
	Left    time.Duration // estimated; negative: cannot be told yet
}

// Rate returns the bytes read a second, so far.
func (p Progress) Rate() float64 {
	if p.Elapsed <= 0 {
		return 0
	}
	return float64(p.Bytes) / p.Elapsed.Seconds()
}

// A meter counts for all workers of a run.
type meter struct {
	partitions int
	total      int64
	limit      int64 // of bytes; 0 for none

	finished, records, bytes, offsets atomic.Int64
}

// errFull says that as many bytes were read as may be.
var errFull = errors.New("the limit of bytes is reached")

// full reports whether as many bytes were read as may be, with some that are not
// counted yet.
func (m *meter) full(more int64) bool { return m.limit > 0 && m.bytes.Load()+more >= m.limit }

func (m *meter) progress(elapsed time.Duration) Progress {
	p := Progress{
		Partitions: m.partitions,
		Finished:   int(m.finished.Load()),
		Records:    m.records.Load(),
		Bytes:      m.bytes.Load(),
		Offsets:    min(m.offsets.Load(), m.total),
		Total:      m.total,
		Elapsed:    elapsed,
		Left:       -1,
	}
	if p.Offsets > 0 {
		p.Left = time.Duration(float64(elapsed) / float64(p.Offsets) * float64(p.Total-p.Offsets))
	}
	return p
}

// tell reports progress about once a second until ctx ends, and once more then.
func (m *meter) tell(ctx context.Context, started time.Time, now func() time.Time, report func(Progress)) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			report(m.progress(now().Sub(started)))
		case <-ctx.Done():
			report(m.progress(now().Sub(started)))
			return
		}
	}
}
