package sys

import (
	"os"
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

// Dup is fcntl(2) F_DUPFD_CLOEXEC: a descriptor that is not in the runtime's poller. The caller closes it.
func Dup(fd uintptr) (uintptr, error) {
	n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	return uintptr(n), os.NewSyscallError("fcntl", err)
}

// SetBlocking has calls on a descriptor wait, those that receive for so long (SO_RCVTIMEO in socket(7)): RDS then
// gives ETIMEDOUT (net/rds/recv.c:rds_recvmsg). FileSocket has them not wait any more.
func SetBlocking(fd uintptr, receive time.Duration) error {
	if err := unix.SetNonblock(int(fd), false); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	tv := unix.NsecToTimeval(int64(receive))
	return os.NewSyscallError("setsockopt", unix.SetsockoptTimeval(int(fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
}

// A PollSet is an array of struct pollfd, for threads that do not use the runtime's poller.
type PollSet struct{ fds []unix.PollFd }

// Resize makes room for n descriptors.
func (p *PollSet) Resize(n int) { p.fds = make([]unix.PollFd, n) }

// Set sets what to wait for on descriptor number i.
func (p *PollSet) Set(i int, fd uintptr, events PollEvents) {
	p.fds[i] = unix.PollFd{Fd: int32(fd), Events: int16(events)}
}

// Events is what Wait found on descriptor number i.
func (p *PollSet) Events(i int) PollEvents { return PollEvents(p.fds[i].Revents) }

// Wait is ppoll(2). There are no events after the timeout, and when a signal came. As Msg.SendRaw it says no word to the
// runtime, whose monitor would take the processor of a thread that waits, and then look at all every 20 us for a while. When the
// runtime wants the thread to stop, it sends a signal.
func (p *PollSet) Wait(timeout time.Duration) syscall.Errno {
	ts := unix.NsecToTimespec(int64(timeout))
	_, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(p.fds))), uintptr(len(p.fds)),
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if errno == unix.EINTR {
		for i := range p.fds {
			p.fds[i].Revents = 0
		}
		return 0
	}
	return errno
}
