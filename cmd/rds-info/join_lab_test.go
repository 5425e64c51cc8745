package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdsinfo"
)

// joined is a row of rds-info --json with what was joined to it.
type joined struct {
	Type       string
	Local      string  `json:"local_address"`
	Remote     string  `json:"remote_address"`
	Transport  string  `json:"transport"`
	RemoteName *string `json:"remote_name"`
	TCP        json.RawMessage
	Route      *rdsinfo.Peer
}

// row returns the connection between two hosts.
func row(t *testing.T, r labtest.Result, local, remote string) joined {
	t.Helper()
	if r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	for _, line := range r.Lines() {
		var j joined
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if j.Type == "connection" && j.Local == local && j.Remote == remote {
			return j
		}
	}
	t.Fatalf("no connection from %s to %s in\n%s", local, remote, r.Stdout)
	return joined{}
}

func TestAConnectionIsJoinedWithItsRoute(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Root, labtest.Hosts(2))
	connect(t, 1, 2)
	j := row(t, labtest.RunOn(t, 1, "-n", "--json", "--route"), "10.9.0.1", "10.9.0.2")
	if j.Route == nil || j.Route.Device != "eth0" || j.Route.Gateway.IsValid() || j.Route.MTU != 1500 || j.Route.Neighbor == "" || j.Route.RouteError != "" {
		t.Errorf("route %+v", j.Route)
	}
	file := filepath.Join(t.TempDir(), "bundle")
	if r := labtest.RunOn(t, 1, "snapshot", file); r.Status != 0 {
		t.Fatal(r.Stderr)
	}
	if j := row(t, labtest.RunOn(t, 0, "-n", "--json", "--route", "--from", file), "10.9.0.1", "10.9.0.2"); j.Route == nil || j.Route.Device != "eth0" {
		t.Errorf("from a bundle: %+v", j.Route)
	}
	labtest.Host(t, 1).Cut()
	r := labtest.RunOn(t, 1, "-n", "--route", "--filter", "peer=10.9.0.2,local=10.9.0.1")
	if !regexp.MustCompile(`(?m)^ +10\.9\.0\.1 +10\.9\.0\.2 .* no-route$`).MatchString(r.Stdout) {
		t.Errorf("with the link down:\n%s%s", r.Stdout, r.Stderr)
	}
}

func TestAConnectionIsJoinedWithItsTCPSockets(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Netem, labtest.Root, labtest.Hosts(2))
	connect(t, 1, 2)
	labtest.Host(t, 2).Netem("delay 30ms")
	for range 3 {
		labtest.RunOn(t, 1, "doctor", "-i", "0.1", "10.9.0.2")
	}
	health := func(options ...string) []rdsinfo.TCPHealth {
		t.Helper()
		j := row(t, labtest.RunOn(t, 1, append([]string{"-n", "--json", "--tcp-info"}, options...)...), "10.9.0.1", "10.9.0.2")
		var all []rdsinfo.TCPHealth
		if err := json.Unmarshal(j.TCP, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := health()
	if len(all) != 8 {
		t.Errorf("%d TCP sockets, want 8: one for each path", len(all))
	}
	slowest := uint64(0)
	for _, h := range all {
		slowest = max(slowest, h.RTTMicros)
		if h.State != "ESTAB" || h.Cwnd == 0 || h.SendMSS == 0 || h.Congestion == "" || !h.BytesAcked.Known {
			t.Errorf("%+v", h)
		}
	}
	if slowest < 30_000/8 { // smoothed over 8 measurements
		t.Errorf("the longest round trip is %d us after some of 30 ms", slowest)
	}
	file := filepath.Join(t.TempDir(), "bundle")
	if r := labtest.RunOn(t, 1, "snapshot", "--tcp-info", file); r.Status != 0 {
		t.Fatal(r.Stderr)
	}
	if stored := health("--from", file); len(stored) != len(all) {
		t.Errorf("%d TCP sockets from a bundle, want %d", len(stored), len(all))
	}
	// The same as a table: each row of -T has its measurements.
	r := labtest.RunOn(t, 1, "-T", "--tcp-info", "--filter", "peer=10.9.0.2")
	if n := len(regexp.MustCompile(`(?m)^ +10\.9\.0\.1 +\d+ +10\.9\.0\.2 .* ESTAB +\d+ +\d+ +\d+ +[1-9]\d*$`).FindAllString(r.Stdout, -1)); n != 8 {
		t.Errorf("%d rows with measurements, want 8:\n%s%s", n, r.Stdout, r.Stderr)
	}
	// What is lost is sent again.
	labtest.Host(t, 1).Netem("loss 100%")
	labtest.RunOn(t, 1, "doctor", "-i", "0.1", "-W", "1", "10.9.0.2")
	resent, unacked := uint32(0), uint32(0)
	for _, h := range health() {
		resent += h.Retransmits
		unacked += h.Unacked
	}
	if resent == 0 || unacked == 0 {
		t.Errorf("with all packets lost %d segments were sent again, %d are on their way", resent, unacked)
	}
}

// The hosts have no name server: h1 and h2 are in /etc/hosts, and nothing answers for
// the others.
func TestNamesAreResolvedInBoundedTime(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Root, labtest.Hosts(2))
	connect(t, 1, 2)
	r := labtest.RunOn(t, 1, "-n", "--json", "--resolve")
	if j := row(t, r, "10.9.0.1", "10.9.0.2"); j.RemoteName == nil || *j.RemoteName != "h2" {
		t.Errorf("name %v of 10.9.0.2", j.RemoteName)
	}
	if r.Took > 10*time.Second {
		t.Errorf("took %v", r.Took)
	}
}
