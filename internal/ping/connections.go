package ping

import (
	"context"
	"fmt"
	"net/netip"

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
	if err := f.checkModule(); err != nil {
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
	type key struct {
		local, remote netip.Addr
		tos           uint8
	}
	seen := make(map[key]bool)
	var targets []Target
	for _, c := range connections {
		k := key{c.Local, c.Remote, c.TOS.Value}
		loop := c.Transport == rdssock.TransportLoopback.String()
		if seen[k] || loop && c.Local != c.Remote || f.Network == "ip6" && c.Remote.Is4() {
			continue
		}
		seen[k] = true
		local, err := route.IsLocal(ctx, c.Local, &route.Config{NetNS: f.NetNS})
		if err != nil {
			return nil, fmt.Errorf("connection from %v to %v: %w", c.Local, c.Remote, err)
		}
		if local {
			targets = append(targets, Target{Name: c.Remote.String(), Addr: c.Remote, Source: c.Local, TOS: k.tos, Transport: transportNamed(c.Transport)})
		}
	}
	return targets, nil
}

// transportNamed is the transport that the kernel calls so.
func transportNamed(name string) rdssock.Transport {
	for _, t := range []rdssock.Transport{rdssock.TransportInfiniBand, rdssock.TransportTCP, rdssock.TransportLoopback} {
		if t.String() == name {
			return t
		}
	}
	return rdssock.TransportAny
}
