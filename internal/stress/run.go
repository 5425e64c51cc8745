package stress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/strerror"
	"github.com/rdskit/rdskit/internal/stress/transport"
	"github.com/rdskit/rdskit/rdssock"
)

// A phase is what workers do.
type phase int32

const (
	opened    phase = iota // no workers yet
	answering              // answer requests, send none
	running
	listening // send nothing
	ended
)

// A Run is one side of a run.
type Run struct {
	cfg       *Config
	epoch     time.Time
	workers   []*worker
	loops     []*loop
	transport rdssock.Transport
	bursts    *bursts
	keys      keyHistory
	state     atomic.Int32
	done      sync.WaitGroup
	ordinary  func() error // ends what Config.Realtime began

	mu       sync.Mutex
	findings []Finding
	outliers []time.Duration
	more     int // outliers that are not kept
	err      error
	stop     chan struct{} // closed on an error, and on a finding with StopOnFinding
}

// Open opens the sockets of a run. With Config.Realtime, Close has to be called by the same goroutine.
func Open(cfg *Config) (*Run, error) {
	r := &Run{cfg: cfg, epoch: time.Now(), keys: keyHistory{}, stop: make(chan struct{})}
	cfg.Shape.Prepare()
	if cfg.Realtime {
		var err error
		if r.ordinary, err = transport.Realtime(); err != nil {
			return nil, &RealtimeError{err}
		}
	}
	if cfg.SyncBursty {
		r.bursts = &bursts{workers: cfg.Tasks}
	}
	for i := range cfg.Tasks {
		w, err := newWorker(r, i)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.workers = append(r.workers, w)
	}
	r.loops = newLoops(r)
	r.transport = r.workers[0].sock.Conn().Transport()
	if r.transport == rdssock.TransportInfiniBand {
		cfg.LocalPeer = false // between two of its addresses a device is used as between hosts
	}
	return r, nil
}

// Short says which of the two buffers the kernel granted less of than the run can fill, as C does; it is empty
// if there is enough.
func (r *Run) Short() []string {
	conn := r.workers[0].sock.Conn()
	want := r.cfg.buffer()
	var short []string
	for _, b := range []struct {
		name    string
		granted func() (int, error)
	}{{"SNDBUF", conn.SendBuffer}, {"RCVBUF", conn.ReceiveBuffer}} {
		if n, err := b.granted(); err == nil && int64(n) < want {
			short = append(short, fmt.Sprintf("getsockopt(%s) returned %d, we wanted %d * 2", b.name, 2*n, want))
		}
	}
	return short
}

// Transport is what carries the messages.
func (r *Run) Transport() rdssock.Transport {
	if r.cfg.LocalPeer {
		return rdssock.TransportLoopback
	}
	return r.transport
}

// now is the time since the run was opened, by the monotonic clock alone.
func (r *Run) now() time.Duration { return time.Since(r.epoch) }

func (r *Run) phase() phase { return phase(r.state.Load()) }

// warmTime bounds how long the pings of Warm take.
const warmTime = 2 * time.Second

// Warm brings the connections up with a few pings for each socket, so that the first messages
// do not overtake each other while RDS/TCP learns how many paths there are. It reports whether all
// were answered.
//
// The kernel answers pings between two addresses of one host to the wrong one of them, where nothing
// needs warming up anyway.
func (r *Run) Warm(ctx context.Context) bool {
	if r.cfg.LocalPeer {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	var answered atomic.Int64
	var all sync.WaitGroup
	for _, w := range r.workers {
		all.Go(func() {
			// The first may take another path than those that follow.
			for range 2 {
				if !w.ping(ctx) {
					return
				}
			}
			answered.Add(1)
		})
	}
	all.Wait()
	return int(answered.Load()) == len(r.workers)
}

// ping sends pings until one is answered. What else arrives is of an earlier run.
func (w *worker) ping(ctx context.Context) bool {
	conn := w.sock.Conn()
	kernel := netip.AddrPortFrom(w.run.cfg.Peer, 0)
	for ctx.Err() == nil {
		if _, err := conn.TryWriteToAddrPort(nil, kernel); err != nil && !errors.Is(err, rdssock.ErrQueueFull) {
			return false
		}
		attempt, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		for {
			_, _, _, from, err := conn.ReadMsgContext(attempt, nil, nil)
			if err != nil {
				break
			}
			if from.Port() == 0 {
				cancel()
				return true
			}
		}
		cancel()
	}
	return false
}

// Start starts the workers, which answer requests, but send none until Begin.
//
// A loop that waits in poll(2) keeps its P until the runtime's monitor takes it away, which is up to 10 ms late: each
// needs one of its own.
func (r *Run) Start() {
	r.state.Store(int32(answering))
	addProcs(len(r.loops))
	for _, l := range r.loops {
		l.asked.begin()
		r.done.Go(l.main)
	}
}

// addProcs has that many more threads run Go at a time.
func addProcs(n int) {
	maxProcs.Lock()
	defer maxProcs.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// maxProcs guards GOMAXPROCS, which is the process's.
var maxProcs sync.Mutex

// Begin has the workers send requests.
func (r *Run) Begin() { r.state.CompareAndSwap(int32(answering), int32(running)) }

// Quiet has the workers send no more requests; they go on to answer.
func (r *Run) Quiet() { r.state.CompareAndSwap(int32(running), int32(answering)) }

// Hush has the workers send nothing any more, not even answers; they go on to receive. What Sent says then
// is final.
func (r *Run) Hush() { r.state.CompareAndSwap(int32(answering), int32(listening)) }

// Drain waits until no request is without an answer, or nothing moves for
// a time, or ctx is done. It returns how many requests are left.
func (r *Run) Drain(ctx context.Context, patience time.Duration) int {
	last, since := -1, time.Now()
	for {
		n := r.Pending() + r.underWay()
		if n != last {
			last, since = n, time.Now()
		}
		if n == 0 || time.Since(since) > patience {
			return n
		}
		select {
		case <-ctx.Done():
			return n
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// underWay is how many RDMA operations of this side have not ended, and how many requests were given up that may be
// answered yet.
func (r *Run) underWay() int {
	n := 0
	for _, open := range ask(r, func(w *worker) (open int) {
		if w.remote != nil {
			open = w.remote.underWay()
		}
		for _, f := range w.flows {
			open += f.Awaited()
		}
		return open
	}) {
		n += open
	}
	return n
}

// Pending is how many requests have no answer.
func (r *Run) Pending() int {
	n := 0
	for _, pending := range ask(r, func(w *worker) (n int) {
		for _, f := range w.flows {
			n += f.Pending()
		}
		return n
	}) {
		n += pending
	}
	return n
}

// Outstanding is a flow with requests that have no answer.
type Outstanding struct {
	Task     int
	To       netip.AddrPort
	Requests int
}

// Sample adds what was measured since the last call. With lat nil the workers keep their Latencies for a later one: to
// merge them takes the time of many messages, which wait for it where there are no more processors than loops.
func (r *Run) Sample(stats *Stats, lat *Latencies) {
	type measured struct {
		stats Stats
		lat   *Latencies
	}
	for _, m := range ask(r, func(w *worker) (m measured) {
		m.stats = w.handOver()
		if lat != nil {
			m.lat = w.handOverLatencies()
		}
		return m
	}) {
		stats.Add(&m.stats)
		if lat != nil {
			lat.merge(m.lat)
		}
	}
}

// Sent is how many messages went out on each flow, modulo 2^32: that of task i to
// the peer's task j is number i*Tasks+j.
func (r *Run) Sent() []uint32 {
	return slices.Concat(ask(r, func(w *worker) (sent []uint32) {
		for _, f := range w.flows {
			sent = append(sent, f.Sent())
		}
		return sent
	})...)
}

// errAccount says that a peer's account cannot be true.
var errAccount = errors.New("the peer's account of what it sent does not fit what arrived")

// Lost is how many messages of the peer did not arrive, by its own Sent.
func (r *Run) Lost(sent []uint32) (uint64, error) {
	b, err := r.balance(sent, (*worker).lost)
	return b.Lost, err
}

// A Balance is what has become of messages, for each task at one moment.
type Balance struct {
	Stats       Stats  // since the last Sample
	Lost        uint64 // messages of the peer that did not arrive
	Overtaken   uint64 // those of them that later ones of their flow overtook
	Outstanding []Outstanding
}

// Balance takes stock. Without the peer's Sent, lost is what was overtaken.
func (r *Run) Balance(sent []uint32) (Balance, error) {
	return r.balance(sent, func(w *worker, sent []uint32) (Balance, error) {
		b, err := w.lost(sent)
		b.Stats = w.handOver()
		for i, f := range w.flows {
			if n := f.Pending(); n > 0 {
				b.Outstanding = append(b.Outstanding, Outstanding{w.task, w.remotes[i], n})
			}
		}
		return b, err
	})
}

func (r *Run) balance(sent []uint32, take func(w *worker, sent []uint32) (Balance, error)) (sum Balance, err error) {
	if n := r.cfg.Tasks * r.cfg.Tasks; sent != nil && len(sent) != n {
		sent, err = nil, fmt.Errorf("%w: %d flows instead of %d", errAccount, len(sent), n)
	}
	type answer struct {
		Balance
		err error
	}
	for _, a := range ask(r, func(w *worker) (a answer) {
		a.Balance, a.err = take(w, sent)
		return a
	}) {
		sum.Stats.Add(&a.Stats)
		sum.Lost += a.Lost
		sum.Overtaken += a.Overtaken
		sum.Outstanding = append(sum.Outstanding, a.Outstanding...)
		err = cmp.Or(err, a.err)
	}
	return sum, err
}

func (w *worker) lost(sent []uint32) (b Balance, err error) {
	for j, f := range w.flows {
		overtaken := f.Incoming().Missing()
		b.Overtaken += overtaken
		if sent == nil {
			b.Lost += overtaken
			continue
		}
		n := sent[j*len(w.flows)+w.task]
		missing, ok := f.MissingOf(n)
		b.Lost += missing
		if !ok {
			err = fmt.Errorf("%w: task %d sent %d to task %d, where %d was expected next", errAccount, j, n, w.task, f.Incoming().Next())
		}
	}
	return b, err
}

// Gap returns the longest time in which nothing arrived at a task, and the longest that it took to get
// an answer to a request sent in such a time. They are 0 if nothing ever stopped.
func (r *Run) Gap() (longest, recovery time.Duration) {
	for _, g := range ask(r, func(w *worker) gapMeter { return w.gap }) {
		longest, recovery = max(longest, g.until(r.now())), max(recovery, g.recovery)
	}
	return longest, recovery
}

// Excuse has the RDMA operations that have just failed, and those that fail from now on, not count, if the peer has left
// and that explains them. It returns how many there are.
func (r *Run) Excuse(left bool) int {
	n := 0
	for _, excused := range ask(r, func(w *worker) (n int) {
		switch {
		case w.remote == nil:
		case left:
			n = w.remote.excuse()
		default:
			w.remote.tellFailures(true)
		}
		return n
	}) {
		n += excused
	}
	return n
}

// Silence is how long nothing has arrived although requests wait for an answer, or the peer sends some all the time.
func (r *Run) Silence(asked bool) time.Duration {
	if !asked && r.Pending() == 0 {
		return 0
	}
	last := slices.Max(ask(r, func(w *worker) time.Duration { return w.gap.last }))
	return r.now() - last
}

// Forget begins anew with Gap and the Latencies, and adds to stats what was counted until then, in one step: what
// comes after it is in a later Sample's Stats and Latencies both.
func (r *Run) Forget(stats *Stats) {
	for _, past := range ask(r, func(w *worker) Stats {
		w.gap = gapMeter{last: r.now()}
		w.lat.reset()
		return w.handOver()
	}) {
		stats.Add(&past)
	}
}

// Stopped is closed when a worker has failed, or with StopOnFinding something was
// found; Err then says which.
func (r *Run) Stopped() <-chan struct{} { return r.stop }

// Err is why Stopped was closed: nil for a finding.
func (r *Run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Run) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.stopLocked()
}

func (r *Run) stopLocked() {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
}

func (r *Run) finding(f Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.findings) < r.cfg.MaxFindings {
		r.findings = append(r.findings, f)
	}
	if r.cfg.StopOnFinding {
		r.stopLocked()
	}
}

// maxOutliers bounds how many are kept between two calls of News.
const maxOutliers = 1000

func (r *Run) outlier(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.outliers) == maxOutliers {
		r.more++
		return
	}
	r.outliers = append(r.outliers, d)
}

// News returns the findings and outliers since the last call, at most MaxFindings of the former in all, and how many
// more outliers there were.
func (r *Run) News() (findings []Finding, outliers []time.Duration, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	findings, outliers, more = r.findings, r.outliers, r.more
	r.cfg.MaxFindings -= len(findings)
	r.findings, r.outliers, r.more = nil, nil, 0
	return findings, outliers, more
}

// Close ends the workers and closes the sockets. What the peer's kernel has not
// acknowledged is dropped.
func (r *Run) Close() error {
	started := r.state.Swap(int32(ended)) != int32(opened)
	r.done.Wait()
	if started {
		addProcs(-len(r.loops))
	}
	var errs []error
	for _, w := range r.workers {
		errs = append(errs, w.close())
	}
	if r.ordinary != nil {
		errs = append(errs, r.ordinary())
	}
	return errors.Join(errs...)
}

// A RealtimeError is that Config.Realtime is not permitted.
type RealtimeError struct{ Err error }

// Error begins as C does.
func (e *RealtimeError) Error() string {
	text := "sched_setscheduler(SCHED_RR) failed"
	var errno syscall.Errno
	if errors.As(e.Err, &errno) {
		text += fmt.Sprintf(", errno: %d (%s)", int(errno), strerror.Text(errno))
	}
	return fmt.Sprintf("%s\n-R needs CAP_SYS_NICE, or a limit of real-time priorities (ulimit -r) above 0: %v", text, e.Err)
}

// Unwrap returns Err.
func (e *RealtimeError) Unwrap() error { return e.Err }

// Agree sets what is known only when both sides have met, before Start: whether the peer is rdskit.
func (r *Run) Agree(rdskit bool) {
	if !rdskit || r.cfg.RDMA.Size > 0 {
		// C goes by the order of the slots, and an operation that comes late would find the memory used for another.
		r.cfg.GiveUp = 0
	}
	for _, w := range r.workers {
		w.shape.Peer = rdskit
		w.undecided = w.undecided && !rdskit
		if w.remote != nil {
			w.remote.shape.Peer = rdskit
		}
		w.shape.AnyReqSize = rdskit && r.cfg.MinReqSize < r.cfg.Shape.ReqSize
	}
	r.cfg.Shape.Peer = rdskit
}
