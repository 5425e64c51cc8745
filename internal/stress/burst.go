package stress

import "sync"

// A burst has a worker either send or receive, with Config.Bursty.
type burst struct {
	sending bool
	seen    int // changes of the shared mode that this worker followed; -1 without Bursty
	told    bool
}

// sends and receives say what the worker may do; without Bursty both.
func (b *burst) sends() bool { return b.sending }

func (b *burst) receives() bool { return !b.sending || !b.exclusive() }

func (b *burst) exclusive() bool { return b.seen >= 0 }

// step changes over when the flows are all full, or all empty.
func (b *burst) step(w *worker) {
	if !b.exclusive() {
		return
	}
	full, clear := true, true
	for _, f := range w.flows {
		clear = clear && f.Pending() == 0 && f.Owes() == 0
		full = full && f.Full() && f.Owes() == 0
	}
	ready := b.sending && full || !b.sending && clear
	shared := w.run.bursts
	if shared == nil {
		if ready {
			b.sending = !b.sending
		}
		return
	}
	if b.seen == shared.rounds() && ready && !b.told {
		b.told = true
		shared.ready()
	}
	if n := shared.rounds(); n != b.seen {
		b.seen, b.told = n, false
		b.sending = n%2 == 0
	}
}

// bursts has all workers change over together.
type bursts struct {
	mu      sync.Mutex
	workers int
	waiting int
	round   int
}

func (b *bursts) ready() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting++; b.waiting == b.workers {
		b.waiting = 0
		b.round++
	}
}

func (b *bursts) rounds() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.round
}
