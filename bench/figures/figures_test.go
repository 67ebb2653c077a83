package figures_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"apograph/bench/figures"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   figures.Spread
		text   string
	}{
		{[]float64{3}, figures.Spread{Median: 3, Least: 3, Greatest: 3}, "3.00"},
		{[]float64{9, 1, 2}, figures.Spread{Median: 2, Least: 1, Greatest: 9}, "2.00 (1.00-9.00)"},
		{[]float64{4, 1, 2, 100}, figures.Spread{Median: 3, Least: 1, Greatest: 100}, "3.00 (1.00-100)"},
		{[]float64{math.NaN(), 5, math.NaN()}, figures.Spread{Median: 5, Least: 5, Greatest: 5}, "5.00"},
	} {
		if got := figures.SpreadOf(c.values); got != c.want {
			t.Errorf("SpreadOf(%v) = %+v, want %+v", c.values, got, c.want)
		}
		if got := figures.SpreadOf(c.values).String(); got != c.text {
			t.Errorf("text of %v is %q, want %q", c.values, got, c.text)
		}
	}
	if got := figures.SpreadOf(nil); !math.IsNaN(got.Median) || got.String() != "" {
		t.Errorf("the spread of nothing is %+v, %q", got, got)
	}
	values := []float64{2, 1}
	figures.SpreadOf(values)
	if values[0] != 2 {
		t.Error("SpreadOf sorts its argument")
	}
}

func TestRatiosArePairByPair(t *testing.T) {
	got := figures.Ratios([]float64{1, 20, 9}, []float64{2, 10})
	if len(got) != 2 || got[0] != 0.5 || got[1] != 2 {
		t.Errorf("ratios %v", got)
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{math.NaN(): "n/a", 0: "0.00", 0.125: "0.125", 0.0421: "0.042", 1.006: "1.01", 9.996: "10.0", 99.94: "99.9", 99.96: "100", 12345: "12345"} {
		if got := figures.Digits(v); got != want {
			t.Errorf("Digits(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[len(hundred)-1-i] = float64(i + 1)
	}
	for p, want := range map[float64]float64{0.5: 50, 0.99: 99, 1: 100, 0: 1} {
		if got := figures.Percentile(hundred, p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
	if !math.IsNaN(figures.Percentile(nil, 0.5)) {
		t.Error("nothing has a percentile")
	}
}

// A stat whose name holds spaces, digits and parentheses.
const stat = "4242 (a) 1 (b 7) S 1 4242 4242 0 -1 4194560 1000 2000 3 4 123 45 6 7 20 0 9 0 555 1000000 2000 18446744073709551615"

func TestParseStat(t *testing.T) {
	got, err := figures.ParseStat([]byte(stat))
	if want := 1680 * time.Millisecond; err != nil || got != want {
		t.Errorf("CPU of %v (%v), want %v", got, err, want)
	}
	for _, bad := range []string{"", "1 a S 1", "1 (a) S 1 2", strings.Replace(stat, " 45 ", " x ", 1)} {
		if _, err := figures.ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a stat", bad)
		}
	}
}

func TestParsePeakRSS(t *testing.T) {
	got, err := figures.ParsePeakRSS([]byte("Name:\tx\nVmPeak:\t  99 kB\nVmHWM:\t    1234 kB\nVmRSS:\t     5 kB\n"))
	if err != nil || got != 1234*1024 {
		t.Errorf("peak of %d (%v)", got, err)
	}
	for _, bad := range []string{"Name:\tx\n", "VmHWM:\t12 MB\n", "VmHWM:\tx kB\n"} {
		if _, err := figures.ParsePeakRSS([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a status", bad)
		}
	}
}

// TestResultOf has a copy that starts after 2 s and takes 8 s for 400 records; it
// has a quarter of them after 4 s.
func TestResultOf(t *testing.T) {
	began := time.Unix(0, 0)
	at := func(second int, records int64, own, source, target time.Duration) figures.Sample {
		return figures.Sample{At: began.Add(time.Duration(second) * time.Second), Records: records, Own: own, Source: source, Target: target}
	}
	s := time.Second
	r := figures.ResultOf([]figures.Sample{
		at(0, 0, 0, 10*s, 20*s), at(2, 0, 3*s, 11*s, 22*s), at(3, 60, 4*s, 12*s, 24*s), at(4, 100, 5*s, 13*s, 26*s),
		at(10, 400, 11*s, 19*s, 38*s), at(12, 400, 12*s, 20*s, 40*s),
	}, 13*s, 400, 4e9)
	for name, c := range map[string]struct{ got, want float64 }{
		"start":               {r.Start, 3},
		"whole":               {r.Whole.Seconds, 12},
		"whole CPU":           {r.Whole.CPU, 13},
		"source CPU":          {r.Whole.SourceCPU, 10},
		"copy":                {r.Copy.Seconds, 8},
		"copy's CPU":          {r.Copy.CPU, 8},
		"last":                {r.Last.Seconds, 6},
		"last bytes":          {r.Last.Payload, 3e9},
		"last CPU":            {r.Last.CPU, 6},
		"last target CPU":     {r.Last.TargetCPU, 12},
		"CPU per GB":          {r.CPUPerGB(), 13. / 4},
		"speed":               {r.Speed(), 500},
		"with target":         {r.WithTargetPerGB(), 13./4 + 20./4},
		"first record":        {r.StartSeconds(), 3},
		"CPU per GB in whole": {r.WholeCPUPerGB(), 13. / 4},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, c.got, c.want)
		}
	}
	r.Warm = true
	if got := r.CPUPerGB(); got != 2 {
		t.Errorf("%v CPU-s/GB once warm, want 2", got)
	}
	if got := r.Speed(); got != 500 {
		t.Errorf("%v MB/s once warm, want 500", got)
	}
}

// TestResultOfDroppedBytes: a floor has nothing at the target.
func TestResultOfDroppedBytes(t *testing.T) {
	began := time.Unix(0, 0)
	r := figures.ResultOf([]figures.Sample{{At: began}, {At: began.Add(time.Second)}, {At: began.Add(2 * time.Second)}}, time.Second, 10, 1e9)
	if r.Speed() != 500 || r.CPUPerGB() != 1 || !math.IsNaN(r.StartSeconds()) {
		t.Errorf("%v MB/s, %v CPU-s/GB, start %v", r.Speed(), r.CPUPerGB(), r.StartSeconds())
	}
}

// copied returns a result of 1 GB in a second.
func copied(row, candidate string, repeat int, cpu float64) figures.Result {
	span := figures.Span{Seconds: 1, Payload: 1e9, CPU: cpu, TargetCPU: 1}
	return figures.Result{Row: row, Candidate: candidate, Repeat: repeat, Payload: 1e9, Whole: span, Copy: span, Last: span}
}

func TestTable(t *testing.T) {
	got := figures.Table([]figures.Result{
		copied("a", figures.Apograph, 0, 1), copied("a", figures.Floor, 0, 0.5), copied("a", figures.Apograph, 1, 2),
	})
	want := "| row | candidate | CPU-s/GB | MB/s | target broker CPU-s/GB | whole CPU-s/GB |\n| --- | --- | --- | --- | --- | --- |\n" +
		"| a | apograph | 1.50 (1.00-2.00) | 1000 | 1.00 | 1.50 (1.00-2.00) |\n| a | floor | 0.500 | 1000 |  | 0.500 |\n"
	if got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
	if got := figures.Table(nil); got != "" {
		t.Errorf("table of nothing: %q", got)
	}
}

// TestVerdicts holds a row against its targets: 0.2 of the copier's CPU where 0.35
// is to be reached, a third of the better MirrorMaker's where an eighth is.
func TestVerdicts(t *testing.T) {
	got := figures.Verdicts(figures.Targets(), []figures.Result{
		copied("1k-lz4", figures.Apograph, 0, 1), copied("1k-lz4", figures.Copier, 0, 5),
		copied("1k-lz4", figures.MM2, 0, 30), copied("1k-lz4", figures.MM2Tuned, 0, 3),
	})
	for _, want := range []string{
		"| 1k-lz4 | CPU-s/GB | copier | 0.200 | <= 0.350x | met |",
		"| 1k-lz4 | CPU-s/GB | mm2-tuned | 0.333 | <= 0.125x | **missed** |",
		"| 1k-lz4 | MB/s | copier | 1.00 | >= 2.00x | **missed** |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "| 1k-none |") || strings.Contains(got, "RSS") {
		t.Errorf("what was not measured is judged:\n%s", got)
	}
}

// TestVerdictOfDifference: the tail's latency may be 5 ms above the copier's.
func TestVerdictOfDifference(t *testing.T) {
	for own, want := range map[float64]string{14: "| 4.00 | <= +5.00 | met |", 16: "| 6.00 | <= +5.00 | **missed** |"} {
		got := figures.Verdicts(figures.Targets(), []figures.Result{
			{Row: "tail", Candidate: figures.Apograph, LatencyP99: own}, {Row: "tail", Candidate: figures.Copier, LatencyP99: 10},
		})
		if !strings.Contains(got, want) {
			t.Errorf("%v ms against 10 ms:\n%s", own, got)
		}
	}
}

func TestNothingCopiedHasNoFigures(t *testing.T) {
	r := figures.ResultOf([]figures.Sample{{At: time.Unix(0, 0)}, {At: time.Unix(1, 0)}}, time.Second, 0, 0)
	for name, v := range map[string]float64{"CPU": r.CPUPerGB(), "whole CPU": r.WholeCPUPerGB(), "speed": r.Speed(), "brokers": r.TargetCPUPerGB()} {
		if !math.IsNaN(v) {
			t.Errorf("%s is %v", name, v)
		}
	}
	if r.Whole.CPU != 1 {
		t.Errorf("%v s of CPU", r.Whole.CPU)
	}
}
