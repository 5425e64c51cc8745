package rdma_test

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
)

func TestAKeyForUseOnceIsGoneAfterTheMessageOfAnOperation(t *testing.T) {
	owner, peer := pair(t)
	offered, local := allocate(t, 8192), allocate(t, 8192)
	for _, tied := range []bool{false, true} {
		reconnect(t, owner, peer)
		reg := rdma.Registration{Memory: offered.All(), UseOnce: true, Invalidate: true, Tied: tied}
		key := offer(t, owner, peer, &reg)
		if err := read(t, owner, peer, key, local.All()); err != nil {
			t.Fatal(err)
		}
		// The message arrives, and the registration is flushed in the background.
		if _, _, _, err := owner.Receive(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := owner.FlushRegions(); err != nil {
			t.Fatal(err)
		}
		if err := read(t, owner, peer, key, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
			t.Errorf("tied is %t: used twice: %v", tied, err)
		}
		if err := reg.Revoke(); err != nil {
			t.Errorf("tied is %t: revoking what was used: %v", tied, err)
		}
		if err := reg.Revoke(); !errors.Is(err, rdma.ErrNotRegistered) {
			t.Errorf("tied is %t: revoking twice: %v", tied, err)
		}
	}
}

func TestARevokedKeyIsRefusedAndOthersWork(t *testing.T) {
	owner, peer := pair(t)
	first, second, local := allocate(t, 4096), allocate(t, 4096), allocate(t, 4096)
	fill(second.Bytes(), 9)
	regs := []*rdma.Registration{{Memory: first.All()}, {Memory: second.All()}}
	keys := []cmsg.Key{offer(t, owner, peer, regs[0]), offer(t, owner, peer, regs[1])}
	if err := read(t, owner, peer, keys[0], local.All()); err != nil {
		t.Fatal(err)
	}
	// The acknowledgement of the offers came with the read's message.
	if err := regs[0].Revoke(); err != nil {
		t.Fatal(err)
	}
	if regs[0].Key() != 0 {
		t.Error("it has a key")
	}
	if err := read(t, owner, peer, keys[0], local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("a revoked key: %v", err)
	}
	retry(t, func() error { return read(t, owner, peer, keys[1], local.All()) })
	if !bytes.Equal(local.Bytes(), second.Bytes()) {
		t.Error("the other key brings something else")
	}
	// A Registration can be used again, also for other memory.
	regs[0].Memory = second.All()
	key := offer(t, owner, peer, regs[0])
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Error(err)
	}
	if _, err := regs[0].Remote(); err != nil {
		t.Error(err)
	}
}

// Without invalidation the kernel ends access when it flushes, not before.
func TestAReleasedKeyWorksUntilTheRegionsAreFlushed(t *testing.T) {
	owner, peer := pair(t)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Fatal(err)
	}
	if err := reg.Release(); err != nil {
		t.Fatal(err)
	}
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Errorf("released: %v", err)
	}
	if err := owner.FlushRegions(); err != nil {
		t.Fatal(err)
	}
	if err := read(t, owner, peer, key, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("released and flushed: %v", err)
	}
}

// The message that offers a key keeps the registration until it is acknowledged.
func TestRevokingTakesEffectWhenTheOfferIsAcknowledged(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	if err := owner.Socket().Flush(ctx); err != nil {
		t.Fatal(err)
	}
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	for q := 0; q == 0; { // until no acknowledgement is asked for
		pending, err := owner.Socket().Pending()
		if err != nil {
			t.Fatal(err)
		}
		if q = pending.Messages; q == 0 {
			key = offer(t, owner, peer, &reg)
		}
	}
	if err := reg.Revoke(); err != nil {
		t.Fatal(err)
	}
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Fatalf("the first use after a revocation whose offer is not acknowledged: %v", err)
	}
	// Its message brought the acknowledgement.
	if err := owner.FlushRegions(); err != nil {
		t.Fatal(err)
	}
	if err := read(t, owner, peer, key, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("the second use: %v", err)
	}
}

// A message may still hold the key when its socket is closed.
func TestAKeyOfAClosedConnIsRefused(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	peer := listen(t, 2, nil)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	rounds := 30
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		owner := listen(t, 1, nil)
		key := offer(t, owner, peer, &rdma.Registration{Memory: offered.All()})
		if err := owner.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		for began := time.Now(); err == nil; {
			if time.Since(began) > 10*time.Second {
				t.Fatal("the memory can still be read")
			}
			err = read(t, owner, peer, key, local.All())
		}
		if !errors.Is(err, rdma.ErrRemoteAccess) {
			t.Errorf("the key of a closed Conn: %v", err)
		}
		reconnect(t, listen(t, 1, nil), peer)
	}
}

func TestARegionRevokesItsKeysWhenItIsClosed(t *testing.T) {
	owner, peer := pair(t)
	local := allocate(t, 4096)
	offered, err := rdma.Allocate(4096)
	if err != nil {
		t.Fatal(err)
	}
	regs := []rdma.Registration{{Memory: offered.All()}, {Memory: offered.Slice(0, 10)}}
	key := offer(t, owner, peer, &regs[0])
	offer(t, owner, peer, &regs[1])
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Fatal(err)
	}
	if err := offered.Close(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if regs[0].Key() != 0 || regs[1].Key() != 0 {
		t.Error("there is a key")
	}
	if err := read(t, owner, peer, key, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("a key of a closed region: %v", err)
	}
}

func TestARegionOfAClosedSocketIsClosedToo(t *testing.T) {
	owner, peer := pair(t)
	offered, err := rdma.Allocate(4096)
	if err != nil {
		t.Fatal(err)
	}
	reg := rdma.Registration{Memory: offered.All()}
	offer(t, owner, peer, &reg)
	if err := owner.Socket().Close(); err != nil {
		t.Fatal(err)
	}
	if err := offered.Close(within(t, patience)); err != nil {
		t.Error(err)
	}
	again := rdma.Registration{Memory: allocate(t, 1).All()}
	for _, tied := range []bool{false, true} {
		again.Tied = tied
		if err := owner.Offer(t.Context(), &again, nil, addr(peer)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("offered on a closed socket: %v", err)
		}
	}
}
