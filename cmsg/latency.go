package cmsg

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rdskit/rdskit/internal/abi"
)

// RXPoint is a stretch of the way of a message from the wire to the program.
type RXPoint uint8

const (
	RXHeaderToStart RXPoint = abi.RDS_MSG_RX_HDR_TO_DGRAM_START // header arrived until the datagram starts
	RXReassembly    RXPoint = abi.RDS_MSG_RX_DGRAM_REASSEMBLE   // datagram starts until it is queued on the socket
	RXDelivery      RXPoint = abi.RDS_MSG_RX_DGRAM_DELIVERED    // queued until recvmsg takes it
)

// String returns "header to start", "reassembly", "delivery" or "point N".
func (p RXPoint) String() string {
	switch p {
	case RXHeaderToStart:
		return "header to start"
	case RXReassembly:
		return "reassembly"
	case RXDelivery:
		return "delivery"
	}
	return "point " + strconv.Itoa(int(p))
}

// RXTrace is how long one stretch took.
type RXTrace struct {
	Point   RXPoint
	Elapsed time.Duration // by the kernel's local_clock
}

// RXPathLatency is struct rds_cmsg_rx_trace: what the socket asked for with
// SO_RDS_MSG_RXPATH_LATENCY, in that order. Transports that do not stamp a
// point, the loop among them, give differences that mean nothing.
type RXPathLatency struct {
	N      int // how many of Traces count
	Traces [abi.RDS_MSG_RX_DGRAM_TRACE_MAX]RXTrace
}

// AppendRXPathLatency appends an RDS_CMSG_RXPATH_LATENCY, which only the
// kernel sends.
func (e Encoder) AppendRXPathLatency(b []byte, l RXPathLatency) ([]byte, error) {
	if l.N < 0 || l.N > len(l.Traces) {
		return b, fmt.Errorf("cmsg: receive-path latency of %d points: 0 to %d fit", l.N, len(l.Traces))
	}
	clear(l.Traces[l.N:])
	start := e.layout.Uint64Align()
	b = e.begin(b, abi.RDS_CMSG_RXPATH_LATENCY, start+abi.SizeofRxTraces)
	b = append(b, uint8(l.N))
	for _, t := range l.Traces {
		b = append(b, uint8(t.Point))
	}
	b = append(b, make([]byte, start-1-len(l.Traces))...)
	for _, t := range l.Traces {
		b = e.layout.AppendUint64(b, uint64(t.Elapsed))
	}
	return b, nil
}

// RXPathLatency decodes an RDS_CMSG_RXPATH_LATENCY.
func (m Message) RXPathLatency() (RXPathLatency, error) {
	start := m.layout.Uint64Align()
	b, err := m.data(KindRXPathLatency, start+abi.SizeofRxTraces)
	if err != nil {
		return RXPathLatency{}, err
	}
	if len(b) >= 8+abi.SizeofRxTraces {
		start = 8 // also a 32-bit x86 program on a 64-bit kernel
	}
	n := int(b[0])
	if n > abi.RDS_MSG_RX_DGRAM_TRACE_MAX {
		return RXPathLatency{}, m.errorf(ErrMalformed, "%d points, at most %d fit", n, abi.RDS_MSG_RX_DGRAM_TRACE_MAX)
	}
	l := RXPathLatency{N: n}
	for i := range n {
		l.Traces[i] = RXTrace{
			Point:   RXPoint(b[1+i]),
			Elapsed: time.Duration(m.layout.Uint64(b[start+8*i:])),
		}
	}
	return l, nil
}
