package stress

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/strerror"
	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/transport"
	"github.com/rdskit/rdskit/internal/stress/wire"
	"github.com/rdskit/rdskit/rdssock"
)

const (
	// idle is how long a worker waits at most before it looks whether the run has ended.
	idle = 50 * time.Millisecond
	// retest is when a worker tries a congested destination again although the kernel has not
	// called: before 6.1.190 it could forget to.
	retest = 100 * time.Millisecond
	// maxRounds bounds how long a worker that receives in batches does so before it sends, and maxSends how many messages
	// it sends before it receives.
	maxRounds = 8
	maxSends  = 64
	// maxUnseen bounds how many requests of the peer are answered without a look at the clock.
	maxUnseen = 16
	// pause is how long nothing has to arrive for it to count as a gap.
	pause = 100 * time.Millisecond
)

// A worker is one task: a socket, and a flow to each task of the peer. It is driven by a loop.
type worker struct {
	run     *Run
	task    int
	shape   flow.Shape // its own, since the layout may be found out from what arrives
	sock    *transport.Socket
	remotes []netip.AddrPort
	names   []transport.Name // of remotes
	kernel  transport.Name   // of the peer's kernel, which answers pings
	base    int              // the port of the peer's task 0
	dialect cmsg.Dialect
	sizes   *rand.Rand // nil if they do not vary
	size    int        // of the next request if it was drawn: one that was refused keeps it

	remote *remote // nil without RDMA

	asked *asked // of the loop

	// What follows is the loop's own while it runs: others ask for it.
	flows []*flow.Flow
	stats Stats // since the last sample
	lat   *Latencies
	spare *Latencies // what was handed over last, to use again
	gap   gapMeter
	err   error

	single         bool          // takes messages one at a time
	several        bool          // more than one may be there
	now            time.Duration // when it last looked at the clock
	fresh          bool          // it has sent nothing and waited for nothing since then
	unseen         int           // how many messages have arrived since then
	undecided      bool          // how long the peer's header is
	congested      []bool
	anyCongested   bool
	congestedSince time.Duration
	readable       bool          // as far as is known
	wait           bool          // until it is readable
	vain           bool          // it waited, and nothing came
	full           bool          // the send buffer
	canceled       bool          // what was queued
	sends          int           // that are left in this turn
	expired        time.Duration // when requests were last given up
	first          int           // flow to begin with, so that each has its turn
	next           time.Duration // when the next request is due, with a rate; negative until requests begin
	interval       time.Duration // between requests, with a rate
	burst          burst
}

func newWorker(r *Run, task int) (*worker, error) {
	c := r.cfg
	w := &worker{
		run: r, task: task, shape: c.Shape, undecided: c.DetectLayout,
		remotes:   make([]netip.AddrPort, c.Tasks),
		names:     make([]transport.Name, c.Tasks),
		base:      int(c.port(0)),
		flows:     make([]*flow.Flow, c.Tasks),
		congested: make([]bool, c.Tasks),
		lat:       newLatencies(), spare: newLatencies(),
		readable: true, several: c.Tasks*c.Shape.Depth > 1,
		burst: burst{sending: true, seen: -1},
	}
	if c.Bursty && c.Requests {
		w.burst.seen = 0
	}
	local := netip.AddrPortFrom(c.Local, c.port(task))
	buffer := int(min(c.buffer(), 1<<30))
	sc := &rdssock.Config{
		Transport: c.Transport, TOS: c.TOS, NetNS: c.NetNS, NoCongestionMonitor: c.NoCongMonitor,
		SendBuffer: buffer, ReceiveBuffer: buffer,
	}
	var err error
	if w.sock, err = transport.Listen(local, sc, c.messageSize()); err != nil {
		return nil, err
	}
	w.dialect = w.sock.Conn().Dialect()
	if c.RXPath {
		points := RXPath
		if c.LocalPeer && w.sock.Conn().Transport() != rdssock.TransportInfiniBand {
			// By loopback no message has the times of header and start: the kernel would count from when it booted.
			points = []cmsg.RXPoint{cmsg.RXDelivery}
		}
		if err := w.sock.Conn().SetRXPath(points...); err != nil {
			w.close()
			return nil, err
		}
	}
	var zone uint32
	if name := c.Peer.Zone(); name != "" {
		if zone, err = scope(name); err != nil {
			w.close()
			return nil, err
		}
	}
	w.kernel = transport.NewName(netip.AddrPortFrom(c.Peer.WithZone(""), 0), zone)
	if c.RDMA.Size > 0 {
		if w.remote, err = newRemote(w); err != nil {
			w.close()
			return nil, err
		}
	}
	for i := range w.remotes {
		w.remotes[i] = netip.AddrPortFrom(c.Peer.WithZone(""), c.port(i))
		w.names[i] = transport.NewName(w.remotes[i], zone)
	}
	w.newFlows()
	if c.MinReqSize < c.Shape.ReqSize {
		w.sizes = rand.New(rand.NewPCG(c.Seed, uint64(task)))
	}
	if c.Rate > 0 && c.Requests {
		w.interval = time.Duration(float64(c.Tasks) / c.Rate * float64(time.Second))
	}
	return w, nil
}

// newFlows makes the flows, of messages whose layout is known as far as can be.
func (w *worker) newFlows() {
	c := w.run.cfg
	local := netip.AddrPortFrom(c.Local.WithZone(""), c.port(w.task))
	for i, remote := range w.remotes {
		w.flows[i] = flow.New(&w.shape, local, remote)
	}
}

// close closes the socket, which has to be out of the loop.
func (w *worker) close() error {
	err := w.sock.Close()
	if w.remote != nil {
		err = errors.Join(err, w.remote.memory.Close())
	}
	return err
}

// RXPath are the stretches of the receive path that Config.RXPath measures.
var RXPath = []cmsg.RXPoint{cmsg.RXHeaderToStart, cmsg.RXReassembly, cmsg.RXDelivery}

func scope(zone string) (uint32, error) {
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n), nil
	}
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, err
	}
	return uint32(i.Index), nil
}

// begin is called by the loop before the first turn.
func (w *worker) begin() {
	w.next = -1
	w.gap.last = w.look()
}

// look reads the clock, which costs more than to count.
func (w *worker) look() time.Duration {
	w.now, w.fresh, w.unseen = w.run.now(), true, 0
	return w.now
}

// time is when the last call ended.
func (w *worker) time() time.Duration {
	if !w.fresh {
		w.look()
	}
	return w.now
}

// turn receives and sends. It returns for how long there is nothing more to do unless something
// arrives, 0 if there may be.
func (w *worker) turn(phase phase) time.Duration {
	w.fresh = false
	if w.readable && (phase != running || w.burst.receives()) {
		w.readable = w.receive()
	}
	w.sends = maxSends
	if phase != listening {
		w.send(phase)
	}
	w.expire()
	if w.remote != nil {
		w.remote.tellFailures(false)
	}
	if w.sends == 0 || w.readable && w.burst.receives() {
		return 0
	}
	w.stats.Waits++
	return w.waitTime(phase)
}

func (w *worker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.run.failed(w.err)
}

// waitTime is how long there is nothing to do unless something arrives.
func (w *worker) waitTime(phase phase) time.Duration {
	wait := idle
	if w.interval > 0 && !w.full && phase == running && w.room() >= 0 {
		wait = min(wait, w.next-w.time())
	}
	if !w.burst.receives() {
		wait = min(wait, time.Millisecond)
	}
	if w.remote != nil && w.remote.connection.held > 0 {
		wait = min(wait, w.remote.connection.held-w.time())
	}
	return max(wait, 0)
}

// receive takes what has arrived, and reports whether there may be more. With w.wait it waits for that.
func (w *worker) receive() bool {
	for range maxRounds {
		waited := w.wait
		n, errno := w.take(waited)
		w.wait, w.fresh = false, false
		if w.unseen += n; n == 0 || waited || w.unseen >= maxUnseen {
			w.look()
		}
		if errno != 0 {
			w.fail(os.NewSyscallError("recvmsg", errno))
			return false
		}
		if n == 0 {
			w.vain = w.vain || waited
			return false
		}
		w.vain = false
		for i := range n {
			data, control, name := w.sock.Message(i)
			if len(control) > 0 || w.remote != nil {
				w.control(control)
			}
			if len(name) > 0 {
				w.message(data, name)
			}
		}
		if !w.sock.More(n) {
			return false
		}
		if w.single {
			return w.several
		}
	}
	return true
}

// take receives one message or a batch.
func (w *worker) take(wait bool) (int, syscall.Errno) {
	// Which destinations are not congested any more comes in a control message; otherwise there are none.
	if w.single && !w.anyCongested {
		return w.sock.ReceiveOne(wait)
	}
	return w.sock.Receive(wait)
}

// sender is the number of the peer's task that has this name, -1 if none has it.
func (w *worker) sender(name []byte) int {
	if port, ok := transport.Port(name); ok {
		if n := port - w.base; uint(n) < uint(len(w.names)) && w.names[n].Equal(name) {
			return n
		}
	}
	// With IPv6, the kernel may give it a scope.
	return slices.Index(w.remotes, transport.Source(name))
}

// message takes in one message.
func (w *worker) message(data, name []byte) {
	task := w.sender(name)
	if task < 0 {
		w.stranger(transport.Source(name))
		return
	}
	if len(data) == 0 && w.remote != nil {
		return // it came with a read whose answer follows
	}
	if w.undecided {
		w.shape.Layout, w.undecided = flow.Detect(data), false
		w.newFlows()
	}
	f := w.flows[task]
	r := f.Receive(data)
	if w.remote != nil && r.Op != 0 {
		w.remote.received(task, data, r)
	}
	if r.Fault != flow.NoFault {
		w.finding(Finding{Fault: r.Fault, From: w.remotes[task], Seq: r.Seq, Index: r.Index, Length: len(data), Mismatch: f.Mismatch(data, r)})
	}
	w.gap.progress(w.now)
	if r.Op == wire.Ack {
		w.answered(time.Duration(r.SentAt))
	}
}

// answered notes that a request sent at a time has its answer.
func (w *worker) answered(sent time.Duration) {
	rtt := w.time() - sent
	w.stats.recordRTT(rtt)
	w.lat.RTT.Record(rtt)
	w.gap.answered(w.now, sent)
	if above := w.run.cfg.OutlierAbove; above > 0 && rtt > above {
		w.run.outlier(rtt)
	}
}

// stranger notes a message that is of no flow, unless it is the answer to a ping.
func (w *worker) stranger(from netip.AddrPort) {
	if from.Port() == 0 {
		if w.remote != nil {
			w.remote.connection.answered()
		}
		return
	}
	w.stats.Foreign++
	w.finding(Finding{Fault: flow.Unexpected, From: from})
}

func (w *worker) finding(f Finding) {
	f.Task = w.task
	w.run.finding(f)
}

// control takes in notifications, and what comes with a message.
func (w *worker) control(b []byte) {
	if w.remote != nil {
		w.remote.dest = 0
	}
	it := cmsg.Parse(w.dialect, b)
	for it.Next() {
		m := it.Message()
		switch m.Kind() {
		case cmsg.KindCongestionUpdate:
			if classes, err := m.CongestionUpdate(); err == nil {
				w.uncongest(classes)
			}
		case cmsg.KindRDMAStatus:
			if s, err := m.RDMAStatus(); err == nil && w.remote != nil {
				w.remote.completed(s)
			}
		case cmsg.KindRDMADest:
			if key, err := m.RDMADest(); err == nil && w.remote != nil {
				w.remote.dest = uint64(key)
			}
		case cmsg.KindRXPathLatency:
			l, err := m.RXPathLatency()
			if err != nil {
				continue
			}
			for _, t := range l.Traces[:l.N] {
				if t.Point < 3 && t.Elapsed >= 0 && t.Elapsed < time.Hour {
					w.lat.Receive[t.Point].Record(t.Elapsed)
				}
			}
		}
	}
}

func (w *worker) uncongest(classes cmsg.CongestionMask) {
	w.anyCongested = false
	for i := range w.congested {
		if classes.Contains(w.remotes[i].Port()) {
			w.congested[i] = false
		}
		w.anyCongested = w.anyCongested || w.congested[i]
	}
}

// send sends what there is to send: answers first.
func (w *worker) send(phase phase) {
	c := w.run.cfg
	if w.anyCongested && w.run.now()-w.congestedSince > retest {
		w.uncongest(^cmsg.CongestionMask(0))
	}
	if w.full {
		return
	}
	for i := range w.flows {
		if !w.acks(w.at(i)) {
			return
		}
	}
	if phase != running || !c.Requests || !w.burst.sends() || w.undecided || w.remote != nil && !w.remote.ready() {
		w.burst.step(w)
		return
	}
	if w.interval > 0 {
		w.scheduled()
		w.burst.step(w)
		return
	}
	for i := range w.flows {
		n := w.at(i)
		f := w.flows[n]
		for w.sends > 0 && !w.congested[n] && !f.Full() && w.request(n, w.time()) {
		}
		if w.full || w.sends == 0 || w.err != nil {
			break
		}
	}
	w.first++
	w.burst.step(w)
}

// at is the flow that is number i this time.
func (w *worker) at(i int) int { return (w.first + i) % len(w.flows) }

// scheduled sends the requests that are due. One that finds no flow with room stays due,
// and its round trip counts from when it was to be sent.
func (w *worker) scheduled() {
	if w.next < 0 {
		// The tasks take turns.
		w.next = w.time() + w.interval*time.Duration(w.task)/time.Duration(w.run.cfg.Tasks)
	}
	for w.sends > 0 && !w.full && w.err == nil && w.next <= w.time() {
		n := w.room()
		if n < 0 {
			return
		}
		if w.request(n, w.next) {
			w.next += w.interval
			w.first++
		}
	}
}

// room finds a flow that can take a request.
func (w *worker) room() int {
	for i := range w.flows {
		if n := w.at(i); !w.congested[n] && !w.flows[n].Full() {
			return n
		}
	}
	return -1
}

// request sends one to flow n. The round trip counts from at.
func (w *worker) request(n int, at time.Duration) bool {
	f := w.flows[n]
	size := w.run.cfg.Shape.ReqSize
	if w.sizes != nil {
		if w.size == 0 {
			w.size = w.run.cfg.MinReqSize + w.sizes.IntN(size-w.run.cfg.MinReqSize+1)
		}
		size = w.size
	}
	head, tail := f.Request(size)
	var control []byte
	if w.remote != nil {
		control = w.remote.request(n, head)
	}
	before := w.time()
	if !w.transmit(n, head, tail, control) {
		return false
	}
	if w.remote != nil {
		w.remote.requested(n, head)
	}
	f.RequestSent(size, int64(at))
	w.size = 0
	w.stats.SendTime += w.look() - before
	return true
}

// acks sends the answers that flow n owes. It reports whether others may go on.
func (w *worker) acks(n int) bool {
	f := w.flows[n]
	for w.sends > 0 && f.Owes() > 0 && !w.congested[n] {
		if w.remote != nil && !w.remote.fenced(n) {
			return !w.full && w.err == nil
		}
		head, tail := f.Ack()
		var control []byte
		if w.remote != nil {
			control = w.remote.answer(n, head)
		}
		if !w.transmit(n, head, tail, control) {
			return !w.full && w.err == nil
		}
		if w.remote != nil {
			w.remote.answered(n, head)
		}
		f.AckSent()
	}
	return w.sends > 0
}

func (w *worker) transmit(n int, head, tail, control []byte) bool {
	w.sends--
	w.fresh = false
	var errno syscall.Errno
	if control == nil {
		errno = w.sock.Send(head, tail, &w.names[n])
	} else {
		errno = w.sock.SendControl(head, tail, control, &w.names[n])
	}
	return errno == 0 || w.refused(n, errno, len(head)+len(tail))
}

// refused notes why the kernel did not take a message of so many bytes, and returns false.
func (w *worker) refused(n int, errno syscall.Errno, size int) bool {
	if w.remote != nil && w.remote.hold(errno) {
		return false
	}
	switch errno {
	case syscall.EAGAIN:
		w.stats.Full++
		w.full = true
	case syscall.ENOBUFS:
		w.stats.Congested++
		if !w.anyCongested {
			w.congestedSince = w.run.now()
		}
		w.congested[n], w.anyCongested = true, true
	default:
		w.fail(&SendError{Errno: errno, To: w.remotes[n], Size: size})
	}
	return false
}

// A SendError is a message that the kernel refused for good.
type SendError struct {
	Errno syscall.Errno
	To    netip.AddrPort
	Size  int // bytes
}

// Error begins as C does.
func (e *SendError) Error() string {
	text := fmt.Sprintf("sendto() failed, errno: %d (%s)", int(e.Errno), strerror.Text(e.Errno))
	if e.To.IsValid() {
		text += "\n" + e.explain()
	}
	return text
}

// Unwrap returns the Errno.
func (e *SendError) Unwrap() error { return e.Errno }

// explain says what the kernel had against it.
func (e *SendError) explain() string {
	switch e.Errno {
	case syscall.EMSGSIZE:
		return fmt.Sprintf("a message of %d bytes is longer than the socket's send buffer, which net.core.wmem_max caps without CAP_NET_ADMIN, or than 1 MiB", e.Size)
	case syscall.EINVAL:
		return "the kernel takes no such control message or destination: " + e.To.String()
	case syscall.EPERM: // net/rds/rdma.c:__rds_rdma_map
		return "no memory may be locked for RDMA (-D), RLIMIT_MEMLOCK is 0: raise it (ulimit -l), or give CAP_IPC_LOCK"
	case syscall.ENOMEM:
		return "the kernel or the device has no memory for it: less depth (-d), fewer tasks (-t) or smaller operations (-D) need less"
	}
	return "to " + e.To.String()
}

// expire gives up what has waited for too long, and looks for it now and then.
func (w *worker) expire() {
	giveUp := w.run.cfg.GiveUp
	if giveUp == 0 {
		return
	}
	if w.now-w.expired < giveUp/8 {
		return
	}
	w.expired = w.now
	for _, f := range w.flows {
		f.Expire(int64(w.now - giveUp))
	}
}

// handOver returns what was measured since the last time.
func (w *worker) handOver() Stats {
	for _, f := range w.flows {
		w.stats.Account.Add(&f.Account)
		f.Account = flow.Account{}
	}
	stats := w.stats
	w.stats = Stats{}
	return stats
}

// handOverLatencies is handOver for Latencies, which are the caller's until the next time.
func (w *worker) handOverLatencies() *Latencies {
	w.lat, w.spare = w.spare, w.lat
	return w.spare
}
