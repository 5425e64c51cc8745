package sys

import (
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
)

// Flags of Send and Recv, and those that Recv reports.
const (
	MSG_PEEK     = unix.MSG_PEEK
	MSG_TRUNC    = unix.MSG_TRUNC
	MSG_CTRUNC   = unix.MSG_CTRUNC
	MSG_ZEROCOPY = unix.MSG_ZEROCOPY
	MSG_DONTWAIT = unix.MSG_DONTWAIT
	// MSG_WAITFORONE has Batch.Recv wait for the first message only.
	MSG_WAITFORONE = unix.MSG_WAITFORONE
)

// A Msg is a struct msghdr with one or two data buffers, one control buffer and room
// for an address, for any number of calls of sendmsg(2) and recvmsg(2), one at
// a time. It refers to itself and must not be copied once used. A Msg kept on
// the heap makes calls that allocate nothing.
type Msg struct {
	hdr  unix.Msghdr
	iov  [2]unix.Iovec
	name [abi.SizeofSockaddrIn6]byte
}

// SetData sets the bytes to send or the room to receive into. The Msg refers
// to b until the next SetData.
func (m *Msg) SetData(b []byte) {
	m.hdr.Iov = &m.iov[0]
	m.hdr.SetIovlen(1)
	m.iov[0].Base = unsafe.SliceData(b)
	m.iov[0].SetLen(len(b))
}

// SetParts sets the bytes to send: those of a, then those of b. The Msg refers to both
// until the next SetParts.
func (m *Msg) SetParts(a, b []byte) {
	m.SetData(a)
	m.hdr.SetIovlen(2)
	m.iov[1].Base = unsafe.SliceData(b)
	m.iov[1].SetLen(len(b))
}

// SetControl sets the control messages to send or the room for them. The Msg
// refers to oob until the next SetControl.
func (m *Msg) SetControl(oob []byte) {
	m.hdr.Control = unsafe.SliceData(oob)
	m.hdr.SetControllen(len(oob))
}

// SetName sets the destination of the next Send. The invalid AddrPort means the
// connected peer.
func (m *Msg) SetName(ap netip.AddrPort, scope uint32) {
	if !ap.IsValid() {
		m.hdr.Name, m.hdr.Namelen = nil, 0
		return
	}
	m.hdr.Name = &m.name[0]
	m.hdr.Namelen = uint32(abi.PutSockaddr(&m.name, ap, scope))
}

// SetTo is SetName for a Name, which the Msg refers to until the next of either.
func (m *Msg) SetTo(to *Name) {
	m.hdr.Name = &to.raw[0]
	m.hdr.Namelen = uint32(to.n)
}

// Name is the source of the message that Recv got. ok is false when there is
// none, which for RDS means that the kernel returned notifications only
// (net/rds/recv.c:rds_recvmsg).
func (m *Msg) Name() (ap netip.AddrPort, scope uint32, ok bool) {
	return abi.ParseSockaddr(m.RawName())
}

// RawName is the source address as the kernel wrote it, valid until the next Recv.
func (m *Msg) RawName() []byte { return m.name[:min(int(m.hdr.Namelen), len(m.name))] }

// HasName reports whether Recv got a message rather than notifications only.
func (m *Msg) HasName() bool { return m.hdr.Namelen > 0 }

// Flags are the MSG_ flags that the last Recv reported.
func (m *Msg) Flags() int { return int(m.hdr.Flags) }

// ControlLen is how many bytes of control messages the last Recv got.
func (m *Msg) ControlLen() int { return int(m.hdr.Controllen) }

// Send is sendmsg(2). Calls that a signal interrupts are made again.
func (m *Msg) Send(fd uintptr, flags int) (int, syscall.Errno) {
	return m.call(unix.SYS_SENDMSG, fd, flags)
}

// Recv is recvmsg(2) with room for the source address. The room for control
// messages shrinks to what arrived, so SetControl goes before each Recv.
func (m *Msg) Recv(fd uintptr, flags int) (int, syscall.Errno) {
	m.prepareRecv()
	return m.call(unix.SYS_RECVMSG, fd, flags)
}

func (m *Msg) prepareRecv() {
	m.hdr.Name = &m.name[0]
	m.hdr.Namelen = uint32(len(m.name))
	m.hdr.Flags = 0
}

// SendRaw and RecvRaw are Send and Recv without a word to the Go runtime, for a thread with a processor of its own:
// the runtime's monitor would look at each call every 20 us. They must not block for long. They use package syscall, since
// package unix gets there by stubs that pass all arguments through memory, twice.
func (m *Msg) SendRaw(fd uintptr, flags int) (int, syscall.Errno) {
	return m.callRaw(unix.SYS_SENDMSG, fd, flags)
}

// RecvRaw: see SendRaw.
func (m *Msg) RecvRaw(fd uintptr, flags int) (int, syscall.Errno) {
	m.prepareRecv()
	return m.callRaw(unix.SYS_RECVMSG, fd, flags)
}

// SendtoRaw is sendto(2), which costs the kernel less than sendmsg(2). Otherwise it is as Msg.SendRaw.
func SendtoRaw(fd uintptr, b []byte, flags int, to *Name) syscall.Errno {
	for {
		_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			uintptr(flags), uintptr(unsafe.Pointer(&to.raw)), uintptr(to.n))
		if errno != unix.EINTR {
			return errno
		}
	}
}

// RecvfromRaw is recvfrom(2), which costs the kernel less than recvmsg(2), and takes no control messages. It returns how
// many bytes arrived; from is then where they came from, empty for notifications only. Otherwise it is as Msg.RecvRaw.
func RecvfromRaw(fd uintptr, b []byte, flags int, from *Name) (int, syscall.Errno) {
	for {
		length := uint32(len(from.raw))
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			uintptr(flags), uintptr(unsafe.Pointer(&from.raw)), uintptr(unsafe.Pointer(&length)))
		if errno != unix.EINTR {
			from.n = min(int(length), len(from.raw))
			return result(n, errno)
		}
	}
}

// result is what a call gave that returns a number of bytes or messages.
func result(n uintptr, errno syscall.Errno) (int, syscall.Errno) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

func (m *Msg) callRaw(trap, fd uintptr, flags int) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&m.hdr)), uintptr(flags))
		if errno != unix.EINTR {
			return result(n, errno)
		}
	}
}

func (m *Msg) call(trap, fd uintptr, flags int) (int, syscall.Errno) {
	for {
		n, _, errno := unix.Syscall(trap, fd, uintptr(unsafe.Pointer(&m.hdr)), uintptr(flags))
		if errno != unix.EINTR {
			return result(n, errno)
		}
	}
}
