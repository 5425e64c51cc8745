package rdma

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/sys"
	"github.com/rdskit/rdskit/rdssock"
)

// A Conn does RDMA on an RDS socket. Its methods may be called from any number of
// goroutines.
type Conn struct {
	sock    *rdssock.Conn
	raw     syscall.RawConn
	self    netip.AddrPort // the own address, at nobody's port
	encoder cmsg.Encoder
	depth   int
	atomics bool

	outstanding atomic.Int64
	frames      frames
	option      optionCall
	controls    sync.Pool // of *[controlSize]byte, for Receive

	mu            sync.Mutex
	registrations map[uint32]*Registration // by RDMA key
	byMessage     bool                     // the kernel registers memory only along with a message
	connected     map[netip.Addr]bool      // where an empty message was answered from
	silentToSelf  int                      // operations under way
	closed        bool
}

// A Config holds what a Conn is made with. The zero Config and nil are good for most.
type Config struct {
	// Depth is how many operations Read and Write have under way at a time, 8 if it
	// is 0. Each is of up to 1 MiB.
	Depth int

	// Atomics permits atomic operations on devices that are not known to be able to
	// do them. On one that is not, a single one blocks the connection: see
	// [Conn.FetchAdd].
	Atomics bool
}

const defaultDepth = 8

// New makes a Conn of a socket, which it takes over: Close closes both. The socket
// can be used for messages as before. If its transport has no RDMA, which only
// InfiniBand and RoCE have, the error is ErrNoRDMA, names the transport, and the
// socket stays the caller's.
func New(sock *rdssock.Conn, cfg *Config) (*Conn, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	c := &Conn{
		sock:          sock,
		self:          netip.AddrPortFrom(sock.LocalAddr().(rdssock.Addr).Addr(), nobodysPort),
		encoder:       cmsg.Encoder{Dialect: sock.Dialect()},
		depth:         cfg.Depth,
		atomics:       cfg.Atomics,
		registrations: make(map[uint32]*Registration),
		connected:     make(map[netip.Addr]bool),
	}
	if c.depth == 0 {
		c.depth = defaultDepth
	}
	c.controls.New = func() any { return new([controlSize]byte) }
	c.option.init()
	var err error
	switch t := sock.Transport(); {
	case c.depth < 0:
		err = refuse(ErrRange, "depth %d", c.depth)
	case t != rdssock.TransportInfiniBand:
		err = refuse(ErrNoRDMA, "transport %v has none, only infiniband does", t)
	default:
		c.raw, err = sock.SyscallConn()
	}
	if err != nil {
		return nil, c.opError("rdma", netip.AddrPort{}, err)
	}
	return c, nil
}

// Socket returns the socket that New was given, for messages without RDMA.
func (c *Conn) Socket() *rdssock.Conn { return c.sock }

// Outstanding returns how many operations are under way.
func (c *Conn) Outstanding() int { return int(c.outstanding.Load()) }

// Close closes the socket. All registrations are revoked, as [Registration.Revoke] has
// it, and operations under way end with ErrCanceled, when the device has let go of their
// memory (net/rds/af_rds.c:rds_release).
//
// A process that ends without Close leaves its keys to the kernel, which does not always
// end the peers' access (net/rds/rdma.c:rds_rdma_drop_keys).
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	registrations := slices.Collect(maps.Values(c.registrations))
	c.mu.Unlock()
	// close(2) frees keys without invalidating them. One that a message still holds by then would be
	// good until the kernel happens to flush.
	for _, reg := range registrations {
		_ = reg.Revoke()
	}
	err := c.sock.Close()
	c.frames.close()
	return err
}

// Cancel ends the operations and messages to a peer that its kernel has not
// acknowledged: the operations with ErrCanceled, whatever has become of them.
// Operations of Read and Write, and silent ones, are sent to another port of the
// peer than its own; they end too.
//
// The operations are reported at once, and when Cancel returns without an error the
// device has let go of their memory. For a peer that is dead that can take as long
// as the device tries (net/rds/send.c:rds_send_drop_to). If ctx ends first the
// error is ctx's, the kernel goes on waiting, and Close waits for it.
func (c *Conn) Cancel(ctx context.Context, peer netip.AddrPort) error {
	if err := alive(ctx); err != nil {
		return c.opError("rdma-cancel", peer, err)
	}
	done := make(chan error, 1)
	go func() { done <- c.cancel(peer) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = &hintError{err: ctx.Err(), hint: "the device has not let go of the memory yet"}
	}
	if err != nil {
		return c.opError("rdma-cancel", peer, err)
	}
	return nil
}

func (c *Conn) cancel(peer netip.AddrPort) error {
	for _, port := range []uint16{peer.Port(), nobodysPort} {
		if err := c.sock.CancelSentTo(netip.AddrPortFrom(peer.Addr(), port)); err != nil {
			return err
		}
	}
	return nil
}

// DeliverCompletions takes in what the kernel reports until ctx ends, with its
// error, or the Conn is closed. A program needs it that goes by Done functions
// alone and neither receives nor waits.
func (c *Conn) DeliverCompletions(ctx context.Context) error {
	if err := alive(ctx); err != nil {
		return c.opError("rdma-wait", netip.AddrPort{}, err)
	}
	var never rdssock.Completion
	c.sock.ExpectCompletion(&never, nil)
	defer never.Forget()
	if err := never.Wait(ctx); err != nil {
		return c.opError("rdma-wait", netip.AddrPort{}, err)
	}
	return c.opError("rdma-wait", netip.AddrPort{}, statusErrors[cmsg.StatusCanceled])
}

// controlSize is the room for what comes with a message, in bytes.
const controlSize = 256

// Receive waits for a message like rdssock.Conn.ReadMsgContext, and returns with it
// the key that its sender gave along with Offer, or 0. A message longer than b is
// returned as far as it fits, with an error that is rdssock.ErrTruncated.
func (c *Conn) Receive(ctx context.Context, b []byte) (n int, key cmsg.Key, src netip.AddrPort, err error) {
	if ctx == nil {
		return 0, 0, netip.AddrPort{}, c.opError("read", netip.AddrPort{}, ErrNoContext)
	}
	control := c.controls.Get().(*[controlSize]byte)
	defer c.controls.Put(control)
	n, oobn, flags, src, err := c.sock.ReadMsgContext(ctx, b, control[:])
	if err != nil {
		return 0, 0, netip.AddrPort{}, err
	}
	if flags&rdssock.MsgTrunc != 0 {
		err = c.opError("read", src, fmt.Errorf("%w: it is longer than the buffer of %d bytes", rdssock.ErrTruncated, len(b)))
	}
	return n, FindKey(c.sock.Dialect(), control[:oobn]), src, err
}

// FindKey returns the key among the control messages of a received message, or 0.
func FindKey(d cmsg.Dialect, oob []byte) cmsg.Key {
	for it := cmsg.Parse(d, oob); it.Next(); {
		if key, err := it.Message().RDMADest(); err == nil {
			return key
		}
	}
	return 0
}

// FlushRegions makes the kernel let go of the memory of all regions on this host
// that were freed without invalidating them (RDS_FREE_MR with key 0).
func (c *Conn) FlushRegions() error {
	if err := c.free(0, 0); err != nil {
		return c.opError("rdma-flush", netip.AddrPort{}, err)
	}
	return nil
}

// free is RDS_FREE_MR.
func (c *Conn) free(key cmsg.Key, flags cmsg.Flags) error {
	o := &c.option
	o.mu.Lock()
	defer o.mu.Unlock()
	o.arg = abi.FreeMRArgs{Cookie: uint64(key), Flags: uint64(flags)}.Append(o.arg[:0], abi.Layout{})
	return o.set(c.raw, abi.RDS_FREE_MR)
}

// An optionCall is setsockopt(2) at level SOL_RDS. Its function is made once, so
// that handing it to a RawConn allocates nothing.
type optionCall struct {
	mu    sync.Mutex // of the fields from arg on
	run   func(fd uintptr)
	name  int
	arg   []byte
	errno syscall.Errno
}

func (o *optionCall) init() {
	o.arg = make([]byte, 0, abi.SizeofGetMRForDestArgs)
	o.run = func(fd uintptr) { o.errno = sys.Setsockopt(fd, abi.SOL_RDS, o.name, o.arg) }
}

// set makes the call with arg as it is.
func (o *optionCall) set(raw syscall.RawConn, name int) error {
	o.name = name
	if raw.Control(o.run) != nil {
		return net.ErrClosed // there is no other reason
	}
	if o.errno != 0 {
		return os.NewSyscallError("setsockopt", o.errno)
	}
	return nil
}
