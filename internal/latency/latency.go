// Package latency sums up durations: their extremes, mean and deviation
// exactly, their percentiles by HdrHistogram. Its memory does not grow with
// their number.
package latency

import (
	"io"
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
	if h.n == 0 {
		h.min, h.max = d, d
	}
	if h.hdr == nil {
		digits := h.Digits
		if digits == 0 {
			digits = defaultDigits
		}
		h.hdr = hdrhistogram.New(1, int64(maxTracked), min(max(digits, 1), 5))
	}
	h.n++
	h.min, h.max = min(h.min, d), max(h.max, d)
	delta := float64(d) - h.mean
	h.mean += delta / float64(h.n)
	h.m2 += delta * (float64(d) - h.mean)
	// Within the range that the histogram was made for, this cannot fail.
	_ = h.hdr.RecordValue(int64(min(d, maxTracked)))
}

// Merge takes in what o has recorded, which must have the same Digits.
func (h *Histogram) Merge(o *Histogram) {
	switch {
	case o.n == 0:
		return
	case h.n == 0:
		h.Digits = o.Digits
		h.Record(o.min) // makes the histogram
		h.hdr.Reset()
		h.n, h.mean, h.m2 = 0, 0, 0
		h.min, h.max = o.min, o.max
	}
	h.min, h.max = min(h.min, o.min), max(h.max, o.max)
	total := float64(h.n + o.n)
	delta := o.mean - h.mean
	h.m2 += o.m2 + delta*delta*float64(h.n)*float64(o.n)/total
	h.mean += delta * float64(o.n) / total
	h.n += o.n
	h.hdr.Merge(o.hdr)
}

// Reset forgets everything, but keeps the memory.
func (h *Histogram) Reset() {
	if h.hdr != nil {
		h.hdr.Reset()
	}
	h.n, h.mean, h.m2, h.min, h.max = 0, 0, 0, 0, 0
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.n }

// A Log is a file in the log format of HdrHistogram, in nanoseconds.
type Log struct {
	w *hdrhistogram.HistogramLogWriter
}

// NewLog begins a log.
func NewLog(w io.Writer, start time.Time) (*Log, error) {
	l := &Log{hdrhistogram.NewHistogramLogWriter(w)}
	if err := l.w.OutputLogFormatVersion(); err != nil {
		return nil, err
	}
	if err := l.w.OutputStartTime(start.UnixMilli()); err != nil {
		return nil, err
	}
	return l, l.w.OutputLegend()
}

// Write writes h as one interval.
func (l *Log) Write(h *Histogram, tag string, start, end time.Time) error {
	hdr := h.hdr
	if hdr == nil {
		hdr = hdrhistogram.New(1, int64(maxTracked), defaultDigits)
	}
	hdr.SetTag(tag)
	hdr.SetStartTimeMs(start.UnixMilli())
	hdr.SetEndTimeMs(end.UnixMilli())
	return l.w.OutputIntervalHistogram(hdr)
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
