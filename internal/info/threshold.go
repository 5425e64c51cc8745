package info

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A Threshold is a range of values as monitoring plugins take it: an alert is
// raised for values outside of it or, with Inside, for those in it. Both ends belong to the
// range.
type Threshold struct {
	Start, End float64
	Inside     bool
	text       string
}

var errThreshold = errors.New("want a range of the monitoring plugins, such as 10 (0 to 10 is good), 10: (at least 10), ~:10 (at most 10), 10:20, or @10:20 (10 to 20 is bad); a shell needs quotes around ~")

// ParseThreshold reads [@][START:][END]. START is 0 if it is missing and minus infinity if it is ~; END
// is infinity if it is missing.
func ParseThreshold(text string) (*Threshold, error) {
	t := &Threshold{End: math.Inf(1), text: text}
	rest, inside := strings.CutPrefix(text, "@")
	t.Inside = inside
	start, end, both := strings.Cut(rest, ":")
	if !both {
		start, end = "", rest
		if end == "" {
			return nil, errThreshold
		}
	}
	var err error
	switch {
	case start == "~":
		t.Start = math.Inf(-1)
	case start != "":
		t.Start, err = decimal(start)
	}
	if end != "" && err == nil {
		t.End, err = decimal(end)
	}
	if err != nil || t.Start > t.End {
		return nil, errThreshold
	}
	return t, nil
}

func decimal(s string) (float64, error) {
	// What reads the performance data knows no other forms of numbers.
	if strings.Trim(s, "-.0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// Alerts reports whether v raises an alert. That of nil never does.
func (t *Threshold) Alerts(v float64) bool {
	if t == nil {
		return false
	}
	return (t.Start <= v && v <= t.End) == t.Inside
}

// String returns the text that was parsed, "" for nil.
func (t *Threshold) String() string {
	if t == nil {
		return ""
	}
	return t.text
}
