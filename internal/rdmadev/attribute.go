package rdmadev

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"github.com/mdlayher/netlink"
)

// Attributes of enum rdma_nldev_attr.
const (
	attrDevIndex       = 1
	attrDevName        = 2
	attrPortIndex      = 3
	attrCapFlags       = 4
	attrFWVersion      = 5
	attrNodeGUID       = 6
	attrSysImageGUID   = 7
	attrSubnetPrefix   = 8
	attrLID            = 9
	attrSMLID          = 10
	attrLMC            = 11
	attrPortState      = 12
	attrPortPhysState  = 13
	attrDevNodeType    = 14
	attrResQP          = 19
	attrResQPEntry     = 20
	attrResLQPN        = 21
	attrResRQPN        = 22
	attrResRQPSN       = 23
	attrResSQPSN       = 24
	attrResType        = 26
	attrResState       = 27
	attrResPID         = 28
	attrResKernName    = 29
	attrResCMID        = 30
	attrResCMIDEntry   = 31
	attrResPS          = 32
	attrResSrcAddr     = 33
	attrResDstAddr     = 34
	attrResMR          = 40
	attrResMREntry     = 41
	attrResRKey        = 42
	attrResLKey        = 43
	attrResMRLen       = 45
	attrNdevIndex      = 50
	attrNdevName       = 51
	attrResMRN         = 62
	attrResCMIDN       = 63
	attrDevProtocol    = 67
	attrChardevType    = 69
	attrDriverID       = 73 // UVERBS_DRIVER_ID
	attrHWCounters     = 80
	attrHWCounterEntry = 81
	attrHWCounterName  = 82
	attrHWCounterValue = 83
)

// errNoDevice is the kernel's answer for a device that is not there.
const errNoDevice = syscall.ENODEV

// each decodes the attributes of a message or of a nested attribute.
func each(b []byte, f func(ad *netlink.AttributeDecoder)) error {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return err
	}
	for ad.Next() {
		f(ad)
	}
	return ad.Err()
}

// within hands the attributes in a nested one to f.
func within(ad *netlink.AttributeDecoder, f func(ad *netlink.AttributeDecoder)) {
	ad.Nested(func(ad *netlink.AttributeDecoder) error {
		for ad.Next() {
			f(ad)
		}
		return nil
	})
}

// The address families of Linux, which package syscall of other systems numbers otherwise.
const (
	afINET  = 2
	afINET6 = 10
)

// addrPort reads a sockaddr. It is zero for a family other than IPv4 and IPv6, and for an
// address that is too short.
func addrPort(b []byte) netip.AddrPort {
	if len(b) < 2 {
		return netip.AddrPort{}
	}
	switch family := binary.NativeEndian.Uint16(b); {
	case family == afINET && len(b) >= 8:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:]))
	case family == afINET6 && len(b) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), binary.BigEndian.Uint16(b[2:]))
	}
	return netip.AddrPort{}
}

// name finds the name of a number in a table, "" where it has none.
func name[T ~uint8 | ~uint32](names []string, n T) string {
	if int64(n) < int64(len(names)) {
		return names[n]
	}
	return ""
}
