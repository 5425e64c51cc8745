package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Number is the value of an option that takes a whole number as the C
// rds-tools do: decimal, octal after 0, hexadecimal after 0x, and with k, m or g (or K, M, G) 2^10,
// 2^20 or 2^30 times that. What they wrap around (negative or too big a number)
// or take for 0 (nothing) is refused.
type Number struct {
	Value    uint64
	Min, Max uint64 // the range taken; Max is 2^64-1 if 0
	set      bool
}

var errNotNumber = errors.New("not a whole number: want one such as 10, 0x10 or 4k")

// Set implements the value interface of flags.
func (v *Number) Set(s string) error {
	n, err := parseNumber(s)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return errNotNumber
	}
	limit := v.Max
	if limit == 0 {
		limit = math.MaxUint64
	}
	if err != nil || n < v.Min || n > limit {
		return fmt.Errorf("out of range: want %d to %d", v.Min, limit)
	}
	v.Value, v.set = n, true
	return nil
}

// parseNumber returns strconv.ErrRange for what is a number but no uint64.
func parseNumber(s string) (uint64, error) {
	digits, shift := s, 0
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
		if shift > 0 {
			digits = s[:len(s)-1]
		}
	}
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		base, digits = 16, digits[2:]
	case len(digits) > 1 && digits[0] == '0':
		base, digits = 8, digits[1:]
	case len(digits) > 1 && digits[0] == '-' && strings.Trim(digits[1:], "0123456789") == "":
		return 0, strconv.ErrRange
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if errors.Is(err, strconv.ErrRange) || err == nil && n > math.MaxUint64>>shift {
		return 0, strconv.ErrRange
	}
	return n << shift, err
}

// IsSet reports whether the option was given.
func (v *Number) IsSet() bool { return v.set }

// String returns the number in decimal, or "" if it is 0 and was not given.
func (v *Number) String() string {
	if v == nil || v.Value == 0 && !v.set {
		return ""
	}
	return strconv.FormatUint(v.Value, 10)
}
