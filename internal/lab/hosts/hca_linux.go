package hosts

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/mdlayher/netlink"
	"github.com/rdskit/rdskit/internal/rdmadev"
	"golang.org/x/sys/unix"
)

// BuildHCAs makes the two RDMA hosts of a lab of one machine: a device without a
// cable that has the addresses of both, and a soft RoCE channel adapter on it. RDS takes
// the adapter, not its loop transport, for what one says to the other.
func BuildHCAs() error {
	conn, err := dial(nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = conn.Link.New(&rtnetlink.LinkMessage{
		Attributes: &rtnetlink.LinkAttributes{Name: HCANetdev, Info: &rtnetlink.LinkInfo{Kind: "dummy"}},
	})
	if err != nil {
		return fmt.Errorf("device %s: %w", HCANetdev, err)
	}
	return buildHCA(conn, HCA{1}, HCA{2})
}

// BuildMachine makes this machine the n-th RDMA host: a soft RoCE channel adapter on the
// Ethernet device that is its end of the cable to the other machine. Each knows the other's hardware address, so
// that a machine that is cut off, or dead, is just silent.
func BuildMachine(n int) error {
	conn, err := dial(nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	links, err := conn.Link.List()
	if err != nil {
		return err
	}
	own := HCA{n}.MAC()
	i := slices.IndexFunc(links, func(l rtnetlink.LinkMessage) bool {
		return l.Attributes != nil && slices.Equal(l.Attributes.Address, own)
	})
	if i < 0 {
		return fmt.Errorf("no device has the address %s", own)
	}
	index := links[i].Index
	if err := conn.Link.Set(&rtnetlink.LinkMessage{Index: index, Attributes: &rtnetlink.LinkAttributes{Name: HCANetdev}}); err != nil {
		return fmt.Errorf("rename %s to %s: %w", links[i].Attributes.Name, HCANetdev, err)
	}
	if err := buildHCA(conn, HCA{n}); err != nil {
		return err
	}
	for peer := 1; peer <= NumHCAs; peer++ {
		if peer == n {
			continue
		}
		if err := addNeighbors(conn, index, HCA{peer}); err != nil {
			return fmt.Errorf("neighbour %s: %w", HCA{peer}, err)
		}
	}
	return nil
}

// addNeighbors tells the kernel the hardware address behind the host's addresses, for good.
func addNeighbors(conn *rtnetlink.Conn, index uint32, h HCA) error {
	for family, addr := range map[uint16]netip.Addr{unix.AF_INET: h.IPv4(), unix.AF_INET6: h.IPv6()} {
		// A host that runs already may have made itself known: NeighService.New would fail then.
		_, err := conn.Execute(&rtnetlink.NeighMessage{
			Family: family, Index: index, State: unix.NUD_PERMANENT,
			Attributes: &rtnetlink.NeighAttributes{Address: addr.AsSlice(), LLAddress: h.MAC(), IfIndex: index},
		}, unix.RTM_NEWNEIGH, netlink.Request|netlink.Create|netlink.Replace|netlink.Acknowledge)
		if err != nil {
			return err
		}
	}
	return nil
}

// buildHCA puts a channel adapter with the addresses of the given hosts on the
// netdev, and waits until it can be used.
func buildHCA(conn *rtnetlink.Conn, hosts ...HCA) error {
	index, err := setLink(conn, HCANetdev, true)
	if err != nil {
		return err
	}
	var addrs []netip.Addr
	for _, h := range hosts {
		addrs = append(addrs, h.IPv4(), h.IPv6())
		if err := addAddr(conn, index, netip.PrefixFrom(h.IPv4(), bits4)); err != nil {
			return err
		}
		if err := addAddr(conn, index, netip.PrefixFrom(h.IPv6(), bits6)); err != nil {
			return err
		}
	}
	if err := newRXE(HCADevice, HCANetdev); err != nil {
		return fmt.Errorf("soft RoCE device %s on %s: %w", HCADevice, HCANetdev, err)
	}
	return awaitHCA(addrs)
}

// From include/uapi/rdma/rdma_netlink.h.
const (
	nldev          = 5 << 10 // RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, …)
	nldevNewlink   = nldev | 3
	nldevDevName   = 2
	nldevNdevName  = 51
	nldevLinkType  = 65
	linkTypeOfRXE  = "rxe"
	hcaPatience    = 10 * time.Second
	hcaLookedAfter = 2 * time.Millisecond
)

// newRXE makes a soft RoCE device, as 'rdma link add' does (nldev_newlink of
// drivers/infiniband/core/nldev.c).
func newRXE(name, netdev string) error {
	conn, err := netlink.Dial(unix.NETLINK_RDMA, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	ae := netlink.NewAttributeEncoder()
	ae.String(nldevDevName, name)
	ae.String(nldevNdevName, netdev)
	ae.String(nldevLinkType, linkTypeOfRXE)
	data, err := ae.Encode()
	if err != nil {
		return err
	}
	_, err = conn.Execute(netlink.Message{
		Header: netlink.Header{Type: nldevNewlink, Flags: netlink.Request | netlink.Acknowledge},
		Data:   data,
	})
	return err
}

// awaitHCA waits until the port of the channel adapter is active and has a GID for
// each address, without which RDS cannot bind to it. The kernel adds them in the
// background (drivers/infiniband/core/roce_gid_mgmt.c).
func awaitHCA(addrs []netip.Addr) error {
	client, err := rdmadev.Dial(context.Background())
	if err != nil {
		return err
	}
	defer client.Close()
	for began := time.Now(); time.Since(began) < hcaPatience; time.Sleep(hcaLookedAfter) {
		if err = lookAtHCA(client, addrs); err == nil {
			return nil
		}
	}
	return fmt.Errorf("soft RoCE device %s is not ready after %s: %w", HCADevice, hcaPatience, err)
}

func lookAtHCA(client *rdmadev.Client, addrs []netip.Addr) error {
	ports, err := client.Ports()
	if err != nil {
		return err
	}
	if len(ports) != 1 || ports[0].State != rdmadev.PortActive {
		return fmt.Errorf("its ports are %+v", ports)
	}
	gids, err := client.GIDs(ports[0])
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if !slices.ContainsFunc(gids, func(g rdmadev.GID) bool { return g.Addr.Unmap() == addr }) {
			return fmt.Errorf("it has no GID for %s", addr)
		}
	}
	return nil
}
