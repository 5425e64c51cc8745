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

// silentRun sends from host 1 to an address that nobody has, until depth requests of each flow are queued.
func silentRun(t *testing.T, port uint16, tasks, depth int) *Run {
	t.Helper()
	h := labtest.Host(t, 1)
	ns, err := os.Open(h.NetNS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	run, err := Open(&Config{
		Local: h.IPv4(), Peer: netip.MustParseAddr("10.9.0.99"), Port: port, Tasks: tasks, Requests: true, NetNS: int(ns.Fd()),
		Shape: flow.Shape{Layout: wire.Async, Depth: depth, ReqSize: 100, AckSize: 63}, MinReqSize: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	run.Start()
	run.Begin()
	want := tasks * tasks * depth
	for deadline := time.Now().Add(30 * time.Second); queued(t, run) != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages are queued, want %d", queued(t, run), want)
		}
	}
	return run
}

func queued(t *testing.T, run *Run) int {
	t.Helper()
	n, err := run.Queued()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCancelEmptiesTheQueuesOfTheRunAlone(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Hosts(2), labtest.Root)
	run, other := silentRun(t, 7000, 2, 5), silentRun(t, 7100, 1, 3)
	run.Quiet()
	all, err := run.Cancel()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 4 {
		t.Errorf("%d destinations of 2 tasks that talk to 2: %v", len(all), all)
	}
	if n := queued(t, run); n != 0 {
		t.Errorf("%d messages are still queued", n)
	}
	if n := queued(t, other); n != 3 {
		t.Errorf("of another run, %d messages of 3 are queued", n)
	}
}
