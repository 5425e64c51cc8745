package wire

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// jsonOptions is Options as releases 2.3.9 and later exchange them besides a long form, which lacks
// the last three. C prints unsigned numbers as signed ones of 32 bits, and reads none that is larger.
type jsonOptions struct {
	Version        string `json:"version"`
	Depth          int32  `json:"req_depth"`
	ReqSize        int32  `json:"req_size"`
	AckSize        int32  `json:"ack_size"`
	RDMASize       int32  `json:"rdma_size"`
	SendAddr       int32  `json:"send_addr"`
	RecvAddr       int32  `json:"receive_addr"`
	Port           uint16 `json:"starting_port"`
	Tasks          uint16 `json:"nr_tasks"`
	Time           int32  `json:"run_time"`
	SummaryOnly    uint8  `json:"summary_only"`
	RTPrio         uint8  `json:"rtprio"`
	Trace          uint8  `json:"tracing"`
	Verify         uint8  `json:"verify"`
	ShowParams     uint8  `json:"show_params"`
	ShowPerfdata   uint8  `json:"show_perfdata"`
	CongMonitor    uint8  `json:"use_cong_monitor"`
	RDMAUseOnce    uint8  `json:"rdma_use_once"`
	RDMAUseGetMR   uint8  `json:"rdma_use_get_mr"`
	RDMAUseFence   uint8  `json:"rdma_use_fence"`
	RDMACacheMRs   uint8  `json:"rdma_cache_mrs"`
	RDMAKeyOMeter  uint8  `json:"rdma_key_o_meter"`
	Sender         uint8  `json:"suppress_warnings"`
	Simplex        uint8  `json:"simplex"`
	RDMAMode       uint8  `json:"rw_mode"`
	RDMAVector     int32  `json:"rdma_vector"`
	RDMAAlignment  int32  `json:"rdma_alignment"`
	ConnectRetries int32  `json:"connect_retries"`
	TOS            uint8  `json:"tos"`
	Async          uint8  `json:"async"`
	SendAddr6      string `json:"send_addr6"`
	RecvAddr6      string `json:"receive_addr6"`
	Scope          int32  `json:"addr_scope_id "` // with the space
	INQ            uint8  `json:"disable_inq"`    // 1 leaves it enabled
	Bursty         uint8  `json:"always_bursty"`
	SyncBursty     uint8  `json:"sync_always_bursty"`
}

func newJSONOptions(o *Options) *jsonOptions {
	be32 := func(a netip.Addr) int32 {
		b := as4(a)
		return int32(b[0])<<24 | int32(b[1])<<16 | int32(b[2])<<8 | int32(b[3])
	}
	six := func(a netip.Addr) string {
		if a = a.WithZone(""); a.Is6() {
			return a.String()
		}
		return netip.IPv6Unspecified().String()
	}
	return &jsonOptions{
		Version: o.Version, Depth: int32(o.Depth), ReqSize: int32(o.ReqSize), AckSize: int32(o.AckSize), RDMASize: int32(o.RDMASize),
		SendAddr: be32(o.SendAddr), RecvAddr: be32(o.RecvAddr), Port: o.Port, Tasks: o.Tasks, Time: int32(o.Time),
		SummaryOnly: boolByte(o.SummaryOnly), RTPrio: boolByte(o.RTPrio), Trace: boolByte(o.Trace), Verify: boolByte(o.Verify),
		ShowParams: boolByte(o.ShowParams), ShowPerfdata: boolByte(o.ShowPerfdata), CongMonitor: boolByte(o.CongMonitor),
		RDMAUseOnce: boolByte(o.RDMAUseOnce), RDMAUseGetMR: boolByte(o.RDMAUseGetMR), RDMAUseFence: boolByte(o.RDMAUseFence),
		RDMACacheMRs: boolByte(o.RDMACacheMRs), RDMAKeyOMeter: boolByte(o.RDMAKeyOMeter), Sender: uint8(o.Sender),
		Simplex: boolByte(o.Simplex), RDMAMode: uint8(o.RDMAMode), RDMAVector: int32(o.RDMAVector), RDMAAlignment: int32(o.RDMAAlignment),
		ConnectRetries: int32(o.ConnectRetries), TOS: o.TOS, Async: boolByte(o.Async), SendAddr6: six(o.SendAddr), RecvAddr6: six(o.RecvAddr),
		Scope: int32(o.Scope), INQ: boolByte(!o.NoINQ), Bursty: boolByte(o.Bursty), SyncBursty: boolByte(o.SyncBursty),
	}
}

// MarshalJSON returns o as C reads it.
func (o *Options) MarshalJSON() ([]byte, error) { return json.Marshal(newJSONOptions(o)) }

// UnmarshalJSON takes what is there from the JSON of a peer, but for the addresses: C cuts long ones off
// here. As with Decode, bounds are up to the caller.
func (o *Options) UnmarshalJSON(b []byte) error {
	j := newJSONOptions(o)
	if err := json.Unmarshal(b, j); err != nil {
		return fmt.Errorf("options as JSON: %w", err)
	}
	o.Version = j.Version
	o.Depth, o.ReqSize, o.AckSize, o.RDMASize = uint32(j.Depth), uint32(j.ReqSize), uint32(j.AckSize), uint32(j.RDMASize)
	o.Port, o.Tasks, o.Time = j.Port, j.Tasks, uint32(j.Time)
	for i, v := range []uint8{
		j.SummaryOnly, j.RTPrio, j.Trace, j.Verify, j.ShowParams, j.ShowPerfdata,
		j.CongMonitor, j.RDMAUseOnce, j.RDMAUseGetMR, j.RDMAUseFence, j.RDMACacheMRs, j.RDMAKeyOMeter,
	} {
		*o.flags()[i] = v != 0
	}
	o.Sender, o.Simplex, o.RDMAMode = Sender(j.Sender), j.Simplex != 0, RDMAMode(j.RDMAMode)
	o.RDMAVector, o.RDMAAlignment, o.ConnectRetries = uint32(j.RDMAVector), uint32(j.RDMAAlignment), uint32(j.ConnectRetries)
	o.TOS, o.Async = j.TOS, j.Async != 0
	o.NoINQ, o.Bursty, o.SyncBursty = j.INQ == 0, j.Bursty != 0, j.SyncBursty != 0
	return nil
}
