package rdsinfo

import "net/netip"

// A TCPSocket is a TCP socket below a connection of the transport tcp. A
// connection has up to eight, in each direction.
type TCPSocket struct {
	Local, Remote netip.AddrPort
	// HeaderRemaining and DataRemaining are how many bytes of the message being
	// received are still to come.
	HeaderRemaining, DataRemaining uint64
	// LastSentNext, LastExpectedUna and LastSeenUna are TCP sequence numbers at the
	// last look: the next to send, and the first that is not acknowledged, as expected and as seen.
	LastSentNext, LastExpectedUna, LastSeenUna uint32
	// TOS is reported by mainline, for IPv4.
	TOS Optional[uint8]
}

const (
	sizeofTCPSocket  = 40
	sizeofTCPSocket6 = 64
)

func parseTCPSocket(r record) TCPSocket {
	s := parseTCPSocketOf(r, 4)
	s.TOS = r.maybe8(sizeofTCPSocket)
	return s
}

func parseTCPSocket6(r record) TCPSocket { return parseTCPSocketOf(r, 16) }

func parseTCPSocketOf(r record, addrSize int) TCPSocket {
	remote := addrSize + 2
	numbers := 2 * remote
	return TCPSocket{
		Local:           netip.AddrPortFrom(r.addr(0, addrSize), r.be16(addrSize)),
		Remote:          netip.AddrPortFrom(r.addr(remote, addrSize), r.be16(remote+addrSize)),
		HeaderRemaining: r.u64(numbers),
		DataRemaining:   r.u64(numbers + 8),
		LastSentNext:    r.u32(numbers + 16),
		LastExpectedUna: r.u32(numbers + 20),
		LastSeenUna:     r.u32(numbers + 24),
	}
}

// TCPSockets returns the TCP sockets that are established.
func (s *Snapshot) TCPSockets() ([]TCPSocket, error) {
	return decodeBoth(s, TCPSockets,
		sizeofTCPSocket, parseTCPSocket,
		sizeofTCPSocket6, parseTCPSocket6,
		func(s TCPSocket) bool { return s.Local.Addr().Is4() })
}
