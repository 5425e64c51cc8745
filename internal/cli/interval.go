package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// An Interval is the value of an option that takes a time as the C rds-tools
// do: a decimal number of seconds, or one followed by ms, msec, us or usec. It
// takes s and sec too, which they refuse. What could mean two things (m, a Go duration of
// several parts) and what is no time to wait (negative, not a number, infinite) is refused.
//
// The zero Interval takes values from 1 us to 2^31-1 s.
type Interval struct {
	time.Duration
	Min, Max time.Duration // 1 us and 2^31-1 s if 0
	Zero     bool          // takes 0, too
	given    string
}

const (
	minInterval = time.Microsecond
	maxInterval = math.MaxInt32 * time.Second
)

// The units are tried in this order, so that "ms" is not taken for "s".
var intervalUnits = []struct {
	suffix string
	unit   float64
}{
	{"msec", 1e6}, {"usec", 1e3}, {"sec", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"s", 1e9}, {"", 1e9},
}

var errNotInterval = errors.New("not a time: want a number of seconds, such as 0.5, or one with ms, msec, us or usec, such as 10ms")

// Set implements the value interface of flags.
func (v *Interval) Set(s string) error {
	number, unit := s, 0.0
	for _, u := range intervalUnits {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			number, unit = rest, u.unit
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil && !math.IsInf(n, 0) || strings.ContainsAny(number, "xX_pP") {
		return errNotInterval
	}
	least, most := cmp.Or(v.Min, minInterval), cmp.Or(v.Max, maxInterval)
	none := n == 0 && v.Zero
	n = math.Round(n * unit)
	switch {
	case none:
	case math.IsNaN(n) || n < float64(least):
		return fmt.Errorf("too short a time: want at least %s", IntervalText(least))
	case n > float64(most):
		return fmt.Errorf("too long a time: want at most %s", IntervalText(most))
	}
	v.Duration = time.Duration(n)
	v.given = s
	return nil
}

// String returns the interval in the syntax that Set takes, or "" if there is
// none.
func (v *Interval) String() string {
	switch {
	case v == nil:
		return ""
	case v.given != "":
		return v.given
	case v.Duration == 0:
		return ""
	}
	return strings.ReplaceAll(IntervalText(v.Duration), " ", "")
}

// IntervalText writes a time as people read it: "10 ms", "1.5 s".
func IntervalText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return trimmed(d, time.Microsecond) + " us"
	case d < time.Second:
		return trimmed(d, time.Millisecond) + " ms"
	}
	return trimmed(d, time.Second) + " s"
}

func trimmed(d, unit time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(unit), 'f', -1, 64)
}
