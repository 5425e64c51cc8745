package ping

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"syscall"

	"github.com/rdskit/rdskit/internal/target"
	"github.com/rdskit/rdskit/rdssock"
)

// A network opens sockets. It and socket are all that the engine knows of RDS.
type network interface {
	// Open opens a socket to ping t with, on a port that no socket of this network
	// had lately.
	Open(t *target.Target) (socket, error)
}

// A socket sends pings to one target and receives the answers to them.
type socket interface {
	// Send sends a ping, without waiting for anything.
	Send() error
	// TryReceive receives an answer if there is one.
	TryReceive() (from netip.Addr, ok bool, err error)
	// Receive waits for an answer. It returns net.ErrClosed after Close.
	Receive() (from netip.Addr, err error)
	Close() error
}

// rdsNetwork is the kernel's RDS.
type rdsNetwork struct {
	netns int

	mu    sync.Mutex
	ports map[netip.Addr]*portCycle
}

func newRDSNetwork(netns int) *rdsNetwork {
	return &rdsNetwork{netns: netns, ports: make(map[netip.Addr]*portCycle)}
}

func (n *rdsNetwork) Open(t *target.Target) (socket, error) {
	cfg := &rdssock.Config{NetNS: n.netns, TOS: t.TOS}
	var err error
	for range portCount {
		var c *rdssock.Conn
		c, err = rdssock.Listen(netip.AddrPortFrom(t.Source, n.nextPort(t.Source)), cfg)
		if err == nil {
			return &rdsSocket{conn: c, dst: netip.AddrPortFrom(t.Addr, 0)}, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, err
}

func (n *rdsNetwork) nextPort(src netip.Addr) uint16 {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.ports[src]
	if c == nil {
		c = newPortCycle()
		n.ports[src] = c
	}
	return c.next()
}

// Ports 0 and 1 are the kernel's own.
const (
	firstPort = 2
	portCount = 1<<16 - firstPort
)

// A portCycle goes through all ports from a random one on, so that a port
// comes again as late as possible: an answer that the peer's kernel kept
// through an outage must not find another ping's socket there.
type portCycle struct{ at int }

func newPortCycle() *portCycle { return &portCycle{rand.IntN(portCount)} }

func (c *portCycle) next() uint16 {
	c.at = (c.at + 1) % portCount
	return uint16(firstPort + c.at)
}

type rdsSocket struct {
	conn *rdssock.Conn
	dst  netip.AddrPort
}

func (s *rdsSocket) Send() error {
	_, err := s.conn.TryWriteToAddrPort(nil, s.dst)
	return err
}

// What does not come from port 0 is no answer, whatever is in it: anybody can
// send to the port.

func (s *rdsSocket) TryReceive() (netip.Addr, bool, error) {
	for {
		_, src, ok, err := s.conn.TryReadFromAddrPort(nil)
		switch {
		case !ok:
			return netip.Addr{}, false, err
		case src.Port() == 0:
			return src.Addr(), true, nil
		}
	}
}

func (s *rdsSocket) Receive() (netip.Addr, error) {
	for {
		_, _, _, src, err := s.conn.ReadMsgAddrPort(nil, nil)
		if err != nil || src.Port() == 0 {
			return src.Addr(), err
		}
	}
}

func (s *rdsSocket) Close() error { return s.conn.Close() }
