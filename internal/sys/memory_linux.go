package sys

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MapAnonymous is mmap(2) of private zeroed memory that a child of fork(2) does
// not get: a child's write would otherwise move the pages that a device knows
// away from one of the two.
func MapAnonymous(size int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return dontFork(b)
}

// HugePage is the size of the pages that WantHuge asks for on most machines, in bytes.
const HugePage = 2 << 20

// WantHuge is madvise(2) MADV_HUGEPAGE for what MapAnonymous returned: it costs less to pin. A kernel that has no
// huge pages goes on without.
func WantHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// MapFile is mmap(2) of a part of a file, shared and writable, that a child of
// fork(2) does not get.
func MapFile(fd uintptr, offset int64, size int) ([]byte, error) {
	b, err := unix.Mmap(int(fd), offset, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return dontFork(b)
}

func dontFork(b []byte) ([]byte, error) {
	if err := unix.Madvise(b, unix.MADV_DONTFORK); err != nil {
		unix.Munmap(b)
		return nil, os.NewSyscallError("madvise", err)
	}
	return b, nil
}

// Unmap is munmap(2) of what MapAnonymous or MapFile returned.
func Unmap(b []byte) error {
	return os.NewSyscallError("munmap", unix.Munmap(b))
}

// Address is where b is, as the kernel is told it inside of a record. The
// number keeps nothing alive and does not follow what moves: b must be mapped
// memory, never the heap or a stack of Go.
func Address(b []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// Setsockopt is setsockopt(2) of raw bytes on a descriptor that the caller holds.
func Setsockopt(fd uintptr, level, name int, b []byte) syscall.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, fd, uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0)
	return errno
}

// SetsockoptRaw is to Setsockopt what Msg.SendRaw is to Msg.Send.
func SetsockoptRaw(fd uintptr, level, name int, b []byte) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_SETSOCKOPT, fd, uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0)
	return errno
}
