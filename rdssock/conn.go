package rdssock

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/route"
	"github.com/rdskit/rdskit/internal/sys"
)

// A Conn is an RDS socket, bound to a local address. Its methods may be called
// from any number of goroutines.
type Conn struct {
	sock    *sys.Socket
	dialect cmsg.Dialect
	netns   int // of Config, to resolve names of zones while opening

	local, remote netip.AddrPort // remote is the zero AddrPort unless connected
	scope         uint32         // of local, for link-local addresses
	transport     Transport

	congestion CongestionPolicy
	sndbuf     atomic.Int64 // bytes, the largest message the send buffer admits
	limit      *destinationLimit
	zerocopy   bool
	cookie     atomic.Uint32 // of the last zerocopy message
	token      atomic.Uint64 // of the last RDMA operation

	closed atomic.Bool

	reads   sync.Pool // of *readOp
	writes  sync.Pool // of *writeOp
	batches sync.Pool // of *batchOp

	waiters                     waitTable
	completions                 completions
	readDeadline, writeDeadline deadline
	watches                     watches
	retestInterval              time.Duration
	rescues                     atomic.Uint64 // writes that only the re-test got going
}

var (
	_ net.PacketConn = (*Conn)(nil)
	_ syscall.Conn   = (*Conn)(nil)
)

// Operations named in errors.
const (
	opListen = "listen"
	opDial   = "dial"
	opRead   = "read"
	opWrite  = "write"
	opClose  = "close"
	opSet    = "set"
	opGet    = "get"
)

// Listen opens a socket bound to local, an address of this host; RDS has no
// wildcard address. Port 0 lets the kernel choose a port, and port 1 is the
// kernel's own. The table of ports is shared by all network namespaces: an
// address that several of them use has its ports only once (net/rds/bind.c).
//
// A link-local IPv6 address needs its zone. An IPv4-mapped one is taken as
// IPv4.
//
// The error is ErrModuleMissing if the kernel has no RDS, ErrNotLocal if
// no interface has the address, and ErrNoTransport if no loaded transport serves it.
func Listen(local netip.AddrPort, cfg *Config) (*Conn, error) {
	c, err := open(unmap(local), cfg)
	if err != nil {
		return nil, opError(opListen, netip.AddrPort{}, local, err)
	}
	return c, nil
}

// Dial opens a socket bound to the local address from which the routing table
// reaches remote, or to Config.LocalAddr, and connects it: Write methods with
// an invalid destination then send to remote. RDS itself connects nothing: Dial
// does not tell whether remote can be reached, and messages of other peers are
// received as well (net/rds/af_rds.c:rds_connect).
func Dial(remote netip.AddrPort, cfg *Config) (*Conn, error) {
	remote = unmap(remote)
	c, err := dial(remote, cfg)
	if err != nil {
		return nil, opError(opDial, netip.AddrPort{}, remote, err)
	}
	return c, nil
}

func dial(remote netip.AddrPort, cfg *Config) (*Conn, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	if err := checkDestination("connect", remote); err != nil {
		return nil, err
	}
	local := unmap(cfg.LocalAddr)
	if !local.Addr().IsValid() {
		src, err := source(remote.Addr(), cfg.NetNS)
		if err != nil {
			return nil, err
		}
		local = netip.AddrPortFrom(src, local.Port())
	}
	c, err := open(local, cfg)
	if err != nil {
		return nil, err
	}
	if err := c.connect(remote); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// FileConn makes a Conn of a bound RDS socket that another program or package
// opened, such as one inherited from a parent. It duplicates the descriptor: the
// caller keeps f and closes it. The socket becomes non-blocking and its congestion
// monitor is switched on, both for f too.
func FileConn(f *os.File) (*Conn, error) {
	c, err := fileConn(f)
	if err != nil {
		return nil, opError("file", netip.AddrPort{}, netip.AddrPort{}, err)
	}
	return c, nil
}

func fileConn(f *os.File) (*Conn, error) {
	sock, err := sys.FileSocket(f)
	if err != nil {
		return nil, explainFile(err)
	}
	c := newConn(sock, &Config{})
	if err := c.adopt(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) adopt() error {
	if err := c.SetCongestionMonitor(true); err != nil {
		return err
	}
	if err := c.refresh(""); err != nil {
		return err
	}
	if !c.local.IsValid() {
		return &callError{
			err:  os.NewSyscallError("getsockname", syscall.EINVAL),
			hint: "the socket is not bound",
		}
	}
	peer, _, err := c.sock.PeerName()
	if err == nil {
		c.remote = c.withZone(peer)
	} else if !errors.Is(err, syscall.ENOTCONN) {
		return err
	}
	return nil
}

func newConn(sock *sys.Socket, cfg *Config) *Conn {
	c := &Conn{
		sock:           sock,
		dialect:        sock.Dialect(),
		netns:          cfg.NetNS,
		congestion:     cfg.Congestion,
		retestInterval: retestInterval,
	}
	if cfg.DestinationLimit > 0 {
		c.limit = &destinationLimit{max: cfg.DestinationLimit}
	}
	c.reads.New = func() any { return newReadOp(c) }
	c.writes.New = func() any { return newWriteOp(c) }
	c.batches.New = func() any { return newBatchOp(c) }
	c.readDeadline.fire = c.watches.interrupt
	c.writeDeadline.fire = c.watches.interrupt
	return c
}

// open makes a socket as cfg says and binds it.
func open(local netip.AddrPort, cfg *Config) (*Conn, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := checkLocal(local); err != nil {
		return nil, err
	}
	sock, err := sys.NewSocket(cfg.NetNS)
	if err != nil {
		return nil, explainSocket(err)
	}
	c := newConn(sock, cfg)
	if err := c.setup(local, cfg); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) setup(local netip.AddrPort, cfg *Config) error {
	if t, ok := cfg.Transport.kernel(); ok {
		if err := c.setTransport(t); err != nil {
			return explainTransport(err, cfg.Transport)
		}
	}
	if cfg.SendBuffer > 0 {
		if err := c.setBuffer(sys.SO_SNDBUFFORCE, sys.SO_SNDBUF, cfg.SendBuffer); err != nil {
			return err
		}
	}
	if cfg.ReceiveBuffer > 0 {
		if err := c.setBuffer(sys.SO_RCVBUFFORCE, sys.SO_RCVBUF, cfg.ReceiveBuffer); err != nil {
			return err
		}
	}
	if !cfg.NoCongestionMonitor {
		if err := c.SetCongestionMonitor(true); err != nil {
			return err
		}
	}
	if cfg.Timestamps {
		if err := c.SetTimestamps(true); err != nil {
			return err
		}
	}
	if len(cfg.RXPath) > 0 {
		if err := c.SetRXPath(cfg.RXPath...); err != nil {
			return err
		}
	}
	if cfg.Zerocopy {
		if err := c.sock.SetsockoptInt(sys.SOL_SOCKET, sys.SO_ZEROCOPY, 1); err != nil {
			return err
		}
		c.zerocopy = true
	}
	scope, err := c.resolveZone(local.Addr())
	if err != nil {
		return err
	}
	if err := c.sock.Bind(local, scope); err != nil {
		return explainBind(err, local, cfg)
	}
	if err := c.refresh(local.Addr().Zone()); err != nil {
		return err
	}
	if cfg.TOS != 0 {
		// Mainline needs a transport to map the TOS, so bind goes first.
		return c.setTOS(cfg.TOS)
	}
	return nil
}

// refresh reads back what the kernel decided. A link-local address keeps the
// zone as it was given, or has the interface's index.
func (c *Conn) refresh(zone string) error {
	local, scope, err := c.sock.LocalName()
	if err != nil {
		return err
	}
	if scope != 0 {
		if zone == "" {
			zone = strconv.FormatUint(uint64(scope), 10)
		}
		local = netip.AddrPortFrom(local.Addr().WithZone(zone), local.Port())
	}
	c.local, c.scope = local, scope
	t, err := c.getTransport()
	if err != nil {
		return err
	}
	c.transport = transportOf(t)
	_, err = c.SendBuffer()
	return err
}

func (c *Conn) connect(remote netip.AddrPort) error {
	if err := c.checkFamily(remote); err != nil {
		return err
	}
	scope, err := c.resolveZone(remote.Addr())
	if err != nil {
		return err
	}
	if err := c.sock.Connect(remote, scope); err != nil {
		return err
	}
	c.remote = remote
	return nil
}

// source is the local address from which the namespace netns reaches remote.
func source(remote netip.Addr, netns int) (netip.Addr, error) {
	r, err := route.Lookup(context.Background(), remote, &route.Config{NetNS: netns})
	if err != nil {
		return netip.Addr{}, err
	}
	return r.Source, nil
}

// Close closes the socket. What waits in its methods returns net.ErrClosed.
// The kernel drops messages that are unread, and those that the kernel of their
// destination has not acknowledged, wherever they are on the way: Flush first
// to have them delivered (net/rds/af_rds.c:rds_release). With a copy that
// File returned still open, all of that happens when the last one closes.
// Another Close does nothing.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		// What is canceled is reported when the kernel has let go of it, which the first call waits for.
		return nil
	}
	c.watches.close()
	err := c.sock.Close()
	c.completions.close()
	if err != nil {
		return c.opError(opClose, netip.AddrPort{}, err)
	}
	return nil
}

// LocalAddr returns the bound address as an Addr.
func (c *Conn) LocalAddr() net.Addr { return Addr{c.local} }

// RemoteAddr returns the connected peer as an Addr, nil for a Conn of Listen.
func (c *Conn) RemoteAddr() net.Addr { return opAddr(c.remote) }

// Transport returns which transport carries the messages. A socket on TCP
// reports TransportTCP also while it talks to addresses of this host, which
// the kernel then does through loopback connections.
func (c *Conn) Transport() Transport { return c.transport }

// Dialect returns which numbering of options and control messages the kernel
// has. It was found by reading option 8, never by writing.
func (c *Conn) Dialect() cmsg.Dialect { return c.dialect }

// SetDeadline sets both deadlines, as in net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline sets the time after which reads, now waiting or later, return
// os.ErrDeadlineExceeded. The zero time is none.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if err := c.sock.SetReadDeadline(t); err != nil {
		return c.opError(opSet, netip.AddrPort{}, err)
	}
	c.readDeadline.set(t)
	return nil
}

// SetWriteDeadline is SetReadDeadline for writes.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if err := c.sock.SetWriteDeadline(t); err != nil {
		return c.opError(opSet, netip.AddrPort{}, err)
	}
	c.writeDeadline.set(t)
	return nil
}

// File returns a copy of the socket's descriptor, which is non-blocking and
// shares everything with the Conn but its closing. Do not use its Read, which
// loses notifications, nor its Write, which RDS refuses (net/socket.c adds MSG_EOR).
func (c *Conn) File() (*os.File, error) {
	f, err := c.sock.File()
	if err != nil {
		return nil, c.opError("file", netip.AddrPort{}, err)
	}
	return f, nil
}

// SyscallConn gives access to the descriptor. Whoever receives with it gets
// notifications that calls of this Conn may be waiting for.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if c.closed.Load() {
		return nil, c.opError("raw", netip.AddrPort{}, net.ErrClosed)
	}
	return c.sock.Raw(), nil
}
