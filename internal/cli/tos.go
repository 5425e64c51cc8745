package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A TOSList is the value of an option that takes types of service: numbers
// from 0 to 255 and ranges of them, separated by commas, as in 0,3,8-15. Each
// is taken once, in the order given.
type TOSList []uint8

// Set implements the value interface of flags.
func (l *TOSList) Set(s string) error {
	var list TOSList
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := parseTOS(first)
		if err != nil {
			return within(s, part, err)
		}
		hi, err := parseTOS(last)
		if err != nil {
			return within(s, part, err)
		}
		if lo > hi {
			return within(s, part, fmt.Errorf("runs backwards: want %s-%s", last, first))
		}
		for tos := int(lo); tos <= int(hi); tos++ {
			if !slices.Contains(list, uint8(tos)) {
				list = append(list, uint8(tos))
			}
		}
	}
	*l = list
	return nil
}

func parseTOS(s string) (uint8, error) {
	n, err := parseNumber(s)
	if err != nil || n > math.MaxUint8 {
		return 0, errNotTOS
	}
	return uint8(n), nil
}

var errNotTOS = errors.New("no type of service: want 0 to 255, a list such as 0,3 or a range such as 0-7")

// within names the part of a list that is wrong, where the list itself, which is named anyway, is more.
func within(list, part string, err error) error {
	if part == list {
		return err
	}
	return fmt.Errorf("%q: %w", part, err)
}

// String returns the list in the syntax that Set takes.
func (l *TOSList) String() string {
	if l == nil {
		return ""
	}
	parts := make([]string, len(*l))
	for i, tos := range *l {
		parts[i] = strconv.Itoa(int(tos))
	}
	return strings.Join(parts, ",")
}
