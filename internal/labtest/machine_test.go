package labtest

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/rdssock"
)

func TestMain(m *testing.M) { Main(m) }

// dial connects from one host to a listener on another over TCP.
func dial(t *testing.T, from *Machine, to string) error {
	t.Helper()
	return from.Do(func() error {
		conn, err := net.DialTimeout("tcp", to, 2*time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func listen(t *testing.T, on *Machine, addr netip.Addr) string {
	t.Helper()
	var l net.Listener
	err := on.Do(func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestEveryHostReachesEveryOther(t *testing.T) {
	Need(t, IPv6, Hosts(3))
	for n := 1; n <= 3; n++ {
		on := Host(t, n)
		for _, addr := range []netip.Addr{on.IPv4(), on.IPv6()} {
			to := listen(t, on, addr)
			for from := 1; from <= 3; from++ {
				if err := dial(t, Host(t, from), to); err != nil {
					t.Errorf("h%d: %v", from, err)
				}
			}
		}
	}
}

func TestNetemDisturbsUntilItIsCleared(t *testing.T) {
	Need(t, Netem, Root)
	h1, h2 := Host(t, 1), Host(t, 2)
	to := listen(t, h2, h2.IPv4())
	h1.Netem("") // nothing to clear is no error
	h1.Netem("loss 100%")
	if err := dial(t, h1, to); !os.IsTimeout(err) {
		t.Errorf("with all packets lost: error %v, want a timeout", err)
	}
	h1.Netem("delay 100ms")
	began := time.Now()
	if err := dial(t, h1, to); err != nil {
		t.Errorf("with a delay: %v", err)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("with a delay of 100 ms: connected within %s", took)
	}
	h1.Netem("")
	if err := dial(t, h1, to); err != nil {
		t.Errorf("undisturbed: %v", err)
	}
}

func TestACutHostIsUnreachableUntilItIsMended(t *testing.T) {
	h1, h2 := Host(t, 1), Host(t, 2)
	for _, addr := range []netip.Addr{h2.IPv4(), h2.IPv6()} {
		to := listen(t, h2, addr)
		h2.Cut()
		if err := dial(t, h1, to); err == nil {
			t.Errorf("%s: connected to a host that is cut off", addr)
		}
		h2.Mend()
		var err error
		for range 50 {
			if err = dial(t, h1, to); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("%s: mended: %v", addr, err)
		}
	}
}

func TestAPortIsDroppedUntilTheEndOfTheTest(t *testing.T) {
	Need(t, Root)
	h1, h2 := Host(t, 1), Host(t, 2)
	for _, addr := range []netip.Addr{h2.IPv4(), h2.IPv6()} {
		to := listen(t, h2, addr)
		t.Run(addr.String(), func(t *testing.T) {
			Host(t, 2).Drop(netip.MustParseAddrPort(to).Port())
			if err := dial(t, h1, to); !os.IsTimeout(err) {
				t.Errorf("error %v, want a timeout", err)
			}
		})
		if err := dial(t, h1, to); err != nil {
			t.Errorf("%v, afterwards: %v", addr, err)
		}
	}
}

func TestADeafHostRefusesUntilTheEndOfTheTest(t *testing.T) {
	Need(t, Root, TCP)
	h1, h2 := Host(t, 1), Host(t, 2)
	for _, addr := range []netip.Addr{h2.IPv4(), h2.IPv6()} {
		const port = 16385 // of rds_tcp
		to := netip.AddrPortFrom(addr, port).String()
		t.Run(addr.String(), func(t *testing.T) {
			Host(t, 2).Deafen()
			if err := dial(t, h1, to); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("error %v, want a refusal", err)
			}
		})
		if err := dial(t, h1, to); err != nil {
			t.Errorf("%v, afterwards: %v", addr, err)
		}
	}
}

func TestAProgramStartsOnTheHost(t *testing.T) {
	h := Host(t, 2)
	cmd := exec.Command("readlink", "/proc/self/ns/net")
	var out strings.Builder
	cmd.Stdout = &out
	if err := h.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var want string
	if err := h.Do(func() (err error) {
		want, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); got != want {
		t.Errorf("it is in %s, the host is %s", got, want)
	}
}

// The soft RoCE device is ready when the tests begin: an RDS socket binds to each of its
// addresses by it, and not by TCP.
func TestRDMAHostsAreBoundByTheChannelAdapter(t *testing.T) {
	Need(t, RDMA)
	for n := 1; n <= 2; n++ {
		for _, addr := range []netip.Addr{HCA(t, n).IPv4(), HCA(t, n).IPv6()} {
			conn, err := rdssock.Listen(netip.AddrPortFrom(addr, 0), &rdssock.Config{Transport: rdssock.TransportInfiniBand})
			if err != nil {
				t.Errorf("%s: %v", addr, err)
				continue
			}
			conn.Close()
		}
	}
}
