package route

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/mdlayher/netlink"
)

// ifaFDadfailed is IFA_F_DADFAILED of linux/if_addr.h; package syscall has the others.
const ifaFDadfailed = 0x08

func addresses(ctx context.Context, cfg *Config) ([]Address, error) {
	c, closeClient, err := dial(ctx, cfg.NetNS)
	if err != nil {
		return nil, dialError(err)
	}
	defer closeClient()

	only := 0
	if cfg.Device != "" {
		l, err := c.linkByName(cfg.Device)
		if err != nil {
			return nil, deviceError(netip.Addr{}, cfg.Device, err)
		}
		only = l.index
	}
	links, err := c.links()
	if err != nil {
		return nil, fmt.Errorf("route: %w", err)
	}
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.index] = l.name
	}
	all, err := c.addresses()
	if err != nil {
		return nil, fmt.Errorf("route: %w", err)
	}
	var kept []Address
	for _, a := range all {
		if only == 0 || a.Index == only {
			a.Device = names[a.Index]
			kept = append(kept, a)
		}
	}
	return kept, nil
}

// addresses lists all addresses of the namespace, without the devices' names.
func (c *client) addresses() ([]Address, error) {
	data, err := c.get(syscall.RTM_GETADDR, syscall.RTM_NEWADDR, netlink.Dump, &rtnetlink.AddressMessage{})
	if err != nil {
		return nil, fmt.Errorf("listing addresses: %w", err)
	}
	var all []Address
	for _, b := range data {
		var m rtnetlink.AddressMessage
		if err := m.UnmarshalBinary(b); err != nil {
			return nil, fmt.Errorf("listing addresses: %w", err)
		}
		if a, ok := newAddress(&m); ok {
			all = append(all, a)
		}
	}
	return all, nil
}

// newAddress takes what matters from a message; false if it is of a family other
// than IP or holds no address.
func newAddress(m *rtnetlink.AddressMessage) (Address, bool) {
	if m.Attributes == nil || m.Family != syscall.AF_INET && m.Family != syscall.AF_INET6 {
		return Address{}, false
	}
	// On a point-to-point link IFA_ADDRESS is the peer and IFA_LOCAL ours; without
	// a peer IPv6 sends IFA_ADDRESS alone.
	ip := m.Attributes.Local
	if ip == nil {
		ip = m.Attributes.Address
	}
	addr, ok := netip.AddrFromSlice(ip)
	prefix := netip.PrefixFrom(addr, int(m.PrefixLength))
	if !ok || !prefix.IsValid() {
		return Address{}, false
	}
	// The header has room for the lower eight flags only.
	flags := m.Attributes.Flags | uint32(m.Flags)
	return Address{
		Prefix:     prefix,
		Index:      int(m.Index),
		Usable:     flags&(syscall.IFA_F_TENTATIVE|ifaFDadfailed) == 0 || flags&syscall.IFA_F_OPTIMISTIC != 0,
		Deprecated: flags&syscall.IFA_F_DEPRECATED != 0,
	}, true
}

func isLocal(ctx context.Context, q query) (bool, error) {
	c, closeClient, err := dial(ctx, q.netns)
	if err != nil {
		if refused(err) {
			return isLocalUDP(ctx, q)
		}
		return false, dialError(err)
	}
	defer closeClient()
	var on link
	if q.device != "" {
		if on, err = c.linkByName(q.device); err != nil {
			return false, deviceError(q.dst, q.device, err)
		}
	}
	local, err := c.isLocal(q.dst, on)
	if err != nil {
		return false, fmt.Errorf("route: address %v: %w", q.dst, err)
	}
	return local, nil
}

// isLocal asks what bind asks. IPv4 goes by the local routes (inet_addr_type in
// net/rds/tcp.c rds_tcp_laddr_check and net/ipv4/af_inet.c inet_bind), IPv6 by
// the addresses that interfaces hold (ipv6_chk_addr). The zero link stands for
// any device.
func (c *client) isLocal(addr netip.Addr, on link) (bool, error) {
	if addr.Is4() && on.index == 0 {
		m, err := c.route(query{dst: addr}, 0)
		if err != nil {
			if refusal(query{dst: addr}, err) != nil {
				err = nil
			}
			return false, err
		}
		return Type(m.Type) == Local, nil
	}
	all, err := c.addresses()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(all, func(a Address) bool {
		if !a.Usable || on.index != 0 && a.Index != on.index {
			return false
		}
		// The whole network of an IPv4 address on a loopback device is local
		// (net/ipv4/fib_frontend.c fib_add_ifaddr).
		return a.Prefix.Addr() == addr || addr.Is4() && on.loopback && a.Prefix.Contains(addr)
	}), nil
}
