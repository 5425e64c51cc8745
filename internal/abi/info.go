package abi

import (
	"encoding/binary"
	"net/netip"
)

// Tables of getsockopt at level SOL_RDS. The call returns the size of one
// record as its result and the size of all in the option length
// (rds_info_getsockopt in net/rds/info.c).
const (
	RDS_INFO_COUNTERS          = 10000
	RDS_INFO_CONNECTIONS       = 10001
	RDS_INFO_SEND_MESSAGES     = 10003
	RDS_INFO_RETRANS_MESSAGES  = 10004
	RDS_INFO_RECV_MESSAGES     = 10005
	RDS_INFO_SOCKETS           = 10006
	RDS_INFO_TCP_SOCKETS       = 10007
	RDS_INFO_IB_CONNECTIONS    = 10008
	RDS_INFO_CONNECTION_STATS  = 10009 // never provided by mainline
	RDS_INFO_IWARP_CONNECTIONS = 10010 // no longer provided

	RDS6_INFO_CONNECTIONS      = 10011
	RDS6_INFO_SEND_MESSAGES    = 10012
	RDS6_INFO_RETRANS_MESSAGES = 10013
	RDS6_INFO_RECV_MESSAGES    = 10014
	RDS6_INFO_SOCKETS          = 10015
	RDS6_INFO_TCP_SOCKETS      = 10016
	RDS6_INFO_IB_CONNECTIONS   = 10017

	RDS_INFO_FIRST = RDS_INFO_COUNTERS
	RDS_INFO_LAST  = RDS6_INFO_IB_CONNECTIONS

	UEK_RDS_INFO_RDMA_CONNECTION_STATS  = 10018
	UEK_RDS6_INFO_RDMA_CONNECTION_STATS = 10019
	UEK_RDS_INFO_CONN_PATHS             = 10020
	UEK_RDS6_INFO_CONN_PATHS            = 10021
	UEK_RDS_INFO_LAST                   = UEK_RDS6_INFO_CONN_PATHS
)

// Flags of a connection in the tables.
const (
	RDS_INFO_CONNECTION_FLAG_SENDING    = 0x01 // a thread is in the transmit path
	RDS_INFO_CONNECTION_FLAG_CONNECTING = 0x02
	RDS_INFO_CONNECTION_FLAG_CONNECTED  = 0x04

	UEK_RDS_INFO_CONNECTION_FLAG_ERROR = 0x08
)

// Flags of a message in the tables. Mainline never sets them.
const (
	RDS_INFO_MESSAGE_FLAG_ACK      = 0x01
	RDS_INFO_MESSAGE_FLAG_FAST_ACK = 0x02
)

// Sizes of struct rds_info_message and struct rds6_info_message. Kernels of
// the 4 series leave out the last byte of the first, the type of service; UEK
// appends a time to both.
const (
	SizeofMessageInfo  = 26
	SizeofMessageInfo6 = 50

	UEK_SizeofMessageInfo  = 34
	UEK_SizeofMessageInfo6 = 58
)

// MessageInfo is a message in one of the six message tables: not sent yet,
// sent and not acknowledged, or received and not read.
type MessageInfo struct {
	Seq    uint64
	Len    uint32 // payload, bytes
	Local  netip.AddrPort
	Remote netip.AddrPort
	Flags  uint8
	TOS    uint8  // 0 where the kernel does not tell
	Millis uint64 // UEK's time of sending or receipt, in milliseconds; else 0. Not yet seen on a kernel.
}

// ParseMessageInfo reads a record of the IPv4 message tables. The length of b
// is the record size that the kernel returned: fields that it has no room for
// are 0, and bytes after those known are ignored. It is false if b is shorter
// than any kernel's record.
func ParseMessageInfo(b []byte, l Layout) (MessageInfo, bool) {
	return parseMessageInfo(b, 4, l)
}

// ParseMessageInfo6 reads a record of the RDS6 message tables, which list the
// messages of IPv4 sockets too: addresses are unmapped. Lengths are treated as
// in [ParseMessageInfo].
func ParseMessageInfo6(b []byte, l Layout) (MessageInfo, bool) {
	return parseMessageInfo(b, 16, l)
}

// parseMessageInfo reads either record: they differ in the size of an address.
func parseMessageInfo(b []byte, addrSize int, l Layout) (MessageInfo, bool) {
	local, remote, ports := 12, 12+addrSize, 12+2*addrSize
	if len(b) < ports+5 {
		return MessageInfo{}, false
	}
	m := MessageInfo{
		Seq:    l.Uint64(b),
		Len:    l.Uint32(b[8:]),
		Local:  addrPort(b[local:remote], b[ports:]),
		Remote: addrPort(b[remote:ports], b[ports+2:]),
		Flags:  b[ports+4],
	}
	if len(b) >= ports+6 {
		m.TOS = b[ports+5]
	}
	if len(b) >= ports+14 {
		m.Millis = l.Uint64(b[ports+6:])
	}
	return m, true
}

// addrPort joins an address of 4 or 16 bytes, unmapped, and a port.
func addrPort(addr, port []byte) netip.AddrPort {
	ip, _ := netip.AddrFromSlice(addr)
	return netip.AddrPortFrom(ip.Unmap(), binary.BigEndian.Uint16(port))
}
