package rdma

import (
	"net/netip"
	"testing"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdssock"
)

// What keeps a message behind a read is a flag, which writes do not need.
func TestReadsAreFencedUnlessTheyAreNotToBe(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	var conns [2]*Conn
	for i := range conns {
		sock, err := rdssock.Listen(netip.AddrPortFrom(labtest.HCA(t, i+1).IPv4(), 0), &rdssock.Config{Transport: rdssock.TransportInfiniBand})
		if err != nil {
			t.Fatal(err)
		}
		if conns[i], err = New(sock, nil); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	owner, peer := conns[0], conns[1]
	region, err := Allocate(8192)
	if err != nil {
		t.Fatal(err)
	}
	defer region.Close(t.Context())
	reg := Registration{Memory: region.Slice(0, 4096)}
	if err := owner.Register(t.Context(), &reg, netip.AddrPortFrom(peer.self.Addr(), 1)); err != nil {
		t.Fatal(err)
	}
	op := Operation{Peer: owner.sock.LocalAddr().(rdssock.Addr).AddrPort, Key: reg.Key(), Local: []Slice{region.Slice(4096, 4096)}}
	for _, test := range []struct {
		name    string
		noFence bool
		write   bool
		want    cmsg.Flags
	}{
		{"a read", false, false, cmsg.FlagFence | cmsg.FlagNotifyMe},
		{"a read without a fence", true, false, cmsg.FlagNotifyMe},
		{"a write", false, true, cmsg.FlagReadWrite | cmsg.FlagNotifyMe},
	} {
		op.NoFence = test.noFence
		start := peer.StartRead
		if test.write {
			start = peer.StartWrite
		}
		if err := start(t.Context(), &op); err != nil {
			t.Fatal(err)
		}
		if err := op.Wait(t.Context()); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		it := cmsg.Parse(peer.sock.Dialect(), op.control)
		if !it.Next() {
			t.Fatalf("%s: no control message", test.name)
		}
		if args, err := it.Message().RDMAArgs(); err != nil || args.Flags != test.want {
			t.Errorf("%s has flags %v, want %v; %v", test.name, args.Flags, test.want, err)
		}
	}
}
