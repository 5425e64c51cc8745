package rdssock_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/route"
	"github.com/rdskit/rdskit/rdssock"
)

// TestKernelSelftestScenario is tools/testing/selftests/net/rds of the kernel:
// two sockets send each other, and themselves, many short messages, and each way
// must deliver all of them, once, in order and undamaged.
func TestKernelSelftestScenario(t *testing.T) {
	needLab(t, 2)
	count := 50000
	if testing.Short() {
		count = 5000
	}
	l := tcpLinks[0]
	cfg := &rdssock.Config{Transport: rdssock.TransportTCP}
	conns := [2]*rdssock.Conn{l.a.listen(t, 10000, cfg), l.b.listen(t, 20000, cfg)}
	warmUp(t, conns[0], conns[1])
	warmUp(t, conns[1], conns[0])

	// Every table of the kernel can be read from a socket like these.
	for _, c := range conns {
		if _, err := c.Pending(); err != nil {
			t.Error(err)
		}
	}

	type way struct{ from, to int }
	wayOf := func(n int) way { return way{n % 2, 1 - (n%3)%2} }
	payload := func(n int) []byte {
		sum := sha256.Sum256(fmt.Appendf(nil, "packet %d", n))
		return hex.AppendEncode(nil, sum[:])
	}
	var expected [2]int
	for n := range count {
		expected[wayOf(n).to]++
	}

	received := make(chan map[way][]byte, len(conns))
	for i, c := range conns {
		go func() {
			sums := make(map[way][]byte)
			defer func() { received <- sums }()
			buf := make([]byte, 100)
			for got := range expected[i] {
				if got%1000 == 0 {
					if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
						t.Error(err)
						return
					}
				}
				n, src, err := c.ReadFromAddrPort(buf)
				if err != nil {
					t.Errorf("socket %d got %d of %d messages: %v", i, got, expected[i], err)
					return
				}
				w := way{to: i}
				if src == addr(conns[1]) {
					w.from = 1
				}
				sum := sha256.Sum256(append(sums[w], buf[:n]...))
				sums[w] = sum[:]
			}
		}()
	}
	want := make(map[way][]byte)
	for n := range count {
		w := wayOf(n)
		if _, err := conns[w.from].WriteToAddrPort(payload(n), addr(conns[w.to])); err != nil {
			t.Fatalf("message %d: %v", n, err)
		}
		sum := sha256.Sum256(append(want[w], payload(n)...))
		want[w] = sum[:]
	}
	for range conns {
		for w, sum := range <-received {
			if string(sum) != string(want[w]) {
				t.Errorf("from socket %d to socket %d: messages lost, doubled, exchanged or damaged", w.from, w.to)
			}
			delete(want, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("nothing arrived on ways %v", want)
	}
}

// Writing net.rds.tcp sysctls resets every RDS/TCP connection of the namespace
// (net/rds/tcp.c:rds_tcp_skbuf_handler). The kernel sends again what was not acknowledged
// and drops what it has seen before, by the sequence numbers of the path. Before commit
// a20a6992558f a path may meet another one of the peer after a reset
// (net/rds/tcp_listen.c:rds_tcp_accept_one_path takes the first that is down), whose numbers
// are others: then messages are doubled or lost.
func TestConnectionResetsDamageNothing(t *testing.T) {
	needLab(t, 2)
	l := tcpLinks[0]
	a, b := l.pair(t, nil)
	h := labtest.Host(t, 1)
	const (
		count  = 2000
		resets = count / 200
	)
	seen := make(chan map[uint32]int, 1)
	go func() {
		m := make(map[uint32]int)
		defer func() { seen <- m }()
		buf := make([]byte, 200)
		for len(m) < count {
			if err := b.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Error(err)
				return
			}
			n, src, err := b.ReadFromAddrPort(buf)
			if err != nil {
				return
			}
			var i uint32
			if _, err := fmt.Sscanf(string(buf[:n]), "message %d", &i); err != nil || n != 100 || src != addr(a) {
				t.Errorf("damaged message %q from %v", buf[:n], src)
				continue
			}
			m[i]++
		}
	}()
	for i := range count {
		if i%(count/resets) == 100 {
			if err := h.Do(func() error {
				return os.WriteFile("/proc/sys/net/rds/tcp/rds_tcp_sndbuf", []byte("20000"), 0)
			}); err != nil {
				t.Fatal(err)
			}
		}
		b100 := make([]byte, 100)
		copy(b100, fmt.Sprintf("message %d ", i))
		if _, err := a.WriteToAddrPort(b100, addr(b)); err != nil {
			t.Fatal(err)
		}
	}
	m := <-seen
	doubled := 0
	for i, n := range m {
		if i >= count {
			t.Errorf("message %d was never sent", i)
		}
		if n > 1+resets {
			t.Errorf("message %d arrived %d times with %d resets", i, n, resets)
		}
		if n > 1 {
			doubled++
		}
	}
	t.Logf("%d of %d messages arrived over %d resets, %d of them more than once", len(m), count, resets, doubled)
	if len(m) < count/2 {
		t.Errorf("only %d of %d messages arrived", len(m), count)
	}
}

func TestLinkLocalAddressesNeedTheirZone(t *testing.T) {
	needLab(t, 2)
	var ends [2]end
	for i := range ends {
		h := labtest.Host(t, i+1)
		ends[i].netns = h.NetNS()
		ends[i].addr = linkLocal(t, h)
	}
	a, b := ends[0].listen(t, 0, nil), ends[1].listen(t, 0, nil)
	if zone := addr(a).Addr().Zone(); zone != "eth0" {
		t.Errorf("bound to %v", addr(a))
	}
	// The destination's zone is the sender's interface.
	to := netip.AddrPortFrom(addr(b).Addr().WithZone("eth0"), addr(b).Port())
	if _, err := a.WriteToAddrPort([]byte("hello"), to); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	n, _, _, src, err := b.ReadMsgContext(soon(t), buf, nil)
	if err != nil || string(buf[:n]) != "hello" || src != addr(a) {
		t.Errorf("got %q from %v, want from %v: %v", buf[:n], src, addr(a), err)
	}
	if _, err := b.WriteToAddrPort([]byte("back"), src); err != nil {
		t.Fatal(err)
	}
	if n, _, _, src, err := a.ReadMsgContext(soon(t), buf, nil); err != nil || string(buf[:n]) != "back" || src != to {
		t.Errorf("got %q from %v, want from %v: %v", buf[:n], src, to, err)
	}
	d, err := rdssock.Dial(to, ends[0].config(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if addr(d).Addr() != addr(a).Addr() {
		t.Errorf("Dial bound %v, want %v", addr(d), addr(a))
	}
}

// linkLocal is the host's link-local address.
func linkLocal(t *testing.T, h *labtest.Machine) netip.Addr {
	t.Helper()
	fd := netNS(t, h.NetNS())
	as, err := route.Addresses(t.Context(), &route.Config{NetNS: fd})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range as {
		if a.Addr().IsLinkLocalUnicast() && a.Usable {
			return a.Addr()
		}
	}
	t.Fatalf("%v has no link-local address", h)
	return netip.Addr{}
}
