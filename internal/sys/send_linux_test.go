package sys_test

import (
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/sys"
)

// A sending is the arguments of a sendmsg(2) that may be all wrong.
type sending struct {
	from  rds
	data  []byte
	oob   []byte
	name  []byte
	flags int
}

func (s sending) send() (errno syscall.Errno) {
	iov := unix.Iovec{Base: unsafe.SliceData(s.data)}
	iov.SetLen(len(s.data))
	h := unix.Msghdr{
		Iov: &iov, Control: unsafe.SliceData(s.oob),
		Name: unsafe.SliceData(s.name), Namelen: uint32(len(s.name)),
	}
	h.SetIovlen(1)
	h.SetControllen(len(s.oob))
	s.from.do(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&h)), uintptr(s.flags))
	})
	return errno
}

// memory is pages outside the Go heap with such a protection.
func memory(t testing.TB, size, prot int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, size, prot, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}

// A message that is wrong in every way has its faults mended one by one: what
// the kernel complains about is the order in which it looks.
func TestSendErrorsComeInThisOrder(t *testing.T) {
	needHosts(t, 2)
	congested, free := socket(t, 1), bound(t, 2, addr("10.9.0.2"))
	a, b := pair(t)
	b.set(unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10)
	congest(t, a, b)

	unreadable := memory(t, 2<<20, unix.PROT_NONE)
	malformed := make([]byte, unix.CmsgSpace(8))
	putHeader(malformed, 3, abi.SOL_RDS, abi.RDS_CMSG_RDMA_DEST)
	s := sending{from: congested, flags: unix.MSG_NOSIGNAL, name: sockaddr(addrPort("224.0.0.1:5"), 0),
		data: unreadable[:1<<20+1], oob: malformed}
	for _, step := range []struct {
		fault string
		errno syscall.Errno
		mend  func()
	}{
		{"flag", unix.EOPNOTSUPP, func() { s.flags = unix.MSG_ZEROCOPY }},
		{"destination", unix.EINVAL, func() { s.name = sockaddr(addrPort("[fd00::2]:5"), 0) }},
		{"not bound", unix.ENOTCONN, func() {
			s.from.set(unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1)
			s.from.set(unix.SOL_SOCKET, unix.SO_SNDBUF, 5000)
			want(t, s.from.Bind(addrPort("127.0.0.1:0"), 0), 0)
		}},
		{"other family", unix.EOPNOTSUPP, func() { s.name = sockaddr(addrPort("127.0.0.1:5"), 0) }},
		{"malformed control message", unix.EINVAL, func() { s.oob = control(99, nil) }},
		{"over 1 MiB", unix.EMSGSIZE, func() { s.data = unreadable[:5001] }},
		{"over the send buffer", unix.EMSGSIZE, func() { s.data = unreadable[:5000] }},
		{"zerocopy without TCP", unix.EOPNOTSUPP, func() { s.flags = 0 }},
		{"unknown control message", unix.EINVAL, func() { s.oob = operation(t) }},
		{"unreadable data", unix.EFAULT, func() { s.data = make([]byte, 5000) }},
		{"RDMA without RDMA", unix.EOPNOTSUPP, func() {
			s.oob = nil
			s.from = a
			fill(t, a, dead)
			s.name = sockaddr(b.name(), 0)
		}},
		{"congested destination", unix.ENOBUFS, func() { s.name = sockaddr(free.name(), 0) }},
		{"full send buffer", unix.EAGAIN, func() {
			want(t, a.Setsockopt(abi.SOL_RDS, abi.RDS_CANCEL_SENT_TO, sockaddr(dead, 0)), 0)
		}},
		{"none", 0, func() {}},
	} {
		t.Run(step.fault, func(t *testing.T) { want(t, s.send(), step.errno) })
		step.mend()
	}
}

// operation is a control message that asks for an RDMA write of 8 bytes.
func operation(t testing.TB) []byte {
	buf := memory(t, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE)
	at := uint64(uintptr(unsafe.Pointer(&buf[0])))
	e := cmsg.Encoder{}
	copy(buf[64:], e.AppendIovec(nil, cmsg.Iovec{Addr: at, Len: 8}))
	return e.AppendRDMAArgs(nil, cmsg.RDMAArgs{
		Key: 1, Remote: cmsg.Iovec{Len: 8}, LocalAddr: at + 64, LocalCount: 1,
	})
}

// fill sends to dst until the send buffer is full.
func fill(t testing.TB, s rds, dst netip.AddrPort) {
	t.Helper()
	data := make([]byte, 10000)
	for range 1000 {
		switch _, errno := s.send(data, nil, dst, 0); errno {
		case 0:
		case unix.EAGAIN:
			return
		default:
			t.Fatal(errno)
		}
	}
	t.Fatal("the send buffer has no end")
}

func TestSendTakesNoFlagsButTwo(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	for name, flag := range map[string]int{
		"NOSIGNAL": unix.MSG_NOSIGNAL, "EOR": unix.MSG_EOR, "MORE": unix.MSG_MORE, "OOB": unix.MSG_OOB,
		"CONFIRM": unix.MSG_CONFIRM, "DONTROUTE": unix.MSG_DONTROUTE,
	} {
		t.Run(name, func(t *testing.T) {
			_, errno := s.send([]byte("x"), nil, s.name(), flag)
			want(t, errno, unix.EOPNOTSUPP)
		})
	}
	t.Run("DONTWAIT", func(t *testing.T) {
		_, errno := s.send([]byte("x"), nil, s.name(), unix.MSG_DONTWAIT)
		want(t, errno, 0)
	})
}

func TestWriteIsRefusedAndReadIsNot(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	want(t, s.Connect(s.name(), 0), 0)
	s.do(func(fd uintptr) {
		_, err := unix.Write(int(fd), []byte("x"))
		want(t, err, unix.EOPNOTSUPP)
		_, err = unix.Writev(int(fd), [][]byte{[]byte("x"), []byte("y")})
		want(t, err, unix.EOPNOTSUPP)
		s.mustSend([]byte("sent"), netip.AddrPort{})
		buf := make([]byte, 8)
		n, err := unix.Read(int(fd), buf)
		if err != nil || string(buf[:n]) != "sent" {
			t.Errorf("read %q: %v", buf[:n], err)
		}
	})
}

func TestSendmmsgIsRefusedForMoreThanOneMessage(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	want(t, s.Connect(s.name(), 0), 0)
	for n, errno := range map[int]syscall.Errno{1: 0, 2: unix.EOPNOTSUPP} {
		var iov unix.Iovec
		iov.Base, iov.Len = unsafe.StringData("x"), 1
		msgs := make([]struct {
			hdr unix.Msghdr
			n   uint32
		}, n)
		for i := range msgs {
			msgs[i].hdr.Iov = &iov
			msgs[i].hdr.SetIovlen(1)
		}
		s.do(func(fd uintptr) {
			_, _, got := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&msgs[0])), uintptr(n), 0, 0, 0)
			want(t, got, errno)
		})
		if got := s.recv(8, 0, 0); got.errno == 0 != (errno == 0) {
			t.Errorf("%d messages at a time: received %+v", n, got)
		}
	}
}

func TestOneMessageIsNoLargerThanTheSendBufferNorOneMebibyte(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.Root)
	s := loopback(t)
	room, err := s.GetsockoptInt(unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		t.Fatal(err)
	}
	if def := number(t, "/proc/sys/net/core/wmem_default"); room != def {
		t.Errorf("SO_SNDBUF is %d, and wmem_default %d", room, def)
	}
	data := make([]byte, 1<<20+1)
	for _, tt := range []struct {
		sndbuf, size int
		errno        syscall.Errno
	}{
		{0, room / 2, 0},
		{0, room/2 + 1, unix.EMSGSIZE},
		{9000, 9000, 0},
		{9000, 9001, unix.EMSGSIZE},
		{3 << 20, 1 << 20, 0},
		{3 << 20, 1<<20 + 1, unix.EMSGSIZE},
	} {
		if tt.sndbuf > 0 {
			s.set(unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, tt.sndbuf)
		}
		_, errno := s.send(data[:tt.size], nil, s.name(), 0)
		if errno != tt.errno {
			t.Errorf("%d bytes with SO_SNDBUF %d: %v, want %v", tt.size, tt.sndbuf, errno, tt.errno)
		}
		s.recv(0, 0, 0)
	}
}

// number is the first number of a file.
func number(t testing.TB, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSendBufferAdmitsOneMessageBeyondItsEnd(t *testing.T) {
	needHosts(t, 2)
	s := bound(t, 1, addr("10.9.0.1"))
	s.set(unix.SOL_SOCKET, unix.SO_SNDBUF, 10000)
	for i, tt := range []struct {
		size     int
		errno    syscall.Errno
		writable bool // afterwards
	}{
		{9999, 0, true},
		{10000, 0, false},
		{1, unix.EAGAIN, false},
		{0, unix.EAGAIN, false},
	} {
		_, errno := s.send(make([]byte, tt.size), nil, dead, 0)
		if errno != tt.errno {
			t.Errorf("message %d of %d bytes: %v, want %v", i, tt.size, errno, tt.errno)
		}
		var writable bool
		s.do(func(fd uintptr) { writable = sys.Writable(fd) })
		if writable != tt.writable {
			t.Errorf("after message %d: writable %t", i, writable)
		}
	}
	want(t, s.Setsockopt(abi.SOL_RDS, abi.RDS_CANCEL_SENT_TO, sockaddr(dead, 0)), 0)
	s.mustSend(nil, dead)
}

func TestEmptyMessagesTakeNoSendBuffer(t *testing.T) {
	needHosts(t, 2)
	s := bound(t, 1, addr("10.9.0.1"))
	s.set(unix.SOL_SOCKET, unix.SO_SNDBUF, 5000)
	for range 1000 {
		s.mustSend(nil, dead)
	}
	want(t, s.Setsockopt(abi.SOL_RDS, abi.RDS_CANCEL_SENT_TO, sockaddr(dead, 0)), 0)
}

func TestNobodyTellsThatAMessageReachedNobody(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	gone := b.name()
	b.Close()
	before := a.counter("recv_drop_no_sock")
	a.mustSend([]byte("to a port that is closed"), gone)
	eventually(t, "the message is counted as dropped", func() bool { return a.counter("recv_drop_no_sock") > before })
	a.mustSend([]byte("to a host that is not there"), dead)
	if r, ok := a.wait(50 * time.Millisecond); ok || a.poll(unix.POLLERR|unix.POLLHUP, 0) != 0 {
		t.Errorf("received %+v", r)
	}
}

// counter is a value of RDS_INFO_COUNTERS.
func (s rds) counter(name string) uint64 {
	s.t.Helper()
	for _, r := range s.table(abi.RDS_INFO_COUNTERS) {
		if n, _, _ := strings.Cut(string(r[:32]), "\x00"); n == name {
			return abi.Layout{}.Uint64(r[32:])
		}
	}
	s.t.Fatalf("no counter %s", name)
	return 0
}

// table is the records of an RDS_INFO table.
func (s rds) table(opt int) (records [][]byte) {
	s.t.Helper()
	b, size, err := s.Info(opt, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.Collect(slices.Chunk(b, size))
}

func TestFullSendBufferIsATimeoutForABlockingSend(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	fill(t, a, dead)
	a.blocking(50 * time.Millisecond)
	start := time.Now()
	_, errno := a.send([]byte("x"), nil, b.name(), 0)
	if took := time.Since(start); errno != unix.ETIMEDOUT || took < 10*time.Millisecond {
		t.Errorf("after %v: %v", took, errno)
	}
}

// On 6.1 the first blocking send to a host waits for the handshake of the
// connection's paths, unless the port's path is the first of the eight.
func TestFirstBlockingSendWaitsForItsHostWithoutTimeout(t *testing.T) {
	needHosts(t, 2)
	type sender struct {
		tid  int
		done chan struct{}
	}
	var senders []sender
	for i := range 8 {
		s := bound(t, 1, addr("10.9.0.1"))
		s.blocking(10 * time.Millisecond)
		var m sys.Msg
		m.SetData([]byte("x"))
		// A host that no other test has written to.
		m.SetName(netip.AddrPortFrom(addr("10.9.0.77"), uint16(5000+i)), 0)
		tid := make(chan int, 1)
		done := onThread(func() {
			tid <- unix.Gettid()
			s.do(func(fd uintptr) {
				if _, errno := m.Send(fd, 0); errno != 0 {
					t.Error(errno)
				}
			})
		})
		senders = append(senders, sender{<-tid, done})
	}
	time.Sleep(200 * time.Millisecond)
	blocked := 0
	for _, s := range senders {
		select {
		case <-s.done:
			continue
		default:
		}
		blocked++
		// Any signal ends the wait, and the message is queued on the first path.
		for range 100 {
			if err := unix.Tgkill(unix.Getpid(), s.tid, unix.SIGURG); err != nil && err != unix.ESRCH {
				t.Fatal(err)
			}
			select {
			case <-s.done:
			case <-time.After(50 * time.Millisecond):
				continue
			}
			break
		}
		<-s.done
	}
	if blocked == 0 {
		t.Error("no send waited")
	}
}

func TestControlMessagesThatGoTogether(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	e := cmsg.Encoder{}
	dest := control(abi.RDS_CMSG_RDMA_DEST, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	atomic := control(abi.RDS_CMSG_ATOMIC_FADD, make([]byte, abi.SizeofAtomicArgs))
	region := memory(t, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE)
	at := uint64(uintptr(unsafe.Pointer(&region[0])))
	foreign := make([]byte, unix.CmsgSpace(4))
	putHeader(foreign, unix.CmsgLen(4), unix.SOL_IP, 99)
	beyond := control(abi.RDS_CMSG_RDMA_DEST, make([]byte, 8))
	putHeader(beyond, len(beyond)+1, abi.SOL_RDS, abi.RDS_CMSG_RDMA_DEST)
	for _, tt := range []struct {
		name  string
		oob   []byte
		errno syscall.Errno
	}{
		{"one of another level", foreign, 0},
		{"an unknown type", control(99, nil), unix.EINVAL},
		{"a type of UEK", control(abi.UEK_RDS_CMSG_ASYNC_SEND, make([]byte, 16)), unix.EINVAL},
		{"a type that is only received", control(abi.RDS_CMSG_CONG_UPDATE, make([]byte, 8)), unix.EINVAL},
		{"one beyond the buffer", beyond, unix.EINVAL},
		{"a short one", control(abi.RDS_CMSG_RDMA_DEST, make([]byte, 4)), unix.EINVAL},
		{"RDMA and a key", append(operation(t), dest...), unix.EINVAL},
		{"an atomic and a key", append(atomic, dest...), unix.EINVAL},
		{"a key of nobody", dest, unix.EINVAL},
		{"RDMA over TCP", operation(t), unix.EOPNOTSUPP},
		{"a region over TCP", e.AppendRDMAMap(nil, cmsg.RDMAMap{Vec: cmsg.Iovec{Addr: at, Len: 8}}), unix.EOPNOTSUPP},
		{"a zerocopy cookie without zerocopy", control(abi.RDS_CMSG_ZCOPY_COOKIE, make([]byte, 4)), unix.EINVAL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errno := a.send([]byte("x"), tt.oob, b.name(), 0)
			want(t, errno, tt.errno)
		})
	}
}
