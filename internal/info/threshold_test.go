package info

import (
	"testing"
)

func TestThresholdsAlertAsThePluginConventionHasIt(t *testing.T) {
	for _, tt := range []struct {
		text      string
		bad, good []float64
	}{
		{"10", []float64{-1, 10.5, 11}, []float64{0, 10}},
		{"10:", []float64{-1, 9}, []float64{10, 1e18}},
		{"~:10", []float64{11}, []float64{-1e18, 10}},
		{"10:20", []float64{9, 21}, []float64{10, 15, 20}},
		{"@10:20", []float64{10, 15, 20}, []float64{9, 21}},
		{"@5", []float64{0, 5}, []float64{-1, 6}},
		{"0", []float64{-1, 1}, []float64{0}},
		{"~:", nil, []float64{-1, 1}},
		{"-5:-1", []float64{-6, 0}, []float64{-5, -1}},
		{"1.5", []float64{1.6}, []float64{1.5}},
	} {
		r, err := ParseThreshold(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		for _, v := range tt.bad {
			if !r.Alerts(v) {
				t.Errorf("%q does not alert for %v", tt.text, v)
			}
		}
		for _, v := range tt.good {
			if r.Alerts(v) {
				t.Errorf("%q alerts for %v", tt.text, v)
			}
		}
		if r.String() != tt.text {
			t.Errorf("%q is printed as %q", tt.text, r)
		}
	}
	if (*Threshold)(nil).Alerts(1) {
		t.Error("no threshold alerts")
	}
}

func TestWhatIsNoThresholdIsRefused(t *testing.T) {
	for _, text := range []string{"", "@", "x", "1:x", "20:10", "nan", "inf:", "1:inf", "1:2:3", "~", "10:~", " 1", "1_0", "+5", "1e3", "0x10", "-", ".", "1.2.3"} {
		if r, err := ParseThreshold(text); err == nil {
			t.Errorf("%q was taken as %+v", text, r)
		}
	}
}

func FuzzParseThreshold(f *testing.F) {
	for _, text := range []string{"10", "10:", "~:10", "@10:20", "-1.5:7"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseThreshold(text)
		if err != nil {
			return
		}
		if !(r.Start <= r.End) {
			t.Errorf("%q: from %v to %v", text, r.Start, r.End)
		}
		if r.Alerts(r.Start) != r.Inside || r.Alerts(r.End) != r.Inside {
			t.Errorf("%q: the ends are not in the range", text)
		}
	})
}
