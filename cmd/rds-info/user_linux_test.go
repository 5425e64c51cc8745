package main

import (
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
)

// asNobody makes an ordinary user run a command, whose file is below a directory of root's.
func asNobody(cmd *exec.Cmd) *exec.Cmd {
	cmd.Path = "/proc/self/exe"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}

// An ordinary user may enter no network namespace, but is in one.
func TestEveryNamespaceThatMayBeEnteredIsShown(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.Root, labtest.Hosts(2))
	headings := regexp.MustCompile(`(?m)^# Network namespace \d+( \(home namespace\))?$`)
	r := labtest.RunOn(t, 1, "-Nc")
	if n := len(headings.FindAllString(r.Stdout, -1)); r.Status != 0 || n < 3 || r.Stderr != "" {
		t.Errorf("of root: status %d, %d namespaces, %s", r.Status, n, r.Stderr)
	}
	for _, args := range [][]string{{"-Nc"}, {"-Nc", "--json"}} {
		cmd := asNobody(labtest.Command(t, args...))
		r := labtest.StartOn(t, 1, cmd).Finish(t)
		if r.Status != 0 || !strings.Contains(r.Stdout, "conn_reset") {
			t.Errorf("%q: status %d, %s", args, r.Status, r.Stdout)
		}
		if h := headings.FindAllString(r.Stdout, -1); args[len(args)-1] == "-Nc" && (len(h) != 1 || !strings.Contains(h[0], "home")) {
			t.Errorf("headings %q", h)
		}
		if !strings.Contains(r.Stderr, "rds-info: network namespace h2: setns: operation not permitted: run it as root\n") || strings.Contains(r.Stderr, "namespace h1") {
			t.Errorf("%q: stderr %q", args, r.Stderr)
		}
	}
}

func TestAnOrdinaryUserGetsAsFarAsThatGoes(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Root, labtest.Hosts(2))
	run := func(args ...string) labtest.Result {
		return labtest.StartOn(t, 1, asNobody(labtest.Command(t, args...))).Finish(t)
	}
	r := run("doctor", "--json", "-i", "0.1")
	wantHealthy(t, r)
	if !strings.Contains(r.Stdout, `"check":"address","subject":"10.9.0.1","verdict":"ok"`) {
		t.Errorf("no address in\n%s", r.Stdout)
	}
	if r := run("-n", "--netns", "h1"); r.Status != 0 || r.Stderr != "" {
		t.Errorf("its own namespace, by name: %+v", r)
	}
	if r := run("-n", "--netns", "h2"); r.Status != 2 || r.Stdout != "" || r.Stderr != "rds-info: network namespace h2: setns: operation not permitted: run it as root\n" {
		t.Errorf("another namespace: %+v", r)
	}
}
