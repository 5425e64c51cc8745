package stress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rdskit/rdskit/internal/stress/control"
)

// A Plan is when things happen in a run.
type Plan struct {
	// WarmUp is how long messages go before they count; requests start at half of it.
	WarmUp time.Duration
	// Duration is how long they count; 0 is until the context is done.
	Duration time.Duration
	// Interval is the time between samples.
	Interval time.Duration
	// AbortAfter ends the run on this side without a word to the other, as C does on SIGALRM. 0 is never.
	AbortAfter time.Duration
	// Processors has samples tell of processor time.
	Processors bool
	// Latencies has each sample tell of those of its interval, and of the Usage. Without it only the Summary has any.
	Latencies bool

	// A C peer says nothing while the run goes on. until is when it means to end it, counted from the start, 0 if that is not
	// known, and patience how long nothing may arrive of it that has to, 0 for ever: answers and, if it asks, its requests.
	until, patience time.Duration
	asks            bool
}

// silence is how long a peer of rdskit may say nothing: it speaks once a second. TCP gets over a cut of two seconds
// within it.
const silence = 7 * time.Second

// A frame is what two of rdskit tell each other while they run.
type frame struct {
	Type     string   `json:"type"` // wait, hello, ready, beat, hurry, stop, sent, verdict
	Hello    *hello   `json:"hello,omitempty"`
	Error    Said     `json:"error,omitempty"`
	Canceled bool     `json:"canceled,omitempty"` // of stop: messages that were queued, which will not arrive
	Sent     []uint32 `json:"sent,omitempty"`
	Verdict  *Verdict `json:"verdict,omitempty"`
}

const (
	frameWait    = "wait" // for another run to end
	frameHello   = "hello"
	frameReady   = "ready"
	frameBeat    = "beat"
	frameHurry   = "hurry" // somebody waits for the end
	frameStop    = "stop"
	frameSent    = "sent"
	frameVerdict = "verdict"
)

// frameLimit is the size of the longest frame of a run, in bytes: eleven for each flow.
func frameLimit(tasks int) int { return 64<<10 + 12*tasks*tasks }

// A session is one side of a run from the moment that both know what to do.
type session struct {
	cfg    *Config
	plan   Plan
	active bool
	conn   *control.Conn
	peer   bool // the other side is rdskit
	run    *Run
	notify func(Event)

	frames  chan frame
	gone    chan error // why the connection ended
	ended   chan struct{}
	stopped bool // the peer has said stop
	left    bool // the peer, of rds-tools, has ended the run
	torn    bool // either side canceled what it had queued
	summary Summary

	began     time.Time
	asked     bool          // a C peer has begun to send requests, which it does as fast as they are answered
	hurried   chan struct{} // closed when somebody waits for the end
	hurryOnce sync.Once
	usage     Usage
	procs     Processors
}

func (s *session) tell(e Event) {
	e.Time, e.Active, e.Config = time.Now(), s.active, s.cfg
	s.notify(e)
}

// note tells people something.
func (s *session) note(format string, args ...any) {
	s.tell(Event{Kind: Note, Text: fmt.Sprintf(format, args...)})
}

// noteBuffers tells of buffers that are too small.
func (s *session) noteBuffers() {
	for _, short := range s.run.Short() {
		s.note("%s: net.core.wmem_max and rmem_max cap it without CAP_NET_ADMIN", short)
	}
}

// ErrPeerGone says that the other side does not answer any more.
var ErrPeerGone = errors.New("the peer is gone")

// ErrPeerEnded says that the other side ended the run first.
var ErrPeerEnded = errors.New("the peer ended the run")

// A PeerError is what went wrong on the other side, in its words.
type PeerError struct{ Text Said }

func (e *PeerError) Error() string { return "the peer says: " + string(e.Text) }

// main goes through the run, and returns what it came to.
func (s *session) main(ctx context.Context) *Summary {
	s.frames, s.gone = make(chan frame, 16), make(chan error, 1)
	s.ended, s.hurried = make(chan struct{}), make(chan struct{})
	defer close(s.ended)
	defer context.AfterFunc(ctx, s.interrupted)()
	go s.listen()
	if s.peer {
		go s.beat()
	}
	abort := make(<-chan time.Time)
	if s.plan.AbortAfter > 0 {
		abort = time.After(s.plan.WarmUp + s.plan.AbortAfter)
	}

	s.noteBuffers()
	if s.active && !s.peer && s.plan.WarmUp < DefaultWarmUp {
		s.note("the peer, of rds-tools, sends requests from 2 seconds on and counts them from 4 on, whatever --warmup says")
	}
	s.began = time.Now()
	s.run.Start()
	s.tell(Event{Kind: Starting})
	err := s.warmUp(ctx, abort)
	if err == nil {
		s.tell(Event{Kind: Started, Transport: s.run.Transport()})
		err = s.measure(ctx, abort)
	}
	s.end(err)
	return &s.summary
}

// errDone says that the run ends as it should.
var errDone = errors.New("done")

// wait waits for a time, and returns early if the run has to end: errDone if it is over, or why.
func (s *session) wait(ctx context.Context, until time.Time, abort <-chan time.Time, each func()) error {
	if err := s.stuck(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	var pulse <-chan time.Time
	if each != nil {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		pulse = ticker.C
	}
	for {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return errDone
		case <-abort:
			return errAborted
		case <-s.run.Stopped():
			if err := s.run.Err(); err != nil {
				return err
			}
			return errDone
		case err := <-s.gone:
			s.gone <- err
			if err == nil {
				if s.active || s.early() {
					return ErrPeerEnded
				}
				s.left = true
				return errDone
			}
			return fmt.Errorf("%w: %w", ErrPeerGone, err)
		case f := <-s.frames:
			switch {
			case f.Error != "":
				return &PeerError{f.Error}
			case f.Type == frameStop:
				s.stopped, s.torn = true, f.Canceled
				return errDone
			}
		case <-pulse:
			each()
		}
	}
}

// Clocks and loads of two hosts differ: a C peer may end the run so much before its time, and after it.
const (
	earliness = 2 * time.Second
	lateness  = 10 * time.Second
)

// early says that it is not yet time for the end.
func (s *session) early() bool {
	return s.plan.until > 0 && time.Since(s.began) < s.plan.until-earliness
}

// stuck is what shows that a C peer does not run any more although its kernel keeps the connection.
func (s *session) stuck() error {
	if s.peer {
		return nil
	}
	if late := time.Since(s.began) - s.plan.until; s.plan.until > 0 && late > lateness {
		return fmt.Errorf("%w: it should have ended the run %.0f s ago", ErrPeerGone, late.Seconds())
	}
	if s.plan.patience == 0 {
		return nil
	}
	if silence := s.run.Silence(s.asked); silence > s.plan.patience {
		return fmt.Errorf("%w: nothing has arrived for %.0f s", ErrPeerGone, silence.Seconds())
	}
	return nil
}

// errAborted is --abort-after.
var errAborted = errors.New("aborted as asked")

// listen takes in what the peer says.
func (s *session) listen() {
	if !s.peer {
		s.gone <- s.conn.WaitClosed()
		return
	}
	limit := frameLimit(s.cfg.Tasks)
	for {
		var f frame
		if err := s.conn.Receive(&f, limit, silence); err != nil {
			s.gone <- err
			return
		}
		switch f.Type {
		case frameHurry:
			s.hurry()
			continue
		case frameBeat:
			continue
		}
		select {
		case s.frames <- f:
		case <-s.ended:
			return
		}
	}
}

// beat tells the peer that this side is there. What it cannot send shows in listen.
func (s *session) beat() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if s.conn.Send(frame{Type: frameBeat}) != nil {
				return
			}
		case <-s.ended:
			return
		}
	}
}

func (s *session) warmUp(ctx context.Context, abort <-chan time.Time) error {
	start, dots := time.Now(), 0
	dot := func() {
		dots++
		s.tell(Event{Kind: StartingUp})
	}
	if err := s.wait(ctx, start.Add(s.plan.WarmUp/2), abort, dot); err != nil {
		return err
	}
	s.run.Begin()
	err := s.wait(ctx, start.Add(s.plan.WarmUp), abort, dot)
	for err == nil && dots < int(s.plan.WarmUp/time.Second) {
		dot()
	}
	s.run.Forget(&s.summary.Whole)
	return err
}

// measure samples until the end.
func (s *session) measure(ctx context.Context, abort <-chan time.Time) error {
	start := time.Now()
	s.asked = s.plan.asks
	s.usage = usageNow()
	if s.plan.Processors {
		s.procs, _ = ReadProcessors() // a failure shows in the first sample
		s.summary.Measured.Processors = new(Processors)
	}
	first := s.usage
	firstProcs := s.procs
	last := start
	defer func() {
		m := &s.summary.Measured
		m.Total = last.Sub(start)
		m.Elapsed = m.Total
		m.Tasks = s.cfg.Tasks
		m.Usage = usageNow().Since(first)
		if m.Processors != nil {
			*m.Processors = s.procs.Since(firstProcs)
		}
		if !s.plan.Latencies {
			s.run.Sample(&s.summary.Whole, &m.Latencies)
		}
	}()
	for n := 1; ; n++ {
		next := start.Add(time.Duration(n) * s.plan.Interval)
		end := start.Add(s.plan.Duration)
		over := s.plan.Duration > 0 && !end.After(next)
		if over {
			next = end
		}
		err := s.wait(ctx, next, abort, nil)
		if err != nil && time.Since(last) < s.plan.Interval/10 {
			return err
		}
		now := time.Now()
		s.sample(n, now.Sub(last), now.Sub(start))
		last = now
		switch {
		case err != nil:
			return err
		case over:
			return errDone
		}
	}
}

func (s *session) sample(n int, elapsed, total time.Duration) {
	sample := Sample{Number: n, Elapsed: elapsed, Total: total, Tasks: s.cfg.Tasks}
	var latencies *Latencies
	if s.plan.Latencies {
		latencies = &sample.Latencies
	}
	s.run.Sample(&sample.Stats, latencies)
	sample.Keys = s.run.Keys()
	if s.plan.Latencies {
		now := usageNow()
		sample.Usage, s.usage = now.Since(s.usage), now
	}
	if s.plan.Processors {
		if procs, err := ReadProcessors(); err == nil {
			since := procs.Since(s.procs)
			sample.Processors, s.procs = &since, procs
		} else {
			s.note("%v", err)
		}
	}
	s.summary.Measured.Stats.Add(&sample.Stats)
	s.summary.Whole.Add(&sample.Stats)
	s.tell(Event{Kind: Interval, Sample: &sample})
	s.summary.Measured.Latencies.merge(&sample.Latencies)
	s.news()
}

// news tells of what was found.
func (s *session) news() {
	findings, outliers, more := s.run.News()
	for i := range findings {
		s.tell(Event{Kind: Found, Finding: &findings[i]})
	}
	for _, rtt := range outliers {
		s.tell(Event{Kind: Outlier, RTT: rtt})
	}
	if more > 0 {
		s.note("%d more round trips were longer than --show-outliers", more)
	}
}
