package route

import (
	"context"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/mdlayher/netlink"
)

// From linux/if.h, linux/if_link.h and linux/ipv6.h; package syscall has the
// others.
const (
	ifNameSize      = 16  // IFNAMSIZ
	altIfNameSize   = 128 // ALTIFNAMSIZ
	iflaAFSpec      = 26  // IFLA_AF_SPEC
	iflaAltIfname   = 53  // IFLA_ALT_IFNAME
	iflaInet6Conf   = 2   // IFLA_INET6_CONF, an array of int32
	confDisableIPv6 = 26  // DEVCONF_DISABLE_IPV6, an index of that array
)

// A link is what a look-up needs of an interface.
type link struct {
	index    int
	name     string
	mtu      int
	up       bool
	running  bool
	loopback bool
	ipv6     bool // IPv6 is enabled on it
}

// unmarshal reads a RTM_NEWLINK message. rtnetlink.LinkMessage does not do here:
// it refuses the message when an attribute that is not needed has a length it
// does not know, such as statistics that a newer kernel extends.
func (l *link) unmarshal(b []byte) error {
	if len(b) < syscall.SizeofIfInfomsg {
		return fmt.Errorf("link message of %d bytes, at least %d expected", len(b), syscall.SizeofIfInfomsg)
	}
	l.index = int(binary.NativeEndian.Uint32(b[4:]))
	flags := binary.NativeEndian.Uint32(b[8:])
	l.up = flags&syscall.IFF_UP != 0
	l.running = flags&syscall.IFF_RUNNING != 0
	l.loopback = flags&syscall.IFF_LOOPBACK != 0
	ad, err := netlink.NewAttributeDecoder(b[syscall.SizeofIfInfomsg:])
	if err != nil {
		return fmt.Errorf("link %d: %w", l.index, err)
	}
	for ad.Next() {
		switch ad.Type() {
		case syscall.IFLA_IFNAME:
			l.name = ad.String()
		case syscall.IFLA_MTU:
			l.mtu = int(ad.Uint32())
		case iflaAFSpec:
			ad.Nested(l.unmarshalAFSpec)
		}
	}
	if err := ad.Err(); err != nil {
		return fmt.Errorf("link %d: %w", l.index, err)
	}
	return nil
}

// unmarshalAFSpec reads the settings of IPv6, which are absent when the kernel
// runs without it (net/ipv6/addrconf.c inet6_fill_link_af).
func (l *link) unmarshalAFSpec(ad *netlink.AttributeDecoder) error {
	for ad.Next() {
		if ad.Type() != syscall.AF_INET6 {
			continue
		}
		ad.Nested(func(ad *netlink.AttributeDecoder) error {
			for ad.Next() {
				if ad.Type() != iflaInet6Conf {
					continue
				}
				conf := ad.Bytes()
				at := 4 * confDisableIPv6
				l.ipv6 = len(conf) < at+4 || binary.NativeEndian.Uint32(conf[at:]) == 0
			}
			return nil
		})
	}
	return nil
}

func listLinks(ctx context.Context, cfg *Config) ([]Link, error) {
	c, closeClient, err := dial(ctx, cfg.NetNS)
	if err != nil {
		return nil, dialError(err)
	}
	defer closeClient()
	links, err := c.links()
	if err != nil {
		return nil, fmt.Errorf("route: %w", err)
	}
	all := make([]Link, len(links))
	for i, l := range links {
		all[i] = Link{Index: l.index, Name: l.name, MTU: l.mtu, Up: l.up, Running: l.running, Loopback: l.loopback}
	}
	return all, nil
}

// links lists the interfaces of the namespace.
func (c *client) links() ([]link, error) {
	data, err := c.get(syscall.RTM_GETLINK, syscall.RTM_NEWLINK, netlink.Dump, &rtnetlink.LinkMessage{})
	if err != nil {
		return nil, fmt.Errorf("listing network devices: %w", err)
	}
	links := make([]link, len(data))
	for i, b := range data {
		if err := links[i].unmarshal(b); err != nil {
			return nil, fmt.Errorf("listing network devices: %w", err)
		}
	}
	return links, nil
}

// link returns the interface with an index.
func (c *client) link(index int) (link, error) {
	return c.oneLink(&rtnetlink.LinkMessage{Index: uint32(index)})
}

// linkByName returns the interface with a name, an alternative name or, as zones
// have it, a decimal index.
func (c *client) linkByName(name string) (link, error) {
	typ := uint16(syscall.IFLA_IFNAME)
	if len(name) >= ifNameSize {
		typ = iflaAltIfname
	}
	if len(name) >= altIfNameSize {
		return link{}, syscall.ENODEV
	}
	l, err := c.oneLink(&rtnetlink.LinkMessage{}, attributes(func(ae *netlink.AttributeEncoder) { ae.String(typ, name) }))
	if !errors.Is(err, syscall.ENODEV) {
		return l, err
	}
	if index, aerr := strconv.ParseInt(name, 10, 32); aerr == nil && index > 0 {
		return c.link(int(index))
	}
	return link{}, err
}

func (c *client) oneLink(req ...encoding.BinaryMarshaler) (link, error) {
	data, err := c.get(syscall.RTM_GETLINK, syscall.RTM_NEWLINK, 0, req...)
	if err != nil {
		return link{}, err
	}
	if len(data) != 1 {
		return link{}, fmt.Errorf("%d answers about one network device", len(data))
	}
	var l link
	err = l.unmarshal(data[0])
	return l, err
}
