package info

import "strings"

// Plain shows text that others chose, such as the name of a program or what a bundle holds, on
// one line and without control characters, which a terminal would obey.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}
