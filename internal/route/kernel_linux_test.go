package route

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rdskit/rdskit/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var equateAddrs = cmpopts.EquateComparable(netip.Addr{})

func TestLookupOfLoopback(t *testing.T) {
	tests := []struct{ dst, source string }{
		{"127.0.0.1", "127.0.0.1"},
		{"127.1.2.3", "127.0.0.1"},
		{"::ffff:127.0.0.1", "127.0.0.1"},
		{"::1", "::1"},
	}
	for _, tt := range tests {
		t.Run(tt.dst, func(t *testing.T) {
			dst := netip.MustParseAddr(tt.dst)
			if dst.Is6() && !dst.Is4In6() {
				needLocal(t, tt.source)
			}
			got, err := Lookup(t.Context(), dst, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := Route{Source: netip.MustParseAddr(tt.source), Device: "lo", Index: 1, Type: Local, MTU: got.MTU}
			if diff := cmp.Diff(want, got, equateAddrs); diff != "" {
				t.Error("(-want +got)", diff)
			}
			if got.MTU < 1280 {
				t.Errorf("MTU %d", got.MTU)
			}
			byUDP, err := lookupUDP(t.Context(), query{dst: dst.Unmap()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Route{Source: want.Source}, byUDP, equateAddrs); diff != "" {
				t.Error("through UDP (-want +got)", diff)
			}
		})
	}
}

// needLocal skips where the host was set up without an address that is usually there.
func needLocal(t *testing.T, addr string) {
	t.Helper()
	if local, err := IsLocal(t.Context(), netip.MustParseAddr(addr), nil); err != nil || !local {
		t.Skipf("this host has no address %s (%v)", addr, err)
	}
}

func TestIsLocal(t *testing.T) {
	tests := []struct {
		addr, device string
		want         bool
	}{
		{addr: "127.0.0.1", want: true},
		{addr: "127.0.0.1", device: "lo", want: true},
		{addr: "127.200.0.1", want: true},
		{addr: "127.200.0.1", device: "lo", want: true},
		{addr: "::ffff:127.0.0.1", want: true},
		{addr: "0.0.0.0", want: true},
		{addr: "::", want: true},
		{addr: "192.0.2.77"},
		{addr: "192.0.2.77", device: "lo"},
		{addr: "2001:db8::77"},
		{addr: "fe80::77%lo"},
	}
	for _, tt := range tests {
		cfg := &Config{Device: tt.device}
		got, err := IsLocal(t.Context(), netip.MustParseAddr(tt.addr), cfg)
		if err != nil || got != tt.want {
			t.Errorf("IsLocal(%s, %q) = %v, %v", tt.addr, tt.device, got, err)
		}
		if tt.device != "" || netip.MustParseAddr(tt.addr).Zone() != "" {
			continue // a bound device does not restrict bind(2)
		}
		got, err = isLocalUDP(t.Context(), query{dst: netip.MustParseAddr(tt.addr).Unmap()})
		if err != nil && !errors.Is(err, syscall.EAFNOSUPPORT) || err == nil && got != tt.want {
			t.Errorf("isLocalUDP(%s) = %v, %v", tt.addr, got, err)
		}
	}
}

func TestAddressesOfLoopback(t *testing.T) {
	got, err := Addresses(t.Context(), &Config{Device: "lo"})
	if err != nil {
		t.Fatal(err)
	}
	want := Address{Prefix: netip.MustParsePrefix("127.0.0.1/8"), Device: "lo", Index: 1, Usable: true}
	if len(got) == 0 || got[0] != want {
		t.Errorf("got %+v, want %+v first", got, want)
	}
	for _, a := range got {
		if a.Device != "lo" {
			t.Errorf("%+v is not of lo", a)
		}
	}
	byIndex, err := Addresses(t.Context(), &Config{Device: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, byIndex, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Error("by index (-by name +by index)", diff)
	}
	all, err := Addresses(t.Context(), nil)
	if err != nil || len(all) < len(got) {
		t.Errorf("all addresses: %v, %v", all, err)
	}
}

func TestUnknownDevice(t *testing.T) {
	for _, device := range []string{"nosuch0", "2147483647", "a name of more than sixteen bytes", strings.Repeat("x", 300), "-1"} {
		cfg := &Config{Device: device}
		_, lookupErr := Lookup(t.Context(), netip.MustParseAddr("127.0.0.1"), cfg)
		_, addressesErr := Addresses(t.Context(), cfg)
		_, localErr := IsLocal(t.Context(), netip.MustParseAddr("127.0.0.1"), cfg)
		for _, err := range []error{lookupErr, addressesErr, localErr} {
			if !errors.Is(err, ErrNoDevice) || !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), device) {
				t.Errorf("device %q: %v", device, err)
			}
		}
	}
}

func TestSourceThatIsNotLocal(t *testing.T) {
	for dst, source := range map[string]string{"127.0.0.1": "192.0.2.77", "::1": "2001:db8::77"} {
		_, err := Lookup(t.Context(), netip.MustParseAddr(dst), &Config{Source: netip.MustParseAddr(source)})
		if !errors.Is(err, ErrNotLocal) || !errors.Is(err, syscall.EADDRNOTAVAIL) || !strings.Contains(err.Error(), source) {
			t.Errorf("source %s: %v", source, err)
		}
	}
	q := query{dst: netip.MustParseAddr("127.0.0.1"), source: netip.MustParseAddr("192.0.2.77")}
	if _, err := lookupUDP(t.Context(), q); !errors.Is(err, ErrNotLocal) {
		t.Errorf("through UDP: %v", err)
	}
}

func TestNetNSThatIsNone(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cfg := &Config{NetNS: int(f.Fd())}
	_, err = Lookup(t.Context(), netip.MustParseAddr("127.0.0.1"), cfg)
	if err == nil || !strings.Contains(err.Error(), "network namespace") || !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.EPERM) {
		t.Errorf("Lookup: %v", err)
	}
	_, err = lookupUDP(t.Context(), query{dst: netip.MustParseAddr("127.0.0.1"), netns: cfg.NetNS})
	if err == nil || !strings.Contains(err.Error(), "network namespace") {
		t.Errorf("through UDP: %v", err)
	}
}

// What they leave behind, TestMain finds.
func TestConcurrentLookups(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				for _, lookup := range []func() (Route, error){
					func() (Route, error) { return Lookup(t.Context(), netip.MustParseAddr("127.0.0.1"), nil) },
					func() (Route, error) { return lookupUDP(t.Context(), query{dst: netip.MustParseAddr("127.0.0.1")}) },
				} {
					if got, err := lookup(); err != nil || got.Source != netip.MustParseAddr("127.0.0.1") {
						t.Errorf("got %+v, %v", got, err)
					}
				}
				if _, err := Lookup(t.Context(), netip.MustParseAddr("127.0.0.1"), &Config{Device: "nosuch0"}); err == nil {
					t.Error("a device that does not exist was found")
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkLookup(b *testing.B) {
	dst := netip.MustParseAddr("127.0.0.1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Lookup(b.Context(), dst, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// labHost is a host of the lab whose routes the test may change.
func labHost(t *testing.T, n int) *Config {
	t.Helper()
	h := labtest.Host(t, n)
	f, err := os.Open(h.NetNS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &Config{NetNS: int(f.Fd())}
}

// ipOn runs the command ip in the namespace of a host.
func ipOn(t *testing.T, host, args string) {
	t.Helper()
	out, err := exec.Command("ip", append([]string{"-n", host}, strings.Fields(args)...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip -n %s %s: %v: %s", host, args, err, out)
	}
}

func TestLookupInAnotherNamespace(t *testing.T) {
	h1 := labHost(t, 1)
	for dst, source := range map[string]string{"10.9.0.2": "10.9.0.1", "fd00::2": "fd00::1"} {
		got, err := Lookup(t.Context(), netip.MustParseAddr(dst), h1)
		if err != nil {
			t.Fatal(err)
		}
		want := Route{Source: netip.MustParseAddr(source), Device: "eth0", Index: got.Index, Type: Unicast, MTU: 1500}
		if diff := cmp.Diff(want, got, equateAddrs); diff != "" {
			t.Error("(-want +got)", diff)
		}
		byUDP, err := lookupUDP(t.Context(), query{dst: netip.MustParseAddr(dst), netns: h1.NetNS})
		if err != nil || byUDP.Source != want.Source {
			t.Errorf("through UDP: %+v, %v", byUDP, err)
		}
		byUDP, err = lookupUDP(t.Context(), query{dst: netip.MustParseAddr(dst), netns: h1.NetNS, device: "eth0"})
		if err != nil || byUDP.Source != want.Source || byUDP.Device != "eth0" {
			t.Errorf("through UDP on eth0: %+v, %v", byUDP, err)
		}
	}
}

func TestLookupOfLinkLocal(t *testing.T) {
	h1 := labHost(t, 1)
	ipOn(t, "h1", "link add rtest0 type veth peer name rtest1")
	t.Cleanup(func() { ipOn(t, "h1", "link del rtest0") })
	ipOn(t, "h1", "link set rtest0 up")
	ipOn(t, "h1", "link set rtest1 up")
	ipOn(t, "h1", "addr add fe80::9/64 dev rtest0 nodad")
	for _, zone := range []string{"rtest0", ""} {
		cfg := *h1
		dst := netip.MustParseAddr("fe80::1")
		if zone == "" {
			cfg.Device = "rtest0"
		}
		got, err := Lookup(t.Context(), dst.WithZone(zone), &cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got.Device != "rtest0" || got.Source.Zone() != "rtest0" || !got.Source.IsLinkLocalUnicast() {
			t.Errorf("got %+v", got)
		}
		byUDP, err := lookupUDP(t.Context(), query{dst: dst, netns: h1.NetNS, device: "rtest0"})
		if err != nil || byUDP.Source != got.Source {
			t.Errorf("through UDP: %+v, %v; want source %v", byUDP, err, got.Source)
		}
	}
	for _, a := range []struct {
		addr string
		want bool
	}{{"fe80::9%rtest0", true}, {"fe80::9%eth0", false}, {"fd00::1", true}, {"fd00::2", false}, {"10.9.0.1", true}, {"10.9.0.2", false}} {
		got, err := IsLocal(t.Context(), netip.MustParseAddr(a.addr), h1)
		if err != nil || got != a.want {
			t.Errorf("IsLocal(%s) = %v, %v", a.addr, got, err)
		}
	}
}

func TestRefusedDestinations(t *testing.T) {
	h1 := labHost(t, 1)
	for i, typ := range []Type{Unreachable, Prohibit, Blackhole, Throw} {
		errno := []syscall.Errno{syscall.EHOSTUNREACH, syscall.EACCES, syscall.EINVAL, syscall.ENETUNREACH}[i]
		for _, prefix := range []string{fmt.Sprintf("10.5%d.0.0/24", i), fmt.Sprintf("fd5%d::/64", i)} {
			ipOn(t, "h1", fmt.Sprintf("route add %v %s", typ, prefix))
			t.Cleanup(func() { ipOn(t, "h1", fmt.Sprintf("route del %v %s", typ, prefix)) })
			dst := netip.MustParsePrefix(prefix).Addr().Next()
			want := typ
			if typ == Throw {
				want = 0 // the look-up goes on and finds none
			}
			_, err := Lookup(t.Context(), dst, h1)
			_, udpErr := lookupUDP(t.Context(), query{dst: dst, netns: h1.NetNS})
			for _, err := range []error{err, udpErr} {
				e, ok := errors.AsType[*Error](err)
				if !ok || e.Type != want || !errors.Is(err, ErrNoRoute) || !errors.Is(err, errno) {
					t.Errorf("%v route, destination %v: %v", typ, dst, err)
				}
			}
		}
	}
}

func TestReasonsAHostCannotBeReached(t *testing.T) {
	h3 := labHost(t, 3)
	lookupOn := func(dst, device string) error {
		cfg := *h3
		cfg.Device = device
		_, err := Lookup(t.Context(), netip.MustParseAddr(dst), &cfg)
		return err
	}
	check := func(err, kind error, says string) {
		t.Helper()
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %v and %q", err, kind, says)
		}
	}
	ipOn(t, "h3", "link add rtest0 type veth peer name rtest1")
	t.Cleanup(func() { ipOn(t, "h3", "link del rtest0") })
	check(lookupOn("10.77.0.1", "rtest0"), ErrNoRoute, "rtest0 is down")
	ipOn(t, "h3", "link set rtest0 up")
	ipOn(t, "h3", "link set rtest1 up")
	if err := lookupOn("10.77.0.1", "eth0"); err != nil {
		t.Errorf("no route, but a device: the kernel takes the host as on its link, got %v", err)
	}
	err := labtest.Host(t, 3).Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/rtest0/disable_ipv6", []byte("1"), 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	check(lookupOn("fd77::1", "rtest0"), ErrNoRoute, "IPv6 is disabled")
	check(lookupOn("fd77::1", "eth0"), ErrNoRoute, "no entry of the routing table")
}

// Threads that moved to a namespace must come back or end. That none is in one
// at the end, TestMain checks.
func TestLookupsInNamespacesDoNotPileUpThreads(t *testing.T) {
	h1, h2 := labHost(t, 1), labHost(t, 2)
	const atOnce = 20
	run := func(rounds int) {
		var wg sync.WaitGroup
		for i := range atOnce {
			cfg, dst := h1, netip.MustParseAddr("10.9.0.2")
			if i%2 == 1 {
				cfg, dst = h2, netip.MustParseAddr("10.9.0.1")
			}
			wg.Go(func() {
				for range rounds {
					got, err := Lookup(t.Context(), dst, cfg)
					byUDP, udpErr := lookupUDP(t.Context(), query{dst: dst, netns: cfg.NetNS})
					if err != nil || udpErr != nil || got.Source == dst || got.Source != byUDP.Source {
						t.Errorf("to %v: %+v, %v, %+v, %v", dst, got, err, byUDP, udpErr)
					}
				}
			})
		}
		wg.Wait()
	}
	threads := func() int {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		return len(tasks)
	}
	run(5)
	before := threads()
	run(12)
	if after := threads(); after > before+atOnce {
		t.Errorf("%d threads after 480 calls, %d at a time; %d before", after, atOnce, before)
	}
}
