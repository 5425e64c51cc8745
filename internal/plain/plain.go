// Package plain makes text that others chose fit to be shown.
package plain

import (
	"strings"
	"unicode"
)

// Text shows text that others chose, such as the name of a program or what a bundle holds, on
// one line and without what a terminal would obey: control characters, and those that turn the order of
// what is read.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
