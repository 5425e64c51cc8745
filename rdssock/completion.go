package rdssock

import (
	"context"
	"net/netip"
	"sync"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/sys"
)

// A Completion is something that the kernel will report: that it is done with
// the buffer of WriteZerocopy, or with an RDMA operation.
type Completion struct {
	conn   *Conn
	waiter *waiter
	buffer []byte // kept alive and unmoved until the kernel is done with it

	mu     sync.Mutex
	done   bool
	status cmsg.Status
}

// Wait waits until the kernel has reported, which may be long if the peer is
// down. The error is that of ctx, or net.ErrClosed; the operation then goes on, and Wait
// may be called again.
func (p *Completion) Wait(ctx context.Context) error {
	c := p.conn
	watch, _, err := c.watches.open(c)
	if err != nil {
		return c.opError("wait", netip.AddrPort{}, err)
	}
	// Another goroutine may be waiting for the same.
	defer watch.wake(p.waiter)
	stop := context.AfterFunc(ctx, func() { watch.wake(p.waiter) })
	defer stop()
	for {
		if _, done := p.Status(); done {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return c.opError("wait", netip.AddrPort{}, err)
		}
		if err := watch.wait(p.waiter, nil); err != nil {
			return c.opError("wait", netip.AddrPort{}, err)
		}
	}
}

// Status returns how the operation ended, and whether it has.
func (p *Completion) Status() (s cmsg.Status, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status, p.done
}

// Forget ends the interest in an operation that is never going to be reported,
// because its message was not sent.
func (p *Completion) Forget() { p.conn.completions.remove(p) }

// ExpectCompletion prepares for the kernel's report on an RDMA operation whose
// control message carries token and cmsg.FlagNotifyMe. It is called before the
// message is written, with a token that no other operation under way on the Conn
// has.
func (c *Conn) ExpectCompletion(token uint64) *Completion {
	return c.completions.add(c, event{eventCompletion, token}, nil)
}

// WriteZerocopy is WriteToAddrPort without copying b into the kernel. b must not
// change until the returned Completion is done: what is sent is what it holds
// when the network card or the receiver reads it. It needs Config.Zerocopy and TCP
// (net/rds/send.c:rds_sendmsg), and counts against RLIMIT_MEMLOCK.
//
// An empty message has nothing to share and is refused.
func (c *Conn) WriteZerocopy(b []byte, dst netip.AddrPort) (*Completion, error) {
	switch {
	case !c.zerocopy:
		return nil, c.opError(opWrite, dst, errZerocopyOff)
	case len(b) == 0:
		return nil, c.opError(opWrite, dst, errZerocopyEmpty)
	}
	cookie := c.cookie.Add(1)
	oob, err := cmsg.Encoder{Dialect: c.dialect}.AppendZerocopyCookie(nil, cookie)
	if err != nil {
		return nil, c.opError(opWrite, dst, err)
	}
	p := c.completions.add(c, event{eventZerocopy, uint64(cookie)}, b)
	if _, err := c.write(context.Background(), b, oob, dst, sys.MSG_ZEROCOPY); err != nil {
		p.Forget()
		return nil, err
	}
	return p, nil
}

// completions are the reports that somebody expects. An entry stays until its
// report comes, since the kernel uses the memory until then.
type completions struct {
	mu      sync.Mutex
	pending map[event]*Completion
}

func (cs *completions) add(c *Conn, e event, buffer []byte) *Completion {
	p := &Completion{conn: c, waiter: newWaiter(e), buffer: buffer}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.pending == nil {
		cs.pending = make(map[event]*Completion)
	}
	cs.pending[e] = p
	return p
}

func (cs *completions) remove(p *Completion) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.pending[p.waiter.event] == p {
		delete(cs.pending, p.waiter.event)
	}
}

func (cs *completions) deliver(e event, s cmsg.Status, watch *watch) {
	cs.mu.Lock()
	p := cs.pending[e]
	delete(cs.pending, e)
	cs.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	p.status, p.done, p.buffer = s, true, nil
	p.mu.Unlock()
	watch.wake(p.waiter)
}
