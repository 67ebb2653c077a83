package translate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/ledger"
	"apograph/translate"
)

// TestSheetAgainstSingleQuestions asks random files of offsets, of several
// partitions in no order, and each row of them alone.
func TestSheetAgainstSingleQuestions(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(propertySeed)
	parameters.MinSuccessfulTests = 60
	parameters.MaxSize = 60
	directory := t.TempDir()
	properties := gopter.NewProperties(parameters)
	properties.Property("a row is answered as alone, in its place", prop.ForAll(
		func(numbers []uint32, seed int64) (ok bool, err error) {
			rng := rand.New(rand.NewSource(seed))
			l, err := create(filepath.Join(directory, strconv.FormatInt(rng.Int63(), 36)+".ledger"))
			if err != nil {
				return false, err
			}
			defer func() { err = errors.Join(err, checkAndClose(l)) }()
			books := make(map[int32]translate.Books)
			for partition := range int32(3) {
				part := numbers[len(numbers)*int(partition)/3 : len(numbers)*int(partition+1)/3]
				if books[partition], err = decode(part).book(l, partition); err != nil {
					return false, err
				}
			}
			for _, reverse := range []bool{false, true} {
				if err := checkSheet(l, books, rng, reverse); err != nil {
					return false, err
				}
			}
			return true, nil
		},
		gen.SliceOf(gen.UInt32()), gen.Int64(),
	))
	properties.TestingRun(t)
}

// checkSheet compares a sheet of random rows with single questions to books.
func checkSheet(l *ledger.Ledger, books map[int32]translate.Books, rng *rand.Rand, reverse bool) error {
	plan := randomRows(rng, reverse)
	var text strings.Builder
	if err := plan.WriteCSV(&text); err != nil {
		return err
	}
	sheet, err := translate.ReadSheet(strings.NewReader(text.String()))
	if err != nil {
		return err
	}
	if err := sheet.Translate(context.Background(), translate.NewIndex(l), reverse); err != nil {
		return err
	}
	transfers := make([]translate.Transfer, 0, len(plan.Rows))
	for transfer := range sheet.Transfers() {
		transfers = append(transfers, *transfer)
	}
	exact := true
	for i, row := range plan.Rows {
		want := translate.Result{SourceOffset: row.Offset, TargetOffset: translate.NoOffset, CopiedTo: translate.NoOffset}
		var pair ledger.Pair
		b, ok := books[row.Partition]
		one := translate.Forward
		if reverse {
			want.SourceOffset, want.TargetOffset = want.TargetOffset, want.SourceOffset
			one = translate.Reverse
		}
		if ok && row.Topic != "none" {
			if want, err = one(b, row.Offset); err != nil {
				return err
			}
			pair, _ = l.Pair(b.Pair)
		} else {
			want.Detail = transfers[i].Detail
		}
		got := transfers[i]
		if got.PlanRow != row || got.Result != want || got.Pair.ID != pair.ID || !reflect.DeepEqual(got.Answer, sheet.Answer(i)) {
			return fmt.Errorf("reverse %t, row %d of %d, %+v: %+v of pair %d, want %+v of pair %d",
				reverse, i, len(plan.Rows), row, got.Answer, got.Pair.ID, want, pair.ID)
		}
		exact = exact && want.Status.IsExact()
	}
	if len(transfers) != len(plan.Rows) || sheet.IsExact() != exact {
		return fmt.Errorf("%d transfers of %d rows, exact %t, want %t", len(transfers), len(plan.Rows), sheet.IsExact(), exact)
	}
	return nil
}

// randomRows returns a plan about the partitions 0 to 3 of a topic with a book,
// and of one without. Now and then it takes more than one piece of memory.
func randomRows(rng *rand.Rand, reverse bool) translate.ResetPlan {
	plan := translate.ResetPlan{Grouped: true}
	topic := "orders"
	if reverse {
		topic = "b.orders"
	}
	n := rng.Intn(200) + 1
	if rng.Intn(10) == 0 {
		n += 9000
	}
	for i := range n {
		row := translate.PlanRow{Group: fmt.Sprintf("g %d", i/3), Query: translate.Query{Topic: topic, Partition: int32(rng.Intn(4)), Offset: int64(rng.Intn(300))}}
		if rng.Intn(10) == 0 {
			row.Topic = "none"
		}
		// The first row of a group says what the others of its partition say too.
		for _, other := range plan.Rows[max(0, len(plan.Rows)-3):] {
			if other.Group == row.Group && other.Topic == row.Topic && other.Partition == row.Partition {
				row.Offset = other.Offset
			}
		}
		plan.Rows = append(plan.Rows, row)
	}
	return plan
}

// naiveFault returns the line of the first row that cannot be acted upon, by the
// definition of Validate; 0 if there is none.
func naiveFault(p *translate.ResetPlan) int {
	type key struct {
		group, topic string
		partition    int32
	}
	first := make(map[key]int64)
	for i, row := range p.Rows {
		if row.Partition < 0 || row.Offset < 0 || strings.ContainsAny(row.Topic, " /") || row.Topic == "" || row.Group == "\xff" {
			return i + 1
		}
		k := key{row.Group, row.Topic, row.Partition}
		if offset, ok := first[k]; ok && offset != row.Offset {
			return i + 1
		} else if !ok {
			first[k] = row.Offset
		}
	}
	return 0
}

func TestValidateFindsTheFirstFault(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	found, clean := 0, 0
	for range 3000 {
		plan := translate.ResetPlan{Grouped: true}
		rare := func(value, otherwise string) string {
			if rng.Intn(60) == 0 {
				return value
			}
			return otherwise
		}
		for range rng.Intn(12) + 1 {
			row := translate.PlanRow{Group: rare("\xff", fmt.Sprint("g", rng.Intn(3)))}
			row.Topic, row.Partition, row.Offset = rare("a b", fmt.Sprint("t", rng.Intn(3))), int32(rng.Intn(40)/39*-1+rng.Intn(3)), int64(rng.Intn(40)/39*-2+rng.Intn(2))
			plan.Rows = append(plan.Rows, row)
		}
		want, got := naiveFault(&plan), 0
		var fault *translate.PlanError
		if errors.As(plan.Validate(), &fault) {
			got = fault.Line
		}
		if got != want {
			t.Fatalf("%+v: line %d, want %d: %v", plan.Rows, got, want, fault)
		}
		if want > 0 {
			found++
		} else {
			clean++
		}
	}
	if found < 500 || clean < 500 {
		t.Errorf("%d plans have a fault and %d none", found, clean)
	}
}

// TestReadsPlainLinesAsOthers: a file reads the same whether its values stand in
// quotes, with blanks and zeros around, or as they are written mostly.
func TestReadsPlainLinesAsOthers(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	for range 300 {
		plan := translate.ResetPlan{Grouped: rng.Intn(2) == 0}
		var plain, odd strings.Builder
		for i := range rng.Intn(20) + 1 {
			row := translate.PlanRow{Query: translate.Query{Topic: fmt.Sprint("topic-", rng.Intn(3)), Partition: rng.Int31() >> rng.Intn(31), Offset: rng.Int63() >> rng.Intn(63)}}
			if plan.Grouped {
				row.Group = fmt.Sprint("group ", i)
				fmt.Fprintf(&plain, "%s,", row.Group)
				fmt.Fprintf(&odd, "%q , ", row.Group)
			}
			row.Topic += fmt.Sprint(i)
			fmt.Fprintf(&plain, "%s,%d,%d\n", row.Topic, row.Partition, row.Offset)
			fmt.Fprintf(&odd, "%s,%q,  +0%d ,\r\n", row.Topic, fmt.Sprint(row.Partition), row.Offset)
			plan.Rows = append(plan.Rows, row)
		}
		text := strings.ReplaceAll(odd.String(), "\" , ", "\",")
		for _, text := range []string{plain.String(), text} {
			if got, err := translate.ReadResetPlan(strings.NewReader(text)); err != nil || !reflect.DeepEqual(got, plan) {
				t.Fatalf("%q: %+v, %v, want %+v", text, got, err, plan)
			}
		}
	}
}

func TestSheetOfGroups(t *testing.T) {
	row := func(group, topic string, offset int64) translate.PlanRow {
		return translate.PlanRow{Group: group, Query: translate.Query{Topic: topic, Offset: offset}}
	}
	plan := translate.ResetPlan{Grouped: true, Rows: []translate.PlanRow{row("a", "s", 1), row("b", "t", 2), row("a", "t", 3), row("c", "t", 4)}}
	sheet := translate.NewSheet(&plan)
	if !sheet.HasGroup("c") || sheet.HasGroup("d") {
		t.Error("HasGroup: it has a, b and c")
	}
	sheet.KeepGroups([]string{"c", "a", "d"})
	if got := sheet.Plan(); !reflect.DeepEqual(got.Rows, slices.Delete(slices.Clone(plan.Rows), 1, 2)) || !got.Grouped || sheet.HasGroup("b") {
		t.Errorf("a and c: %+v", got)
	}
	sheet = translate.NewSheet(&translate.ResetPlan{Rows: []translate.PlanRow{row("", "s", 1), row("", "t", 2)}})
	sheet.SetGroup("g")
	want := translate.ResetPlan{Grouped: true, Rows: []translate.PlanRow{row("g", "s", 1), row("g", "t", 2)}}
	if got := sheet.Plan(); !reflect.DeepEqual(got, want) || sheet.Len() != 2 {
		t.Errorf("%+v, want %+v", got, want)
	}
	sheet.SetGroup("bad \xff")
	var fault *translate.PlanError
	if err := sheet.Validate(); !errors.As(err, &fault) || fault.Line != 1 {
		t.Errorf("%v, want a fault in line 1", err)
	}
}

// TestRefusesNumbersTooLarge: a number is refused in any line that it would be
// refused in as the first.
func TestRefusesNumbersTooLarge(t *testing.T) {
	for _, line := range []string{
		"t,2147483648,0", "t,9999999999,0", "t,99999999999999999999,0", "t,0,9223372036854775808", "t,0,9999999999999999999",
		"t,0,99999999999999999999", "t,-1,0", "t,0,-1", "t,0", "t,,0", "t,0,", "t,0,1x",
	} {
		for _, before := range []string{"", "s,0,0\n", "s,0,0\ns,1,0\n"} {
			_, err := translate.ReadResetPlan(strings.NewReader(before + line + "\n"))
			var fault *translate.PlanError
			if !errors.As(err, &fault) || fault.Line != 1+strings.Count(before, "\n") {
				t.Errorf("%q behind %q: %v", line, before, err)
			}
		}
	}
	const largest = "s,0,0\nt,2147483647,9223372036854775807\n"
	if plan, err := translate.ReadResetPlan(strings.NewReader(largest)); err != nil || plan.Rows[1].Partition != 1<<31-1 || plan.Rows[1].Offset != 1<<63-1 {
		t.Errorf("%+v, %v", plan, err)
	}
}
