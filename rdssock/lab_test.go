package rdssock_test

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdssock"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// needLab states that a test needs RDS, and with hosts TCP between them.
func needLab(t testing.TB, n int) {
	t.Helper()
	labtest.Need(t, labtest.RDS)
	if n > 0 {
		labtest.Need(t, labtest.TCP, labtest.Hosts(n), labtest.Root)
	}
}

// netNS opens a network namespace for the time of the test.
func netNS(t testing.TB, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return int(f.Fd())
}

// A link is a way between two addresses over one transport and family.
type link struct {
	name  string
	hosts int // lab hosts needed
	a, b  end
}

// An end is an address and the path of the network namespace that has it, ""
// for the test's own.
type end struct {
	addr  netip.Addr
	netns string
}

func loop(addr string) end { return end{addr: netip.MustParseAddr(addr)} }

func onHost(n int, addr func(hosts.Host) netip.Addr) end {
	h := hosts.Host{N: n}
	return end{addr(h), h.NetNS()}
}

var (
	loopLinks = []link{
		{"loop over IPv4", 0, loop("127.0.0.1"), loop("127.0.0.1")},
		{"loop over IPv6", 0, loop("::1"), loop("::1")},
	}
	tcpLinks = []link{
		{"TCP over IPv4", 2, onHost(1, hosts.Host.IPv4), onHost(2, hosts.Host.IPv4)},
		{"TCP over IPv6", 2, onHost(1, hosts.Host.IPv6), onHost(2, hosts.Host.IPv6)},
	}
	links = slices.Concat(loopLinks, tcpLinks)
)

// eachLink runs f over every transport and family that the lab has.
func eachLink(t *testing.T, f func(t *testing.T, l link)) {
	for _, l := range links {
		t.Run(l.name, func(t *testing.T) {
			needLab(t, l.hosts)
			f(t, l)
		})
	}
}

// pair opens a socket on each end of the link, and warms the way up: first
// messages over RDS/TCP may overtake each other while its paths are made.
func (l link) pair(t testing.TB, cfg *rdssock.Config) (a, b *rdssock.Conn) {
	t.Helper()
	a, b = l.a.listen(t, 0, cfg), l.b.listen(t, 0, cfg)
	warmUp(t, a, b)
	warmUp(t, b, a)
	return a, b
}

// config is cfg in the end's namespace.
func (e end) config(t testing.TB, cfg *rdssock.Config) *rdssock.Config {
	t.Helper()
	var c rdssock.Config
	if cfg != nil {
		c = *cfg
	}
	if e.netns != "" {
		c.NetNS = netNS(t, e.netns)
	}
	return &c
}

// listen opens a socket for the time of the test. Waiting on it ends some time.
func (e end) listen(t testing.TB, port uint16, cfg *rdssock.Config) *rdssock.Conn {
	t.Helper()
	c, err := rdssock.Listen(netip.AddrPortFrom(e.addr, port), e.config(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// warmUp sends from a to b until one message arrives, and takes what is left.
func warmUp(t testing.TB, a, b *rdssock.Conn) {
	t.Helper()
	buf := make([]byte, 16)
	for try := range 100 {
		if _, err := a.WriteToAddrPort([]byte("warm up"), addr(b)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, _, _, _, err := b.ReadMsgContext(ctx, buf, nil)
		cancel()
		if err != nil {
			continue
		}
		for sent := try; sent > 0; sent-- {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			b.ReadMsgContext(ctx, buf, nil)
			cancel()
		}
		return
	}
	t.Fatalf("nothing gets from %v to %v", addr(a), addr(b))
}

func addr(c *rdssock.Conn) netip.AddrPort { return c.LocalAddr().(rdssock.Addr).AddrPort }

// soon is a context for what must happen without waiting for anything.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}
