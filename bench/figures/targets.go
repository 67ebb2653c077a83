package figures

// Figures that targets name.
var (
	cpu         = Figure{"CPU-s/GB", (*Result).CPUPerGB}
	withTarget  = Figure{"CPU-s/GB with the target broker's", (*Result).WithTargetPerGB}
	speed       = Figure{"MB/s", (*Result).Speed}
	memory      = Figure{"peak RSS MB", (*Result).PeakMB}
	ledgerBytes = Figure{"ledger bytes/GB", (*Result).LedgerPerGB}
	p99         = Figure{"p99 ms", func(r *Result) float64 { return unlessZero(r.LatencyP99) }}
	rate        = Figure{"offsets/s per core", func(r *Result) float64 { return unlessZero(r.OffsetsPerCPU) }}
	start       = Figure{"first record after s", (*Result).StartSeconds}
)

var mirrorMakers = []string{MM2, MM2Tuned}

// Targets returns what the product is to reach, row by row.
func Targets() []Target {
	var all []Target
	for _, row := range []struct {
		name           string
		copier, mirror float64 // of the candidate's CPU
		compressed     bool
	}{
		{"1k-none", 0.75, 1. / 8, false},
		{"1k-lz4", 0.35, 1. / 8, true},
		{"1k-zstd", 0.25, 1. / 6, true},
		{"1k-gzip", 0.35, 1. / 6, true},
		{"1k-snappy", 0.5, 1. / 8, true},
		{"100b-none", 0.4, 1. / 20, false},
		{"100b-lz4", 0.25, 1. / 20, true},
		{"100b-zstd", 0.2, 1. / 20, true},
		{"batch-16k", 0.5, 1. / 5, true},
	} {
		least := 1.
		if row.compressed {
			least = 2
		}
		all = append(all,
			atMost(row.name, cpu, row.copier, Copier), atMost(row.name, cpu, row.mirror, mirrorMakers...),
			atLeast(row.name, speed, least, Copier), atLeast(row.name, speed, 3, mirrorMakers...),
			atMost(row.name, memory, 200), atMost(row.name, memory, 1./5, mirrorMakers...))
	}
	for _, row := range []string{"batch-4k", "batch-4k-none", "batch-1-none", "batch-1-lz4"} {
		all = append(all, atMost(row, withTarget, 1, Copier), atMost(row, withTarget, 1./4, mirrorMakers...), atLeast(row, speed, 1, Copier))
	}
	all = append(all,
		atMost("parts-1000", memory, 400),
		Target{Row: "tail", Candidate: Apograph, Figure: p99, Against: []string{Copier}, More: 5},
		atMost("tail", p99, 1./4, mirrorMakers...),
		atMost("start", start, 1), atMost("start-100m", start, 1),
		atLeast("translate", rate, 1e6), atMost("translate", p99, 0.1),
		atLeast("verify-full", speed, 0.8, Reader),
		atMost("no-ledger-none", cpu, 1.1, Unproven), atMost("no-ledger-snappy", cpu, 1.1, Unproven),
		atMost("no-ledger-snappy", cpu, 1.1, Decompressed), atMost("no-ledger-lz4", cpu, 1.1, Decompressed),
	)
	for _, f := range []Figure{cpu, memory, ledgerBytes} {
		all = append(all, Target{Row: "size-10g", Candidate: Apograph, Figure: f, Than: "size-1g", Bound: 1.2})
	}
	all = append(all, Target{Row: "parts-1000", Candidate: Apograph, Figure: cpu, Than: "1k-lz4", Bound: 1.2})
	for _, row := range []string{"rtt-source-1-16k", "rtt-target-1-16k"} {
		all = append(all, atLeast(row, speed, 1, Copier), atLeast(row, speed, 1, MM2Tuned))
	}
	return all
}

func atMost(row string, f Figure, bound float64, against ...string) Target {
	return Target{Row: row, Candidate: Apograph, Figure: f, Against: against, Bound: bound}
}

func atLeast(row string, f Figure, bound float64, against ...string) Target {
	t := atMost(row, f, bound, against...)
	t.AtLeast = true
	return t
}
