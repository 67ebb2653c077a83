//go:build kafka

package kafkatest

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// A FailOver has consumers of groups go on at one cluster, where each group
// stands, to the end of a topic of one partition. They commit nothing.
type FailOver struct {
	Topic    string
	Protocol string // group.protocol: classic or consumer
	Reset    string // auto.offset.reset
	Groups   []string
}

// A Resumption is what one of these consumers got.
type Resumption struct {
	Start   int64  // where it went on
	First   int64  // offset of the first record; -1 if there was none
	Records int    // how many it got
	CRC     uint32 // of their values, in order (IEEE)
}

// ResumptionOf returns what a consumer must get that goes on at an offset of a
// log of these records.
func ResumptionOf(log []Record, start int64) Resumption {
	r := Resumption{Start: start, First: -1}
	for i := range log {
		if log[i].Offset < start {
			continue
		}
		r.add(log[i].Offset, log[i].Value)
	}
	return r
}

func (r *Resumption) add(offset int64, value []byte) {
	if r.Records == 0 {
		r.First = offset
	}
	r.Records++
	r.CRC = crc32.Update(r.CRC, crc32.IEEETable, value)
}

// JavaFailOver has consumers of the Java client go on. The answers are by group.
func (j *Java) JavaFailOver(ctx context.Context, on Bootstrap, f FailOver) (map[string]Resumption, error) {
	out, err := j.java(ctx, strings.NewReader(strings.Join(f.Groups, "\n")+"\n"), "FailOver", on.Server(), f.Topic, f.Protocol, f.Reset)
	if err != nil {
		return nil, err
	}
	return ParseResumptions(out)
}

// ParseResumptions reads lines of five fields, separated by tabs: the group, and
// the fields of its [Resumption].
func ParseResumptions(out []byte) (map[string]Resumption, error) {
	all := map[string]Resumption{}
	for line := range bytes.Lines(out) {
		fields := strings.Split(strings.TrimSpace(string(line)), "\t")
		if len(fields) != 5 {
			return nil, fmt.Errorf("resumption %q", line)
		}
		var numbers [4]int64
		for i := range numbers {
			var err error
			if numbers[i], err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
				return nil, fmt.Errorf("resumption %q: %w", line, err)
			}
		}
		all[fields[0]] = Resumption{Start: numbers[0], First: numbers[1], Records: int(numbers[2]), CRC: uint32(numbers[3])}
	}
	return all, nil
}
