package target

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/rdsinfo"
)

func TestTargetsOfConnections(t *testing.T) {
	connection := func(local, remote, transport string, tos uint8) rdsinfo.Connection {
		c := rdsinfo.Connection{Local: netip.MustParseAddr(local), Remote: netip.MustParseAddr(remote), Transport: transport}
		if c.Local.Is4() {
			c.TOS = rdsinfo.Optional[uint8]{Value: tos, Known: true}
		}
		return c
	}
	var own []netip.Addr
	for _, a := range []string{"127.0.0.1", "10.9.0.1", "fd00::1", "fe80::1%eth0"} {
		own = append(own, netip.MustParseAddr(a))
	}
	connections := []rdsinfo.Connection{
		connection("10.9.0.1", "10.9.0.2", "tcp", 0),
		connection("10.9.0.1", "10.9.0.2", "tcp", 0), // again
		connection("10.9.0.1", "10.9.0.2", "infiniband", 3),
		connection("10.9.0.2", "10.9.0.1", "tcp", 0), // another namespace's
		connection("10.9.0.1", "10.9.0.1", "loopback", 0),
		connection("127.0.0.9", "127.0.0.9", "loopback", 0),
		connection("127.0.0.1", "127.0.0.9", "loopback", 0), // not answered
		connection("fd00::1", "fd00::2", "tcp", 0),
		connection("fe80::1", "fe80::2", "tcp", 0),
		connection("fe80::9", "fe80::2", "tcp", 0), // another namespace's
	}
	want := []string{
		"10.9.0.1 10.9.0.2 tos 0 tcp", "10.9.0.1 10.9.0.2 tos 3 infiniband", "10.9.0.1 10.9.0.1 tos 0 loopback",
		"127.0.0.9 127.0.0.9 tos 0 loopback", "fd00::1 fd00::2 tos 0 tcp", "fe80::1%eth0 fe80::2%eth0 tos 0 tcp",
	}
	var got []string
	for _, t := range Along(connections, own) {
		got = append(got, t.Source.String()+" "+t.Addr.String()+" tos "+string('0'+rune(t.TOS))+" "+t.Transport.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
