package kafkatest

import (
	"strings"
	"testing"
)

// TestMarkersContradict: the list of aborted transactions that a broker gives
// and its markers must tell the same story.
func TestMarkersContradict(t *testing.T) {
	data := func(offset, producer int64) logRecord {
		return logRecord{Record: Record{Offset: offset}, transactional: true, producerID: producer}
	}
	marker := func(offset, producer int64, commit bool) logRecord {
		return logRecord{Record: Record{Offset: offset}, transactional: true, producerID: producer, control: true, commit: commit}
	}
	bounds := Bounds{LastStable: 4, HighWatermark: 5}
	for name, tt := range map[string]struct {
		all, visible []logRecord
		want         string // in the error; empty is none
	}{
		"commit":            {[]logRecord{data(0, 1), marker(1, 1, true)}, []logRecord{data(0, 1), marker(1, 1, true)}, ""},
		"abort":             {[]logRecord{data(0, 1), marker(1, 1, false)}, []logRecord{marker(1, 1, false)}, ""},
		"abort, visible":    {[]logRecord{data(0, 1), marker(1, 1, false)}, []logRecord{data(0, 1), marker(1, 1, false)}, "offset 0 is copied"},
		"commit, invisible": {[]logRecord{data(0, 1), marker(1, 1, true)}, []logRecord{marker(1, 1, true)}, "offset 0 is aborted"},
		"another producer":  {[]logRecord{data(0, 2), data(1, 1), marker(2, 1, false), marker(3, 2, true)}, []logRecord{data(0, 2), marker(2, 1, false), marker(3, 2, true)}, ""},
		"marker compacted":  {[]logRecord{data(0, 1), data(1, 2)}, []logRecord{data(0, 1)}, ""},
		"visible only":      {nil, []logRecord{data(0, 1)}, "read_committed only"},
		"undecided":         {[]logRecord{data(4, 1)}, nil, ""},
	} {
		_, err := fatesOf(tt.all, tt.visible, bounds)
		if (err != nil) != (tt.want != "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}
