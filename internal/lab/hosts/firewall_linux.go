package hosts

import (
	"errors"
	"fmt"

	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Priorities of routing rules. By default the kernel looks at its local addresses first, at 0.
const (
	dropPriority  = 50
	localPriority = 100
)

// SetDrop drops, silently, what comes for a TCP port of the host, or lets it
// through again.
func (h Host) SetDrop(port uint16, drop bool) error {
	conn, err := h.dial()
	if err != nil {
		return fmt.Errorf("host %s: %w", h, err)
	}
	defer conn.Close()
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := setDrop(conn, family, port, drop); err != nil {
			return fmt.Errorf("host %s: rule for port %d: %w", h, port, err)
		}
	}
	return nil
}

func setDrop(conn *rtnetlink.Conn, family uint8, port uint16, drop bool) error {
	tcp, device := uint8(unix.IPPROTO_TCP), Device
	rule := rule(family, dropPriority, unix.FR_ACT_BLACKHOLE, unix.RT_TABLE_UNSPEC)
	rule.Attributes.IPProto = &tcp
	rule.Attributes.IIFName = &device
	rule.Attributes.DPortRange = &rtnetlink.RulePortRange{Start: port, End: port}
	from, to := uint32(0), uint32(localPriority)
	change := conn.Rule.Add
	if !drop {
		from, to = to, from
		change = conn.Rule.Delete
	}
	// The rule for local addresses comes after it, and back to its place.
	if err := conn.Rule.Add(ruleLocal(family, to)); err != nil {
		return err
	}
	if err := conn.Rule.Delete(ruleLocal(family, from)); err != nil {
		return err
	}
	return change(rule)
}

func rule(family uint8, priority uint32, action, table uint8) *rtnetlink.RuleMessage {
	return &rtnetlink.RuleMessage{Family: family, Action: action, Table: table, Attributes: &rtnetlink.RuleAttributes{Priority: &priority}}
}

func ruleLocal(family uint8, priority uint32) *rtnetlink.RuleMessage {
	return rule(family, priority, unix.FR_ACT_TO_TBL, unix.RT_TABLE_LOCAL)
}

// From linux/if_link.h, and a routing table that nothing else uses.
const (
	vrfDevice    = "vrf0"
	iflaVRFTable = 1
	vrfTable     = 10
)

// SetDeaf makes the host refuse TCP connections to what listens on all its devices, as
// rds_tcp does in each namespace, or take them again: it puts the device into a VRF, to
// which such listeners do not belong (net.ipv4.tcp_l3mdev_accept).
func (h Host) SetDeaf(deaf bool) error {
	conn, err := h.dial()
	if err != nil {
		return fmt.Errorf("host %s: %w", h, err)
	}
	defer conn.Close()
	set := unsetVRF
	if deaf {
		set = setVRF
	}
	if err := set(conn); err != nil {
		return fmt.Errorf("host %s: %s: %w", h, vrfDevice, err)
	}
	return h.SetLink(true) // whose IPv6 addresses went
}

func setVRF(conn *rtnetlink.Conn) error {
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(iflaVRFTable, vrfTable)
	table, err := ae.Encode()
	if err != nil {
		return err
	}
	err = conn.Link.New(&rtnetlink.LinkMessage{
		Flags: unix.IFF_UP, Change: unix.IFF_UP,
		Attributes: &rtnetlink.LinkAttributes{
			Name: vrfDevice,
			Info: &rtnetlink.LinkInfo{Kind: "vrf", Data: &rtnetlink.LinkData{Name: "vrf", Data: table}},
		},
	})
	if err != nil {
		return err
	}
	vrf, err := findLink(conn, vrfDevice)
	if err != nil {
		return err
	}
	return enslave(conn, vrf.Index)
}

func unsetVRF(conn *rtnetlink.Conn) error {
	vrf, err := findLink(conn, vrfDevice)
	if err != nil {
		return err
	}
	return errors.Join(enslave(conn, 0), conn.Link.Delete(vrf.Index))
}

// enslave makes the host's device belong to another, 0 for none.
func enslave(conn *rtnetlink.Conn, master uint32) error {
	link, err := findLink(conn, Device)
	if err != nil {
		return err
	}
	return conn.Link.Set(&rtnetlink.LinkMessage{Index: link.Index, Attributes: &rtnetlink.LinkAttributes{Master: &master}})
}
