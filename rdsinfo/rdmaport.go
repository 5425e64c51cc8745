package rdsinfo

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/rdmadev"
)

// An RDMAPort is a port of an RDMA device.
type RDMAPort struct {
	Device    string `json:"device"`
	Driver    string `json:"driver,omitempty"` // of the device, such as mlx5_core
	Port      int    `json:"port"`
	State     string `json:"state"`            // ACTIVE, or why it carries nothing: DOWN, INIT, ARMED
	LinkLayer string `json:"link_layer"`       // InfiniBand or Ethernet
	Rate      string `json:"rate,omitempty"`   // such as "100 Gb/sec (4X EDR)"
	NetDev    string `json:"netdev,omitempty"` // the network interface of an Ethernet port
	GIDs      []GID  `json:"gids,omitempty"`
	// Regions is how many memory regions RDS has on the device, used and to be used again, of RegionBytes in all.
	Regions     int    `json:"memory_regions"`
	RegionBytes uint64 `json:"memory_region_bytes"`
}

// A GID is an address of an RDMA port. IPv4 addresses are IPv4-mapped in it.
type GID struct {
	Index  int        `json:"index"` // in the port's table
	GID    netip.Addr `json:"gid"`
	Type   string     `json:"type,omitempty"`   // such as RoCE v2
	NetDev string     `json:"netdev,omitempty"` // the network interface that it is of
	// Addresses are those of the addresses asked about that it carries. Over InfiniBand they are
	// not part of it.
	Addresses []netip.Addr `json:"addresses,omitempty"`
}

// RDMAPorts lists the ports of the RDMA devices, with their GIDs, of which it finds those that
// carry the given addresses of this host. Without RDMA in the kernel there are none. It
// sends nothing and loads no module.
func RDMAPorts(ctx context.Context, addrs ...netip.Addr) ([]RDMAPort, error) {
	return askRDMA(ctx, func(c *rdmadev.Client) ([]RDMAPort, error) { return rdmaPorts(c, addrs) })
}

// askRDMA asks the RDMA subsystem. Without RDMA in the kernel the answer is empty.
func askRDMA[T any](ctx context.Context, ask func(*rdmadev.Client) ([]T, error)) ([]T, error) {
	c, err := rdmadev.Dial(ctx)
	if errors.Is(err, rdmadev.ErrNoRDMA) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return ask(c)
}

func rdmaPorts(c *rdmadev.Client, addrs []netip.Addr) ([]RDMAPort, error) {
	devices, err := c.Ports()
	if err != nil {
		return nil, err
	}
	regions, err := c.MemoryRegions()
	if err != nil {
		return nil, err
	}
	var ports []RDMAPort
	for _, d := range devices {
		p := RDMAPort{Device: d.Device, Port: int(d.Number), State: d.State.String(), LinkLayer: d.LinkLayer, NetDev: d.Netdev}
		if d.Rate.MbitPerSecond > 0 {
			p.Rate = d.Rate.String()
		}
		p.Driver, _ = c.Driver(rdmadev.Device{Name: d.Device, Index: d.DeviceIndex})
		for _, r := range regions {
			if r.Device == d.Device && r.Owner.RDS() {
				p.Regions++
				p.RegionBytes += r.Length
			}
		}
		gids, err := c.GIDs(d)
		if err != nil {
			continue // it went away meanwhile
		}
		for _, g := range gids {
			p.GIDs = append(p.GIDs, GID{Index: g.Index, GID: g.Addr, Type: g.Type, NetDev: g.Netdev})
		}
		ports = append(ports, p)
	}
	for _, a := range addrs {
		d, g, err := c.Carrier(a)
		if err != nil {
			continue // none does
		}
		for i := range ports {
			p := &ports[i]
			if j := slices.IndexFunc(p.GIDs, func(e GID) bool { return e.Index == g.Index }); p.Device == d.Device && p.Port == int(d.Number) && j >= 0 {
				p.GIDs[j].Addresses = append(p.GIDs[j].Addresses, a)
			}
		}
	}
	return ports, nil
}

// readRDMA finds the RDMA ports below the addresses of the namespace.
func (b *Bundle) readRDMA(ctx context.Context) {
	var addrs []netip.Addr
	for _, a := range b.Namespace.Addresses {
		if a.Transport == abi.RDS_TRANS_IB.String() {
			addrs = append(addrs, a.Addr)
		}
	}
	b.RDMAPorts, _ = RDMAPorts(ctx, addrs...)
	b.RDMAConnections, _ = RDMAConnections(ctx)
	b.RDMACounters, _ = RDMACounters(ctx)
}

// FindGID finds the port that has a GID, such as that of an IBConnection, or carries a local
// address. An active port goes before one that is not.
func FindGID(ports []RDMAPort, gid netip.Addr) (port RDMAPort, entry GID, ok bool) {
	gid = gid.Unmap().WithZone("")
	carries := func(g GID) bool { return slices.Contains(g.Addresses, gid) }
	is := func(g GID) bool { return g.GID.Unmap() == gid }
	for _, match := range []func(GID) bool{carries, is} {
		for _, p := range ports {
			i := slices.IndexFunc(p.GIDs, match)
			switch {
			case i < 0:
			case p.State == "ACTIVE":
				return p, p.GIDs[i], true
			case !ok:
				port, entry, ok = p, p.GIDs[i], true
			}
		}
	}
	return port, entry, ok
}
