package rdma_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

// The host 10.8.0.1 shares memory with 10.8.0.2, which reads it.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	owner, err := open("10.8.0.1:4000")
	if err != nil {
		log.Fatal(err)
	}
	defer owner.Close()
	reader, err := open("10.8.0.2:4000")
	if err != nil {
		log.Fatal(err)
	}
	defer reader.Close()

	shared, err := share(ctx, owner, netip.MustParseAddrPort("10.8.0.2:4000"))
	if err != nil {
		log.Fatal(err)
	}
	defer shared.Close(ctx)
	copy(shared.Bytes(), "hello")

	into, err := rdma.Allocate(5)
	if err != nil {
		log.Fatal(err)
	}
	defer into.Close(ctx)
	if err := fetch(ctx, reader, into); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", into.Bytes())
}

// open makes a socket that can do RDMA.
func open(address string) (*rdma.Conn, error) {
	cfg := &rdssock.Config{Transport: rdssock.TransportInfiniBand}
	sock, err := rdssock.Listen(netip.MustParseAddrPort(address), cfg)
	if err != nil {
		return nil, err
	}
	conn, err := rdma.New(sock, nil)
	if err != nil {
		sock.Close()
	}
	return conn, err
}

// share lets a peer read and write 1 MiB of memory.
func share(ctx context.Context, conn *rdma.Conn, peer netip.AddrPort) (*rdma.Region, error) {
	region, err := rdma.Allocate(1 << 20)
	if err != nil {
		return nil, err
	}
	return region, conn.Offer(ctx, &rdma.Registration{Memory: region.All()}, nil, peer)
}

// fetch reads what a peer shares, while the peer does nothing.
func fetch(ctx context.Context, conn *rdma.Conn, into *rdma.Region) error {
	_, key, peer, err := conn.Receive(ctx, nil)
	if err != nil {
		return err
	}
	remote := rdma.RemoteOf(key, into.Len())
	return conn.Read(ctx, &rdma.Transfer{Peer: peer, Remote: remote, Local: []rdma.Slice{into.All()}})
}
