package rdssock_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/rdssock"
)

// A timeouter is what every error of a passed deadline must be.
type timeouter interface{ Timeout() bool }

func isTimeout(err error) bool {
	var t timeouter
	return errors.Is(err, os.ErrDeadlineExceeded) && errors.As(err, &t) && t.Timeout()
}

// Each of these waits for a message that never comes.
var blockingReads = []struct {
	name string
	read func(*rdssock.Conn, context.Context) error
}{
	{"ReadFrom", func(c *rdssock.Conn, _ context.Context) error { _, _, err := c.ReadFrom(make([]byte, 1)); return err }},
	{"ReadMsgAddrPort", func(c *rdssock.Conn, _ context.Context) error {
		_, _, _, _, err := c.ReadMsgAddrPort(make([]byte, 1), nil)
		return err
	}},
	{"ReadMsgContext", func(c *rdssock.Conn, ctx context.Context) error {
		_, _, _, _, err := c.ReadMsgContext(ctx, make([]byte, 1), nil)
		return err
	}},
	{"ReadBatch", func(c *rdssock.Conn, _ context.Context) error {
		_, err := c.ReadBatch(make([]rdssock.Message, 1))
		return err
	}},
	{"Peek", func(c *rdssock.Conn, _ context.Context) error { _, _, err := c.Peek(nil); return err }},
}

func TestReadEndsAtItsDeadline(t *testing.T) {
	needLab(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, r := range blockingReads {
		t.Run(r.name, func(t *testing.T) {
			c := loopLinks[0].a.listen(t, 0, nil)
			for _, d := range []time.Duration{-time.Hour, 0, 30 * time.Millisecond} {
				start := time.Now()
				if err := c.SetReadDeadline(start.Add(d)); err != nil {
					t.Fatal(err)
				}
				if err := r.read(c, ctx); !isTimeout(err) {
					t.Errorf("deadline in %v: %v", d, err)
				}
				if took := time.Since(start); took < max(d, 0) || took > max(d, 0)+2*time.Second {
					t.Errorf("deadline in %v passed after %v", d, took)
				}
			}
			// A deadline that is moved while the read waits counts.
			if err := c.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- r.read(c, ctx) }()
			time.Sleep(20 * time.Millisecond)
			if err := c.SetDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !isTimeout(err) {
				t.Errorf("moved deadline: %v", err)
			}
		})
	}
}

func TestReadContextEndsWithItsContextOnly(t *testing.T) {
	needLab(t, 0)
	l := loopLinks[0]
	a, b := l.pair(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, _, err := b.ReadMsgContext(ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("context canceled before: %v", err)
	}
	plain := make(chan error, 1)
	go func() {
		_, _, err := b.ReadFromAddrPort(make([]byte, 8))
		plain <- err
	}()
	other := make(chan error, 1)
	go func() {
		_, _, _, _, err := b.ReadMsgContext(soon(t), make([]byte, 8), nil)
		other <- err
	}()
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, _, _, _, err := b.ReadMsgContext(ctx, nil, nil); !errors.Is(err, context.DeadlineExceeded) || !isTimeoutError(err) {
		t.Errorf("context ended meanwhile: %v", err)
	}
	select {
	case err := <-plain:
		t.Fatalf("the end of one read's context ended another read: %v", err)
	case err := <-other:
		t.Fatalf("the end of one read's context ended another read: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	for range 2 {
		if _, err := a.WriteToAddrPort([]byte("x"), addr(b)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []chan error{plain, other} {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
}

func isTimeoutError(err error) bool {
	var t timeouter
	return errors.As(err, &t) && t.Timeout()
}

func TestManyContextReadsShareTheMessages(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, nil)
		const n = 50
		got := make(chan byte, n)
		for range n {
			go func() {
				buf := make([]byte, 8)
				if _, _, _, _, err := b.ReadMsgContext(soon(t), buf, nil); err != nil {
					t.Error(err)
				}
				got <- buf[0]
			}()
		}
		for i := range n {
			if _, err := a.WriteToAddrPort([]byte{byte(i)}, addr(b)); err != nil {
				t.Fatal(err)
			}
		}
		seen := make(map[byte]bool)
		for range n {
			seen[<-got] = true
		}
		if len(seen) != n {
			t.Errorf("%d of %d messages were read", len(seen), n)
		}
	})
}

func TestHundredBlockedReadersUseNoProcessorAndAllEnd(t *testing.T) {
	needLab(t, 0)
	for _, end := range []struct {
		name string
		do   func(*rdssock.Conn) error
		ok   func(error) bool
	}{
		{"by Close", (*rdssock.Conn).Close, func(err error) bool { return errors.Is(err, net.ErrClosed) }},
		{"by deadline", func(c *rdssock.Conn) error { return c.SetReadDeadline(time.Now()) }, isTimeout},
	} {
		t.Run(end.name, func(t *testing.T) {
			c := loopLinks[0].a.listen(t, 0, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			errs := make(chan error, 100)
			for i := range cap(errs) {
				r := blockingReads[i%len(blockingReads)]
				go func() { errs <- r.read(c, ctx) }()
			}
			time.Sleep(100 * time.Millisecond)
			before := processorTime(t)
			time.Sleep(500 * time.Millisecond)
			if used := processorTime(t) - before; used > 100*time.Millisecond {
				t.Errorf("100 blocked readers used %v of processor time in 500ms", used)
			}
			if err := end.do(c); err != nil {
				t.Fatal(err)
			}
			for range cap(errs) {
				select {
				case err := <-errs:
					if !end.ok(err) {
						t.Errorf("ended with %v", err)
					}
				case <-time.After(5 * time.Second):
					t.Fatal("a reader is still blocked")
				}
			}
		})
	}
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestWriteGoesOnDuringABlockedRead(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, nil)
		done := make(chan error, 1)
		go func() {
			_, _, err := a.ReadFromAddrPort(make([]byte, 8))
			done <- err
		}()
		buf := make([]byte, 8)
		for i := range 1000 {
			if _, err := a.WriteToAddrPort([]byte("x"), addr(b)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := b.ReadFromAddrPort(buf); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		if _, err := b.WriteToAddrPort([]byte("end"), addr(a)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestClosedConn(t *testing.T) {
	needLab(t, 0)
	a, b := loopLinks[0].pair(t, nil)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	for name, f := range map[string]func() error{
		"WriteToAddrPort": func() error { _, err := a.WriteToAddrPort(nil, addr(b)); return err },
		"WriteMsgContext": func() error { _, _, err := a.WriteMsgContext(soon(t), nil, nil, addr(b)); return err },
		"WriteBatch": func() error {
			_, err := a.WriteBatch([]rdssock.Message{{Addr: addr(b)}})
			return err
		},
		"SetReadDeadline": func() error { return a.SetReadDeadline(time.Time{}) },
		"File":            func() error { _, err := a.File(); return err },
		"SyscallConn":     func() error { _, err := a.SyscallConn(); return err },
		"Pending":         func() error { _, err := a.Pending(); return err },
		"Flush":           func() error { return a.Flush(soon(t)) },
		"CancelSentTo":    func() error { return a.CancelSentTo(addr(b)) },
		"TOS":             func() error { _, err := a.TOS(); return err },
	} {
		if err := f(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s on a closed Conn: %v", name, err)
		}
	}
	ctx := soon(t)
	for _, r := range blockingReads {
		if err := r.read(a, ctx); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s on a closed Conn: %v", r.name, err)
		}
	}
	// The port is free again at once.
	c, err := rdssock.Listen(addr(a), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestFileKeepsTheSocketOpen(t *testing.T) {
	needLab(t, 0)
	a, b := loopLinks[0].pair(t, nil)
	f, err := a.File()
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	c, err := rdssock.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	defer c.Close()
	if c.LocalAddr() != a.LocalAddr() {
		t.Errorf("the copy is bound to %v, want %v", c.LocalAddr(), a.LocalAddr())
	}
	if _, err := b.WriteToAddrPort([]byte("x"), addr(c)); err != nil {
		t.Fatal(err)
	}
	if n, _, _, _, err := c.ReadMsgContext(soon(t), make([]byte, 8), nil); err != nil || n != 1 {
		t.Errorf("read %d bytes: %v", n, err)
	}
}

func TestFileConnRefusesWhatIsNoRDSSocket(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	uf, err := u.File()
	if err != nil {
		t.Fatal(err)
	}
	defer uf.Close()
	for name, f := range map[string]*os.File{"a pipe": r, "a UDP socket": uf} {
		if c, err := rdssock.FileConn(f); err == nil {
			c.Close()
			t.Errorf("FileConn took %s", name)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, &rdssock.Config{SendBuffer: 1 << 20, ReceiveBuffer: 1 << 20})
		const writers, each = 8, 50
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range each {
					if _, err := a.WriteToAddrPort([]byte("hello"), addr(b)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		got := make(chan struct{}, writers*each)
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for i := range 6 {
			readers.Go(func() {
				buf := make([]byte, 8)
				for {
					var err error
					if i%2 == 0 {
						_, _, _, _, err = b.ReadMsgContext(ctx, buf, nil)
					} else {
						_, _, err = b.ReadFromAddrPort(buf)
					}
					if err != nil {
						return
					}
					got <- struct{}{}
				}
			})
		}
		wg.Wait()
		for range writers * each {
			select {
			case <-got:
			case <-time.After(5 * time.Second):
				t.Fatal("messages are missing")
			}
		}
		cancel()
		if err := b.SetReadDeadline(time.Now()); err != nil {
			t.Error(err)
		}
		readers.Wait()
	})
}
