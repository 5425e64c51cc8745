package sys_test

import (
	"encoding/binary"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/sys"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// needHosts states that a test needs RDS/TCP between n hosts.
func needHosts(t testing.TB, n int) {
	t.Helper()
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.IPv6, labtest.Hosts(n), labtest.Root)
}

var (
	addr     = netip.MustParseAddr
	addrPort = netip.MustParseAddrPort

	// dead is on the network of the hosts, and nobody has it.
	dead  = addrPort("10.9.0.99:4000")
	dead6 = addrPort("[fd00::99]:4000")
)

// An rds is an RDS socket for the time of a test, with calls that never wait.
type rds struct {
	*sys.Socket
	t testing.TB
}

// socket opens a socket on the lab's n-th host, or with 0 where the test runs.
func socket(t testing.TB, host int) rds {
	t.Helper()
	netns := 0
	if host > 0 {
		f, err := os.Open(hosts.Host{N: host}.NetNS())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		netns = int(f.Fd())
	}
	s, err := sys.NewSocket(netns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return rds{s, t}
}

// bound is a socket bound to a port of the kernel's choice.
func bound(t testing.TB, host int, a netip.Addr) rds {
	t.Helper()
	s := socket(t, host)
	if err := s.Bind(netip.AddrPortFrom(a, 0), 0); err != nil {
		t.Fatalf("bind %v: %v", a, err)
	}
	return s
}

func loopback(t testing.TB) rds { t.Helper(); return bound(t, 0, addr("127.0.0.1")) }

// pair is a socket on each of two hosts, between which messages get through
// on the path that they are going to keep.
func pair(t testing.TB) (a, b rds) {
	t.Helper()
	a, b = bound(t, 1, hosts.Host{N: 1}.IPv4()), bound(t, 2, hosts.Host{N: 2}.IPv4())
	a.warmUp(b)
	b.warmUp(a)
	return a, b
}

// warmUp sends until one message arrives, and takes what is left.
func (s rds) warmUp(to rds) {
	s.t.Helper()
	for range 50 {
		s.mustSend([]byte("warm up"), to.name())
		if _, ok := to.wait(100 * time.Millisecond); ok {
			for ok {
				_, ok = to.wait(20 * time.Millisecond)
			}
			return
		}
	}
	s.t.Fatalf("nothing gets from %v to %v", s.name(), to.name())
}

func (s rds) name() netip.AddrPort {
	s.t.Helper()
	ap, _, err := s.LocalName()
	if err != nil {
		s.t.Fatal(err)
	}
	return ap
}

// do runs f on the descriptor.
func (s rds) do(f func(fd uintptr)) {
	s.t.Helper()
	if err := s.Raw().Control(f); err != nil {
		s.t.Fatal(err)
	}
}

// blocking makes the descriptor wait in system calls, for at most d where the
// kernel honours that.
func (s rds) blocking(d time.Duration) {
	s.t.Helper()
	s.do(func(fd uintptr) {
		if err := unix.SetNonblock(int(fd), false); err != nil {
			s.t.Error(err)
		}
		tv := unix.NsecToTimeval(int64(d))
		for _, opt := range []int{unix.SO_SNDTIMEO, unix.SO_RCVTIMEO} {
			if err := unix.SetsockoptTimeval(int(fd), unix.SOL_SOCKET, opt, &tv); err != nil {
				s.t.Error(err)
			}
		}
	})
}

// send is one sendmsg(2).
func (s rds) send(data, oob []byte, dst netip.AddrPort, flags int) (n int, errno syscall.Errno) {
	s.t.Helper()
	var m sys.Msg
	m.SetData(data)
	m.SetControl(oob)
	m.SetName(dst, 0)
	s.do(func(fd uintptr) { n, errno = m.Send(fd, flags) })
	return n, errno
}

func (s rds) mustSend(data []byte, dst netip.AddrPort) {
	s.t.Helper()
	if n, errno := s.send(data, nil, dst, 0); errno != 0 || n != len(data) {
		s.t.Fatalf("sent %d of %d bytes from %v to %v: %v", n, len(data), s.name(), dst, errno)
	}
}

// A received is what one recvmsg(2) returned.
type received struct {
	n       int
	data    string
	control []byte
	flags   int
	src     netip.AddrPort
	named   bool
	errno   syscall.Errno
}

// recv is one recvmsg(2) with room for so many bytes.
func (s rds) recv(room, control, flags int) (r received) {
	s.t.Helper()
	var m sys.Msg
	data, oob := make([]byte, room), make([]byte, control)
	m.SetData(data)
	m.SetControl(oob)
	s.do(func(fd uintptr) { r.n, r.errno = m.Recv(fd, flags) })
	if r.errno == 0 {
		r.data, r.control, r.flags = string(data[:min(r.n, room)]), oob[:m.ControlLen()], m.Flags()
		r.src, _, _ = m.Name()
		r.named = m.HasName()
	}
	return r
}

// wait is recv as soon as something is there, or false after d.
func (s rds) wait(d time.Duration) (received, bool) {
	s.t.Helper()
	s.poll(unix.POLLIN, d)
	r := s.recv(1<<16, 1024, 0)
	if r.errno != 0 && r.errno != syscall.EAGAIN {
		s.t.Fatal(r.errno)
	}
	return r, r.errno == 0
}

// get is the message that has to come.
func (s rds) get() received {
	s.t.Helper()
	for range 50 {
		if r, ok := s.wait(100 * time.Millisecond); ok && r.named {
			return r
		}
	}
	s.t.Fatalf("no message for %v", s.name())
	return received{}
}

// Bits of poll(2) that package unix does not have.
const (
	pollRdNorm = 0x40
	pollWrNorm = 0x100
	pollWrBand = 0x200
)

// poll is poll(2) for at most d.
func (s rds) poll(events int16, d time.Duration) (revents int16) {
	s.t.Helper()
	s.do(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: events}}
		if _, err := unix.Poll(p, int(d.Milliseconds())); err != nil && err != unix.EINTR {
			s.t.Error(err)
		}
		revents = p[0].Revents
	})
	return revents
}

// set is setsockopt(2) of a C int.
func (s rds) set(level, name, value int) {
	s.t.Helper()
	if err := s.SetsockoptInt(level, name, value); err != nil {
		s.t.Fatal(err)
	}
}

// eventually waits until ok, for at most 5 s.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// want compares the errno of a call with the one that the case has.
func want(t *testing.T, got error, want syscall.Errno) {
	t.Helper()
	var errno syscall.Errno
	switch e := got.(type) {
	case nil:
	case syscall.Errno:
		errno = e
	case *os.SyscallError:
		errno, _ = e.Err.(syscall.Errno)
	default:
		t.Errorf("got %v (%T), want %v", got, got, want)
		return
	}
	if errno != want {
		t.Errorf("got %q, want %q", errno, want)
	}
}

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func()) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	return done
}

// control is one control message of level SOL_RDS.
func control(kind int, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	putHeader(b, unix.CmsgLen(len(data)), abi.SOL_RDS, kind)
	copy(b[unix.CmsgLen(0):], data)
	return b
}

// putHeader writes a struct cmsghdr.
func putHeader(b []byte, length, level, kind int) {
	if unix.SizeofCmsghdr == 16 {
		binary.NativeEndian.PutUint64(b, uint64(length))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(length))
	}
	binary.NativeEndian.PutUint32(b[unix.SizeofCmsghdr-8:], uint32(level))
	binary.NativeEndian.PutUint32(b[unix.SizeofCmsghdr-4:], uint32(kind))
}

// A message is a control message that was received.
type message struct {
	level, kind int
	data        []byte
}

func messages(t testing.TB, control []byte) (ms []message) {
	t.Helper()
	cs, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		ms = append(ms, message{int(c.Header.Level), int(c.Header.Type), c.Data})
	}
	return ms
}
