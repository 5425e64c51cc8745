package netem

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseTakesWhatTCTakes(t *testing.T) {
	for text, want := range map[string]Spec{
		"":                         {},
		"  ":                       {},
		"delay 10ms":               {Delay: 10 * time.Millisecond},
		"delay 250":                {Delay: 250 * time.Microsecond},
		"delay 1.5s 200usecs 25%":  {Delay: 1500 * time.Millisecond, Jitter: 200 * time.Microsecond, DelayCorrelation: 0.25},
		"loss 5%":                  {Loss: 0.05},
		"loss random 0.5% 25%":     {Loss: 0.005, LossCorrelation: 0.25},
		"loss 100":                 {Loss: 1},
		"duplicate 1% corrupt .1%": {Duplicate: 0.01, Corrupt: 0.001},
		"delay 1ms reorder 25% 50% gap 5 limit 7": {Delay: time.Millisecond, Reorder: 0.25, ReorderCorrelation: 0.5, Gap: 5, Limit: 7},
		"rate 8mbit":  {Rate: 1e6},
		"rate 1Gbps":  {Rate: 1e9},
		"rate 800bit": {Rate: 100},
		"rate 16000":  {Rate: 2000},
	} {
		got, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", text, diff)
		}
	}
}

func TestParseRefusesWithAReason(t *testing.T) {
	for text, want := range map[string]string{
		"bogus":                  `"bogus" is none of delay, loss`,
		"5%":                     `"5%" is none of`,
		"loss":                   "loss needs a value",
		"loss 101%":              `loss "101%": not a share`,
		"loss -1%":               `loss "-1%": not a share`,
		"loss NaN%":              `loss "NaN%": not a share`,
		"loss 5% loss 5%":        "loss is given twice",
		"delay soon":             `delay "soon": not a time`,
		"delay -1ms":             `delay "-1ms": not a time`,
		"delay 1m":               `delay "1m": not a time`,
		"delay 99999999999999s":  "not a time",
		"delay 1ms 2x":           `jitter "2x": not a time`,
		"reorder 5%":             "reorder needs a delay",
		"delay 1ms gap 5":        "gap needs reorder",
		"limit 0":                `limit "0": not a whole number`,
		"limit 4294967296":       "not a whole number",
		"rate fast":              `rate "fast": not a rate`,
		"rate 0":                 `rate "0": not a rate`,
		"rate 1tbit":             `rate "1tbit": not a rate`,
		"delay 1ms; reboot now":  "not a time",
		"loss 5% \x00corrupt 1%": "is none of",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestKernelSetsEveryAttribute(t *testing.T) {
	k := Spec{Loss: 1, Reorder: 0.5, Delay: time.Second, Rate: math.MaxUint32 + 1}.Kernel()
	switch {
	case k.Qopt.Limit != kernelLimit, k.Qopt.Loss != math.MaxUint32, k.Qopt.Gap != 1,
		*k.Latency64 != 1e9, *k.Jitter64 != 0, k.Reorder.Probability != 1<<31,
		*k.Rate64 != math.MaxUint32+1, k.Rate.Rate != math.MaxUint32:
		t.Errorf("%+v", k)
	}
	if k = (Spec{}).Kernel(); k.Corr == nil || k.Reorder == nil || k.Corrupt == nil || k.Rate == nil || k.Latency64 == nil {
		t.Errorf("an attribute is missing, and what it was set to before would stay in force: %+v", k)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("delay 10ms 2ms 25% loss random 5% duplicate 1% corrupt 0.1% reorder 25% 50% gap 5 rate 1mbit limit 2000")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if s != (Spec{}) {
				t.Errorf("%q: an error and %+v", text, s)
			}
			return
		}
		for _, share := range []float64{s.Loss, s.LossCorrelation, s.Duplicate, s.Corrupt, s.Reorder, s.DelayCorrelation} {
			if !(share >= 0 && share <= 1) {
				t.Errorf("%q: a share of %g", text, share)
			}
		}
		if s.Delay < 0 || s.Jitter < 0 {
			t.Errorf("%q: %+v", text, s)
		}
		s.Kernel()
	})
}
