package fuzz

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"apograph/translate"
)

// FuzzReadResetPlan takes bytes as a file of offsets. Nothing may panic, what
// is refused is refused with the line, and what is read holds as many rows as
// there are lines with something in them, is valid, and is the same when it is
// written and read again.
func FuzzReadResetPlan(f *testing.F) {
	for _, text := range []string{
		"orders,0,881204\n",
		"billing,orders,0,881204\nbilling,orders,1,0\n",
		"\"nightly \"\"report\"\"\",\"a-topic-name-of-more-than-24-characters\",12,9223372036854775807\r\n\n",
		"g,7,0,\ng,8,0,\n",
		"\"g\r\" \t,orders, +3 ,\"5\",\n",
		"orders,0,5\rorders,1,6\n",
		"orders,0\norders,,\n",
		"\ufefforders,0,5\n",
		"TOPIC,PARTITION,OFFSET\n",
		"orders,0,5\norders,0,6\n",
		"\"orders,0,5",
		"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, err := translate.ReadResetPlan(bytes.NewReader(data))
		if err != nil {
			var fault *translate.PlanError
			if !errors.As(err, &fault) || fault.Line < 1 || fault.Line > 1+bytes.Count(data, []byte("\n")) {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		if lines := filledLines(data); lines != len(plan.Rows) {
			t.Fatalf("%q: %d rows of %d lines", data, len(plan.Rows), lines)
		}
		checkRewritten(t, plan)
	})
}

func filledLines(data []byte) int {
	filled := 0
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if len(bytes.Trim(line, "\r")) > 0 {
			filled++
		}
	}
	return filled
}

func checkRewritten(t *testing.T, plan translate.ResetPlan) {
	t.Helper()
	if err := plan.Validate(); err != nil {
		t.Fatalf("%+v: %v", plan, err)
	}
	var text strings.Builder
	if err := plan.WriteCSV(&text); err != nil {
		t.Fatalf("write %+v: %v", plan, err)
	}
	again, err := translate.ReadResetPlan(strings.NewReader(text.String()))
	if err != nil || !reflect.DeepEqual(again, plan) {
		t.Fatalf("%+v, written as %q, is read as %+v, %v", plan, text.String(), again, err)
	}
}

// FuzzParseQuery takes an argument of the command line. What is accepted says
// nothing but what it is read as.
func FuzzParseQuery(f *testing.F) {
	for _, text := range []string{"orders:0:881204", "a.b-c_d:12:0", ":0:0", "orders:-1:5", "orders:0:9223372036854775808", "a:b:0:5", " orders: 1 :2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, err := translate.ParseQuery(text)
		if err != nil {
			return
		}
		plan := translate.ResetPlan{Rows: []translate.PlanRow{{Query: query}}}
		checkRewritten(t, plan)
		if topic, _, _ := strings.Cut(text, ":"); topic != query.Topic || strings.Count(text, ":") != 2 {
			t.Fatalf("%q is read as %+v", text, query)
		}
	})
}
