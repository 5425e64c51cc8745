package abi

import (
	"encoding/binary"
	"net/netip"
)

// Sizes of the socket addresses that RDS takes and gives.
const (
	SizeofSockaddrIn      = 16
	SizeofSockaddrIn6     = 28
	SizeofSockaddrStorage = 128
)

// PutSockaddr writes ap to b as the kernel wants it and returns how many bytes
// of b count: a sockaddr_in (16) for IPv4 and IPv4-mapped IPv6 addresses, a
// sockaddr_in6 (28) for other IPv6 addresses, 0 if ap holds no address. The
// scope id goes into sockaddr_in6 only; a zone in ap is not looked at. Bytes
// after those that count keep what they held.
//
// Lengths matter to RDS: RDS_CANCEL_SENT_TO tells IPv4 from IPv6 by the length
// alone (rds_cancel_sent_to in net/rds/af_rds.c).
func PutSockaddr(b *[SizeofSockaddrIn6]byte, ap netip.AddrPort, scope uint32) int {
	return putSockaddr(b, ap, scope, Layout{})
}

func putSockaddr(b *[SizeofSockaddrIn6]byte, ap netip.AddrPort, scope uint32, l Layout) int {
	addr := ap.Addr()
	switch {
	case addr.Is4() || addr.Is4In6():
		ip := addr.As4()
		l.PutUint16(b[0:], AF_INET)
		binary.BigEndian.PutUint16(b[2:], ap.Port())
		copy(b[4:8], ip[:])
		clear(b[8:SizeofSockaddrIn])
		return SizeofSockaddrIn
	case addr.Is6():
		ip := addr.As16()
		l.PutUint16(b[0:], AF_INET6)
		binary.BigEndian.PutUint16(b[2:], ap.Port())
		clear(b[4:8]) // flow information
		copy(b[8:24], ip[:])
		l.PutUint32(b[24:], scope)
		return SizeofSockaddrIn6
	}
	return 0
}

// ParseSockaddr reads a sockaddr_in or sockaddr_in6 from b, whose length is
// what the kernel said it is. The address has no zone, and an IPv4-mapped one
// is returned as IPv4; scope is the scope id of a sockaddr_in6, else 0. It is
// false for every other family, AF_UNSPEC of an unbound RDS socket among them,
// and for a b too short for its family, an empty one among them.
func ParseSockaddr(b []byte) (ap netip.AddrPort, scope uint32, ok bool) {
	return parseSockaddr(b, Layout{})
}

func parseSockaddr(b []byte, l Layout) (ap netip.AddrPort, scope uint32, ok bool) {
	if len(b) < SizeofSockaddrIn {
		return netip.AddrPort{}, 0, false
	}
	switch l.Uint16(b) {
	case AF_INET:
		addr := netip.AddrFrom4([4]byte(b[4:8]))
		return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(b[2:])), 0, true
	case AF_INET6:
		if len(b) < SizeofSockaddrIn6 {
			return netip.AddrPort{}, 0, false
		}
		addr := netip.AddrFrom16([16]byte(b[8:24])).Unmap()
		return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(b[2:])), l.Uint32(b[24:]), true
	}
	return netip.AddrPort{}, 0, false
}
