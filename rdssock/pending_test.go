package rdssock_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/rdssock"
)

// deadDestinations are on the network of the hosts, and nobody has them.
func deadDestinations(l link) (a, b netip.AddrPort) {
	if l.a.addr.Is4() {
		return netip.MustParseAddrPort("10.9.0.99:4000"), netip.MustParseAddrPort("10.9.0.98:4000")
	}
	return netip.MustParseAddrPort("[fd00::99]:4000"), netip.MustParseAddrPort("[fd00::98]:4000")
}

func TestPendingCountsWhatADeadDestinationHolds(t *testing.T) {
	for _, l := range tcpLinks {
		t.Run(l.name, func(t *testing.T) {
			needLab(t, l.hosts)
			a, b := l.pair(t, nil)
			dead, other := deadDestinations(l)
			for range 3 {
				if _, err := a.WriteToAddrPort(make([]byte, 1000), dead); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := a.WriteToAddrPort(make([]byte, 5000), other); err != nil {
				t.Fatal(err)
			}
			if _, err := a.WriteToAddrPort([]byte("arrives"), addr(b)); err != nil {
				t.Fatal(err)
			}
			if _, _, _, _, err := b.ReadMsgContext(soon(t), make([]byte, 8), nil); err != nil {
				t.Fatal(err)
			}
			want := rdssock.Queue{Messages: 4, Bytes: 8000, Destinations: []rdssock.DestinationQueue{
				{Addr: other, Messages: 1, Bytes: 5000},
				{Addr: dead, Messages: 3, Bytes: 3000},
			}}
			got := pendingWithout(t, a, addr(b))
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Errorf("pending (-want +got):\n%s", diff)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := a.Flush(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "8000 bytes in 4 messages") {
				t.Errorf("Flush: %v", err)
			}
			for _, dst := range []netip.AddrPort{dead, other} {
				if err := a.CancelSentTo(dst); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.Flush(soon(t)); err != nil {
				t.Errorf("Flush after CancelSentTo: %v", err)
			}
		})
	}
}

// pendingWithout is Pending once nothing for dst is in it.
func pendingWithout(t *testing.T, c *rdssock.Conn, dst netip.AddrPort) rdssock.Queue {
	t.Helper()
	for range 100 {
		q, err := c.Pending()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, d := range q.Destinations {
			found = found || d.Addr == dst
		}
		if !found {
			return q
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("messages to %v are not acknowledged", dst)
	return rdssock.Queue{}
}

func TestFlushMakesCloseLoseNothing(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, &rdssock.Config{SendBuffer: 4 << 20, ReceiveBuffer: 16 << 20})
		const n, size = 60, 50000
		for i := range n {
			if _, err := a.WriteToAddrPort(pattern(size+i), addr(b)); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Flush(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, size+n)
		for i := range n {
			got, _, _, _, err := b.ReadMsgContext(soon(t), buf, nil)
			if err != nil || !bytes.Equal(buf[:got], pattern(size+i)) {
				t.Fatalf("message %d of %d arrived as %d bytes: %v", i, n, got, err)
			}
		}
	})
}

func TestFullSendBufferNamesItsTopHolder(t *testing.T) {
	for _, l := range tcpLinks {
		t.Run(l.name, func(t *testing.T) {
			needLab(t, l.hosts)
			a, b := l.pair(t, nil)
			dead, _ := deadDestinations(l)
			fill(t, a, dead)
			for name, write := range map[string]func() error{
				"plain": func() error { _, err := a.WriteToAddrPort(make([]byte, 100), addr(b)); return err },
				"with context": func() error {
					_, _, err := a.WriteMsgContext(soon(t), make([]byte, 100), nil, addr(b))
					return err
				},
			} {
				if err := a.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				err := write()
				if !errors.Is(err, rdssock.ErrQueueFull) || !isTimeout(err) || !strings.Contains(err.Error(), dead.String()) {
					t.Errorf("%s: %v", name, err)
				}
			}
			// Room wakes the writes that wait for it.
			if err := a.SetWriteDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			errs := make(chan error, 2)
			go func() {
				_, err := a.WriteToAddrPort([]byte("plain"), addr(b))
				errs <- err
			}()
			go func() {
				_, _, err := a.WriteMsgContext(soon(t), []byte("context"), nil, addr(b))
				errs <- err
			}()
			time.Sleep(50 * time.Millisecond)
			if len(errs) > 0 {
				t.Errorf("a write did not wait: %v", <-errs)
			}
			if err := a.CancelSentTo(dead); err != nil {
				t.Fatal(err)
			}
			for range cap(errs) {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// fill writes to dst until the send buffer is full.
func fill(t *testing.T, c *rdssock.Conn, dst netip.AddrPort) {
	t.Helper()
	for range 1000 {
		if err := c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err := c.WriteToAddrPort(make([]byte, 10000), dst)
		if errors.Is(err, rdssock.ErrQueueFull) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the send buffer has no end")
}

func TestDestinationLimitKeepsRoomForOthers(t *testing.T) {
	for _, l := range tcpLinks {
		t.Run(l.name, func(t *testing.T) {
			needLab(t, l.hosts)
			a, b := l.pair(t, &rdssock.Config{DestinationLimit: 30000, Congestion: rdssock.FailWhenCongested})
			dead, _ := deadDestinations(l)
			sent := 0
			for ; sent < 10; sent++ {
				_, err := a.WriteToAddrPort(make([]byte, 10000), dead)
				if errors.Is(err, rdssock.ErrQueueFull) && strings.Contains(err.Error(), dead.String()) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if sent != 3 {
				t.Errorf("%d messages of 10000 bytes fitted below 30000", sent)
			}
			for range 20 {
				if _, err := a.WriteToAddrPort(make([]byte, 10000), addr(b)); err != nil {
					t.Fatal(err)
				}
				if _, _, _, _, err := b.ReadMsgContext(soon(t), make([]byte, 10000), nil); err != nil {
					t.Fatal(err)
				}
				if err := waitAcknowledged(a, addr(b)); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.CancelSentTo(dead); err != nil {
				t.Fatal(err)
			}
			if _, err := a.WriteToAddrPort(make([]byte, 10000), dead); err != nil {
				t.Errorf("after CancelSentTo: %v", err)
			}
		})
	}
}

func waitAcknowledged(c *rdssock.Conn, dst netip.AddrPort) error {
	for range 500 {
		q, err := c.Pending()
		if err != nil {
			return err
		}
		found := false
		for _, d := range q.Destinations {
			found = found || d.Addr == dst
		}
		if !found {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errors.New("not acknowledged")
}

// The loopback transport has no congestion: a receiver that does not read takes
// memory without end, but for the limit.
func TestDestinationLimitHoldsOnLoopback(t *testing.T) {
	for _, l := range loopLinks {
		t.Run(l.name, func(t *testing.T) {
			needLab(t, l.hosts)
			a, b := l.pair(t, &rdssock.Config{DestinationLimit: 50000})
			if err := a.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			sent := 0
			for ; sent < 100; sent++ {
				if _, err := a.WriteToAddrPort(make([]byte, 1000), addr(b)); err != nil {
					if !errors.Is(err, rdssock.ErrQueueFull) || !isTimeout(err) {
						t.Fatal(err)
					}
					break
				}
			}
			if sent != 50 {
				t.Errorf("%d messages of 1000 bytes fitted below 50000", sent)
			}
			if err := a.SetWriteDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := a.WriteToAddrPort(make([]byte, 1000), addr(b))
				done <- err
			}()
			buf := make([]byte, 1000)
			for range sent + 1 {
				if _, _, _, _, err := b.ReadMsgContext(soon(t), buf, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				t.Errorf("the write that waited: %v", err)
			}
		})
	}
}

func TestCancelSentTo(t *testing.T) {
	needLab(t, 0)
	a, _ := loopLinks[0].pair(t, nil)
	if err := a.CancelSentTo(netip.MustParseAddrPort("127.0.0.1:9")); err != nil {
		t.Errorf("nothing to drop: %v", err)
	}
	if err := a.CancelSentTo(netip.AddrPort{}); !errors.Is(err, syscall.EDESTADDRREQ) {
		t.Errorf("no destination: %v", err)
	}
}
