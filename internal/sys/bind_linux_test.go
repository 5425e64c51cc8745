package sys_test

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/labtest"
)

// refuseBind binds each address to a socket of its own.
func refuseBind(t *testing.T, errno syscall.Errno, addrs ...string) {
	t.Helper()
	for _, a := range addrs {
		t.Run(a, func(t *testing.T) {
			s := socket(t, 0)
			want(t, s.rawNamed(unix.SYS_BIND, sockaddr(addrPort(a), 0)), errno)
		})
	}
}

// sockaddr is a socket address, an IPv4-mapped one as sockaddr_in6.
func sockaddr(ap netip.AddrPort, scope uint32) []byte {
	var b [abi.SizeofSockaddrIn6]byte
	if ap.Addr().Is4() {
		return b[:abi.PutSockaddr(&b, ap, 0)]
	}
	ip := ap.Addr().As16()
	binary.NativeEndian.PutUint16(b[:], abi.AF_INET6)
	binary.BigEndian.PutUint16(b[2:], ap.Port())
	copy(b[8:], ip[:])
	binary.NativeEndian.PutUint32(b[24:], scope)
	return b[:]
}

// rawNamed is bind(2) or connect(2) with an address of any bytes.
func (s rds) rawNamed(trap uintptr, name []byte) (errno syscall.Errno) {
	s.t.Helper()
	s.do(func(fd uintptr) {
		_, _, errno = unix.Syscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(name))), uintptr(len(name)))
	})
	return errno
}

func TestBindRefusesTheWildcardAddress(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.IPv6)
	refuseBind(t, unix.EINVAL, "0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0")
}

func TestBindRefusesMulticastAndBroadcast(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.IPv6)
	refuseBind(t, unix.EINVAL, "224.0.0.1:0", "255.255.255.255:0", "[ff02::1]:0", "[::ffff:224.0.0.1]:0", "[::ffff:255.255.255.255]:0")
}

func TestBindRefusesALinkLocalAddressWithoutScope(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.IPv6)
	refuseBind(t, unix.EINVAL, "[fe80::1]:0")
}

func TestBindRefusesAnAddressThatIsNoneOfThisHost(t *testing.T) {
	needHosts(t, 2)
	refuseBind(t, unix.EADDRNOTAVAIL, "192.0.2.1:0", "[2001:db8::1]:0", "10.9.0.1:0")
}

func TestBindRefusesOtherFamiliesAndShortAddresses(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.IPv6)
	v4, v6 := sockaddr(addrPort("127.0.0.1:0"), 0), sockaddr(addrPort("[::1]:0"), 0)
	other := append([]byte(nil), v4...)
	binary.NativeEndian.PutUint16(other, unix.AF_UNIX)
	unspec := make([]byte, 16)
	for name, b := range map[string][]byte{
		"no family": v4[:1], "short IPv4": v4[:15], "short IPv6": v6[:27], "another family": other, "AF_UNSPEC": unspec,
	} {
		t.Run(name, func(t *testing.T) {
			s := socket(t, 0)
			want(t, s.rawNamed(unix.SYS_BIND, b), unix.EINVAL)
		})
	}
}

func TestBindHappensOnce(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	want(t, s.Bind(addrPort("127.0.0.1:0"), 0), unix.EINVAL)
	want(t, s.Bind(addrPort("127.0.0.2:0"), 0), unix.EINVAL)
}

func TestPortOneIsTheKernels(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	refuseBind(t, unix.EINVAL, "127.0.0.1:1")
}

func TestTheKernelChoosesAPortFromTwoOn(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	seen := map[uint16]bool{}
	for range 200 {
		port := loopback(t).name().Port()
		if port < 2 || seen[port] {
			t.Errorf("port %d", port)
		}
		seen[port] = true
	}
}

func TestPortsAreTheirAddresssOwnAndRDSsOwn(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.IPv6)
	s := loopback(t)
	port := s.name().Port()
	for a, errno := range map[string]syscall.Errno{"127.0.0.1": unix.EADDRINUSE, "127.0.0.2": 0, "::1": 0} {
		want(t, socket(t, 0).Bind(netip.AddrPortFrom(addr(a), port), 0), errno)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	want(t, unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}), 0)
}

func TestAllNamespacesShareOneTableOfPorts(t *testing.T) {
	needHosts(t, 2)
	s := bound(t, 1, addr("127.0.0.1"))
	want(t, socket(t, 2).Bind(s.name(), 0), unix.EADDRINUSE)
	want(t, socket(t, 0).Bind(s.name(), 0), unix.EADDRINUSE)
}

func TestCloseFreesThePortAtOnce(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	for range 20 {
		name := s.name()
		s.Close()
		s = socket(t, 0)
		want(t, s.Bind(name, 0), 0)
	}
}

func (s rds) transport() abi.Transport {
	s.t.Helper()
	n, err := s.GetsockoptInt(abi.SOL_RDS, abi.SO_RDS_TRANSPORT)
	if err != nil {
		s.t.Fatal(err)
	}
	return abi.Transport(n)
}

func TestTheAddressChoosesTheTransport(t *testing.T) {
	needHosts(t, 2)
	for a, transport := range map[string]abi.Transport{
		"127.0.0.1": abi.RDS_TRANS_LOOP,
		// No device has it.
		"127.77.0.1":       abi.RDS_TRANS_LOOP,
		"::1":              abi.RDS_TRANS_LOOP,
		"::ffff:127.0.0.1": abi.RDS_TRANS_LOOP,
		"10.9.0.1":         abi.RDS_TRANS_TCP,
		"fd00::1":          abi.RDS_TRANS_TCP,
	} {
		t.Run(a, func(t *testing.T) {
			s := socket(t, 1)
			if got := s.transport(); got != abi.RDS_TRANS_NONE {
				t.Errorf("transport %v before bind", got)
			}
			want(t, s.rawNamed(unix.SYS_BIND, sockaddr(netip.AddrPortFrom(addr(a), 0), 0)), 0)
			if got := s.transport(); got != transport {
				t.Errorf("transport %v, want %v", got, transport)
			}
			if got := s.name().Addr(); got != addr(a).Unmap() {
				t.Errorf("bound to %v", got)
			}
		})
	}
}

func TestAChosenTransportHasToServeTheAddress(t *testing.T) {
	needHosts(t, 2)
	s := socket(t, 1)
	s.set(abi.SOL_RDS, abi.SO_RDS_TRANSPORT, int(abi.RDS_TRANS_TCP))
	want(t, s.Bind(addrPort("192.0.2.1:0"), 0), unix.ENOPROTOOPT)
	// The choice stands, also for an address that loopback would serve.
	want(t, s.Bind(addrPort("127.0.0.1:0"), 0), 0)
	if got := s.transport(); got != abi.RDS_TRANS_TCP {
		t.Errorf("transport %v", got)
	}
}

func TestABindThatFailsOverThePortForgetsTheTransport(t *testing.T) {
	needHosts(t, 2)
	for name, port := range map[string]uint16{"taken": bound(t, 1, addr("127.0.0.1")).name().Port(), "reserved": 1} {
		t.Run(name, func(t *testing.T) {
			s := socket(t, 1)
			s.set(abi.SOL_RDS, abi.SO_RDS_TRANSPORT, int(abi.RDS_TRANS_TCP))
			if err := s.Bind(netip.AddrPortFrom(addr("127.0.0.1"), port), 0); err == nil {
				t.Fatal("bound")
			}
			if got := s.transport(); got != abi.RDS_TRANS_NONE {
				t.Errorf("transport %v", got)
			}
		})
	}
}

func TestSettingATransport(t *testing.T) {
	needHosts(t, 2)
	for _, tt := range []struct {
		name  string
		host  int
		value int
		errno syscall.Errno
	}{
		{"TCP", 1, int(abi.RDS_TRANS_TCP), 0},
		{"the number of iWARP", 0, int(abi.RDS_TRANS_GAP), unix.ENOPROTOOPT},
		{"InfiniBand outside the initial namespace", 1, int(abi.RDS_TRANS_IB), unix.EPROTOTYPE},
		{"loopback", 0, int(abi.RDS_TRANS_LOOP), unix.EINVAL},
		{"none", 0, int(abi.RDS_TRANS_NONE), unix.EINVAL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want(t, socket(t, tt.host).SetsockoptInt(abi.SOL_RDS, abi.SO_RDS_TRANSPORT, tt.value), tt.errno)
		})
	}
	t.Run("another length", func(t *testing.T) {
		want(t, socket(t, 0).Setsockopt(abi.SOL_RDS, abi.SO_RDS_TRANSPORT, make([]byte, 8)), unix.EINVAL)
	})
	t.Run("twice", func(t *testing.T) {
		s := socket(t, 1)
		s.set(abi.SOL_RDS, abi.SO_RDS_TRANSPORT, int(abi.RDS_TRANS_TCP))
		want(t, s.SetsockoptInt(abi.SOL_RDS, abi.SO_RDS_TRANSPORT, int(abi.RDS_TRANS_TCP)), unix.EOPNOTSUPP)
	})
	t.Run("after bind", func(t *testing.T) {
		want(t, loopback(t).SetsockoptInt(abi.SOL_RDS, abi.SO_RDS_TRANSPORT, int(abi.RDS_TRANS_TCP)), unix.EOPNOTSUPP)
	})
}

func TestConnectOnlyRecordsADestination(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	for _, dst := range []netip.AddrPort{dead, b.name()} {
		want(t, a.Connect(dst, 0), 0)
		if got, _, err := a.PeerName(); err != nil || got != dst {
			t.Errorf("connected to %v: %v", got, err)
		}
	}
	a.mustSend([]byte("by connect"), netip.AddrPort{})
	if got := b.get(); got.data != "by connect" {
		t.Errorf("received %+v", got)
	}
	// It filters nothing.
	other := bound(t, 2, addr("10.9.0.2"))
	other.mustSend([]byte("from another"), a.name())
	if got := a.get(); got.data != "from another" || got.src != other.name() {
		t.Errorf("received %+v", got)
	}
}

func TestConnectRefusals(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.IPv6)
	short := sockaddr(addrPort("127.0.0.1:5"), 0)[:15]
	for _, tt := range []struct {
		name  string
		addr  []byte
		errno syscall.Errno
	}{
		{"wildcard", sockaddr(addrPort("0.0.0.0:5"), 0), unix.EDESTADDRREQ},
		{"multicast", sockaddr(addrPort("224.0.0.1:5"), 0), unix.EINVAL},
		{"broadcast", sockaddr(addrPort("255.255.255.255:5"), 0), unix.EINVAL},
		{"IPv6 wildcard", sockaddr(addrPort("[::]:5"), 0), unix.EPROTOTYPE},
		{"IPv6 multicast", sockaddr(addrPort("[ff02::1]:5"), 0), unix.EPROTOTYPE},
		{"IPv4-mapped wildcard", sockaddr(addrPort("[::ffff:0.0.0.0]:5"), 0), unix.EPROTOTYPE},
		{"link-local without scope", sockaddr(addrPort("[fe80::1]:5"), 0), unix.EINVAL},
		{"too short", short, unix.EINVAL},
		{"AF_UNSPEC", make([]byte, 16), unix.EAFNOSUPPORT},
	} {
		t.Run(tt.name, func(t *testing.T) { want(t, socket(t, 0).rawNamed(unix.SYS_CONNECT, tt.addr), tt.errno) })
	}
}

// Not even a send tells, unless it names the destination.
func TestConnectDoesNotCompareFamilies(t *testing.T) {
	needHosts(t, 2)
	s := bound(t, 1, addr("10.9.0.1"))
	want(t, s.Connect(addrPort("[fd00::2]:5"), 0), 0)
	s.mustSend([]byte("goes nowhere"), netip.AddrPort{})
	eventually(t, "the message is queued", func() bool { return len(s.queue()) == 1 })
}
