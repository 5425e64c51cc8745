package rdssock

import (
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/sys"
)

// controlSize is the room for control messages of one receive, in bytes. The kernel
// throws away notifications for which there is none.
const controlSize = 1024

// Flags of received messages, as recvmsg(2) reports them.
const (
	// MsgTrunc says that the message was longer than the buffer, and the
	// rest is gone.
	MsgTrunc = sys.MSG_TRUNC
	// MsgCtrunc says that not all control messages fitted.
	MsgCtrunc = sys.MSG_CTRUNC
)

// ReadFrom is ReadFromAddrPort for a net.PacketConn. The net.Addr is an Addr.
func (c *Conn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, src, err := c.ReadFromAddrPort(b)
	return n, opAddr(src), err
}

// ReadFromAddrPort waits for a message, copies up to len(b) bytes of it into b and
// returns their number and where it came from. 0 bytes without an error are an
// empty message. If the message was longer, the error is ErrTruncated, n and the address
// are valid and the rest of the message is gone.
func (c *Conn) ReadFromAddrPort(b []byte) (n int, src netip.AddrPort, err error) {
	n, _, flags, src, err := c.ReadMsgAddrPort(b, nil)
	if err == nil && flags&MsgTrunc != 0 {
		err = c.opError(opRead, src, errTruncated(len(b)))
	}
	return n, src, err
}

// ReadMsgAddrPort is ReadFromAddrPort that also copies the message's control messages
// into oob, for package cmsg to parse, and returns the flags that the kernel
// reported: MsgTrunc instead of the error, and MsgCtrunc if oob could not take
// them all. Notifications never end up in oob: they go to the calls of the Conn
// that wait for them.
func (c *Conn) ReadMsgAddrPort(b, oob []byte) (n, oobn, flags int, src netip.AddrPort, err error) {
	r := c.reads.Get().(*readOp)
	defer r.release()
	r.prepare(b, 0)
	r.wait = true
	if err := c.sock.Raw().Read(r.run); err != nil {
		return 0, 0, 0, netip.AddrPort{}, c.opError(opRead, netip.AddrPort{}, err)
	}
	return r.result(oob)
}

// ReadMsgContext is ReadMsgAddrPort that also ends when ctx does, with its error. The read deadline
// holds as well.
func (c *Conn) ReadMsgContext(ctx context.Context, b, oob []byte) (n, oobn, flags int, src netip.AddrPort, err error) {
	if ctx.Done() == nil {
		return c.ReadMsgAddrPort(b, oob)
	}
	r := c.reads.Get().(*readOp)
	defer r.release()
	r.prepare(b, 0)
	if err := c.readContext(ctx, r); err != nil {
		return 0, 0, 0, netip.AddrPort{}, c.opError(opRead, netip.AddrPort{}, err)
	}
	return r.result(oob)
}

// readContext attempts r until it gets a message, waiting beside the
// runtime's poller so that other reads keep their own deadlines.
func (c *Conn) readContext(ctx context.Context, r *readOp) error {
	watch, _, err := c.watches.open(c)
	if err != nil {
		return err
	}
	w := newWaiter(event{kind: eventReadable})
	c.waiters.add(w)
	defer func() {
		c.waiters.remove(w)
		// There may be more messages than this one, and this call may have been
		// told of one that it did not take.
		if next := c.waiters.first(w.event); next != nil {
			watch.wake(next)
		}
	}()
	stop := context.AfterFunc(ctx, func() { watch.wake(w) })
	defer stop()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		done := c.readDeadline.done()
		if isClosed(done) {
			return os.ErrDeadlineExceeded
		}
		if err := c.sock.Raw().Control(r.runOnce); err != nil {
			return err
		}
		if r.errno != syscall.EAGAIN {
			return nil
		}
		if err := watch.wait(w, done); err != nil {
			return err
		}
	}
}

// Peek waits for a message like ReadFromAddrPort and copies the start of it
// into b, but leaves it to be read. size is the length of the whole message in bytes.
func (c *Conn) Peek(b []byte) (size int, src netip.AddrPort, err error) {
	r := c.reads.Get().(*readOp)
	defer r.release()
	r.prepare(b, sys.MSG_PEEK|sys.MSG_TRUNC)
	r.wait = true
	if err := c.sock.Raw().Read(r.run); err != nil {
		return 0, netip.AddrPort{}, c.opError(opRead, netip.AddrPort{}, err)
	}
	size, _, _, src, err = r.result(nil)
	return size, src, err
}

// A readOp is one receive. Its functions are made once, so that handing them
// to a RawConn allocates nothing.
type readOp struct {
	conn    *Conn
	run     func(fd uintptr) bool // for RawConn.Read
	runOnce func(fd uintptr)      // for RawConn.Control
	wait    bool                  // EAGAIN means waiting
	msg     sys.Msg
	flags   int
	n       int
	errno   syscall.Errno
	control [controlSize]byte
}

func newReadOp(c *Conn) *readOp {
	r := &readOp{conn: c}
	r.run = r.receive
	r.runOnce = func(fd uintptr) { r.receive(fd) }
	return r
}

func (r *readOp) prepare(b []byte, flags int) {
	r.msg.SetData(b)
	r.flags = flags
}

// release gives r back without the caller's buffer.
func (r *readOp) release() {
	r.msg.SetData(nil)
	r.wait = false
	r.conn.reads.Put(r)
}

// receive takes the next message, delivering notifications that come before
// it. It reports whether the call is over.
func (r *readOp) receive(fd uintptr) bool {
	for {
		r.msg.SetControl(r.control[:])
		r.n, r.errno = r.msg.Recv(fd, r.flags)
		switch {
		case r.errno == syscall.EAGAIN:
			return !r.wait
		case r.errno != 0 || r.msg.HasName():
			return true
		}
		r.conn.deliver(r.control[:r.msg.ControlLen()], nil)
	}
}

// result is what the call returns to its user.
func (r *readOp) result(oob []byte) (n, oobn, flags int, src netip.AddrPort, err error) {
	c := r.conn
	if r.errno != 0 {
		return 0, 0, 0, netip.AddrPort{}, c.opError(opRead, netip.AddrPort{}, explainRecv(r.errno))
	}
	src, _, ok := r.msg.Name()
	if !ok {
		return 0, 0, 0, netip.AddrPort{}, c.opError(opRead, netip.AddrPort{}, errAddressFamily)
	}
	flags = r.msg.Flags()
	if control := r.control[:r.msg.ControlLen()]; len(control) > 0 {
		var whole bool
		if oobn, whole = c.deliver(control, oob); !whole {
			flags |= MsgCtrunc
		}
	}
	return r.n, oobn, flags, c.withZone(src), nil
}

// deliver takes the notifications out of received control messages and wakes
// who waits for them. The others are copied into oob; whole is false if one did not fit.
func (c *Conn) deliver(control, oob []byte) (n int, whole bool) {
	whole = true
	read, _ := c.watches.current()
	it := cmsg.Parse(c.dialect, control)
	for it.Next() {
		m := it.Message()
		switch m.Kind() {
		case cmsg.KindCongestionUpdate:
			if classes, err := m.CongestionUpdate(); err == nil {
				for class := range uint16(abi.RDS_CONG_MONITOR_SIZE) {
					if classes.Contains(class) {
						c.waiters.each(event{eventCongestion, uint64(class)}, read.wake)
					}
				}
			}
		case cmsg.KindRDMAStatus:
			if s, err := m.RDMAStatus(); err == nil {
				c.completions.deliver(event{eventCompletion, s.Token}, s.Status, read)
			}
		case cmsg.KindZerocopyCompletion:
			if z, err := m.ZerocopyCompletion(); err == nil {
				for _, cookie := range z.Cookies[:z.N] {
					c.completions.deliver(event{eventZerocopy, uint64(cookie)}, cmsg.StatusSuccess, read)
				}
			}
		default:
			if oob == nil {
				continue
			}
			raw := it.Raw()
			if n+len(raw) > len(oob) {
				whole = false
				continue
			}
			n += copy(oob[n:], raw)
		}
	}
	return n, whole
}

// A peekOp learns what waits at the descriptor. With MSG_PEEK the kernel hands
// out and forgets notifications, but keeps messages (net/rds/recv.c:rds_recvmsg).
type peekOp struct {
	conn    *Conn
	msg     sys.Msg
	control [controlSize]byte
}

func newPeekOp(c *Conn) *peekOp {
	return &peekOp{conn: c}
}

// learn delivers all pending notifications and, when a message waits, wakes a read.
func (p *peekOp) learn(fd uintptr) {
	for {
		p.msg.SetData(nil)
		p.msg.SetControl(p.control[:])
		if _, errno := p.msg.Recv(fd, sys.MSG_PEEK); errno != 0 {
			return
		}
		p.conn.deliver(p.control[:p.msg.ControlLen()], nil)
		if p.msg.HasName() {
			if w := p.conn.waiters.first(event{kind: eventReadable}); w != nil {
				read, _ := p.conn.watches.current()
				read.wake(w)
			}
			return
		}
	}
}
