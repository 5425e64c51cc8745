package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestIntervalTakesWhatTheCToolsTake(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"1":            time.Second,
		"0.2":          200 * time.Millisecond,
		".5":           500 * time.Millisecond,
		"+2":           2 * time.Second,
		"1e-3":         time.Millisecond,
		"10ms":         10 * time.Millisecond,
		"10msec":       10 * time.Millisecond,
		"900us":        900 * time.Microsecond,
		"900usec":      900 * time.Microsecond,
		"1.5ms":        1500 * time.Microsecond,
		"2s":           2 * time.Second,
		"2sec":         2 * time.Second,
		"2148":         2148 * time.Second, // more milliseconds than fit into 31 bits of microseconds
		"2147483647":   (1<<31 - 1) * time.Second,
		"0.000001":     time.Microsecond,
		"1.0000000004": time.Second,
	} {
		var v Interval
		if err := v.Set(in); err != nil || v.Duration != want {
			t.Errorf("%q: got %v, %v, want %v", in, v.Duration, err, want)
		}
		var again Interval
		if err := again.Set(v.String()); err != nil || again.Duration != v.Duration {
			t.Errorf("%q: String gives %q, which reads as %v, %v", in, v.String(), again.Duration, err)
		}
	}
}

func TestIntervalRefusesWhatIsNoTimeToWait(t *testing.T) {
	const (
		notTime  = "not a time"
		tooShort = "want at least 1 us"
		tooLong  = "want at most 2147483647 s"
	)
	for in, want := range map[string]string{
		"": notTime, " ": notTime, "x": notTime, "ms": notTime, "1x": notTime, "0,2": notTime, "1m": notTime, "1h": notTime,
		"1m30s": notTime, "10ns": notTime, "1 s": notTime, "0x10": notTime, "1_0": notTime, "--1": notTime, "1ss": notTime,
		"0": tooShort, "-1": tooShort, "-0": tooShort, "nan": tooShort, "-inf": tooShort, "0.4us": tooShort, "1e-30": tooShort,
		"inf": tooLong, "Infinity": tooLong, "1e30": tooLong, "1e400": tooLong, "2147483648": tooLong, "infms": tooLong,
	} {
		v := Interval{Duration: time.Minute}
		err := v.Set(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", in, err, want)
		}
		if v.Duration != time.Minute {
			t.Errorf("%q: a refused value changed the interval to %v", in, v.Duration)
		}
	}
}

func TestIntervalStaysWithinItsLimits(t *testing.T) {
	for _, tt := range []struct {
		v        Interval
		in, want string
	}{
		{Interval{Min: time.Millisecond}, "999us", "want at least 1 ms"},
		{Interval{Min: time.Millisecond}, "1ms", ""},
		{Interval{Max: time.Hour}, "3600.1", "want at most 3600 s"},
		{Interval{Max: time.Hour}, "3600", ""},
		{Interval{Zero: true}, "0", ""},
		{Interval{Zero: true}, "0.0ms", ""},
		{Interval{Zero: true}, "1e-30", "want at least 1 us"},
		{Interval{Zero: true}, "-1", "want at least 1 us"},
	} {
		v := tt.v
		err := v.Set(tt.in)
		if tt.want == "" && (err != nil || v.String() != tt.in) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: got %q and error %v, want %q", tt.in, v.String(), err, tt.want)
		}
	}
}

func TestIntervalDefaultReadsAsItIsWritten(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 1500 * time.Millisecond, 200 * time.Millisecond, 900 * time.Microsecond} {
		v := Interval{Duration: d}
		var again Interval
		if err := again.Set(v.String()); err != nil || again.Duration != d {
			t.Errorf("%v is written %q, which reads as %v, %v", d, v.String(), again.Duration, err)
		}
	}
	if s := new(Interval).String(); s != "" {
		t.Errorf("no interval is written %q, want nothing", s)
	}
}

func TestNumberTakesWhatTheCToolsTake(t *testing.T) {
	for in, want := range map[string]uint64{
		"0": 0, "1": 1, "010": 8, "0x10": 16, "0XfF": 255, "1k": 1 << 10, "1K": 1 << 10, "2m": 2 << 20, "3G": 3 << 30,
		"0x10k": 16 << 10, "4294967296": 1 << 32, "18446744073709551615": 1<<64 - 1, "17179869183g": 17179869183 << 30,
	} {
		var v Number
		if err := v.Set(in); err != nil || v.Value != want || !v.IsSet() {
			t.Errorf("%q: got %d, %v, want %d", in, v.Value, err, want)
		}
	}
}

func TestNumberRefusesWhatTheCToolsMistake(t *testing.T) {
	const notNumber, outOfRange = "not a whole number", "out of range: want 0 to 18446744073709551615"
	for in, want := range map[string]string{
		"": notNumber, "k": notNumber, "2x": notNumber, "1.5": notNumber, "08": notNumber, "0x": notNumber, "1kk": notNumber, "1 ": notNumber,
		"1_000": notNumber, "0b1": notNumber, "0o7": notNumber, "+-1": notNumber, "-": notNumber, "-x": notNumber,
		"-1": outOfRange, "99999999999999999999": outOfRange, "17179869184g": outOfRange, "0xfffffffffffffffff": outOfRange,
	} {
		var v Number
		err := v.Set(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %d and error %v, want %q", in, v.Value, err, want)
		}
	}
	v := Number{Value: 8, Min: 1, Max: 32}
	for _, in := range []string{"0", "33", "1k"} {
		if err := v.Set(in); err == nil || !strings.Contains(err.Error(), "want 1 to 32") || v.Value != 8 {
			t.Errorf("%q outside of 1 to 32: got %d, error %v", in, v.Value, err)
		}
	}
}

func TestTOSListTakesNumbersListsAndRanges(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "3": "3", "255": "255", "0,3,5": "0,3,5", "0-3": "0,1,2,3", "5,0-2,5": "5,0,1,2", "254-255": "254,255", "0x10": "16", "7-7": "7",
	} {
		var l TOSList
		if err := l.Set(in); err != nil || l.String() != want {
			t.Errorf("%q: got %q, %v, want %q", in, l.String(), err, want)
		}
	}
	var all TOSList
	if err := all.Set("0-255"); err != nil || len(all) != 256 {
		t.Errorf("0-255: got %d entries, %v", len(all), err)
	}
}

func TestTOSListRefusesWhatTheKernelWouldCutToEightBits(t *testing.T) {
	for in, want := range map[string]string{
		"": "no type", "256": "no type", "300": "no type", "-1": "no type", "0-": "no type", "1,": `"": no type`,
		"a": "no type", "3-1": "runs backwards: want 1-3", "1-2-3": "no type", "0,1-2-3": `"1-2-3": no type`, "0,3-1": `"3-1": runs backwards`,
	} {
		var l TOSList
		if err := l.Set(in); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v and error %v, want %q", in, l, err, want)
		}
	}
}

func FuzzInterval(f *testing.F) {
	for _, s := range []string{"1", "0.5", "10ms", "900us", "nan", "1e30", "-0", "0x1p3s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var v, again Interval
		if v.Set(s) != nil {
			return
		}
		if v.Duration < minInterval || v.Duration > maxInterval {
			t.Fatalf("%q is taken as %v", s, v.Duration)
		}
		if err := again.Set(v.String()); err != nil || again.Duration != v.Duration {
			t.Fatalf("%q: String gives %q, which reads as %v, %v", s, v.String(), again.Duration, err)
		}
	})
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"1", "010", "0x10", "4k", "-1", "18446744073709551615", "17179869184g"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var v, again Number
		if v.Set(s) != nil {
			return
		}
		if err := again.Set(v.String()); err != nil || again.Value != v.Value {
			t.Fatalf("%q: String gives %q, which reads as %d, %v", s, v.String(), again.Value, err)
		}
		if strings.Trim(s, "0123456789") == "" && s[0] != '0' && fmt.Sprint(v.Value) != s {
			t.Fatalf("%q is taken as %d", s, v.Value)
		}
	})
}

func FuzzTOSList(f *testing.F) {
	for _, s := range []string{"0", "0,3", "0-255", "3-1", "1-2-3", ",", "0x1-0x3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var l, again TOSList
		if l.Set(s) != nil {
			return
		}
		if err := again.Set(l.String()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l, again); diff != "" {
			t.Fatalf("%q does not read as it is written (-want +got):\n%s", s, diff)
		}
	})
}
