package target

import (
	"context"
	"net/netip"
	"slices"

	"github.com/rdskit/rdskit/internal/route"
	"github.com/rdskit/rdskit/rdsinfo"
	"github.com/rdskit/rdskit/rdssock"
)

// FindAll returns a target for each connection that the kernel knows, from its
// local address and with its type of service. Source and TOS are not looked at.
//
// Loopback connections between two addresses are left out, since the kernel cannot
// answer a ping there, and connections of other network namespaces, which kernels before
// 6.1.190 show as well. IPv6 connections count as of TOS 0 where the kernel does not tell.
func (f *Finder) FindAll(ctx context.Context) ([]Target, error) {
	if err := f.CheckModule(); err != nil {
		return nil, err
	}
	snapshot, err := rdsinfo.Read(&rdsinfo.Config{NetNS: f.NetNS, IPv4Only: f.Network == "ip4"}, rdsinfo.Connections)
	if err != nil {
		return nil, err
	}
	connections, err := snapshot.Connections()
	if err != nil {
		return nil, err
	}
	own, err := route.Addresses(ctx, &route.Config{NetNS: f.NetNS})
	if err != nil {
		return nil, err
	}
	addrs := make([]netip.Addr, len(own))
	for i, a := range own {
		addrs[i] = a.Addr()
	}
	targets := Along(connections, addrs)
	return slices.DeleteFunc(targets, func(t Target) bool { return f.Network == "ip6" && t.Addr.Is4() }), nil
}

// Along returns a target for each of the connections that can be pinged from one of a host's own
// addresses, which have zones where they are link-local; so have those of the targets.
func Along(connections []rdsinfo.Connection, own []netip.Addr) []Target {
	type key struct {
		local, remote netip.Addr
		tos           uint8
	}
	seen := make(map[key]bool)
	var targets []Target
	for _, c := range connections {
		k := key{c.Local, c.Remote, c.TOS.Value}
		loop := c.Transport == rdssock.TransportLoopback.String()
		if seen[k] || loop && c.Local != c.Remote {
			continue
		}
		seen[k] = true
		local, ok := ownAddress(c.Local, own)
		if !ok {
			continue
		}
		// The zone of a link-local peer, which the kernel does not tell, is that of the local address.
		remote := c.Remote
		if remote.IsLinkLocalUnicast() {
			remote = remote.WithZone(local.Zone())
		}
		targets = append(targets, Target{
			Name: remote.String(), Addr: remote, Source: local, TOS: k.tos, Transport: TransportNamed(c.Transport),
		})
	}
	return targets
}

// ownAddress finds an address among the host's own, which has the zone that a
// link-local one needs.
func ownAddress(a netip.Addr, own []netip.Addr) (netip.Addr, bool) {
	for _, o := range own {
		if o.WithZone("") == a {
			return o, true
		}
	}
	return a, a.Is4() && a.IsLoopback() // all of 127.0.0.0/8 is
}

// TransportNamed is the transport that the kernel calls so, TransportAny if there is none.
func TransportNamed(name string) rdssock.Transport {
	for _, t := range []rdssock.Transport{rdssock.TransportInfiniBand, rdssock.TransportTCP, rdssock.TransportLoopback} {
		if t.String() == name {
			return t
		}
	}
	return rdssock.TransportAny
}
