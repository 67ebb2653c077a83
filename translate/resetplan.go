package translate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A ResetPlan is offsets to which consumer groups are to be set, as
// `kafka-consumer-groups --reset-offsets` exports and reads them.
//
// The form has no header. A line is
//
//	topic,partition,offset           of a plan for one group, which stands elsewhere
//	group,topic,partition,offset     otherwise
//
// It is what CsvMapper of jackson-dataformat-csv makes of the classes in
// Kafka's tools/consumer/group/CsvUtils.java, line by line as in
// ConsumerGroupCommand.parseResetPlan and exportOffsetsToCsv.
type ResetPlan struct {
	Grouped bool // the rows name their groups
	Rows    []PlanRow
}

// A PlanRow is the offset of one group in one topic-partition. Group is empty
// in a plan that is not grouped.
type PlanRow struct {
	Group string
	Query
}

// A PlanError says what is wrong with a row of a [ResetPlan].
type PlanError struct {
	Line   int // the row, or the line that it was read from; from 1
	Detail string
}

func (e *PlanError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Detail) }

func planErrorf(line int, format string, args ...any) *PlanError {
	return &PlanError{Line: line, Detail: fmt.Sprintf(format, args...)}
}

// Validate returns nil, or a [*PlanError] for the first row that no tool could
// act upon: one with a negative partition or offset, a topic name that no topic
// can have, a text that is not UTF-8, or another offset than a row before it
// has for the same group and partition. Of such two Kafka's tool takes the last
// one; which was meant is not known.
func (p *ResetPlan) Validate() error {
	return NewSheet(p).Validate()
}

func (r *PlanRow) fault() string {
	switch {
	case r.Partition < 0:
		return fmt.Sprintf("partition %d is negative", r.Partition)
	case r.Offset < 0:
		return fmt.Sprintf("offset %d is negative", r.Offset)
	case !utf8.ValidString(r.Group):
		return fmt.Sprintf("group %q is not UTF-8", r.Group)
	}
	return topicFault(r.Topic)
}

// maxTopicName is the length of Kafka's longest topic name.
const maxTopicName = 249

// topicFault returns what keeps name from being the name of a topic: the rules
// of Kafka's org.apache.kafka.common.internals.Topic.
func topicFault(name string) string {
	illegal := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}
	switch {
	case name == "":
		return "the topic is missing"
	case name == "." || name == "..":
		return fmt.Sprintf("a topic cannot be called %q", name)
	case len(name) > maxTopicName:
		return fmt.Sprintf("a topic name has at most %d characters, this one has %d", maxTopicName, len(name))
	case strings.ContainsFunc(name, illegal):
		return fmt.Sprintf("topic name %q has a character other than ASCII letters, digits, '.', '_' and '-'", name)
	}
	return ""
}

// parseNumber returns a partition or an offset. Like Kafka's tool it ignores
// blanks around it; unlike that it takes no empty one for 0.
func parseNumber(what, field string, limit int64) (int64, string) {
	text := strings.TrimFunc(field, isBlank)
	if text == "" {
		return 0, "the " + what + " is missing"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n > limit:
		return 0, fmt.Sprintf("%s %.40q is not a whole number up to %d", what, field, limit)
	case n < 0:
		return 0, fmt.Sprintf("%s %d is negative", what, n)
	}
	return n, ""
}

// isBlank reports whether Java's String.trim removes r.
func isBlank(r rune) bool { return r <= ' ' }

// readRow returns the row that the fields of one line hold.
func readRow(fields []string, grouped bool) (row PlanRow, fault string) {
	if grouped {
		row.Group, fields = fields[0], fields[1:]
	}
	partition, fault := parseNumber("partition", fields[1], math.MaxInt32)
	if fault != "" {
		return row, fault
	}
	row.Topic, row.Partition = fields[0], int32(partition)
	row.Offset, fault = parseNumber("offset", fields[2], math.MaxInt64)
	return row, fault
}
