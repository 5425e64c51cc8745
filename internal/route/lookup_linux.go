package route

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/mdlayher/netlink"
)

func lookup(ctx context.Context, q query) (Route, error) {
	c, closeClient, err := dial(ctx, q.netns)
	if err != nil {
		if refused(err) {
			return lookupUDP(ctx, q)
		}
		return Route{}, dialError(err)
	}
	defer closeClient()
	r, err := c.lookup(q)
	if err != nil && refused(err) {
		return lookupUDP(ctx, q)
	}
	if err != nil && ctx.Err() != nil {
		return Route{}, fmt.Errorf("route to %v: %w", q.dst, ctx.Err())
	}
	return r, err
}

func (c *client) lookup(q query) (Route, error) {
	var out link
	if q.device != "" {
		var err error
		if out, err = c.linkByName(q.device); err != nil {
			return Route{}, deviceError(q.dst, q.device, err)
		}
	}
	if q.source.IsValid() {
		// The kernel looks at it for IPv4 only, and then says "unreachable".
		local, err := c.isLocal(q.source, link{})
		if err != nil {
			return Route{}, fmt.Errorf("route to %v: source %v: %w", q.dst, q.source, err)
		}
		if !local {
			return Route{}, notLocal(q)
		}
	}
	m, err := c.route(q, out.index)
	if err != nil {
		return Route{}, c.noRoute(q, out, err)
	}
	if t := Type(m.Type); t > Multicast {
		return Route{}, refusedBy(q, t, nil)
	}
	r := Route{Type: Type(m.Type), Index: int(m.Attributes.OutIface)}
	if r.Index != out.index {
		if out, err = c.link(r.Index); err != nil {
			return Route{}, fmt.Errorf("route to %v: device %d: %w", q.dst, r.Index, err)
		}
	}
	r.Device, r.MTU = out.name, out.mtu
	if m.Attributes.Metrics != nil && m.Attributes.Metrics.MTU != 0 {
		r.MTU = int(m.Attributes.Metrics.MTU)
	}
	gateway := m.Attributes.Gateway
	if gateway == nil && m.Attributes.Via != nil {
		gateway = m.Attributes.Via.Addr
	}
	r.Gateway = fromIP(gateway, r.Device)

	// Given a source, IPv4 leaves the preferred one out (net/ipv4/route.c
	// rt_fill_info) and IPv6 names the one it would prefer (net/ipv6/route.c
	// rt6_fill_node).
	r.Source = fromIP(m.Attributes.Src, r.Device)
	if q.source.IsValid() {
		r.Source = zoned(q.source, r.Device)
	}
	if !r.Source.IsValid() {
		return Route{}, noAddress(q, r.Device)
	}
	return r, nil
}

// route asks for the route to one destination; out is the index of the device
// that must be used, or 0. Not a dump: a dump ignores the destination.
func (c *client) route(q query, out int) (*rtnetlink.RouteMessage, error) {
	req := &rtnetlink.RouteMessage{
		Family:    syscall.AF_INET,
		DstLength: uint8(q.dst.BitLen()),
		Attributes: rtnetlink.RouteAttributes{
			Dst:      q.dst.AsSlice(),
			OutIface: uint32(out),
		},
	}
	if q.dst.Is6() {
		req.Family = syscall.AF_INET6
	}
	// RouteAttributes.Src is RTA_PREFSRC, which RTM_GETROUTE does not look at.
	source := attributes(func(ae *netlink.AttributeEncoder) {})
	if q.source.IsValid() {
		req.SrcLength = uint8(q.source.BitLen())
		source = func(ae *netlink.AttributeEncoder) { ae.Bytes(syscall.RTA_SRC, q.source.AsSlice()) }
	}
	data, err := c.get(syscall.RTM_GETROUTE, syscall.RTM_NEWROUTE, 0, req, source)
	if err != nil {
		return nil, err
	}
	if len(data) != 1 {
		return nil, fmt.Errorf("%d answers about one route", len(data))
	}
	var m rtnetlink.RouteMessage
	return &m, m.UnmarshalBinary(data[0])
}

// noRoute puts the kernel's refusal in words. out is the device asked for.
func (c *client) noRoute(q query, out link, err error) error {
	e := refusal(q, err)
	if e == nil || refused(err) {
		return fmt.Errorf("route to %v: %w", q.dst, err)
	}
	if e.Err == syscall.ENETUNREACH {
		switch {
		case q.device != "" && !out.up:
			e.Reason = fmt.Sprintf("%s is down (ip link set %[1]s up)", out.name)
		case q.dst.Is6() && !c.hasIPv6(out):
			e.Reason = "IPv6 is disabled (sysctl net.ipv6.conf.*.disable_ipv6)"
		}
	}
	return e
}

// hasIPv6 reports whether IPv6 is enabled on the device, or on any that is up.
func (c *client) hasIPv6(out link) bool {
	if out.index != 0 {
		return out.ipv6
	}
	links, err := c.links()
	if err != nil {
		return true
	}
	for _, l := range links {
		if l.up && l.ipv6 {
			return true
		}
	}
	return false
}

// fromIP converts an address of a message, invalid for nil.
func fromIP(ip net.IP, device string) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return zoned(a, device)
}
