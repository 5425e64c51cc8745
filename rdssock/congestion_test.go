package rdssock_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/rdssock"
)

// Congestion exists between hosts only: the loopback transport has none
// (net/rds/recv.c:rds_recv_rcvbuf_delta).

// smallBuffers make a receiver congested after a few messages.
var smallBuffers = &rdssock.Config{ReceiveBuffer: 4 << 10}

// congest writes to each of dsts until the kernel refuses it.
func congest(t *testing.T, l link, dsts ...*rdssock.Conn) {
	t.Helper()
	c := l.a.listen(t, 0, &rdssock.Config{Congestion: rdssock.FailWhenCongested, SendBuffer: 4 << 20})
	defer c.Close()
	if err := c.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 8<<10)
	for len(dsts) > 0 {
		var open []*rdssock.Conn
		for _, dst := range dsts {
			_, err := c.WriteToAddrPort(message, addr(dst))
			if errors.Is(err, rdssock.ErrCongested) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, dst)
		}
		dsts = open
		time.Sleep(time.Millisecond)
	}
	if err := c.Flush(soon(t)); err != nil {
		t.Fatal(err)
	}
}

// drain reads all that has arrived.
func drain(t *testing.T, c *rdssock.Conn) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for {
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.ReadFromAddrPort(buf); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			return
		}
	}
}

// Each of the 64 classes of ports has a blocked write of the same Conn, which
// nobody reads from. Draining one receiver, late, must wake its write without
// the re-test by timer, and no other.
func TestBlockedWriteWakesWhenItsReceiverDrains(t *testing.T) {
	for _, tt := range []struct {
		name string
		link
		blockedReader bool
	}{
		{"with nobody reading", tcpLinks[0], false},
		{"during a blocked read", tcpLinks[1], true},
	} {
		t.Run(tt.name+", "+tt.link.name, func(t *testing.T) {
			l := tt.link
			needLab(t, l.hosts)
			a, free := l.pair(t, nil)
			a.SetRetestInterval(time.Hour)
			if tt.blockedReader {
				go a.ReadFromAddrPort(make([]byte, 8))
			}
			const classes = 64
			var receivers [classes]*rdssock.Conn
			done := make(chan int, classes)
			for i := range classes {
				receivers[i] = l.b.listen(t, uint16(20000+i), smallBuffers)
			}
			congest(t, l, receivers[:]...)
			for i := range classes {
				go func() {
					if _, err := a.WriteToAddrPort([]byte("late"), addr(receivers[i])); err != nil {
						t.Error(err)
					}
					done <- i
				}()
			}
			time.Sleep(100 * time.Millisecond)
			for i := range classes {
				select {
				case j := <-done:
					t.Fatalf("write %d did not wait", j)
				default:
				}
				// Other destinations are not hindered.
				if _, err := a.WriteToAddrPort([]byte("free"), addr(free)); err != nil {
					t.Fatal(err)
				}
				// What is still on the way may congest the port again, and the
				// write then goes back to sleep.
				for start := time.Now(); ; {
					drain(t, receivers[i])
					if len(done) > 0 {
						break
					}
					if time.Since(start) > 5*time.Second {
						t.Fatalf("the write to receiver %d sleeps on although it drained", i)
					}
				}
				if j := <-done; j != i {
					t.Fatalf("draining receiver %d woke the write to %d", i, j)
				}
			}
			if n := a.Rescues(); n != 0 {
				t.Errorf("%d writes were woken by the timer", n)
			}
		})
	}
}

func TestManyWritesToOneCongestedDestinationAllGoOn(t *testing.T) {
	l := tcpLinks[0]
	needLab(t, l.hosts)
	a, b := l.pair(t, smallBuffers)
	a.SetRetestInterval(time.Hour)
	congest(t, l, b)
	const n = 20
	errs := make(chan error, n)
	for i := range n {
		go func() {
			ctx := context.Background()
			if i%2 == 0 {
				ctx = soon(t)
			}
			_, _, err := a.WriteMsgContext(ctx, make([]byte, 1<<10), nil, addr(b))
			errs <- err
		}()
	}
	time.Sleep(100 * time.Millisecond)
	for range n {
		drain(t, b)
	}
	for range n {
		select {
		case err := <-errs:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("a write sleeps on")
		}
	}
}

func TestWriteToCongestedDestinationEnds(t *testing.T) {
	for _, l := range tcpLinks {
		t.Run(l.name, func(t *testing.T) {
			needLab(t, l.hosts)
			a, b := l.pair(t, smallBuffers)
			congest(t, l, b)
			write := func(ctx context.Context) error {
				_, _, err := a.WriteMsgContext(ctx, []byte("x"), nil, addr(b))
				return err
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := write(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after its context: %v", err)
			}
			for name, ctx := range map[string]context.Context{"plain": context.Background(), "with context": soon(t)} {
				if err := a.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				if err := write(ctx); !isTimeout(err) {
					t.Errorf("%s, after the deadline: %v", name, err)
				}
			}
			if err := a.SetWriteDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- write(context.Background()) }()
			time.Sleep(50 * time.Millisecond)
			a.Close()
			if err := <-done; !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.EBADF) && err == nil {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

func TestFailWhenCongested(t *testing.T) {
	l := tcpLinks[0]
	needLab(t, l.hosts)
	cfg := *smallBuffers
	cfg.Congestion = rdssock.FailWhenCongested
	a, b := l.pair(t, &cfg)
	congest(t, l, b)
	_, err := a.WriteToAddrPort([]byte("x"), addr(b))
	if !errors.Is(err, rdssock.ErrCongested) || !errors.Is(err, syscall.ENOBUFS) {
		t.Errorf("got %v", err)
	}
	ms := []rdssock.Message{{Data: []byte("x"), Addr: addr(b)}, {Data: []byte("y"), Addr: netip.AddrPortFrom(addr(b).Addr(), 0)}}
	if n, err := a.WriteBatch(ms); n != 2 || err != nil || !errors.Is(ms[0].Err, rdssock.ErrCongested) || ms[1].Err != nil {
		t.Errorf("batch of %d: %v, %v, %v", n, err, ms[0].Err, ms[1].Err)
	}
	drain(t, b)
	deadline := time.Now().Add(5 * time.Second)
	for {
		_, err := a.WriteToAddrPort([]byte("x"), addr(b))
		if err == nil {
			break
		}
		if !errors.Is(err, rdssock.ErrCongested) || time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestWithoutMonitorTheTimerGetsWritesGoing(t *testing.T) {
	l := tcpLinks[0]
	needLab(t, l.hosts)
	cfg := *smallBuffers
	cfg.NoCongestionMonitor = true
	a, b := l.pair(t, &cfg)
	congest(t, l, b)
	done := make(chan error, 1)
	go func() {
		_, err := a.WriteToAddrPort([]byte("x"), addr(b))
		done <- err
	}()
	time.Sleep(50 * time.Millisecond)
	drain(t, b)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the write sleeps on")
	}
	if a.Rescues() == 0 {
		t.Error("the write was woken although nothing could wake it")
	}
}
