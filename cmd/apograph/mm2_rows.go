package main

import (
	"cmp"
	"fmt"
	"slices"

	"apograph/internal/mm2"
	"apograph/internal/readlog"
)

// An offsetSyncRow is one offset sync.
type offsetSyncRow struct {
	Topic      string `json:"topic"` // on the source
	Partition  int32  `json:"partition"`
	Upstream   int64  `json:"upstream"`
	Downstream int64  `json:"downstream"`
	mm2Stamp
}

// A checkpointRow is one checkpoint, beside what the ledger says.
type checkpointRow struct {
	Group      string `json:"group"`
	Topic      string `json:"topic"` // on the target
	Partition  int32  `json:"partition"`
	Upstream   int64  `json:"upstream"`
	Downstream int64  `json:"downstream"`
	Metadata   string `json:"metadata"`
	*exactAnswer
	mm2Stamp
}

// A heartbeatRow is one heartbeat.
type heartbeatRow struct {
	Source    string  `json:"source"`
	Target    string  `json:"target"`
	Timestamp instant `json:"timestamp"`
	mm2Stamp
}

func syncsKind() mm2Kind[offsetSyncRow] {
	return mm2Kind[offsetSyncRow]{
		mm2Topic: mm2Topic{name: mm2.Policy.OffsetSyncsOf, movable: true},
		kind:     "MM2OffsetSyncs", schema: "mm2-offset-syncs",
		parse: func(r readlog.Record) (*offsetSyncRow, error) {
			s, err := mm2.ParseOffsetSync(r.Key, r.Value)
			if err = cmp.Or(r.Err, err); err != nil {
				return nil, err
			}
			key, value, err := s.Encode()
			return &offsetSyncRow{s.Topic, s.Partition, s.Upstream, s.Downstream, stampOf(r, 0, key, value, err)}, nil
		},
		compare: func(a, b offsetSyncRow) int {
			return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
		},
		table: func(rows []offsetSyncRow, _ bool) *textTable {
			columns := []tableColumn{{"TOPIC", false, true}, {"PARTITION", true, true}, {"UPSTREAM", true, true}, {"DOWNSTREAM", true, true}}
			return mm2Table(columns, rows, func(r *offsetSyncRow) ([]string, *mm2Stamp) {
				return numbersBehind([]string{r.Topic}, int64(r.Partition), r.Upstream, r.Downstream), &r.mm2Stamp
			})
		},
	}
}

// checkpointsKind are those of groups; of all groups if there are none.
func checkpointsKind(groups []string) mm2Kind[checkpointRow] {
	return mm2Kind[checkpointRow]{
		mm2Topic: mm2Topic{name: func(p mm2.Policy, source, _ string, _ bool) string { return p.CheckpointsTopic(source) }},
		kind:     "MM2Checkpoints", schema: "mm2-checkpoints",
		parse: func(r readlog.Record) (*checkpointRow, error) {
			c, err := mm2.ParseCheckpoint(r.Key, r.Value)
			if err = cmp.Or(r.Err, err); err != nil {
				return nil, err
			}
			if len(groups) > 0 && !slices.Contains(groups, c.Group) {
				return nil, nil
			}
			key, value, err := c.Encode()
			stamp := stampOf(r, mm2.RecordVersion(r.Value), key, value, err)
			return &checkpointRow{c.Group, c.Topic, c.Partition, c.Upstream, c.Downstream, c.Metadata, nil, stamp}, nil
		},
		compare: func(a, b checkpointRow) int {
			return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
		},
		table: checkpointsTable,
	}
}

func checkpointsTable(rows []checkpointRow, exact bool) *textTable {
	noted := slices.ContainsFunc(rows, func(r checkpointRow) bool { return r.Metadata != "" })
	columns := []tableColumn{
		{"GROUP", false, true}, {"TOPIC", false, true}, {"PARTITION", true, true}, {"UPSTREAM", true, true}, {"DOWNSTREAM", true, true},
		{"EXACT", true, exact}, {"DIFFERENCE", true, exact}, {"STATUS", false, exact}, {"METADATA", false, noted},
	}
	return mm2Table(columns, rows, func(r *checkpointRow) ([]string, *mm2Stamp) {
		cells := numbersBehind([]string{r.Group, r.Topic}, int64(r.Partition), r.Upstream, r.Downstream)
		return append(append(cells, r.exactAnswer.cells()...), r.Metadata), &r.mm2Stamp
	})
}

func heartbeatsKind() mm2Kind[heartbeatRow] {
	return mm2Kind[heartbeatRow]{
		mm2Topic: mm2Topic{name: func(p mm2.Policy, _, _ string, _ bool) string { return p.HeartbeatsTopic() }},
		kind:     "MM2Heartbeats", schema: "mm2-heartbeats",
		parse: func(r readlog.Record) (*heartbeatRow, error) {
			h, err := mm2.ParseHeartbeat(r.Key, r.Value)
			if err = cmp.Or(r.Err, err); err != nil {
				return nil, err
			}
			key, value, err := h.Encode()
			return &heartbeatRow{h.Source, h.Target, instantOf(h.Timestamp), stampOf(r, mm2.RecordVersion(r.Value), key, value, err)}, nil
		},
		compare: func(a, b heartbeatRow) int {
			return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Offset, b.Offset))
		},
		table: func(rows []heartbeatRow, _ bool) *textTable {
			columns := []tableColumn{{"SOURCE", false, true}, {"TARGET", false, true}, {"TIMESTAMP", false, true}}
			return mm2Table(columns, rows, func(r *heartbeatRow) ([]string, *mm2Stamp) {
				return []string{r.Source, r.Target, r.Timestamp.String()}, &r.mm2Stamp
			})
		},
	}
}

// mm2Table returns a table of rows, whose stamps are its last columns.
func mm2Table[Row any](columns []tableColumn, rows []Row, cells func(*Row) ([]string, *mm2Stamp)) *textTable {
	var lines [][]string
	noted := false
	for i := range rows {
		line, stamp := cells(&rows[i])
		noted = noted || stamp.Detail != ""
		lines = append(lines, append(line, fmt.Sprint(stamp.Offset), stamp.Time.String(), stamp.Detail))
	}
	columns = append(columns, tableColumn{"OFFSET", true, true}, tableColumn{"TIME", false, true}, tableColumn{"DETAIL", false, noted})
	return tableOf(columns, lines)
}

func numbersBehind(cells []string, numbers ...int64) []string {
	for _, n := range numbers {
		cells = append(cells, fmt.Sprint(n))
	}
	return cells
}
