package rdsinfo_test

import (
	"errors"
	"net/netip"
	"os"
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

// Sockets come and go between the call that asks for the length of the table and
// the one for its contents.
func TestSnapshotsHoldWhileSocketsComeAndGo(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	snapshots := 1000
	if testing.Short() {
		snapshots = 10
	}
	const binders = 20
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range binders {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := rdssock.Listen(netip.MustParseAddrPort("127.0.0.1:0"), nil)
				if err != nil {
					t.Error(err)
					return
				}
				c.Close()
			}
		})
	}
	defer wg.Wait()
	defer close(stop)
	loopback := netip.MustParseAddr("127.0.0.1")
	for range snapshots {
		s, err := rdsinfo.Read(nil, rdsinfo.Sockets)
		if err != nil {
			t.Fatal(err)
		}
		sockets, err := s.Sockets()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range sockets {
			a := k.Bound.Addr()
			if a != loopback && !a.IsUnspecified() || a == loopback && k.Bound.Port() < 2 || k.SendBuffer == 0 || k.Inode == 0 {
				t.Fatalf("torn: %+v", k)
			}
		}
	}
}
