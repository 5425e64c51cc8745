package rdssock_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/rdssock"
)

func TestTryReadTakesWhatIsThereAndDoesNotWait(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, nil)
		buf := make([]byte, 4)
		if n, src, ok, err := b.TryReadFromAddrPort(buf); n != 0 || src.IsValid() || ok || err != nil {
			t.Fatalf("with nothing there: %d, %v, %v, %v", n, src, ok, err)
		}
		for _, tt := range []struct {
			message string
			n       int
			err     error
		}{{"abc", 3, nil}, {"", 0, nil}, {"abcdef", 4, rdssock.ErrTruncated}} {
			if n, err := a.TryWriteToAddrPort([]byte(tt.message), addr(b)); n != len(tt.message) || err != nil {
				t.Fatalf("write of %q: %d, %v", tt.message, n, err)
			}
			n, src, err := waitTryRead(t, b, buf)
			if n != tt.n || src != addr(a) || !errors.Is(err, tt.err) || string(buf[:n]) != tt.message[:n] {
				t.Errorf("%q: got %q, %v, %v", tt.message, buf[:n], src, err)
			}
		}
	})
}

// waitTryRead tries to read until a message is there.
func waitTryRead(t *testing.T, c *rdssock.Conn, buf []byte) (int, netip.AddrPort, error) {
	t.Helper()
	for range 1000 {
		n, src, ok, err := c.TryReadFromAddrPort(buf)
		if ok || err != nil {
			return n, src, err
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("no message came")
	return 0, netip.AddrPort{}, nil
}

func TestTryReadWorksBesideAReadThatWaits(t *testing.T) {
	needLab(t, 0)
	a, b := loopLinks[0].pair(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, _, _, err := b.ReadMsgContext(ctx, nil, nil)
		done <- err
	}()
	go b.ReadFromAddrPort(make([]byte, 1))
	time.Sleep(50 * time.Millisecond)
	if _, _, ok, err := b.TryReadFromAddrPort(nil); ok || err != nil {
		t.Errorf("beside reads that wait: %v, %v", ok, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the read that waits ended with %v", err)
	}
	if _, err := a.TryWriteToAddrPort([]byte("x"), addr(b)); err != nil {
		t.Error(err)
	}
}

func TestTryWriteIsRefusedWhereAWriteWouldWait(t *testing.T) {
	t.Run("for a congested destination", func(t *testing.T) {
		needLab(t, 2)
		l := tcpLinks[0]
		a := l.a.listen(t, 0, nil)
		b := l.b.listen(t, 0, smallBuffers)
		warmUp(t, a, b)
		congest(t, l, b)
		_, err := a.TryWriteToAddrPort([]byte("x"), addr(b))
		if !errors.Is(err, rdssock.ErrCongested) || !errors.Is(err, syscall.ENOBUFS) {
			t.Errorf("got %v, want ErrCongested with ENOBUFS", err)
		}
	})
	t.Run("for a full send buffer", func(t *testing.T) {
		needLab(t, 2)
		l := tcpLinks[0]
		a := l.a.listen(t, 0, &rdssock.Config{SendBuffer: 4 << 10})
		dead := netip.AddrPortFrom(netip.MustParseAddr("10.9.0.199"), 4000)
		message := make([]byte, 4<<10)
		var err error
		for range 10 {
			if _, err = a.TryWriteToAddrPort(message, dead); err != nil {
				break
			}
		}
		if !errors.Is(err, rdssock.ErrQueueFull) || !errors.Is(err, syscall.EAGAIN) {
			t.Errorf("got %v, want ErrQueueFull with EAGAIN", err)
		}
	})
	t.Run("for the limit of a destination", func(t *testing.T) {
		needLab(t, 2)
		a := tcpLinks[0].a.listen(t, 0, &rdssock.Config{DestinationLimit: 1 << 10})
		dead := netip.AddrPortFrom(netip.MustParseAddr("10.9.0.199"), 4000)
		message := make([]byte, 1<<10)
		if _, err := a.TryWriteToAddrPort(message, dead); err != nil {
			t.Fatal(err)
		}
		if _, err := a.TryWriteToAddrPort(message, dead); !errors.Is(err, rdssock.ErrQueueFull) {
			t.Errorf("got %v, want ErrQueueFull", err)
		}
	})
}

func TestTryAfterCloseIsAnError(t *testing.T) {
	needLab(t, 0)
	c := loop("127.0.0.1").listen(t, 0, nil)
	dst := addr(c)
	c.Close()
	if _, err := c.TryWriteToAddrPort(nil, dst); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write: %v", err)
	}
	if _, _, ok, err := c.TryReadFromAddrPort(nil); ok || !errors.Is(err, net.ErrClosed) {
		t.Errorf("read: %v, %v", ok, err)
	}
}
