package rdssock

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A fakePoller stands in for one direction of a descriptor: block runs its
// function at once and after each edge, and ends when the deadline has passed.
type fakePoller struct {
	mu       sync.Mutex
	edges    chan struct{}
	deadline time.Time
	moved    chan struct{}
	closed   atomic.Bool
	blocked  atomic.Int32 // how many are in block now
	most     atomic.Int32 // how many were at once
}

func newFakePoller() *fakePoller {
	return &fakePoller{edges: make(chan struct{}, 16), moved: make(chan struct{}, 1)}
}

func (p *fakePoller) until(t time.Time) error {
	if p.closed.Load() {
		return os.ErrClosed
	}
	p.mu.Lock()
	p.deadline = t
	p.mu.Unlock()
	select {
	case p.moved <- struct{}{}:
	default:
	}
	return nil
}

func (p *fakePoller) expired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.deadline.IsZero() && p.deadline.Before(time.Now())
}

func (p *fakePoller) block(f func(uintptr) bool) error {
	n := p.blocked.Add(1)
	defer p.blocked.Add(-1)
	p.most.Store(max(p.most.Load(), n))
	for {
		if p.closed.Load() {
			return os.ErrClosed
		}
		if p.expired() {
			return os.ErrDeadlineExceeded
		}
		if f(0) {
			return nil
		}
		select {
		case <-p.edges:
		case <-p.moved:
		}
	}
}

func TestWatchPassesTheLeadOnUntilEveryWaiterIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePoller()
		var table waitTable
		var pending atomic.Int32 // events that the next looks will find
		var v *watch
		e := event{eventCongestion, 7}
		v = newWatch(p.block, p.until, func(uintptr) {
			for pending.Add(-1) >= 0 {
				if w := table.first(e); w != nil {
					table.remove(w)
					v.wake(w)
				}
			}
			pending.Store(0)
		})
		const n = 20
		var woken atomic.Int32
		for range n {
			w := newWaiter(e)
			table.add(w)
			go func() {
				if err := v.wait(w, nil); err != nil {
					t.Error(err)
				}
				woken.Add(1)
			}()
		}
		for i := range n {
			synctest.Wait()
			if got := int(woken.Load()); got != i {
				t.Fatalf("after %d events %d waiters are woken", i, got)
			}
			pending.Store(1)
			p.edges <- struct{}{}
		}
		synctest.Wait()
		if got := woken.Load(); got != n {
			t.Errorf("%d of %d waiters woken", got, n)
		}
		if got := p.most.Load(); got != 1 {
			t.Errorf("%d goroutines waited in the poller at once, want 1", got)
		}
	})
}

func TestWatchEndsLeaderAndFollowersAtTheirDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePoller()
		v := newWatch(p.block, p.until, func(uintptr) {})
		d := deadline{fire: v.interrupt}
		d.set(time.Now().Add(time.Hour))
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { errs <- v.wait(newWaiter(event{}), d.done()) }()
		}
		synctest.Wait()
		start := time.Now()
		d.set(start.Add(time.Second))
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v, want a passed deadline", err)
			}
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("woken after %v, want 1s", got)
		}
	})
}

func TestWatchWakesALeaderFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePoller()
		v := newWatch(p.block, p.until, func(uintptr) {})
		leader, follower := newWaiter(event{}), newWaiter(event{})
		order := make(chan string, 2)
		go func() { v.wait(leader, nil); order <- "leader" }()
		synctest.Wait()
		go func() { v.wait(follower, nil); order <- "follower" }()
		synctest.Wait()
		v.wake(leader)
		if got := <-order; got != "leader" {
			t.Errorf("%s woke first", got)
		}
		synctest.Wait()
		if p.blocked.Load() != 1 {
			t.Error("nobody took the lead over")
		}
		v.wake(follower)
		<-order
	})
}

func TestWatchReturnsWhenClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePoller()
		v := newWatch(p.block, p.until, func(uintptr) {})
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { errs <- v.wait(newWaiter(event{}), nil) }()
		}
		synctest.Wait()
		p.closed.Store(true)
		p.edges <- struct{}{}
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, os.ErrClosed) {
				t.Errorf("got %v, want closed", err)
			}
		}
	})
}

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fired atomic.Int32
		d := deadline{fire: func() { fired.Add(1) }}
		first := d.done()
		if isClosed(first) {
			t.Error("the zero deadline has passed")
		}
		d.set(time.Now().Add(-time.Second))
		if !isClosed(first) {
			t.Error("a deadline in the past has not passed")
		}
		d.set(time.Time{})
		second := d.done()
		if isClosed(second) {
			t.Error("a removed deadline has passed")
		}
		d.set(time.Now().Add(time.Second))
		d.set(time.Now().Add(time.Minute))
		time.Sleep(2 * time.Second)
		if isClosed(second) {
			t.Error("a deadline that was moved has passed")
		}
		time.Sleep(time.Minute)
		if !isClosed(second) {
			t.Error("the deadline has not passed")
		}
		if got := fired.Load(); got != 2 {
			t.Errorf("fired %d times, want 2", got)
		}
	})
}

func TestContextWakesTheWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePoller()
		v := newWatch(p.block, p.until, func(uintptr) {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := newWaiter(event{})
		defer context.AfterFunc(ctx, func() { v.wake(w) })()
		if err := v.wait(w, nil); err != nil {
			t.Fatal(err)
		}
		if ctx.Err() == nil {
			t.Error("woken before the context ended")
		}
	})
}
