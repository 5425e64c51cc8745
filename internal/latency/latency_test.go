package latency

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

func repeat(n int, ds ...time.Duration) []time.Duration { return slices.Repeat(ds, n) }

func TestSummary(t *testing.T) {
	const us = time.Microsecond
	for _, tt := range []struct {
		name string
		in   []time.Duration
		want Summary
	}{
		{"one duration deviates by nothing and is every percentile", repeat(1, 123456789),
			Summary{Count: 1, Min: 123456789, Mean: 123456789, P50: 123456789, P99: 123456789, Max: 123456789}},
		{"small steady durations deviate by no more than they differ", repeat(5, 10*us, 11*us),
			Summary{Count: 10, Min: 10 * us, Mean: 10500, P50: 10003, P99: 11 * us, Max: 11 * us, Mdev: 500}},
		{"a million of long ones do not overflow", repeat(1_000_000, 2*time.Hour),
			Summary{Count: 1_000_000, Min: 2 * time.Hour, Mean: 2 * time.Hour, P50: 2 * time.Hour, P99: 2 * time.Hour, Max: 2 * time.Hour}},
		{"longer than tracked ones keep the extremes exact", repeat(1, 72*time.Hour, 0),
			Summary{Count: 2, Max: 72 * time.Hour, Mean: 36 * time.Hour, P50: 0, P99: 24 * time.Hour, Mdev: 36 * time.Hour}},
		{"a negative one counts as none", repeat(1, -us), Summary{Count: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h Histogram
			for _, d := range tt.in {
				h.Record(d)
			}
			got, ok := h.Summary()
			if !ok {
				t.Fatal("no summary")
			}
			near := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() <= max(a, b)/1000 })
			if diff := cmp.Diff(tt.want, got, near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Min != tt.want.Min || got.Max != tt.want.Max || got.Mdev != tt.want.Mdev {
				t.Errorf("extremes and deviation are not exact: %+v", got)
			}
		})
	}
}

func TestNothingHasNoSummary(t *testing.T) {
	var h Histogram
	if s, ok := h.Summary(); ok || s != (Summary{}) || h.Quantile(0.5) != 0 {
		t.Errorf("got %+v, %v", s, ok)
	}
}

func TestQuantilesAreOrderedAndNearTheTruth(t *testing.T) {
	for _, digits := range []int{0, 2, 3} {
		h := Histogram{Digits: digits}
		r := rand.New(rand.NewPCG(1, 2))
		var all []time.Duration
		for range 10_000 {
			d := time.Duration(r.ExpFloat64() * float64(100*time.Microsecond))
			all = append(all, d)
			h.Record(d)
		}
		slices.Sort(all)
		last := time.Duration(0)
		for _, q := range []float64{0, 0.001, 0.5, 0.9, 0.99, 0.999, 1} {
			got := h.Quantile(q)
			if got < last {
				t.Errorf("quantile %v is %v, less than the one before, %v", q, got, last)
			}
			last = got
			want := all[max(int(math.Ceil(q*float64(len(all))))-1, 0)]
			if diff := (got - want).Abs(); float64(diff) > 0.02*float64(want)+10 {
				t.Errorf("%d digits: quantile %v is %v, want about %v", digits, q, got, want)
			}
		}
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	var h Histogram
	h.Record(1)
	if n := testing.AllocsPerRun(1000, func() { h.Record(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMergedHistogramsAreAsIfRecordedInOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var all, merged Histogram
	for range 5 {
		var part Histogram
		for range 1000 {
			d := time.Duration(r.ExpFloat64() * float64(time.Millisecond))
			all.Record(d)
			part.Record(d)
		}
		merged.Merge(&part)
		part.Reset()
		merged.Merge(&part) // nothing
	}
	want, _ := all.Summary()
	got, _ := merged.Summary()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	merged.Reset()
	merged.Record(time.Second)
	if s, _ := merged.Summary(); s.Min != time.Second || s.Mean != time.Second || s.Count != 1 {
		t.Errorf("after Reset: %+v", s)
	}
}

func TestALogIsReadBack(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.Record(time.Duration(i) * time.Microsecond)
	}
	var b bytes.Buffer
	start := time.UnixMilli(1_700_000_000_000)
	log, err := NewLog(&b, start)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range []*Histogram{&h, new(Histogram), &h} {
		at := start.Add(time.Duration(i) * time.Minute)
		if err := log.Write(h, "rtt", at, at.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	r := hdrhistogram.NewHistogramLogReader(&b)
	for i, count := range []int64{1000, 0, 1000} {
		got, err := r.NextIntervalHistogram()
		if err != nil || got == nil {
			t.Fatal(got, err)
		}
		at := start.Add(time.Duration(i) * time.Minute)
		if got.TotalCount() != count || got.Tag() != "rtt" || got.StartTimeMs() != at.UnixMilli() || got.EndTimeMs() != at.Add(time.Second).UnixMilli() {
			t.Errorf("interval %d: %d values, tag %q, from %d to %d", i, got.TotalCount(), got.Tag(), got.StartTimeMs(), got.EndTimeMs())
		}
		if count > 0 && time.Duration(got.ValueAtQuantile(50)) != h.Quantile(0.5) {
			t.Errorf("interval %d: p50 %d", i, got.ValueAtQuantile(50))
		}
	}
}
