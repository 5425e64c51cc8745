package tcpdiag_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/tcpdiag"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// exchange makes a connection over the network of the lab and sends n bytes.
func exchange(t *testing.T, from, to *labtest.Machine, n int) (client, server net.Conn) {
	t.Helper()
	var l net.Listener
	if err := to.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(to.IPv4().String(), "0"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := from.Do(func() (err error) {
		client, err = net.DialTimeout("tcp", l.Addr().String(), 5*time.Second)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	if _, err := client.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// find returns the socket between two ends among those with the port at either.
func find(t *testing.T, on *labtest.Machine, port int, local, remote net.Addr) *tcpdiag.Socket {
	t.Helper()
	ns, err := os.Open(on.NetNS())
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	all, err := tcpdiag.Sockets(t.Context(), &tcpdiag.Config{NetNS: int(ns.Fd()), Port: uint16(port)})
	if err != nil {
		t.Fatal(err)
	}
	var found *tcpdiag.Socket
	for i, s := range all {
		if s.Local.String() != local.String() || s.Remote.String() != remote.String() {
			continue
		}
		if found != nil {
			t.Errorf("%s to %s is there twice", s.Local, s.Remote)
		}
		found = &all[i]
	}
	if found == nil || found.Info == nil {
		t.Fatalf("no socket from %s to %s with measurements among %+v", local, remote, all)
	}
	return found
}

func TestAConnectionShowsItsRoundTripTimeAndWindow(t *testing.T) {
	labtest.Need(t, labtest.Netem, labtest.Root, labtest.Hosts(2))
	h1, h2 := labtest.Host(t, 1), labtest.Host(t, 2)
	h2.Netem("delay 50ms")
	client, server := exchange(t, h1, h2, 1000)
	port := server.LocalAddr().(*net.TCPAddr).Port
	s := find(t, h1, port, client.LocalAddr(), client.RemoteAddr())
	if s.State != 1 || s.Info.RTT < 50*time.Millisecond || s.Info.RTT > 2*time.Second || s.Info.Cwnd == 0 || s.Info.SendMSS == 0 || s.Congestion == "" {
		t.Errorf("%+v, %+v: want it established, with a round trip of 50 ms or more, a window, a segment size and an algorithm", s, s.Info)
	}
	if !s.Info.BytesAcked.Known || !s.Info.MinRTT.Known || s.Info.MinRTT.Value < 50_000 || !s.Info.DeliveryRate.Known {
		t.Errorf("%+v: want the newer fields", s.Info)
	}
	if s := find(t, h2, port, server.LocalAddr(), server.RemoteAddr()); s.Info.BytesReceived.Value != 1000 {
		t.Errorf("the other end: %+v: want 1000 bytes received", s.Info)
	}
}

func TestACutConnectionShowsWhatIsNotAcknowledged(t *testing.T) {
	labtest.Need(t, labtest.Root, labtest.Hosts(2))
	h1, h2 := labtest.Host(t, 1), labtest.Host(t, 2)
	client, server := exchange(t, h1, h2, 1)
	h2.Cut()
	if _, err := client.Write(make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	var s *tcpdiag.Socket
	for range 50 {
		s = find(t, h1, server.LocalAddr().(*net.TCPAddr).Port, client.LocalAddr(), client.RemoteAddr())
		if s.Retransmits > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if s.SendQueue != 5000 || s.Info.Unacked == 0 || s.Info.TotalRetrans == 0 || s.Retransmits == 0 {
		t.Errorf("%+v, %+v: want 5000 bytes in the queue, unacknowledged segments and retransmissions", s, s.Info)
	}
}

func TestACanceledContextIsTheError(t *testing.T) {
	labtest.Need(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tcpdiag.Sockets(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
