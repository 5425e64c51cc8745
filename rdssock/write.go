package rdssock

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/sys"
)

// retestInterval is how often a write to a congested destination tries again
// although nothing says that it should. Kernels before 6.1.190 can lose the
// wake-up (CVE-2026-90081), and without the congestion monitor there is none.
const retestInterval = 100 * time.Millisecond

// WriteTo is WriteToAddrPort for a net.PacketConn. dst is an Addr, or another
// net.Addr with an AddrPort method.
func (c *Conn) WriteTo(b []byte, dst net.Addr) (int, error) {
	ap, ok := addrPort(dst)
	if !ok {
		return 0, &net.OpError{Op: opWrite, Net: "rds", Source: c.LocalAddr(), Addr: dst, Err: errNoAddrPort(dst)}
	}
	return c.WriteToAddrPort(b, ap)
}

// WriteToAddrPort queues b as one message to dst, or to the connected peer if dst is
// the zero AddrPort. An empty b is an empty message. It waits while the send buffer
// is full and, unless Config.Congestion says otherwise, while the destination
// is congested; never for the peer's answer. An error means that nothing was
// queued, but for what the package's documentation says of old kernels.
//
// The errors are ErrMessageTooLong, ErrCongested, ErrQueueFull, and
// os.ErrDeadlineExceeded after the write deadline.
func (c *Conn) WriteToAddrPort(b []byte, dst netip.AddrPort) (int, error) {
	return c.write(context.Background(), b, nil, dst, 0)
}

// WriteMsgAddrPort is WriteToAddrPort with control messages, which package cmsg makes.
func (c *Conn) WriteMsgAddrPort(b, oob []byte, dst netip.AddrPort) (n, oobn int, err error) {
	return c.WriteMsgContext(context.Background(), b, oob, dst)
}

// WriteMsgContext is WriteMsgAddrPort that also ends when ctx does, with its
// error. The write deadline holds as well.
func (c *Conn) WriteMsgContext(ctx context.Context, b, oob []byte, dst netip.AddrPort) (n, oobn int, err error) {
	n, err = c.write(ctx, b, oob, dst, 0)
	if err != nil {
		return 0, 0, err
	}
	return n, len(oob), nil
}

func (c *Conn) write(ctx context.Context, b, oob []byte, dst netip.AddrPort, flags int) (int, error) {
	w := c.writes.Get().(*writeOp)
	defer w.release()
	if err := w.prepare(b, oob, dst, flags); err != nil {
		return 0, c.opError(opWrite, dst, err)
	}
	if err := w.send(ctx); err != nil {
		return 0, c.opError(opWrite, w.dst, err)
	}
	return w.n, nil
}

// A writeOp is one send. Its functions are made once, so that handing them to
// a RawConn allocates nothing.
type writeOp struct {
	conn    *Conn
	run     func(fd uintptr) bool // for RawConn.Write
	runOnce func(fd uintptr)      // for RawConn.Control
	wait    bool                  // EAGAIN means waiting for room
	msg     sys.Msg
	flags   int
	size    int
	control bool
	dst     netip.AddrPort // where the message goes, connected or not
	n       int
	errno   syscall.Errno
}

func newWriteOp(c *Conn) *writeOp {
	w := &writeOp{conn: c}
	w.run = w.attempt
	w.runOnce = func(fd uintptr) { w.attempt(fd) }
	return w
}

// prepare fills in the message, or says why the kernel would not take it.
func (w *writeOp) prepare(b, oob []byte, dst netip.AddrPort, flags int) error {
	c := w.conn
	w.size, w.control, w.flags = len(b), len(oob) > 0, flags
	if err := c.checkSize(len(b)); err != nil {
		return err
	}
	name, scope := unmap(dst), uint32(0)
	w.dst = name
	if dst.IsValid() {
		if err := checkDestination("sendmsg", name); err != nil {
			return err
		}
		if err := c.checkFamily(name); err != nil {
			return err
		}
		var err error
		if scope, err = c.resolveZone(name.Addr()); err != nil {
			return err
		}
	} else if w.dst = c.remote; !w.dst.IsValid() {
		return errNoDestination
	}
	w.msg.SetData(b)
	w.msg.SetControl(oob)
	w.msg.SetName(name, scope)
	return nil
}

// release gives w back without the caller's buffers.
func (w *writeOp) release() {
	w.msg.SetData(nil)
	w.msg.SetControl(nil)
	w.conn.writes.Put(w)
}

func (w *writeOp) attempt(fd uintptr) bool {
	w.n, w.errno = w.msg.Send(fd, w.flags)
	return w.errno != syscall.EAGAIN || !w.wait
}

// send sends the message, within ctx and the write deadline.
func (w *writeOp) send(ctx context.Context) error {
	c := w.conn
	if c.limit != nil {
		if err := c.limit.admit(ctx, w); err != nil {
			return err
		}
	}
	if ctx.Done() == nil {
		// A message with control messages can be refused with EAGAIN because
		// RDMA is not connected yet, of which no poller hears.
		w.wait = !w.control
		if err := c.sock.Raw().Write(w.run); err != nil {
			return w.explainWait(err)
		}
	} else if err := w.try(ctx); err != nil {
		return err
	}
	for {
		switch w.errno {
		case 0:
			return nil
		case syscall.ENOBUFS:
			if c.congestion == FailWhenCongested {
				return w.explain()
			}
			if err := w.waitRelieved(ctx); err != nil {
				return err
			}
		case syscall.EAGAIN:
			if err := w.waitRoom(ctx); err != nil {
				return w.explainWait(err)
			}
		default:
			return w.explain()
		}
	}
}

// try makes one attempt, which does not wait for other writes.
func (w *writeOp) try(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if isClosed(w.conn.writeDeadline.done()) {
		return os.ErrDeadlineExceeded
	}
	return w.conn.sock.Raw().Control(w.runOnce)
}

// waitRelieved waits until the destination is no longer congested, and attempts to send. The
// kernel tells once, for all ports of the class, and only to a socket that has
// been refused with ENOBUFS (net/rds/cong.c:rds_cong_wait).
func (w *writeOp) waitRelieved(ctx context.Context) error {
	c := w.conn
	watch, _, err := c.watches.open(c)
	if err != nil {
		return err
	}
	waiter := newWaiter(event{eventCongestion, uint64(abi.CongBit(w.dst.Port()))})
	c.waiters.add(waiter)
	defer c.waiters.remove(waiter)
	stop := context.AfterFunc(ctx, func() { watch.wake(waiter) })
	defer stop()
	done := c.writeDeadline.done()
	for {
		if err := w.try(ctx); err != nil || w.errno != syscall.ENOBUFS {
			return err
		}
		retest := time.AfterFunc(c.retestInterval, func() { watch.wake(waiter) })
		err := watch.wait(waiter, done)
		retested := !retest.Stop()
		if err != nil {
			return err
		}
		if !retested {
			continue
		}
		if err := w.try(ctx); err != nil || w.errno != syscall.ENOBUFS {
			c.rescues.Add(1)
			return err
		}
	}
}

// waitRoom waits until the send buffer has room, and attempts to send.
func (w *writeOp) waitRoom(ctx context.Context) error {
	c := w.conn
	_, watch, err := c.watches.open(c)
	if err != nil {
		return err
	}
	waiter := newWaiter(event{kind: eventWritable})
	c.waiters.add(waiter)
	defer c.waiters.remove(waiter)
	stop := context.AfterFunc(ctx, func() { watch.wake(waiter) })
	defer stop()
	done := c.writeDeadline.done()
	var delay time.Duration
	for {
		tried := w.try(ctx)
		if tried == nil && w.errno != syscall.EAGAIN {
			return nil
		}
		var room bool
		if err := c.sock.Raw().Control(func(fd uintptr) { room = sys.Writable(fd) }); err != nil {
			return err
		}
		switch {
		case tried != nil && room:
			return w.explainRefused(tried)
		case tried != nil:
			return tried
		case !room:
			delay = 0
			if err := watch.wait(waiter, done); err != nil {
				return err
			}
			continue
		}
		// Refused although there is room: RDMA is not connected yet, or the kernel counts
		// by destination. Nothing will tell when that changes.
		delay = min(max(2*delay, time.Millisecond), retestInterval)
		if err := pause(ctx, done, delay); err != nil {
			return w.explainRefused(err)
		}
	}
}

func pause(ctx context.Context, done <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-done:
		return os.ErrDeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explainRefused says what the wait was for when the send buffer has room. A
// region cannot be registered before the connection is up (net/rds/ib_rdma.c:rds_ib_get_mr).
func (w *writeOp) explainRefused(err error) error {
	if !w.control {
		return err
	}
	return &callError{err: err, hint: fmt.Sprintf("no RDMA connection to %v yet (EAGAIN)", w.dst.Addr())}
}

// explainWait adds who fills the send buffer to the end of a wait for room in it.
func (w *writeOp) explainWait(err error) error {
	if err != os.ErrDeadlineExceeded || w.errno != syscall.EAGAIN {
		return err
	}
	return errQueueFull(w.conn.topHolder(), err)
}
