package rdmadev

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
)

// A Port is a port of an RDMA device.
type Port struct {
	Device       string
	DeviceIndex  uint32
	Number       uint32 // from 1
	State        PortState
	Physical     PhysicalState
	Netdev       string // the network interface of a RoCE or iWARP port; empty otherwise
	NetdevIndex  uint32
	LinkLayer    string // InfiniBand or Ethernet
	Rate         Rate
	LID          uint32 // with SMLID, LMC and SubnetPrefix: of InfiniBand
	SMLID        uint32
	LMC          uint8
	SubnetPrefix GUID
}

// A PortState is the logical state of a port: enum ib_port_state.
type PortState uint8

// The states of a port. It carries data when it is active.
const (
	PortDown PortState = iota + 1
	PortInit
	PortArmed
	PortActive
	PortActiveDefer
)

var portStates = []string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}

// String is the state's name as rdma(8) and sysfs have it.
func (s PortState) String() string {
	if n := name(portStates, s); n != "" {
		return n
	}
	return fmt.Sprintf("PortState(%d)", uint8(s))
}

// A PhysicalState is that of a port's link: enum ib_port_phys_state.
type PhysicalState uint8

var physicalStates = []string{"NOP", "SLEEP", "POLLING", "DISABLED", "ARMED", "LINK_UP", "LINK_ERROR_RECOVER", "PHY_TEST"}

// String is the state's name as rdma(8) has it.
func (s PhysicalState) String() string {
	if n := name(physicalStates, s); n != "" {
		return n
	}
	return fmt.Sprintf("PhysicalState(%d)", uint8(s))
}

// A Rate is how fast a port is. The soft devices report numbers that mean nothing.
type Rate struct {
	MbitPerSecond int
	Width         int    // lanes
	Generation    string // SDR, DDR, QDR, FDR, EDR, HDR, NDR, XDR
}

// String is the rate in the words of sysfs: "100 Gb/sec (4X EDR)".
func (r Rate) String() string {
	s := strconv.FormatFloat(float64(r.MbitPerSecond)/1000, 'f', -1, 64) + " Gb/sec"
	if r.Width != 0 {
		s += strings.TrimRight(fmt.Sprintf(" (%dX %s", r.Width, r.Generation), " ") + ")"
	}
	return s
}

// parseRate reads what rate_show of drivers/infiniband/core/sysfs.c writes; zero if it is not that.
func parseRate(s string) Rate {
	number, rest, ok := strings.Cut(s, " Gb/sec")
	gbit, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(gbit > 0 && gbit < 1e6) {
		return Rate{}
	}
	r := Rate{MbitPerSecond: int(gbit*1000 + 0.5)}
	width, generation, ok := strings.Cut(strings.Trim(rest, " ()"), "X")
	if n, err := strconv.Atoi(width); ok && err == nil && n > 0 {
		r.Width, r.Generation = n, strings.TrimSpace(generation)
	}
	return r
}

// Ports lists the ports of all devices.
func (c *Client) Ports() ([]Port, error) {
	devices, err := c.Devices()
	if err != nil {
		return nil, err
	}
	var ports []Port
	for _, d := range devices {
		data, err := c.ask(cmdPortGet, netlink.Dump, ofDevice(d.Index))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNoDevice) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("rdmadev: ports of %s: %w", d.Name, err)
		}
		for _, b := range data {
			p, err := decodePort(b)
			if err != nil {
				return nil, fmt.Errorf("rdmadev: ports of %s: %w", d.Name, err)
			}
			number := strconv.FormatUint(uint64(p.Number), 10)
			p.LinkLayer = c.line(p.Device, "ports", number, "link_layer")
			p.Rate = parseRate(c.line(p.Device, "ports", number, "rate"))
			ports = append(ports, p)
		}
	}
	return ports, nil
}

// decodePort decodes an answer to RDMA_NLDEV_CMD_PORT_GET (fill_port_info of nldev.c).
func decodePort(b []byte) (p Port, err error) {
	err = each(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrDevIndex:
			p.DeviceIndex = ad.Uint32()
		case attrDevName:
			p.Device = ad.String()
		case attrPortIndex:
			p.Number = ad.Uint32()
		case attrPortState:
			p.State = PortState(ad.Uint8())
		case attrPortPhysState:
			p.Physical = PhysicalState(ad.Uint8())
		case attrNdevIndex:
			p.NetdevIndex = ad.Uint32()
		case attrNdevName:
			p.Netdev = ad.String()
		case attrLID:
			p.LID = ad.Uint32()
		case attrSMLID:
			p.SMLID = ad.Uint32()
		case attrLMC:
			p.LMC = ad.Uint8()
		case attrSubnetPrefix:
			p.SubnetPrefix = GUID(ad.Uint64())
		}
	})
	if strings.Contains(p.Device, "/") || p.Device == "." || p.Device == ".." {
		return Port{}, fmt.Errorf("%q is not the name of a device", p.Device)
	}
	return p, err
}
