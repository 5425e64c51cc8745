package rdssock

import (
	"fmt"
	"net/netip"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
)

// A Config holds what a Conn is made with. The zero Config and nil leave
// everything to the kernel.
type Config struct {
	// Transport fixes which transport carries the messages, before the
	// socket is bound. Setting one may make the kernel load its module
	// (net/rds/transport.c:rds_trans_get).
	Transport Transport

	// SendBuffer and ReceiveBuffer are sizes in bytes of message payload.
	// The send buffer holds what peers have not acknowledged and limits the
	// size of one message; what is received and unread beyond the receive buffer
	// congests the port. Without CAP_NET_ADMIN the sysctls net.core.wmem_max
	// and rmem_max cap them. Conn.SendBuffer and ReceiveBuffer return what
	// was granted.
	SendBuffer, ReceiveBuffer int

	// TOS is the type of service. Each TOS has connections of its own, on
	// InfiniBand in the service level of its low four bits. TCP takes any
	// and uses 0; the loopback transport takes none but 0.
	TOS uint8

	// NetNS is the descriptor of a network namespace to open the socket in,
	// 0 for that of the calling thread. It needs CAP_SYS_ADMIN.
	NetNS int

	// LocalAddr is the address that Dial binds. The zero AddrPort, or one
	// with an invalid Addr, makes Dial ask the routing table for the address.
	LocalAddr netip.AddrPort

	// Congestion is what a write to a congested destination does.
	Congestion CongestionPolicy

	// NoCongestionMonitor leaves RDS_CONG_MONITOR off. Blocked writes then
	// notice the end of congestion only by trying again ten times a
	// second: without it, the kernel wakes no edge-triggered poller.
	NoCongestionMonitor bool

	// DestinationLimit, in bytes, bounds what one destination may hold of the send
	// buffer or, on this host, of unread messages. It is checked against
	// the kernel's tables when what was written since the last look would
	// exceed it. A write beyond it waits, or with
	// FailWhenCongested returns ErrQueueFull. 0 means no limit.
	DestinationLimit int

	// RXPath asks for the time that each message spent between points of
	// the receive path, delivered as a control message of kind
	// cmsg.KindRXPathLatency. At most three. Of messages by the loopback transport only
	// cmsg.RXDelivery is a duration: the kernel sets no times before that (net/rds/loop.c).
	RXPath []cmsg.RXPoint

	// Timestamps asks for the time of arrival of each message, in
	// microseconds of the wall clock, as a control message of kind cmsg.KindTimestamp.
	Timestamps bool

	// Zerocopy permits WriteZerocopy. Kernels before 6.1.176 and their like of other series have
	// holes in it that let any local user become root (CVE-2026-43494) or corrupt memory
	// (CVE-2026-43502): leave it off on those.
	Zerocopy bool
}

// A Transport is what carries the messages of a socket.
type Transport int

const (
	// TransportAny lets the kernel choose when it binds the socket: loopback for
	// 127.0.0.0/8 and ::1, else the first of InfiniBand and TCP that has the
	// address (net/rds/transport.c:rds_trans_get_preferred).
	TransportAny Transport = iota
	TransportInfiniBand
	TransportTCP
	// TransportLoopback is chosen by the kernel only, and cannot be set.
	TransportLoopback
)

// String returns the kernel's name of the transport.
func (t Transport) String() string {
	switch t {
	case TransportAny:
		return "any"
	case TransportInfiniBand:
		return abi.RDS_TRANS_IB.String()
	case TransportTCP:
		return abi.RDS_TRANS_TCP.String()
	case TransportLoopback:
		return abi.RDS_TRANS_LOOP.String()
	}
	return fmt.Sprintf("Transport(%d)", int(t))
}

func (t Transport) kernel() (abi.Transport, bool) {
	switch t {
	case TransportInfiniBand:
		return abi.RDS_TRANS_IB, true
	case TransportTCP:
		return abi.RDS_TRANS_TCP, true
	}
	return abi.RDS_TRANS_NONE, false
}

func transportOf(t abi.Transport) Transport {
	switch t {
	case abi.RDS_TRANS_IB:
		return TransportInfiniBand
	case abi.RDS_TRANS_TCP:
		return TransportTCP
	case abi.RDS_TRANS_LOOP:
		return TransportLoopback
	}
	return TransportAny
}

// A CongestionPolicy is what a write to a congested destination does.
type CongestionPolicy int

const (
	// WaitWhenCongested makes the write wait, within its deadline and context, and
	// continue as soon as the destination has caught up.
	WaitWhenCongested CongestionPolicy = iota
	// FailWhenCongested makes the write return ErrCongested at once.
	FailWhenCongested
)

// String returns "wait" or "fail".
func (p CongestionPolicy) String() string {
	switch p {
	case WaitWhenCongested:
		return "wait"
	case FailWhenCongested:
		return "fail"
	}
	return fmt.Sprintf("CongestionPolicy(%d)", int(p))
}
