//go:build kafka

package kafkatest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Main classes of Kafka's tools, for Tool.
const (
	ConsoleConsumer      = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	ConsoleProducer      = "org.apache.kafka.tools.ConsoleProducer"
	ConsumerGroupCommand = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	DeleteRecordsCommand = "org.apache.kafka.tools.DeleteRecordsCommand"
	ProducerPerformance  = "org.apache.kafka.tools.ProducerPerformance"
	TopicCommand         = "org.apache.kafka.tools.TopicCommand"
)

// A JavaLoad fills a topic through Kafka's Java client: all codecs, headers,
// null and empty keys and values, tombstones, times out of order, transactions
// with commits and aborts. The topic must exist; LoadConfigs suits it.
type JavaLoad struct {
	Topic      string
	Partitions int
	Records    int // data records, about
	Seed       int64
	Keyed      bool // no null keys, as compacted topics need
}

// JavaLoad runs a load.
func (k *Kafka) JavaLoad(ctx context.Context, l JavaLoad) error {
	args := []string{"Load", k.Server(), l.Topic, strconv.Itoa(l.Partitions), strconv.Itoa(l.Records), strconv.FormatInt(l.Seed, 10)}
	if l.Keyed {
		args = append(args, "keyed")
	}
	_, err := k.java(ctx, nil, args...)
	return err
}

// JavaReadTopic reads a topic with Kafka's Java consumer under read_committed and
// returns the records of each partition in order: the outside reader, which shares
// no code with anything here.
func (k *Kafka) JavaReadTopic(ctx context.Context, topic string) ([][]Record, error) {
	out, err := k.java(ctx, nil, "ReadAll", k.Server(), topic)
	if err != nil {
		return nil, err
	}
	n, err := k.partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	return parseJavaRecords(out, n)
}

// JavaRead is JavaReadTopic for one partition.
func (k *Kafka) JavaRead(ctx context.Context, topic string, partition int32) ([]Record, error) {
	all, err := k.JavaReadTopic(ctx, topic)
	if err != nil {
		return nil, err
	}
	if partition < 0 || int(partition) >= len(all) {
		return nil, fmt.Errorf("%s has no partition %d", topic, partition)
	}
	return all[partition], nil
}

// parseJavaRecords reads the lines of ReadAll.java.
func parseJavaRecords(out []byte, partitions int) ([][]Record, error) {
	all := make([][]Record, partitions)
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), " ")
		if len(fields) != 6 {
			return nil, fmt.Errorf("line of %d fields: %.100q", len(fields), lines.Text())
		}
		partition, err := strconv.Atoi(fields[0])
		if err != nil || partition < 0 || partition >= partitions {
			return nil, fmt.Errorf("partition %q of %d", fields[0], partitions)
		}
		record, err := parseJavaRecord(fields[1:])
		if err != nil {
			return nil, fmt.Errorf("line %.100q: %w", lines.Text(), err)
		}
		all[partition] = append(all[partition], record)
	}
	return all, lines.Err()
}

func parseJavaRecord(fields []string) (Record, error) {
	var r Record
	var errs [4]error
	r.Offset, errs[0] = strconv.ParseInt(fields[0], 10, 64)
	r.Timestamp, errs[1] = strconv.ParseInt(fields[1], 10, 64)
	r.Key, errs[2] = parseJavaBytes(fields[2])
	r.Value, errs[3] = parseJavaBytes(fields[3])
	if err := errors.Join(errs[:]...); err != nil {
		return Record{}, err
	}
	if fields[4] == "-" {
		return r, nil
	}
	for _, header := range strings.Split(fields[4], ",") {
		name, value, ok := strings.Cut(header, ":")
		if !ok {
			return Record{}, fmt.Errorf("header %q", header)
		}
		key, err := parseJavaBytes(name)
		if err != nil {
			return Record{}, err
		}
		h := Header{Key: string(key)}
		if h.Value, err = parseJavaBytes(value); err != nil {
			return Record{}, err
		}
		r.Headers = append(r.Headers, h)
	}
	return r, nil
}

// parseJavaBytes reads "n" as null and "x" with hexadecimal digits as bytes.
func parseJavaBytes(s string) ([]byte, error) {
	if s == "n" {
		return nil, nil
	}
	digits, ok := strings.CutPrefix(s, "x")
	if !ok {
		return nil, fmt.Errorf("bytes %q", s)
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, err
	}
	return append([]byte{}, b...), nil
}

// DifferenceOf says how two readings of the same log differ, offsets included;
// empty if they do not.
func DifferenceOf(a, b []Record) string {
	for i := range min(len(a), len(b)) {
		if a[i].Offset != b[i].Offset {
			return fmt.Sprintf("record %d is at offset %d and %d", i, a[i].Offset, b[i].Offset)
		}
		if d := difference(&a[i], &logRecord{Record: b[i]}); d != "" {
			return fmt.Sprintf("offset %d: %s", a[i].Offset, d)
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d records", len(a), len(b))
	}
	return ""
}
