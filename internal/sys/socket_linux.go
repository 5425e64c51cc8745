package sys

import (
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
)

// A Socket is a non-blocking AF_RDS descriptor in the runtime's poller.
type Socket struct {
	conn *socket.Conn
	raw  syscall.RawConn

	infoRetries atomic.Int64
}

// NewSocket is socket(2) in the network namespace that netns, a descriptor,
// refers to; 0 is the namespace of the calling thread.
func NewSocket(netns int) (*Socket, error) {
	// mdlayher/socket tries again without SOCK_NONBLOCK after EPROTONOSUPPORT
	// only; EAFNOSUPPORT and ESOCKTNOSUPPORT come straight through.
	c, err := socket.Socket(unix.AF_RDS, unix.SOCK_SEQPACKET, 0, "rds", &socket.Config{NetNS: netns})
	if err != nil {
		return nil, err
	}
	return newSocket(c)
}

// FileSocket duplicates the descriptor of f, which must be an RDS socket.
func FileSocket(f *os.File) (*Socket, error) {
	c, err := socket.FileConn(f, "rds")
	if err != nil {
		return nil, err
	}
	domain, err := c.GetsockoptInt(unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == nil && domain != unix.AF_RDS {
		err = os.NewSyscallError("getsockopt", unix.EAFNOSUPPORT)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return newSocket(c)
}

func newSocket(c *socket.Conn) (*Socket, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		c.Close()
		return nil, err
	}
	return &Socket{conn: c, raw: raw}, nil
}

// Raw gives the descriptor to functions that wait in the runtime's poller.
func (s *Socket) Raw() syscall.RawConn { return s.raw }

// Close closes the descriptor; who waits on it gets os.ErrClosed.
func (s *Socket) Close() error { return s.conn.Close() }

// SetReadDeadline ends waiting reads of Raw at t with os.ErrDeadlineExceeded.
func (s *Socket) SetReadDeadline(t time.Time) error { return s.conn.SetReadDeadline(t) }

// SetWriteDeadline ends waiting writes of Raw at t with os.ErrDeadlineExceeded.
func (s *Socket) SetWriteDeadline(t time.Time) error { return s.conn.SetWriteDeadline(t) }

// Dup makes another descriptor of the same socket, with its own place in the
// runtime's poller.
func (s *Socket) Dup() (*Socket, error) {
	fd, err := s.dup()
	if err != nil {
		return nil, err
	}
	c, err := socket.New(fd, "rds")
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return newSocket(c)
}

// File is Dup as an os.File.
func (s *Socket) File() (*os.File, error) {
	fd, err := s.dup()
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "rds"), nil
}

func (s *Socket) dup() (fd int, err error) {
	err = s.control("fcntl", func(orig uintptr) error {
		fd, err = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// control runs f on the descriptor and names the system call in its error.
func (s *Socket) control(call string, f func(fd uintptr) error) error {
	var err error
	if cerr := s.raw.Control(func(fd uintptr) { err = f(fd) }); cerr != nil {
		return cerr
	}
	return os.NewSyscallError(call, err)
}

// Bind is bind(2).
func (s *Socket) Bind(ap netip.AddrPort, scope uint32) error {
	return s.named("bind", unix.SYS_BIND, ap, scope)
}

// Connect is connect(2), which for RDS only records where messages without an
// address go (net/rds/af_rds.c:rds_connect).
func (s *Socket) Connect(ap netip.AddrPort, scope uint32) error {
	return s.named("connect", unix.SYS_CONNECT, ap, scope)
}

func (s *Socket) named(call string, trap uintptr, ap netip.AddrPort, scope uint32) error {
	var name [abi.SizeofSockaddrIn6]byte
	n := abi.PutSockaddr(&name, ap, scope)
	return s.control(call, func(fd uintptr) error {
		_, _, errno := unix.Syscall(trap, fd, uintptr(unsafe.Pointer(&name)), uintptr(n))
		return errnoErr(errno)
	})
}

// LocalName is getsockname(2). The zero AddrPort stands for an unbound socket.
func (s *Socket) LocalName() (netip.AddrPort, uint32, error) {
	return s.name("getsockname", unix.SYS_GETSOCKNAME)
}

// PeerName is getpeername(2).
func (s *Socket) PeerName() (netip.AddrPort, uint32, error) {
	return s.name("getpeername", unix.SYS_GETPEERNAME)
}

func (s *Socket) name(call string, trap uintptr) (ap netip.AddrPort, scope uint32, err error) {
	var name [abi.SizeofSockaddrIn6]byte
	n := uint32(len(name))
	err = s.control(call, func(fd uintptr) error {
		_, _, errno := unix.Syscall(trap, fd, uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&n)))
		return errnoErr(errno)
	})
	if err != nil {
		return netip.AddrPort{}, 0, err
	}
	ap, scope, ok := abi.ParseSockaddr(name[:min(int(n), len(name))])
	if !ok || ap.Port() == 0 && ap.Addr().IsUnspecified() {
		return netip.AddrPort{}, 0, nil
	}
	return ap, scope, nil
}

// Getsockopt is getsockopt(2) with b as the room for the value. ret is the
// system call's own result, which for RDS_INFO_* is the size of one element in
// bytes (net/rds/info.c:rds_info_getsockopt); n is the length that the kernel
// wrote or, with ENOSPC, needs.
func (s *Socket) Getsockopt(level, name int, b []byte) (ret, n int, err error) {
	size := uint32(len(b))
	err = s.control("getsockopt", func(fd uintptr) error {
		r, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, uintptr(level), uintptr(name),
			uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(&size)), 0)
		ret = int(r)
		return errnoErr(errno)
	})
	return ret, int(size), err
}

// GetsockoptInt is Getsockopt of a C int.
func (s *Socket) GetsockoptInt(level, name int) (int, error) {
	var v int32
	_, _, err := s.Getsockopt(level, name, unsafe.Slice((*byte)(unsafe.Pointer(&v)), 4))
	return int(v), err
}

// Setsockopt is setsockopt(2) of raw bytes.
func (s *Socket) Setsockopt(level, name int, b []byte) error {
	return s.control("setsockopt", func(fd uintptr) error {
		return errnoErr(Setsockopt(fd, level, name, b))
	})
}

// SetsockoptInt is Setsockopt of a C int.
func (s *Socket) SetsockoptInt(level, name, value int) error {
	v := int32(value)
	return s.Setsockopt(level, name, unsafe.Slice((*byte)(unsafe.Pointer(&v)), 4))
}

// SetTOS is the ioctl SIOCRDSSETTOS, whose argument is one byte.
func (s *Socket) SetTOS(tos uint8) error { return s.tos(abi.SIOCRDSSETTOS, &tos) }

// TOS is the ioctl SIOCRDSGETTOS.
func (s *Socket) TOS() (tos uint8, err error) {
	err = s.tos(abi.SIOCRDSGETTOS, &tos)
	return tos, err
}

func (s *Socket) tos(req uintptr, tos *uint8) error {
	return s.control("ioctl", func(fd uintptr) error {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, req, uintptr(unsafe.Pointer(tos)))
		return errnoErr(errno)
	})
}

// Writable reports whether poll(2) has POLLOUT for fd, which for RDS means that
// the send buffer has room (net/rds/af_rds.c:rds_poll).
func Writable(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, _ := unix.Poll(p, 0)
	return n > 0
}

// Options of level SOL_SOCKET.
const (
	SOL_SOCKET     = unix.SOL_SOCKET
	SO_SNDBUF      = unix.SO_SNDBUF
	SO_RCVBUF      = unix.SO_RCVBUF
	SO_SNDBUFFORCE = unix.SO_SNDBUFFORCE
	SO_RCVBUFFORCE = unix.SO_RCVBUFFORCE
	SO_ZEROCOPY    = unix.SO_ZEROCOPY
)

// TimestampOption is the SO_TIMESTAMP that carries 64-bit seconds.
func TimestampOption() int {
	if strconv.IntSize == 32 {
		return unix.SO_TIMESTAMP_NEW
	}
	return unix.SO_TIMESTAMP
}

func errnoErr(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
