package rdssock_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/rdskit/rdskit/rdssock"
)

func needLab(t testing.TB, hosts int) {
	if os.Getenv("RDS_LAB") == "" {
		t.Skip("not in the lab")
	}
}

type labHost struct {
	netns, dev string
	v4, v6     netip.Addr
}

func host(n int) labHost {
	return labHost{netns: fmt.Sprintf("/run/netns/h%d", n), dev: "eth0",
		v4: netip.MustParseAddr(fmt.Sprintf("10.9.0.%d", n)), v6: netip.MustParseAddr(fmt.Sprintf("fd00::%d", n))}
}

// E: above is to be replaced by labtest

func openNetNS(t testing.TB, h labHost) int {
	t.Helper()
	f, err := os.Open(h.netns)
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
	a, b  func() (netip.Addr, string)
}

func fixed(addr string) func() (netip.Addr, string) {
	return func() (netip.Addr, string) { return netip.MustParseAddr(addr), "" }
}

func onHost(n int, v6 bool) func() (netip.Addr, string) {
	return func() (netip.Addr, string) {
		h := host(n)
		if v6 {
			return h.v6, h.netns
		}
		return h.v4, h.netns
	}
}

var links = []link{
	{"loop over IPv4", 0, fixed("127.0.0.1"), fixed("127.0.0.1")},
	{"loop over IPv6", 0, fixed("::1"), fixed("::1")},
	{"TCP over IPv4", 2, onHost(1, false), onHost(2, false)},
	{"TCP over IPv6", 2, onHost(1, true), onHost(2, true)},
}

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
	a, b = l.listen(t, l.a, cfg), l.listen(t, l.b, cfg)
	warmUp(t, a, b)
	warmUp(t, b, a)
	return a, b
}

func (l link) listen(t testing.TB, end func() (netip.Addr, string), cfg *rdssock.Config) *rdssock.Conn {
	t.Helper()
	addr, netns := end()
	var c rdssock.Config
	if cfg != nil {
		c = *cfg
	}
	if netns != "" {
		c.NetNS = openNetNS(t, labHost{netns: netns})
	}
	conn, err := rdssock.Listen(netip.AddrPortFrom(addr, 0), &c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
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
