package rdma

import (
	"context"
	"net/netip"
	"sync/atomic"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/rdssock"
)

// An Operation is one read or write of the kernel. The exported fields are set
// before it is started and left alone until it has ended; then it may be used
// again, for which nothing is allocated.
type Operation struct {
	// Peer is whose memory it is. The message that follows the operation goes to its port.
	Peer netip.AddrPort
	// Key is that of the peer's memory, and Offset where in it the operation begins, in bytes.
	Key    cmsg.Key
	Offset uint64
	// Local is this side's memory, up to 1024 slices and 1 MiB in all.
	Local []Slice

	// Payload is the message that follows the operation, and is empty if nil. The
	// peer reads it when the operation is over.
	Payload []byte
	// Silent lets the peer's program hear nothing, unless there is a Payload; a
	// registration for use once stays. The message then goes to a port that nobody
	// can have. The kernel's own way, RDS_RDMA_SILENT, is not used: it reports such
	// an operation only after a later one with a message, and when too many of them
	// follow each other the connection is blocked for good
	// (net/rds/ib_send.c:rds_ib_xmit_rdma asks the device for no report).
	Silent bool
	// NoFence lets the message overtake a read: the peer may then see it before the
	// read is over, and so may this side see the end of the Operation, which the
	// kernel reports when the message is acknowledged, if the device has not done so
	// by then (net/rds/send.c:rds_send_remove_from_sock).
	NoFence bool

	// Done is called when the operation has ended, unless it is nil, by whichever
	// call received the kernel's report: see [Conn.DeliverCompletions]. It must
	// neither wait, nor receive, nor start the same Operation again. Err tells how
	// it ended.
	Done func(*Operation)
	// Tag is the caller's own.
	Tag uint64

	conn       *Conn
	busy       atomic.Bool
	toSelf     bool   // it is counted in conn.silentToSelf
	name       string // of the operation in errors
	completion rdssock.Completion
	report     func(cmsg.Status) // finish, made once
	control    []byte
	regions    []*Region // that are kept
	result     error
}

// The operations' names in errors.
const (
	opRead  = "rdma-read"
	opWrite = "rdma-write"
)

// StartRead starts a read of the peer's memory into op.Local. It waits while the
// send buffer is full, within ctx, but not for the operation. An error means that
// nothing was started.
func (c *Conn) StartRead(ctx context.Context, op *Operation) error {
	flags := cmsg.FlagFence
	if op.NoFence {
		flags = 0
	}
	return c.start(ctx, op, opRead, flags)
}

// StartWrite starts a write of op.Local to the peer's memory, like [Conn.StartRead].
func (c *Conn) StartWrite(ctx context.Context, op *Operation) error {
	return c.start(ctx, op, opWrite, cmsg.FlagReadWrite)
}

func (c *Conn) start(ctx context.Context, op *Operation, name string, flags cmsg.Flags) error {
	size, err := op.check()
	if err != nil {
		return c.opError(name, op.Peer, err)
	}
	err = c.launch(ctx, op, name, func(f frame, token uint64) error {
		list := f[:0]
		for _, s := range op.Local {
			list = c.encoder.AppendIovec(list, s.iovec())
		}
		op.control = c.encoder.AppendRDMAArgs(op.control[:0], cmsg.RDMAArgs{
			Key:        op.Key,
			Remote:     cmsg.Iovec{Addr: op.Offset, Len: uint64(size)},
			LocalAddr:  f.listAddr(),
			LocalCount: uint64(len(op.Local)),
			Flags:      flags | cmsg.FlagNotifyMe,
			Token:      token,
		})
		return nil
	})
	if err != nil {
		return c.opError(name, op.Peer, explainOperation(err))
	}
	return nil
}

// check says what is wrong with an operation, where the kernel has a bare EINVAL.
func (op *Operation) check() (size int, err error) {
	switch {
	case op.Key == 0:
		return 0, refuse(ErrNotRegistered, "0 is no key")
	case len(op.Local) == 0:
		return 0, refuse(ErrRange, "no local memory")
	case len(op.Local) > maxLocal:
		return 0, refuse(ErrTooLarge, "%d local slices, and an operation has at most %d", len(op.Local), maxLocal)
	}
	for _, s := range op.Local {
		if err := s.check(); err != nil {
			return 0, err
		}
		if s.Len() == 0 {
			return 0, refuse(ErrRange, "a local slice of 0 bytes")
		}
		if size += s.Len(); size > MaxOperation {
			return 0, refuse(ErrTooLarge, "more than %d bytes in one operation (Read and Write move more)", MaxOperation)
		}
	}
	return size, nil
}

// launch keeps the memory of op, sends the message that encode makes the control
// message for, and leaves op under way.
func (c *Conn) launch(ctx context.Context, op *Operation, name string, encode func(frame, uint64) error) error {
	if !op.busy.CompareAndSwap(false, true) {
		return refuse(ErrInUse, "the operation is under way")
	}
	if err := alive(ctx); err != nil {
		op.abandon()
		return err
	}
	op.conn, op.name, op.result = c, name, nil
	if op.report == nil {
		op.report = op.finish
	}
	if err := op.acquire(); err != nil {
		op.abandon()
		return err
	}
	f, err := c.frames.get()
	if err != nil {
		op.abandon()
		return err
	}
	c.begun(op)
	token := c.sock.ExpectCompletion(&op.completion, op.report)
	if err = encode(f, token); err == nil {
		_, _, err = c.sock.WriteMsgContext(ctx, op.Payload, op.control, op.destination())
	}
	c.frames.put(f)
	if err == nil || !op.completion.Forget() {
		return nil // under way, or canceled by Close
	}
	c.ended(op)
	op.abandon()
	return err
}

// abandon undoes a start that failed.
func (op *Operation) abandon() {
	op.release()
	op.conn = nil
	op.busy.Store(false)
}

func (c *Conn) begun(op *Operation) {
	c.outstanding.Add(1)
	if op.toSelf = op.destination() == c.self; op.toSelf {
		c.mu.Lock()
		c.silentToSelf++
		c.mu.Unlock()
	}
}

func (c *Conn) ended(op *Operation) {
	c.outstanding.Add(-1)
	if op.toSelf {
		c.mu.Lock()
		c.silentToSelf--
		c.mu.Unlock()
	}
}

// destination is where the message goes.
func (op *Operation) destination() netip.AddrPort {
	if op.Silent && len(op.Payload) == 0 {
		return netip.AddrPortFrom(op.Peer.Addr(), nobodysPort)
	}
	return op.Peer
}

func (op *Operation) acquire() error {
	for _, s := range op.Local {
		if len(op.regions) > 0 && op.regions[len(op.regions)-1] == s.region {
			continue
		}
		if err := s.region.acquire(op); err != nil {
			return err
		}
		op.regions = append(op.regions, s.region)
	}
	return nil
}

func (op *Operation) release() {
	for i, r := range op.regions {
		r.release(op)
		op.regions[i] = nil
	}
	op.regions = op.regions[:0]
}

// finish ends op with the kernel's status.
func (op *Operation) finish(s cmsg.Status) {
	if err := statusError(s); err != nil {
		op.result = op.conn.opError(op.name, op.Peer, err)
	}
	op.release()
	op.conn.ended(op)
	op.busy.Store(false)
	if op.Done != nil {
		op.Done(op)
	}
}

// settle is for a Region whose Close waits for op.
func (op *Operation) settle(ctx context.Context) error { return op.completion.Wait(ctx) }

// Wait waits until the operation has ended, and returns how. If ctx ends first the
// error is ctx's, the operation goes on, its memory is kept, and Wait may be called
// again. One that was not started, or could not be, is ErrNotStarted.
func (op *Operation) Wait(ctx context.Context) error {
	switch {
	case op.conn == nil:
		return prefix(ErrNotStarted)
	case ctx == nil:
		return op.conn.opError(op.name, op.Peer, ErrNoContext)
	}
	if err := op.completion.Wait(ctx); err != nil {
		return op.conn.opError(op.name, op.Peer, err)
	}
	return op.result
}

// Err returns how the operation ended, for Done and after Wait: nil if well, else a
// *StatusError within a *net.OpError.
func (op *Operation) Err() error { return op.result }
