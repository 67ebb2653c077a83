package figures

import (
	"math"
	"time"
)

// A Sample is what was to be seen at one moment of a copy.
type Sample struct {
	At             time.Time
	Records        int64         // at the target
	Own            time.Duration // CPU of the candidate since its start
	Source, Target time.Duration // CPU of the brokers, since whenever
}

// A Span is a part of a copy: how long it took, which part of the bytes arrived in
// it, and what CPU everybody used meanwhile. Times are in seconds.
type Span struct {
	Seconds   float64 `json:"seconds"`
	Payload   float64 `json:"payload"` // bytes of keys and values
	CPU       float64 `json:"cpu"`
	SourceCPU float64 `json:"source_cpu"`
	TargetCPU float64 `json:"target_cpu"`
}

// A Result is one copy by one candidate.
type Result struct {
	Row       string `json:"row"`
	Candidate string `json:"candidate"`
	Repeat    int    `json:"repeat"`

	Records int64   `json:"records"`
	Payload int64   `json:"payload"` // bytes of keys and values
	Wire    float64 `json:"wire"`    // bytes of the source's batches; 0 if not known
	Warm    bool    `json:"warm"`    // its figures are those of the last three quarters

	Start float64 `json:"start"` // seconds from the process's start until something was at the target
	Whole Span    `json:"whole"` // from the process's start to its end
	Copy  Span    `json:"copy"`  // from just before the first record at the target to the last
	Last  Span    `json:"last"`  // the last three quarters of the records

	PeakRSS     int64 `json:"peak_rss"`
	LedgerBytes int64 `json:"ledger_bytes,omitempty"`

	LatencyP50 float64 `json:"latency_p50,omitempty"` // milliseconds
	LatencyP99 float64 `json:"latency_p99,omitempty"`

	OffsetsPerCPU float64 `json:"offsets_per_cpu,omitempty"` // translated in a second of CPU
}

// ResultOf makes a result of the samples of a copy, the first of them from before
// the process's start. Own is all that the process has used. Without anything at
// the target, as where the bytes are dropped, Copy and Last are as Whole.
func ResultOf(samples []Sample, own time.Duration, records, payload int64) Result {
	r := Result{Records: records, Payload: payload}
	last := len(samples) - 1
	samples[last].Own = max(samples[last].Own, own)
	r.Whole = span(samples[0], samples[last], 1, payload)
	r.Copy, r.Last = r.Whole, r.Whole
	first, quarter, all := last, last, last
	for i := last; i >= 0; i-- {
		if samples[i].Records >= records {
			all = i
		}
		if samples[i].Records*4 >= records {
			quarter = i
		}
		if samples[i].Records > 0 {
			first = i
		}
	}
	if first == 0 || samples[last].Records == 0 {
		return r
	}
	r.Start = samples[first].At.Sub(samples[0].At).Seconds()
	r.Copy = span(samples[first-1], samples[all], 1, payload)
	if quarter < all {
		part := 1 - float64(samples[quarter].Records)/float64(records)
		r.Last = span(samples[quarter], samples[all], part, payload)
	} else {
		r.Last = r.Copy
	}
	return r
}

func span(from, to Sample, part float64, payload int64) Span {
	return Span{
		Seconds: to.At.Sub(from.At).Seconds(), Payload: part * float64(payload),
		CPU: (to.Own - from.Own).Seconds(), SourceCPU: (to.Source - from.Source).Seconds(), TargetCPU: (to.Target - from.Target).Seconds(),
	}
}

// steady is the span whose CPU counts: all of it, or what a virtual machine does
// once it is warm.
func (r *Result) steady() *Span {
	if r.Warm {
		return &r.Last
	}
	return &r.Whole
}

// CPUPerGB returns the seconds of CPU for 10^9 bytes of keys and values.
func (r *Result) CPUPerGB() float64 { return perGB(r.steady().CPU, r.steady()) }

// SourceCPUPerGB is CPUPerGB of the source's brokers; NaN if they are fakes.
func (r *Result) SourceCPUPerGB() float64 {
	return unlessZero(perGB(r.steady().SourceCPU, r.steady()))
}

// TargetCPUPerGB is CPUPerGB of the target's brokers; NaN of what sends them
// nothing, and of fakes.
func (r *Result) TargetCPUPerGB() float64 {
	if r.Candidate == Floor || r.Candidate == Reader {
		return math.NaN()
	}
	return unlessZero(perGB(r.steady().TargetCPU, r.steady()))
}

// WithTargetPerGB is the CPU of the candidate and of the target's brokers.
func (r *Result) WithTargetPerGB() float64 { return r.CPUPerGB() + r.TargetCPUPerGB() }

// WholeCPUPerGB is CPUPerGB with start and end, whoever it is.
func (r *Result) WholeCPUPerGB() float64 { return perGB(r.Whole.CPU, &r.Whole) }

// Speed returns 10^6 bytes of keys and values a second, from the first record at
// the target to the last, or of the last three quarters; NaN where there were none.
func (r *Result) Speed() float64 {
	s := &r.Copy
	if r.Warm {
		s = &r.Last
	}
	return unlessZero(s.Payload / s.Seconds / 1e6)
}

// WireSpeed is Speed in bytes of the source's batches; NaN if they are not known.
func (r *Result) WireSpeed() float64 {
	if r.Wire == 0 {
		return math.NaN()
	}
	return r.Speed() * r.Wire / float64(r.Payload)
}

// PeakMB returns the most resident memory, in 10^6 bytes; NaN if it was not
// measured.
func (r *Result) PeakMB() float64 { return unlessZero(float64(r.PeakRSS) / 1e6) }

// LedgerPerGB returns the bytes of ledger for 10^9 bytes of keys and values; NaN
// of a candidate that keeps none.
func (r *Result) LedgerPerGB() float64 {
	if r.LedgerBytes == 0 {
		return math.NaN()
	}
	return float64(r.LedgerBytes) / float64(r.Payload) * 1e9
}

// StartSeconds returns how long it took until something was at the target; NaN
// where that cannot be seen.
func (r *Result) StartSeconds() float64 {
	if r.Start == 0 {
		return math.NaN()
	}
	return r.Start
}

// perGB is NaN where no bytes were copied.
func perGB(seconds float64, s *Span) float64 {
	if s.Payload == 0 {
		return math.NaN()
	}
	return seconds / s.Payload * 1e9
}
