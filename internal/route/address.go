package route

import (
	"context"
	"fmt"
	"net/netip"
)

// An Address is one that an interface holds.
type Address struct {
	// Prefix is the address and the length of its network.
	Prefix netip.Prefix

	// Device and Index name the interface.
	Device string
	Index  int

	// Usable says that a socket can bind to the address: IPv6 addresses cannot
	// be bound while duplicate address detection runs (tentative), nor after it
	// found another owner (dadfailed).
	Usable bool

	// Deprecated says that the kernel no longer picks the address for new
	// sockets by itself.
	Deprecated bool
}

// Addr returns the address, a link-local one with its device as zone: as a
// socket must name it.
func (a Address) Addr() netip.Addr { return zoned(a.Prefix.Addr(), a.Device) }

// Addresses lists the addresses of the host, or of Config.Device, in the
// kernel's order: an interface's primary address comes before its others.
// Config.Source is not looked at. It needs netlink.
func Addresses(ctx context.Context, cfg *Config) ([]Address, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("route: addresses: %w", err)
	}
	return addresses(ctx, cfg)
}

// IsLocal reports whether a socket can be bound to addr: whether it is an
// address of this host (as is all of 127.0.0.0/8) and, if it has a zone or
// Config.Device is set, of that device. The unspecified address counts as local.
// Config.Source is not looked at.
func IsLocal(ctx context.Context, addr netip.Addr, cfg *Config) (bool, error) {
	if addr.IsUnspecified() {
		return true, nil
	}
	if cfg == nil {
		cfg = &Config{}
	}
	q, err := newQuery(addr, &Config{NetNS: cfg.NetNS, Device: cfg.Device})
	if err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("route: address %v: %w", addr, err)
	}
	return isLocal(ctx, q)
}
