package sys_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/sys"
)

func TestOperationsAllocateNothing(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.IPv6)
	for _, a := range []string{"127.0.0.1", "::1"} {
		s := bound(t, 0, addr(a))
		name, raw := s.name(), s.Raw()
		data, oob := make([]byte, 64), make([]byte, 256)
		var m sys.Msg
		var b sys.Batch
		var errno syscall.Errno
		var src netip.AddrPort
		send := func(fd uintptr) bool { _, errno = m.Send(fd, 0); return errno != unix.EAGAIN }
		recv := func(fd uintptr) bool { _, errno = m.Recv(fd, 0); return errno != unix.EAGAIN }
		batch := func(fd uintptr) bool { _, errno = b.Recv(fd, 0, 0); return errno != unix.EAGAIN }
		b.Resize(16)
		for _, tt := range []struct {
			name string
			run  func() error
		}{
			{"send and receive", func() error {
				m.SetData(data)
				m.SetControl(nil)
				m.SetName(name, 0)
				err := raw.Write(send)
				m.SetControl(oob)
				err = errors.Join(err, raw.Read(recv))
				src, _, _ = m.Name()
				return err
			}},
			{"send and receive a batch", func() error {
				m.SetData(data)
				m.SetControl(nil)
				m.SetName(name, 0)
				err := raw.Write(send)
				b.Resize(16)
				for i := range 16 {
					b.Set(i, data, oob)
				}
				err = errors.Join(err, raw.Read(batch))
				_, _, _, from := b.Message(0)
				src, _, _ = abi.ParseSockaddr(from)
				return err
			}},
			{"poll for writing", func() error { return raw.Write(sys.Writable) }},
		} {
			t.Run(a+" "+tt.name, func(t *testing.T) {
				src = name
				allocs := testing.AllocsPerRun(100, func() {
					if err := tt.run(); err != nil || errno != 0 || src != name {
						t.Fatalf("%v, errno %v, from %v", err, errno, src)
					}
				})
				if allocs != 0 {
					t.Errorf("%v allocations", allocs)
				}
			})
		}
	}
}

// An empty message with control messages stays empty, and a receive without
// room for data takes none: package unix adds a byte to both.
func TestControlMessagesAloneAddNoByte(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	s.set(unix.SOL_SOCKET, unix.SO_TIMESTAMP, 1)
	foreign := make([]byte, unix.CmsgSpace(4))
	putHeader(foreign, unix.CmsgLen(4), unix.SOL_IP, 99)
	if n, errno := s.send(nil, foreign, s.name(), 0); n != 0 || errno != 0 {
		t.Fatalf("sent %d bytes: %v", n, errno)
	}
	if got := s.recv(8, 64, 0); got.n != 0 || got.errno != 0 || !got.named || len(got.control) == 0 {
		t.Errorf("received %+v", got)
	}
	s.mustSend([]byte("0123456789"), s.name())
	if got := s.recv(0, 64, unix.MSG_PEEK|unix.MSG_TRUNC); got.n != 10 || len(got.control) == 0 {
		t.Errorf("peek without room: %+v", got)
	}
	if got := s.recv(16, 64, 0); got.data != "0123456789" {
		t.Errorf("received %+v", got)
	}
}

func TestBatchReceivesSixteenMessagesWithOneCall(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	s.set(unix.SOL_SOCKET, unix.SO_TIMESTAMP, 1)
	const count = 16
	for i := range count + 2 {
		s.mustSend(fmt.Appendf(nil, "%0*d", i+1, i), s.name())
	}
	var b sys.Batch
	b.Resize(count)
	data, oob := make([][16]byte, count), make([][64]byte, count)
	for i := range count {
		b.Set(i, data[i][:], oob[i][:])
	}
	recv := func(first int) (n int, errno syscall.Errno) {
		s.do(func(fd uintptr) { n, errno = b.Recv(fd, first, 0) })
		return n, errno
	}
	if n, errno := recv(0); n != count || errno != 0 {
		t.Fatalf("%d messages: %v", n, errno)
	}
	for i := range count {
		n, oobn, flags, name := b.Message(i)
		if src, _, ok := abi.ParseSockaddr(name); !ok || src != s.name() || n != min(i+1, 16) || flags != 0 || oobn != unix.CmsgSpace(16) {
			t.Errorf("message %d: %d bytes, %d of control, flags %#x, from %v", i, n, oobn, flags, src)
		}
		if want := fmt.Sprintf("%0*d", i+1, i); string(data[i][:n]) != want {
			t.Errorf("message %d is %q, want %q", i, data[i][:n], want)
		}
	}
	// The two that are left go behind the first fourteen, cut to their room.
	for i := 14; i < count; i++ {
		b.Set(i, data[i][:], oob[i][:])
	}
	if n, errno := recv(14); n != 2 || errno != 0 {
		t.Fatalf("%d messages: %v", n, errno)
	}
	if n, _, flags, _ := b.Message(15); n != 16 || flags&unix.MSG_TRUNC == 0 {
		t.Errorf("a message of 18 bytes: %d, flags %#x", n, flags)
	}
	if n, errno := recv(0); n != 0 || errno != unix.EAGAIN {
		t.Errorf("%d messages: %v", n, errno)
	}
}

// Go's own signal handlers restart system calls, those of a C library in the
// same process may not.
func TestReceiveGoesOnAfterASignal(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	c := make(chan os.Signal, 100)
	signal.Notify(c, unix.SIGUSR1)
	defer signal.Stop(c)
	// The handler stays, SA_RESTART goes: sa_flags is the second word.
	const restart = 0x10000000
	var old, action [8]uint64
	sigaction := func(set, get *[8]uint64) {
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGUSR1),
			uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 8, 0, 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	sigaction(nil, &old)
	action = old
	flags := (*uintptr)(unsafe.Add(unsafe.Pointer(&action), unsafe.Sizeof(uintptr(0))))
	if *flags&restart == 0 {
		t.Fatalf("sa_flags %#x: Go's handlers restart system calls", *flags)
	}
	*flags &^= restart
	sigaction(&action, nil)
	defer sigaction(&old, nil)

	var m sys.Msg
	m.SetData(make([]byte, 8))
	var b sys.Batch
	b.Resize(1)
	b.Set(0, make([]byte, 8), nil)
	for name, recv := range map[string]func(fd uintptr) (int, syscall.Errno){
		"recvmsg":  func(fd uintptr) (int, syscall.Errno) { return m.Recv(fd, 0) },
		"recvmmsg": func(fd uintptr) (int, syscall.Errno) { return b.Recv(fd, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := loopback(t)
			s.blocking(20 * time.Second)
			self := s.name()
			tid := make(chan int, 1)
			done := onThread(func() {
				tid <- unix.Gettid()
				s.do(func(fd uintptr) {
					if n, errno := recv(fd); n == 0 || errno != 0 {
						t.Errorf("received %d: %v", n, errno)
					}
				})
			})
			thread := <-tid
			for range 5 {
				time.Sleep(10 * time.Millisecond)
				if err := unix.Tgkill(unix.Getpid(), thread, unix.SIGUSR1); err != nil {
					t.Fatal(err)
				}
				<-c
			}
			select {
			case <-done:
				t.Error("the signal ended the receive")
			default:
			}
			loopback(t).mustSend([]byte("x"), self)
			<-done
		})
	}
}

func TestNameOfAnUnboundSocketIsTheZeroAddrPort(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.IPv6)
	for _, connect := range []netip.AddrPort{{}, addrPort("127.0.0.1:5"), addrPort("[::1]:5")} {
		s := socket(t, 0)
		if connect.IsValid() {
			want(t, s.Connect(connect, 0), 0)
		}
		if ap, scope, err := s.LocalName(); ap.IsValid() || scope != 0 || err != nil {
			t.Errorf("connected to %v: %v scope %d: %v", connect, ap, scope, err)
		}
	}
}

func TestDuplicatesAreOneSocket(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	d, err := s.Dup()
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	name := s.name()
	s.Close()
	again, err := sys.FileSocket(f)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	dup, file := rds{d, t}, rds{again, t}
	dup.mustSend([]byte("x"), name)
	if got := file.recv(8, 0, 0); got.data != "x" || got.src != name {
		t.Errorf("received %+v", got)
	}
	d.Close()
	if err := socket(t, 0).Bind(name, 0); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("bound although a descriptor is open: %v", err)
	}
	again.Close()
	want(t, socket(t, 0).Bind(name, 0), 0)
	if err := again.Bind(name, 0); err == nil {
		t.Error("bound after close")
	}
}

func TestFileThatIsNoRDSSocketIsRefused(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := os.NewFile(uintptr(fd), "unix")
	defer other.Close()
	if _, err := sys.FileSocket(other); !errors.Is(err, unix.EAFNOSUPPORT) {
		t.Errorf("a unix socket: %v", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, err := sys.FileSocket(null); !errors.Is(err, unix.ENOTSOCK) {
		t.Errorf("%s: %v", os.DevNull, err)
	}
}

func TestInfoReadsATableThatIsLongerThanItsRoom(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := socket(t, 0)
	all, size, err := s.Info(abi.RDS_INFO_COUNTERS, nil)
	if err != nil || size != 40 || len(all) == 0 {
		t.Fatalf("%d bytes, %d each: %v", len(all), size, err)
	}
	room := make([]byte, 1<<16)
	for _, n := range []int{1, size, len(all) - 1, len(all), len(room)} {
		got, each, err := s.Info(abi.RDS_INFO_COUNTERS, room[:n])
		if err != nil || each != size || len(got) != len(all) {
			t.Errorf("with room for %d: %d bytes, %d each: %v", n, len(got), each, err)
		}
		if own := n >= len(all); own != (&got[0] == &room[0]) {
			t.Errorf("with room for %d: in it %t", n, !own)
		}
	}
	if _, _, err := s.Info(10002, room); !errors.Is(err, unix.ENOPROTOOPT) {
		t.Errorf("a table that is not there: %v", err)
	}
}

func TestDialectIsFoundByReading(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for name, s := range map[string]rds{"fresh": socket(t, 0), "bound": loopback(t)} {
		before := s.transport()
		if got := s.Dialect(); got != abi.Mainline {
			t.Errorf("%s: dialect %v", name, got)
		}
		if got := s.transport(); got != before {
			t.Errorf("%s: transport %v, and before %v", name, got, before)
		}
	}
}

func TestDeadlinesAndCloseEndWaiting(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	again := func(uintptr) bool { return false }
	s := loopback(t)
	for name, call := range map[string]func() error{
		"read": func() error {
			if err := s.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
				return err
			}
			return s.Raw().Read(again)
		},
		"write": func() error {
			if err := s.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
				return err
			}
			return s.Raw().Write(again)
		},
	} {
		if err := call(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- s.Raw().Read(again) }()
	time.Sleep(10 * time.Millisecond)
	s.Close()
	if err := <-waiting; err == nil {
		t.Error("close left a reader waiting")
	}
	for name, err := range map[string]error{
		"bind":        s.Bind(addrPort("127.0.0.1:0"), 0),
		"getsockname": second(s.LocalName()),
		"duplicate":   second(s.Dup()),
		"file":        second(s.File()),
		"option":      s.SetsockoptInt(abi.SOL_RDS, abi.RDS_RECVERR, 1),
	} {
		if err == nil {
			t.Errorf("%s succeeds on a closed socket", name)
		}
	}
}

func TestTimestampOptionCarries64BitSeconds(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	s.set(unix.SOL_SOCKET, sys.TimestampOption(), 1)
	s.mustSend(nil, s.name())
	if got := messages(t, s.recv(0, 64, 0).control); len(got) != 1 || len(got[0].data) != 16 {
		t.Errorf("control messages %+v", got)
	}
}
