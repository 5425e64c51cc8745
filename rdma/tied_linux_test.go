package rdma_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/rdma"
)

// The kernel does not make a broken connection anew while memory is registered on
// it. The message that offered it keeps it registered, and cannot be acknowledged
// any more.
func TestATiedRegistrationHoldsABrokenConnectionUntilItIsRevokedAndCanceled(t *testing.T) {
	owner, peer := pair(t)
	reconnect(t, owner, peer)
	ctx := within(t, patience)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All(), Tied: true}
	key := offer(t, owner, peer, &reg)
	if err := read(t, owner, peer, key^0x5500, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Fatalf("a wrong key: %v", err)
	}
	// One thread of the kernel takes down and makes all connections.
	unusedTOS++
	others := [2]*rdma.Conn{listenAt(t, addr(owner).Addr(), unusedTOS, nil), listenAt(t, addr(peer).Addr(), unusedTOS, nil)}
	if _, err := others[0].Socket().WriteToAddrPort([]byte("are you there?"), addr(others[1])); err != nil {
		t.Fatal(err)
	}
	op := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}}
	for _, step := range []func() error{
		func() error { return nil },
		reg.Revoke,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		if err := peer.StartRead(ctx, &op); err != nil {
			t.Fatal(err)
		}
		if err := op.Wait(within(t, 2*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the connection came back although memory is registered on it: %v", err)
		}
		if err := peer.Cancel(within(t, patience), addr(owner)); err != nil {
			t.Fatal(err)
		}
		if err := op.Wait(ctx); !errors.Is(err, rdma.ErrCanceled) {
			t.Errorf("canceled: %v", err)
		}
	}
	b := make([]byte, 20)
	if _, _, ok, err := others[1].Socket().TryReadFromAddrPort(b); ok || err != nil {
		t.Errorf("another connection was made meanwhile: %t, %v", ok, err)
	}
	if err := owner.Cancel(within(t, patience), addr(peer)); err != nil {
		t.Fatal(err)
	}
	if err := owner.FlushRegions(); err != nil {
		t.Fatal(err)
	}
	reconnect(t, owner, peer)
	if n, _, _, err := others[1].Receive(ctx, b); err != nil || n == 0 {
		t.Errorf("another connection: %d bytes, %v", n, err)
	}
}

// unusedTOS is a type of service for which there is no connection, once it is raised.
var unusedTOS uint8 = 100

func TestATiedOfferWaitsForTheConnectionWithinItsContext(t *testing.T) {
	owner, _ := pair(t)
	offered := allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All(), Tied: true}
	nowhere := netip.AddrPortFrom(netip.MustParseAddr("10.8.0.78"), 4000)
	began := time.Now()
	err := owner.Offer(within(t, 300*time.Millisecond), &reg, []byte("x"), nowhere)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no RDMA connection to 10.8.0.78") {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("it gave up after %v", took)
	}
	if reg.Key() != 0 {
		t.Error("it is registered")
	}
	if err := reg.Revoke(); !errors.Is(err, rdma.ErrNotRegistered) {
		t.Errorf("revoked: %v", err)
	}
}
