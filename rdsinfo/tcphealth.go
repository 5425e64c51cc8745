package rdsinfo

import (
	"context"
	"net/netip"

	"github.com/rdskit/rdskit/internal/tcpdiag"
)

// A TCPHealth is how TCP fares with a socket below a connection: what "ss -ti" shows of it
// (linux/tcp.h:struct tcp_info). Segments are counted in packets.
type TCPHealth struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	State  string         `json:"state"` // as ss(8) calls it: ESTAB, SYN-SENT, ...
	// SendQueue is how many bytes are not acknowledged, sent or not, ReceiveQueue how many RDS
	// has not read.
	SendQueue    uint32 `json:"send_queue_bytes"`
	ReceiveQueue uint32 `json:"receive_queue_bytes"`
	// RTTMicros is the smoothed round-trip time, RTTVarMicros how it varies, RTOMicros after what
	// time a segment is sent again.
	RTTMicros    uint64           `json:"rtt_us"`
	RTTVarMicros uint64           `json:"rttvar_us"`
	MinRTTMicros Optional[uint64] `json:"min_rtt_us"`
	RTOMicros    uint64           `json:"rto_us"`
	// Cwnd and Ssthresh are the congestion window and the slow start threshold, in segments
	// of SendMSS bytes.
	Cwnd       uint32 `json:"cwnd_segments"`
	Ssthresh   uint32 `json:"ssthresh_segments"`
	SendMSS    uint32 `json:"mss_bytes"`
	PathMTU    uint32 `json:"path_mtu_bytes"`
	Congestion string `json:"congestion_control"`
	// Unacked is how many segments are on their way, Lost how many of them are held for
	// lost, Retransmits how many were sent again since the socket was made, and Attempts how
	// often in a row the segment that is due was.
	Unacked     uint32 `json:"unacked_segments"`
	Lost        uint32 `json:"lost_segments"`
	Retransmits uint32 `json:"retransmitted_segments"`
	Attempts    uint8  `json:"retransmit_attempts"`
	// LastAckMillis is how long ago an acknowledgement came.
	LastAckMillis uint64           `json:"last_ack_ms"`
	BytesAcked    Optional[uint64] `json:"acked_bytes"`
	BytesReceived Optional[uint64] `json:"received_bytes"`
	DeliveryRate  Optional[uint64] `json:"delivery_rate_bytes_per_second"`
}

// ReadTCPHealth asks for the TCP sockets with port TCPPort at one end. The
// kernel loads the module tcp_diag for it if that is missing; without one the error is ENOENT.
func ReadTCPHealth(ctx context.Context, cfg *Config) ([]TCPHealth, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	all, err := tcpdiag.Sockets(ctx, &tcpdiag.Config{NetNS: cfg.NetNS, Port: TCPPort})
	if err != nil {
		return nil, err
	}
	health := make([]TCPHealth, 0, len(all))
	for _, s := range all {
		if s.Info != nil {
			health = append(health, tcpHealthOf(s))
		}
	}
	return health, nil
}

func tcpHealthOf(s tcpdiag.Socket) TCPHealth {
	optional := func(o tcpdiag.Optional) Optional[uint64] { return Optional[uint64]{o.Value, o.Known} }
	i := s.Info
	h := TCPHealth{
		Local: s.Local, Remote: s.Remote,
		SendQueue: s.SendQueue, ReceiveQueue: s.ReceiveQueue,
		RTTMicros: uint64(i.RTT.Microseconds()), RTTVarMicros: uint64(i.RTTVar.Microseconds()),
		MinRTTMicros: optional(i.MinRTT), RTOMicros: uint64(i.RTO.Microseconds()),
		Cwnd: i.Cwnd, Ssthresh: i.Ssthresh, SendMSS: i.SendMSS, PathMTU: i.PathMTU, Congestion: s.Congestion,
		Unacked: i.Unacked, Lost: i.Lost, Retransmits: i.TotalRetrans, Attempts: s.Retransmits,
		LastAckMillis: uint64(i.LastAckRecv.Milliseconds()),
		BytesAcked:    optional(i.BytesAcked), BytesReceived: optional(i.BytesReceived), DeliveryRate: optional(i.DeliveryRate),
	}
	h.State, _ = tcpStateName(s.State)
	if h.MinRTTMicros.Value == 1<<32-1 {
		h.MinRTTMicros = Optional[uint64]{} // nothing measured yet
	}
	return h
}
