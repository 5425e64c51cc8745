package rdma_test

import (
	"bytes"
	"testing"

	"github.com/rdskit/rdskit/rdma"
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
