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
	buffer []byte            // kept alive and unmoved until the kernel is done with it
	report func(cmsg.Status) // or nil

	mu     sync.Mutex
	done   bool
	status cmsg.Status
}

// Wait waits until the kernel has reported, which may be long if the peer is
// down. The error is that of ctx, or net.ErrClosed; the operation then goes on, and Wait
// may be called again.
func (p *Completion) Wait(ctx context.Context) error {
	if _, done := p.Status(); done {
		return nil
	}
	c := p.conn
	watch, _, err := c.watches.open(c)
	if err != nil {
		if c.closed.Load() && p.canceled(ctx) {
			return nil
		}
		return c.opError("wait", netip.AddrPort{}, err)
	}
	// Another goroutine may be waiting for the same.
	defer watch.wake(p.waiter)
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { watch.wake(p.waiter) })
		defer stop()
	}
	for {
		if _, done := p.Status(); done {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return c.opError("wait", netip.AddrPort{}, err)
		}
		if err := watch.wait(p.waiter, nil); err != nil {
			if c.closed.Load() && p.canceled(ctx) {
				return nil
			}
			return c.opError("wait", netip.AddrPort{}, err)
		}
	}
}

// canceled waits until Close, which is under way, has canceled the operation. It
// is false for what Close does not cancel.
func (p *Completion) canceled(ctx context.Context) bool {
	select {
	case <-p.conn.completions.closed():
	case <-ctx.Done():
	}
	_, done := p.Status()
	return done
}

// Status returns how the operation ended, and whether it has.
func (p *Completion) Status() (s cmsg.Status, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status, p.done
}

// Forget ends the interest in an operation that is never going to be reported,
// because its message was not sent. It is false if the report has come all the
// same, from Close.
func (p *Completion) Forget() bool { return p.conn.completions.remove(p) }

// ExpectCompletion prepares p for the kernel's report on an RDMA operation and
// returns the token for the operation's control message, which needs
// cmsg.FlagNotifyMe as well. It is called before the message is written. p may be
// the zero Completion, or one that is done or forgotten and that nobody waits for:
// nothing is allocated then.
//
// Unless report is nil, it is called once with the status, before Wait returns, by
// whichever call of the Conn receives it. It must neither block nor receive.
//
// Close cancels the operation (net/rds/af_rds.c:rds_release), and reports that
// as the kernel then no longer can.
func (c *Conn) ExpectCompletion(p *Completion, report func(cmsg.Status)) (token uint64) {
	token = c.token.Add(1)
	e := event{eventCompletion, token}
	if p.waiter == nil {
		p.waiter = newWaiter(e)
	}
	p.mu.Lock()
	p.conn, p.waiter.event, p.report = c, e, report
	p.done, p.status = false, 0
	p.mu.Unlock()
	c.completions.add(p)
	return token
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
	p := &Completion{conn: c, waiter: newWaiter(event{eventZerocopy, uint64(cookie)}), buffer: b}
	c.completions.add(p)
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
	end     chan struct{} // nil until somebody waits; closed by close
	ended   bool
}

func (cs *completions) add(p *Completion) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.pending == nil {
		cs.pending = make(map[event]*Completion)
	}
	cs.pending[p.waiter.event] = p
}

func (cs *completions) remove(p *Completion) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.pending[p.waiter.event] != p {
		return false
	}
	delete(cs.pending, p.waiter.event)
	return true
}

// close reports all RDMA operations as canceled, which the kernel has done by
// then.
func (cs *completions) close() {
	cs.mu.Lock()
	var canceled []event
	for e := range cs.pending {
		if e.kind == eventCompletion {
			canceled = append(canceled, e)
		}
	}
	cs.mu.Unlock()
	for _, e := range canceled {
		cs.deliver(e, cmsg.StatusCanceled, nil)
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.end != nil && !cs.ended {
		close(cs.end)
	}
	cs.ended = true
}

// closed is closed at the end of close.
func (cs *completions) closed() <-chan struct{} {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.end == nil {
		cs.end = make(chan struct{})
		if cs.ended {
			close(cs.end)
		}
	}
	return cs.end
}

func (cs *completions) deliver(e event, s cmsg.Status, watch *watch) {
	cs.mu.Lock()
	p := cs.pending[e]
	delete(cs.pending, e)
	cs.mu.Unlock()
	if p == nil {
		return
	}
	if p.report != nil {
		p.report(s)
	}
	p.mu.Lock()
	// What report set going may have expected p again.
	if p.waiter.event == e {
		p.status, p.done, p.buffer = s, true, nil
	}
	p.mu.Unlock()
	watch.wake(p.waiter)
}
