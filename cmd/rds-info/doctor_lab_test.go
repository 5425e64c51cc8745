package main

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdsinfo"
	"github.com/rdskit/rdskit/rdssock"
)

// A finding is a line of rds-info doctor --json.
type finding struct {
	Type, Check, Subject, Verdict, Reason, Remedy, Advice string
}

// findings reads the output of rds-info doctor --json.
func findings(t *testing.T, stdout string) []finding {
	t.Helper()
	var all []finding
	for line := range strings.Lines(stdout) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if f.Type != "finding" || f.Check == "" || f.Verdict == "" || f.Reason == "" {
			t.Errorf("not a whole finding: %s", line)
		}
		all = append(all, f)
	}
	return all
}

// wantFinding looks for a finding of the check and verdict, with texts in subject, reason,
// remedy and advice.
func wantFinding(t *testing.T, r labtest.Result, want finding) {
	t.Helper()
	for _, f := range findings(t, r.Stdout) {
		if f.Check == want.Check && f.Verdict == want.Verdict && strings.Contains(f.Subject, want.Subject) &&
			strings.Contains(f.Reason, want.Reason) && strings.Contains(f.Remedy, want.Remedy) && strings.Contains(f.Advice, want.Advice) {
			if r.Status != 1 {
				t.Errorf("exit status %d, want 1", r.Status)
			}
			return
		}
	}
	t.Errorf("no finding like %+v in\n%s%s", want, r.Stdout, r.Stderr)
}

// wantHealthy fails the test if doctor finds a fault.
func wantHealthy(t *testing.T, r labtest.Result) {
	t.Helper()
	for _, f := range findings(t, r.Stdout) {
		if f.Verdict == "warn" || f.Verdict == "fail" {
			t.Errorf("%+v", f)
		}
	}
	if r.Status != 0 {
		t.Errorf("exit status %d, want 0; stderr %q", r.Status, r.Stderr)
	}
}

// connect makes a connection between two hosts, and sees that it works.
func connect(t *testing.T, from, to int) {
	t.Helper()
	for range 20 {
		r := labtest.RunOn(t, from, "doctor", "--json", "--probe", "-i", "0.1", labtest.Host(t, to).IPv4().String())
		for _, f := range findings(t, r.Stdout) {
			if f.Check == "ping" && f.Verdict == "ok" {
				return
			}
		}
	}
	t.Fatalf("h%d does not reach h%d", from, to)
}

// setSysctl sets a parameter until the end of the test.
func setSysctl(t *testing.T, name, value string) {
	t.Helper()
	file := filepath.Join("/proc/sys", name)
	old, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(value), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, old, 0); err != nil {
			t.Error(err)
		}
	})
}

func socketOn(t *testing.T, n int, port uint16, cfg rdssock.Config) *rdssock.Conn {
	t.Helper()
	h := labtest.Host(t, n)
	ns, err := os.Open(h.NetNS())
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	cfg.NetNS = int(ns.Fd())
	c, err := rdssock.Listen(netip.AddrPortFrom(h.IPv4(), port), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestDoctorFindsNothingWrongInAHealthyLab(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Root, labtest.Hosts(3))
	wantHealthy(t, labtest.RunOn(t, 1, "doctor", "--json"))
	connect(t, 1, 2)
	r := labtest.RunOn(t, 1, "doctor", "--json", "h2")
	wantHealthy(t, r)
	answered := false
	for _, f := range findings(t, r.Stdout) {
		answered = answered || f.Check == "ping" && f.Verdict == "ok"
	}
	if !answered {
		t.Errorf("no ping was answered:\n%s", r.Stdout)
	}
}

// linkLocal is the link-local address of a host, once it has one.
func linkLocal(t *testing.T, n int) string {
	t.Helper()
	for range 100 {
		var found string
		if err := labtest.Host(t, n).Do(func() error {
			b, err := rdsinfo.Collect(t.Context(), nil)
			if err != nil {
				return err
			}
			for _, a := range b.Namespace.Addresses {
				if a.Addr.IsLinkLocalUnicast() && a.Usable {
					found = a.Addr.WithZone("").String()
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if found != "" {
			return found
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("h%d gets no link-local address", n)
	return ""
}

// The tables of the kernel tell no zones, without which there is no way to a link-local address.
func TestLinkLocalConnectionsAreFoundWithTheirWay(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Root, labtest.Hosts(3))
	local, peer := linkLocal(t, 1), linkLocal(t, 2)
	host := peer + "%eth0"
	for _, args := range [][]string{{"--probe", "--local", local, host}, {"--local", local, host}, {host}} {
		r := labtest.RunOn(t, 1, append([]string{"doctor", "--json", "-i", "0.1"}, args...)...)
		if r.Status != 0 || !strings.Contains(r.Stdout, `"check":"ping","subject":"`+local+"%eth0 to "+host+`, tcp","verdict":"ok"`) {
			t.Errorf("%q: status %d\n%s", args, r.Status, r.Stdout)
		}
		if created := strings.Contains(r.Stdout, "the ping created this connection"); created != (args[0] == "--probe") {
			t.Errorf("%q created a connection: %v", args, created)
		}
	}
	r := labtest.RunOn(t, 1, "-n", "--json", "--route")
	if j := row(t, r, local, peer); j.Route == nil || j.Route.Device != "eth0" || j.Route.RouteError != "" {
		t.Errorf("route %+v", j.Route)
	}
}

func TestDoctorWithoutProbeMakesNoConnection(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Root, labtest.Hosts(3))
	to := netip.MustParseAddr("10.9.0.200")
	r := labtest.RunOn(t, 3, "doctor", "--json", "-i", "0.1", to.String())
	if r.Status != 0 || !strings.Contains(r.Stdout, "--probe permits that") {
		t.Errorf("status %d, %s", r.Status, r.Stdout)
	}
	s, err := rdsinfo.Read(nil, rdsinfo.Connections)
	if err != nil {
		t.Fatal(err)
	}
	connections, err := s.Connections()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range connections {
		if c.Remote == to {
			t.Errorf("there is a connection: %+v", c)
		}
	}
}

func TestDoctorNamesTheFault(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Root, labtest.Hosts(3))
	h2 := labtest.Host(t, 2).IPv4().String()
	for _, tt := range []struct {
		name string
		do   func(t *testing.T) labtest.Result
		want finding
	}{
		{"an address that is not local", func(t *testing.T) labtest.Result {
			return labtest.RunOn(t, 1, "doctor", "--json", "-i", "0.1", "--local", "10.9.0.77")
		}, finding{Check: "address", Verdict: "fail", Subject: "10.9.0.77", Reason: "not an address of this host", Remedy: "ip address add 10.9.0.77/24 dev eth0"}},

		{"an address of another namespace", func(t *testing.T) labtest.Result {
			return labtest.RunOn(t, 1, "doctor", "--json", "-i", "0.1", "--local", h2)
		}, finding{Check: "address", Verdict: "fail", Subject: h2, Reason: "of the network namespace h2", Remedy: "--netns h2"}},

		{"the wrong namespace", func(t *testing.T) labtest.Result {
			return labtest.RunOn(t, 0, "doctor", "--json", "-i", "0.1", h2)
		}, finding{Check: "route", Verdict: "fail", Subject: h2, Reason: "wrong network namespace: h1 has 10.9.0.1", Remedy: "rds-info doctor --netns h1 " + h2}},

		{"no route", func(t *testing.T) labtest.Result {
			return labtest.RunOn(t, 1, "doctor", "--json", "-i", "0.1", "192.0.2.1")
		}, finding{Check: "route", Verdict: "fail", Subject: "192.0.2.1", Reason: "unreachable", Remedy: "ip route show", Advice: "ip route add 192.0.2.1 via"}},

		{"the port behind a drop rule", func(t *testing.T) labtest.Result {
			labtest.Host(t, 2).Drop(rdsinfo.TCPPort)
			return labtest.RunOn(t, 3, "doctor", "--json", "--probe", h2)
		}, finding{Check: "ping", Verdict: "fail", Subject: "to " + h2, Reason: "nothing answers at TCP port 16385 of " + h2 + ": a firewall drops it", Remedy: "nft list ruleset"}},

		{"the port behind a drop rule, met by a connection that was up", func(t *testing.T) labtest.Result {
			connect(t, 1, 2)
			labtest.Host(t, 2).Drop(rdsinfo.TCPPort)
			return labtest.RunOn(t, 1, "doctor", "--json", h2)
		}, finding{Check: "ping", Verdict: "fail", Subject: "to " + h2, Reason: "acknowledges nothing over TCP", Remedy: "nft list ruleset", Advice: "let TCP port 16385 through"}},

		{"the link down", func(t *testing.T) labtest.Result {
			connect(t, 1, 2)
			labtest.Host(t, 1).Cut()
			return labtest.RunOn(t, 1, "doctor", "--json", h2)
		}, finding{Check: "link", Verdict: "fail", Subject: "eth0", Reason: "it is down", Remedy: "ip link set eth0 up"}},

		{"the link down, as the cause of no route", func(t *testing.T) labtest.Result {
			labtest.Host(t, 1).Cut()
			return labtest.RunOn(t, 1, "doctor", "--json", h2)
		}, finding{Check: "route", Verdict: "fail", Subject: h2, Reason: "eth0, which has 10.9.0.1 in the network of 10.9.0.2, is down", Remedy: "ip link set eth0 up"}},

		{"the peer's link down", func(t *testing.T) labtest.Result {
			labtest.Host(t, 2).Cut()
			// Connections of earlier tests keep trying: what h1 knew of its neighbor from them is to be gone.
			labtest.Host(t, 1).Cut()
			labtest.Host(t, 1).Mend()
			return labtest.RunOn(t, 1, "doctor", "--json", "--probe", "-W", "4", h2)
		}, finding{Check: "neighbor", Verdict: "fail", Subject: h2, Reason: "does not answer on eth0", Remedy: "ping -c 3 -I eth0 " + h2, Advice: "is its link"}},

		{"a peer without RDS", func(t *testing.T) labtest.Result {
			connect(t, 1, 2)
			labtest.Host(t, 2).Deafen()
			return labtest.RunOn(t, 1, "doctor", "--json", h2)
		}, finding{Check: "ping", Verdict: "fail", Subject: "to " + h2, Reason: "refuses TCP port 16385: there is no RDS over TCP", Remedy: "ssh " + h2 + " modprobe rds_tcp"}},

		{"a peer that answers no pings", func(t *testing.T) labtest.Result {
			connect(t, 1, 2)
			setSysctl(t, "net/rds/ping_enable", "0")
			return labtest.RunOn(t, 1, "doctor", "--json", h2)
		}, finding{Check: "ping", Verdict: "fail", Subject: "to " + h2, Reason: "net.rds.ping_enable is 0 there", Remedy: "ssh " + h2 + " sysctl -w net.rds.ping_enable=1"}},

		{"a host that answers no pings", func(t *testing.T) labtest.Result {
			setSysctl(t, "net/rds/ping_enable", "0")
			return labtest.RunOn(t, 0, "doctor", "--json", "-i", "0.1")
		}, finding{Check: "sysctl", Verdict: "warn", Subject: "net.rds.ping_enable", Reason: "answers no RDS pings", Remedy: "sysctl -w net.rds.ping_enable=1"}},

		{"a tiny wmem_max", func(t *testing.T) labtest.Result {
			setSysctl(t, "net/core/wmem_max", "16384")
			return labtest.RunOn(t, 1, "doctor", "--json", "-i", "0.1")
		}, finding{Check: "buffer", Verdict: "warn", Subject: "net.core.wmem_max", Reason: "no message of more than 16384 bytes", Remedy: "sysctl -w net.core.wmem_max=1048576"}},

		{"a congested receiver", func(t *testing.T) labtest.Result {
			congest(t)
			return labtest.RunOn(t, 2, "doctor", "--json")
		}, finding{Check: "receiver", Verdict: "fail", Subject: h2 + ":4711", Reason: "the receiver is congested: " + filepath.Base(os.Args[0]) + " (process ", Remedy: "ps -o pid,stat,wchan:24,args -p ", Advice: "look at the program"}},

		{"a congested receiver, seen from the sender", func(t *testing.T) labtest.Result {
			blocked := congest(t)
			defer keepTrying(t, blocked)()
			return labtest.RunOn(t, 1, "doctor", "--json")
		}, finding{Check: "counter", Verdict: "warn", Subject: "cong_send_", Reason: "a receiver on a peer does not read fast enough", Remedy: `; do ssh "$host" rds-info doctor --quiet; done`, Advice: "on the peers"}},

		{"a connection that is flapping", func(t *testing.T) labtest.Result {
			connect(t, 3, 1)
			defer flap(t, 3)()
			return labtest.RunOn(t, 3, "doctor", "--json", "-i", "2")
		}, finding{Check: "connection", Verdict: "warn", Subject: "10.9.0.3 to 10.9.0.1", Reason: "it is flapping: lost", Remedy: "ip -s link show dev eth0", Advice: "what resets it"}},
	} {
		t.Run(tt.name, func(t *testing.T) { wantFinding(t, tt.do(t), tt.want) })
	}
}

// congest fills the buffer of a socket on h2 from h1, and returns a function that
// tries to send one message more.
func congest(t *testing.T) (send func() error) {
	receiver := socketOn(t, 2, 4711, rdssock.Config{ReceiveBuffer: 8192})
	sender := socketOn(t, 1, 0, rdssock.Config{Congestion: rdssock.FailWhenCongested})
	dst := receiver.LocalAddr().(rdssock.Addr).AddrPort
	send = func() error {
		_, err := sender.WriteToAddrPort(make([]byte, 4096), dst)
		return err
	}
	for range 1000 {
		if err := send(); errors.Is(err, rdssock.ErrCongested) {
			return send
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the receiver does not get congested")
	return nil
}

// keepTrying sends until the function that it returns is called.
func keepTrying(t *testing.T, send func() error) (stop func()) {
	return every(20*time.Millisecond, func() {
		if err := send(); !errors.Is(err, rdssock.ErrCongested) {
			t.Errorf("to a congested receiver: %v", err)
		}
	})
}

// flap resets the connections of a host again and again, as any write of this parameter does.
func flap(t *testing.T, n int) (stop func()) {
	h := labtest.Host(t, n)
	return every(300*time.Millisecond, func() {
		if err := h.Do(func() error {
			return os.WriteFile("/proc/sys/net/rds/tcp/rds_tcp_sndbuf", []byte("65536"), 0)
		}); err != nil {
			t.Error(err)
		}
	})
}

// every calls f at intervals until the function that it returns is called.
func every(d time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(d):
				f()
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

func TestDoctorJudgesABundleAsItJudgesTheHost(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Root, labtest.Hosts(3))
	setSysctl(t, "net/core/wmem_max", "16384")
	dir := t.TempDir()
	first, last := filepath.Join(dir, "first"), filepath.Join(dir, "last")
	for _, file := range []string{first, last} {
		if r := labtest.RunOn(t, 1, "snapshot", file); r.Status != 0 {
			t.Fatalf("%+v", r)
		}
	}
	want := finding{Check: "buffer", Verdict: "warn", Subject: "net.core.wmem_max"}
	wantFinding(t, labtest.RunOn(t, 0, "doctor", "--json", "--from", first), want)
	r := labtest.RunOn(t, 0, "doctor", "--json", "--from", first, "--from", last)
	wantFinding(t, r, want)
	if !strings.Contains(r.Stdout, `"check":"counter","subject":null,"verdict":"ok"`) {
		t.Errorf("two bundles say nothing about counters:\n%s", r.Stdout)
	}
}
