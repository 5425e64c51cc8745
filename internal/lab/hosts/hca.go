package hosts

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// The devices that make RDMA hosts: an Ethernet device in the initial network
// namespace, the only one where RDS takes RDMA, and a soft RoCE channel adapter on it.
const (
	HCADevice = "rxe0"  // of /sys/class/infiniband
	HCANetdev = "roce0" // of /sys/class/net
)

// NumHCAs is how many RDMA hosts a lab has: two addresses of one channel
// adapter, or two machines.
const NumHCAs = 2

// An HCA is an RDS host behind a soft RoCE channel adapter, by its number, 1 or 2.
type HCA struct{ N int }

// Name is the name by which the host's addresses can be looked up.
func (h HCA) Name() string { return fmt.Sprintf("rdma%d", h.N) }

func (h HCA) String() string { return h.Name() }

// IPv4 is the host's IPv4 address.
func (h HCA) IPv4() netip.Addr { return netip.AddrFrom4([4]byte{10, 8, 0, byte(h.N)}) }

// IPv6 is the host's IPv6 address.
func (h HCA) IPv6() netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fd08::%d", h.N)) }

// MAC is the address of the Ethernet device of the host that is a machine of its own.
func (h HCA) MAC() net.HardwareAddr { return net.HardwareAddr{0x52, 0x54, 0, 0x0a, 8, byte(h.N)} }

// EtcHCAs is what /etc/hosts has in addition in a lab with RDMA.
func EtcHCAs() string {
	var b strings.Builder
	for n := 1; n <= NumHCAs; n++ {
		h := HCA{n}
		fmt.Fprintf(&b, "%s\t%s\n%s\t%s\n", h.IPv4(), h, h.IPv6(), h)
	}
	return b.String()
}
