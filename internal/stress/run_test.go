package stress

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

// openToNobody opens a run from host 1 to an address that nobody has.
func openToNobody(t *testing.T, cfg Config) *Run {
	t.Helper()
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Hosts(2), labtest.Root)
	h := labtest.Host(t, 1)
	ns, err := os.Open(h.NetNS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	cfg.Local, cfg.Peer, cfg.NetNS = h.IPv4(), netip.MustParseAddr("10.9.0.99"), int(ns.Fd())
	cfg.Shape.Layout, cfg.Shape.ReqSize, cfg.Shape.AckSize, cfg.MinReqSize = wire.Async, 100, 63, 100
	run, err := Open(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	run.Start()
	return run
}

// Who waits for a peer has nothing to make up for when it comes.
func TestARateCountsFromWhenRequestsBegin(t *testing.T) {
	const perSecond = 100
	run := openToNobody(t, Config{Port: 7200, Tasks: 1, Requests: true, Shape: flow.Shape{Depth: 1000}, Rate: perSecond})
	time.Sleep(300 * time.Millisecond)
	began := time.Now()
	run.Begin()
	time.Sleep(100 * time.Millisecond)
	var stats Stats
	run.Sample(&stats, nil)
	if most := uint64(time.Since(began).Seconds()*perSecond) + 2; stats.RequestsSent > most {
		t.Errorf("%d requests in %v, at %d a second", stats.RequestsSent, time.Since(began), perSecond)
	}
}

func TestWhoOnlyAnswersWaits(t *testing.T) {
	for i, rate := range []float64{0, 100} {
		run := openToNobody(t, Config{Port: uint16(7300 + 10*i), Tasks: 1, Shape: flow.Shape{Depth: 1}, Rate: rate})
		run.Begin()
		began := time.Now()
		time.Sleep(100 * time.Millisecond)
		var stats Stats
		run.Sample(&stats, nil)
		if most := uint64(time.Since(began)/time.Millisecond) + 10; stats.RequestsSent > 0 || stats.Waits > most {
			t.Errorf("rate %v: %d requests sent, and %d waits in %v", rate, stats.RequestsSent, stats.Waits, time.Since(began))
		}
	}
}
