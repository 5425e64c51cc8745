package rdssock_test

import (
	"errors"
	"math"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/rdssock"
)

func TestTransportFollowsTheAddress(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		want := rdssock.TransportLoopback
		if l.hosts > 0 {
			want = rdssock.TransportTCP
		}
		c := l.a.listen(t, 0, nil)
		if got := c.Transport(); got != want {
			t.Errorf("transport %v, want %v", got, want)
		}
		if c.Dialect() != cmsg.Mainline {
			t.Errorf("dialect %v, and this is a mainline kernel", c.Dialect())
		}
		if l.hosts > 0 {
			tcp := l.a.listen(t, 0, &rdssock.Config{Transport: rdssock.TransportTCP})
			if got := tcp.Transport(); got != rdssock.TransportTCP {
				t.Errorf("transport %v after asking for TCP", got)
			}
		}
	})
}

func TestBuffersAreGrantedInBytesOfPayload(t *testing.T) {
	needLab(t, 0)
	c := loopLinks[0].a.listen(t, 0, &rdssock.Config{SendBuffer: 3 << 20, ReceiveBuffer: 5 << 20})
	if got, err := c.SendBuffer(); got != 3<<20 || err != nil {
		t.Errorf("send buffer of %d bytes: %v", got, err)
	}
	if got, err := c.ReceiveBuffer(); got != 5<<20 || err != nil {
		t.Errorf("receive buffer of %d bytes: %v", got, err)
	}
	if got := c.MaxMessageSize(); got != 1<<20 {
		t.Errorf("messages of up to %d bytes, want 1 MiB", got)
	}
	if got, err := c.SetSendBuffer(5000); got != 5000 || err != nil {
		t.Errorf("send buffer of %d bytes: %v", got, err)
	}
	if got := c.MaxMessageSize(); got != 5000 {
		t.Errorf("messages of up to %d bytes, want 5000", got)
	}
	for _, bytes := range []int{0, -1, 1 << 30, math.MaxInt} {
		if _, err := c.SetReceiveBuffer(bytes); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("buffer of %d bytes: %v", bytes, err)
		}
	}
}

func TestMessageTooLongNamesTheLimit(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, &rdssock.Config{SendBuffer: 2 << 20, ReceiveBuffer: 4 << 20})
		if _, err := a.WriteToAddrPort(make([]byte, 1<<20), addr(b)); err != nil {
			t.Errorf("1 MiB: %v", err)
		}
		_, err := a.WriteToAddrPort(make([]byte, 1<<20+1), addr(b))
		if !errors.Is(err, rdssock.ErrMessageTooLong) || !errors.Is(err, syscall.EMSGSIZE) || !strings.Contains(err.Error(), "1048576") {
			t.Errorf("1 MiB and a byte: %v", err)
		}
		small, err := a.SetSendBuffer(10000)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.WriteToAddrPort(make([]byte, small), addr(b)); err != nil {
			t.Errorf("%d bytes into a buffer of as many: %v", small, err)
		}
		_, err = a.WriteToAddrPort(make([]byte, small+1), addr(b))
		if !errors.Is(err, rdssock.ErrMessageTooLong) || !strings.Contains(err.Error(), "SO_SNDBUF") ||
			!strings.Contains(err.Error(), "wmem_max") {
			t.Errorf("a byte more than the send buffer: %v", err)
		}
	})
}

func TestTOS(t *testing.T) {
	needLab(t, 2)
	loop := loopLinks[0].a.listen(t, 0, nil)
	if tos, err := loop.TOS(); tos != 0 || err != nil {
		t.Errorf("TOS %d: %v", tos, err)
	}
	if err := loop.SetTOS(3); !errors.Is(err, rdssock.ErrNotSupported) || !errors.Is(err, syscall.ENOTTY) {
		t.Errorf("TOS on loopback: %v", err)
	}
	if _, err := rdssock.Listen(netip.MustParseAddrPort("127.0.0.1:0"), &rdssock.Config{TOS: 3}); !errors.Is(err, rdssock.ErrNotSupported) {
		t.Errorf("TOS of Config on loopback: %v", err)
	}
	tcp := tcpLinks[0].a.listen(t, 0, &rdssock.Config{TOS: 200})
	if tos, err := tcp.TOS(); tos != 0 || err != nil {
		t.Errorf("TOS %d over TCP, which maps all to 0: %v", tos, err)
	}
}

func TestRecvErr(t *testing.T) {
	needLab(t, 0)
	c := loopLinks[0].a.listen(t, 0, nil)
	for _, on := range []bool{false, true, false} {
		if err := c.SetRecvErr(on); err != nil {
			t.Fatal(err)
		}
		if got, err := c.RecvErr(); got != on || err != nil {
			t.Errorf("RECVERR is %t, want %t: %v", got, on, err)
		}
	}
}

func TestRXPathPointsAreCheckedBeforeTheKernelSeesThem(t *testing.T) {
	needLab(t, 0)
	c := loopLinks[0].a.listen(t, 0, nil)
	for _, points := range [][]cmsg.RXPoint{
		nil,
		{cmsg.RXDelivery},
		{cmsg.RXHeaderToStart, cmsg.RXReassembly, cmsg.RXDelivery},
	} {
		if err := c.SetRXPath(points...); err != nil {
			t.Errorf("%v: %v", points, err)
		}
	}
	for _, points := range [][]cmsg.RXPoint{{3}, {255}, {0, 1, 2, 0}} {
		if err := c.SetRXPath(points...); !errors.Is(err, syscall.EFAULT) {
			t.Errorf("%v: %v", points, err)
		}
	}
}

func TestWhatOnlyUEKHasIsRefusedOnMainline(t *testing.T) {
	needLab(t, 0)
	c := loopLinks[0].a.listen(t, 0, nil)
	if err := c.ResetConnection(netip.MustParseAddr("127.0.0.2"), 0); !errors.Is(err, rdssock.ErrNotSupported) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("connection reset: %v", err)
	}
	if err := c.SetINQ(true); !errors.Is(err, rdssock.ErrNotSupported) {
		t.Errorf("INQ: %v", err)
	}
	if c.Transport() != rdssock.TransportLoopback {
		t.Errorf("transport is %v now", c.Transport())
	}
}

func TestRefusals(t *testing.T) {
	needLab(t, 2)
	ap := netip.MustParseAddrPort
	netns := netNS(t, tcpLinks[0].a.netns)
	for _, tt := range []struct {
		name  string
		local netip.AddrPort
		cfg   *rdssock.Config
		is    []error
		says  string
	}{
		{"wildcard", ap("0.0.0.0:0"), nil, []error{syscall.EINVAL}, "every address"},
		{"IPv6 wildcard", ap("[::]:0"), nil, []error{syscall.EINVAL}, "every address"},
		{"no address", netip.AddrPort{}, nil, []error{syscall.EINVAL}, "no local address"},
		{"multicast", ap("224.0.0.1:0"), nil, []error{syscall.EINVAL}, "multicast"},
		{"IPv6 multicast", ap("[ff02::1]:0"), nil, []error{syscall.EINVAL}, "multicast"},
		{"broadcast", ap("255.255.255.255:0"), nil, []error{syscall.EINVAL}, "broadcast"},
		{"link-local without zone", ap("[fe80::1]:0"), nil, []error{syscall.EINVAL}, "needs a zone"},
		{"link-local on no interface", ap("[fe80::1%nope]:0"), nil, []error{syscall.ENODEV}, "nope"},
		{"the kernel's port", ap("127.0.0.1:1"), nil, []error{syscall.EINVAL}, "kernel's own"},
		{"address of another host", ap("10.9.0.77:0"), &rdssock.Config{NetNS: netns}, []error{syscall.EADDRNOTAVAIL, rdssock.ErrNotLocal}, "10.9.0.77"},
		{"address of another namespace", ap("10.9.0.2:0"), &rdssock.Config{NetNS: netns}, []error{syscall.EADDRNOTAVAIL, rdssock.ErrNotLocal}, "10.9.0.2"},
		{"address of another host on TCP", ap("10.9.0.77:0"), &rdssock.Config{NetNS: netns, Transport: rdssock.TransportTCP},
			[]error{syscall.ENOPROTOOPT, rdssock.ErrNotLocal}, "10.9.0.77"},
		{"InfiniBand in a namespace", ap("10.9.0.1:0"), &rdssock.Config{NetNS: netns, Transport: rdssock.TransportInfiniBand},
			[]error{syscall.EPROTOTYPE, rdssock.ErrNotSupported}, "initial network namespace"},
		{"loopback transport", ap("127.0.0.1:0"), &rdssock.Config{Transport: rdssock.TransportLoopback}, []error{syscall.EINVAL}, "chosen by the kernel"},
		{"no transport", ap("127.0.0.1:0"), &rdssock.Config{Transport: 77}, []error{syscall.EINVAL}, "Transport(77)"},
		{"negative buffer", ap("127.0.0.1:0"), &rdssock.Config{SendBuffer: -1}, []error{syscall.EINVAL}, "negative"},
		{"namespace that is none", ap("127.0.0.1:0"), &rdssock.Config{NetNS: 1}, []error{syscall.EINVAL}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := rdssock.Listen(tt.local, tt.cfg)
			if err == nil {
				c.Close()
				t.Fatal("no error")
			}
			for _, is := range tt.is {
				if !errors.Is(err, is) {
					t.Errorf("%v is not %v", err, is)
				}
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q does not say %q", err, tt.says)
			}
			var sys *os.SyscallError
			if !errors.As(err, &sys) {
				t.Errorf("%v holds no *os.SyscallError", err)
			}
		})
	}

	c := loopLinks[0].a.listen(t, 0, nil)
	if _, err := rdssock.Listen(addr(c), nil); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "share one table") {
		t.Errorf("bound twice: %v", err)
	}
	for _, tt := range []struct {
		name string
		dst  netip.AddrPort
		is   error
	}{
		{"no destination", netip.AddrPort{}, syscall.ENOTCONN},
		{"wildcard", ap("0.0.0.0:4000"), syscall.EINVAL},
		{"multicast", ap("224.0.0.1:4000"), syscall.EINVAL},
		{"broadcast", ap("255.255.255.255:4000"), syscall.EINVAL},
		{"other family", ap("[::1]:4000"), syscall.EOPNOTSUPP},
		{"link-local without zone", ap("[fe80::1]:4000"), syscall.EINVAL},
	} {
		if _, err := c.WriteToAddrPort([]byte("x"), tt.dst); !errors.Is(err, tt.is) {
			t.Errorf("write to %s: %v", tt.name, err)
		}
	}
	for _, dst := range []string{"0.0.0.0:4000", "224.0.0.1:4000", "[::]:4000"} {
		if c, err := rdssock.Dial(ap(dst), nil); err == nil {
			c.Close()
			t.Errorf("Dial to %s", dst)
		}
	}
	if c, err := rdssock.Dial(ap("10.77.0.1:4000"), &rdssock.Config{NetNS: netns}); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("Dial without a route: %v, %v", c, err)
	}
}

func TestMappedAddressesAreIPv4(t *testing.T) {
	needLab(t, 0)
	c, err := rdssock.Listen(netip.MustParseAddrPort("[::ffff:127.0.0.1]:0"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !addr(c).Addr().Is4() {
		t.Errorf("bound to %v", addr(c))
	}
	mapped := netip.AddrPortFrom(netip.MustParseAddr("::ffff:127.0.0.1"), addr(c).Port())
	if _, err := c.WriteToAddrPort([]byte("x"), mapped); err != nil {
		t.Fatal(err)
	}
	if _, _, _, src, err := c.ReadMsgContext(soon(t), make([]byte, 8), nil); err != nil || src != addr(c) {
		t.Errorf("from %v: %v", src, err)
	}
	d, err := rdssock.Dial(mapped, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.RemoteAddr() != c.LocalAddr() {
		t.Errorf("connected to %v", d.RemoteAddr())
	}
}

func TestOpeningSocketsLeavesNoThreadInANamespace(t *testing.T) {
	needLab(t, 2)
	local := netip.AddrPortFrom(tcpLinks[0].a.addr, 0)
	netns := netNS(t, tcpLinks[0].a.netns)
	open := func(n int) {
		errs := make(chan error, n)
		for range n {
			go func() {
				c, err := rdssock.Listen(local, &rdssock.Config{NetNS: netns})
				if err == nil {
					err = c.Close()
				}
				errs <- err
			}()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
	open(100)
	before := threads(t)
	for range 10 {
		open(100)
	}
	after := threads(t)
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for id, ns := range after {
		if ns != home {
			t.Errorf("thread %s is left in %s", id, ns)
		}
	}
	// Each call has a thread for itself: as many may stay as ran at once.
	if len(after) > len(before)+100 {
		t.Errorf("%d threads, %d before another 1000 calls", len(after), len(before))
	}
}

// threads are the process's threads with the network namespace of each.
func threads(t *testing.T) map[string]string {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]string)
	for _, task := range tasks {
		if ns, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/net"); err == nil {
			m[task.Name()] = ns
		}
	}
	return m
}
