package rdma_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

func TestOtherTransportsHaveNoRDMA(t *testing.T) {
	labtest.Need(t, labtest.TCP)
	for name, a := range map[string]string{"tcp": "127.0.0.1", "loopback": "127.0.0.1"} {
		cfg := &rdssock.Config{}
		if name == "tcp" {
			cfg.Transport = rdssock.TransportTCP
		}
		sock, err := rdssock.Listen(netip.AddrPortFrom(netip.MustParseAddr(a), 0), cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rdma.New(sock, nil)
		if !errors.Is(err, rdma.ErrNoRDMA) || !errors.Is(err, rdssock.ErrNotSupported) || !errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), "transport "+name) {
			t.Errorf("%s: %v", name, err)
		}
		// The socket is as it was.
		if _, err := sock.WriteToAddrPort(nil, sock.LocalAddr().(rdssock.Addr).AddrPort); err != nil {
			t.Error(err)
		}
		sock.Close()
	}
}

func TestAnOperationToNowhereIsUnderWayUntilItIsCanceled(t *testing.T) {
	_, peer := pair(t)
	local := allocate(t, 4096)
	nowhere := netip.AddrPortFrom(netip.MustParseAddr("10.8.0.77"), 4000)
	op := rdma.Operation{Peer: nowhere, Key: 1, Local: []rdma.Slice{local.All()}}
	if err := peer.StartRead(within(t, patience), &op); err != nil {
		t.Fatal(err)
	}
	short := within(t, 50*time.Millisecond)
	if err := op.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting: %v", err)
	}
	if err := peer.StartRead(short, &op); !errors.Is(err, rdma.ErrInUse) {
		t.Errorf("starting it again: %v", err)
	}
	if err := local.Close(within(t, 50*time.Millisecond)); !errors.Is(err, rdma.ErrInUse) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closing its region: %v", err)
	}
	if local.Bytes() == nil {
		t.Error("the memory is gone")
	}
	if n := peer.Outstanding(); n != 1 {
		t.Errorf("%d operations outstanding", n)
	}
	if err := peer.Cancel(within(t, patience), nowhere); err != nil {
		t.Fatal(err)
	}
	if err := op.Wait(within(t, patience)); !errors.Is(err, rdma.ErrCanceled) {
		t.Errorf("canceled: %v", err)
	}
	if n := peer.Outstanding(); n != 0 {
		t.Errorf("%d operations outstanding", n)
	}
	if err := local.Close(within(t, patience)); err != nil {
		t.Error(err)
	}
}

func TestCloseCancelsWhatIsUnderWay(t *testing.T) {
	_, peer := pair(t)
	local := allocate(t, 4096)
	nowhere := netip.AddrPortFrom(netip.MustParseAddr("10.8.0.77"), 4000)
	ctx := within(t, patience)
	var done atomic.Int32
	ops := make([]rdma.Operation, 30)
	waits := make(chan error, len(ops))
	for i := range ops {
		ops[i] = rdma.Operation{Peer: nowhere, Key: 1, Local: []rdma.Slice{local.All()}, Done: func(*rdma.Operation) { done.Add(1) }}
		if err := peer.StartWrite(ctx, &ops[i]); err != nil {
			t.Fatal(err)
		}
		go func() { waits <- ops[i].Wait(ctx) }()
	}
	time.Sleep(20 * time.Millisecond) // some wait by then
	if err := peer.Close(); err != nil {
		t.Error(err)
	}
	for range ops {
		if err := <-waits; !errors.Is(err, rdma.ErrCanceled) {
			t.Errorf("canceled: %v", err)
		}
	}
	if n := done.Load(); int(n) != len(ops) || peer.Outstanding() != 0 {
		t.Errorf("%d operations of %d have ended, %d are outstanding", n, len(ops), peer.Outstanding())
	}
	if err := peer.StartRead(ctx, &ops[0]); !errors.Is(err, net.ErrClosed) {
		t.Errorf("started on a closed Conn: %v", err)
	}
	if peer.Outstanding() != 0 {
		t.Errorf("%d are outstanding", peer.Outstanding())
	}
}

// A program that neither receives nor waits has DeliverCompletions.
func TestDoneIsCalledByWhoeverReceivesTheReport(t *testing.T) {
	owner, peer := pair(t)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	ctx, cancel := context.WithCancel(within(t, patience))
	delivered := make(chan error)
	go func() { delivered <- peer.DeliverCompletions(ctx) }()

	done := make(chan uint64, 100)
	ops := make([]rdma.Operation, cap(done))
	for i := range ops {
		ops[i] = rdma.Operation{
			Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}, Tag: uint64(i),
			Done: func(op *rdma.Operation) {
				if op.Err() != nil {
					t.Error(op.Err())
				}
				done <- op.Tag
			},
		}
		if err := peer.StartWrite(ctx, &ops[i]); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[uint64]bool)
	for range ops {
		select {
		case tag := <-done:
			seen[tag] = true
		case <-ctx.Done():
			t.Fatalf("%d of %d operations were reported", len(seen), len(ops))
		}
	}
	if len(seen) != len(ops) {
		t.Errorf("%d different operations of %d were reported", len(seen), len(ops))
	}
	cancel()
	if err := <-delivered; !errors.Is(err, context.Canceled) {
		t.Errorf("the end of delivery: %v", err)
	}
}
