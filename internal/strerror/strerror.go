// Package strerror writes error numbers as C programs do, for tools whose output replaces theirs.
package strerror

import (
	"strings"
	"syscall"
)

// Text returns the text of strerror(3), which package syscall has without the capital.
func Text(errno syscall.Errno) string {
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
