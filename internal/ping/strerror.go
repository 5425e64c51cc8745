package ping

import (
	"strings"
	"syscall"
)

// Strerror returns the text of strerror(3), which package syscall has without the capital.
func Strerror(errno syscall.Errno) string {
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
