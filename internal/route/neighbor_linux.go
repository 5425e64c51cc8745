package route

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/mdlayher/netlink"
)

// From linux/neighbour.h.
const (
	sizeofNdMsg = 12 // struct ndmsg
	ndaDst      = 1  // NDA_DST
	ndaLLAddr   = 2  // NDA_LLADDR
)

func neighbors(ctx context.Context, cfg *Config) ([]Neighbor, error) {
	c, closeClient, err := dial(ctx, cfg.NetNS)
	if err != nil {
		return nil, dialError(err)
	}
	defer closeClient()
	data, err := c.get(syscall.RTM_GETNEIGH, syscall.RTM_NEWNEIGH, netlink.Dump, &rtnetlink.NeighMessage{})
	if err != nil {
		return nil, fmt.Errorf("route: listing neighbors: %w", err)
	}
	var all []Neighbor
	for _, b := range data {
		n, ok, err := newNeighbor(b)
		if err != nil {
			return nil, fmt.Errorf("route: listing neighbors: %w", err)
		}
		if ok {
			all = append(all, n)
		}
	}
	return all, nil
}

// newNeighbor reads a RTM_NEWNEIGH message; false if it is of no IP address, such
// as an entry of a bridge.
func newNeighbor(b []byte) (n Neighbor, ok bool, err error) {
	if len(b) < sizeofNdMsg {
		return n, false, fmt.Errorf("neighbor message of %d bytes, at least %d expected", len(b), sizeofNdMsg)
	}
	if b[0] != syscall.AF_INET && b[0] != syscall.AF_INET6 {
		return n, false, nil
	}
	n.Index = int(binary.NativeEndian.Uint32(b[4:]))
	n.State = NeighborState(binary.NativeEndian.Uint16(b[8:]))
	ad, err := netlink.NewAttributeDecoder(b[sizeofNdMsg:])
	if err != nil {
		return n, false, err
	}
	for ad.Next() {
		switch ad.Type() {
		case ndaDst:
			n.Addr, ok = netip.AddrFromSlice(ad.Bytes())
		case ndaLLAddr:
			n.LinkAddr = ad.Bytes()
		}
	}
	return n, ok, ad.Err()
}
