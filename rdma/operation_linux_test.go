package rdma_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/sys"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

// What a message offers, its receiver reads and writes.
func TestAnOfferedRegionIsReadAndWritten(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	const size = 10_000
	offered := allocate(t, size)
	local := allocate(t, size)
	fill(offered.Bytes(), 1)

	reg := rdma.Registration{Memory: offered.All()}
	if err := owner.Offer(ctx, &reg, []byte("offer"), addr(peer)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, key, src, err := peer.Receive(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	if string(b[:n]) != "offer" || src != addr(owner) || key == 0 || key != reg.Key() {
		t.Fatalf("received %q from %v with key %v; %v gave %v", b[:n], src, key, addr(owner), reg.Key())
	}

	op := rdma.Operation{Peer: src, Key: key, Local: []rdma.Slice{local.All()}, Payload: []byte("read")}
	if err := peer.StartRead(ctx, &op); err != nil {
		t.Fatal(err)
	}
	if err := op.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(local.Bytes(), offered.Bytes()) {
		t.Error("a read brought something else")
	}

	fill(local.Bytes(), 2)
	op.Payload = []byte("written")
	if err := peer.StartWrite(ctx, &op); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"read", "written"} {
		n, key, src, err := owner.Receive(ctx, b)
		if err != nil || string(b[:n]) != want || key != 0 || src != addr(peer) {
			t.Fatalf("received %q from %v with key %v, %v; want %q", b[:n], src, key, err, want)
		}
	}
	// The message follows the write.
	if !bytes.Equal(local.Bytes(), offered.Bytes()) {
		t.Error("a write brought something else")
	}
	if err := op.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := reg.Revoke(); err != nil {
		t.Error(err)
	}
}

// What README shows.
func TestWhatOneSharesTheOtherFetches(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	shared, err := share(ctx, owner, addr(peer))
	if err != nil {
		t.Fatal(err)
	}
	fill(shared.Bytes(), 30)
	fetched := allocate(t, shared.Len())
	if err := fetch(ctx, peer, fetched); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(fetched.Bytes(), shared.Bytes()) {
		t.Error("something else was fetched")
	}
	if err := shared.Close(ctx); err != nil {
		t.Error(err)
	}
}

// offer registers memory of owner and hands its key to peer.
func offer(t testing.TB, owner, peer *rdma.Conn, reg *rdma.Registration) cmsg.Key {
	t.Helper()
	ctx := within(t, patience)
	if err := owner.Offer(ctx, reg, nil, addr(peer)); err != nil {
		t.Fatal(err)
	}
	_, key, _, err := peer.Receive(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key == 0 {
		t.Fatal("no key came with the message")
	}
	return key
}

// do runs one operation to its end.
func do(t testing.TB, start func(context.Context, *rdma.Operation) error, op *rdma.Operation) error {
	t.Helper()
	ctx := within(t, patience)
	if err := start(ctx, op); err != nil {
		t.Fatal(err)
	}
	return op.Wait(ctx)
}

func TestLocalSlicesAreOneAfterTheOtherInThePeersMemory(t *testing.T) {
	owner, peer := pair(t)
	const size = 1 << 20
	offered, local := allocate(t, size), allocate(t, size)
	fill(offered.Bytes(), 3)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)

	for _, test := range []struct {
		name   string
		offset int
		slices []rdma.Slice
	}{
		{"two halves in reverse", 0, []rdma.Slice{local.Slice(size/2, size/2), local.Slice(0, size/2)}},
		{"one byte each, from an odd place", 4095, []rdma.Slice{local.Slice(1, 1), local.Slice(4096, 1), local.Slice(3, 1)}},
		{"across a page", 5000, []rdma.Slice{local.Slice(4090, 20), local.Slice(10_000, 9000)}},
		{"as many as there may be", 777, many(local, 1024, 1000)},
	} {
		t.Run(test.name, func(t *testing.T) {
			clear(local.Bytes())
			op := rdma.Operation{Peer: addr(owner), Key: key, Offset: uint64(test.offset), Local: test.slices}
			if err := do(t, peer.StartRead, &op); err != nil {
				t.Fatal(err)
			}
			at := test.offset
			for i, s := range test.slices {
				if !bytes.Equal(s.Bytes(), offered.Bytes()[at:at+s.Len()]) {
					t.Fatalf("slice %d has something else", i)
				}
				at += s.Len()
			}
			was := bytes.Clone(offered.Bytes())
			for _, s := range test.slices {
				fill(s.Bytes(), uint64(test.offset))
			}
			if err := do(t, peer.StartWrite, &op); err != nil {
				t.Fatal(err)
			}
			at = test.offset
			for _, s := range test.slices {
				at += copy(was[at:], s.Bytes())
			}
			if !bytes.Equal(was, offered.Bytes()) {
				t.Error("a write changed something else")
			}
		})
	}
}

func many(r *rdma.Region, n, size int) []rdma.Slice {
	slices := make([]rdma.Slice, n)
	for i := range slices {
		slices[i] = r.Slice((n-1-i)*size, size)
	}
	return slices
}

// A key that the peer never gave is refused by its device, and the connection recovers.
func TestAWrongKeyIsARemoteErrorAndTheConnectionRecovers(t *testing.T) {
	owner, peer := pair(t)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	fill(offered.Bytes(), 4)

	wrong := rdma.Operation{Peer: addr(owner), Key: key ^ 0x5500, Local: []rdma.Slice{local.All()}, Payload: []byte("lost")}
	err := do(t, peer.StartRead, &wrong)
	var status *rdma.StatusError
	if !errors.Is(err, rdma.ErrRemoteAccess) || !errors.As(err, &status) || status.Status != cmsg.StatusRemoteError {
		t.Fatalf("a read with a wrong key: %v", err)
	}
	if n := peer.Outstanding(); n != 0 {
		t.Errorf("%d operations outstanding", n)
	}
	again := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}, Payload: []byte("again")}
	retry(t, func() error { return do(t, peer.StartRead, &again) })
	if !bytes.Equal(local.Bytes(), offered.Bytes()) {
		t.Error("a read brought something else")
	}
}

// The device says which of its requests failed, and the kernel relates only the last one of an
// operation to it: 8 pages are one request of the device.
func TestAWrongKeyOfALargeOperationIsReportedAsDropped(t *testing.T) {
	owner, peer := pair(t)
	page := os.Getpagesize()
	offered, local := allocate(t, 9*page), allocate(t, 9*page)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	for _, test := range []struct {
		pages int
		want  error
	}{
		{8, rdma.ErrRemoteAccess},
		{9, rdma.ErrDropped},
	} {
		reconnect(t, owner, peer)
		if err := read(t, owner, peer, key^0x5500, local.Slice(0, test.pages*page)); !errors.Is(err, test.want) {
			t.Errorf("%d pages: %v, want %v", test.pages, err, test.want)
		}
	}
}

// retry repeats what a broken connection makes fail until the connection is back.
func retry(t testing.TB, f func() error) {
	t.Helper()
	ctx := within(t, patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if !errors.Is(err, rdma.ErrDropped) && !errors.Is(err, rdma.ErrFailed) && !errors.Is(err, rdma.ErrRemoteAccess) {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Whole pages are exposed, and nothing beyond them.
func TestAKeyReachesTheWholePagesAndNoFurther(t *testing.T) {
	owner, peer := pair(t)
	page := os.Getpagesize()
	offered, local := allocate(t, 3*page), allocate(t, 3*page)
	fill(offered.Bytes(), 5)
	reg := rdma.Registration{Memory: offered.Slice(page+100, 200)}
	if before, after := reg.Exposed(); before != 100 || after != page-300 {
		t.Errorf("exposed are %d and %d bytes besides", before, after)
	}
	key := offer(t, owner, peer, &reg)
	op := rdma.Operation{Peer: addr(owner), Key: key, Offset: ^uint64(99), Local: []rdma.Slice{local.Slice(0, page)}}
	if err := do(t, peer.StartRead, &op); err != nil {
		t.Fatalf("the page that was not offered as a whole: %v", err)
	}
	if !bytes.Equal(local.Bytes()[:page], offered.Bytes()[page:2*page]) {
		t.Error("the page is another")
	}
	op.Local = []rdma.Slice{local.Slice(0, page+1)}
	if err := do(t, peer.StartRead, &op); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("a byte beyond the page: %v", err)
	}
}

func TestASilentOperationIsNotHeardOf(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All(), UseOnce: true}
	key := offer(t, owner, peer, &reg)
	fill(local.Bytes(), 6)
	op := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}, Silent: true}
	for range 300 { // more than the device's queue holds
		if err := do(t, peer.StartWrite, &op); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(local.Bytes(), offered.Bytes()) {
		t.Error("a silent write brought something else")
	}
	if q, err := peer.Socket().Pending(); err != nil || q.Messages > 20 {
		t.Errorf("%d messages stay with the kernel; %v", q.Messages, err)
	}
	if _, err := peer.Socket().WriteToAddrPort([]byte("last"), addr(owner)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if n, _, _, err := owner.Receive(ctx, b); err != nil || string(b[:n]) != "last" {
		t.Errorf("the owner heard %q, %v", b[:n], err)
	}
}

// What RDS_RDMA_SILENT does, which Operation.Silent does not use: the kernel reports such operations, and lets go of
// them, only after a later one.
func TestTheKernelsSilentFlagReportsOnlyAfterALaterMessage(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	fill(local.Bytes(), 6)
	if err := peer.Socket().Flush(ctx); err != nil {
		t.Fatal(err)
	}
	list := allocate(t, 4096) // names the local memory
	var e cmsg.Encoder
	e.AppendIovec(list.Bytes()[:0], cmsg.Iovec{Addr: sys.Address(local.Bytes()), Len: 4096})
	reports := make([]rdssock.Completion, 5)
	for i := range reports {
		oob := e.AppendRDMAArgs(nil, cmsg.RDMAArgs{
			Key: key, Remote: cmsg.Iovec{Len: 4096}, LocalAddr: sys.Address(list.Bytes()), LocalCount: 1,
			Flags: cmsg.FlagReadWrite | cmsg.FlagNotifyMe | cmsg.FlagSilent,
			Token: peer.Socket().ExpectCompletion(&reports[i], nil),
		})
		if _, _, err := peer.Socket().WriteMsgContext(ctx, nil, oob, addr(owner)); err != nil {
			t.Fatal(err)
		}
	}
	if err := reports[0].Wait(within(t, 300*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent operation was reported: %v", err)
	}
	for ctx.Err() == nil && !bytes.Equal(local.Bytes(), offered.Bytes()) {
		time.Sleep(10 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Error("it has not happened")
	}
	if q, err := peer.Socket().Pending(); err != nil || q.Messages != len(reports) {
		t.Errorf("the kernel keeps %d of %d silent operations; %v", q.Messages, len(reports), err)
	}
	op := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}}
	if err := do(t, peer.StartWrite, &op); err != nil {
		t.Fatal(err)
	}
	for i := range reports {
		if err := reports[i].Wait(ctx); err != nil {
			t.Errorf("after a later operation: %v", err)
		}
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

func TestOperationsThatTheKernelWouldRefuseSayWhy(t *testing.T) {
	_, peer := pair(t)
	local := allocate(t, 2<<20)
	closed := allocate(t, 1)
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := []rdma.Slice{local.Slice(0, 1)}
	for _, test := range []struct {
		name string
		op   *rdma.Operation
		want error
		text string
	}{
		{"no key", &rdma.Operation{Local: all}, rdma.ErrNotRegistered, "0 is no key"},
		{"no memory", &rdma.Operation{Key: 1}, rdma.ErrRange, "no local memory"},
		{"no bytes", &rdma.Operation{Key: 1, Local: []rdma.Slice{local.Slice(5, 0)}}, rdma.ErrRange, "0 bytes"},
		{"more than 1 MiB", &rdma.Operation{Key: 1, Local: []rdma.Slice{local.Slice(0, 1<<20), local.Slice(0, 1)}}, rdma.ErrTooLarge, "1048576"},
		{"1025 slices", &rdma.Operation{Key: 1, Local: many(local, 1025, 1)}, rdma.ErrTooLarge, "1025"},
		{"a slice out of range", &rdma.Operation{Key: 1, Local: []rdma.Slice{local.Slice(1<<21, 1)}}, rdma.ErrRange, "2097152"},
		{"a slice of nothing", &rdma.Operation{Key: 1, Local: []rdma.Slice{{}}}, rdma.ErrRange, "no region"},
		{"a closed region", &rdma.Operation{Key: 1, Local: []rdma.Slice{closed.All()}}, rdma.ErrRegionClosed, "closed"},
		{"a payload over the send buffer", &rdma.Operation{Key: 1, Local: all, Payload: make([]byte, 1<<20+1)}, rdssock.ErrMessageTooLong, "1048577"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.op.Peer = addr(peer)
			err := peer.StartRead(t.Context(), test.op)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("the error is %v", err)
			}
			if peer.Outstanding() != 0 {
				t.Error("it is outstanding")
			}
		})
	}
	var op rdma.Operation
	if err := op.Wait(t.Context()); err == nil {
		t.Error("waiting for what was not started is no error")
	}
}

// One atomic operation on a device without masked ones blocks its connection. Cancel gives back the
// operations; the connection needs to be broken.
func TestAtomicsAreRefusedAndBlockTheConnectionIfInsistedOn(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	// The connection of a type of service that nobody else uses.
	owner := listenAt(t, labtest.HCA(t, 1).IPv4(), 7, nil)
	peer := listenAt(t, labtest.HCA(t, 2).IPv4(), 7, &rdma.Config{Atomics: true})
	ctx := within(t, patience)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	op := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.Slice(0, 8)}}
	for name, call := range map[string]func(*rdma.Conn) (uint64, error){
		"fetch-add":           func(c *rdma.Conn) (uint64, error) { return c.FetchAdd(ctx, &op, 1) },
		"compare-swap":        func(c *rdma.Conn) (uint64, error) { return c.CompareSwap(ctx, &op, 1, 2) },
		"masked fetch-add":    func(c *rdma.Conn) (uint64, error) { return c.MaskedFetchAdd(ctx, &op, 1, 1) },
		"masked compare-swap": func(c *rdma.Conn) (uint64, error) { return c.MaskedCompareSwap(ctx, &op, 1, 2, 3, 4) },
	} {
		if _, err := call(owner); !errors.Is(err, rdma.ErrAtomics) || !errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), `device rxe0, driver "rdma_rxe"`) {
			t.Errorf("%s without insisting: %v", name, err)
		}
	}
	for _, bad := range []*rdma.Operation{
		{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.Slice(0, 7)}},
		{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.Slice(4, 8)}},
		{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.Slice(0, 8)}, Offset: 4},
	} {
		if _, err := peer.FetchAdd(ctx, bad, 1); !errors.Is(err, rdma.ErrRange) {
			t.Errorf("%d bytes at offset %d: %v", bad.Local[0].Len(), bad.Offset, err)
		}
	}
	if _, err := peer.FetchAdd(within(t, 200*time.Millisecond), &op, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("an atomic operation that blocks: %v", err)
	}
	behind := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}}
	if err := peer.StartRead(ctx, &behind); err != nil {
		t.Fatal(err)
	}
	if err := behind.Wait(within(t, 200*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what is behind it: %v", err)
	}
	if err := peer.Cancel(within(t, patience), addr(owner)); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*rdma.Operation{&op, &behind} {
		if err := o.Wait(ctx); !errors.Is(err, rdma.ErrCanceled) {
			t.Errorf("canceled: %v", err)
		}
	}
	if err := peer.StartRead(ctx, &behind); err != nil {
		t.Fatal(err)
	}
	if err := behind.Wait(within(t, 200*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what comes after canceling: %v", err)
	}
	if err := peer.Cancel(within(t, patience), addr(owner)); err != nil {
		t.Fatal(err)
	}
	if err := behind.Wait(ctx); !errors.Is(err, rdma.ErrCanceled) {
		t.Errorf("canceled: %v", err)
	}
	// A wrong key from the other side.
	breaking := rdma.Operation{Peer: addr(peer), Key: key ^ 0x5500, Local: []rdma.Slice{local.All()}}
	if err := do(t, owner.StartRead, &breaking); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("a wrong key: %v", err)
	}
	retry(t, func() error { return do(t, peer.StartRead, &behind) })
}
