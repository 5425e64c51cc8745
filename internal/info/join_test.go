package info

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/rdsinfo"
)

// joins are made up for the connections of the captures.
func joins() Joins {
	health := func(local, remote string, h rdsinfo.TCPHealth) rdsinfo.TCPHealth {
		h.Local, h.Remote, h.State = netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote), "ESTAB"
		return h
	}
	return Joins{
		TCP: NewTCPJoin([]rdsinfo.TCPHealth{
			health("10.9.0.1:41191", "10.9.0.2:16385", rdsinfo.TCPHealth{RTTMicros: 250, Retransmits: 3, Unacked: 1, Cwnd: 10}),
			health("10.9.0.1:42759", "10.9.0.2:16385", rdsinfo.TCPHealth{RTTMicros: 900, Retransmits: 4, Unacked: 2, Cwnd: 7}),
		}),
		Routes: NewRouteJoin([]rdsinfo.Peer{
			{Local: netip.MustParseAddr("10.9.0.1"), Remote: netip.MustParseAddr("10.9.0.2"), Device: "eth0", MTU: 1500, Neighbor: "reachable"},
			{Local: netip.MustParseAddr("10.9.0.1"), Remote: netip.MustParseAddr("10.9.0.99"), RouteError: "no entry of the routing table covers it"},
		}),
		RDMA: NewRDMAJoin([]rdsinfo.RDMAPort{{
			Device: "rxe0", Driver: "rdma_rxe", Port: 1, State: "ACTIVE", LinkLayer: "Ethernet", Rate: "2.5 Gb/sec (1X SDR)",
			GIDs: []rdsinfo.GID{{Index: 1, GID: netip.MustParseAddr("::ffff:10.8.0.1"), Type: "RoCE v2", NetDev: "d0"}, {Index: 3, GID: netip.MustParseAddr("fd08::1"), NetDev: "d 0\n"}},
		}}, []rdsinfo.RDMAConnection{
			{Device: "rxe0", Port: 1, Local: netip.MustParseAddr("10.8.0.1"), Remote: netip.MustParseAddr("10.8.0.2"), State: "CONNECT", QueuePair: 17, RemoteQueuePair: 18, QueuePairState: "RTS"},
			{Device: "rxe0", Port: 1, Local: netip.MustParseAddr("10.8.0.1"), Remote: netip.MustParseAddr("10.8.0.2"), State: "ROUTE_QUERY"},
			{Device: "rxe0", Port: 1, Local: netip.MustParseAddr("10.8.0.1"), Remote: netip.MustParseAddr("10.8.0.3"), State: "CONNECT", QueuePair: 99},
		}),
		Names: map[netip.Addr]string{netip.MustParseAddr("10.9.0.2"): "db2.example", netip.MustParseAddr("10.8.0.2"): "cell\x1b[2J"},
	}
}

func TestJoinsAppendColumns(t *testing.T) {
	for _, name := range []string{"uml-6.1.176-tcp", "debian-6.1.192-rxe"} {
		var got strings.Builder
		s := readCapture(t, name)
		for _, table := range []rdsinfo.Table{rdsinfo.IBConnections, rdsinfo.TCPSockets, rdsinfo.Sockets, rdsinfo.Connections, rdsinfo.ReceiveQueue, rdsinfo.SendQueue} {
			var plain, joined strings.Builder
			x := Text{IPv6: true}
			if err := x.Print(&plain, s, table); err != nil {
				continue // the capture has no such table
			}
			x.Joins = joins()
			if err := x.Print(&joined, s, table); err != nil {
				t.Fatal(err)
			}
			got.WriteString(joined.String())
			want := strings.Split(plain.String(), "\n")
			for i, line := range strings.Split(joined.String(), "\n") {
				if !strings.HasPrefix(line, want[i]) {
					t.Errorf("%q does not begin as without joins: %q", line, want[i])
				}
			}
		}
		golden(t, name+"/joins.txt", got.String())
	}
}

func TestJoinsFillFields(t *testing.T) {
	for _, name := range []string{"uml-6.1.176-tcp", "debian-6.1.192-rxe"} {
		var records []any
		j := JSON{Filter: filter(t, "peer=10.0.0.0/8"), Joins: joins()}
		for _, table := range []rdsinfo.Table{rdsinfo.IBConnections, rdsinfo.TCPSockets, rdsinfo.Sockets, rdsinfo.Connections, rdsinfo.ReceiveQueue} {
			_ = j.Each(readCapture(t, name), table, func(r any) { records = append(records, r) })
		}
		golden(t, name+"/joins.json", jsonLines(t, records))
	}
}
