package doctor

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/rdsinfo"
)

// commands are the first words of remedies.
var commands = []string{
	"dmesg", "dnf", "ethtool", "for", "getent", "grep", "ibstat", "ip", "lsns", "modprobe", "nsenter", "ping", "ps", "rdma",
	"rds-info", "rds-ping", "sed", "sh", "ss", "ssh", "sysctl", "ulimit",
}

// placeholder is a word that is to be replaced before a command can be run.
var placeholder = regexp.MustCompile(`\b[A-Z]{4,}\b`)

// quoted is what a shell takes as it is.
var quoted = regexp.MustCompile(`'[^']*'|\\'`)

// checkRemedy fails the test unless the remedy of a finding can be pasted into a shell.
func checkRemedy(t *testing.T, f Finding) {
	t.Helper()
	if f.Remedy == "" {
		if f.Verdict.Bad() && f.Advice == "" && f.Check != "ping" {
			t.Errorf("nothing is to be done: %s", text(f))
		}
		return
	}
	first, _, _ := strings.Cut(f.Remedy, " ")
	if strings.Contains(f.Remedy, "\n") || placeholder.MatchString(f.Remedy) || !slices.Contains(commands, first) {
		t.Errorf("no command: %q", f.Remedy)
	}
	if out, err := exec.Command("sh", "-n", "-c", f.Remedy).CombinedOutput(); err != nil {
		t.Errorf("%q: %v %s", f.Remedy, err, out)
	}
}

func remedies(f *Facts) []string {
	var all []string
	for _, finding := range Examine(f) {
		if finding.Remedy != "" {
			all = append(all, finding.Remedy)
		}
	}
	return all
}

func TestRemediesAreForTheNamespaceThatWasLookedAt(t *testing.T) {
	for netNS, want := range map[string]string{
		"":                "ip link set eth0 up",
		"blue":            "ip netns exec blue ip link set eth0 up",
		"$(reboot)":       "ip netns exec '$(reboot)' ip link set eth0 up",
		"77":              "nsenter --net=/proc/77/ns/net ip link set eth0 up",
		"/run/my ns/blue": "nsenter --net='/run/my ns/blue' ip link set eth0 up",
	} {
		f := facts(t, made{}, made{})
		f.NetNS = netNS
		f.Last.Links[1].Up = false
		if got := remedies(f); !slices.Contains(got, want) {
			t.Errorf("%q: %q, want %q", netNS, got, want)
		}
	}
}

func TestAnotherNamespaceIsNamedSoThatItIsFound(t *testing.T) {
	for _, tt := range []struct {
		name string
		ns   rdsinfo.Namespace
		want string
	}{
		{"by its name", rdsinfo.Namespace{Inode: 2, Name: "blue"}, "rds-info doctor --netns blue db2"},
		{"by a hostile name", rdsinfo.Namespace{Inode: 2, Name: "b; reboot"}, "rds-info doctor --netns 'b; reboot' db2"},
		{"by a process", rdsinfo.Namespace{Inode: 2, PID: 77}, "rds-info doctor --netns 77 db2"},
		{"not at all", rdsinfo.Namespace{Inode: 2}, "lsns -t net"},
	} {
		f := facts(t, made{}, made{})
		tt.ns.Addresses = []rdsinfo.Address{{Addr: addr("10.7.0.1"), Bits: 24}}
		f.Last.Others = []rdsinfo.Namespace{tt.ns}
		f.Host = &Host{Name: "db2", Way: rdsinfo.Peer{Remote: addr("10.7.0.2"), RouteError: "network is unreachable"}}
		if got := remedies(f); !slices.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Names are those of a host that is not to be trusted, or of a file, and people paste what has them.
func TestHostileNamesAreQuoted(t *testing.T) {
	const hostile = "x'; $(reboot) `reboot`\n&& reboot"
	f := facts(t, connections(connectionTo("10.9.0.2", 0)), connections(connectionTo("10.9.0.2", 0)))
	for i := range f.Last.Links {
		f.Last.Links[i].Name, f.Last.Links[i].Up = hostile, false
	}
	for i := range f.Last.Namespace.Addresses {
		a := &f.Last.Namespace.Addresses[i]
		a.Device, a.Usable = hostile, false
	}
	f.Last.Peers[0].Device, f.Last.Peers[0].Neighbor = hostile, "failed"
	f.Last.RDMAPorts = []rdsinfo.RDMAPort{{Device: hostile, Port: 1, State: "DOWN", LinkLayer: "InfiniBand"}}
	f.Last.RDMACounters = []rdsinfo.RDMACounter{{Device: hostile, Port: 1, Name: "link_downed", Value: 3}}
	f.First.RDMACounters = []rdsinfo.RDMACounter{{Device: hostile, Port: 1, Name: "link_downed"}}
	f.Last.ModuleRules = []rdsinfo.ModuleRule{{Module: "rds_tcp", File: hostile, Line: 1, Text: "install rds_tcp " + hostile}}
	f.Host = &Host{Name: hostile, Way: rdsinfo.Peer{Local: addr("10.9.0.1"), Remote: addr("10.9.0.2"), Device: hostile}}
	found := 0
	for _, command := range remedies(f) {
		if !strings.Contains(command, "reboot") {
			continue
		}
		found++
		if rest := quoted.ReplaceAllString(command, ""); strings.Contains(rest, "reboot") {
			t.Errorf("%s", command)
		}
	}
	if found < 6 {
		t.Errorf("only %d remedies have the name: %q", found, remedies(f))
	}
}
