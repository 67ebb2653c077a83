package translate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/translate"
)

// A vector is a line of testdata/kafka-csv.jsonl.
type vector struct {
	Group     *string
	Topic     string
	Partition int32
	Offset    int64
	CSV       string

	Read    *string
	Plain   []any
	Grouped []any
}

func mustVectors(t *testing.T) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/kafka-csv.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	lines := json.NewDecoder(bytes.NewReader(data))
	lines.UseNumber()
	for lines.More() {
		var v vector
		if err := lines.Decode(&v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

func planText(t *testing.T, p translate.ResetPlan) string {
	t.Helper()
	var text strings.Builder
	if err := p.WriteCSV(&text); err != nil {
		t.Fatalf("write %+v: %v", p, err)
	}
	return text.String()
}

func TestWritesWhatKafkaWrites(t *testing.T) {
	n := 0
	for _, v := range mustVectors(t) {
		if v.CSV == "" {
			continue
		}
		n++
		plan := translate.ResetPlan{Grouped: v.Group != nil}
		row := translate.PlanRow{Query: translate.Query{Topic: v.Topic, Partition: v.Partition, Offset: v.Offset}}
		if plan.Grouped {
			row.Group = *v.Group
		}
		plan.Rows = []translate.PlanRow{row}
		if got := planText(t, plan); got != v.CSV {
			t.Errorf("%+v: %q, want %q", row, got, v.CSV)
		}
		back, err := translate.ReadResetPlan(strings.NewReader(v.CSV))
		if err != nil || !cmp.Equal(back, plan) {
			t.Errorf("read %q: %+v, %v, want %+v", v.CSV, back, err, plan)
		}
	}
	if n < 40 {
		t.Errorf("only %d vectors", n)
	}
}

// TestReadsWhatKafkaReads compares with Kafka's own reading: what is read is
// read as Kafka does, and what is refused either Kafka refuses as well, or the
// naive reader finds that it would be misread.
func TestReadsWhatKafkaReads(t *testing.T) {
	n := 0
	for _, v := range mustVectors(t) {
		if v.Read == nil || strings.Contains(*v.Read, "\n") {
			continue
		}
		n++
		kafka := v.Plain
		if kafka == nil {
			kafka = v.Grouped
		}
		got, err := translate.ReadResetPlan(strings.NewReader(*v.Read))
		naive, fault := naivePlan(*v.Read)
		switch {
		case err == nil && (!got.Grouped != (v.Plain != nil) || fmt.Sprint(kafka) != rowText(got)):
			t.Errorf("%q: %+v, but Kafka reads %v", *v.Read, got, kafka)
		case err == nil && !cmp.Equal(got, naive):
			t.Errorf("%q: %+v, but naively %+v", *v.Read, got, naive)
		case err != nil && fault == "" && kafka != nil:
			t.Errorf("%q: %v, but Kafka reads %v", *v.Read, err, kafka)
		case err == nil && fault != "":
			t.Errorf("%q: %+v, although %s", *v.Read, got, fault)
		}
	}
	if n < 80 {
		t.Errorf("only %d vectors", n)
	}
}

func rowText(p translate.ResetPlan) string {
	row := p.Rows[0]
	if p.Grouped {
		return fmt.Sprint([]any{row.Group, row.Topic, row.Partition, row.Offset})
	}
	return fmt.Sprint([]any{row.Topic, row.Partition, row.Offset})
}

// naivePlan reads a plan by the rules of jackson's CSV and of Kafka's tool, one
// character at a time, and says what is wrong with it; what is only wrong
// because Kafka's tool would misread it as well.
func naivePlan(text string) (plan translate.ResetPlan, fault string) {
	lines := strings.Split(text, "\n")
	for len(lines) > 0 && strings.ReplaceAll(lines[len(lines)-1], "\r", "") == "" {
		lines = lines[:len(lines)-1] // as Java's String.split, which knows no carriage returns
	}
	offsets := map[string]int64{}
	for i, line := range lines {
		columns, fault := naiveColumns(line)
		if fault != "" {
			return plan, fault
		}
		row, plainFault := naiveRow(columns, false)
		if i == 0 {
			plan.Grouped = len(columns) >= 4 && plainFault != ""
		}
		if plan.Grouped {
			row, fault = naiveRow(columns, true)
		} else {
			fault = plainFault
		}
		if fault != "" {
			return plan, fault
		}
		key := fmt.Sprintf("%q %q %d", row.Group, row.Topic, row.Partition)
		if before, ok := offsets[key]; ok && before != row.Offset {
			return plan, "the last of several offsets wins"
		}
		offsets[key] = row.Offset
		plan.Rows = append(plan.Rows, row)
	}
	if len(plan.Rows) == 0 {
		return plan, "there is nothing"
	}
	return plan, ""
}

// naiveColumns splits a line.
func naiveColumns(line string) (columns []string, fault string) {
	const (
		start = iota
		bare
		quoted
		behindQuote
	)
	state, value := start, []rune{}
	runes := []rune(line + ",")
	for i, r := range runes {
		end, rest := i == len(runes)-1, runes[i:len(runes)-1]
		switch {
		case r == unicode.ReplacementChar:
			return nil, "it is not UTF-8"
		case r == '\ufeff' && i == 0:
			return nil, "the byte order mark becomes part of the name"
		case state == quoted && end:
			return nil, "a quote is not closed"
		case state == start && r == '"':
			state = quoted
		case state == quoted && r == '"':
			state = behindQuote
		case state == behindQuote && r == '"' && runes[i-1] == '"':
			value, state = append(value, '"'), quoted
		case state == quoted:
			value = append(value, r)
		case r == '\r' && strings.Trim(string(rest), "\r") != "":
			return nil, "what is behind the carriage return is ignored"
		case r == '\r':
		case r == ',':
			columns, value, state = append(columns, string(value)), nil, start
		case state == behindQuote && r > ' ':
			return nil, "there is text behind a quote"
		case state == behindQuote:
		default:
			value, state = append(value, r), bare
		}
	}
	return columns, ""
}

// naiveRow makes a row of columns.
func naiveRow(columns []string, grouped bool) (row translate.PlanRow, fault string) {
	want := 3
	if grouped {
		want = 4
	}
	if len(columns) == want+1 && columns[want] == "" {
		columns = columns[:want]
	}
	if len(columns) < want {
		return row, "missing columns are 0"
	}
	if len(columns) > want {
		return row, "there are too many columns"
	}
	if grouped {
		row.Group, columns = columns[0], columns[1:]
	}
	row.Topic = columns[0]
	for _, r := range row.Topic {
		if r > 'z' || !strings.ContainsRune("._-", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return row, "no topic has that name"
		}
	}
	if row.Topic == "" || row.Topic == "." || row.Topic == ".." || len(row.Topic) > 249 {
		return row, "no topic has that name"
	}
	numbers := [2]int64{}
	for i, limit := range []int64{math.MaxInt32, math.MaxInt64} {
		digits := strings.TrimFunc(columns[1+i], func(r rune) bool { return r <= ' ' })
		digits = strings.TrimPrefix(digits, "+")
		if n, err := strconv.ParseUint(strings.TrimPrefix(digits, "-"), 10, 63); err != nil || int64(n) > limit || n > 0 && digits[0] == '-' {
			return row, "a number is missing, which makes it 0, negative, too large or none"
		} else {
			numbers[i] = int64(n)
		}
	}
	row.Partition, row.Offset = int32(numbers[0]), numbers[1]
	return row, ""
}

// TestReadResetPlanAgainstNaive reads random text of the characters that mean
// something, and random plans as they are written.
func TestReadResetPlanAgainstNaive(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(propertySeed)
	parameters.MinSuccessfulTests = 3000
	properties := gopter.NewProperties(parameters)
	pieces := []any{"g", "orders", "a-b.c", "0", "7", "12", "-1", ",", ",", ",", ",", "\n", "\n", "\r", `"`, `"`, " ", "é", "\ufeff", "_", "+"}
	properties.Property("random text", prop.ForAll(
		func(pieces []string) (string, error) { return "", comparePlans(strings.Join(pieces, "")) },
		gen.SliceOf(gen.OneConstOf(pieces...)),
	))
	row := []any{"orders,0,5", `"orders",1,7,`, "orders,0,5", "g,orders,0,5", `"g ""1""",orders,2,9`, "g,orders,0,6", "g,7,0,", "orders,1", ""}
	properties.Property("random lines", prop.ForAll(
		func(lines []string, ending string) (string, error) {
			return "", comparePlans(strings.Join(lines, ending))
		},
		gen.SliceOf(gen.OneConstOf(row...)),
		gen.OneConstOf("\n", "\r\n"),
	))
	properties.TestingRun(t)
}

func comparePlans(text string) error {
	got, err := translate.ReadResetPlan(strings.NewReader(text))
	want, fault := naivePlan(text)
	if (err == nil) != (fault == "") || err == nil && !cmp.Equal(got, want) {
		return fmt.Errorf("%q: %+v, %v, want %+v %s", text, got, err, want, fault)
	}
	return nil
}

func TestPlanRoundTrip(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(propertySeed)
	parameters.MinSuccessfulTests = 100
	properties := gopter.NewProperties(parameters)
	properties.Property("what is written is read again, here and naively", prop.ForAll(
		func(groups []string, grouped bool) (string, error) {
			plan := translate.ResetPlan{Grouped: grouped}
			for i, group := range groups {
				row := translate.PlanRow{Query: translate.Query{
					Topic: strings.Repeat("t", 1+len(group)%40), Partition: int32(i), Offset: math.MaxInt64 >> len(group) % 64,
				}}
				if grouped {
					row.Group = strings.ReplaceAll(strings.ToValidUTF8(group, "?"), "\n", " ")
				}
				plan.Rows = append(plan.Rows, row)
			}
			var text strings.Builder
			if err := plan.WriteCSV(&text); err != nil {
				return "", err
			}
			back, err := translate.ReadResetPlan(strings.NewReader(text.String()))
			naive, fault := naivePlan(text.String())
			if err != nil || fault != "" || !cmp.Equal(back, plan) || !cmp.Equal(naive, plan) {
				return "", fmt.Errorf("%+v written as %q is read as %+v (%v), naively as %+v (%s)", plan, text.String(), back, err, naive, fault)
			}
			return "", nil
		},
		gen.SliceOf(gen.AnyString()).SuchThat(func(v []string) bool { return len(v) > 0 && !slices.Contains(v, "\ufeff") }),
		gen.Bool(),
	))
	properties.TestingRun(t)
}

func TestRefusedPlans(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	tests := []struct {
		name, text string
		line       int
	}{
		{"nothing", "", 1},
		{"only empty lines", "\n\r\n", 1},
		{"a header", "TOPIC,PARTITION,OFFSET\norders,0,5\n", 1},
		{"no offset, which Kafka's tool takes for 0", "orders,0,5\norders,1\n", 2},
		{"an empty offset", "orders,0,5\norders,1,\n", 2},
		{"a line of the other form", "g,orders,0,5\norders,1,7\n", 2},
		{"a line with a group too many", "orders,0,5\ng,orders,1,7\n", 2},
		{"an empty line in the middle", "orders,0,5\n\n\norders,1,7\n", 2},
		{"two offsets for one partition", "orders,0,5\norders,1,5\norders,0,6\n", 3},
		{"a negative offset", "orders,0,-1\n", 1},
		{"an offset out of range", "orders,0,9223372036854775808\n", 1},
		{"a partition out of range", "orders,2147483648,5\n", 1},
		{"no topic", ",0,5\n", 1},
		{"a blank in front of a topic", "g, orders,0,5\n", 1},
		{"no UTF-8", "orders,0,5\n\xff,1,5\n", 2},
		{"a byte order mark in front of a group", "\ufeffg,orders,0,5\n", 1},
		{"a line that never ends", "orders,0,5\n" + long, 2},
		{"lines that only a carriage return ends", "orders,0,5\rorders,1,7\r", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, err := translate.ReadResetPlan(strings.NewReader(tt.text))
			var fault *translate.PlanError
			if !errors.As(err, &fault) || fault.Line != tt.line {
				t.Errorf("%+v, %v, want a PlanError in line %d", plan, err, tt.line)
			}
		})
	}
}

func TestUnwritablePlans(t *testing.T) {
	row := func(group, topic string, partition int32, offset int64) translate.PlanRow {
		return translate.PlanRow{Group: group, Query: translate.Query{Topic: topic, Partition: partition, Offset: offset}}
	}
	tests := []struct {
		name string
		rows []translate.PlanRow
	}{
		{"a newline in a group", []translate.PlanRow{row("g", "orders", 0, 1), row("g\nh", "orders", 0, 1)}},
		{"a group that is not UTF-8", []translate.PlanRow{row("g", "orders", 0, 1), row("\xff", "orders", 0, 1)}},
		{"two offsets for one partition", []translate.PlanRow{row("g", "orders", 0, 1), row("g", "orders", 0, 2)}},
		{"a negative offset", []translate.PlanRow{row("g", "orders", 0, 1), row("g", "orders", 1, -1)}},
		{"a negative partition", []translate.PlanRow{row("g", "orders", 0, 1), row("g", "orders", -1, 1)}},
		{"no topic", []translate.PlanRow{row("g", "orders", 0, 1), row("g", "", 1, 1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan := translate.ResetPlan{Grouped: true, Rows: tt.rows}
			err := plan.WriteCSV(new(strings.Builder))
			var fault *translate.PlanError
			if !errors.As(err, &fault) || fault.Line != 2 {
				t.Errorf("%v, want a PlanError of row 2", err)
			}
		})
	}
	same := translate.ResetPlan{Grouped: true, Rows: []translate.PlanRow{
		row("g", "orders", 0, 1), row("h", "orders", 0, 2), row("g", "orders", 0, 1), row("g", "orders", 1, 3),
	}}
	if err := same.Validate(); err != nil {
		t.Errorf("rows that do not disagree: %v", err)
	}
}

// failing is a reader and a writer that always fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestPlanPassesErrorsOn(t *testing.T) {
	want := errors.New("disk on fire")
	if _, err := translate.ReadResetPlan(failing{want}); !errors.Is(err, want) {
		t.Errorf("read: %v, want %v", err, want)
	}
	plan := translate.ResetPlan{Rows: []translate.PlanRow{{Query: translate.Query{Topic: "orders"}}}}
	if err := plan.WriteCSV(failing{want}); !errors.Is(err, want) {
		t.Errorf("write: %v, want %v", err, want)
	}
}
