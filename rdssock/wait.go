package rdssock

import (
	"errors"
	"os"
	"sync"
	"time"
)

// An event is what a waiter waits for.
type event struct {
	kind eventKind
	key  uint64
}

type eventKind uint8

const (
	eventReadable   eventKind = iota // a message can be read
	eventWritable                    // the send buffer has room
	eventCongestion                  // a port of the class key was relieved
	eventZerocopy                    // the buffer sent with the cookie key is free
	eventCompletion                  // the operation with the token key is done
)

// A waiter is one goroutine's interest in an event. It is in the table before
// the goroutine makes the attempt whose failure it waits on, so that nothing
// that happens in between is missed.
type waiter struct {
	event event
	woken chan struct{} // holds one token: look again
}

func newWaiter(e event) *waiter {
	return &waiter{event: e, woken: make(chan struct{}, 1)}
}

// A waitTable delivers events, in whichever call they were received, to those
// who wait for them.
type waitTable struct {
	mu      sync.Mutex
	waiters map[event][]*waiter
}

func (t *waitTable) add(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiters == nil {
		t.waiters = make(map[event][]*waiter)
	}
	t.waiters[w.event] = append(t.waiters[w.event], w)
}

func (t *waitTable) remove(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ws := t.waiters[w.event]
	for i := range ws {
		if ws[i] != w {
			continue
		}
		if len(ws) == 1 {
			delete(t.waiters, w.event)
			return
		}
		t.waiters[w.event] = append(ws[:i:i], ws[i+1:]...)
		return
	}
}

// first is the waiter that has waited longest for e, or nil.
func (t *waitTable) first(e event) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ws := t.waiters[e]; len(ws) > 0 {
		return ws[0]
	}
	return nil
}

// each calls f for all who wait for e.
func (t *waitTable) each(e event, f func(*waiter)) {
	t.mu.Lock()
	ws := t.waiters[e]
	t.mu.Unlock()
	// A slice in the table is never changed where a reader may look.
	for _, w := range ws {
		f(w)
	}
}

// A watch lets any number of goroutines wait for one direction of a
// descriptor. One of them, the leader, waits in the runtime's poller, learns
// what each edge brought, and passes the lead on when it has what it came for.
// No goroutine exists for it.
type watch struct {
	lead  chan struct{}                  // holds one token, which makes its taker the leader
	block func(func(uintptr) bool) error // RawConn.Read or Write
	until func(time.Time) error          // its deadline, used only to interrupt the leader
	learn func(fd uintptr)               // takes what an edge announced and wakes those concerned
	step  func(fd uintptr) bool          // for block, made once

	mu     sync.Mutex // of leader, which only the leader itself changes
	leader *waiter
}

func newWatch(block func(func(uintptr) bool) error, until func(time.Time) error, learn func(uintptr)) *watch {
	v := &watch{lead: make(chan struct{}, 1), block: block, until: until, learn: learn}
	v.step = func(fd uintptr) bool {
		v.learn(fd)
		return len(v.leader.woken) > 0
	}
	v.lead <- struct{}{}
	return v
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// wait returns nil once w is woken, and os.ErrDeadlineExceeded once done is closed.
func (v *watch) wait(w *waiter, done <-chan struct{}) error {
	for {
		select {
		case <-w.woken:
			return nil
		default:
		}
		select {
		case <-w.woken:
			return nil
		case <-done:
			return os.ErrDeadlineExceeded
		case <-v.lead:
			err := v.follow(w, done)
			v.lead <- struct{}{}
			if err != nil {
				return err
			}
		}
	}
}

// follow is the leader's part of wait: it returns when w is woken or the leader is interrupted.
func (v *watch) follow(w *waiter, done <-chan struct{}) error {
	v.setLeader(w)
	defer v.setLeader(nil)
	// Who wakes w, or closes done, does so before it interrupts: either it is
	// seen here, or the interruption comes after this reset.
	if err := v.until(time.Time{}); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	default:
	}
	if len(w.woken) > 0 {
		return nil
	}
	// The poller forgets older edges when block starts, hence one look before the
	// first wait.
	err := v.block(v.step)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

func (v *watch) setLeader(w *waiter) {
	v.mu.Lock()
	v.leader = w
	v.mu.Unlock()
}

// wake makes w look again, interrupting it if it leads. It is safe on a nil watch.
func (v *watch) wake(w *waiter) {
	select {
	case w.woken <- struct{}{}:
	default:
	}
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.leader == w {
		v.until(past)
	}
}

// interrupt makes the leader look at its deadline.
func (v *watch) interrupt() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.leader != nil {
		v.until(past)
	}
}

// A deadline is a point in time that many goroutines can select on and that
// can be moved while they do.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	expired chan struct{} // nil until somebody waits
	at      time.Time
	fire    func() // called after expired was closed, with mu held
}

// set moves the deadline; the zero time removes it.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.expired == nil {
		return
	}
	d.arm()
}

// done is closed when the deadline has passed.
func (d *deadline) done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expired == nil {
		d.expired = make(chan struct{})
		d.arm()
	}
	return d.expired
}

// arm makes expired agree with at. It is called with mu held.
func (d *deadline) arm() {
	closed := isClosed(d.expired)
	if d.at.IsZero() {
		if closed {
			d.expired = make(chan struct{})
		}
		return
	}
	wait := time.Until(d.at)
	if wait <= 0 {
		if !closed {
			close(d.expired)
			d.fire()
		}
		return
	}
	if closed {
		d.expired = make(chan struct{})
	}
	expired := d.expired
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer {
			close(expired)
			d.fire()
		}
	})
	d.timer = timer
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
