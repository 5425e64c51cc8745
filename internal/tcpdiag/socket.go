// Package tcpdiag asks the kernel how its TCP sockets fare: what "ss -ti" shows. It
// speaks sock_diag(7), which the modules inet_diag and tcp_diag provide.
package tcpdiag

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// A Socket is a TCP socket as inet_diag describes it (linux/inet_diag.h:struct
// inet_diag_msg).
type Socket struct {
	Local, Remote netip.AddrPort // IPv4-mapped addresses are unmapped
	State         uint8          // TCP_ESTABLISHED and so on, of linux/tcp.h
	Retransmits   uint8          // of the segment that is due, in a row
	// ReceiveQueue is how many bytes nobody has read, SendQueue how many are not
	// acknowledged, sent or not.
	ReceiveQueue, SendQueue uint32
	Congestion              string // name of the congestion control
	Info                    *Info  // nil if the kernel did not tell
}

// An Info is what TCP measured on a socket (linux/tcp.h:struct tcp_info). Segments are
// counted in packets.
type Info struct {
	RTO             time.Duration // until a segment is sent again
	RTT, RTTVar     time.Duration // smoothed
	SendMSS         uint32        // bytes of payload in a segment
	PathMTU         uint32
	Unacked         uint32 // segments on their way
	Lost            uint32 // segments held for lost
	Retransmitted   uint32 // segments sent again and on their way
	TotalRetrans    uint32 // segments sent again, since the socket was made
	Cwnd, Ssthresh  uint32 // in segments
	LastDataSent    time.Duration
	LastDataRecv    time.Duration
	LastAckRecv     time.Duration
	BytesAcked      Optional // since Linux 4.1, as is BytesReceived
	BytesReceived   Optional
	NotSent         Optional // bytes queued, since Linux 4.6
	MinRTT          Optional // in microseconds, since Linux 4.6
	DeliveryRate    Optional // bytes per second, since Linux 4.9
	BytesRetransmit Optional // since Linux 4.19
}

// An Optional is a number that only newer kernels tell.
type Optional struct {
	Value uint64
	Known bool
}

// Config says which sockets to list. The zero Config and nil list those with any port in
// the network namespace of the calling thread.
type Config struct {
	NetNS int    // descriptor of a network namespace, 0 for that of the calling thread
	Port  uint16 // at either end; 0 for any
}

// Sockets lists the TCP sockets that talk to a peer or try to: not those that
// listen, nor what is left of closed ones. The kernel loads tcp_diag for it if that is missing.
//
// A kernel without tcp_diag gives ENOENT.
func Sockets(ctx context.Context, cfg *Config) ([]Socket, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	all, err := sockets(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("tcp_diag: %w", err)
	}
	return all, nil
}
