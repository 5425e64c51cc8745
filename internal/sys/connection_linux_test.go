package sys_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/labtest"
)

func TestMessagesOutliveACutOfTheLink(t *testing.T) {
	needHosts(t, 2)
	h2 := labtest.Host(t, 2)
	a, b := pair(t)
	h2.Cut()
	const count = 20
	for i := range count {
		a.mustSend(fmt.Append(nil, i), b.name())
	}
	if got := len(a.queue()); got != count {
		t.Errorf("%d of %d messages are queued", got, count)
	}
	h2.Mend()
	for i := range count {
		if got := b.get(); got.data != fmt.Sprint(i) {
			t.Errorf("message %d arrived as %q", i, got.data)
		}
	}
	if got, ok := b.wait(0); ok {
		t.Errorf("one more: %+v", got)
	}
}

// ipv4 is the hosts' addresses as the tables have them.
var ipv4 = map[int][4]byte{1: hosts.Host{N: 1}.IPv4().As4(), 2: hosts.Host{N: 2}.IPv4().As4()}

func TestConnectionsStayWhenTheirSocketsAreClosed(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	a.Close()
	b.Close()
	for _, r := range socket(t, 1).table(abi.RDS_INFO_CONNECTIONS) {
		if [4]byte(r[16:]) == ipv4[1] && [4]byte(r[20:]) == ipv4[2] {
			if name := unix.ByteSliceToString(r[24:40]); name != "tcp" {
				t.Errorf("of transport %s", name)
			}
			return
		}
	}
	t.Error("no connection")
}

// The host with the lower address has made them, to the port of the other.
func TestEightTCPConnectionsJoinTwoAddresses(t *testing.T) {
	needHosts(t, 2)
	a, _ := pair(t)
	eventually(t, "eight", func() bool {
		n := 0
		for _, r := range a.table(abi.RDS_INFO_TCP_SOCKETS) {
			if [4]byte(r) == ipv4[1] && [4]byte(r[6:]) == ipv4[2] && binary.BigEndian.Uint16(r[10:]) == abi.RDS_TCP_PORT {
				n++
			}
		}
		return n == 8
	})
}

func TestEveryNamespaceListensOnTCPPort16385(t *testing.T) {
	needHosts(t, 2)
	look := func() error {
		b, err := os.ReadFile("/proc/thread-self/net/tcp6")
		if err == nil && !strings.Contains(string(b), fmt.Sprintf(":%04X %032d:0000 0A", abi.RDS_TCP_PORT, 0)) {
			t.Errorf("listeners:\n%s", b)
		}
		return err
	}
	for n := 1; n <= 2; n++ {
		if err := labtest.Host(t, n).Do(look); err != nil {
			t.Error(err)
		}
	}
	if err := look(); err != nil {
		t.Error(err)
	}
}

func TestScopesOfLinkLocalAddresses(t *testing.T) {
	needHosts(t, 2)
	var index uint32
	var local netip.Addr
	if err := labtest.Host(t, 1).Do(func() error {
		dev, err := net.InterfaceByName(hosts.Device)
		if err != nil {
			return err
		}
		index = uint32(dev.Index)
		as, err := dev.Addrs()
		for _, a := range as {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
				local = p.Addr()
			}
		}
		return err
	}); err != nil || !local.IsValid() {
		t.Fatalf("link-local address %v: %v", local, err)
	}
	s := socket(t, 1)
	// Until the kernel knows that nobody else has it, it is none of this host.
	eventually(t, "the address can be bound", func() bool {
		return s.Bind(netip.AddrPortFrom(local, 0), index) == nil
	})
	ap, scope, err := s.LocalName()
	if err != nil || ap.Addr() != local || scope != index {
		t.Errorf("bound to %v scope %d: %v", ap, scope, err)
	}
	to := addrPort("[fe80::99]:5")
	for _, tt := range []struct {
		name  string
		name6 []byte
		errno unix.Errno
	}{
		{"the link it is bound to", sockaddr(to, index), 0},
		{"no link", sockaddr(to, 0), unix.EINVAL},
		{"another link", sockaddr(to, index+1), unix.EINVAL},
		{"an address of any link", sockaddr(dead6, 0), 0},
	} {
		t.Run("send to "+tt.name, func(t *testing.T) {
			want(t, sending{from: s, data: []byte("x"), name: tt.name6}.send(), tt.errno)
		})
		if tt.errno == unix.EINVAL {
			t.Run("connect to "+tt.name, func(t *testing.T) {
				want(t, s.rawNamed(unix.SYS_CONNECT, tt.name6), tt.errno)
			})
		}
	}
	s2 := socket(t, 1)
	want(t, s2.rawNamed(unix.SYS_CONNECT, sockaddr(to, index+1)), 0)
	want(t, s2.Bind(netip.AddrPortFrom(local, 0), index), unix.EINVAL)
}
