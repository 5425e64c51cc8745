package ping

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdskit/rdskit/internal/target"
)

var (
	peer  = netip.MustParseAddr("10.9.0.2")
	local = netip.MustParseAddr("10.9.0.1")
)

// A fakeNetwork is a network of any quality. Its fields are functions that the
// tests replace; ping numbers count from 1.
type fakeNetwork struct {
	// answer decides what comes of the n-th ping: each delay is that of one answer.
	answer func(n int) (delays []time.Duration)
	// openErr and sendErr, unless nil, make opening a socket or sending the n-th ping fail.
	openErr, sendErr func(n int) error
	from             netip.Addr // of answers, peer if invalid

	mu      sync.Mutex
	start   time.Time
	opens   int
	pings   int
	sentAt  []time.Duration
	open    int // sockets
	maxOpen int
	sockets []*fakeSocket // not kept if forget
	forget  bool
}

func within(d time.Duration) func(int) []time.Duration {
	return func(int) []time.Duration { return []time.Duration{d} }
}

func never(int) []time.Duration { return nil }

func (n *fakeNetwork) Open(*target.Target) (socket, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opens++
	if n.openErr != nil {
		if err := n.openErr(n.opens); err != nil {
			return nil, err
		}
	}
	n.open++
	n.maxOpen = max(n.maxOpen, n.open)
	s := &fakeSocket{net: n, in: make(chan answer, 16), closed: make(chan struct{})}
	if !n.forget {
		n.sockets = append(n.sockets, s)
	}
	return s, nil
}

type answer struct {
	from netip.Addr
	err  error
}

type fakeSocket struct {
	net    *fakeNetwork
	in     chan answer
	closed chan struct{}
	once   sync.Once
}

func (s *fakeSocket) Send() error {
	n := s.net
	n.mu.Lock()
	n.pings++
	ping := n.pings
	if !n.forget {
		n.sentAt = append(n.sentAt, time.Since(n.start))
	}
	from := n.from
	n.mu.Unlock()
	if n.sendErr != nil {
		if err := n.sendErr(ping); err != nil {
			return err
		}
	}
	if !from.IsValid() {
		from = peer
	}
	for _, d := range n.answer(ping) {
		if d == 0 {
			s.in <- answer{from: from}
			continue
		}
		time.AfterFunc(d, func() { s.deliver(answer{from: from}) })
	}
	return nil
}

func (s *fakeSocket) deliver(a answer) {
	select {
	case s.in <- a:
	case <-s.closed:
	}
}

func (s *fakeSocket) TryReceive() (netip.Addr, bool, error) {
	select {
	case a := <-s.in:
		return a.from, a.err == nil, a.err
	default:
		return netip.Addr{}, false, nil
	}
}

func (s *fakeSocket) Receive() (netip.Addr, error) {
	select {
	case a := <-s.in:
		return a.from, a.err
	case <-s.closed:
		return netip.Addr{}, net.ErrClosed
	}
}

func (s *fakeSocket) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.net.mu.Lock()
		s.net.open--
		s.net.mu.Unlock()
	})
	return nil
}

// A record is an event in short: what, which ping, and when or how long.
type record struct {
	Kind Kind
	Seq  uint64
	At   time.Duration // since the start of the run
	D    time.Duration // RTT or Wait
}

// simulate runs cfg on the network in virtual time.
func simulate(t *testing.T, cfg Config, n *fakeNetwork, during ...func(cancel context.CancelFunc, e Event)) (report Report, events []record) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n.start = time.Now()
		if len(cfg.Targets) == 0 {
			cfg.Targets = []target.Target{{Addr: peer, Source: local}}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reports, err := run(ctx, &cfg, n, func(e Event) {
			if e.Kind != Start && e.Kind != Summary {
				events = append(events, record{e.Kind, e.Seq, e.Time.Sub(n.start), max(e.RTT, e.Wait)})
			}
			for _, f := range during {
				f(cancel, e)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		report = reports[0]
		if n.open != 0 {
			t.Errorf("%d sockets are open at the end", n.open)
		}
	})
	r := report
	if r.Sent != r.Received+r.Lost+r.Outstanding || r.Late > r.Lost {
		t.Errorf("the counts do not add up: %+v", r)
	}
	return report, events
}

// count counts the events of a kind.
func count(events []record, k Kind) (n int) {
	for _, e := range events {
		if e.Kind == k {
			n++
		}
	}
	return n
}
