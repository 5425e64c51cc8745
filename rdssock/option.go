package rdssock

import (
	"errors"
	"math"
	"net/netip"
	"syscall"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/sys"
)

// MaxMessageSize returns how long a message can be, in bytes: 1 MiB, or less
// if the send buffer is smaller.
func (c *Conn) MaxMessageSize() int {
	return int(min(c.sndbuf.Load(), abi.RDS_MAX_MSG_SIZE))
}

// SendBuffer returns the size of the send buffer in bytes of payload, half of
// what SO_SNDBUF reports.
func (c *Conn) SendBuffer() (int, error) {
	n, err := c.sock.GetsockoptInt(sys.SOL_SOCKET, sys.SO_SNDBUF)
	if err != nil {
		return 0, c.opError(opGet, netip.AddrPort{}, err)
	}
	c.sndbuf.Store(int64(n / 2))
	return n / 2, nil
}

// ReceiveBuffer returns the size of the receive buffer in bytes of payload,
// half of what SO_RCVBUF reports. It is no hard limit: it is where congestion begins.
func (c *Conn) ReceiveBuffer() (int, error) {
	n, err := c.sock.GetsockoptInt(sys.SOL_SOCKET, sys.SO_RCVBUF)
	if err != nil {
		return 0, c.opError(opGet, netip.AddrPort{}, err)
	}
	return n / 2, nil
}

// SetSendBuffer changes the size of the send buffer, in bytes of payload, and
// returns what was granted. See Config.SendBuffer.
func (c *Conn) SetSendBuffer(bytes int) (granted int, err error) {
	if err := c.setBuffer(sys.SO_SNDBUFFORCE, sys.SO_SNDBUF, bytes); err != nil {
		return 0, c.opError(opSet, netip.AddrPort{}, err)
	}
	return c.SendBuffer()
}

// SetReceiveBuffer changes the size of the receive buffer, in bytes of payload, and returns what
// was granted. See Config.ReceiveBuffer.
func (c *Conn) SetReceiveBuffer(bytes int) (granted int, err error) {
	if err := c.setBuffer(sys.SO_RCVBUFFORCE, sys.SO_RCVBUF, bytes); err != nil {
		return 0, c.opError(opSet, netip.AddrPort{}, err)
	}
	return c.ReceiveBuffer()
}

// setBuffer sets a buffer size beyond the sysctl's limit if that is permitted.
// The kernel doubles the value, and RDS uses half of the double.
func (c *Conn) setBuffer(force, plain, bytes int) error {
	if bytes <= 0 || bytes > math.MaxInt32/2 {
		return refuse("setsockopt", syscall.EINVAL, nil, "a buffer of %d bytes is out of range", bytes)
	}
	if err := c.sock.SetsockoptInt(sys.SOL_SOCKET, force, bytes); !errors.Is(err, syscall.EPERM) {
		return err
	}
	return c.sock.SetsockoptInt(sys.SOL_SOCKET, plain, bytes)
}

// CancelSentTo drops the messages to dst that its kernel has not acknowledged,
// sent or not: some may arrive all the same. RDMA operations that asked for
// it end with cmsg.StatusCanceled. That nothing was there to drop is no error.
func (c *Conn) CancelSentTo(dst netip.AddrPort) error {
	dst = unmap(dst)
	if err := checkDestination("setsockopt", dst); err != nil {
		return c.opError(opSet, dst, err)
	}
	scope, err := c.resolveZone(dst.Addr())
	if err != nil {
		return c.opError(opSet, dst, err)
	}
	// The length tells the kernel the family (net/rds/af_rds.c:rds_cancel_sent_to).
	var name [abi.SizeofSockaddrIn6]byte
	n := abi.PutSockaddr(&name, dst, scope)
	if err := c.sock.Setsockopt(abi.SOL_RDS, abi.RDS_CANCEL_SENT_TO, name[:n]); err != nil {
		return c.opError(opSet, dst, err)
	}
	return nil
}

// SetCongestionMonitor switches RDS_CONG_MONITOR. See Config.NoCongestionMonitor.
func (c *Conn) SetCongestionMonitor(on bool) error {
	return c.setBool(abi.SOL_RDS, abi.RDS_CONG_MONITOR, on)
}

// SetRecvErr switches RDS_RECVERR: the kernel then reports RDMA operations that
// a broken connection dropped although they did not ask for a report.
func (c *Conn) SetRecvErr(on bool) error {
	return c.setBool(abi.SOL_RDS, abi.RDS_RECVERR, on)
}

// RecvErr returns whether RDS_RECVERR is on.
func (c *Conn) RecvErr() (bool, error) {
	n, err := c.sock.GetsockoptInt(abi.SOL_RDS, abi.RDS_RECVERR)
	if err != nil {
		return false, c.opError(opGet, netip.AddrPort{}, err)
	}
	return n != 0, nil
}

// SetTimestamps switches the time stamps of Config.Timestamps.
func (c *Conn) SetTimestamps(on bool) error {
	return c.setBool(sys.SOL_SOCKET, sys.TimestampOption(), on)
}

// SetRXPath asks for the durations of Config.RXPath; none switches them off.
func (c *Conn) SetRXPath(points ...cmsg.RXPoint) error {
	var so abi.RxTraceSo
	if len(points) > len(so.Pos) {
		return c.opError(opSet, netip.AddrPort{}, refuse("setsockopt", syscall.EFAULT, nil,
			"%d points of the receive path asked for, and there are %d", len(points), len(so.Pos)))
	}
	for i, p := range points {
		// Kernels before 6.1.76 accept one more and read past the end of an array.
		if p >= abi.RDS_MSG_RX_DGRAM_TRACE_MAX {
			return c.opError(opSet, netip.AddrPort{}, refuse("setsockopt", syscall.EFAULT, nil, "%v is no point of the receive path", p))
		}
		so.Pos[i] = uint8(p)
	}
	so.Traces = uint8(len(points))
	if err := c.sock.Setsockopt(abi.SOL_RDS, abi.SO_RDS_MSG_RXPATH_LATENCY, so.Append(nil)); err != nil {
		return c.opError(opSet, netip.AddrPort{}, err)
	}
	return nil
}

// SetTOS sets the type of service, once and before the first message. See Config.TOS.
func (c *Conn) SetTOS(tos uint8) error {
	if err := c.setTOS(tos); err != nil {
		return c.opError(opSet, netip.AddrPort{}, err)
	}
	return nil
}

func (c *Conn) setTOS(tos uint8) error {
	if err := c.sock.SetTOS(tos); err != nil {
		return c.explainTOS(err, tos)
	}
	return nil
}

// TOS returns the type of service in use, which over TCP is 0 whatever was set.
func (c *Conn) TOS() (uint8, error) {
	tos, err := c.sock.TOS()
	if err != nil {
		return 0, c.opError(opGet, netip.AddrPort{}, err)
	}
	return tos, nil
}

// ResetConnection makes the kernel drop and make anew its connection from the
// Conn's local address to dst with the type of service tos, or all from the
// local address if dst is the zero Addr. Only UEK kernels can, with CAP_NET_ADMIN; on mainline the
// error is ErrNotSupported. Not yet seen on a kernel.
func (c *Conn) ResetConnection(dst netip.Addr, tos uint8) error {
	dst = dst.Unmap()
	if err := c.needUEK("a connection reset"); err != nil {
		return c.opError(opSet, netip.AddrPortFrom(dst, 0), err)
	}
	src := c.local.Addr()
	if dst.IsValid() && dst.Is4() != src.Is4() {
		return c.opError(opSet, netip.AddrPortFrom(dst, 0), c.checkFamily(netip.AddrPortFrom(dst, 0)))
	}
	var err error
	if src.Is4() {
		r := abi.Reset{TOS: tos, Src: src.As4()}
		if dst.IsValid() {
			r.Dst = dst.As4()
		}
		err = c.sock.Setsockopt(abi.SOL_RDS, abi.UEK_RDS_CONN_RESET, r.Append(nil))
	} else {
		r := abi.Reset6{TOS: tos, Src: src.As16()}
		if dst.IsValid() {
			r.Dst = dst.As16()
		}
		err = c.sock.Setsockopt(abi.SOL_RDS, abi.UEK_RDS6_CONN_RESET, r.Append(nil))
	}
	if err != nil {
		return c.opError(opSet, netip.AddrPortFrom(dst, 0), err)
	}
	return nil
}

// SetINQ switches a control message of kind cmsg.KindINQ with each message: how many bytes
// are left unread behind it. Only UEK kernels have it; on mainline the error is
// ErrNotSupported. Not yet seen on a kernel.
func (c *Conn) SetINQ(on bool) error {
	if err := c.needUEK("SO_RDS_INQ"); err != nil {
		return c.opError(opSet, netip.AddrPort{}, err)
	}
	return c.setBool(abi.SOL_RDS, abi.UEK_SO_RDS_INQ, on)
}

func (c *Conn) needUEK(what string) error {
	if c.dialect == cmsg.UEK {
		return nil
	}
	return refuse("setsockopt", syscall.ENOPROTOOPT, ErrNotSupported, "%s exists on UEK kernels only, and this one is %v", what, c.dialect)
}

func (c *Conn) setBool(level, name int, on bool) error {
	var v int
	if on {
		v = 1
	}
	if err := c.sock.SetsockoptInt(level, name, v); err != nil {
		return c.opError(opSet, netip.AddrPort{}, err)
	}
	return nil
}

func (c *Conn) setTransport(t abi.Transport) error {
	return c.sock.SetsockoptInt(abi.SOL_RDS, c.dialect.TransportOption(), int(t))
}

func (c *Conn) getTransport() (abi.Transport, error) {
	n, err := c.sock.GetsockoptInt(abi.SOL_RDS, c.dialect.TransportOption())
	return abi.Transport(n), err
}
