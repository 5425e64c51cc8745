package sys_test

import (
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/sys"
)

func TestReceivingFromNothing(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for _, tt := range []struct {
		name  string
		s     rds
		flags int
		errno syscall.Errno
	}{
		{"bound", loopback(t), 0, unix.EAGAIN},
		{"not bound", socket(t, 0), 0, unix.EAGAIN},
		{"the error queue", loopback(t), unix.MSG_ERRQUEUE, unix.EAGAIN},
		{"out-of-band data", loopback(t), unix.MSG_OOB, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.s.recv(8, 64, tt.flags)
			if got.errno != tt.errno || got.n != 0 {
				t.Errorf("received %+v", got)
			}
		})
	}
}

func TestReceiveTimeoutIsETIMEDOUT(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	s.blocking(30 * time.Millisecond)
	start := time.Now()
	got := s.recv(8, 0, 0)
	if took := time.Since(start); got.errno != unix.ETIMEDOUT || took < 10*time.Millisecond {
		t.Errorf("after %v: %+v", took, got)
	}
}

func TestReceiveOfALongMessage(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	for _, tt := range []struct {
		name  string
		room  int
		flags int
		n     int
	}{
		{"plain", 3, 0, 3},
		{"told the full length", 3, unix.MSG_TRUNC, 10},
		{"told the full length without any room", 0, unix.MSG_TRUNC, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.mustSend([]byte("0123456789"), s.name())
			for _, peek := range []int{unix.MSG_PEEK, 0} {
				got := s.recv(tt.room, 0, tt.flags|peek)
				if got.n != tt.n || got.data != "0123456789"[:tt.room] || got.flags&unix.MSG_TRUNC == 0 || got.src != s.name() {
					t.Errorf("received %+v", got)
				}
			}
			if got := s.recv(16, 0, 0); got.errno != unix.EAGAIN {
				t.Errorf("the rest was kept: %+v", got)
			}
		})
	}
}

// An unreadable place for the data leaves the message, one for control
// messages loses it.
func TestReceiveIntoBadMemory(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	bad := memory(t, os.Getpagesize(), unix.PROT_NONE)
	for _, tt := range []struct {
		name      string
		data, oob []byte
		lost      bool
	}{
		{"data", bad[:16], nil, false},
		{"control messages", make([]byte, 16), bad[:64], true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := loopback(t)
			s.set(unix.SOL_SOCKET, unix.SO_TIMESTAMP, 1)
			s.mustSend([]byte("x"), s.name())
			var m sys.Msg
			m.SetData(tt.data)
			m.SetControl(tt.oob)
			s.do(func(fd uintptr) {
				_, errno := m.Recv(fd, 0)
				want(t, errno, unix.EFAULT)
			})
			if got := s.recv(8, 0, 0); (got.errno == unix.EAGAIN) != tt.lost {
				t.Errorf("afterwards: %+v", got)
			}
		})
	}
}

func TestSourceOfAMessageIsOfItsFamily(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.IPv6)
	for a, size := range map[string]int{"127.0.0.1": abi.SizeofSockaddrIn, "::1": abi.SizeofSockaddrIn6} {
		s := bound(t, 0, addr(a))
		s.mustSend(nil, s.name())
		var b sys.Batch
		b.Resize(1)
		b.Set(0, nil, nil)
		s.do(func(fd uintptr) {
			if _, errno := b.Recv(fd, 0, 0); errno != 0 {
				t.Error(errno)
			}
		})
		if n, _, _, name := b.Message(0); n != 0 || len(name) != size {
			t.Errorf("%s: %d bytes from %v", a, n, name)
		}
	}
}

func TestControlMessagesOfAMessageComeInThisOrder(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	const usec, zerocopy = 29, 13
	for _, s := range []rds{a, b} {
		s.set(unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1)
		s.set(abi.SOL_RDS, abi.SO_TIMESTAMP_OLD, 1)
		want(t, s.Setsockopt(abi.SOL_RDS, abi.SO_RDS_MSG_RXPATH_LATENCY, []byte{1, 2, 0, 0}), 0)
	}
	sendZerocopy(t, b, a, 7)
	a.get()
	eventually(t, "the completion", func() bool { return b.poll(unix.POLLIN, 0) != 0 })
	a.mustSend([]byte("x"), b.name())
	var got []message
	eventually(t, "the message", func() bool {
		// A completion alone would come without a name.
		var m sys.Msg
		oob := make([]byte, 512)
		m.SetData(make([]byte, 8))
		m.SetControl(oob)
		queue := b.table(abi.RDS_INFO_RECV_MESSAGES)
		for _, r := range queue {
			if info, _ := abi.ParseMessageInfo(r, abi.Layout{}); info.Local == b.name() {
				b.do(func(fd uintptr) { m.Recv(fd, 0) })
				got = messages(t, oob[:m.ControlLen()])
				return true
			}
		}
		return false
	})
	var kinds [][2]int
	for _, m := range got {
		kinds = append(kinds, [2]int{m.level, m.kind})
	}
	order := [][2]int{{unix.SOL_SOCKET, usec}, {abi.SOL_RDS, abi.RDS_CMSG_RXPATH_LATENCY}, {abi.SOL_RDS, zerocopy}}
	if len(kinds) != 3 || [3][2]int(kinds) != [3][2]int(order) {
		t.Errorf("kinds %v, want %v", kinds, order)
	}
}

func TestTimestampsAreMicrosecondsWhateverIsAsked(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for _, tt := range []struct {
		name       string
		level, opt int
		kind       int
	}{
		{"SO_TIMESTAMP", unix.SOL_SOCKET, unix.SO_TIMESTAMP_OLD, unix.SO_TIMESTAMP_OLD},
		{"SO_TIMESTAMP_NEW", unix.SOL_SOCKET, unix.SO_TIMESTAMP_NEW, unix.SO_TIMESTAMP_NEW},
		{"SO_TIMESTAMPNS", unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_OLD, unix.SO_TIMESTAMP_OLD},
		{"SO_TIMESTAMP of SOL_RDS", abi.SOL_RDS, unix.SO_TIMESTAMP_OLD, unix.SO_TIMESTAMP_OLD},
		{"SO_TIMESTAMP_NEW of SOL_RDS", abi.SOL_RDS, unix.SO_TIMESTAMP_NEW, unix.SO_TIMESTAMP_NEW},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := loopback(t)
			s.set(tt.level, tt.opt, 1)
			s.mustSend([]byte("x"), s.name())
			got := messages(t, s.recv(8, 256, 0).control)
			if len(got) != 1 || got[0].level != unix.SOL_SOCKET || got[0].kind != tt.kind || len(got[0].data) != 16 {
				t.Fatalf("control messages %+v", got)
			}
			l := abi.Layout{}
			sec, usec := int64(l.Uint64(got[0].data)), int64(l.Uint64(got[0].data[8:]))
			if age := time.Since(time.Unix(sec, usec*1000)); usec >= 1e6 || age < -time.Second || age > time.Minute {
				t.Errorf("%d s %d us", sec, usec)
			}
		})
	}
}

func TestLatencyIsOfThePointsAskedFor(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	want(t, b.Setsockopt(abi.SOL_RDS, abi.SO_RDS_MSG_RXPATH_LATENCY, []byte{2, 2, 0, 0}), 0)
	a.mustSend([]byte("x"), b.name())
	b.poll(unix.POLLIN, 5*time.Second)
	time.Sleep(20 * time.Millisecond)
	got := messages(t, b.get().control)
	if len(got) != 1 || got[0].kind != abi.RDS_CMSG_RXPATH_LATENCY || got[0].data[0] != 2 || got[0].data[1] != 2 || got[0].data[2] != 0 {
		t.Fatalf("control messages %+v", got)
	}
	// Nanoseconds from the queue of the socket to recvmsg.
	at := len(got[0].data) - abi.SizeofRxTraces
	if ns := (abi.Layout{}).Uint64(got[0].data[at:]); time.Duration(ns) < 10*time.Millisecond || time.Duration(ns) > 10*time.Second {
		t.Errorf("%v in the queue", time.Duration(ns))
	}
}

// Nothing is awaited for the absence of a pong: a message sent afterwards
// would arrive behind it.
func TestPingWithinAHostIsAnsweredOnOneAddressOnly(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	for a, answered := range map[string]bool{"127.0.0.1": true, "127.0.0.2": false} {
		s.mustSend([]byte("is ignored"), netip.AddrPortFrom(addr(a), 0))
		got, ok := s.wait(200 * time.Millisecond)
		if ok != answered || ok && (got.n != 0 || got.src != netip.AddrPortFrom(addr(a), 0)) {
			t.Errorf("ping of %s: %+v", a, got)
		}
	}
}

func TestPingEnableSwitchesPortZero(t *testing.T) {
	needHosts(t, 2)
	const knob = "/proc/sys/net/rds/ping_enable"
	set := func(v string) {
		if err := os.WriteFile(knob, []byte(v), 0); err != nil {
			t.Fatal(err)
		}
	}
	defer set("1")
	a, b := pair(t)
	for v, answered := range map[string]bool{"0": false, "1": true} {
		set(v)
		a.mustSend(nil, netip.AddrPortFrom(b.name().Addr(), 0))
		if got, ok := a.wait(300 * time.Millisecond); ok != answered {
			t.Errorf("ping_enable %s: %+v", v, got)
		}
	}
}

func TestPollTellsWhatCanBeDone(t *testing.T) {
	needHosts(t, 2)
	const all = unix.POLLIN | unix.POLLPRI | unix.POLLOUT | unix.POLLRDHUP | pollRdNorm | pollWrNorm | pollWrBand
	a, b := pair(t)
	const in, out = unix.POLLIN | pollRdNorm, unix.POLLOUT | pollWrNorm
	for _, s := range []rds{a, b} {
		s.set(abi.SOL_RDS, abi.RDS_CONG_MONITOR, 1)
	}
	check := func(when string, s rds, want int16) {
		t.Helper()
		if got := s.poll(all, 0); got != want {
			t.Errorf("%s: %#x, want %#x", when, got, want)
		}
	}
	check("idle", a, out)
	fresh := socket(t, 1)
	fresh.set(abi.SOL_RDS, abi.RDS_CONG_MONITOR, 1)
	check("not bound", fresh, out)
	a.mustSend([]byte("x"), b.name())
	b.poll(unix.POLLIN, 5*time.Second)
	check("with a message", b, in|out)
	fill(t, b, dead)
	check("and full", b, in)
	b.get()
	check("full only", b, 0)
	gone := a.name()
	a.Close()
	b.mustCancel(dead)
	b.mustSend([]byte("x"), gone)
	time.Sleep(50 * time.Millisecond)
	check("with a peer that is gone", b, out)
}

func (s rds) mustCancel(dst netip.AddrPort) {
	s.t.Helper()
	if err := s.Setsockopt(abi.SOL_RDS, abi.RDS_CANCEL_SENT_TO, sockaddr(dst, 0)); err != nil {
		s.t.Fatal(err)
	}
}

func TestCloseDropsWhatThePeerDidNotAcknowledge(t *testing.T) {
	needHosts(t, 2)
	h2 := labtest.Host(t, 2)
	a, b := pair(t)
	a.do(func(fd uintptr) {
		linger := unix.Linger{Onoff: 1, Linger: 5}
		want(t, unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &linger), 0)
	})
	a.set(unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 8<<20)
	b.set(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	h2.Cut()
	// TCP keeps what it has taken, which is less than this.
	const count = 100
	for range count {
		a.mustSend(make([]byte, 60000), b.name())
	}
	start := time.Now()
	a.Close()
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("close took %v: it lingered", took)
	}
	h2.Mend()
	// What is sent afterwards arrives, on every path.
	for range 20 {
		s := bound(t, 1, addr("10.9.0.1"))
		s.mustSend([]byte("later"), b.name())
	}
	later, earlier := 0, 0
	for later < 20 {
		if got := b.get(); got.data == "later" {
			later++
		} else {
			earlier++
		}
	}
	if earlier > count/2 {
		t.Errorf("%d of %d messages arrived after close", earlier, count)
	}
}

func TestCancelLooksAtTheLengthForTheFamily(t *testing.T) {
	needHosts(t, 2)
	s := bound(t, 1, addr("10.9.0.1"))
	v4, storage := sockaddr(dead, 0), make([]byte, abi.SizeofSockaddrStorage)
	copy(storage, v4)
	other := netip.AddrPortFrom(dead.Addr(), dead.Port()+1)
	for _, dst := range []netip.AddrPort{dead, other} {
		s.mustSend([]byte("x"), dst)
	}
	for _, tt := range []struct {
		name   string
		value  []byte
		errno  syscall.Errno
		queued int // afterwards
	}{
		{"nothing", nil, unix.EINVAL, 2},
		{"a short address", v4[:15], unix.EINVAL, 2},
		{"an IPv4 address with the length of a sockaddr_storage", storage, 0, 2},
		{"an IPv4 address", v4, 0, 1},
		{"the same again", v4, 0, 1},
		{"its other port, with the length of no address", append(sockaddr(other, 0), 0, 0, 0, 0), 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want(t, s.Setsockopt(abi.SOL_RDS, abi.RDS_CANCEL_SENT_TO, tt.value), tt.errno)
			if got := len(s.queue()); got != tt.queued {
				t.Errorf("%d messages queued, want %d", got, tt.queued)
			}
		})
	}
	t.Run("not bound", func(t *testing.T) {
		want(t, socket(t, 1).Setsockopt(abi.SOL_RDS, abi.RDS_CANCEL_SENT_TO, v4), unix.ENOTCONN)
	})
}

// queue is what the socket sent and its peers did not acknowledge.
func (s rds) queue() (ms []abi.MessageInfo) {
	s.t.Helper()
	for _, opt := range []int{abi.RDS6_INFO_SEND_MESSAGES, abi.RDS6_INFO_RETRANS_MESSAGES} {
		for _, r := range s.table(opt) {
			if m, ok := abi.ParseMessageInfo6(r, abi.Layout{}); ok && m.Local == s.name() {
				ms = append(ms, m)
			}
		}
	}
	return ms
}

// The addresses of the tables for IPv4 are taken from the wrong four bytes of
// the kernel's sixteen (net/rds/connection.c:__rds_inc_msg_cp).
func TestQueueTablesOfIPv4HaveNoAddresses(t *testing.T) {
	needHosts(t, 2)
	s := bound(t, 1, addr("10.9.0.1"))
	s.mustSend(make([]byte, 123), dead)
	if got := s.queue(); len(got) != 1 || got[0].Len != 123 || got[0].Remote != dead {
		t.Errorf("RDS6 tables: %+v", got)
	}
	found := false
	for _, opt := range []int{abi.RDS_INFO_SEND_MESSAGES, abi.RDS_INFO_RETRANS_MESSAGES} {
		for _, r := range s.table(opt) {
			m, _ := abi.ParseMessageInfo(r, abi.Layout{})
			if m.Local.Port() == s.name().Port() && m.Remote.Port() == dead.Port() {
				found = true
				if m.Local.Addr() != addr("0.0.0.0") || m.Remote.Addr() != addr("0.0.0.0") {
					t.Errorf("IPv4 table: %+v", m)
				}
			}
		}
	}
	if !found {
		t.Error("the IPv4 tables do not have the message")
	}
	s.mustCancel(dead)
}

func TestOptions(t *testing.T) {
	needHosts(t, 2)
	mr, mrFor := make([]byte, abi.SizeofGetMRArgs), make([]byte, abi.SizeofGetMRForDestArgs)
	region := memory(t, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE)
	at := uint64(uintptr(unsafe.Pointer(&region[0])))
	args := abi.GetMRArgs{Vec: abi.Iovec{Addr: at, Bytes: 8}}
	copy(mr, args.Append(nil, abi.Layout{}))
	copy(mrFor, abi.GetMRForDestArgs{Dest: dead, GetMRArgs: args}.Append(nil, abi.Layout{}))
	tcp := bound(t, 1, addr("10.9.0.1"))
	for _, tt := range []struct {
		name  string
		opt   int
		value []byte
		set   syscall.Errno
		get   syscall.Errno
	}{
		{"RDS_GET_MR over TCP", abi.RDS_GET_MR, mr, unix.EOPNOTSUPP, unix.ENOPROTOOPT},
		{"RDS_GET_MR of another length", abi.RDS_GET_MR, mr[:31], unix.EINVAL, unix.ENOPROTOOPT},
		{"RDS_GET_MR_FOR_DEST over TCP", abi.RDS_GET_MR_FOR_DEST, mrFor, unix.EOPNOTSUPP, unix.ENOPROTOOPT},
		{"RDS_FREE_MR of an unknown key", abi.RDS_FREE_MR, abi.FreeMRArgs{Cookie: 7}.Append(nil, abi.Layout{}), unix.EINVAL, unix.ENOPROTOOPT},
		{"RDS_BARRIER", 4, make([]byte, 16), unix.ENOPROTOOPT, unix.ENOPROTOOPT},
		{"RDS_RECVERR", abi.RDS_RECVERR, make([]byte, 4), 0, 0},
		{"RDS_RECVERR, longer", abi.RDS_RECVERR, make([]byte, 8), 0, 0},
		{"RDS_RECVERR, shorter", abi.RDS_RECVERR, make([]byte, 3), unix.EINVAL, unix.EINVAL},
		{"RDS_CONG_MONITOR", abi.RDS_CONG_MONITOR, make([]byte, 4), 0, unix.ENOPROTOOPT},
		{"RDS_CONG_MONITOR, shorter", abi.RDS_CONG_MONITOR, make([]byte, 3), unix.EINVAL, unix.ENOPROTOOPT},
		{"SO_RDS_TRANSPORT", abi.SO_RDS_TRANSPORT, make([]byte, 4), unix.EOPNOTSUPP, 0},
		{"SO_RDS_TRANSPORT of UEK", abi.UEK_SO_RDS_TRANSPORT, make([]byte, 4), unix.ENOPROTOOPT, unix.ENOPROTOOPT},
		{"SO_RDS_MSG_RXPATH_LATENCY", abi.SO_RDS_MSG_RXPATH_LATENCY, []byte{3, 0, 1, 2}, 0, unix.ENOPROTOOPT},
		{"SO_RDS_MSG_RXPATH_LATENCY off", abi.SO_RDS_MSG_RXPATH_LATENCY, make([]byte, 4), 0, unix.ENOPROTOOPT},
		{"SO_RDS_MSG_RXPATH_LATENCY of four", abi.SO_RDS_MSG_RXPATH_LATENCY, []byte{4, 0, 1, 2}, unix.EFAULT, unix.ENOPROTOOPT},
		{"SO_RDS_MSG_RXPATH_LATENCY of point 3", abi.SO_RDS_MSG_RXPATH_LATENCY, []byte{1, 3, 0, 0}, unix.EFAULT, unix.ENOPROTOOPT},
		{"SO_RDS_MSG_RXPATH_LATENCY of another length", abi.SO_RDS_MSG_RXPATH_LATENCY, make([]byte, 5), unix.EFAULT, unix.ENOPROTOOPT},
		{"SO_TIMESTAMP", abi.SO_TIMESTAMP_OLD, make([]byte, 4), 0, unix.ENOPROTOOPT},
		{"SO_TIMESTAMP of another length", abi.SO_TIMESTAMP_NEW, make([]byte, 8), unix.EFAULT, unix.ENOPROTOOPT},
		{"RDS6_CONN_RESET of UEK", abi.UEK_RDS6_CONN_RESET, make([]byte, abi.SizeofReset6), unix.ENOPROTOOPT, unix.ENOPROTOOPT},
		{"SO_RDS_INQ of UEK", abi.UEK_SO_RDS_INQ, make([]byte, 4), unix.ENOPROTOOPT, unix.ENOPROTOOPT},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want(t, tcp.Setsockopt(abi.SOL_RDS, tt.opt, tt.value), tt.set)
			_, _, err := tcp.Getsockopt(abi.SOL_RDS, tt.opt, make([]byte, len(tt.value)))
			want(t, err, tt.get)
		})
	}
	t.Run("RDS_GET_MR, not bound", func(t *testing.T) {
		want(t, socket(t, 1).Setsockopt(abi.SOL_RDS, abi.RDS_GET_MR, mr), unix.ENOTCONN)
	})
	t.Run("another level", func(t *testing.T) {
		want(t, tcp.SetsockoptInt(unix.SOL_IP, unix.IP_TTL, 1), unix.ENOPROTOOPT)
	})
}

func TestBufferSizesAreReportedDoubledAndLimited(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.Root)
	s := loopback(t)
	for _, tt := range []struct {
		name            string
		set, force, get int
		max             string
	}{
		{"send", unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, "/proc/sys/net/core/wmem_max"},
		{"receive", unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, "/proc/sys/net/core/rmem_max"},
	} {
		max := number(t, tt.max)
		for _, step := range []struct{ opt, value, want int }{
			{tt.set, 10000, 20000},
			{tt.set, max + 10000, 2 * max},
			{tt.force, max + 10000, 2*max + 20000},
		} {
			s.set(unix.SOL_SOCKET, step.opt, step.value)
			if got, err := s.GetsockoptInt(unix.SOL_SOCKET, tt.get); got != step.want || err != nil {
				t.Errorf("%s buffer set to %d: got %d, want %d: %v", tt.name, step.value, got, step.want, err)
			}
		}
	}
	if got, err := s.GetsockoptInt(unix.SOL_SOCKET, unix.SO_ERROR); got != 0 || err != nil {
		t.Errorf("SO_ERROR %d: %v", got, err)
	}
}

func TestTypeOfService(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	fresh := bound(t, 1, addr("10.9.0.1"))
	for _, tt := range []struct {
		name  string
		s     rds
		errno syscall.Errno
	}{
		{"not bound", socket(t, 1), unix.ENOTTY},
		{"on loopback", loopback(t), unix.ENOTTY},
		{"on TCP", fresh, 0},
		// It is still 0: TCP has no other.
		{"on TCP again", fresh, 0},
		{"after a message", a, unix.EINVAL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want(t, tt.s.SetTOS(5), tt.errno)
			if tos, err := tt.s.TOS(); tos != 0 || err != nil {
				t.Errorf("TOS %d: %v", tos, err)
			}
		})
	}
	b.do(func(fd uintptr) {
		for _, req := range []uintptr{abi.SIOCRDSSETTOS, abi.SIOCRDSGETTOS} {
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, req, 0)
			want(t, errno, unix.EFAULT)
		}
	})
}

func TestInfoTables(t *testing.T) {
	needHosts(t, 2)
	s := socket(t, 1)
	b := make([]byte, 1<<16)
	size, need, err := s.Getsockopt(abi.SOL_RDS, abi.RDS_INFO_COUNTERS, b)
	if err != nil || size != 40 || need%size != 0 || need == 0 {
		t.Fatalf("records of %d bytes, %d in all: %v", size, need, err)
	}
	for _, tt := range []struct {
		name  string
		opt   int
		b     []byte
		errno syscall.Errno
		n     int
	}{
		{"without room", abi.RDS_INFO_COUNTERS, nil, unix.ENOSPC, need},
		{"with too little", abi.RDS_INFO_COUNTERS, b[:need-1], unix.ENOSPC, need},
		{"with just enough", abi.RDS_INFO_COUNTERS, b[:need], 0, need},
		{"of a table that nobody provides", 10002, b, unix.ENOPROTOOPT, len(b)},
		{"of a transport that is not loaded", abi.RDS_INFO_IWARP_CONNECTIONS, b, unix.ENOPROTOOPT, len(b)},
		{"into memory that cannot be written", abi.RDS_INFO_COUNTERS, memory(t, 1<<16, unix.PROT_NONE), unix.EAGAIN, 1 << 16},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, n, err := s.Getsockopt(abi.SOL_RDS, tt.opt, tt.b)
			want(t, err, tt.errno)
			if n != tt.n {
				t.Errorf("length %d, want %d", n, tt.n)
			}
		})
	}
}

func TestTrafficWithinAHostUsesLoopback(t *testing.T) {
	needHosts(t, 2)
	s := bound(t, 1, addr("10.9.0.1"))
	s.mustSend([]byte("x"), s.name())
	if got := s.get(); got.data != "x" {
		t.Errorf("received %+v", got)
	}
	if got := s.transport(); got != abi.RDS_TRANS_TCP {
		t.Errorf("transport %v", got)
	}
	for _, r := range s.table(abi.RDS_INFO_CONNECTIONS) {
		if ip := [4]byte(s.name().Addr().AsSlice()); [4]byte(r[16:]) == ip && [4]byte(r[20:]) == ip {
			if name := unix.ByteSliceToString(r[24:40]); name != "loopback" {
				t.Errorf("a connection of transport %s", name)
			}
			return
		}
	}
	t.Error("no connection")
}

func TestKnobs(t *testing.T) {
	needHosts(t, 2)
	for name, value := range map[string]int{
		"reconnect_max_delay_ms": 1000, "max_unacked_packets": 8, "max_unacked_bytes": 16 << 20, "ping_enable": 1,
		"tcp/rds_tcp_sndbuf": 0, "tcp/rds_tcp_rcvbuf": 0,
	} {
		if got := number(t, "/proc/sys/net/rds/"+name); got != value {
			t.Errorf("%s is %d, want %d", name, got, value)
		}
	}
	for _, name := range []string{"pf_rds", "sol_rds"} {
		if _, err := os.Stat("/proc/sys/net/rds/" + name); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := number(t, "/proc/sys/net/rds/reconnect_min_delay_ms"); got < 1 || got > 10 {
		t.Errorf("reconnect_min_delay_ms is %d, want a tick", got)
	}
	if err := labtest.Host(t, 1).Do(func() error {
		if _, err := os.Stat("/proc/sys/net/rds/ping_enable"); !os.IsNotExist(err) {
			t.Errorf("ping_enable in another namespace: %v", err)
		}
		err := os.WriteFile("/proc/sys/net/rds/tcp/rds_tcp_sndbuf", []byte("1"), 0)
		want(t, err.(*os.PathError).Err, unix.EINVAL)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
