package sys_test

import (
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/sys"
)

func TestOnlySequencedPacketSocketsOfProtocolZeroExist(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for _, tt := range []struct {
		name       string
		typ, proto int
		errno      unix.Errno
	}{
		{"stream", unix.SOCK_STREAM, 0, unix.ESOCKTNOSUPPORT},
		{"datagram", unix.SOCK_DGRAM, 0, unix.ESOCKTNOSUPPORT},
		{"reliably delivered message", unix.SOCK_RDM, 0, unix.ESOCKTNOSUPPORT},
		{"raw", unix.SOCK_RAW, 0, unix.ESOCKTNOSUPPORT},
		{"sequenced packet of another protocol", unix.SOCK_SEQPACKET, 1, unix.ESOCKTNOSUPPORT},
		{"sequenced packet", unix.SOCK_SEQPACKET, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fd, err := unix.Socket(unix.AF_RDS, tt.typ|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, tt.proto)
			if err == nil {
				unix.Close(fd)
			}
			want(t, err, tt.errno)
		})
	}
}

func TestNobodyNeedsAPrivilege(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.Root)
	<-onThread(func() {
		// This thread only, and it ends here.
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			t.Error(errno)
			return
		}
		s, err := sys.NewSocket(0)
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		r := rds{s, t}
		// No port needs one either.
		if err := s.Bind(addrPort("127.0.0.1:2"), 0); err != nil {
			t.Error(err)
			return
		}
		r.mustSend([]byte("x"), r.name())
		if got := r.recv(8, 0, 0); got.data != "x" {
			t.Errorf("received %+v", got)
		}
		if ret, _, err := s.Getsockopt(abi.SOL_RDS, abi.RDS_INFO_SOCKETS, make([]byte, 1<<16)); err != nil || ret <= 0 {
			t.Errorf("RDS_INFO_SOCKETS returned %d: %v", ret, err)
		}
	})
}

func TestCallsOfStreamsAreRefused(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s := loopback(t)
	s.do(func(fd uintptr) {
		var v int32
		ioctl := func(req uintptr) error {
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, req, uintptr(unsafe.Pointer(&v))); errno != 0 {
				return errno
			}
			return nil
		}
		for _, tt := range []struct {
			name  string
			err   error
			errno unix.Errno
		}{
			{"listen", unix.Listen(int(fd), 1), unix.EOPNOTSUPP},
			{"accept", second(unix.Accept4(int(fd), 0)), unix.EOPNOTSUPP},
			{"shutdown", unix.Shutdown(int(fd), unix.SHUT_WR), unix.EOPNOTSUPP},
			{"socketpair", second(unix.Socketpair(unix.AF_RDS, unix.SOCK_SEQPACKET, 0)), unix.EOPNOTSUPP},
			{"mmap", second(unix.Mmap(int(fd), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)), unix.ENODEV},
			{"FIONREAD", ioctl(unix.TIOCINQ), unix.ENOTTY},
			{"SIOCOUTQ", ioctl(unix.TIOCOUTQ), unix.ENOTTY},
			{"another private ioctl", ioctl(abi.SIOCPROTOPRIVATE + 2), unix.ENOTTY},
		} {
			t.Run(tt.name, func(t *testing.T) { want(t, tt.err, tt.errno) })
		}
	})
}

// second is the error of a call with two or three results.
func second(results ...any) error {
	err, _ := results[len(results)-1].(error)
	return err
}

func TestNamesOfSockets(t *testing.T) {
	needHosts(t, 2)
	none := netip.AddrPort{}
	type name struct {
		family, size int
		ap           netip.AddrPort
	}
	for _, tt := range []struct {
		name          string
		bind, connect netip.AddrPort
		sock          name
		peer          name // none: ENOTCONN
	}{
		{"fresh", none, none, name{unix.AF_UNSPEC, 16, none}, name{}},
		{"connected only, IPv4", none, addrPort("10.9.0.2:5"), name{unix.AF_INET, 16, addrPort("0.0.0.0:0")}, name{unix.AF_INET, 16, addrPort("10.9.0.2:5")}},
		{"connected only, IPv6", none, addrPort("[fd00::2]:5"), name{unix.AF_INET6, 28, addrPort("[::]:0")}, name{unix.AF_INET6, 28, addrPort("[fd00::2]:5")}},
		{"bound to IPv4", addrPort("10.9.0.1:7000"), none, name{unix.AF_INET, 16, addrPort("10.9.0.1:7000")}, name{}},
		{"bound to IPv6", addrPort("[fd00::1]:7000"), none, name{unix.AF_INET6, 28, addrPort("[fd00::1]:7000")}, name{}},
		{"both", addrPort("10.9.0.1:7001"), addrPort("10.9.0.2:5"), name{unix.AF_INET, 16, addrPort("10.9.0.1:7001")}, name{unix.AF_INET, 16, addrPort("10.9.0.2:5")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := socket(t, 1)
			if tt.connect.IsValid() {
				want(t, s.Connect(tt.connect, 0), 0)
			}
			if tt.bind.IsValid() {
				// The scope of an address that is not link-local is not looked at.
				want(t, s.Bind(tt.bind, 77), 0)
			}
			s.do(func(fd uintptr) {
				for trap, w := range map[uintptr]name{unix.SYS_GETSOCKNAME: tt.sock, unix.SYS_GETPEERNAME: tt.peer} {
					var b [abi.SizeofSockaddrStorage]byte
					n := uint32(len(b))
					_, _, errno := unix.Syscall(trap, fd, uintptr(unsafe.Pointer(&b)), uintptr(unsafe.Pointer(&n)))
					if w == (name{}) {
						want(t, errno, unix.ENOTCONN)
						continue
					}
					family := *(*uint16)(unsafe.Pointer(&b))
					ap, scope, _ := abi.ParseSockaddr(b[:n])
					if got := (name{int(family), int(n), ap}); errno != 0 || got != w || scope != 0 {
						t.Errorf("call %d: %v scope %d: %v, want %v", trap, got, scope, errno, w)
					}
				}
			})
		})
	}
}
