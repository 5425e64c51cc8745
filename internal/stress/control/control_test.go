package control

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/stress/wire"
)

var loopback = netip.MustParseAddr("127.0.0.1")

func listen(t *testing.T, allow ...netip.Prefix) *Listener {
	t.Helper()
	l, err := ListenConfig{Allow: allow, Dropped: func(from netip.AddrPort, why error) { t.Logf("dropped %v: %v", from, why) }}.Listen(t.Context(), loopback, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func connect(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func options() wire.Options {
	return wire.Options{Depth: 8, ReqSize: 256, AckSize: 63, Tasks: 2, Port: 4000, Version: "2.3.11", TOS: 3,
		SendAddr: netip.MustParseAddr("10.9.0.2"), RecvAddr: netip.MustParseAddr("10.9.0.1")}
}

// hostile are things to do to a server that waits for options.
func hostile() map[string]func(c net.Conn) {
	do := map[string]func(c net.Conn){
		"closes at once":      func(c net.Conn) { c.Close() },
		"says nothing":        func(net.Conn) {},
		"resets":              func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() },
		"speaks HTTP":         func(c net.Conn) { fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n") },
		"speaks TLS":          func(c net.Conn) { c.Write([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}) },
		"a version alone":     func(c net.Conn) { c.Write([]byte("2.0.7\x00")); c.(*net.TCPConn).CloseWrite() },
		"one byte and silent": func(c net.Conn) { c.Write([]byte{0}) },
		"one byte at a time, for ever": func(c net.Conn) {
			for range 20 {
				if _, err := c.Write([]byte{'2'}); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		},
		"half-closes": func(c net.Conn) { c.(*net.TCPConn).CloseWrite() },
	}
	o := options()
	for _, form := range []wire.Form{wire.Short, wire.Long} {
		whole := o.Append(nil, form)
		for _, n := range []int{1, 15, 16, 17, 43, form.Size() - 2} {
			do[fmt.Sprintf("%d bytes of the %v form", n, form)] = func(c net.Conn) {
				c.Write(whole[:n])
				c.(*net.TCPConn).CloseWrite()
			}
		}
	}
	for seed := range uint64(10) {
		do[fmt.Sprintf("random bytes %d", seed)] = func(c net.Conn) {
			r := rand.New(rand.NewPCG(seed, 1))
			b := make([]byte, 1+r.IntN(58))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			c.Write(b)
			c.(*net.TCPConn).CloseWrite()
		}
	}
	return do
}

func TestHostileConnectionsLeaveTheServerServing(t *testing.T) {
	do := hostile()
	if len(do) < 30 {
		t.Fatalf("only %d of them", len(do))
	}
	l := listen(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, f := range do {
		c := connect(t, l)
		f(c)
		// Beside it, a peer in its right mind is served.
		good := connect(t, l)
		o := options()
		good.Write(o.Append(nil, wire.Short))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		offer, err := l.Accept(ctx)
		cancel()
		if err != nil {
			t.Fatalf("%s: no longer served: %v", name, err)
		}
		if offer.Options.Depth != 8 || offer.Form != wire.Short {
			t.Errorf("%s: %v form of %+v", name, offer.Form, offer.Options)
		}
		offer.Close()
		good.Close()
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes allocated", grown)
	}
}

func TestEveryFormIsRecognised(t *testing.T) {
	ack := func(n uint32, json bool) wire.Options {
		o := options()
		o.AckSize, o.WantsJSON = n, json
		return o
	}
	for _, tt := range []struct {
		name  string
		form  wire.Form
		o     wire.Options
		burst bool // the go byte comes at once
	}{
		{"short", wire.Short, ack(63, false), false},
		{"short, all in one burst", wire.Short, ack(63, false), true},
		{"long", wire.Long, ack(63, false), false},
		{"long, all in one burst", wire.Long, ack(63, false), true},
		{"long for mainline", wire.LongMainline, ack(60, false), false},
		{"long for mainline, all in one burst", wire.LongMainline, ack(60, false), true},
		{"long for mainline, with an answer of another length", wire.LongMainline, ack(100, false), false},
		{"long with JSON", wire.Long, ack(63, true), true},
		{"long with JSON, for mainline", wire.LongMainline, ack(60, true), true},
		{"long with JSON, for mainline, with an answer of another length", wire.LongMainline, ack(100, true), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := listen(t)
			c := connect(t, l)
			b := tt.o.Append(nil, tt.form)
			if tt.burst {
				b = append(b, 0xfd)
			}
			c.Write(b)
			offer, err := l.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer offer.Close()
			if offer.Form != tt.form || offer.Options.WantsJSON != tt.o.WantsJSON {
				t.Errorf("taken for the %v form, JSON %v", offer.Form, offer.Options.WantsJSON)
			}
			if !tt.burst {
				c.Write([]byte{0xfd})
			}
			if b, err := offer.WaitGo(1); b != 0xfd || err != nil {
				t.Errorf("go byte %#x, %v", b, err)
			}
			if err := offer.Ready(0xfd, false); err != nil {
				t.Error(err)
			}
			var back [1]byte
			if _, err := c.Read(back[:]); err != nil || back[0] != 0xfd {
				t.Errorf("%#x came back, %v", back[0], err)
			}
		})
	}
}

func TestOnlyThoseAllowedConnect(t *testing.T) {
	l := listen(t, netip.MustParsePrefix("10.0.0.0/8"))
	c := connect(t, l)
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("read %d, %v: want the connection closed", n, err)
	}
}

func TestTooManySilentConnectionsAreDropped(t *testing.T) {
	l := listen(t)
	for range maxHandshakes {
		connect(t, l)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		c := connect(t, l)
		c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err != nil && !strings.Contains(err.Error(), "timeout") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("any number of them is kept")
		}
	}
}

func TestFramesAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
	}{
		{"a frame that is too long", binary.BigEndian.AppendUint32(nil, 1<<20)},
		{"a frame as long as can be", binary.BigEndian.AppendUint32(nil, 1<<32-1)},
		{"half a frame", append(binary.BigEndian.AppendUint32(nil, 100), "{}"...)},
		{"half a length", []byte{0, 0}},
		{"no JSON", append(binary.BigEndian.AppendUint32(nil, 3), "abc"...)},
		{"another type", append(binary.BigEndian.AppendUint32(nil, 2), "[]"...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here, there := net.Pipe()
			defer here.Close()
			go func() {
				there.Write(tt.in)
				there.Close()
			}()
			var v struct{ Type string }
			if err := NewConn(here).Receive(&v, 1<<10, 5*time.Second); err == nil {
				t.Errorf("accepted as %+v", v)
			}
		})
	}
}

func FuzzReceiveOptions(f *testing.F) {
	o := options()
	f.Add(o.Append(nil, wire.Short))
	f.Add(o.Append(nil, wire.IPv6))
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := net.Pipe()
		go func() {
			there.Write(b)
			there.Close()
		}()
		NewConn(here).ReceiveOptions()
		here.Close()
	})
}
