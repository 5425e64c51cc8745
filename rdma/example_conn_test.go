package rdma_test

import (
	"context"
	"errors"
	"log"
	"net/netip"
	"time"

	"github.com/rdskit/rdskit/rdma"
)

// Memory of any size is registered, and described to the peer in a message.
func ExampleConn_Register() {
	ctx := context.Background()
	owner, err := open("10.8.0.1:4000")
	if err != nil {
		log.Fatal(err)
	}
	defer owner.Close()
	region, err := rdma.Allocate(64 << 20)
	if err != nil {
		log.Fatal(err)
	}
	defer region.Close(ctx)
	peer := netip.MustParseAddrPort("10.8.0.2:4000")
	reg := &rdma.Registration{Memory: region.All()}
	if err := owner.Register(ctx, reg, peer); err != nil {
		log.Fatal(err)
	}
	remote, err := reg.Remote()
	if err != nil {
		log.Fatal(err)
	}
	message, err := remote.MarshalBinary() // which the peer hands to UnmarshalBinary
	if err != nil {
		log.Fatal(err)
	}
	if _, err := owner.Socket().WriteToAddrPort(message, peer); err != nil {
		log.Fatal(err)
	}
}

// Several writes are under way at a time. Then each has its own outcome.
func ExampleConn_StartWrite() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := open("10.8.0.2:4000")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	_, key, peer, err := conn.Receive(ctx, nil) // along with Offer
	if err != nil {
		log.Fatal(err)
	}
	const n, size = 16, 64 << 10
	region, err := rdma.Allocate(n * size)
	if err != nil {
		log.Fatal(err)
	}
	defer region.Close(ctx)
	var ops [n]rdma.Operation
	for i := range ops {
		ops[i] = rdma.Operation{
			Peer: peer, Key: key, Offset: uint64(i * size),
			Local:  []rdma.Slice{region.Slice(i*size, size)},
			Silent: i < n-1, // the peer hears of the last alone
		}
		if err := conn.StartWrite(ctx, &ops[i]); err != nil {
			log.Fatal(err)
		}
	}
	for i := range ops {
		switch err := ops[i].Wait(ctx); {
		case errors.Is(err, rdma.ErrDropped), errors.Is(err, rdma.ErrFailed):
			log.Printf("write %d: the connection broke, it may be tried again", i)
		case err != nil:
			log.Fatal(err)
		}
	}
}
