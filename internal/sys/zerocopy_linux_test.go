package sys_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
)

// Kernels before 6.1.176 break when the pages of a zerocopy message cannot be
// pinned: no test here sends from memory that is not there.

func cookie(c byte) []byte { return control(abi.RDS_CMSG_ZCOPY_COOKIE, []byte{c, 0, 0, 0}) }

func sendZerocopy(t testing.TB, a, b rds, c byte) {
	t.Helper()
	if _, errno := a.send(memory(t, os.Getpagesize(), unix.PROT_READ), cookie(c), b.name(), unix.MSG_ZEROCOPY); errno != 0 {
		t.Fatal(errno)
	}
}

func TestZerocopyTakesTheOptionTheFlagTheCookieAndData(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	for _, tt := range []struct {
		name   string
		option int
		flag   int
		cookie []byte
		size   int
		errno  syscall.Errno
	}{
		{"all four", 1, unix.MSG_ZEROCOPY, cookie(1), 100, 0},
		{"a longer cookie", 1, unix.MSG_ZEROCOPY, control(abi.RDS_CMSG_ZCOPY_COOKIE, make([]byte, 8)), 100, 0},
		{"a shorter cookie", 1, unix.MSG_ZEROCOPY, control(abi.RDS_CMSG_ZCOPY_COOKIE, make([]byte, 3)), 100, unix.EINVAL},
		{"no option", 0, unix.MSG_ZEROCOPY, cookie(1), 100, unix.EINVAL},
		{"no flag", 1, 0, cookie(1), 100, unix.EINVAL},
		{"no cookie", 1, unix.MSG_ZEROCOPY, nil, 100, unix.EINVAL},
		{"no cookie and no option", 0, unix.MSG_ZEROCOPY, nil, 100, unix.EINVAL},
		{"no data", 1, unix.MSG_ZEROCOPY, cookie(1), 0, unix.EINVAL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a.set(unix.SOL_SOCKET, unix.SO_ZEROCOPY, tt.option)
			_, errno := a.send(memory(t, os.Getpagesize(), unix.PROT_READ)[:tt.size], tt.cookie, b.name(), tt.flag)
			want(t, errno, tt.errno)
		})
	}
	want(t, a.SetsockoptInt(unix.SOL_SOCKET, unix.SO_ZEROCOPY, 2), unix.EINVAL)
}

func TestZerocopyCompletionWaitsForRoom(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	a.set(unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1)
	a.set(abi.SOL_RDS, abi.RDS_CONG_MONITOR, 1)
	sendZerocopy(t, a, b, 42)
	b.get()
	if a.poll(unix.POLLIN, 5*time.Second) == 0 {
		t.Fatal("not readable")
	}
	if got := a.recv(8, unix.CmsgSpace(abi.SizeofZcopyCookies)-1, 0); got.errno != unix.EAGAIN {
		t.Errorf("with too little room: %+v", got)
	}
	// A receive that waits is not told either.
	a.blocking(30 * time.Millisecond)
	if got := a.recv(8, 256, 0); got.errno != unix.ETIMEDOUT {
		t.Errorf("blocking: %+v", got)
	}
	if a.poll(unix.POLLIN, 0) == 0 {
		t.Error("no longer readable")
	}
	got := a.recv(8, unix.CmsgSpace(abi.SizeofZcopyCookies), unix.MSG_DONTWAIT|unix.MSG_PEEK)
	if got.errno != 0 || got.n != 0 || got.named {
		t.Fatalf("received %+v", got)
	}
	ms := messages(t, got.control)
	l := abi.Layout{}
	if len(ms) != 1 || ms[0].kind != abi.RDS_CMSG_ZCOPY_COMPLETION || l.Uint32(ms[0].data) != 1 || l.Uint32(ms[0].data[4:]) != 42 {
		t.Errorf("control messages %+v", ms)
	}
	if a.poll(unix.POLLIN, 0) != 0 {
		t.Error("MSG_PEEK left the completion")
	}
}

func TestZerocopyOfALocalDestinationCompletesWhenItIsRead(t *testing.T) {
	needHosts(t, 2)
	s := bound(t, 1, addr("10.9.0.1"))
	r := bound(t, 1, addr("10.9.0.1"))
	s.set(unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1)
	s.set(abi.SOL_RDS, abi.RDS_CONG_MONITOR, 1)
	sendZerocopy(t, s, r, 1)
	if s.poll(unix.POLLIN, 50*time.Millisecond) != 0 {
		t.Error("complete although nobody has read it")
	}
	r.get()
	if s.poll(unix.POLLIN, 5*time.Second) == 0 {
		t.Error("never complete")
	}
}

func TestZerocopyCountsAsLockedMemory(t *testing.T) {
	needHosts(t, 2)
	a, b := pair(t)
	a.set(unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1)
	data := memory(t, os.Getpagesize(), unix.PROT_READ)
	var old unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &unix.Rlimit{}, &old); err != nil {
		t.Fatal(err)
	}
	defer unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &old, nil)
	<-onThread(func() {
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			t.Error(errno)
			return
		}
		_, errno := a.send(data, cookie(1), b.name(), unix.MSG_ZEROCOPY)
		want(t, errno, unix.ENOMEM)
	})
}
