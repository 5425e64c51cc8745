package rdssock

import (
	"net/netip"
	"syscall"
)

// TryWriteToAddrPort is WriteToAddrPort that waits for nothing, whatever
// Config.Congestion says. When the message could be queued only later, nothing
// is, and the error is ErrQueueFull or ErrCongested, both with syscall.EAGAIN
// or syscall.ENOBUFS of the kernel. The write deadline is not looked at.
func (c *Conn) TryWriteToAddrPort(b []byte, dst netip.AddrPort) (int, error) {
	n, _, err := c.TryWriteMsgAddrPort(b, nil, dst)
	return n, err
}

// TryWriteMsgAddrPort is TryWriteToAddrPort with control messages. syscall.EAGAIN can then
// also mean that the memory they register has no RDMA connection to be registered on.
func (c *Conn) TryWriteMsgAddrPort(b, oob []byte, dst netip.AddrPort) (n, oobn int, err error) {
	w := c.writes.Get().(*writeOp)
	defer w.release()
	if err := w.prepare(b, oob, dst, 0); err != nil {
		return 0, 0, c.opError(opWrite, dst, err)
	}
	if c.limit != nil {
		if err := c.limit.tryAdmit(w); err != nil {
			return 0, 0, c.opError(opWrite, w.dst, err)
		}
	}
	w.wait = false
	if err := c.sock.Raw().Control(w.runOnce); err != nil {
		return 0, 0, c.opError(opWrite, w.dst, err)
	}
	if w.errno != 0 {
		return 0, 0, c.opError(opWrite, w.dst, w.explain())
	}
	return w.n, len(oob), nil
}

// TryReadFromAddrPort is ReadFromAddrPort that waits for nothing: ok is false,
// without an error, when no message is there. It neither disturbs reads that
// wait nor looks at the read deadline.
func (c *Conn) TryReadFromAddrPort(b []byte) (n int, src netip.AddrPort, ok bool, err error) {
	r := c.reads.Get().(*readOp)
	defer r.release()
	r.prepare(b, 0)
	if err := c.sock.Raw().Control(r.runOnce); err != nil {
		return 0, netip.AddrPort{}, false, c.opError(opRead, netip.AddrPort{}, err)
	}
	if r.errno == syscall.EAGAIN {
		return 0, netip.AddrPort{}, false, nil
	}
	n, _, flags, src, err := r.result(nil)
	if err != nil {
		return 0, netip.AddrPort{}, false, err
	}
	if flags&MsgTrunc != 0 {
		err = c.opError(opRead, src, errTruncated(len(b)))
	}
	return n, src, true, err
}
