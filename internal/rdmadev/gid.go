package rdmadev

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
)

// A GID is an entry of a port's table of addresses. Those of RoCE are made of the
// IP addresses of the port's network interface, IPv4 addresses in their mapped form.
type GID struct {
	Index  int
	Addr   netip.Addr // 16 bytes; not unmapped
	Type   string     // IB/RoCE v1 or RoCE v2
	Netdev string     // the interface that it is of: the port's, or a VLAN or bond on it
}

// GIDs lists the entries of a port's table that are in use. They come from sysfs.
func (c *Client) GIDs(p Port) ([]GID, error) {
	port := strconv.FormatUint(uint64(p.Number), 10)
	entries, err := os.ReadDir(c.class(p.Device, "ports", port, "gids"))
	if err != nil {
		return nil, fmt.Errorf("rdmadev: GIDs of %s port %d: %w", p.Device, p.Number, err)
	}
	var gids []GID
	for _, e := range entries {
		index, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		addr, err := netip.ParseAddr(c.line(p.Device, "ports", port, "gids", e.Name()))
		if err != nil || !addr.Is6() || addr.IsUnspecified() {
			continue // an unused entry
		}
		gids = append(gids, GID{
			Index:  index,
			Addr:   addr,
			Type:   c.line(p.Device, "ports", port, "gid_attrs/types", e.Name()),
			Netdev: c.line(p.Device, "ports", port, "gid_attrs/ndevs", e.Name()),
		})
	}
	slices.SortFunc(gids, func(a, b GID) int { return a.Index - b.Index })
	return gids, nil
}

// ErrNoPort says that no port of an RDMA device carries an address.
var ErrNoPort = errors.New("no RDMA device carries the address")

// Carrier finds the port that carries an IP address of this host, and its GID: by a GID
// made of the address, as RoCE has it, or by the IPoIB interface that has the
// address, whose hardware address ends with the port's GID (RFC 4391). Of several
// GIDs that of RoCE v2 comes first, which the kernel's connection manager takes. The
// error is [ErrNoPort] if there is none.
func (c *Client) Carrier(addr netip.Addr) (Port, GID, error) {
	ports, err := c.Ports()
	if err != nil {
		return Port{}, GID{}, err
	}
	ib, err := ipoibGID(addr)
	if err != nil {
		return Port{}, GID{}, fmt.Errorf("rdmadev: interfaces: %w", err)
	}
	return carrier(addr, ib, ports, c.GIDs)
}

func carrier(addr, ib netip.Addr, ports []Port, gidsOf func(Port) ([]GID, error)) (Port, GID, error) {
	var port Port
	var best GID
	for _, p := range ports {
		gids, err := gidsOf(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went away meanwhile
		}
		if err != nil {
			return Port{}, GID{}, err
		}
		for _, g := range gids {
			if g.Addr.Unmap() != addr.Unmap().WithZone("") && g.Addr != ib {
				continue
			}
			if !best.Addr.IsValid() || g.Type == rocev2 && best.Type != rocev2 {
				port, best = p, g
			}
		}
	}
	if !best.Addr.IsValid() {
		return Port{}, GID{}, fmt.Errorf("rdmadev: %w %s", ErrNoPort, addr)
	}
	return port, best, nil
}

const rocev2 = "RoCE v2"

// ipoibGID is the GID in the hardware address of the IPoIB interface that has the address;
// zero if it is on another kind of interface or on none.
func ipoibGID(addr netip.Addr) (netip.Addr, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return netip.Addr{}, err
	}
	const ipoibAddrLen = 20 // INFINIBAND_ALEN: flags and queue pair number, then the GID
	for _, i := range interfaces {
		if len(i.HardwareAddr) != ipoibAddrLen {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away meanwhile
		}
		for _, a := range addrs {
			prefix, err := netip.ParsePrefix(a.String())
			if err == nil && prefix.Addr().Unmap() == addr.Unmap().WithZone("") {
				return netip.AddrFrom16([16]byte(i.HardwareAddr[4:])), nil
			}
		}
	}
	return netip.Addr{}, nil
}
