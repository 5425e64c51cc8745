package main

import (
	"fmt"
	"time"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/latency"
	"github.com/rdskit/rdskit/internal/stress"
)

// A jsonWriter prints the events of a run as JSON, one object a line.
type jsonWriter struct {
	out *cli.JSONLines
}

func newJSONWriter(o *options) *jsonWriter { return &jsonWriter{cli.NewJSONLines(o.stdout)} }

type jsonHead struct {
	Type string    `json:"type"`
	Time time.Time `json:"time"`
	Side string    `json:"side"` // active or passive
}

type jsonStart struct {
	jsonHead
	Local      string    `json:"local"`
	Peer       string    `json:"peer"`
	Transport  string    `json:"transport"`
	Port       uint16    `json:"port"`
	Tasks      int       `json:"tasks"`
	Depth      int       `json:"depth"`
	ReqSize    int       `json:"request_bytes"`
	MinReqSize int       `json:"request_bytes_min"`
	AckSize    int       `json:"ack_bytes"`
	TOS        uint8     `json:"tos"`
	Verify     bool      `json:"verify"`
	CRC        bool      `json:"crc"`
	Rate       float64   `json:"rate_per_s"` // 0 is as fast as it goes
	RDSKitPeer bool      `json:"rdskit_peer"`
	Header     int       `json:"header_bytes"`
	RDMA       *jsonRDMA `json:"rdma"` // null without
}

type jsonRDMA struct {
	Size      int    `json:"element_bytes"`
	Vector    int    `json:"elements"`
	Mode      string `json:"mode"`
	UseOnce   bool   `json:"use_once"`
	GetMR     bool   `json:"get_mr"`
	Fence     bool   `json:"fence"`
	Cache     bool   `json:"cache_mrs"`
	Alignment int    `json:"alignment_bytes"`
}

func newJSONRDMA(r *stress.RDMA) *jsonRDMA {
	if r.Size == 0 {
		return nil
	}
	return &jsonRDMA{r.Size, r.Vector, r.Mode.String(), r.UseOnce, r.GetMR, !r.NoFence, r.Cache, r.Alignment}
}

// jsonLatency is nanoseconds; null if there was nothing to measure.
type jsonLatency struct {
	Count uint64 `json:"count"`
	Min   int64  `json:"min_ns"`
	Mean  int64  `json:"mean_ns"`
	P50   int64  `json:"p50_ns"`
	P90   int64  `json:"p90_ns"`
	P99   int64  `json:"p99_ns"`
	P999  int64  `json:"p99_9_ns"`
	P9999 int64  `json:"p99_99_ns"`
	Max   int64  `json:"max_ns"`
}

func newJSONLatency(h *latency.Histogram) *jsonLatency {
	s, ok := h.Summary()
	if !ok {
		return nil
	}
	return &jsonLatency{
		Count: s.Count, Min: int64(s.Min), Mean: int64(s.Mean), P50: int64(s.P50), P90: int64(h.Quantile(0.9)),
		P99: int64(s.P99), P999: int64(h.Quantile(0.999)), P9999: int64(h.Quantile(0.9999)), Max: int64(s.Max),
	}
}

type jsonMeasure struct {
	Elapsed          int64                   `json:"elapsed_ns"` // of the interval, or of all of them
	RequestsSent     uint64                  `json:"requests_sent"`
	RequestsReceived uint64                  `json:"requests_received"`
	AcksSent         uint64                  `json:"acks_sent"`
	AcksReceived     uint64                  `json:"acks_received"`
	BytesSent        uint64                  `json:"bytes_sent"`
	BytesReceived    uint64                  `json:"bytes_received"`
	RDMAIn           uint64                  `json:"rdma_in_bytes"`
	RDMAOut          uint64                  `json:"rdma_out_bytes"`
	RDMAReads        uint64                  `json:"rdma_reads"` // done by this side
	RDMAWrites       uint64                  `json:"rdma_writes"`
	RDMALatency      map[string]*jsonLatency `json:"rdma_latency,omitempty"`
	RDMAKeys         *jsonKeys               `json:"rdma_keys,omitempty"`
	SendTime         *int64                  `json:"send_mean_ns"`
	RTT              *jsonLatency            `json:"rtt"`
	ReceivePath      map[string]*jsonLatency `json:"receive_path,omitempty"`
	Congested        uint64                  `json:"refused_congested"`
	Full             uint64                  `json:"refused_full"`
	Waits            uint64                  `json:"waits"`
	CPUBusy          *float64                `json:"cpu_busy_percent"`
	UserTime         int64                   `json:"process_user_ns"`
	SystemTime       int64                   `json:"process_system_ns"`
	Switches         uint64                  `json:"context_switches"`
	Allocations      uint64                  `json:"allocations"`
	GCPause          int64                   `json:"gc_pause_ns"`
}

func newJSONMeasure(s *stress.Sample) jsonMeasure {
	m := jsonMeasure{
		Elapsed:      int64(s.Elapsed),
		RequestsSent: s.RequestsSent, RequestsReceived: s.RequestsReceived, AcksSent: s.AcksSent, AcksReceived: s.AcksReceived,
		BytesSent: s.RequestBytesSent + s.AckBytesSent, BytesReceived: s.RequestBytesReceived + s.AckBytesReceived,
		RDMAIn: s.RDMAInBytes, RDMAOut: s.RDMAOutBytes, RDMAReads: s.RDMAReads, RDMAWrites: s.RDMAWrites, RTT: newJSONLatency(&s.Latencies.RTT),
		Congested: s.Congested, Full: s.Full, Waits: s.Waits,
		UserTime: int64(s.Usage.User), SystemTime: int64(s.Usage.System),
		Switches:    s.Usage.VoluntarySw + s.Usage.InvoluntarySw,
		Allocations: s.Usage.Allocations, GCPause: int64(s.Usage.CollectionPause),
	}
	if s.RequestsSent > 0 {
		d := int64(s.MeanSendTime())
		m.SendTime = &d
	}
	if s.Processors != nil {
		busy := s.Processors.Busy()
		m.CPUBusy = &busy
	}
	for i, name := range rdmaLatencies {
		if l := newJSONLatency(&s.Latencies.RDMA[i]); l != nil {
			if m.RDMALatency == nil {
				m.RDMALatency = map[string]*jsonLatency{}
			}
			m.RDMALatency[name.name] = l
		}
	}
	if k := s.Keys; k != nil {
		m.RDMAKeys = &jsonKeys{k.Issued, k.Again, int64(k.Min), int64(k.Mean)}
	}
	for i, p := range stress.RXPath {
		if l := newJSONLatency(&s.Latencies.Receive[i]); l != nil {
			if m.ReceivePath == nil {
				m.ReceivePath = map[string]*jsonLatency{}
			}
			m.ReceivePath[p.String()] = l
		}
	}
	return m
}

// jsonKeys are the keys of an interval: how many were given out, and how soon those that were seen before came again.
type jsonKeys struct {
	Issued int   `json:"issued"`
	Again  int   `json:"reissued"`
	Min    int64 `json:"min_distance_ns"`
	Mean   int64 `json:"mean_distance_ns"`
}

type jsonInterval struct {
	jsonHead
	Number int   `json:"number"`
	Since  int64 `json:"since_start_ns"`
	jsonMeasure
}

type jsonFinding struct {
	jsonHead
	Task   int    `json:"task"`
	From   string `json:"from"`
	Seq    uint32 `json:"sequence"`
	Index  uint16 `json:"index"`
	Bytes  int    `json:"bytes"`
	Fault  string `json:"fault"`
	Detail string `json:"detail,omitempty"`
}

type jsonFaults struct {
	Sent        uint64 `json:"messages_sent"`
	Messages    uint64 `json:"messages_received"`
	Lost        uint64 `json:"lost"`
	Undelivered uint64 `json:"undelivered"` // canceled, or not waited for
	Duplicated  uint64 `json:"duplicated"`
	Reordered   uint64 `json:"reordered"`
	Damaged     uint64 `json:"damaged"`
	Foreign     uint64 `json:"foreign"`
	GivenUp     uint64 `json:"given_up"` // those that were answered late among them
	Late        uint64 `json:"late"`
	RDMAFailed  uint64 `json:"rdma_failed"`
	RDMADamaged uint64 `json:"rdma_damaged"`
}

func newJSONFaults(s *stress.Stats, lost, undelivered uint64) *jsonFaults {
	return &jsonFaults{s.RequestsSent + s.AcksSent, s.RequestsReceived + s.AcksReceived, lost, undelivered, s.Duplicated, s.Reordered, s.Damaged, s.Foreign, s.GivenUp, s.Late, s.RDMAFailed, s.RDMADamaged}
}

type jsonCanceled struct {
	jsonHead
	Task int    `json:"task"`
	To   string `json:"to"`
	Took int64  `json:"took_ns"`
}

type jsonOutstanding struct {
	Task     int    `json:"task"`
	To       string `json:"to"`
	Requests int    `json:"requests"`
}

type jsonEnd struct {
	jsonHead
	OK bool `json:"ok"`
	jsonMeasure
	Faults      *jsonFaults       `json:"faults"`
	PeerFaults  *jsonFaults       `json:"peer_faults"` // null if the peer does not tell
	Canceled    int               `json:"canceled"`    // messages of this side, by --cancel-sent-to
	Unanswered  int               `json:"unanswered"`
	Outstanding []jsonOutstanding `json:"outstanding"`
	Gap         int64             `json:"longest_gap_ns"`
	Recovery    int64             `json:"longest_recovery_ns"`
	PeerVersion *string           `json:"peer_version"`
	Error       *string           `json:"error"`
}

// event prints one. Whether that succeeded is known to the output.
func (w *jsonWriter) event(e stress.Event) {
	head := jsonHead{Time: e.Time.UTC(), Side: "passive"}
	if e.Active {
		head.Side = "active"
	}
	switch e.Kind {
	case stress.Started:
		head.Type = "start"
		c := e.Config
		_ = w.out.Write(jsonStart{
			jsonHead: head, Local: c.Local.String(), Peer: c.Peer.String(), Transport: e.Transport.String(), Port: c.Port,
			Tasks: c.Tasks, Depth: c.Shape.Depth, ReqSize: c.Shape.ReqSize, MinReqSize: c.MinReqSize, AckSize: c.Shape.AckSize,
			TOS: c.TOS, Verify: c.Shape.Verify, CRC: c.Shape.CRC, Rate: c.Rate, RDSKitPeer: c.Shape.Peer, Header: int(c.Shape.Layout),
			RDMA: newJSONRDMA(&c.RDMA),
		})
	case stress.Interval:
		head.Type = "interval"
		_ = w.out.Write(jsonInterval{head, e.Sample.Number, int64(e.Sample.Total), newJSONMeasure(e.Sample)})
	case stress.Found:
		head.Type = "finding"
		f := e.Finding
		_ = w.out.Write(jsonFinding{head, f.Task, f.From.String(), f.Seq, f.Index, f.Length, f.Fault.String(), f.Detail})
	case stress.Canceled:
		head.Type = "canceled"
		c := e.Canceled
		_ = w.out.Write(jsonCanceled{head, c.Task, c.To.String(), int64(c.Took)})
	case stress.End:
		head.Type = "end"
		_ = w.out.Write(newJSONEnd(head, e.Summary))
	}
}

func newJSONEnd(head jsonHead, s *stress.Summary) jsonEnd {
	end := jsonEnd{
		jsonHead: head, OK: !s.Failed(), jsonMeasure: newJSONMeasure(&s.Measured),
		Faults: newJSONFaults(&s.Whole, s.Lost, s.Undelivered), Canceled: s.Canceled, Unanswered: s.Unanswered, Outstanding: []jsonOutstanding{},
		Gap: int64(s.Gap), Recovery: int64(s.Recovery),
	}
	if s.Peer != nil {
		end.PeerFaults = newJSONFaults(&s.Peer.Stats, s.Peer.Lost, s.Peer.Undelivered)
	}
	if s.PeerVersion != "" {
		end.PeerVersion = &s.PeerVersion
	}
	if s.Err != nil {
		text := s.Err.Error()
		end.Error = &text
		for _, o := range s.Outstanding {
			end.Outstanding = append(end.Outstanding, jsonOutstanding{o.Task, o.To.String(), o.Requests})
		}
	}
	return end
}

// A csvWriter prints a line of comma-separated values for each interval.
type csvWriter struct{ out *cli.Output }

func (w *csvWriter) event(e stress.Event) {
	switch e.Kind {
	case stress.Started:
		fmt.Fprintln(w.out, "time,elapsed_ns,requests_sent,requests_received,acks_sent,acks_received,bytes_sent,bytes_received,rdma_in_bytes,rdma_out_bytes,send_mean_ns,rtt_p50_ns,rtt_p90_ns,rtt_p99_ns,rtt_p99_9_ns,rtt_p99_99_ns,rtt_max_ns"+
			",rdma_reads,rdma_writes,rdma_read_p50_ns,rdma_read_p90_ns,rdma_read_p99_ns,rdma_read_p99_9_ns,rdma_read_p99_99_ns,rdma_read_max_ns"+
			",rdma_write_p50_ns,rdma_write_p90_ns,rdma_write_p99_ns,rdma_write_p99_9_ns,rdma_write_p99_99_ns,rdma_write_max_ns")
	case stress.Interval:
		s := e.Sample
		fmt.Fprintf(w.out, "%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d%s,%d,%d%s%s\n", e.Time.UTC().Format(time.RFC3339Nano), s.Elapsed,
			s.RequestsSent, s.RequestsReceived, s.AcksSent, s.AcksReceived,
			s.RequestBytesSent+s.AckBytesSent, s.RequestBytesReceived+s.AckBytesReceived, s.RDMAInBytes, s.RDMAOutBytes, s.MeanSendTime(),
			csvQuantiles(&s.Latencies.RTT), s.RDMAReads, s.RDMAWrites,
			csvQuantiles(&s.Latencies.RDMA[stress.RDMARead]), csvQuantiles(&s.Latencies.RDMA[stress.RDMAWrite]))
	}
}

// csvQuantiles are those that are reported, each behind a comma.
func csvQuantiles(h *latency.Histogram) (text string) {
	for _, q := range quantiles {
		text += fmt.Sprintf(",%d", h.Quantile(q.q))
	}
	return text
}
