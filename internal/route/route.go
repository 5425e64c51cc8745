// Package route asks the kernel which local address and device reach a host,
// and which addresses are local: what "ip route get" and "ip address show"
// answer. It reads, and changes nothing.
//
// Answers come from rtnetlink. Where a sandbox refuses netlink sockets, [Lookup]
// and [IsLocal] fall back to what any program can ask of a UDP socket; no packet
// is sent either way.
package route

import (
	"context"
	"fmt"
	"net/netip"
)

// Config narrows a look-up. Its zero value, and nil, mean the network namespace
// of the calling thread, any source and any device.
type Config struct {
	// NetNS is a descriptor of the network namespace to ask in, as opened from
	// /run/netns/NAME or /proc/PID/ns/net; 0 means the caller's. Another
	// namespace needs CAP_SYS_ADMIN.
	NetNS int

	// Source is the local address that must be used. Policy rules that select
	// by source see it.
	Source netip.Addr

	// Device is the name (or the decimal index) of the interface that must be
	// used. With a device the kernel takes IPv4 destinations that no route
	// covers as being on its link.
	Device string
}

// A Route is the kernel's answer for one destination.
type Route struct {
	// Source is the address that the kernel would send from. A link-local
	// address carries its device as zone.
	Source netip.Addr

	// Device and Index name the interface the packets leave through: the
	// loopback device for a destination of Type [Local]. They are empty when
	// netlink was refused and the caller named no device.
	Device string
	Index  int

	// Gateway is the next hop; invalid when the destination is on the link.
	Gateway netip.Addr

	// Type is the kind of the route, 0 when netlink was refused.
	Type Type

	// MTU is the route's, or else the device's, in bytes; 0 when unknown.
	MTU int
}

// A Type is the kind of a route: the RTN_ constants of linux/rtnetlink.h.
type Type uint8

// The kinds of routes, under their names in ip-route(8). [Lookup] returns the
// first five; the others reach the caller as an [Error].
const (
	Unicast Type = iota + 1
	Local
	Broadcast
	Anycast
	Multicast
	Blackhole
	Unreachable
	Prohibit
	Throw
)

// String returns the name that ip-route(8) uses.
func (t Type) String() string {
	switch t {
	case Unicast:
		return "unicast"
	case Local:
		return "local"
	case Broadcast:
		return "broadcast"
	case Anycast:
		return "anycast"
	case Multicast:
		return "multicast"
	case Blackhole:
		return "blackhole"
	case Unreachable:
		return "unreachable"
	case Prohibit:
		return "prohibit"
	case Throw:
		return "throw"
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Lookup returns the route to dst. IPv4-mapped addresses count as IPv4. A
// link-local dst needs its interface, as a zone (fe80::1%eth0) or as
// Config.Device.
//
// A destination that cannot be reached gives an *[Error] that matches
// [ErrNoRoute] and the errno of the kernel; other failures match [ErrNoAddress],
// [ErrNotLocal] or [ErrNoDevice], or the errno of the system call that failed.
func Lookup(ctx context.Context, dst netip.Addr, cfg *Config) (Route, error) {
	q, err := newQuery(dst, cfg)
	if err != nil {
		return Route{}, err
	}
	if err := ctx.Err(); err != nil {
		return Route{}, fmt.Errorf("route to %v: %w", dst, err)
	}
	return lookup(ctx, q)
}

// A query is a look-up whose addresses are unmapped, agree in family and have
// given their zones to the device.
type query struct {
	dst    netip.Addr // no zone
	source netip.Addr // no zone; invalid for any
	device string
	netns  int
}

func newQuery(dst netip.Addr, cfg *Config) (query, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	q := query{
		dst:    dst.Unmap().WithZone(""),
		source: cfg.Source.Unmap().WithZone(""),
		device: cfg.Device,
		netns:  cfg.NetNS,
	}
	switch {
	case !dst.IsValid():
		return query{}, fmt.Errorf("route: no destination given")
	case q.dst.IsUnspecified():
		return query{}, fmt.Errorf("route to %v: the unspecified address is no host", dst)
	case q.source.IsValid() && q.source.Is4() != q.dst.Is4():
		return query{}, fmt.Errorf("route to %v: source %v is of the other address family", dst, cfg.Source)
	case q.source.IsValid() && q.source.IsUnspecified():
		q.source = netip.Addr{}
	}
	for _, zone := range []string{dst.Zone(), cfg.Source.Zone()} {
		switch {
		case zone == "" || zone == q.device:
		case q.device == "":
			q.device = zone
		default:
			return query{}, fmt.Errorf("route to %v: zone %s and device %s differ", dst, zone, q.device)
		}
	}
	if q.dst.IsLinkLocalUnicast() && q.dst.Is6() && q.device == "" {
		return query{}, fmt.Errorf("route to %v: a link-local address needs its interface: write %v%%eth0", dst, dst)
	}
	return q, nil
}

// zoned gives a link-local IPv6 address its device as zone.
func zoned(a netip.Addr, device string) netip.Addr {
	if a.Is6() && (a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast()) {
		return a.WithZone(device)
	}
	return a
}
