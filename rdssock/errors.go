package rdssock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/route"
)

// Errors of this package answer errors.Is to one of these as well as to the
// errno of the system call.
var (
	// ErrModuleMissing says that the kernel has no AF_RDS: the module rds is
	// not loaded, or not built (EAFNOSUPPORT of socket).
	ErrModuleMissing = errors.New("the rds module is not loaded")

	// ErrNoTransport says that no loaded transport serves the local address
	// (EADDRNOTAVAIL or ENOPROTOOPT).
	ErrNoTransport = errors.New("no transport serves the address")

	// ErrNotLocal says that the local address is not one of this host.
	ErrNotLocal = errors.New("not an address of this host")

	// ErrCongested says that the destination reads too slowly and takes no
	// messages for now (ENOBUFS). Nothing was queued.
	ErrCongested = errors.New("destination congested")

	// ErrMessageTooLong says that the message exceeds 1 MiB or the send
	// buffer (EMSGSIZE).
	ErrMessageTooLong = errors.New("message too long")

	// ErrQueueFull says that the send buffer, or a destination's share of
	// it, is full of messages that have not been acknowledged.
	ErrQueueFull = errors.New("send queue full")

	// ErrTruncated says that a message was longer than the buffer it was read into.
	ErrTruncated = errors.New("message truncated")

	// ErrNotSupported says that the kernel or the transport cannot do what
	// was asked. It also answers to errors.ErrUnsupported.
	ErrNotSupported = fmt.Errorf("not supported: %w", errors.ErrUnsupported)
)

// A callError is a failure with what it means and what to do about it.
type callError struct {
	err  error  // an *os.SyscallError where a system call failed
	kind error  // one of the Err variables, or nil
	hint string // or ""
}

func (e *callError) Error() string {
	if e.hint == "" {
		return e.err.Error()
	}
	return e.err.Error() + ": " + e.hint
}

func (e *callError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.err}
	}
	return []error{e.err, e.kind}
}

// Timeout makes net.OpError report what the cause reports.
func (e *callError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.err, &t) && t.Timeout()
}

// refuse is the error that the system call would return for what is not even tried.
func refuse(call string, errno syscall.Errno, kind error, format string, args ...any) error {
	return &callError{err: os.NewSyscallError(call, errno), kind: kind, hint: fmt.Sprintf(format, args...)}
}

// opError puts err into the shape of package net. It is the only place that wraps.
func (c *Conn) opError(op string, dst netip.AddrPort, err error) error {
	var sys *os.SyscallError
	if c.closed.Load() && !errors.As(err, &sys) && !errors.Is(err, context.Canceled) {
		err = net.ErrClosed
	}
	return opError(op, c.local, dst, err)
}

func opError(op string, local, remote netip.AddrPort, err error) error {
	return &net.OpError{Op: op, Net: "rds", Source: opAddr(local), Addr: opAddr(remote), Err: err}
}

var (
	errAddressFamily = errors.New("the kernel returned an address of unknown family")
	errNoDestination = refuse("sendmsg", syscall.ENOTCONN, nil, "no destination given, and the socket is not connected")
	errZerocopyOff   = refuse("sendmsg", syscall.EINVAL, ErrNotSupported, "zerocopy is off: see Config.Zerocopy")
	errZerocopyEmpty = refuse("sendmsg", syscall.EINVAL, ErrNotSupported, "an empty message has nothing to share")
)

func errNoAddrPort(a net.Addr) error {
	return refuse("sendmsg", syscall.EINVAL, nil, "%T is no address of RDS: use rdssock.Addr", a)
}

func errTruncated(room int) error {
	return &callError{err: ErrTruncated, hint: fmt.Sprintf("it is longer than the buffer of %d bytes", room)}
}

func errQueueFull(top DestinationQueue, cause error) error {
	hint := ErrQueueFull.Error()
	if top.Messages > 0 {
		hint += fmt.Sprintf(": %v holds most, %d bytes in %d messages", top.Addr, top.Bytes, top.Messages)
	} else if top.Addr.IsValid() {
		hint += fmt.Sprintf(": %v holds %d bytes", top.Addr, top.Bytes)
	}
	return &callError{err: cause, kind: ErrQueueFull, hint: hint + " (CancelSentTo drops them)"}
}

func errFlush(q Queue, cause error) error {
	return &callError{
		err:  cause,
		hint: fmt.Sprintf("%d bytes in %d messages are not acknowledged", q.Bytes, q.Messages),
	}
}

// explainSocket says what socket(2) failed for.
func explainSocket(err error) error {
	switch {
	case errors.Is(err, syscall.EAFNOSUPPORT):
		return &callError{err: err, kind: ErrModuleMissing,
			hint: ErrModuleMissing.Error() + " (modprobe rds; distributions block it in /etc/modprobe.d)"}
	case errors.Is(err, syscall.EPERM):
		return &callError{err: err, hint: "opening a socket in another network namespace needs CAP_SYS_ADMIN"}
	}
	return err
}

func explainFile(err error) error {
	if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.ENOTSOCK) {
		return &callError{err: err, hint: "the file is not an RDS socket"}
	}
	return err
}

// explainTransport says what setting SO_RDS_TRANSPORT failed for
// (net/rds/af_rds.c:rds_set_transport).
func explainTransport(err error, t Transport) error {
	switch {
	case errors.Is(err, syscall.ENOPROTOOPT):
		return &callError{err: err, kind: ErrNoTransport,
			hint: fmt.Sprintf("transport %v is not there (modprobe %s)", t, t.module())}
	case errors.Is(err, syscall.EPROTOTYPE):
		return &callError{err: err, kind: ErrNotSupported,
			hint: fmt.Sprintf("transport %v works in the initial network namespace only", t)}
	case errors.Is(err, syscall.EOPNOTSUPP):
		return &callError{err: err, kind: ErrNotSupported, hint: "the socket has a transport already"}
	}
	return err
}

func (t Transport) module() string {
	switch t {
	case TransportInfiniBand:
		return "rds_rdma"
	case TransportTCP:
		return "rds_tcp"
	}
	return "rds"
}

// explainBind says what bind(2) failed for (net/rds/bind.c:rds_bind).
func explainBind(err error, local netip.AddrPort, cfg *Config) error {
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.ENOPROTOOPT):
		here, lerr := route.IsLocal(context.Background(), local.Addr(), &route.Config{NetNS: cfg.NetNS})
		switch {
		case lerr == nil && !here:
			return &callError{err: err, kind: ErrNotLocal, hint: fmt.Sprintf("%v is %v", local.Addr(), ErrNotLocal)}
		case cfg.Transport != TransportAny:
			return &callError{err: err, kind: ErrNoTransport,
				hint: fmt.Sprintf("transport %v does not serve %v", cfg.Transport, local.Addr())}
		}
		return &callError{err: err, kind: ErrNoTransport,
			hint: fmt.Sprintf("%v for %v (modprobe rds_tcp or rds_rdma)", ErrNoTransport, local.Addr())}
	case errors.Is(err, syscall.EADDRINUSE):
		return &callError{err: err,
			hint: fmt.Sprintf("port %d of %v is taken, maybe in another network namespace: all share one table",
				local.Port(), local.Addr())}
	}
	return err
}

// explainTOS says what SIOCRDSSETTOS failed for (net/rds/af_rds.c:rds_ioctl).
func (c *Conn) explainTOS(err error, tos uint8) error {
	switch {
	case errors.Is(err, syscall.ENOTTY):
		return &callError{err: err, kind: ErrNotSupported,
			hint: fmt.Sprintf("transport %v has no type of service %d", c.transport, tos)}
	case errors.Is(err, syscall.EINVAL):
		return &callError{err: err,
			hint: "the type of service can be set once, before the first message"}
	}
	return err
}

func explainRecv(errno syscall.Errno) error {
	err := os.NewSyscallError("recvmsg", errno)
	if errno == syscall.EFAULT {
		return &callError{err: err, hint: "the buffer is not writable memory; the message is still there to be read"}
	}
	return err
}

// explain says what sendmsg(2) failed for (net/rds/send.c:rds_sendmsg).
func (w *writeOp) explain() error {
	c, err := w.conn, os.NewSyscallError("sendmsg", w.errno)
	switch w.errno {
	case syscall.ENOBUFS:
		return &callError{err: err, kind: ErrCongested, hint: fmt.Sprintf("%v has a full receive buffer", w.dst)}
	case syscall.EMSGSIZE:
		if serr := c.checkSize(w.size); serr != nil {
			return serr
		}
		return &callError{err: err, kind: ErrMessageTooLong, hint: "an RDMA operation moves at most 1 MiB"}
	case syscall.EAGAIN:
		return errQueueFull(c.topHolder(), err)
	case syscall.EOPNOTSUPP:
		return &callError{err: err, kind: ErrNotSupported,
			hint: fmt.Sprintf("transport %v cannot do that", c.transport)}
	case syscall.EINVAL:
		if w.control {
			return &callError{err: err, hint: "the control messages do not go together, or this kernel does not know one"}
		}
	case syscall.EPIPE, syscall.ECONNRESET:
		// net/rds/send.c:rds_sendmsg returned the result of its attempt to
		// transmit until it was mended early in 2026.
		return &callError{err: err, hint: "on kernels before 6.1.170 the message may be queued all the same"}
	}
	return err
}

// checkSize refuses a message that the kernel would, and names the limit.
func (c *Conn) checkSize(size int) error {
	switch {
	case size > abi.RDS_MAX_MSG_SIZE:
		return refuse("sendmsg", syscall.EMSGSIZE, ErrMessageTooLong,
			"%d bytes, and RDS takes at most %d", size, abi.RDS_MAX_MSG_SIZE)
	case int64(size) > c.sndbuf.Load():
		hint := "raise Config.SendBuffer"
		if max, err := os.ReadFile("/proc/sys/net/core/wmem_max"); err == nil {
			hint += ", which net.core.wmem_max limits to " + strings.TrimSpace(string(max)) + " without CAP_NET_ADMIN"
		}
		return refuse("sendmsg", syscall.EMSGSIZE, ErrMessageTooLong,
			"%d bytes, and the send buffer (SO_SNDBUF) holds %d: %s", size, c.sndbuf.Load(), hint)
	}
	return nil
}

// checkLocal refuses what bind(2) answers with a bare EINVAL.
func checkLocal(ap netip.AddrPort) error {
	a := ap.Addr()
	switch {
	case !a.IsValid():
		return refuse("bind", syscall.EINVAL, nil, "no local address given")
	case a.IsUnspecified():
		return refuse("bind", syscall.EINVAL, nil, "%v is every address, and an RDS socket is bound to one", a)
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return refuse("bind", syscall.EINVAL, nil, "%v is a multicast or broadcast address", a)
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		return refuse("bind", syscall.EINVAL, nil, "%v needs a zone: %v%%eth0", a, a)
	case ap.Port() == abi.RDS_FLAG_PROBE_PORT:
		return refuse("bind", syscall.EINVAL, nil, "port %d is the kernel's own", ap.Port())
	}
	return nil
}

// checkDestination refuses what sendmsg(2) and connect(2) answer with a bare EINVAL.
func checkDestination(call string, ap netip.AddrPort) error {
	a := ap.Addr()
	switch {
	case !a.IsValid():
		return refuse(call, syscall.EDESTADDRREQ, nil, "no destination given")
	case a.IsUnspecified():
		return refuse(call, syscall.EINVAL, nil, "%v is no destination", a)
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return refuse(call, syscall.EINVAL, nil, "%v is a multicast or broadcast address, and RDS has neither", a)
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		return refuse(call, syscall.EINVAL, nil, "%v needs a zone: %v%%eth0", a, a)
	}
	return nil
}

// checkFamily refuses a destination of the other family than the local
// address, for which the kernel has EOPNOTSUPP (net/rds/send.c:rds_sendmsg).
func (c *Conn) checkFamily(dst netip.AddrPort) error {
	if dst.Addr().Is4() == c.local.Addr().Is4() {
		return nil
	}
	return refuse("sendmsg", syscall.EOPNOTSUPP, nil,
		"the socket is bound to %v, and IPv4 and IPv6 do not mix", c.local.Addr())
}

func (cfg *Config) check() error {
	switch {
	case cfg.Transport == TransportLoopback:
		return refuse("setsockopt", syscall.EINVAL, nil, "the loopback transport is chosen by the kernel, for 127.0.0.0/8 and ::1")
	case cfg.Transport < TransportAny || cfg.Transport > TransportLoopback:
		return refuse("setsockopt", syscall.EINVAL, nil, "%v is no transport", cfg.Transport)
	case cfg.Congestion < WaitWhenCongested || cfg.Congestion > FailWhenCongested:
		return refuse("setsockopt", syscall.EINVAL, nil, "%v is no congestion policy", cfg.Congestion)
	case cfg.SendBuffer < 0 || cfg.ReceiveBuffer < 0 || cfg.DestinationLimit < 0:
		return refuse("setsockopt", syscall.EINVAL, nil, "a buffer size or limit is negative")
	}
	return nil
}
