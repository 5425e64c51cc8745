package stress

import (
	"math/bits"
	"time"

	"github.com/rdskit/rdskit/internal/latency"
	"github.com/rdskit/rdskit/internal/stress/flow"
)

// Buckets is how many powers of two Stats.RTTs has, in microseconds.
const Buckets = 32

// Stats are what a worker, or a whole run, measured during some time.
type Stats struct {
	flow.Account

	// SendTime is the sum of the time in sendmsg for requests.
	SendTime time.Duration
	// RTTSum is the sum of all round trips, of requests to their answers.
	RTTSum time.Duration
	// RTTs counts them by floor(log2) of microseconds; under 1 us counts as 1, and the last
	// has all that are longer.
	RTTs [Buckets]uint64

	// RDMAInBytes and RDMAOutBytes moved into this host and out of it, by either side's operations.
	RDMAInBytes, RDMAOutBytes uint64
	// RDMAReads and RDMAWrites are the operations of this side that ended well, RDMAFailed the others, and
	// RDMADamaged those after which memory of this side was not as it should have been.
	RDMAReads, RDMAWrites, RDMAFailed, RDMADamaged uint64

	// Congested and Full count refusals by a congested destination and a full send buffer.
	Congested, Full uint64
	// Waits counts how often a worker had nothing to do.
	Waits uint64
}

func (s *Stats) recordRTT(d time.Duration) {
	s.RTTSum += d
	us := max(uint64(max(d, 0)/time.Microsecond), 1)
	s.RTTs[min(bits.Len64(us)-1, Buckets-1)]++
}

// Add adds b to s.
func (s *Stats) Add(b *Stats) {
	s.Account.Add(&b.Account)
	s.SendTime += b.SendTime
	s.RTTSum += b.RTTSum
	for i, n := range b.RTTs {
		s.RTTs[i] += n
	}
	s.RDMAInBytes += b.RDMAInBytes
	s.RDMAOutBytes += b.RDMAOutBytes
	s.RDMAReads += b.RDMAReads
	s.RDMAWrites += b.RDMAWrites
	s.RDMAFailed += b.RDMAFailed
	s.RDMADamaged += b.RDMADamaged
	s.Congested += b.Congested
	s.Full += b.Full
	s.Waits += b.Waits
}

// Faults is how much was not as it should be, lost messages apart.
func (s *Stats) Faults() uint64 { return s.Account.Faults() + s.RDMAFailed + s.RDMADamaged }

// Bytes is the bytes of all messages, sent and received.
func (s *Stats) Bytes() uint64 {
	return s.RequestBytesSent + s.RequestBytesReceived + s.AckBytesSent + s.AckBytesReceived
}

// MeanSendTime and MeanRTT are 0 if there was nothing to measure.
func (s *Stats) MeanSendTime() time.Duration { return mean(s.SendTime, s.RequestsSent) }

// MeanRTT is the mean round trip.
func (s *Stats) MeanRTT() time.Duration { return mean(s.RTTSum, s.AcksReceived-s.Late) }

func mean(sum time.Duration, n uint64) time.Duration {
	if n == 0 {
		return 0
	}
	return sum / time.Duration(n)
}

// latencyDigits are the significant digits of percentiles: samples of many tasks are merged once a second, by a
// thread that has to get by beside theirs.
const latencyDigits = 2

func newLatencies() *Latencies {
	l := &Latencies{RTT: latency.Histogram{Digits: latencyDigits}}
	for i := range l.Receive {
		l.Receive[i].Digits = latencyDigits
	}
	for i := range l.RDMA {
		l.RDMA[i].Digits = latencyDigits
	}
	return l
}

// Latencies are how long things took, percentiles to two significant digits.
type Latencies struct {
	RTT latency.Histogram
	// Receive is where received messages spent their time in the kernel, by the points of RXPath.
	Receive [3]latency.Histogram
	// RDMA is, for requests that the peer answered by reading or writing, how long it took until the data was
	// there and verified; and how long this side's operations took until the kernel reported their end. The indexes follow.
	RDMA [3]latency.Histogram
}

// Indexes of Latencies.RDMA.
const (
	RDMARead = iota
	RDMAWrite
	RDMAOperation
)

// merge takes over what o has.
func (l *Latencies) merge(o *Latencies) {
	l.RTT.Merge(&o.RTT)
	for i := range l.Receive {
		l.Receive[i].Merge(&o.Receive[i])
	}
	for i := range l.RDMA {
		l.RDMA[i].Merge(&o.RDMA[i])
	}
	o.reset()
}

func (l *Latencies) reset() {
	l.RTT.Reset()
	for i := range l.Receive {
		l.Receive[i].Reset()
	}
	for i := range l.RDMA {
		l.RDMA[i].Reset()
	}
}
