package rdsinfo_test

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdsinfo"
	"github.com/rdskit/rdskit/rdssock"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func listen(t *testing.T, addr string, cfg *rdssock.Config) *rdssock.Conn {
	t.Helper()
	c, err := rdssock.Listen(netip.MustParseAddrPort(addr), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func addrOf(c *rdssock.Conn) netip.AddrPort { return c.LocalAddr().(rdssock.Addr).AddrPort }

func TestEachObjectShowsOnceWhateverItsFamily(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for _, loop := range []string{"127.0.0.1:0", "[::1]:0"} {
		a, b := listen(t, loop, nil), listen(t, loop, nil)
		if _, err := a.WriteToAddrPort([]byte("unread"), addrOf(b)); err != nil {
			t.Fatal(err)
		}
		s, err := rdsinfo.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		sockets, err := s.Sockets()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*rdssock.Conn{a, b} {
			of := slices.DeleteFunc(slices.Clone(sockets), func(s rdsinfo.Socket) bool { return s.Bound != addrOf(c) })
			if len(of) != 1 || of[0].Inode == 0 || of[0].SendBuffer == 0 {
				t.Errorf("sockets with %v: %+v, want one", addrOf(c), of)
			}
		}
		queue, err := s.Queue(rdsinfo.ReceiveQueue)
		if err != nil {
			t.Fatal(err)
		}
		queue = slices.DeleteFunc(queue, func(m rdsinfo.Message) bool { return m.Local != addrOf(b) })
		if len(queue) != 1 || queue[0].Remote != addrOf(a) || queue[0].Bytes != 6 {
			t.Errorf("unread at %v: %+v, want one message of 6 bytes from %v", addrOf(b), queue, addrOf(a))
		}
		connections, err := s.Connections()
		if err != nil {
			t.Fatal(err)
		}
		ip := addrOf(a).Addr()
		connections = slices.DeleteFunc(connections, func(c rdsinfo.Connection) bool { return c.Local != ip || c.Remote != ip })
		if len(connections) != 1 || connections[0].Transport != "loopback" || connections[0].State() != rdsinfo.StateUp {
			t.Errorf("connections of %v: %+v, want one, up, over loopback", ip, connections)
		}
	}
}

func TestWhatWaitsForADeadHostShowsItsAddresses(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Hosts(1), labtest.Root)
	h := hosts.Host{N: 1}
	ns, err := os.Open(h.NetNS())
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	for _, tt := range []struct{ local, dead string }{
		{netip.AddrPortFrom(h.IPv4(), 0).String(), "10.9.0.99:6000"},
		{netip.AddrPortFrom(h.IPv6(), 0).String(), "[fd00::99]:6000"},
	} {
		c := listen(t, tt.local, &rdssock.Config{NetNS: int(ns.Fd())})
		dead := netip.MustParseAddrPort(tt.dead)
		if _, err := c.WriteToAddrPort(make([]byte, 333), dead); err != nil {
			t.Fatal(err)
		}
		s, err := rdsinfo.Read(&rdsinfo.Config{NetNS: int(ns.Fd())}, rdsinfo.SendQueue, rdsinfo.RetransmitQueue)
		if err != nil {
			t.Fatal(err)
		}
		var waiting []rdsinfo.Message
		for _, table := range []rdsinfo.Table{rdsinfo.SendQueue, rdsinfo.RetransmitQueue} {
			queue, err := s.Queue(table)
			if err != nil {
				t.Fatal(err)
			}
			waiting = append(waiting, queue...)
		}
		waiting = slices.DeleteFunc(waiting, func(m rdsinfo.Message) bool { return m.Remote != dead })
		if len(waiting) != 1 || waiting[0].Local != addrOf(c) || waiting[0].Bytes != 333 {
			t.Errorf("for %v wait %+v, want one message of 333 bytes from %v", dead, waiting, addrOf(c))
		}
	}
}

func TestATableOfAModuleThatIsNotLoadedIsNamed(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	s, err := rdsinfo.Read(nil, rdsinfo.ConnectionPaths)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ConnectionPaths(); !errors.Is(err, rdsinfo.ErrNoTable) {
		t.Errorf("on a kernel that is not UEK: %v", err)
	}
}

// defaultBuffer is what the kernel gives a socket, as it tells of it: half of what
// is charged for overhead too (net/rds/af_rds.c:rds_sock_info).
func defaultBuffer(t *testing.T) uint32 {
	t.Helper()
	c := listen(t, "127.0.0.2:0", nil)
	defer c.Close()
	s, err := rdsinfo.Read(nil, rdsinfo.Sockets)
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := s.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(sockets, func(k rdsinfo.Socket) bool { return k.Bound == addrOf(c) })
	if i < 0 || sockets[i].SendBuffer == 0 || sockets[i].SendBuffer != sockets[i].ReceiveBuffer {
		t.Fatalf("no socket with default buffers among %+v", sockets)
	}
	return sockets[i].SendBuffer
}

// Sockets come and go between the call that asks for the length of the table and
// the one for its contents. On a machine with two processors that really happens.
func TestSnapshotsHoldWhileSocketsComeAndGo(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	snapshots, grown := 1000, 20
	if testing.Short() {
		snapshots, grown = 100, 0
	}
	buffer := defaultBuffer(t)
	const binders, burst = 20, 4
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range binders {
		wg.Go(func() {
			for {
				var open []*rdssock.Conn
				for range burst {
					c, err := rdssock.Listen(netip.MustParseAddrPort("127.0.0.1:0"), nil)
					if err != nil {
						t.Error(err)
						break
					}
					open = append(open, c)
				}
				for _, c := range open {
					c.Close()
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	defer wg.Wait()
	defer close(stop)
	loopback := netip.MustParseAddr("127.0.0.1")
	if runtime.NumCPU() == 1 {
		grown = 0
	}
	retries, most, taken := 0, 0, 0
	// On a machine that others use the two processors seldom run at once.
	for ; taken < snapshots || retries < grown && taken < 10*snapshots; taken++ {
		s, err := rdsinfo.Read(nil, rdsinfo.Sockets)
		if err != nil {
			t.Fatal(err)
		}
		sockets, err := s.Sockets()
		if err != nil {
			t.Fatal(err)
		}
		retries += s.Retries()
		most = max(most, len(sockets))
		seen := make(map[uint64]bool)
		for _, k := range sockets {
			a := k.Bound.Addr()
			// The port is 0 for a moment: bind(2) sets the address first, and without
			// the lock of the list (net/rds/bind.c:rds_add_bound).
			switch {
			case a != loopback && !a.IsUnspecified(), k.Bound.Port() == 1,
				k.SendBuffer != buffer, k.ReceiveBuffer != buffer, !k.Connected.Addr().IsUnspecified(), k.Connected.Port() != 0:
				t.Fatalf("torn: %+v", k)
			case k.Inode != 0 && seen[k.Inode]: // it is 0 while the kernel closes the socket
				t.Fatalf("twice: %+v", k)
			}
			seen[k.Inode] = true
		}
	}
	t.Logf("%d snapshots of up to %d sockets: a table had grown %d times while it was read", taken, most, retries)
	if retries < grown {
		t.Errorf("a table had grown %d times while it was read, too few to tell: want %d", retries, grown)
	}
}
