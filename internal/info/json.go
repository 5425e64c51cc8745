package info

import (
	"net/netip"
	"time"

	"github.com/rdskit/rdskit/rdsinfo"
)

// JSON turns the rows of tables into records for encoding/json. Each has the name of
// its kind as "type", of both address families. What the kernel does not report is null.
type JSON struct {
	Filter Filter
	// NetNS is put into each record, if it is not empty.
	NetNS string
	// Joins fill fields that are null without.
	Joins
}

// Each calls f with the record of each row of a table.
func (j *JSON) Each(s *rdsinfo.Snapshot, t rdsinfo.Table, f func(record any)) error {
	of := func(kind string) header { return header{kind, j.NetNS} }
	return visit(s, t, true, j.Filter, visitor{
		counters: func(rows []rdsinfo.Counter) {
			for _, c := range rows {
				f(counterRecord{of("counter"), c.Name, c.Value})
			}
		},
		connections: func(rows []rdsinfo.Connection) {
			for i := range rows {
				c := &rows[i]
				e := connectionEnds(c)
				f(connectionRecord{of("connection"), c.Local, c.Remote, c.TOS, c.Transport, c.State().String(), c.Flags.String(), c.NextTX, c.NextRX,
					j.name(e), j.tcpConnection(e), j.route(e), j.rdma(e)})
			}
		},
		sockets: func(rows []rdsinfo.Socket) {
			for i := range rows {
				f(j.socket(of("socket"), &rows[i]))
			}
		},
		queue: func(t rdsinfo.Table, rows []rdsinfo.Message) {
			kind := of(messageKinds[t])
			for _, m := range rows {
				f(messageRecord{kind, m.Local.Addr(), m.Local.Port(), m.Remote.Addr(), m.Remote.Port(), m.TOS, m.Seq, m.Bytes, m.Millis,
					j.name(ends{remote: m.Remote})})
			}
		},
		tcpSockets: func(rows []rdsinfo.TCPSocket) {
			for _, k := range rows {
				e := ends{local: k.Local, remote: k.Remote}
				f(tcpRecord{of("tcp_socket"), k.Local.Addr(), k.Local.Port(), k.Remote.Addr(), k.Remote.Port(), k.TOS,
					k.HeaderRemaining, k.DataRemaining, k.LastSentNext, k.LastExpectedUna, k.LastSeenUna, j.name(e), j.tcpSocket(e)})
			}
		},
		ibConnections: func(rows []rdsinfo.IBConnection) {
			for i := range rows {
				r := ibRecordOf(of("ib_connection"), &rows[i])
				e := ibEnds(&rows[i])
				r.RemoteName, r.RDMA = j.name(e), j.rdma(e)
				f(r)
			}
		},
		pathConnections: func(rows []rdsinfo.PathConnection) {
			for _, c := range rows {
				for _, p := range c.Paths {
					f(pathRecord{of("path"), c.Local, c.Remote, c.TOS, c.Transport, p.Index, p.Flags.String(),
						when(p.Connected), when(p.Attempted), when(p.Reset), p.Attempts, p.DisconnectReason, disconnectReason(p.DisconnectReason)})
				}
			}
		},
	})
}

type header struct {
	Type  string `json:"type"`
	NetNS string `json:"netns,omitempty"`
}

type counterRecord struct {
	header
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

type connectionRecord struct {
	header
	Local     netip.Addr              `json:"local_address"`
	Remote    netip.Addr              `json:"remote_address"`
	TOS       rdsinfo.Optional[uint8] `json:"tos"`
	Transport string                  `json:"transport"`
	State     string                  `json:"state"`
	Flags     string                  `json:"flags"`
	NextTX    uint64                  `json:"next_tx"`
	NextRX    uint64                  `json:"next_rx"`

	RemoteName rdsinfo.Optional[string]              `json:"remote_name"`
	TCP        rdsinfo.Optional[[]rdsinfo.TCPHealth] `json:"tcp"`
	Route      rdsinfo.Optional[rdsinfo.Peer]        `json:"route"`
	RDMA       rdsinfo.Optional[rdmaRecord]          `json:"rdma"`
}

// An rdmaRecord is the port of an RDMA device below a connection, and its queue pairs.
type rdmaRecord struct {
	Device    string `json:"device"`
	Port      int    `json:"port"`
	State     string `json:"state"`
	LinkLayer string `json:"link_layer"`

	GIDIndex int        `json:"gid_index"`
	GID      netip.Addr `json:"gid"`
	GIDType  string     `json:"gid_type,omitempty"`
	NetDev   string     `json:"netdev,omitempty"`

	Driver     string       `json:"driver,omitempty"`
	Rate       string       `json:"rate,omitempty"`
	QueuePairs []pairRecord `json:"queue_pairs,omitempty"`
}

type pairRecord struct {
	Number     uint32 `json:"queue_pair"`
	Remote     uint32 `json:"remote_queue_pair"`
	State      string `json:"queue_pair_state,omitempty"`
	Connection string `json:"connection_state"`
}

type socketRecord struct {
	header
	Local         netip.Addr                          `json:"bound_address"`
	LocalPort     uint16                              `json:"bound_port"`
	Remote        netip.Addr                          `json:"connected_address"`
	RemotePort    uint16                              `json:"connected_port"`
	SendBuffer    uint32                              `json:"send_buffer_bytes"`
	ReceiveBuffer uint32                              `json:"receive_buffer_bytes"`
	Inode         uint64                              `json:"inode"`
	Congested     rdsinfo.Optional[bool]              `json:"congested"`
	PID           rdsinfo.Optional[int32]             `json:"pid"`
	Command       rdsinfo.Optional[string]            `json:"command"`
	RemoteName    rdsinfo.Optional[string]            `json:"remote_name"`
	Processes     rdsinfo.Optional[[]rdsinfo.Process] `json:"processes"`
}

func (j *JSON) socket(h header, k *rdsinfo.Socket) socketRecord {
	r := socketRecord{
		header: h,
		Local:  k.Bound.Addr(), LocalPort: k.Bound.Port(),
		Remote: k.Connected.Addr(), RemotePort: k.Connected.Port(),
		SendBuffer: k.SendBuffer, ReceiveBuffer: k.ReceiveBuffer,
		Inode: k.Inode, PID: k.PID, Command: k.Command,
		RemoteName: j.name(ends{remote: k.Connected}),
	}
	if k.Congestion.Known && k.Congestion.Value != rdsinfo.CongestionUnknown {
		r.Congested = rdsinfo.Optional[bool]{Value: k.Congestion.Value == rdsinfo.Congested, Known: true}
	}
	if j.Processes != nil {
		processes := j.Processes[k.Inode]
		if processes == nil {
			processes = []rdsinfo.Process{}
		}
		r.Processes = rdsinfo.Optional[[]rdsinfo.Process]{Value: processes, Known: true}
	}
	return r
}

var messageKinds = map[rdsinfo.Table]string{
	rdsinfo.SendQueue:       "send_message",
	rdsinfo.RetransmitQueue: "retransmit_message",
	rdsinfo.ReceiveQueue:    "receive_message",
}

type messageRecord struct {
	header
	Local      netip.Addr               `json:"local_address"`
	LocalPort  uint16                   `json:"local_port"`
	Remote     netip.Addr               `json:"remote_address"`
	RemotePort uint16                   `json:"remote_port"`
	TOS        rdsinfo.Optional[uint8]  `json:"tos"`
	Seq        uint64                   `json:"seq"`
	Bytes      uint32                   `json:"bytes"`
	Millis     rdsinfo.Optional[uint64] `json:"time_ms"`
	RemoteName rdsinfo.Optional[string] `json:"remote_name"`
}

type tcpRecord struct {
	header
	Local           netip.Addr              `json:"local_address"`
	LocalPort       uint16                  `json:"local_port"`
	Remote          netip.Addr              `json:"remote_address"`
	RemotePort      uint16                  `json:"remote_port"`
	TOS             rdsinfo.Optional[uint8] `json:"tos"`
	HeaderRemaining uint64                  `json:"header_remaining_bytes"`
	DataRemaining   uint64                  `json:"data_remaining_bytes"`
	LastSentNext    uint32                  `json:"last_sent_next"`
	LastExpectedUna uint32                  `json:"last_expected_una"`
	LastSeenUna     uint32                  `json:"last_seen_una"`

	RemoteName rdsinfo.Optional[string]            `json:"remote_name"`
	TCP        rdsinfo.Optional[rdsinfo.TCPHealth] `json:"tcp"`
}

type ibRecord struct {
	header
	Local        netip.Addr               `json:"local_address"`
	Remote       netip.Addr               `json:"remote_address"`
	TOS          rdsinfo.Optional[uint8]  `json:"tos"`
	SL           rdsinfo.Optional[uint8]  `json:"sl"`
	LocalGID     netip.Addr               `json:"local_gid"`
	RemoteGID    netip.Addr               `json:"remote_gid"`
	MaxSendWR    uint32                   `json:"max_send_wr"`
	MaxRecvWR    uint32                   `json:"max_recv_wr"`
	MaxSendSGE   uint32                   `json:"max_send_sge"`
	RDMAMRMax    uint32                   `json:"rdma_mr_max"`
	RDMAMRSize   uint32                   `json:"rdma_mr_size"`
	CacheAllocs  rdsinfo.Optional[uint32] `json:"cache_allocs"`
	Frag         rdsinfo.Optional[uint32] `json:"frag_bytes"`
	PostCredit   rdsinfo.Optional[uint16] `json:"flow_ctl_post_credit"`
	SendCredit   rdsinfo.Optional[uint16] `json:"flow_ctl_send_credit"`
	QPNum        rdsinfo.Optional[int32]  `json:"qp_num"`
	RemoteQPNum  rdsinfo.Optional[int32]  `json:"remote_qp_num"`
	RecvAllocs   rdsinfo.Optional[uint32] `json:"recv_alloc_ctr"`
	RecvFrees    rdsinfo.Optional[uint32] `json:"recv_free_ctr"`
	SendAllocs   rdsinfo.Optional[uint32] `json:"send_alloc_ctr"`
	SendFrees    rdsinfo.Optional[uint32] `json:"send_free_ctr"`
	SendBytes    rdsinfo.Optional[uint64] `json:"send_bytes"`
	RecvBytes    rdsinfo.Optional[uint64] `json:"recv_bytes"`
	ReadBytes    rdsinfo.Optional[uint64] `json:"rdma_read_bytes"`
	WriteBytes   rdsinfo.Optional[uint64] `json:"rdma_write_bytes"`
	TXPollMillis rdsinfo.Optional[uint64] `json:"tx_poll_ts_ms"`
	RXPollMillis rdsinfo.Optional[uint64] `json:"rx_poll_ts_ms"`
	TXPolls      rdsinfo.Optional[uint64] `json:"tx_poll_count"`
	RXPolls      rdsinfo.Optional[uint64] `json:"rx_poll_count"`
	SendVector   rdsinfo.Optional[int32]  `json:"scq_vector"`
	RecvVector   rdsinfo.Optional[int32]  `json:"rcq_vector"`

	RemoteName rdsinfo.Optional[string]     `json:"remote_name"`
	RDMA       rdsinfo.Optional[rdmaRecord] `json:"rdma"`
}

func ibRecordOf(h header, c *rdsinfo.IBConnection) ibRecord {
	return ibRecord{
		header: h,
		Local:  c.Local, Remote: c.Remote, TOS: c.TOS, SL: c.SL, LocalGID: c.LocalGID, RemoteGID: c.RemoteGID,
		MaxSendWR: c.MaxSendWR, MaxRecvWR: c.MaxRecvWR, MaxSendSGE: c.MaxSendSGE,
		RDMAMRMax: c.RDMAMRMax, RDMAMRSize: c.RDMAMRSize, CacheAllocs: c.CacheAllocs, Frag: c.Frag,
		PostCredit: c.PostCredit, SendCredit: c.SendCredit, QPNum: c.QPNum, RemoteQPNum: c.RemoteQPNum,
		RecvAllocs: c.RecvAllocs, RecvFrees: c.RecvFrees, SendAllocs: c.SendAllocs, SendFrees: c.SendFrees,
		SendBytes: c.SendBytes, RecvBytes: c.RecvBytes, ReadBytes: c.ReadBytes, WriteBytes: c.WriteBytes,
		TXPollMillis: c.TXPollMillis, RXPollMillis: c.RXPollMillis, TXPolls: c.TXPolls, RXPolls: c.RXPolls,
		SendVector: c.SendVector, RecvVector: c.RecvVector,
	}
}

type pathRecord struct {
	header
	Local            netip.Addr                  `json:"local_address"`
	Remote           netip.Addr                  `json:"remote_address"`
	TOS              uint8                       `json:"tos"`
	Transport        string                      `json:"transport"`
	Index            uint32                      `json:"path"`
	Flags            string                      `json:"flags"`
	Connected        rdsinfo.Optional[time.Time] `json:"connected"`
	Attempted        rdsinfo.Optional[time.Time] `json:"attempted"`
	Reset            rdsinfo.Optional[time.Time] `json:"reset"`
	Attempts         uint32                      `json:"attempts"`
	DisconnectReason uint32                      `json:"disconnect_reason"`
	Reason           string                      `json:"disconnect_text"`
}

func when(t time.Time) rdsinfo.Optional[time.Time] {
	return rdsinfo.Optional[time.Time]{Value: t, Known: !t.IsZero()}
}

// The joined fields of a row are null if they were not asked for, or not found.

func (j *Joins) name(e ends) rdsinfo.Optional[string] {
	name, ok := j.Names[e.remote.Addr()]
	return rdsinfo.Optional[string]{Value: name, Known: ok && name != ""}
}

func (j *Joins) tcpConnection(e ends) rdsinfo.Optional[[]rdsinfo.TCPHealth] {
	if j.TCP == nil || e.transport != "tcp" {
		return rdsinfo.Optional[[]rdsinfo.TCPHealth]{}
	}
	all := j.TCP.connection(e)
	if all == nil {
		all = []rdsinfo.TCPHealth{}
	}
	return rdsinfo.Optional[[]rdsinfo.TCPHealth]{Value: all, Known: true}
}

func (j *Joins) tcpSocket(e ends) rdsinfo.Optional[rdsinfo.TCPHealth] {
	if j.TCP == nil {
		return rdsinfo.Optional[rdsinfo.TCPHealth]{}
	}
	h, ok := j.TCP.socket(e)
	return rdsinfo.Optional[rdsinfo.TCPHealth]{Value: h, Known: ok}
}

func (j *Joins) route(e ends) rdsinfo.Optional[rdsinfo.Peer] {
	if j.Routes == nil {
		return rdsinfo.Optional[rdsinfo.Peer]{}
	}
	p, ok := j.Routes.find(e)
	return rdsinfo.Optional[rdsinfo.Peer]{Value: p, Known: ok}
}

func (j *Joins) rdma(e ends) rdsinfo.Optional[rdmaRecord] {
	if j.RDMA == nil {
		return rdsinfo.Optional[rdmaRecord]{}
	}
	p, g, ok := j.RDMA.find(e)
	var pairs []pairRecord
	for _, c := range j.RDMA.queuePairs(e) {
		pairs = append(pairs, pairRecord{c.QueuePair, c.RemoteQueuePair, c.QueuePairState, c.State})
	}
	return rdsinfo.Optional[rdmaRecord]{Value: rdmaRecord{
		p.Device, p.Port, p.State, p.LinkLayer, g.Index, g.GID, g.Type, g.NetDev, p.Driver, p.Rate, pairs,
	}, Known: ok}
}
