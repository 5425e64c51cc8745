package rdssock_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/rdssock"
)

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func TestMessagesArriveWholeAndInOrder(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, &rdssock.Config{SendBuffer: 4 << 20, ReceiveBuffer: 4 << 20})
		sizes := []int{1, 0, 5, 4096, 0, 65536, 1 << 20, 17}
		for _, n := range sizes {
			if got, err := a.WriteToAddrPort(pattern(n), addr(b)); err != nil || got != n {
				t.Fatalf("wrote %d of %d bytes: %v", got, n, err)
			}
		}
		if err := b.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 2<<20)
		for _, n := range sizes {
			got, src, err := b.ReadFromAddrPort(buf)
			if err != nil {
				t.Fatal(err)
			}
			if src != addr(a) {
				t.Errorf("from %v, want %v", src, addr(a))
			}
			if !bytes.Equal(buf[:got], pattern(n)) {
				t.Errorf("message of %d bytes arrived as another of %d", n, got)
			}
		}
	})
}

func TestEmptyMessageIsNoEOF(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, nil)
		if _, err := a.WriteTo(nil, b.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		n, src, err := b.ReadFrom(make([]byte, 10))
		if n != 0 || src != a.LocalAddr() || err != nil {
			t.Errorf("got %d bytes from %v: %v", n, src, err)
		}
	})
}

func TestLongMessageIsReportedAsTruncated(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, nil)
		want := pattern(5000)
		for range 2 {
			if _, err := a.WriteToAddrPort(want, addr(b)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.WriteToAddrPort([]byte("next"), addr(b)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, src, err := b.ReadFromAddrPort(buf)
		if !errors.Is(err, rdssock.ErrTruncated) || n != 100 || src != addr(a) {
			t.Errorf("got %d bytes from %v: %v", n, src, err)
		}
		n, _, flags, _, err := b.ReadMsgAddrPort(buf, nil)
		if err != nil || n != 100 || flags&rdssock.MsgTrunc == 0 {
			t.Errorf("got %d bytes, flags %#x: %v", n, flags, err)
		}
		if !bytes.Equal(buf, want[:100]) {
			t.Error("the bytes that fit are wrong")
		}
		if n, _, err := b.ReadFromAddrPort(buf); err != nil || string(buf[:n]) != "next" {
			t.Errorf("the message behind is %q: %v", buf[:n], err)
		}
	})
}

func TestPeekLeavesTheMessageToBeRead(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, nil)
		if _, err := a.WriteToAddrPort(pattern(300), addr(b)); err != nil {
			t.Fatal(err)
		}
		for _, room := range []int{0, 10, 300, 1000} {
			buf := make([]byte, room)
			size, src, err := b.Peek(buf)
			if err != nil || size != 300 || src != addr(a) {
				t.Fatalf("peek with room for %d: %d bytes from %v: %v", room, size, src, err)
			}
			if n := min(room, 300); !bytes.Equal(buf[:n], pattern(300)[:n]) {
				t.Errorf("peek with room for %d got other bytes", room)
			}
		}
		if n, _, err := b.ReadFromAddrPort(make([]byte, 1000)); err != nil || n != 300 {
			t.Errorf("read %d bytes: %v", n, err)
		}
	})
}

func TestConnectedSocketWritesWithoutAddress(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		b := l.b.listen(t, 0, nil)
		a, err := rdssock.Dial(addr(b), l.a.config(t, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if got := addr(a).Addr(); got != l.a.addr {
			t.Errorf("Dial bound %v, want %v", got, l.a.addr)
		}
		if a.RemoteAddr() != b.LocalAddr() {
			t.Errorf("connected to %v, want %v", a.RemoteAddr(), b.LocalAddr())
		}
		if _, err := a.WriteToAddrPort([]byte("hello"), netip.AddrPort{}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		n, _, _, src, err := b.ReadMsgContext(soon(t), buf, nil)
		if err != nil || string(buf[:n]) != "hello" || src != addr(a) {
			t.Errorf("got %q from %v: %v", buf[:n], src, err)
		}
	})
}

func TestKernelAnswersAPing(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, nil)
		dst := netip.AddrPortFrom(addr(b).Addr(), 0)
		if _, err := a.WriteToAddrPort(nil, dst); err != nil {
			t.Fatal(err)
		}
		n, _, _, src, err := a.ReadMsgContext(soon(t), nil, nil)
		if n != 0 || src != dst || err != nil {
			t.Errorf("got %d bytes from %v: %v", n, src, err)
		}
	})
}

func TestControlMessagesCarryTimesOfArrival(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		points := []cmsg.RXPoint{cmsg.RXDelivery, cmsg.RXReassembly}
		a, b := l.pair(t, &rdssock.Config{Timestamps: true, RXPath: points})
		before := time.Now().Add(-time.Millisecond)
		if _, err := a.WriteToAddrPort([]byte("x"), addr(b)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		oob := make([]byte, 256)
		_, oobn, flags, _, err := b.ReadMsgAddrPort(make([]byte, 8), oob)
		if err != nil || flags != 0 {
			t.Fatalf("flags %#x: %v", flags, err)
		}
		kinds := make(map[cmsg.Kind]bool)
		it := cmsg.Parse(b.Dialect(), oob[:oobn])
		for it.Next() {
			m := it.Message()
			kinds[m.Kind()] = true
			switch m.Kind() {
			case cmsg.KindTimestamp:
				at, err := m.Timestamp()
				if err != nil || at.Before(before) || at.After(time.Now()) {
					t.Errorf("arrived at %v, sent after %v: %v", at, before, err)
				}
			case cmsg.KindRXPathLatency:
				p, err := m.RXPathLatency()
				if err != nil {
					t.Error(err)
				}
				if p.N != len(points) || p.Traces[0].Point != points[0] || p.Traces[1].Point != points[1] {
					t.Fatalf("got %v, want %v", p.Traces[:p.N], points)
				}
				if a.Transport() == rdssock.TransportTCP && p.Traces[0].Elapsed < 15*time.Millisecond {
					t.Errorf("queued for %v, and it was read 20ms late", p.Traces[0].Elapsed)
				}
			}
		}
		if err := it.Err(); err != nil {
			t.Error(err)
		}
		if want := (map[cmsg.Kind]bool{cmsg.KindTimestamp: true, cmsg.KindRXPathLatency: true}); !cmp.Equal(kinds, want) {
			t.Errorf("kinds of control messages: %s", cmp.Diff(want, kinds))
		}
	})
}

func TestControlMessagesThatDoNotFitAreReported(t *testing.T) {
	needLab(t, 0)
	a, b := loopLinks[0].pair(t, &rdssock.Config{Timestamps: true})
	if _, err := a.WriteToAddrPort([]byte("x"), addr(b)); err != nil {
		t.Fatal(err)
	}
	_, oobn, flags, _, err := b.ReadMsgAddrPort(make([]byte, 8), make([]byte, 5))
	if err != nil || oobn != 0 || flags&rdssock.MsgCtrunc == 0 {
		t.Errorf("%d bytes of control messages, flags %#x: %v", oobn, flags, err)
	}
}

func TestBatch(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, nil)
		out := make([]rdssock.Message, 40)
		for i := range out {
			out[i] = rdssock.Message{Data: pattern(i * 10), Addr: addr(b)}
		}
		out[7].Addr = netip.MustParseAddrPort("224.0.0.1:5")
		n, err := a.WriteBatch(out)
		if err != nil || n != len(out) {
			t.Fatalf("wrote %d of %d: %v", n, len(out), err)
		}
		for i, m := range out {
			if i == 7 {
				if !errors.Is(m.Err, syscall.EINVAL) {
					t.Errorf("message to a multicast address: %v", m.Err)
				}
			} else if m.Err != nil || m.N != len(m.Data) {
				t.Errorf("message %d: wrote %d bytes: %v", i, m.N, m.Err)
			}
		}
		in := make([]rdssock.Message, 16)
		for i := range in {
			in[i].Data = make([]byte, 250)
		}
		if err := b.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		for want := 0; want < len(out); {
			n, err := b.ReadBatch(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range in[:n] {
				if want == 7 {
					want++
				}
				whole := want*10 <= 250
				if m.N != min(want*10, 250) || !bytes.Equal(m.Data[:m.N], pattern(want * 10)[:m.N]) || m.Addr != addr(a) {
					t.Errorf("message %d arrived as %d bytes from %v", want, m.N, m.Addr)
				}
				if truncated := m.Flags&rdssock.MsgTrunc != 0; truncated == whole {
					t.Errorf("message %d: truncated %t", want, truncated)
				}
				want++
			}
		}
	})
}

func TestZerocopy(t *testing.T) {
	for _, l := range tcpLinks {
		t.Run(l.name, func(t *testing.T) {
			needLab(t, l.hosts)
			a, b := l.pair(t, &rdssock.Config{Zerocopy: true})
			var ps []*rdssock.Completion
			for i := range 20 {
				p, err := a.WriteZerocopy(pattern(5000+i), addr(b))
				if err != nil {
					t.Fatal(err)
				}
				ps = append(ps, p)
			}
			buf := make([]byte, 8000)
			for i := range ps {
				n, _, _, _, err := b.ReadMsgContext(soon(t), buf, nil)
				if err != nil || !bytes.Equal(buf[:n], pattern(5000+i)) {
					t.Fatalf("message %d arrived as %d bytes: %v", i, n, err)
				}
			}
			for i, p := range ps {
				if err := p.Wait(soon(t)); err != nil {
					t.Errorf("message %d: %v", i, err)
				}
			}
		})
	}
}

func TestZerocopyRefusals(t *testing.T) {
	needLab(t, 0)
	a, b := loopLinks[0].pair(t, nil)
	if _, err := a.WriteZerocopy([]byte("x"), addr(b)); !errors.Is(err, rdssock.ErrNotSupported) {
		t.Errorf("zerocopy switched off: %v", err)
	}
	z, b := loopLinks[0].pair(t, &rdssock.Config{Zerocopy: true})
	if _, err := z.WriteZerocopy([]byte("x"), addr(b)); !errors.Is(err, syscall.EOPNOTSUPP) || !errors.Is(err, rdssock.ErrNotSupported) {
		t.Errorf("zerocopy on the loopback transport: %v", err)
	}
	if _, err := z.WriteZerocopy(nil, addr(b)); !errors.Is(err, rdssock.ErrNotSupported) {
		t.Errorf("zerocopy of nothing: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var p rdssock.Completion
	z.ExpectCompletion(&p, nil)
	if err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for what never comes: %v", err)
	}
	p.Forget()
}
