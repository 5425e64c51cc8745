package rdma_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(envOwner); address != "" {
		fmt.Fprintln(os.Stderr, ownerMain(address))
		os.Exit(1)
	}
	labtest.Main(m)
}

// patience ends what hangs. A device that waits for a dead peer takes half a minute
// to let go of memory, and longer on a busy machine.
const patience = 2 * time.Minute

// within is a context for one test.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// listen opens a socket on the lab's n-th RDMA host.
func listen(t testing.TB, n int, cfg *rdma.Config) *rdma.Conn {
	t.Helper()
	return listenAt(t, labtest.HCA(t, n).IPv4(), 0, cfg)
}

func listenAt(t testing.TB, a netip.Addr, tos uint8, cfg *rdma.Config) *rdma.Conn {
	t.Helper()
	sock, err := rdssock.Listen(netip.AddrPortFrom(a, 0), &rdssock.Config{Transport: rdssock.TransportInfiniBand, TOS: tos})
	if err != nil {
		t.Fatal(err)
	}
	c, err := rdma.New(sock, cfg)
	if err != nil {
		sock.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// pair opens a socket on each RDMA host.
func pair(t testing.TB) (a, b *rdma.Conn) {
	t.Helper()
	labtest.Need(t, labtest.RDMA)
	return listen(t, 1, nil), listen(t, 2, nil)
}

// addr is where c can be written to.
func addr(c *rdma.Conn) netip.AddrPort { return c.Socket().LocalAddr().(rdssock.Addr).AddrPort }

// register registers memory of owner for peer, and returns what owner tells it.
func register(t testing.TB, ctx context.Context, owner, peer *rdma.Conn, memory rdma.Slice) rdma.Remote {
	t.Helper()
	reg := &rdma.Registration{Memory: memory}
	if err := owner.Register(ctx, reg, addr(peer)); err != nil {
		t.Fatal(err)
	}
	remote, err := reg.Remote()
	if err != nil {
		t.Fatal(err)
	}
	return remote
}

// allocate makes a region and closes it at the end of the test, which it fails if
// that does not work.
func allocate(t testing.TB, size int) *rdma.Region {
	t.Helper()
	r, err := rdma.Allocate(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Errorf("closing a region: %v", err)
		}
	})
	return r
}

// fill gives memory contents that depend on every byte of seed.
func fill(b []byte, seed uint64) {
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
}

// read is a read of all of local through key, to its end.
func read(t testing.TB, owner, peer *rdma.Conn, key cmsg.Key, local rdma.Slice) error {
	t.Helper()
	return do(t, peer.StartRead, &rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local}})
}

// reconnect waits until messages go both ways, which after a failure they do by a new connection.
func reconnect(t testing.TB, a, b *rdma.Conn) {
	t.Helper()
	ctx := within(t, patience)
	for _, to := range [][2]*rdma.Conn{{a, b}, {b, a}} {
		if _, err := to[0].Socket().WriteToAddrPort([]byte("are you there?"), addr(to[1])); err != nil {
			t.Fatal(err)
		}
		for b := make([]byte, 20); b[0] != 'a'; {
			if _, _, _, err := to[1].Receive(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
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
