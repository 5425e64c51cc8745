package info

import (
	"strings"
	"unicode"
)

// Plain shows text that others chose, such as the name of a program or what a bundle holds, on
// one line and without what a terminal would obey: control characters, and those that turn the order of
// what is read.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
