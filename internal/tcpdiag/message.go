package tcpdiag

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/mdlayher/netlink"
)

// From linux/inet_diag.h.
const (
	sizeofMessage = 72 // struct inet_diag_msg

	attrInfo = 2 // INET_DIAG_INFO: struct tcp_info
	attrCong = 4 // INET_DIAG_CONG: a name
)

const (
	familyIPv4 = 2
	familyIPv6 = 10
)

// decode reads an answer: a struct inet_diag_msg and attributes.
func decode(b []byte) (Socket, error) {
	if len(b) < sizeofMessage {
		return Socket{}, fmt.Errorf("message of %d bytes, at least %d expected", len(b), sizeofMessage)
	}
	var size int
	switch b[0] {
	case familyIPv4:
		size = 4
	case familyIPv6:
		size = 16
	default:
		return Socket{}, fmt.Errorf("message of address family %d", b[0])
	}
	end := func(port, addr int) netip.AddrPort {
		a, _ := netip.AddrFromSlice(b[addr : addr+size])
		return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(b[port:]))
	}
	s := Socket{
		Local: end(4, 8), Remote: end(6, 24),
		State: b[1], Retransmits: b[3],
		ReceiveQueue: binary.NativeEndian.Uint32(b[56:]), SendQueue: binary.NativeEndian.Uint32(b[60:]),
	}
	ad, err := netlink.NewAttributeDecoder(b[sizeofMessage:])
	if err != nil {
		return Socket{}, err
	}
	for ad.Next() {
		switch ad.Type() {
		case attrInfo:
			s.Info = decodeInfo(ad.Bytes())
		case attrCong:
			s.Congestion, _, _ = strings.Cut(string(ad.Bytes()), "\x00")
		}
	}
	return s, ad.Err()
}

// sizeofInfo is how long struct tcp_info is in every kernel; it grew since.
const sizeofInfo = 104

// decodeInfo reads a struct tcp_info, nil if it is too short for one.
func decodeInfo(b []byte) *Info {
	if len(b) < sizeofInfo {
		return nil
	}
	u32 := func(offset int) uint32 { return binary.NativeEndian.Uint32(b[offset:]) }
	micros := func(offset int) time.Duration { return time.Duration(u32(offset)) * time.Microsecond }
	millis := func(offset int) time.Duration { return time.Duration(u32(offset)) * time.Millisecond }
	maybe := func(offset, size int) Optional {
		switch {
		case len(b) < offset+size:
			return Optional{}
		case size == 4:
			return Optional{uint64(u32(offset)), true}
		}
		return Optional{binary.NativeEndian.Uint64(b[offset:]), true}
	}
	return &Info{
		RTO: micros(8), SendMSS: u32(16),
		Unacked: u32(24), Lost: u32(32), Retransmitted: u32(36),
		LastDataSent: millis(44), LastDataRecv: millis(52), LastAckRecv: millis(56),
		PathMTU: u32(60), RTT: micros(68), RTTVar: micros(72), Ssthresh: u32(76), Cwnd: u32(80),
		TotalRetrans: u32(100),
		BytesAcked:   maybe(120, 8), BytesReceived: maybe(128, 8),
		NotSent: maybe(144, 4), MinRTT: maybe(148, 4), DeliveryRate: maybe(160, 8), BytesRetransmit: maybe(208, 8),
	}
}
