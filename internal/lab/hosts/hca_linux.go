package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/mdlayher/netlink"
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
	var err error
	for began := time.Now(); time.Since(began) < hcaPatience; time.Sleep(hcaLookedAfter) {
		if err = lookAtHCA(addrs); err == nil {
			return nil
		}
	}
	return fmt.Errorf("soft RoCE device %s is not ready after %s: %w", HCADevice, hcaPatience, err)
}

func lookAtHCA(addrs []netip.Addr) error {
	port := filepath.Join("/sys/class/infiniband", HCADevice, "ports/1")
	state, err := os.ReadFile(filepath.Join(port, "state"))
	if err != nil {
		return err
	}
	if s := strings.TrimSpace(string(state)); !strings.HasSuffix(s, "ACTIVE") {
		return fmt.Errorf("its port is in state %q", s)
	}
	gids, err := gids(port)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if !gids[addr.As16()] {
			return fmt.Errorf("it has no GID for %s", addr)
		}
	}
	return nil
}

// gids are the GIDs of a port. Those of an IPv4 address are its mapped form.
func gids(port string) (map[[16]byte]bool, error) {
	dir := filepath.Join(port, "gids")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[[16]byte]bool{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EINVAL) {
			continue // an empty entry
		}
		if err != nil {
			return nil, err
		}
		addr, err := netip.ParseAddr(strings.TrimSpace(string(b)))
		if err != nil {
			return nil, err
		}
		all[addr.As16()] = true
	}
	return all, nil
}
