package sys

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PollEvents are the POLL bits of poll(2).
type PollEvents int16

const (
	PollIn  PollEvents = unix.POLLIN
	PollOut PollEvents = unix.POLLOUT
)

// Poll is ppoll(2) of one descriptor, for threads that do not use the runtime's poller. It
// returns no events after the timeout, and when a signal came.
func Poll(fd uintptr, events PollEvents, timeout time.Duration) (PollEvents, syscall.Errno) {
	p := unix.PollFd{Fd: int32(fd), Events: int16(events)}
	ts := unix.NsecToTimespec(int64(timeout))
	_, _, errno := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	runtime.KeepAlive(&p)
	if errno == unix.EINTR {
		return 0, 0
	}
	return PollEvents(p.Revents), errno
}
