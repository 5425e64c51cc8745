package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
)

// runRDMA runs both sides, each at an address of its own of the channel adapter, for a second.
func runRDMA(t *testing.T, port int, args string) (active, passive labtest.Result) {
	t.Helper()
	labtest.Need(t, labtest.RDMA)
	here, there := labtest.HCA(t, 1).IPv4().String(), labtest.HCA(t, 2).IPv4().String()
	server := labtest.StartOn(t, 0, labtest.Command(t, "-r", there, "-p", fmt.Sprint(port), "--percentiles"))
	active = labtest.RunOn(t, 0, append([]string{
		"-r", here, "-s", there, "-p", fmt.Sprint(port), "--connect-retries", "10", "-T", "1", "--warmup", "0.4",
	}, strings.Fields(args)...)...)
	passive = server.Finish(t)
	if active.Status != 0 || passive.Status != 0 {
		t.Fatalf("active %d, passive %d\n%s%s", active.Status, passive.Status, active.Stderr, passive.Stderr)
	}
	return active, passive
}

// operations runs with -v and sees that all went well, and that both directions count every byte.
func operations(t *testing.T, port int, args string) jsonEnd {
	t.Helper()
	a, p := runRDMA(t, port, args+" -v --json")
	e := end(t, a)
	if !e.OK || e.PeerFaults == nil || e.Unanswered != 0 {
		t.Errorf("%+v\n%s%s", e, a.Stderr, p.Stderr)
	}
	return e
}

// requests is how many of them the peer answered with an operation.
func (e *jsonEnd) requests(op string) uint64 {
	if l := e.RDMALatency[op]; l != nil {
		return l.Count
	}
	return 0
}

func TestRDMAMovesWhatItShould(t *testing.T) {
	for i, tt := range []struct {
		args          string
		bytes         uint64 // of an operation
		reads, writes bool
	}{
		{"-D 8K -M 1", 8 << 10, true, false},
		{"-D 8K -M 2 -I 4", 32 << 10, false, true},
		{"-D 64K -d 4 -t 2", 64 << 10, true, true},
		{"-D 1M", 1 << 20, true, true},
		{"-D 8K -d 8 --rdma-use-once 1", 8 << 10, true, true},
		{"-D 8K -d 4 --rdma-use-fence 0", 8 << 10, true, true},
		{"-D 8K -d 4 --rdma-cache-mrs 1", 8 << 10, true, true},
		{"-D 1001 -I 3 --rdma-alignment 13 -d 2 -o", 3003, true, true},
	} {
		t.Run(tt.args, func(t *testing.T) {
			e := operations(t, 5000+100*i, tt.args)
			read, written := e.requests("read"), e.requests("write")
			if (read > 0) != tt.reads || (written > 0) != tt.writes {
				t.Errorf("%d requests answered by reads, %d by writes", read, written)
			}
			// What comes in is written by the peer, or read by this side.
			if want := (written + e.RDMAReads) * tt.bytes; e.RDMAIn != want {
				t.Errorf("%d bytes in, want %d", e.RDMAIn, want)
			}
			if want := (read + e.RDMAWrites) * tt.bytes; e.RDMAOut != want {
				t.Errorf("%d bytes out, want %d", e.RDMAOut, want)
			}
		})
	}
}
