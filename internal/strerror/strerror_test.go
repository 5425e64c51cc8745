package strerror

import (
	"syscall"
	"testing"
)

func TestTextIsThatOfC(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EINVAL: "Invalid argument", syscall.ENETDOWN: "Network is down", syscall.ENOBUFS: "No buffer space available",
	} {
		if got := Text(errno); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
