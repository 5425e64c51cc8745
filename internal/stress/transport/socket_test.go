package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdssock"
)

func TestMain(m *testing.M) { labtest.Main(m) }

const patience = 30 * time.Second

func listen(t *testing.T, addr string, cfg *rdssock.Config, size int) *Socket {
	t.Helper()
	s, err := Listen(netip.MustParseAddrPort(addr), cfg, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// onHost is a Config for sockets of the lab's n-th host.
func onHost(t *testing.T, n int) *rdssock.Config {
	t.Helper()
	ns, err := os.Open(labtest.Host(t, n).NetNS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return &rdssock.Config{NetNS: int(ns.Fd())}
}

func addrOf(s *Socket) netip.AddrPort { return s.Conn().LocalAddr().(rdssock.Addr).AddrPort }

func nameOf(s *Socket) Name { return NewName(addrOf(s), 0) }

// run calls f while the sockets are out of the runtime's poller.
func run(t *testing.T, f func(p *Poller), sockets ...*Socket) {
	t.Helper()
	p := NewPoller(sockets)
	if err := p.Run(func() { f(p) }); err != nil {
		t.Fatal(err)
	}
}

// await waits for what socket number i is to be ready for.
func await(t *testing.T, p *Poller, i int, write bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		for j := range p.sockets {
			p.Want(j, write && j == i)
		}
		if errno := p.Wait(100 * time.Millisecond); errno != 0 {
			t.Fatal(errno)
		}
		if readable, writable := p.Ready(i); write && writable || !write && readable {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("socket %d is not ready in %v", i, patience)
		}
	}
}

func TestMessagesOfEachSizeArriveInBatchesOrOneByOne(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for _, tt := range []struct {
		name    string
		port    int
		size    int
		batches []int // of 40 messages
	}{
		{"copied to one buffer", 6100, 100, []int{32, 8}},
		{"gathered by the kernel", 6110, 4000, []int{32, 8}},
		{"too large for batches", 6120, 9000, []int{1, 1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := listen(t, fmt.Sprintf("127.0.0.1:%d", tt.port), nil, tt.size)
			b := listen(t, fmt.Sprintf("127.0.0.2:%d", tt.port), nil, tt.size)
			from, to := addrOf(a), nameOf(b)
			header, payload := []byte("header"), bytes.Repeat([]byte{'x'}, tt.size-6)
			run(t, func(p *Poller) {
				for i := range 40 {
					header[0] = byte(i)
					if errno := a.Send(header, payload, &to); errno != 0 {
						t.Fatalf("message %d: %v", i, errno)
					}
				}
				await(t, p, 1, false)
				next := 0
				for _, want := range tt.batches {
					n, errno := b.Receive(false)
					if n != want || errno != 0 {
						t.Fatalf("received %d, %v, want %d", n, errno, want)
					}
					for i := range n {
						data, _, name := b.Message(i)
						header[0] = byte(next)
						if want := append(header[:6:6], payload...); !bytes.Equal(data, want) {
							t.Fatalf("message %d is %d bytes, %q", next, len(data), data[:min(len(data), 8)])
						}
						if got := Source(name); got != from {
							t.Fatalf("from %v, want %v", got, from)
						}
						if want := NewName(from, 0); !want.Equal(name) {
							t.Fatalf("its name is %x", name)
						}
						next++
					}
				}
				if tt.batches[0] > 1 {
					if n, errno := b.Receive(false); n != 0 || errno != 0 {
						t.Errorf("received %d more, %v", n, errno)
					}
				}
			}, a, b)
		})
	}
}

func TestMessagesAreTakenOneAtATimeAndInBatchesInTurn(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	a, b := listen(t, "127.0.0.1:6190", nil, 100), listen(t, "127.0.0.2:6190", nil, 4)
	from, to := addrOf(a), nameOf(b)
	run(t, func(p *Poller) {
		for _, text := range []string{"one", "two", "three", "", "five"} {
			if errno := a.Send([]byte(text), nil, &to); errno != 0 {
				t.Fatal(errno)
			}
		}
		await(t, p, 1, false)
		var got []string
		take := func(receive func(bool) (int, syscall.Errno), wait bool) {
			n, errno := receive(wait)
			if errno != 0 {
				t.Fatal(errno)
			}
			for i := range n {
				data, control, name := b.Message(i)
				if got = append(got, string(data)); len(control) != 0 || Source(name) != from {
					t.Errorf("%q comes from %v with %d bytes of control messages", data, Source(name), len(control))
				}
			}
			if n > 0 && !b.More(n) && len(got) < 3 {
				t.Error("there may be no more")
			}
		}
		take(b.ReceiveOne, false)
		take(b.ReceiveOne, true)
		take(b.Receive, false)
		take(b.ReceiveOne, false)
		if want := []string{"one", "two", "three", "", "five"}; !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
		a.Send([]byte("too long"), nil, &to)
		await(t, p, 1, false)
		if n, errno := b.ReceiveOne(true); n != 1 || errno != 0 {
			t.Fatalf("received %d, %v", n, errno)
		}
		if data, _, _ := b.Message(0); len(data) <= 4 {
			t.Errorf("what was too long seems to have %d bytes", len(data))
		}
		if n, errno := b.ReceiveOne(true); n != 0 || errno != 0 {
			t.Errorf("received %d, %v", n, errno)
		}
	}, a, b)
}

func TestAMessageThatIsTooLongShows(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	a, b := listen(t, "127.0.0.1:6130", nil, 100), listen(t, "127.0.0.2:6130", nil, 64)
	to := nameOf(b)
	run(t, func(p *Poller) {
		if errno := a.Send(make([]byte, 100), nil, &to); errno != 0 {
			t.Fatal(errno)
		}
		await(t, p, 1, false)
		n, errno := b.Receive(false)
		if n != 1 || errno != 0 {
			t.Fatalf("received %d, %v", n, errno)
		}
		if data, _, _ := b.Message(0); len(data) <= 64 {
			t.Errorf("it seems to have %d bytes", len(data))
		}
	}, a, b)
}

func TestReceiveWaitsForAMessage(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	a, b := listen(t, "127.0.0.1:6140", nil, 100), listen(t, "127.0.0.2:6140", nil, 100)
	other := listen(t, "127.0.0.3:6140", nil, 100)
	done := make(chan error)
	run(t, func(*Poller) {
		if n, errno := b.Receive(true); n != 0 || errno != 0 { // it gives up in time
			t.Errorf("received %d, %v", n, errno)
		}
		go func() {
			_, err := other.Conn().WriteToAddrPort([]byte("late"), netip.MustParseAddrPort("127.0.0.2:6140"))
			done <- err
		}()
		for deadline := time.Now().Add(patience); ; {
			n, errno := b.Receive(true)
			if errno != 0 || time.Now().After(deadline) {
				t.Fatalf("received nothing, %v", errno)
			}
			if n > 0 {
				break
			}
		}
		if data, _, _ := b.Message(0); string(data) != "late" {
			t.Errorf("received %q", data)
		}
	}, a, b)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAFullSendBufferIsWritableWhenItsMessagesAreCanceled(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Hosts(2), labtest.Root)
	cfg := onHost(t, 1)
	cfg.SendBuffer = 16 << 10
	a := listen(t, "10.9.0.1:6150", cfg, 1000)
	nobody := NewName(netip.MustParseAddrPort("10.9.0.99:6150"), 0)
	run(t, func(p *Poller) {
		sent := 0
		errno := syscall.Errno(0)
		for ; errno == 0 && sent < 1000; sent++ {
			errno = a.Send(make([]byte, 1000), nil, &nobody)
		}
		if errno != syscall.EAGAIN || sent < 2 {
			t.Fatalf("message %d: %v, want %v", sent, errno, syscall.EAGAIN)
		}
		p.Want(0, true)
		if errno := p.Wait(0); errno != 0 {
			t.Fatal(errno)
		}
		if _, writable := p.Ready(0); writable {
			t.Error("it is writable")
		}
		if errno := a.Cancel(&nobody); errno != 0 {
			t.Fatal(errno)
		}
		await(t, p, 0, true)
		if errno := a.Send(make([]byte, 1000), nil, &nobody); errno != 0 {
			t.Errorf("afterwards: %v", errno)
		}
	}, a)
}

func TestACongestedDestinationRefusesAndThenSaysThatItIsNotAnyMore(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Hosts(2), labtest.Root)
	here, there := onHost(t, 1), onHost(t, 2)
	there.ReceiveBuffer = 4 << 10
	a, b := listen(t, "10.9.0.1:6160", here, 1000), listen(t, "10.9.0.2:6160", there, 1000)
	to := nameOf(b)
	run(t, func(p *Poller) {
		errno := syscall.Errno(0)
		for deadline := time.Now().Add(patience); errno != syscall.ENOBUFS; {
			if errno = a.Send(make([]byte, 1000), nil, &to); errno != 0 && errno != syscall.EAGAIN && errno != syscall.ENOBUFS {
				t.Fatal(errno)
			}
			if time.Now().After(deadline) {
				t.Fatal("it never is congested")
			}
			p.Want(0, false)
			p.Want(1, false)
			p.Wait(time.Millisecond)
		}
		told := false
		for deadline := time.Now().Add(patience); !told; {
			if _, errno := b.Receive(false); errno != 0 {
				t.Fatal(errno)
			}
			n, errno := a.Receive(false)
			if errno != 0 {
				t.Fatal(errno)
			}
			for i := range n {
				_, control, _ := a.Message(i)
				for it := cmsg.Parse(a.Conn().Dialect(), control); it.Next(); {
					classes, err := it.Message().CongestionUpdate()
					told = told || err == nil && classes.Contains(6160)
				}
			}
			if time.Now().After(deadline) {
				t.Fatal("it is never told of")
			}
			p.Want(0, false)
			p.Want(1, false)
			p.Wait(10 * time.Millisecond)
		}
		if errno := a.Send(make([]byte, 1000), nil, &to); errno != 0 {
			t.Errorf("afterwards: %v", errno)
		}
	}, a, b)
}

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

func TestSocketsComeBackToTheRuntimesPoller(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	a, b := listen(t, "127.0.0.1:6170", nil, 100), listen(t, "127.0.0.2:6170", nil, 100)
	var before int
	for i := range 20 {
		run(t, func(*Poller) {}, a, b)
		if i == 0 {
			before = descriptors(t)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, and %d at first", after, before)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, _, _, err := b.Conn().ReadMsgContext(ctx, make([]byte, 10), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read with a deadline: %v", err)
	}
	if _, err := a.Conn().WriteToAddrPort([]byte("back"), b.Conn().LocalAddr().(rdssock.Addr).AddrPort); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 10)
	b.Conn().SetReadDeadline(time.Now().Add(patience))
	if n, from, err := b.Conn().ReadFromAddrPort(got); string(got[:n]) != "back" || from != addrOf(a) || err != nil {
		t.Errorf("%q from %v, %v", got[:n], from, err)
	}
}

func TestNothingRunsIfASocketCannotLeaveTheRuntimesPoller(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	a, b := listen(t, "127.0.0.1:6180", nil, 100), listen(t, "127.0.0.2:6180", nil, 100)
	b.Conn().Close()
	before := descriptors(t)
	p := NewPoller([]*Socket{a, b})
	if err := p.Run(func() { t.Error("it ran") }); err == nil {
		t.Error("no error")
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, and %d before", after, before)
	}
	if _, err := a.Conn().WriteToAddrPort(nil, netip.MustParseAddrPort("127.0.0.2:1")); err != nil {
		t.Errorf("the other socket: %v", err)
	}
}
