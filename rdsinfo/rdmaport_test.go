package rdsinfo

import (
	"net/netip"
	"testing"
)

func TestAGIDIsFoundOnTheActivePort(t *testing.T) {
	gid := func(index int, text string) GID { return GID{Index: index, GID: netip.MustParseAddr(text)} }
	ports := []RDMAPort{
		{Device: "rxe0", Port: 1, State: "DOWN", GIDs: []GID{gid(0, "fe80::1"), gid(1, "::ffff:10.8.0.1"), gid(2, "::ffff:10.8.0.2")}},
		{Device: "rxe1", Port: 1, State: "ACTIVE", GIDs: []GID{gid(0, "fe80::2"), gid(2, "::ffff:10.8.0.1"), gid(3, "::ffff:10.8.0.1"), gid(4, "fe80::77")}},
	}
	// Of two entries the one of RoCE v2 carries the address; over InfiniBand the GID does not tell.
	ports[1].GIDs[2].Addresses = []netip.Addr{netip.MustParseAddr("10.8.0.1")}
	ports[1].GIDs[3].Addresses = []netip.Addr{netip.MustParseAddr("10.7.0.1")}
	for _, tt := range []struct {
		gid, device string
		index       int
	}{
		{"10.8.0.1", "rxe1", 3},
		{"::ffff:10.8.0.1", "rxe1", 3},
		{"10.7.0.1", "rxe1", 4},
		{"10.8.0.2", "rxe0", 2},
		{"fe80::2%eth0", "rxe1", 0},
		{"10.8.0.3", "", 0},
		{"::", "", 0},
	} {
		p, g, ok := FindGID(ports, netip.MustParseAddr(tt.gid))
		if p.Device != tt.device || g.Index != tt.index || ok != (tt.device != "") {
			t.Errorf("%s: %+v, %+v, %t", tt.gid, p, g, ok)
		}
	}
}
