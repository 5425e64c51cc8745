package rdssock

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/rdskit/rdskit/internal/route"
)

// An Addr is the address of an RDS socket. Port 0 as a destination is the
// kernel itself, which answers each message to it with an empty one
// (net/rds/recv.c:rds_recv_incoming).
type Addr struct {
	netip.AddrPort
}

var _ net.Addr = Addr{}

// Network returns "rds".
func (Addr) Network() string { return "rds" }

// addrPort takes the address out of what a net.PacketConn is given.
func addrPort(a net.Addr) (netip.AddrPort, bool) {
	switch a := a.(type) {
	case Addr:
		return a.AddrPort, true
	case *Addr:
		if a != nil {
			return a.AddrPort, true
		}
	case interface{ AddrPort() netip.AddrPort }: // *net.UDPAddr, *net.TCPAddr
		return a.AddrPort(), true
	}
	return netip.AddrPort{}, false
}

// unmap makes an IPv4-mapped IPv6 address the IPv4 address that the kernel
// takes it for (net/rds/bind.c:rds_bind).
func unmap(ap netip.AddrPort) netip.AddrPort {
	if ap.Addr().Is4In6() {
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return ap
}

// opAddr is ap as the address in an error, nil when there is none.
func opAddr(ap netip.AddrPort) net.Addr {
	if !ap.IsValid() {
		return nil
	}
	return Addr{ap}
}

// resolveZone is the scope id for an address, 0 unless it is link-local.
func (c *Conn) resolveZone(a netip.Addr) (uint32, error) {
	zone := a.Zone()
	if zone == "" || !a.IsLinkLocalUnicast() {
		return 0, nil
	}
	if zone == c.local.Addr().Zone() {
		return c.scope, nil
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil && n > 0 {
		return uint32(n), nil
	}
	index, err := interfaceIndex(zone, c.netns)
	if err != nil {
		return 0, refuse("if_nametoindex", syscall.ENODEV, nil, "zone %q of %v: %v", zone, a, err)
	}
	return index, nil
}

// withZone gives a link-local address the zone of the local one, the only zone
// that a socket bound to a link-local address talks to.
func (c *Conn) withZone(ap netip.AddrPort) netip.AddrPort {
	if c.scope == 0 || !ap.Addr().IsLinkLocalUnicast() {
		return ap
	}
	return netip.AddrPortFrom(ap.Addr().WithZone(c.local.Addr().Zone()), ap.Port())
}

// isLocal reports whether ap, as the kernel's tables have it, is the local address.
func (c *Conn) isLocal(ap netip.AddrPort) bool {
	return ap.Port() == c.local.Port() && ap.Addr() == c.local.Addr().WithZone("")
}

// interfaceIndex is the index of an interface in the namespace netns.
func interfaceIndex(name string, netns int) (uint32, error) {
	as, err := route.Addresses(context.Background(), &route.Config{NetNS: netns, Device: name})
	if err != nil {
		return 0, err
	}
	if len(as) == 0 {
		return 0, route.ErrNoAddress
	}
	return uint32(as[0].Index), nil
}
