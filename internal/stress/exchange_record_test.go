package stress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/netns"
	"github.com/rdskit/rdskit/internal/stress/wire"
	"github.com/rdskit/rdskit/rdssock"
)

// A tap writes down what a control connection carries.
type tap struct {
	net.Conn
	*transcript
}

func (c *tap) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.say(true, b[:n])
	}
	return n, err
}

func (c *tap) Write(b []byte) (int, error) {
	c.say(false, b)
	return c.Conn.Write(b)
}

const (
	// cStarts is when the tasks of C begin to send.
	cStarts = 2 * time.Second
	// requestsOfUs is how many go out on each flow.
	requestsOfUs = 6
)

// record meets the C rds-stress on host 2 from host 1.
func record(t *testing.T, m meeting) string {
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Hosts(2), labtest.Root)
	ns, err := netns.Open(labtest.Host(t, 1).NetNS())
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	args := []string{"-r", m.remote().String(), "-p", fmt.Sprint(m.port)}
	at := net.JoinHostPort(m.local().String(), fmt.Sprint(m.port))
	var l net.Listener
	if m.peerActive {
		args = append(append(args, "-s", m.local().String(), "-T", "1"), strings.Fields(m.options)...)
		inNamespace(t, ns.Fd(), func() (err error) {
			l, err = net.Listen("tcp", at)
			return err
		})
		defer l.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := labtest.StartOn(t, 2, exec.CommandContext(ctx, filepath.Join(*update, m.peer.String(), "rds-stress"), args...))
	var nc net.Conn
	if m.peerActive {
		nc, err = l.Accept()
	} else {
		nc, err = dialC(ns.Fd(), net.JoinHostPort(m.remote().String(), fmt.Sprint(m.port)))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()

	var r transcript
	var conns []*rdssock.Conn
	cfg := m.negotiate(t, &tap{nc, &r}, func(cfg *Config) {
		for i := range cfg.Tasks {
			conn, err := rdssock.Listen(netip.AddrPortFrom(cfg.Local, cfg.port(i)), &rdssock.Config{TOS: cfg.TOS, NetNS: int(ns.Fd())})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			conns = append(conns, conn)
		}
	}, func() {
		for _, conn := range conns {
			warm(conn, m.remote())
		}
	})
	play(t, newPlayer(cfg), cfg, conns, &r)

	if m.peerActive {
		select {
		case <-ctx.Done():
			t.Error("C hangs")
		default:
		}
		c.Process.Kill()
		if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("C ended before the run did: %v", err)
		}
		return r.text()
	}
	nc.Close()
	if res := c.Finish(t); res.Status != 0 {
		t.Errorf("C: status %d\n%s%s", res.Status, res.Stdout, res.Stderr)
	}
	return r.text()
}

func inNamespace(t *testing.T, ns uintptr, f func() error) {
	t.Helper()
	if err := netns.Do(int(ns), f); err != nil {
		t.Fatal(err)
	}
}

// dialC connects when C listens.
func dialC(ns uintptr, to string) (conn net.Conn, err error) {
	for range 100 {
		err = netns.Do(int(ns), func() (err error) {
			conn, err = net.DialTimeout("tcp", to, time.Second)
			return err
		})
		if err == nil {
			return conn, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, err
}

// warm has RDS/TCP make its connections, whose first messages could overtake each other.
func warm(conn *rdssock.Conn, peer netip.Addr) {
	for range 5 {
		conn.TryWriteToAddrPort(nil, netip.AddrPortFrom(peer, 0))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		conn.ReadMsgContext(ctx, nil, nil)
		cancel()
	}
}

// play answers C, and sends a few requests where that is permitted, until enough has been written down.
func play(t *testing.T, p *player, cfg *Config, conns []*rdssock.Conn, r *transcript) {
	begin := time.Now().Add(cStarts)
	end := begin.Add(2 * time.Second)
	limit := maxMessages * cfg.Tasks
	note := func(peer bool, b []byte) {
		if len(r.lines) < limit {
			r.message(peer, &p.shape, b)
		}
	}
	sent := make([][]int, cfg.Tasks)
	for i := range sent {
		sent[i] = make([]int, cfg.Tasks)
	}
	send := func(i, j int, op wire.Op) bool {
		b := p.next(p.flows[i][j], op)
		note(false, b)
		_, err := conns[i].WriteToAddrPort(b, netip.AddrPortFrom(cfg.Peer, cfg.port(j)))
		if err != nil {
			t.Error(err)
		}
		return err == nil
	}
	b := make([]byte, MaxMessage)
	for time.Now().Before(end) && !t.Failed() {
		for i, conn := range conns {
			conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			n, from, err := conn.ReadFromAddrPort(b)
			if err == nil && from.Port() != 0 {
				j := int(from.Port() - cfg.port(0))
				p.receive(t, i, j, b[:n])
				note(true, b[:n])
			}
			for j, f := range p.flows[i] {
				for f.Owes() > 0 && send(i, j, wire.Ack) {
				}
				if cfg.Requests && time.Now().After(begin) && !f.Full() && sent[i][j] < requestsOfUs && !p.undecided {
					sent[i][j]++
					send(i, j, wire.Request)
				}
			}
		}
	}
	if len(r.lines) < 6 {
		t.Errorf("only %d messages", len(r.lines))
	}
}
