package rdsinfo

import (
	"fmt"
	"net/netip"
)

// A Socket is an RDS socket of some program. One that is not bound has the
// Bound address ::, or is left out by kernels without RDS6. The socket by which a
// Snapshot is taken is among them.
type Socket struct {
	Bound, Connected netip.AddrPort
	// SendBuffer and ReceiveBuffer are their sizes in bytes of payload.
	SendBuffer, ReceiveBuffer uint32
	// Inode identifies the socket in /proc/PID/fd.
	Inode uint64

	// PID, Congestion and Command are reported by UEK. Not yet seen on a kernel.
	PID        Optional[int32]
	Congestion Optional[Congestion]
	Command    Optional[string]
}

// Congestion is whether a socket's port is congested, as UEK tells it.
type Congestion int32

const (
	NotCongested      Congestion = -1
	CongestionUnknown Congestion = 0
	Congested         Congestion = 1
)

// String returns "no", "unknown" or "yes".
func (c Congestion) String() string {
	switch c {
	case NotCongested:
		return "no"
	case CongestionUnknown:
		return "unknown"
	case Congested:
		return "yes"
	}
	return fmt.Sprintf("Congestion(%d)", int32(c))
}

const (
	sizeofSocket  = 28
	sizeofSocket6 = 52

	sizeofCommand = 16
)

func parseSocket(r record) Socket { return parseSocketOf(r, 4) }

func parseSocket6(r record) Socket {
	s := parseSocketOf(r, 16)
	if s.Bound.Addr().Is4() && s.Connected.Addr().IsUnspecified() {
		s.Connected = netip.AddrPortFrom(netip.IPv4Unspecified(), s.Connected.Port())
	}
	return s
}

func parseSocketOf(r record, addrSize int) Socket {
	ports := 4 + 2*addrSize
	s := Socket{
		SendBuffer:    r.u32(0),
		Bound:         netip.AddrPortFrom(r.addr(4, addrSize), r.be16(ports)),
		Connected:     netip.AddrPortFrom(r.addr(4+addrSize, addrSize), r.be16(ports+2)),
		ReceiveBuffer: r.u32(ports + 4),
		Inode:         r.u64(ports + 8),
		PID:           r.maybeInt32(ports + 16),
	}
	if c := r.maybeInt32(ports + 20); c.Known {
		s.Congestion = known(Congestion(c.Value))
	}
	if r.has(ports+24, sizeofCommand) {
		s.Command = known(r.text(ports+24, sizeofCommand))
	}
	return s
}

// Sockets returns the sockets of all programs.
func (s *Snapshot) Sockets() ([]Socket, error) {
	return decodeBoth(s, Sockets,
		sizeofSocket, parseSocket,
		sizeofSocket6, parseSocket6,
		func(s Socket) bool { return s.Bound.Addr().Is4() })
}
