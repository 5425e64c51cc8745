package sys

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// A Batch is an array of struct mmsghdr for recvmmsg(2). There is none for
// sendmmsg(2): the core adds MSG_BATCH to all messages but the last, and
// net/rds/send.c:rds_sendmsg refuses flags that it does not know.
type Batch struct {
	hdrs  []mmsghdr
	iovs  []unix.Iovec
	names [][abi.SizeofSockaddrIn6]byte
}

// Resize makes room for n messages. What was set before is lost if it grows.
func (b *Batch) Resize(n int) {
	if n > cap(b.hdrs) {
		b.hdrs = make([]mmsghdr, n)
		b.iovs = make([]unix.Iovec, n)
		b.names = make([][abi.SizeofSockaddrIn6]byte, n)
	}
	b.hdrs, b.iovs, b.names = b.hdrs[:n], b.iovs[:n], b.names[:n]
}

// Set sets the room for message i. It, or Again, goes before each Recv, since the kernel
// shrinks the room for control messages to what arrived.
func (b *Batch) Set(i int, data, oob []byte) {
	h := &b.hdrs[i].hdr
	b.iovs[i].Base = unsafe.SliceData(data)
	b.iovs[i].SetLen(len(data))
	h.Iov = &b.iovs[i]
	h.SetIovlen(1)
	h.Control = unsafe.SliceData(oob)
	h.SetControllen(len(oob))
	h.Name = &b.names[i][0]
	h.Namelen = uint32(len(b.names[i]))
	h.Flags = 0
}

// Again makes room for message i as Set did last, with oobn bytes for control messages.
func (b *Batch) Again(i, oobn int) {
	h := &b.hdrs[i].hdr
	h.SetControllen(oobn)
	h.Namelen = uint32(len(b.names[i]))
}

// Clear drops the references to the buffers of all messages.
func (b *Batch) Clear() {
	clear(b.hdrs)
	clear(b.iovs)
}

// Message is what Recv got as message i: its length in bytes, the bytes of
// control messages, the MSG_ flags and the source address as the kernel wrote
// it, empty for a return that carries notifications only.
func (b *Batch) Message(i int) (n, oobn, flags int, name []byte) {
	h := &b.hdrs[i].hdr
	return int(b.hdrs[i].len), int(h.Controllen), int(h.Flags),
		b.names[i][:min(int(h.Namelen), len(b.names[i]))]
}

// Recv is recvmmsg(2) into the messages from first on. It returns how many
// arrived, at least one without an error.
func (b *Batch) Recv(fd uintptr, first, flags int) (int, syscall.Errno) {
	hdrs := b.hdrs[first:]
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd,
			uintptr(unsafe.Pointer(unsafe.SliceData(hdrs))), uintptr(len(hdrs)), uintptr(flags), 0, 0)
		if errno != unix.EINTR {
			return result(n, errno)
		}
	}
}

// RecvRaw is to Recv what Msg.RecvRaw is to Msg.Recv.
func (b *Batch) RecvRaw(fd uintptr, first, flags int) (int, syscall.Errno) {
	hdrs := b.hdrs[first:]
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVMMSG, fd,
			uintptr(unsafe.Pointer(unsafe.SliceData(hdrs))), uintptr(len(hdrs)), uintptr(flags), 0, 0)
		if errno != unix.EINTR {
			return result(n, errno)
		}
	}
}
