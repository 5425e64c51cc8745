// Package latency sums up durations: their extremes, mean and deviation
// exactly, their percentiles by HdrHistogram. Its memory does not grow with
// their number.
package latency

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxTracked is the longest duration that percentiles tell from longer ones. Less would save
// little: a histogram grows with the logarithm.
const maxTracked = 24 * time.Hour

// defaultDigits is how many significant digits percentiles have.
const defaultDigits = 3

// A Histogram takes in durations. The zero Histogram is empty and ready to
// use. It is not safe for concurrent use.
type Histogram struct {
	// Digits, 1 to 5, is how many significant digits percentiles have; 0 means 3. Each costs
	// about ten times the memory: 300 KiB for 3. It is read at the first Record.
	Digits int

	hdr      *hdrhistogram.Histogram
	n        uint64
	min, max time.Duration
	mean, m2 float64 // in ns, by Welford's recurrence: sums would overflow or cancel
}

// Record takes in d. A negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	if h.hdr == nil {
		digits := h.Digits
		if digits == 0 {
			digits = defaultDigits
		}
		h.hdr = hdrhistogram.New(1, int64(maxTracked), min(max(digits, 1), 5))
		h.min, h.max = d, d
	}
	h.n++
	h.min, h.max = min(h.min, d), max(h.max, d)
	delta := float64(d) - h.mean
	h.mean += delta / float64(h.n)
	h.m2 += delta * (float64(d) - h.mean)
	// Within the range that the histogram was made for, this cannot fail.
	_ = h.hdr.RecordValue(int64(min(d, maxTracked)))
}

// A Summary says how durations were distributed.
type Summary struct {
	Count                    uint64
	Min, Mean, P50, P99, Max time.Duration
	// Mdev is the standard deviation, of all rather than of a sample: of one
	// duration it is 0.
	Mdev time.Duration
}

// Summary returns what was recorded so far. ok is false if nothing was: then
// none of the durations has a value.
func (h *Histogram) Summary() (s Summary, ok bool) {
	if h.n == 0 {
		return Summary{}, false
	}
	return Summary{
		Count: h.n,
		Min:   h.min,
		Mean:  time.Duration(math.Round(h.mean)),
		P50:   h.Quantile(0.5),
		P99:   h.Quantile(0.99),
		Max:   h.max,
		Mdev:  time.Duration(math.Round(math.Sqrt(h.m2 / float64(h.n)))),
	}, true
}

// Quantile returns the duration that the share q, 0 to 1, of all do not
// exceed: 0.99 for the 99th percentile. At both ends it is exact. It is 0 if nothing was
// recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	switch {
	case h.n == 0:
		return 0
	case !(q > 0):
		return h.min
	case q >= 1:
		return h.max
	}
	return min(max(time.Duration(h.hdr.ValueAtQuantile(100*q)), h.min), h.max)
}
