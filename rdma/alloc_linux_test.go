//go:build !race

package rdma_test

import (
	"context"
	"testing"

	"github.com/rdskit/rdskit/rdma"
)

// Not with the race detector: a sync.Pool then drops some of what it is given.
func TestAnOperationUsedAgainAllocatesNothing(t *testing.T) {
	owner, peer := pair(t)
	ctx := context.Background()
	offered, local := allocate(t, 8192), allocate(t, 8192)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	op := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}, Payload: []byte("ack")}
	b := make([]byte, 100)
	if n := testing.AllocsPerRun(200, func() {
		if err := peer.StartWrite(ctx, &op); err != nil {
			t.Fatal(err)
		}
		if err := op.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := owner.Receive(ctx, b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations an operation", n)
	}
	mine := rdma.Registration{Memory: local.All(), Tied: true}
	if n := testing.AllocsPerRun(200, func() {
		if err := peer.Offer(ctx, &mine, b, addr(owner)); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := owner.Receive(ctx, b); err != nil {
			t.Fatal(err)
		}
		if err := mine.Release(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a registration", n)
	}
}
