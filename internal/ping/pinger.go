package ping

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/rdskit/rdskit/internal/latency"
	"github.com/rdskit/rdskit/internal/target"
)

// maxBehind is how many intervals the pings may be behind their schedule, because the
// process did not run, and still be made up for.
const maxBehind = 10

// A pinger pings one target. All but the sockets' readers runs in one
// goroutine. Times are durations since the start of the run, and 0 is one of them.
type pinger struct {
	cfg    *Config
	target *target.Target
	net    network
	emit   func(Event)
	start  time.Time

	slots    []slot
	turn     int // the slot after the one used last
	arrivals chan arrival
	interim  chan struct{}

	attempts uint64        // pings sent or failed to be: the number of the last one
	due      time.Duration // when the next one is to be sent
	held     bool          // it could not be, for want of a slot
	lastSent time.Duration

	report Report
	rtts   latency.Histogram
}

// A slot is the room for one unanswered ping.
type slot struct {
	link  *link // nil until it is used, and after a failure
	state slotState
	seq   uint64        // the last ping of the link
	sent  time.Duration // when that was sent
	// suspect says that another answer to the last ping may come, as when the
	// connection was made anew meanwhile. The link is not used again.
	suspect bool
	shown   bool // there was a Waiting event
}

type slotState uint8

const (
	idle    slotState = iota // nothing sent, or answered
	waiting                  // not answered
	lost                     // given up, but the answer can still be received
)

// A link is a socket and the goroutine that waits for its answers.
type link struct {
	socket
	done chan struct{} // closed when the goroutine has ended
}

// An arrival is an answer, or the reason why no more can come.
type arrival struct {
	link *link
	from netip.Addr
	at   time.Duration
	err  error
}

func newPinger(cfg *Config, t *target.Target, n network, emit func(Event), start time.Time) *pinger {
	p := &pinger{
		cfg: cfg, target: t, net: n, emit: emit, start: start,
		slots:    make([]slot, cfg.Outstanding),
		arrivals: make(chan arrival, cfg.Outstanding),
		interim:  make(chan struct{}, 1),
	}
	if len(cfg.Targets) > 100 {
		p.rtts.Digits = 2
	}
	return p
}

func (p *pinger) now() time.Duration { return time.Since(p.start) }

// askInterim makes the pinger emit an Interim event soon.
func (p *pinger) askInterim() {
	select {
	case p.interim <- struct{}{}:
	default:
	}
}

// run pings until all is done, deadline is closed or ctx is done.
func (p *pinger) run(ctx context.Context, deadline <-chan struct{}) Report {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return p.finish(true)
		case <-deadline:
			return p.finish(false)
		default:
		}
		p.drain()
		now := p.now()
		p.expire(now)
		if p.mustSend() && now >= p.due && p.send(now) {
			continue
		}
		if p.isDone(now) {
			return p.finish(false)
		}
		timer.Reset(p.wakeAt() - now)
		select {
		case <-timer.C:
		case a := <-p.arrivals:
			p.take(a)
		case <-p.interim:
			p.emit(Event{Kind: Interim, Target: p.target, Report: p.snapshot()})
		case <-ctx.Done():
		case <-deadline:
		}
	}
}

func (p *pinger) mustSend() bool { return p.cfg.Count == 0 || p.attempts < p.cfg.Count }

// isDone reports whether there is nothing left to send or to wait for.
func (p *pinger) isDone(now time.Duration) bool {
	if p.mustSend() {
		return false
	}
	if p.oldest(waiting) == nil {
		return true
	}
	return p.cfg.Timeout == 0 && now >= p.lastSent+p.cfg.Interval
}

// wakeAt is when there is something to do even if no answer comes.
func (p *pinger) wakeAt() time.Duration {
	at := time.Duration(math.MaxInt64)
	switch {
	case p.mustSend() && p.held:
		at = p.oldest(waiting).sent + p.cfg.hold()
	case p.mustSend():
		at = p.due
	case p.cfg.Timeout == 0:
		at = p.lastSent + p.cfg.Interval
	}
	if s := p.oldest(waiting); s != nil && p.cfg.Timeout > 0 {
		at = min(at, s.sent+p.cfg.Timeout)
	}
	return at
}

// send sends the ping that is due. It returns false if that must wait because
// all slots are taken by pings that may yet be answered.
func (p *pinger) send(now time.Duration) bool {
	s := p.pick(now)
	if s == nil {
		p.held = true
		return false
	}
	if s.state != idle || s.suspect {
		p.replace(s)
	}
	if p.cfg.ReportWaiting {
		p.reportWaiting(now)
	}
	p.attempts++
	seq := p.attempts
	if p.held && !p.cfg.Flood {
		p.emit(Event{Kind: Delayed, Target: p.target, Seq: seq, Wait: now - p.due})
	}
	p.schedule(now)
	if s.link == nil {
		sock, err := p.net.Open(p.target)
		if err != nil {
			p.failed(seq, err)
			return true
		}
		s.link = p.watch(sock)
	}
	s.seq, s.sent, s.shown = seq, p.now(), false
	if err := s.link.Send(); err != nil {
		// The socket is not to be used again: a second answer to its last
		// ping would count as one to this.
		p.close(s)
		*s = slot{}
		p.failed(seq, err)
		return true
	}
	s.state = waiting
	p.lastSent = s.sent
	p.report.Sent++
	// On this host the answer may be there already.
	p.poll(s)
	return true
}

// pick chooses the slot for the next ping: in turn one without an unanswered
// ping, else that of the oldest lost one, else that of the oldest unanswered
// one if that has waited long enough. There may be none.
func (p *pinger) pick(now time.Duration) *slot {
	for i := range p.slots {
		j := (p.turn + i) % len(p.slots)
		if p.slots[j].state == idle {
			p.turn = (j + 1) % len(p.slots)
			return &p.slots[j]
		}
	}
	if s := p.oldest(lost); s != nil {
		return s
	}
	if s := p.oldest(waiting); now >= s.sent+p.cfg.hold() {
		return s
	}
	return nil
}

// oldest is the slot with the oldest ping in that state, or nil.
func (p *pinger) oldest(state slotState) *slot {
	var first *slot
	for i := range p.slots {
		if s := &p.slots[i]; s.state == state && (first == nil || s.seq < first.seq) {
			first = s
		}
	}
	return first
}

// schedule says when the ping after the one sent now is due: an interval after
// that one was due, so that nothing adds up. What could not be sent
// in time is left out rather than sent in a burst.
func (p *pinger) schedule(now time.Duration) {
	held := p.held
	p.held = false
	if p.cfg.Flood {
		p.due = now
		return
	}
	next := p.due + p.cfg.Interval
	if next <= now && (held || now-next > maxBehind*p.cfg.Interval) {
		next = p.due + (now-p.due)/p.cfg.Interval*p.cfg.Interval + p.cfg.Interval
	}
	p.due = next
}

// reportWaiting emits an event, once, for each ping that has no answer although another
// is sent; in a flood, although it waits for an interval.
func (p *pinger) reportWaiting(now time.Duration) {
	for _, s := range p.bySeq(waiting) {
		if !s.shown && (!p.cfg.Flood || now >= s.sent+p.cfg.Interval) {
			s.shown = true
			p.emit(Event{Kind: Waiting, Target: p.target, Seq: s.seq, Wait: now - s.sent})
		}
	}
}

// bySeq lists the slots in that state, oldest ping first.
func (p *pinger) bySeq(state slotState) []*slot {
	var list []*slot
	for i := range p.slots {
		if s := &p.slots[i]; s.state == state {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *slot) int { return cmp.Compare(a.seq, b.seq) })
	return list
}

// expire gives up the pings that have waited for Config.Timeout.
func (p *pinger) expire(now time.Duration) {
	if p.cfg.Timeout == 0 {
		return
	}
	for {
		s := p.oldest(waiting)
		if s == nil || now < s.sent+p.cfg.Timeout {
			return
		}
		if p.poll(s); s.state == waiting {
			p.lose(s)
		}
	}
}

// lose counts the slot's ping as lost.
func (p *pinger) lose(s *slot) {
	s.state = lost
	p.report.Lost++
	p.emit(Event{Kind: Lost, Target: p.target, Seq: s.seq, Wait: p.now() - s.sent})
}

// failed counts a ping that could not be sent.
func (p *pinger) failed(seq uint64, err error) {
	p.report.Errors++
	p.emit(Event{Kind: Failed, Target: p.target, Seq: seq, Err: err})
}

// watch starts the goroutine that waits for the socket's answers.
func (p *pinger) watch(s socket) *link {
	l := &link{s, make(chan struct{})}
	go func() {
		defer close(l.done)
		for {
			from, err := l.Receive()
			at := p.now()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			p.arrivals <- arrival{l, from, at, err}
			if err != nil {
				return
			}
		}
	}()
	return l
}

// poll takes the answers that are at the slot's socket.
func (p *pinger) poll(s *slot) {
	for {
		from, ok, err := s.link.TryReceive()
		if !ok && err == nil {
			return
		}
		p.take(arrival{s.link, from, p.now(), err})
		if err != nil {
			return
		}
	}
}

// drain takes the answers that the readers have received.
func (p *pinger) drain() {
	for {
		select {
		case a := <-p.arrivals:
			p.take(a)
		default:
			return
		}
	}
}

// take accounts for an answer.
func (p *pinger) take(a arrival) {
	i := slices.IndexFunc(p.slots, func(s slot) bool { return s.link == a.link })
	if i < 0 {
		return
	}
	s := &p.slots[i]
	if a.err != nil {
		s.suspect = true
		p.emit(Event{Kind: Failed, Target: p.target, Seq: s.seq, Err: a.err})
		return
	}
	e := Event{Target: p.target, Seq: s.seq, RTT: a.at - s.sent, From: a.from}
	switch s.state {
	case waiting:
		e.Kind = Reply
		p.report.Received++
		p.rtts.Record(e.RTT)
		s.suspect = e.RTT > p.cfg.hold()
	case lost:
		e.Kind = Late
		p.report.Late++
		p.rtts.Record(e.RTT)
		s.suspect = true
	case idle:
		e.Kind = Duplicate
		p.report.Duplicates++
		s.suspect = true
	}
	s.state = idle
	p.emit(e)
}

// replace closes the slot's link, after a last look for the answer. Without
// one the ping is lost.
func (p *pinger) replace(s *slot) {
	p.poll(s)
	p.close(s)
	if s.state == waiting {
		p.lose(s)
	}
	*s = slot{}
}

// close closes the slot's link and takes what its reader has received.
func (p *pinger) close(s *slot) {
	if s.link == nil {
		return
	}
	// What the kernel still had to send is dropped, and nobody cares.
	_ = s.link.Close()
	for {
		select {
		case a := <-p.arrivals:
			p.take(a)
			continue
		case <-s.link.done:
		}
		break
	}
	p.drain()
}

// finish ends the run: pings without an answer are lost, but for those that an
// interruption did not give the time they are due.
func (p *pinger) finish(interrupted bool) Report {
	elapsed := p.now()
	for i := range p.slots {
		if s := &p.slots[i]; s.link != nil {
			p.poll(s)
			p.close(s)
		}
	}
	for _, s := range p.bySeq(waiting) {
		if interrupted && elapsed < s.sent+p.cfg.wait() {
			continue
		}
		p.lose(s)
	}
	r := p.snapshot()
	r.Elapsed = elapsed
	return *r
}

// snapshot is the report on what was so far.
func (p *pinger) snapshot() *Report {
	r := p.report
	r.Outstanding = r.Sent - r.Received - r.Lost
	r.Elapsed = p.now()
	r.RTT, r.HasRTT = p.rtts.Summary()
	return &r
}
