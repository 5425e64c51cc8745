package stress

import (
	"fmt"
	"math"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/strerror"
	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/transport"
	"github.com/rdskit/rdskit/internal/stress/wire"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

// RDMA is what the requests of a run ask for besides an answer. The zero RDMA is nothing.
type RDMA struct {
	// Size is the bytes of an element, 0 for no RDMA, and Vector how many there are in an operation.
	Size, Vector int
	Mode         wire.RDMAMode
	// UseOnce has the kernel end a registration with its first use.
	UseOnce bool
	// GetMR registers memory before the message, and not along with it. Mainline cannot.
	GetMR bool
	// NoFence leaves it to this side to answer when a read is over; otherwise the device does.
	NoFence bool
	// Cache keeps registrations for further requests.
	Cache bool
	// Alignment is how far into a page memory begins, in bytes.
	Alignment int
	// KeyMeter tells how soon keys come again.
	KeyMeter bool
}

// Limits of RDMA.
const (
	MaxOperation = rdma.MaxOperation
	MaxVector    = transport.MaxVector
	MaxAlignment = 4096
)

// rdmaOf is what the options say, whatever that may be.
func rdmaOf(o *wire.Options) RDMA {
	return RDMA{
		Size: int(min(o.RDMASize, math.MaxInt32)), Vector: int(min(o.RDMAVector, math.MaxInt32)), Mode: o.RDMAMode,
		UseOnce: o.RDMAUseOnce, GetMR: o.RDMAUseGetMR, NoFence: !o.RDMAUseFence, Cache: o.RDMACacheMRs,
		Alignment: int(min(o.RDMAAlignment, math.MaxInt32)), KeyMeter: o.RDMAKeyOMeter,
	}
}

// put is the reverse of rdmaOf.
func (r *RDMA) put(o *wire.Options) {
	o.RDMASize, o.RDMAVector, o.RDMAMode = uint32(r.Size), uint32(r.Vector), r.Mode
	o.RDMAUseOnce, o.RDMAUseGetMR, o.RDMAUseFence, o.RDMACacheMRs = r.UseOnce, r.GetMR, !r.NoFence, r.Cache
	o.RDMAAlignment, o.RDMAKeyOMeter = uint32(r.Alignment), r.KeyMeter
}

// memory is what the RDMA of a run needs of this process, in bytes.
func (r *RDMA) memory(tasks, depth int) int64 {
	const account = 160
	return int64(tasks) * int64(tasks) * int64(depth) * (2*int64(r.Size)*int64(r.Vector) + account)
}

// check refuses what the kernel cannot do.
func (r *RDMA) check() error {
	switch {
	case r.Size == 0:
		return nil
	case r.Vector < 1 || r.Vector > MaxVector:
		return &LimitError{"a number of RDMA buffers (-I) of", uint64(r.Vector), MaxVector, "and 1 at least"}
	case r.Size > MaxOperation/r.Vector:
		return &LimitError{"an RDMA operation (-D times -I) of", uint64(r.Size) * uint64(r.Vector), MaxOperation, "the kernel moves no more bytes at once"}
	case r.Mode > wire.RDMAWriteOnly:
		return &LimitError{"an RDMA mode (-M) of", uint64(r.Mode), uint64(wire.RDMAWriteOnly), ""}
	case r.Alignment >= MaxAlignment:
		return &LimitError{"an RDMA alignment of", uint64(r.Alignment), MaxAlignment - 1, "bytes into a page"}
	case r.Cache && r.UseOnce:
		return fmt.Errorf("registrations cannot be kept (--rdma-cache-mrs) and end with their first use (--rdma-use-once)")
	}
	return nil
}

// A NoRDMAError is that an address has a transport without RDMA.
type NoRDMAError struct {
	Local     netip.Addr
	Transport rdssock.Transport
}

// Error begins as C does, whose check frees all unused regions.
func (e *NoRDMAError) Error() string {
	const check = syscall.EINVAL
	return fmt.Sprintf("check_rdma_support: RDS_FREE_MR failed with unexpected error, errno: %d (%s)\nRDMA (-D) needs the transport infiniband: messages from %v go by %v, which has none",
		int(check), strerror.Text(check), e.Local, e.Transport)
}

// Unwrap returns rdma.ErrNoRDMA.
func (e *NoRDMAError) Unwrap() error { return rdma.ErrNoRDMA }

// A RegisterError is that the kernel did not register memory without a message.
type RegisterError struct{ Errno syscall.Errno }

// Error begins as C does.
func (e *RegisterError) Error() string {
	text := fmt.Sprintf("setsockopt(RDS_GET_MR) failed (0 allocated), errno: %d (%s)", int(e.Errno), strerror.Text(e.Errno))
	if e.Errno == syscall.EOPNOTSUPP {
		text += "\nthis kernel registers memory only along with a message, on a connection: leave --rdma-use-get-mr out"
	}
	return text
}

// Unwrap returns the Errno.
func (e *RegisterError) Unwrap() error { return e.Errno }

// A remote is the RDMA of a worker: on its own memory, which its requests offer, and on that of the peer.
type remote struct {
	w      *worker
	cfg    *RDMA
	shape  flow.RDMA
	depth  int
	flows  []*flow.Remote
	memory *transport.Memory
	mapped cmsg.Flags // of registrations
	keys   []uint64   // by slot, of memory that is registered for a request to come; nil if none ever is
	meter  *keyMeter  // nil without KeyMeter

	dest   uint64 // the key that came with a message
	asking wire.RDMA

	connection connection
	failures   []failure // that are not told yet
	left       bool      // the peer has ended the run
}

func newRemote(w *worker) (*remote, error) {
	c := w.run.cfg
	if t := w.sock.Conn().Transport(); t != rdssock.TransportInfiniBand {
		return nil, &NoRDMAError{c.Local, t}
	}
	m, err := makeRemote(w, uint32(os.Getpid())+uint32(w.task*c.Tasks))
	if err != nil || !c.RDMA.GetMR {
		return m, err
	}
	if err := m.try(); err != nil {
		m.memory.Close()
		return nil, err
	}
	return m, nil
}

// makeRemote is newRemote without the kernel. The patterns of flow number n have the tag of the first and n.
func makeRemote(w *worker, tag uint32) (*remote, error) {
	c := w.run.cfg
	m := &remote{
		w: w, cfg: &c.RDMA, depth: c.Shape.Depth,
		shape:  flow.RDMA{Size: c.RDMA.Size, Vector: c.RDMA.Vector, Mode: c.RDMA.Mode, Verify: c.Shape.Verify, Peer: c.Shape.Peer},
		mapped: cmsg.FlagReadWrite,
	}
	if c.RDMA.UseOnce {
		m.mapped |= cmsg.FlagUseOnce
	}
	for n := range c.Tasks {
		m.flows = append(m.flows, flow.NewRemote(&m.shape, n, m.depth, tag+uint32(n)))
	}
	slots := c.Tasks * m.depth
	if c.RDMA.GetMR || c.RDMA.Cache {
		m.keys = make([]uint64, slots)
	}
	if c.RDMA.KeyMeter {
		m.meter = &keyMeter{}
	}
	var err error
	m.memory, err = transport.MapMemory(w.dialect, slots, m.shape.Bytes(), c.RDMA.Alignment)
	return m, err
}

// try finds out before the run whether the kernel registers memory without a message.
func (m *remote) try() error {
	errno, err := m.w.sock.TryRegister(m.memory, 0, m.mapped)
	switch {
	case err != nil:
		return err
	case errno == 0:
		m.keys[0] = m.memory.Key()
	case errno != syscall.ENODEV: // before the first connection
		return &RegisterError{errno}
	}
	return nil
}

func (m *remote) slot(n int, index uint16) int { return n*m.depth + int(index) }

// request completes the header of a request on flow n, and returns what goes along with it.
func (m *remote) request(n int, header []byte) (control []byte) {
	seq, index, _ := wire.Message(header)
	m.asking = m.flows[n].Ask(seq)
	r := &m.asking
	if r.Op != wire.NoRDMA {
		slot := m.slot(n, index)
		r.Addr = m.memory.Address(slot)
		if r.Op == wire.RDMARead {
			m.shape.Fill(m.memory.Target(slot), r.Pattern)
		}
		if m.keys != nil {
			r.Key = m.key(slot)
		}
		if r.Key != 0 {
			control = m.memory.Dest(r.Key)
		} else {
			control = m.memory.Map(slot, m.mapped)
		}
	}
	wire.PutRDMA(header, r)
	return control
}

// key is that of a slot whose memory is registered before the message; 0 has it registered along
// with it.
func (m *remote) key(slot int) uint64 {
	if m.keys[slot] == 0 && m.cfg.GetMR {
		if errno := m.w.sock.Register(m.memory, slot, m.mapped); errno != 0 {
			m.w.fail(&RegisterError{errno})
			return 0
		}
		m.keys[slot] = m.memory.Key()
	}
	return m.keys[slot]
}

// requested notes that the request was sent.
func (m *remote) requested(n int, header []byte) {
	m.connection.took()
	r := &m.asking
	if r.Op == wire.NoRDMA {
		return
	}
	_, index, _ := wire.Message(header)
	if r.Key == 0 {
		r.Key = m.memory.Key()
	}
	if m.keys != nil {
		slot := m.slot(n, index)
		m.keys[slot] = 0
		if m.cfg.Cache {
			m.keys[slot] = r.Key
		}
	}
	if m.meter != nil {
		m.meter.add(cmsg.Key(r.Key).RKey(), m.w.run.now())
	}
	if m.w.run.cfg.Trace != nil {
		m.trace("request %d: asks for RDMA %v, pattern %#x, key %v", index, r.Op, r.Pattern, cmsg.Key(r.Key))
	}
	m.flows[n].Asked(index, r)
}

// hold says whether a request that the kernel refused is to be tried again later.
func (m *remote) hold(errno syscall.Errno) bool {
	return m.asking.Op != wire.NoRDMA && m.connection.hold(errno, m.w.run.now())
}

// ready reports whether requests may be sent.
func (m *remote) ready() bool { return m.connection.ready(m.w.run.now(), m.ping) }

func (m *remote) ping() bool { return m.w.sock.Send(nil, nil, &m.w.kernel) == 0 }

// received takes in what a message without fault says of RDMA.
func (m *remote) received(n int, data []byte, r *flow.Received) {
	got := wire.ParseRDMA(data)
	if r.Op == wire.Request {
		if !m.flows[n].Take(r.Index, got, m.dest) {
			m.w.stats.Damaged++
			r.Fault = flow.BadHeader
		}
		return
	}
	asked, ok := m.flows[n].Answered(r.Index, &got)
	if asked.Op == wire.NoRDMA {
		if !ok {
			m.w.stats.Damaged++
			r.Fault = flow.BadHeader
		}
		return
	}
	if !m.cfg.UseOnce && !m.cfg.Cache {
		// It fails if the peer's operation broke the connection, which is told there.
		_ = m.w.sock.Free(m.memory, asked.Key)
	}
	if !ok {
		m.w.stats.Damaged++
		r.Fault = flow.BadHeader
		return
	}
	if asked.Op == wire.RDMAWrite {
		m.w.stats.RDMAInBytes += uint64(m.shape.Bytes())
		m.verify(n, &asked, m.memory.Target(m.slot(n, r.Index)), r.Seq, r.Index)
	} else {
		m.w.stats.RDMAOutBytes += uint64(m.shape.Bytes())
	}
	m.w.lat.RDMA[asked.Op-wire.RDMARead].Record(m.w.run.now() - time.Duration(r.SentAt))
}

// verify checks memory that an operation has filled.
func (m *remote) verify(n int, r *wire.RDMA, b []byte, seq uint32, index uint16) {
	at := m.shape.Check(b, r.Pattern)
	if at < 0 {
		return
	}
	m.w.stats.RDMADamaged++
	m.w.finding(Finding{Fault: flow.BadMemory, From: m.w.remotes[n], Seq: seq, Index: index, Length: len(b),
		Detail: fmt.Sprintf("%v of pattern %#x, first at byte %d", r.Op, r.Pattern, at)})
}

// fenced reports whether flow n may send its next answer, and starts the reads that must end before theirs if the
// device is not to see to that.
func (m *remote) fenced(n int) bool {
	f := m.w.flows[n]
	if m.cfg.NoFence {
		for i := 0; i < f.Owes() && m.w.sends > 0; i++ {
			index := f.Owed(i)
			job := m.flows[n].Job(index)
			if job.Want.Op != wire.RDMARead || job.UnderWay || job.Done {
				continue
			}
			// The message is empty, which says nothing to the peer's program, and goes to its socket, which ends a
			// registration for use once.
			if !m.w.transmit(n, nil, nil, m.operate(n, index)) {
				return false
			}
			m.begin(n, index, true)
		}
	}
	return f.Owes() > 0 && !m.flows[n].Job(f.Owed(0)).UnderWay
}

// answer completes the header of an answer on flow n, and returns what goes along with it.
func (m *remote) answer(n int, header []byte) (control []byte) {
	m.asking = wire.RDMA{}
	_, index, _ := wire.Message(header)
	job := m.flows[n].Job(index)
	wire.PutRDMA(header, &job.Want)
	if job.Want.Op == wire.NoRDMA || job.Done {
		return nil
	}
	return m.operate(n, index)
}

func (m *remote) operate(n int, index uint16) []byte {
	m.asking = wire.RDMA{}
	want := &m.flows[n].Job(index).Want
	op := transport.Operation{
		Slot: m.slot(n, index), Vector: m.shape.Vector, Key: want.Key, Offset: want.Offset,
		Flags: cmsg.FlagNotifyMe, Token: uint64(m.slot(n, index)),
	}
	switch {
	case want.Op == wire.RDMAWrite:
		op.Flags |= cmsg.FlagReadWrite
		m.shape.Fill(m.memory.Source(op.Slot), want.Pattern)
	default:
		// Also ahead of the answer: the kernel reports the end when the message is acknowledged, which without a fence
		// may be before it has read (net/rds/send.c:rds_send_remove_from_sock).
		op.Flags |= cmsg.FlagFence
	}
	return m.memory.Operate(&op)
}

// answered notes that the answer was sent.
func (m *remote) answered(n int, header []byte) {
	_, index, _ := wire.Message(header)
	if job := m.flows[n].Job(index); job.Want.Op != wire.NoRDMA && !job.Done {
		m.begin(n, index, false)
	}
}

func (m *remote) begin(n int, index uint16, ahead bool) {
	job := m.flows[n].Job(index)
	job.Begin(int64(m.w.run.now()), ahead)
	if m.w.run.cfg.Trace != nil {
		m.trace("RDMA %v for request %d: pattern %#x, key %v", job.Want.Op, index, job.Want.Pattern, cmsg.Key(job.Want.Key))
	}
}

func (m *remote) trace(format string, args ...any) {
	m.w.run.cfg.Trace(fmt.Sprintf("task %d: ", m.w.task) + fmt.Sprintf(format, args...))
}

// completed takes in how an operation ended.
func (m *remote) completed(s cmsg.RDMAStatus) {
	if s.Token >= uint64(len(m.flows)*m.depth) {
		return
	}
	n, index := int(s.Token)/m.depth, uint16(int(s.Token)%m.depth)
	job := m.flows[n].Job(index)
	if !job.UnderWay {
		return
	}
	job.End()
	did := &job.Doing
	if m.w.run.cfg.Trace != nil {
		m.trace("RDMA %v for request %d: %v, pattern %#x", did.Op, index, s.Status, did.Pattern)
	}
	stats, bytes, seq := &m.w.stats, uint64(m.shape.Bytes()), uint32(did.Pattern>>32)
	switch {
	case s.Status == cmsg.StatusCanceled && m.w.canceled:
		return
	case s.Status != cmsg.StatusSuccess:
		m.connection.breaks()
		m.failed(Finding{Fault: flow.FailedRDMA, From: m.w.remotes[n], Seq: seq, Index: index, Length: int(bytes),
			Detail: fmt.Sprintf("%v: %v", did.Op, s.Status)})
		return
	case did.Op == wire.RDMARead:
		stats.RDMAReads++
		stats.RDMAInBytes += bytes
		m.verify(n, did, m.memory.Source(m.slot(n, index)), seq, index)
	default:
		stats.RDMAWrites++
		stats.RDMAOutBytes += bytes
	}
	m.w.lat.RDMA[RDMAOperation].Record(m.w.run.now() - time.Duration(job.Started))
}

// A failure is an operation that failed at a time.
type failure struct {
	at      time.Duration
	finding Finding
}

// farewell is how soon after an operation has failed the peer may be seen to have ended the run, which excuses that. C
// gives up its memory without a word when it ends: a second after it has sent its last request, or at once on SIGINT.
const farewell = time.Second

// failed notes that an operation failed.
func (m *remote) failed(f Finding) {
	switch {
	case m.left:
	case m.shape.Peer: // which ends when both have
		m.tell(f)
	default:
		m.failures = append(m.failures, failure{m.w.run.now(), f})
	}
}

func (m *remote) tell(f Finding) {
	m.w.stats.RDMAFailed++
	m.w.finding(f)
}

// tellFailures tells of the failures that the end of the peer does not explain, or of all.
func (m *remote) tellFailures(all bool) {
	for len(m.failures) > 0 && (all || m.w.run.now()-m.failures[0].at > farewell) {
		m.tell(m.failures[0].finding)
		m.failures = m.failures[1:]
	}
}

// excuse notes that the peer has ended the run, and returns how many failures that explains.
func (m *remote) excuse() int {
	m.tellFailures(false)
	n := len(m.failures)
	m.failures, m.left = nil, true
	return n
}

// underWay is how many operations have not ended.
func (m *remote) underWay() int {
	n := 0
	for _, f := range m.flows {
		n += f.UnderWay()
	}
	return n
}
