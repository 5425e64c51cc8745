package rdma_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
)

// One atomic operation on a device without masked ones blocks its connection.
// Cancel gives back the operations; the connection needs to be broken.
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
