package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/jsimonetti/rtnetlink/v2"
	"golang.org/x/sys/unix"
)

// SetAway moves the host's IPv4 address to another host, as a cluster does with the address of a
// service, or back. Who has it then makes that known by gratuitous ARP.
func (h Host) SetAway(to Host, away bool) error {
	from := h
	if !away {
		from, to = to, from
	}
	addr := netip.PrefixFrom(h.IPv4(), bits4)
	if err := from.removeAddr(addr); err != nil {
		return fmt.Errorf("host %s: %w", from, err)
	}
	if err := to.takeAddr(addr); err != nil {
		return fmt.Errorf("host %s: %w", to, err)
	}
	return nil
}

func (h Host) removeAddr(p netip.Prefix) error {
	return h.onDevice(func(conn *rtnetlink.Conn, link rtnetlink.LinkMessage) error {
		err := conn.Address.Delete(&rtnetlink.AddressMessage{
			Family: unix.AF_INET, PrefixLength: uint8(p.Bits()), Index: link.Index,
			Attributes: &rtnetlink.AddressAttributes{Address: p.Addr().AsSlice(), Local: p.Addr().AsSlice()},
		})
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("address %s: %w", p, err)
		}
		return nil
	})
}

// takeAddr adds an address and makes it known.
func (h Host) takeAddr(p netip.Prefix) error {
	const notify = "/proc/sys/net/ipv4/conf/" + Device + "/arp_notify"
	if err := h.Do(func() error { return os.WriteFile(notify, []byte("1"), 0) }); err != nil {
		return err
	}
	return h.onDevice(func(conn *rtnetlink.Conn, link rtnetlink.LinkMessage) error {
		if err := addAddr(conn, link.Index, p); err != nil {
			return err
		}
		// A device that is given its own hardware address is announced (inetdev_event).
		err := conn.Link.Set(&rtnetlink.LinkMessage{Index: link.Index, Attributes: &rtnetlink.LinkAttributes{Address: link.Attributes.Address}})
		if err != nil {
			return fmt.Errorf("link %s: %w", Device, err)
		}
		return nil
	})
}
