package route

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// A Neighbor is what the kernel knows of a host on one of its links, from ARP or
// IPv6 neighbour discovery: what "ip neighbour show" lists.
type Neighbor struct {
	Addr     netip.Addr
	Index    int // of the interface
	State    NeighborState
	LinkAddr net.HardwareAddr // nil if it is not known
}

// A NeighborState is whether a neighbor answers: the NUD_ constants of linux/neighbour.h.
type NeighborState uint16

// The states, under their names in ip-neighbour(8).
const (
	NeighborIncomplete NeighborState = 0x01 // asked for, and not answered yet
	NeighborReachable  NeighborState = 0x02
	NeighborStale      NeighborState = 0x04 // answered once; not asked since
	NeighborDelay      NeighborState = 0x08
	NeighborProbe      NeighborState = 0x10 // asked again, and not answered yet
	NeighborFailed     NeighborState = 0x20 // did not answer
	NeighborNoARP      NeighborState = 0x40 // the link needs no such question
	NeighborPermanent  NeighborState = 0x80
)

// String returns the name that ip-neighbour(8) uses, in lower case.
func (s NeighborState) String() string {
	switch s {
	case 0:
		return "none"
	case NeighborIncomplete:
		return "incomplete"
	case NeighborReachable:
		return "reachable"
	case NeighborStale:
		return "stale"
	case NeighborDelay:
		return "delay"
	case NeighborProbe:
		return "probe"
	case NeighborFailed:
		return "failed"
	case NeighborNoARP:
		return "noarp"
	case NeighborPermanent:
		return "permanent"
	}
	return fmt.Sprintf("NeighborState(%#x)", uint16(s))
}

// Neighbors lists the neighbors that the network namespace knows. Of the
// configuration it looks at NetNS only. It sends nothing. It needs netlink.
func Neighbors(ctx context.Context, cfg *Config) ([]Neighbor, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("route: neighbors: %w", err)
	}
	return neighbors(ctx, cfg)
}
