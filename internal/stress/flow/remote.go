package flow

import "github.com/rdskit/rdskit/internal/stress/wire"

// An RDMA is what the operations of a run have in common. Flows share it.
type RDMA struct {
	// Size is the bytes of an element, of which each operation has Vector.
	Size, Vector int
	Mode         wire.RDMAMode
	// Verify fills memory with a pattern before it is read and checks it where it went.
	Verify bool
	// Peer says that the other side is rdskit, too. C fills and checks the first element only.
	Peer bool
}

// Bytes is how much one operation moves.
func (r *RDMA) Bytes() int { return r.Size * r.Vector }

// Fill fills memory with a pattern, if this is to be verified.
func (r *RDMA) Fill(b []byte, pattern uint64) {
	if r.Verify {
		wire.Filling(r.Peer).Fill(b, pattern)
	}
}

// Check returns where memory that the peer filled is not as it should be, in bytes; -1 if nowhere.
func (r *RDMA) Check(b []byte, pattern uint64) int {
	switch {
	case !r.Verify:
		return -1
	case r.Peer:
		return wire.Counted.Check(b, pattern)
	}
	const word = 8
	return wire.Repeated.Check(b[:r.Size/word*word], pattern)
}

// A Remote keeps account of the operations of a flow: those that the requests of this side ask for, on its own
// memory, and those that it does for the peer.
type Remote struct {
	rdma  *RDMA
	next  wire.RDMAOp
	tag   uint32
	asked []wire.RDMA // by the index of the request
	jobs  []Job       // by the index of the peer's request
}

// A Job is what the peer's last request of an index asked for, and the operation of that index that is under way: the
// request for the next can arrive before the kernel reports the end of the last.
type Job struct {
	Want, Doing wire.RDMA
	// Started is when Doing was, in nanoseconds of any clock.
	Started  int64
	UnderWay bool
	// Ahead says that Doing began before the answer was sent, and Done that it has ended and
	// the answer may go.
	Ahead, Done bool
}

// Begin notes that the operation that is wanted was started, ahead of the answer or along with it.
func (j *Job) Begin(at int64, ahead bool) {
	j.Doing, j.Started, j.UnderWay, j.Ahead = j.Want, at, true, ahead
}

// End notes that the operation under way has ended.
func (j *Job) End() { j.UnderWay, j.Done = false, j.Ahead }

// NewRemote makes that of flow number n of depth. The tag makes patterns differ from those of other flows.
func NewRemote(rdma *RDMA, n, depth int, tag uint32) *Remote {
	m := &Remote{rdma: rdma, next: wire.RDMARead, tag: tag, asked: make([]wire.RDMA, depth), jobs: make([]Job, depth)}
	if n%2 == 1 {
		m.next = wire.RDMAWrite
	}
	return m
}

// Ask is what the request with a sequence number asks for: nothing if it is among the first, as in C. Nothing changes
// until Asked.
func (m *Remote) Ask(seq uint32) wire.RDMA {
	if seq < wire.FirstRDMA {
		return wire.RDMA{}
	}
	r := wire.RDMA{
		Op: m.next, Pattern: uint64(seq)<<32 | uint64(m.tag),
		Size: uint32(m.rdma.Size), Vector: uint32(m.rdma.Vector),
	}
	switch m.rdma.Mode {
	case wire.RDMAReadOnly:
		r.Op = wire.RDMARead
	case wire.RDMAWriteOnly:
		r.Op = wire.RDMAWrite
	}
	return r
}

// Asked notes that the request was sent, with the key of the memory in r.
func (m *Remote) Asked(index uint16, r *wire.RDMA) {
	m.asked[index] = *r
	if r.Op == m.next {
		m.next = wire.RDMARead + wire.RDMAWrite - m.next
	}
}

// Answered returns what the request of an index had asked for, and whether the answer is to that. The
// request must be one that was waiting for its answer.
func (m *Remote) Answered(index uint16, answer *wire.RDMA) (asked wire.RDMA, ok bool) {
	asked, m.asked[index] = m.asked[index], wire.RDMA{}
	// C says no operation, but the key, when it did a read before the answer.
	ok = asked.Key == answer.Key && asked.Pattern == answer.Pattern &&
		(asked.Op == answer.Op || answer.Op == wire.NoRDMA && asked.Op == wire.RDMARead)
	return asked, ok
}

// Take takes what a request of the peer asks for. key is what came with the message, which counts more than
// what is written there, and 0 if nothing came. It reports whether that can be done.
func (m *Remote) Take(index uint16, r wire.RDMA, key uint64) bool {
	if key != 0 {
		r.Key = key
	}
	job := &m.jobs[index]
	job.Want, job.Done = wire.RDMA{}, false
	if r == (wire.RDMA{}) {
		return true
	}
	if r.Key == 0 || r.Op != wire.RDMARead && r.Op != wire.RDMAWrite ||
		int64(r.Size) != int64(m.rdma.Size) || int64(r.Vector) != int64(m.rdma.Vector) {
		return false
	}
	job.Want = r
	return true
}

// Job is that of an index.
func (m *Remote) Job(index uint16) *Job { return &m.jobs[index] }

// UnderWay is how many jobs have not ended.
func (m *Remote) UnderWay() int {
	n := 0
	for i := range m.jobs {
		if m.jobs[i].UnderWay {
			n++
		}
	}
	return n
}
