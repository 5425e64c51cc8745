package ping

import (
	"context"
	"sync"
	"time"
)

// maxStagger is the most by which the first pings to two targets are apart. Targets that
// differ in their type of service only may share a connection, and kernels lose
// messages that are sent while one with several paths is being made.
const maxStagger = 50 * time.Millisecond

// Run pings the targets of cfg until their pings are used up, the deadline
// passes or ctx is done, and returns a report for each target, in order.
// Being interrupted by ctx is no error.
//
// It calls notify for each event, one at a time: Start for each target, what becomes of
// the pings, Summary for each target. A notify that blocks holds up the
// pings, but spoils no round trip.
func Run(ctx context.Context, cfg *Config, notify func(Event)) ([]Report, error) {
	return run(ctx, cfg, newRDSNetwork(cfg.NetNS), notify)
}

func run(ctx context.Context, cfg *Config, n network, notify func(Event)) ([]Report, error) {
	c, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	emit := func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		e.Time = time.Now()
		notify(e)
	}
	for i := range c.Targets {
		emit(Event{Kind: Start, Target: &c.Targets[i]})
	}

	start := time.Now()
	deadline := make(chan struct{})
	if c.Deadline > 0 {
		timer := time.AfterFunc(c.Deadline, func() { close(deadline) })
		defer timer.Stop()
	}
	stagger := min(c.Interval/time.Duration(len(c.Targets)), maxStagger)
	pingers := make([]*pinger, len(c.Targets))
	reports := make([]Report, len(c.Targets))
	var running sync.WaitGroup
	for i := range c.Targets {
		p := newPinger(&c, &c.Targets[i], n, emit, start)
		p.due = time.Duration(i) * stagger
		pingers[i] = p
		running.Go(func() { reports[i] = p.run(ctx, deadline) })
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	for {
		select {
		case <-c.Interim:
			for _, p := range pingers {
				p.askInterim()
			}
			continue
		case <-done:
		}
		break
	}
	for i := range c.Targets {
		emit(Event{Kind: Summary, Target: &c.Targets[i], Report: &reports[i]})
	}
	return reports, nil
}
