package rdma_test

import (
	"context"
	"net/netip"

	"github.com/rdskit/rdskit/rdma"
)

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
