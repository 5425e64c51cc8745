package hosts

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/jsimonetti/rtnetlink/v2/driver"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const bridge = "br0"

// The lengths of the prefixes that the hosts share.
const (
	bits4 = 24
	bits6 = 64
)

// Build makes n hosts and joins them. The calling process must be in the
// initial network namespace and may not have built hosts before.
func Build(n int) error {
	if n < 0 || n > Max {
		return fmt.Errorf("%d hosts: it has to be 0 to %d", n, Max)
	}
	conn, err := dial(nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := loopback(conn); err != nil {
		return fmt.Errorf("initial namespace: %w", err)
	}
	if n > 2 {
		if err := addBridge(conn); err != nil {
			return fmt.Errorf("bridge %s: %w", bridge, err)
		}
	}
	if err := os.MkdirAll(NetNSDir, 0o755); err != nil {
		return err
	}
	for _, h := range All(n) {
		if err := h.create(); err != nil {
			return fmt.Errorf("host %s: %w", h, err)
		}
	}
	// Two hosts: one cable. Otherwise a cable from each to the bridge.
	for _, h := range All(n) {
		switch {
		case n > 2:
			err = h.plugIntoBridge(conn)
		case n == 2 && h.N == 1:
			err = h.plugInto(Host{N: 2})
		case n == 1:
			err = h.addDummyPeer()
		}
		if err != nil {
			return fmt.Errorf("host %s: cable: %w", h, err)
		}
	}
	for _, h := range All(n) {
		if err := h.configure(); err != nil {
			return fmt.Errorf("host %s: %w", h, err)
		}
	}
	return nil
}

// create makes the namespace and its name.
func (h Host) create() error {
	f, err := os.OpenFile(h.NetNS(), os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	f.Close()
	errc := make(chan error)
	go func() {
		// The thread is not unlocked: it ends with the goroutine, and the
		// namespace stays by its mount alone.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			errc <- fmt.Errorf("unshare: %w", err)
			return
		}
		errc <- unix.Mount(threadNetNS, h.NetNS(), "", unix.MS_BIND, "")
	}()
	return <-errc
}

// dial opens route netlink in the host's namespace.
func (h Host) dial() (*rtnetlink.Conn, error) {
	ns, err := os.Open(h.NetNS())
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	return dial(&netlink.Config{NetNS: int(ns.Fd())})
}

func dial(c *netlink.Config) (*rtnetlink.Conn, error) {
	conn, err := rtnetlink.Dial(c)
	if err != nil {
		return nil, err
	}
	// Errors then say what the kernel did not like.
	return conn, conn.SetOption(netlink.ExtendedAcknowledge, true)
}

// addVeth makes a cable: device name on conn's side, device peer in namespace
// ns.
func addVeth(conn *rtnetlink.Conn, name, peer, ns string, master uint32) error {
	f, err := os.Open(ns)
	if err != nil {
		return err
	}
	defer f.Close()
	attrs := &rtnetlink.LinkAttributes{
		Name: name,
		Info: &rtnetlink.LinkInfo{Kind: "veth", Data: &driver.Veth{PeerInfo: &rtnetlink.LinkMessage{
			Attributes: &rtnetlink.LinkAttributes{Name: peer, NetNS: rtnetlink.NetNSForFD(uint32(f.Fd()))},
		}}},
	}
	msg := &rtnetlink.LinkMessage{Attributes: attrs}
	if master != 0 {
		attrs.Master = &master
		msg.Flags, msg.Change = unix.IFF_UP, unix.IFF_UP
	}
	return conn.Link.New(msg)
}

func (h Host) plugInto(other Host) error {
	conn, err := h.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	return addVeth(conn, Device, Device, other.NetNS(), 0)
}

func (h Host) plugIntoBridge(conn *rtnetlink.Conn) error {
	br, err := net.InterfaceByName(bridge)
	if err != nil {
		return err
	}
	return addVeth(conn, h.Name(), Device, h.NetNS(), uint32(br.Index))
}

// addDummyPeer gives a host that is alone a device whose other end, in the
// same namespace, nobody uses.
func (h Host) addDummyPeer() error {
	conn, err := h.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := addVeth(conn, Device, "peer0", h.NetNS(), 0); err != nil {
		return err
	}
	_, err = setLink(conn, "peer0", true)
	return err
}

func addBridge(conn *rtnetlink.Conn) error {
	return conn.Link.New(&rtnetlink.LinkMessage{
		Flags: unix.IFF_UP, Change: unix.IFF_UP,
		Attributes: &rtnetlink.LinkAttributes{Name: bridge, Info: &rtnetlink.LinkInfo{Kind: "bridge"}},
	})
}

// configure brings the devices up and gives them their addresses.
func (h Host) configure() error {
	conn, err := h.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := loopback(conn); err != nil {
		return err
	}
	index, err := setLink(conn, Device, true)
	if err != nil {
		return err
	}
	if err := addAddr(conn, index, netip.PrefixFrom(h.IPv4(), bits4)); err != nil {
		return err
	}
	return addAddr(conn, index, netip.PrefixFrom(h.IPv6(), bits6))
}

// loopback brings lo up and gives it a second address: two addresses make a
// pair for the RDS loop transport.
func loopback(conn *rtnetlink.Conn) error {
	index, err := setLink(conn, "lo", true)
	if err != nil {
		return err
	}
	return addAddr(conn, index, netip.MustParsePrefix("127.0.0.2/8"))
}

func addAddr(conn *rtnetlink.Conn, index uint32, p netip.Prefix) error {
	msg := &rtnetlink.AddressMessage{
		Family:       unix.AF_INET,
		PrefixLength: uint8(p.Bits()),
		Index:        index,
		Attributes:   &rtnetlink.AddressAttributes{Address: p.Addr().AsSlice(), Local: p.Addr().AsSlice()},
	}
	if p.Addr().IsLoopback() {
		// The kernel refuses it in a scope other than that of 127.0.0.1.
		msg.Scope = unix.RT_SCOPE_HOST
	}
	if p.Addr().Is6() {
		// Without duplicate address detection the address can be used at once.
		msg.Family, msg.Attributes.Flags = unix.AF_INET6, unix.IFA_F_NODAD
	}
	if err := conn.Address.New(msg); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("address %s: %w", p, err)
	}
	return nil
}

// onDevice calls f with the host's device.
func (h Host) onDevice(f func(conn *rtnetlink.Conn, link rtnetlink.LinkMessage) error) error {
	conn, err := h.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	link, err := findLink(conn, Device)
	if err != nil {
		return err
	}
	return f(conn, link)
}

func findLink(conn *rtnetlink.Conn, name string) (rtnetlink.LinkMessage, error) {
	links, err := conn.Link.List()
	if err != nil {
		return rtnetlink.LinkMessage{}, err
	}
	for _, l := range links {
		if l.Attributes != nil && l.Attributes.Name == name {
			return l, nil
		}
	}
	return rtnetlink.LinkMessage{}, fmt.Errorf("no device %s", name)
}

// setLink brings a device up or down and returns its index.
func setLink(conn *rtnetlink.Conn, name string, up bool) (uint32, error) {
	link, err := findLink(conn, name)
	if err != nil {
		return 0, err
	}
	msg := &rtnetlink.LinkMessage{Index: link.Index, Change: unix.IFF_UP}
	if up {
		msg.Flags = unix.IFF_UP
	}
	if err := conn.Link.Set(msg); err != nil {
		return 0, fmt.Errorf("link %s: %w", name, err)
	}
	return link.Index, nil
}

// SetLink brings the host's device up, or down as if the cable were cut.
// IPv6 addresses that the kernel drops with the link are put back.
func (h Host) SetLink(up bool) error {
	conn, err := h.dial()
	if err != nil {
		return fmt.Errorf("host %s: %w", h, err)
	}
	defer conn.Close()
	index, err := setLink(conn, Device, up)
	if err != nil {
		return fmt.Errorf("host %s: %w", h, err)
	}
	if !up {
		return nil
	}
	if err := addAddr(conn, index, netip.PrefixFrom(h.IPv6(), bits6)); err != nil {
		return fmt.Errorf("host %s: %w", h, err)
	}
	return nil
}

// Do runs f on a thread in the host's network namespace. Goroutines that f
// starts are not in it.
func (h Host) Do(f func() error) error {
	errc := make(chan error)
	go func() {
		runtime.LockOSThread()
		back, err := os.Open(threadNetNS)
		if err != nil {
			errc <- err
			return
		}
		defer back.Close()
		if err := h.Enter(); err != nil {
			errc <- err
			return
		}
		err = f()
		// A thread that cannot go back stays locked and ends with the goroutine.
		if unix.Setns(int(back.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		errc <- err
	}()
	return <-errc
}

const threadNetNS = "/proc/thread-self/ns/net"

// Enter moves the calling thread into the host's network namespace. The
// goroutine must be locked to it.
func (h Host) Enter() error {
	ns, err := os.Open(h.NetNS())
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter host %s: setns: %w", h, err)
	}
	return nil
}
