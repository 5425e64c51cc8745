package rdma_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/rdma"
)

func TestMisuseIsAnError(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	var none context.Context
	ended, end := context.WithCancel(ctx)
	end()
	memory, local := allocate(t, 4096), allocate(t, 4096)
	key := offer(t, owner, peer, &rdma.Registration{Memory: memory.All()})
	closed, err := rdma.Allocate(4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(ctx); err != nil {
		t.Fatal(err)
	}
	const most = int(^uint(0) >> 1)
	offer := func(ctx context.Context, memory rdma.Slice, tied bool, to netip.AddrPort) error {
		return owner.Offer(ctx, &rdma.Registration{Memory: memory, Tied: tied}, nil, to)
	}
	register := func(ctx context.Context, memory rdma.Slice) error {
		return owner.Register(ctx, &rdma.Registration{Memory: memory}, addr(peer))
	}
	// One that cannot be started is not waited for.
	read := func(ctx context.Context, local rdma.Slice, offset uint64, to netip.AddrPort) error {
		op := &rdma.Operation{Peer: to, Key: key, Offset: offset, Local: []rdma.Slice{local}}
		err := peer.StartRead(ctx, op)
		if werr := op.Wait(context.Background()); (err != nil) != errors.Is(werr, rdma.ErrNotStarted) {
			t.Errorf("after %v waiting ends with %v", err, werr)
		}
		return err
	}
	transfer := func(ctx context.Context, remote rdma.Remote, offset int64) error {
		return peer.Read(ctx, &rdma.Transfer{Peer: addr(owner), Remote: remote, Offset: offset, Local: []rdma.Slice{local.All()}})
	}
	other := netip.MustParseAddrPort("[fd08::2]:4000")
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"an offer without a context", offer(none, memory.All(), false, addr(peer)), rdma.ErrNoContext},
		{"a registration without a context", register(none, memory.All()), rdma.ErrNoContext},
		{"a read without a context", read(none, local.All(), 0, addr(owner)), rdma.ErrNoContext},
		{"a transfer without a context", transfer(none, rdma.RemoteOf(key, 4096), 0), rdma.ErrNoContext},
		{"canceling without a context", owner.Cancel(none, addr(peer)), rdma.ErrNoContext},
		{"delivering without a context", owner.DeliverCompletions(none), rdma.ErrNoContext},
		{"closing a region without a context", memory.Close(none), rdma.ErrNoContext},
		{"an offer whose context has ended", offer(ended, memory.All(), false, addr(peer)), context.Canceled},
		{"a tied offer whose context has ended", offer(ended, memory.All(), true, addr(peer)), context.Canceled},
		{"a registration whose context has ended", register(ended, memory.All()), context.Canceled},
		{"a read whose context has ended", read(ended, local.All(), 0, addr(owner)), context.Canceled},
		{"an offer of no region", offer(ctx, rdma.Slice{}, false, addr(peer)), rdma.ErrRange},
		{"an offer beyond a region", offer(ctx, memory.Slice(1, most), false, addr(peer)), rdma.ErrRange},
		{"an offer from before a region", offer(ctx, memory.Slice(-1, 10), true, addr(peer)), rdma.ErrRange},
		{"an offer of a closed region", offer(ctx, closed.All(), false, addr(peer)), rdma.ErrRegionClosed},
		{"an offer of a zero Region", offer(ctx, new(rdma.Region).All(), false, addr(peer)), rdma.ErrRange},
		{"a registration of nothing", register(ctx, memory.Slice(5, 0)), rdma.ErrRange},
		{"an offer to nobody", offer(ctx, memory.All(), true, netip.AddrPort{}), syscall.ENOTCONN},
		{"an offer to another family", offer(ctx, memory.All(), true, other), errors.ErrUnsupported},
		{"a read into no region", read(ctx, rdma.Slice{}, 0, addr(owner)), rdma.ErrRange},
		{"a read into a closed region", read(ctx, closed.All(), 0, addr(owner)), rdma.ErrRegionClosed},
		{"a read of another family", read(ctx, local.All(), 0, other), errors.ErrUnsupported},
		{"a transfer from before a region", transfer(ctx, rdma.RemoteOf(key, 4096), -1), rdma.ErrRange},
		{"a transfer of less than nothing", transfer(ctx, rdma.RemoteOf(key, -1), 0), rdma.ErrRange},
		{"a transfer of more than there is", transfer(ctx, rdma.RemoteOf(key, 10), 0), rdma.ErrRange},
		{"a transfer without a key", transfer(ctx, rdma.RemoteOf(0, 4096), 0), rdma.ErrNotRegistered},
		{"waiting for what never began", new(rdma.Operation).Wait(ctx), rdma.ErrNotStarted},
		{"revoking what was never registered", new(rdma.Registration).Revoke(), rdma.ErrNotRegistered},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, test.err, test.want)
		}
	}
	if _, _, _, err := owner.Receive(none, nil); !errors.Is(err, rdma.ErrNoContext) {
		t.Errorf("receiving without a context: %v", err)
	}
	if owner.Outstanding() != 0 || peer.Outstanding() != 0 {
		t.Errorf("%d and %d operations outstanding", owner.Outstanding(), peer.Outstanding())
	}
	if err := read(ctx, local.All(), 0, addr(owner)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Who comes too late is told, and nothing of theirs is left.
func TestManyMayCloseAtOnce(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	local := allocate(t, 4096)
	key := offer(t, owner, peer, &rdma.Registration{Memory: allocate(t, 4096).All()})
	before := runtime.NumGoroutine()
	region, err := rdma.Allocate(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	conn := listen(t, 2, nil)
	var all sync.WaitGroup
	expect := func(name string, want ...error) func(error) {
		return func(err error) {
			for _, w := range append(want, nil) {
				if errors.Is(err, w) {
					return
				}
			}
			t.Errorf("%s: %v", name, err)
		}
	}
	const n = 20
	ops := make([]rdma.Operation, n)
	for i := range n {
		all.Go(func() { expect("closing the Conn", net.ErrClosed)(conn.Close()) })
		all.Go(func() { expect("closing the Region")(region.Close(ctx)) })
		all.Go(func() {
			_, _, _, err := conn.Receive(ctx, nil)
			expect("receiving", net.ErrClosed)(err)
		})
		all.Go(func() {
			reg := &rdma.Registration{Memory: region.Slice(i, 1), Tied: i%2 == 0}
			expect("offering", net.ErrClosed)(conn.Offer(ctx, reg, nil, addr(peer)))
			expect("revoking", rdma.ErrNotRegistered)(reg.Revoke())
		})
		all.Go(func() {
			ops[i] = rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}, Silent: true}
			expect("starting", net.ErrClosed)(conn.StartRead(ctx, &ops[i]))
			expect("waiting", rdma.ErrNotStarted, rdma.ErrCanceled)(ops[i].Wait(ctx))
		})
		all.Go(func() {
			_, err := region.ReadAt(make([]byte, 10), int64(i))
			expect("reading", rdma.ErrRegionClosed)(err)
		})
	}
	all.Wait()
	if conn.Outstanding() != 0 || region.Bytes() != nil {
		t.Errorf("%d operations outstanding, %d bytes of memory", conn.Outstanding(), len(region.Bytes()))
	}
	for began := time.Now(); runtime.NumGoroutine() > before && time.Since(began) < patience; {
		time.Sleep(10 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines, before %d", now, before)
	}
}
