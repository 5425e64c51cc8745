package rdma_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/cmsg"
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

// What README and the documentation show.
func TestWhatOneSharesTheOtherFetches(t *testing.T) {
	owner, peer := pair(t)
	Example() // of the same hosts; it ends the process if it fails
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

// The device says which of its requests failed, and the kernel relates only the
// last one of an operation to it: 8 pages are one request of the device.
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
