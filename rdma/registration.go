package rdma

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
)

// MaxOperation is how much one operation moves and one key covers at most: 1 MiB.
const MaxOperation = abi.RDS_MAX_MSG_SIZE

// nobodysPort is a port that no socket can be bound to
// (net/rds/bind.c:rds_add_bound). A message to it ends in the kernel there, which
// acknowledges and drops it and counts it in recv_drop_no_sock: it carries what
// needs a message and is no program's business.
const nobodysPort = abi.RDS_FLAG_PROBE_PORT

// A Registration is one registration of memory on one Conn. The fields are set
// before Offer or Register and left alone until it is revoked; then, and only then,
// it may be used again, for which nothing is allocated. Until then its methods may be
// called from any number of goroutines, and it may be offered to any number of peers.
type Registration struct {
	// Memory is what peers may reach: the whole pages that hold it.
	Memory Slice

	// UseOnce frees the registration when the message of an operation on it arrives
	// at the Conn's port (RDS_RDMA_USE_ONCE). A Silent operation has none. It is
	// for memory of up to 1 MiB.
	UseOnce bool

	// Invalidate makes remote access end at once when the registration is freed by
	// UseOnce or Release, rather than when the kernel gets to it
	// (RDS_RDMA_INVALIDATE).
	Invalidate bool

	// Tied makes Offer register the memory with its own message, on the connection
	// to the peer, which saves a message to this host. When that connection breaks,
	// the kernel does not make it anew while anything is registered on it
	// (net/rds/ib_cm.c:rds_ib_conn_path_shutdown waits for i_fastreg_inuse_count),
	// nor while an offer is unacknowledged that registered: Revoke, Cancel and
	// FlushRegions in this order free it. Until then the kernel makes no other
	// connection either, of whatever transport: one thread takes down and makes all
	// (net/rds/threads.c:rds_threads_init). What is registered while the connection
	// breaks has a key that does not work. So it is for memory that is offered for
	// one operation, at full speed.
	Tied bool

	control []byte

	mu    sync.Mutex
	state registrationState
	conn  *Conn
	keys  []cmsg.Key // of each MaxOperation bytes in turn; 0 when it is known to be freed
}

type registrationState int

const (
	unregistered registrationState = iota
	registering
	registered
)

// settle is for a Region whose Close waits for the attempt to register.
func (reg *Registration) settle(ctx context.Context) error { return pause(ctx, settleInterval) }

// Offer sends payload as a message to the peer, along with the key of reg
// (RDS_CMSG_RDMA_DEST), which [Conn.Receive] returns there. It registers reg first
// unless it is, as Register does or, if it is Tied, with the message
// (RDS_CMSG_RDMA_MAP). One that failed to be offered stays registered unless it is
// Tied.
//
// The memory can be of up to 1 MiB: for more, Register it and send its Remote. The
// errors are ErrTooLarge, ErrNoLockedMemory, ErrBusy and those of a write of the
// socket.
func (c *Conn) Offer(ctx context.Context, reg *Registration, payload []byte, peer netip.AddrPort) error {
	if err := c.offer(ctx, reg, payload, peer); err != nil {
		return c.opError("rdma-offer", peer, err)
	}
	return nil
}

func (c *Conn) offer(ctx context.Context, reg *Registration, payload []byte, peer netip.AddrPort) error {
	if err := cmp.Or(alive(ctx), reg.Memory.check()); err != nil {
		return err
	}
	if reg.Memory.Len() > MaxOperation {
		return refuse(ErrTooLarge, "%d bytes, and a key covers at most %d: Register it and send its Remote", reg.Memory.Len(), MaxOperation)
	}
	if key, err := reg.keyOn(c); key != 0 || err != nil {
		if err != nil {
			return err
		}
		// Others may be offering it as well.
		f, err := c.frames.get()
		if err != nil {
			return err
		}
		defer c.frames.put(f)
		_, _, err = c.sock.WriteMsgContext(ctx, payload, c.encoder.AppendRDMADest(f[:0], key), peer)
		return err
	}
	if !reg.Tied {
		if err := c.register(ctx, reg, peer); err != nil {
			return err
		}
		return c.offer(ctx, reg, payload, peer)
	}
	if err := c.begin(reg); err != nil {
		return err
	}
	key, err := c.mapWithMessage(ctx, reg, reg.Memory, payload, peer)
	return c.end(reg, err, key)
}

// Register registers reg for all peers that the device of the Conn's address
// reaches; peer is one of them. Kernels that do so without a message are asked to
// (RDS_GET_MR_FOR_DEST, RDS_GET_MR). Mainline does not for InfiniBand
// (net/rds/ib_frmr.c:rds_ib_reg_frmr): there an empty message goes from the Conn to
// its own address for each MiB, to a port that nobody can have, and is canceled at
// once. The connection of an address to itself goes through the device, and
// outlives those to peers.
//
// The kernel registers memory only while it is connected: Register connects first,
// with an empty message that the other end answers, within ctx.
func (c *Conn) Register(ctx context.Context, reg *Registration, peer netip.AddrPort) error {
	if err := c.register(ctx, reg, peer); err != nil {
		return c.opError("rdma-register", peer, err)
	}
	return nil
}

func (c *Conn) register(ctx context.Context, reg *Registration, peer netip.AddrPort) error {
	if err := cmp.Or(alive(ctx), reg.Memory.check()); err != nil {
		return err
	}
	if reg.UseOnce && reg.Memory.Len() > MaxOperation {
		return refuse(ErrTooLarge, "%d bytes for use once, and a key covers at most %d", reg.Memory.Len(), MaxOperation)
	}
	if err := c.begin(reg); err != nil {
		return err
	}
	var keys []cmsg.Key
	for off := 0; off < reg.Memory.Len(); off += MaxOperation {
		piece := reg.Memory.Slice(off, min(MaxOperation, reg.Memory.Len()-off))
		key, err := c.registerPiece(ctx, reg, piece, peer)
		if err != nil {
			for _, key := range keys {
				c.free(key, cmsg.FlagInvalidate)
			}
			return c.end(reg, err)
		}
		keys = append(keys, key)
	}
	return c.end(reg, nil, keys...)
}

func (c *Conn) registerPiece(ctx context.Context, reg *Registration, piece Slice, peer netip.AddrPort) (cmsg.Key, error) {
	c.mu.Lock()
	byMessage := c.byMessage
	c.mu.Unlock()
	if !byMessage {
		key, err := c.getMR(reg, piece, peer)
		switch {
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOPROTOOPT):
			c.mu.Lock()
			c.byMessage = true
			c.mu.Unlock()
		case errors.Is(err, syscall.ENODEV):
			// The kernel knows the address's device only once there was a connection.
		default:
			return key, err
		}
	}
	key, err := c.mapWithMessage(ctx, reg, piece, nil, c.self)
	if err != nil {
		return 0, err
	}
	return key, c.dropMapped()
}

// dropMapped cancels the messages with which memory was registered: the kernel
// would keep the registration for them until they are acknowledged. Silent
// operations to another socket of the Conn's own address go the same way and must
// not be canceled.
func (c *Conn) dropMapped() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silentToSelf > 0 {
		return nil
	}
	return c.sock.CancelSentTo(c.self)
}

// mapWithMessage registers memory along with a message.
func (c *Conn) mapWithMessage(ctx context.Context, reg *Registration, piece Slice, payload []byte, peer netip.AddrPort) (cmsg.Key, error) {
	f, err := c.frames.get()
	if err != nil {
		return 0, err
	}
	defer c.frames.put(f)
	reg.control = c.encoder.AppendRDMAMap(reg.control[:0], cmsg.RDMAMap{
		Vec:     piece.iovec(),
		KeyAddr: f.keyAddr(),
		Flags:   reg.flags(),
	})
	if err := c.writeConnected(ctx, payload, reg.control, peer); err != nil {
		return 0, err
	}
	return f.key(), nil
}

// getMR registers memory by itself.
func (c *Conn) getMR(reg *Registration, piece Slice, peer netip.AddrPort) (cmsg.Key, error) {
	f, err := c.frames.get()
	if err != nil {
		return 0, err
	}
	defer c.frames.put(f)
	vec := piece.iovec()
	args := abi.GetMRArgs{
		Vec:        abi.Iovec{Addr: vec.Addr, Bytes: vec.Len},
		CookieAddr: f.keyAddr(),
		Flags:      uint64(reg.flags()),
	}
	o := &c.option
	o.mu.Lock()
	defer o.mu.Unlock()
	dest := netip.AddrPortFrom(peer.Addr().Unmap().WithZone(""), peer.Port())
	o.arg = abi.GetMRForDestArgs{Dest: dest, GetMRArgs: args}.Append(o.arg[:0], abi.Layout{})
	err = o.set(c.raw, abi.RDS_GET_MR_FOR_DEST)
	if errors.Is(err, syscall.ENOPROTOOPT) {
		o.arg = args.Append(o.arg[:0], abi.Layout{})
		err = o.set(c.raw, abi.RDS_GET_MR)
	}
	if err != nil {
		return 0, err
	}
	return f.key(), nil
}

func (reg *Registration) flags() cmsg.Flags {
	flags := cmsg.FlagReadWrite
	if reg.UseOnce {
		flags |= cmsg.FlagUseOnce
	}
	if reg.Invalidate {
		flags |= cmsg.FlagInvalidate
	}
	return flags
}

// begin marks reg as being registered, and keeps its memory.
func (c *Conn) begin(reg *Registration) error {
	if reg.Memory.Len() == 0 {
		return refuse(ErrRange, "0 bytes to register")
	}
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.state != unregistered {
		return refuse(ErrInUse, "registered already, or being so")
	}
	if err := reg.Memory.region.acquire(reg); err != nil {
		return err
	}
	reg.state, reg.conn = registering, c
	return nil
}

// end makes the outcome of the registration known.
func (c *Conn) end(reg *Registration, err error, keys ...cmsg.Key) error {
	region := reg.Memory.region
	defer region.release(reg)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.closed {
		for _, key := range keys {
			c.free(key, cmsg.FlagInvalidate)
		}
		err = net.ErrClosed
	}
	if err != nil {
		reg.leave()
		return explainRegister(err)
	}
	for _, key := range keys {
		if old := c.registrations[key.RKey()]; old != nil {
			// The kernel does not give a key again that is in use.
			old.used(key.RKey())
		}
		c.registrations[key.RKey()] = reg
	}
	reg.mu.Lock()
	defer reg.mu.Unlock()
	reg.state = registered
	reg.keys = append(reg.keys[:0], keys...)
	region.register(reg)
	return nil
}

// leave makes reg free to be registered.
func (reg *Registration) leave() {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	reg.free()
}

func (reg *Registration) free() {
	reg.state, reg.keys = unregistered, reg.keys[:0]
	reg.Memory.region.unregister(reg)
}

// used notes that the kernel has freed a key.
func (reg *Registration) used(rkey uint32) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	left := false
	for i, key := range reg.keys {
		if key.RKey() == rkey {
			reg.keys[i] = 0
		}
		left = left || reg.keys[i] != 0
	}
	if !left && reg.state == registered {
		reg.free()
	}
}

// Key returns the key, or 0 if there is none or more than one. That the peer has
// used a key which is for use once is not known.
func (reg *Registration) Key() cmsg.Key {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.state != registered || len(reg.keys) != 1 {
		return 0
	}
	return reg.keys[0]
}

func (reg *Registration) keyOn(c *Conn) (cmsg.Key, error) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.state == registered && reg.conn != c {
		return 0, refuse(ErrInUse, "registered on another Conn")
	}
	if reg.state != registered || len(reg.keys) != 1 {
		return 0, nil
	}
	return reg.keys[0], nil
}

// Remote returns what a peer needs to reach the memory: it goes in the payload of a
// message.
func (reg *Registration) Remote() (Remote, error) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.state != registered {
		return Remote{}, prefix(ErrNotRegistered)
	}
	return Remote{Keys: slices.Clone(reg.keys), Len: int64(reg.Memory.Len())}, nil
}

// Exposed returns how many bytes before and after Memory a holder of the key
// reaches as well, because they are in the same pages.
func (reg *Registration) Exposed() (before, after int) {
	if reg.Memory.check() != nil || reg.Memory.Len() == 0 {
		return 0, 0
	}
	page := uint64(os.Getpagesize())
	v := reg.Memory.iovec()
	return int(v.Addr % page), int(-(v.Addr + v.Len) % page)
}

// Revoke ends the registration and peers' access (RDS_FREE_MR with
// RDS_RDMA_INVALIDATE). Operations of peers that are under way fail there with
// ErrRemoteAccess, which breaks the connection. One that was for use once and has
// been used is gone already, which is no error.
//
// The kernel keeps the registration also for a message that offered the key until
// the peer's kernel acknowledges it, which it does with the next message that it
// sends: access ends then.
func (reg *Registration) Revoke() error { return reg.end(cmsg.FlagInvalidate) }

// Release is Revoke that leaves it to the kernel when to end the peers' access,
// unless the registration is to be invalidated. It is cheaper: [Conn.FlushRegions]
// ends it for many at once.
func (reg *Registration) Release() error { return reg.end(0) }

func (reg *Registration) end(flags cmsg.Flags) error {
	reg.mu.Lock()
	c := reg.conn
	var err error
	switch reg.state {
	case unregistered:
		err = ErrNotRegistered
	case registering:
		err = refuse(ErrInUse, "being registered")
	}
	reg.mu.Unlock()
	if err != nil {
		return prefix(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.conn != c {
		// Another call has ended it meanwhile, and it is registered elsewhere.
		return prefix(ErrNotRegistered)
	}
	for _, key := range reg.keys {
		if key == 0 {
			continue
		}
		if c.registrations[key.RKey()] == reg {
			delete(c.registrations, key.RKey())
		}
		// EINVAL is a key that was for use once. A closed socket has freed all.
		if ferr := c.free(key, flags); ferr != nil && !errors.Is(ferr, syscall.EINVAL) && !errors.Is(ferr, net.ErrClosed) {
			err = ferr
		}
	}
	if reg.state == registered {
		reg.free()
	}
	if err != nil {
		return c.opError("rdma-revoke", netip.AddrPort{}, err)
	}
	return nil
}
