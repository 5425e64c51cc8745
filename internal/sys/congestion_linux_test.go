package sys_test

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/sys"
)

// congest sends from a to b until the kernel refuses it, and returns how many
// messages of 1 KiB it took before.
func congest(t testing.TB, a, b rds) (sent int) {
	t.Helper()
	data := make([]byte, 1<<10)
	for range 1000 {
		switch _, errno := a.send(data, nil, b.name(), 0); errno {
		case 0:
			sent++
		case unix.ENOBUFS:
			return sent
		default:
			t.Fatal(errno)
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%v takes %d messages without congestion", b.name(), sent)
	return 0
}

// drain takes all that arrives, and returns how many messages.
func (s rds) drain() (got int) {
	s.t.Helper()
	for {
		if _, ok := s.wait(50 * time.Millisecond); !ok {
			return got
		}
		got++
	}
}

// congestedPair is a pair whose b has a receive buffer of 4 KiB and is congested.
func congestedPair(t testing.TB, monitor int) (a, b rds, sent int) {
	t.Helper()
	a, b = pair(t)
	a.set(abi.SOL_RDS, abi.RDS_CONG_MONITOR, monitor)
	b.set(unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10)
	return a, b, congest(t, a, b)
}

func TestReceiveBufferIsWhereCongestionBeginsAndNoLimit(t *testing.T) {
	needHosts(t, 2)
	_, b, sent := congestedPair(t, 1)
	if sent < 5 {
		t.Errorf("congested after %d KiB, and the receive buffer is 4 KiB", sent)
	}
	if got := b.drain(); got != sent {
		t.Errorf("%d of %d messages arrived", got, sent)
	}
}

func TestCongestionIsOfOnePortAndDoesNotShowInPoll(t *testing.T) {
	needHosts(t, 2)
	a, b, _ := congestedPair(t, 1)
	other := bound(t, 2, addr("10.9.0.2"))
	if !writable(a) {
		t.Error("not writable")
	}
	// Of everybody who sends there.
	_, errno := bound(t, 1, addr("10.9.0.1")).send([]byte("x"), nil, b.name(), 0)
	want(t, errno, unix.ENOBUFS)
	a.mustSend([]byte("elsewhere"), other.name())
	if got := other.get(); got.data != "elsewhere" {
		t.Errorf("received %+v", got)
	}
}

func writable(s rds) (ok bool) {
	s.do(func(fd uintptr) { ok = sys.Writable(fd) })
	return ok
}

func TestCongestionEndsBelowHalfTheReceiveBuffer(t *testing.T) {
	needHosts(t, 2)
	a, b, sent := congestedPair(t, 1)
	for unread := sent; unread > 0; unread-- {
		a.poll(unix.POLLIN, 20*time.Millisecond)
		_, errno := a.send(nil, nil, b.name(), 0)
		switch {
		case unread >= 2 && errno != unix.ENOBUFS:
			t.Fatalf("with %d KiB unread of 4: %v", unread, errno)
		case unread < 2:
			eventually(t, "the port is free", func() bool {
				_, errno := a.send(nil, nil, b.name(), 0)
				return errno == 0
			})
		}
		b.get()
	}
}

// The update has one bit for each 64th of the ports, comes once for each
// refused send, and comes alone.
func TestCongestionUpdateNamesPortsModulo64AndComesOnce(t *testing.T) {
	needHosts(t, 2)
	a, b, _ := congestedPair(t, 1)
	other := bound(t, 2, addr("10.9.0.2"))
	a.mustSend(nil, netip.AddrPortFrom(other.name().Addr(), 0)) // its pong is data
	eventually(t, "a pong", func() bool { return a.poll(unix.POLLIN, 0) != 0 })
	// Reading makes data of no interest to the order: the update goes first.
	b.drain()
	var update received
	eventually(t, "a congestion update", func() bool {
		r := a.recv(8, 64, unix.MSG_PEEK)
		if r.named {
			return false
		}
		update = r
		return r.errno == 0
	})
	if update.n != 0 || update.named || len(messages(t, update.control)) != 1 {
		t.Fatalf("received %+v", update)
	}
	m := messages(t, update.control)[0]
	if m.level != abi.SOL_RDS || m.kind != abi.RDS_CMSG_CONG_UPDATE || len(m.data) != 8 {
		t.Fatalf("control message %+v", m)
	}
	if got, want := (abi.Layout{}).Uint64(m.data), uint64(1)<<abi.CongBit(b.name().Port()); got != want {
		t.Errorf("mask %#x, want %#x for port %d", got, want, b.name().Port())
	}
	// MSG_PEEK consumed it, and left the data.
	if got := a.recv(8, 64, 0); got.errno != 0 || !got.named {
		t.Errorf("after the update: %+v", got)
	}
	if got := a.recv(8, 64, 0); got.errno != unix.EAGAIN {
		t.Errorf("after the data: %+v", got)
	}
}

func TestCongestionUpdateIsLostWithoutRoom(t *testing.T) {
	needHosts(t, 2)
	a, b, _ := congestedPair(t, 1)
	for _, room := range []int{0, 8} {
		b.drain()
		eventually(t, "a congestion update", func() bool { return a.poll(unix.POLLIN, 0) != 0 })
		got := a.recv(8, room, 0)
		if got.errno != 0 || got.n != 0 || got.named || got.flags&unix.MSG_CTRUNC == 0 {
			t.Errorf("with %d bytes of room: %+v", room, got)
		}
		if got := a.recv(8, 64, 0); got.errno != unix.EAGAIN {
			t.Errorf("afterwards: %+v", got)
		}
		congest(t, a, b)
	}
}

func TestBlockingSendToACongestedPortKnowsNoTimeout(t *testing.T) {
	needHosts(t, 2)
	a, b, _ := congestedPair(t, 1)
	a.blocking(10 * time.Millisecond)
	var m sys.Msg
	m.SetData([]byte("late"))
	m.SetName(b.name(), 0)
	done := onThread(func() {
		a.do(func(fd uintptr) {
			if _, errno := m.Send(fd, 0); errno != 0 {
				t.Error(errno)
			}
		})
	})
	select {
	case <-done:
		t.Error("the send did not wait")
	case <-time.After(200 * time.Millisecond):
	}
	b.drain()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("the send waits on")
	}
}

func TestCloseEndsCongestion(t *testing.T) {
	needHosts(t, 2)
	a, b, _ := congestedPair(t, 1)
	name := b.name()
	b.Close()
	eventually(t, "the port is free", func() bool {
		_, errno := a.send(nil, nil, name, 0)
		return errno == 0
	})
}

// Without the monitor any congestion update in any namespace makes each socket
// readable once, and there is nothing to read.
func TestWithoutMonitorReadableMayMeanNothing(t *testing.T) {
	needHosts(t, 2)
	bystander := loopback(t)
	const readable = unix.POLLIN | pollRdNorm | pollWrBand
	bystander.poll(readable, 0)
	if got := bystander.poll(readable, 0); got != 0 {
		t.Fatalf("poll %#x before anything happened", got)
	}
	_, b, _ := congestedPair(t, 1)
	b.drain()
	eventually(t, "the bystander is readable", func() bool {
		got := bystander.poll(readable, 0)
		return got == readable
	})
	if got := bystander.recv(8, 64, 0); got.errno != unix.EAGAIN {
		t.Errorf("received %+v", got)
	}
	quiet := false
	for range 10 {
		quiet = quiet || bystander.poll(readable, 0) == 0
	}
	if !quiet {
		t.Error("readable for ever")
	}
}

// The first poll(2) after a refused send waits for any congestion update; any
// poll makes the kernel forget the refusal (net/rds/af_rds.c:rds_poll).
func TestWithoutMonitorOnlyTheFirstPollAfterARefusalIsWoken(t *testing.T) {
	needHosts(t, 2)
	for name, first := range map[string]bool{"first": true, "second": false} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := congestedPair(t, 0)
			var took time.Duration
			for range 50 {
				_, errno := a.send(nil, nil, b.name(), 0)
				want(t, errno, unix.ENOBUFS)
				if !first {
					a.poll(unix.POLLIN, 0)
				}
				done := onThread(func() {
					start := time.Now()
					a.poll(unix.POLLIN, time.Second)
					took = time.Since(start)
				})
				time.Sleep(100 * time.Millisecond)
				select {
				case <-done:
					// An update that had come before, or of another host.
					continue
				default:
				}
				b.drain()
				<-done
				break
			}
			if woken := took < 900*time.Millisecond; woken != first {
				t.Errorf("poll took %v", took)
			}
		})
	}
}

func TestLoopbackHasNoCongestion(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	s.set(unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10)
	s.set(unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<10)
	const count = 200
	data := make([]byte, 1<<10)
	for range count {
		// The send buffer may be full while another thread of the kernel delivers.
		eventually(t, "room in the send buffer", func() bool {
			_, errno := s.send(data, nil, s.name(), 0)
			if errno != 0 && errno != unix.EAGAIN {
				t.Fatal(errno)
			}
			return errno == 0
		})
	}
	if got := s.drain(); got != count {
		t.Errorf("%d of %d messages arrived", got, count)
	}
}

// Sockets on TCP that talk within a host do so over loopback, which tests the
// congestion of the address that the message came from.
func TestCongestionWithinAHostWorksOnOneAddressOnly(t *testing.T) {
	needHosts(t, 2)
	onTCP := func(a string) rds {
		s := socket(t, 1)
		s.set(abi.SOL_RDS, abi.SO_RDS_TRANSPORT, int(abi.RDS_TRANS_TCP))
		want(t, s.Bind(netip.AddrPortFrom(addr(a), 0), 0), 0)
		return s
	}
	for _, tt := range []struct {
		name     string
		from, to string
		works    bool
	}{
		{"one address", "127.0.0.1", "127.0.0.1", true},
		{"two addresses", "127.0.0.1", "127.0.0.2", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := onTCP(tt.from), onTCP(tt.to)
			b.set(unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10)
			worked := false
			for range 200 {
				time.Sleep(time.Millisecond)
				_, errno := a.send(make([]byte, 1<<10), nil, b.name(), 0)
				if errno == unix.ENOBUFS {
					worked = true
					break
				}
				want(t, errno, 0)
			}
			if worked != tt.works {
				t.Errorf("congested %t", worked)
			}
		})
	}
}
