package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
)

func needHosts(t *testing.T, n int) {
	t.Helper()
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Hosts(n), labtest.Root)
}

// runBoth runs both sides, the passive one on host 2, and returns what they left behind.
func runBoth(t *testing.T, port int, active string, passive ...string) (a, p labtest.Result) {
	t.Helper()
	args := append([]string{"-r", "10.9.0.2", "-p", fmt.Sprint(port)}, passive...)
	server := labtest.StartOn(t, 2, labtest.Command(t, args...))
	args = append([]string{"-r", "10.9.0.1", "-s", "10.9.0.2", "-p", fmt.Sprint(port), "--connect-retries", "10"}, strings.Fields(active)...)
	a = labtest.RunOn(t, 1, args...)
	return a, server.Finish(t)
}

// end returns the last JSON object.
func end(t *testing.T, r labtest.Result) (e jsonEnd) {
	t.Helper()
	lines := r.Lines()
	if len(lines) == 0 {
		t.Fatalf("no output; stderr: %s", r.Stderr)
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil || e.Type != "end" {
		t.Fatalf("%q does not end the run: %v", lines[len(lines)-1], err)
	}
	return e
}

func TestEveryMessageIsAccountedForOnBothSides(t *testing.T) {
	needHosts(t, 2)
	for i, args := range []string{
		"-v", "-o -v", "-t 4 -v", "-d 64 -v", "-q 8K -v", "-q 64K -v", "-Q 3", "--show-histogram", "--crc",
		"--size-range 63-9000 -v --seed 5", "--rate 200", "--always-bursty -d 4", "--sync-always-bursty -d 4 -t 2", "-a 100 -v",
	} {
		t.Run(args, func(t *testing.T) {
			a, p := runBoth(t, 5000+100*i, args+" -T 1 --warmup 0.4 --json")
			if a.Status != 0 || p.Status != 0 {
				t.Fatalf("active %d, passive %d\n%s%s", a.Status, p.Status, a.Stderr, p.Stderr)
			}
			e := end(t, a)
			if !e.OK || e.PeerFaults == nil || e.Unanswered != 0 {
				t.Errorf("%+v", e)
			}
			if e.RequestsSent == 0 || (e.RequestsReceived == 0) != strings.Contains(args, "-o") {
				t.Errorf("%d requests sent, %d received", e.RequestsSent, e.RequestsReceived)
			}
		})
	}
}

func TestBothEndsInOneProcess(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	r := labtest.RunOn(t, 0, "--self", "-r", "127.0.0.1", "-s", "127.0.0.2", "-T", "1", "--warmup", "0.2", "-v", "--json", "-p", "8000")
	if e := end(t, r); r.Status != 0 || !e.OK || e.RequestsSent == 0 || e.RequestsReceived == 0 {
		t.Errorf("status %d: %+v\n%s", r.Status, e, r.Stderr)
	}
}

func TestSIGINTEndsTheRunOnBothSides(t *testing.T) {
	needHosts(t, 2)
	server := labtest.StartOn(t, 2, labtest.Command(t, "-r", "10.9.0.2", "-p", "8100"))
	client := labtest.Command(t, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8100", "--connect-retries", "10", "--warmup", "0.2", "--json")
	watch := newWatch(client, `"interval"`)
	p := labtest.StartOn(t, 1, client)
	watch.wait(t)
	if err := client.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	a, s := p.Finish(t), server.Finish(t)
	a.Stdout = watch.String()
	if e := end(t, a); a.Status != 0 || s.Status != 0 || !e.OK || e.RequestsSent == 0 {
		t.Errorf("active %d, passive %d: %+v\n%s%s", a.Status, s.Status, e, a.Stderr, s.Stderr)
	}
	if !strings.Contains(s.Stdout, "(average)") {
		t.Errorf("the passive side prints no average:\n%s", s.Stdout)
	}
}

func TestADeadPeerIsNoticed(t *testing.T) {
	needHosts(t, 2)
	serverCmd := labtest.Command(t, "-r", "10.9.0.2", "-p", "8200")
	server := labtest.StartOn(t, 2, serverCmd)
	client := labtest.Command(t, "-r", "10.9.0.1", "-s", "10.9.0.2", "-p", "8200", "--connect-retries", "10", "--warmup", "0.2", "--json")
	watch := newWatch(client, `"interval"`)
	p := labtest.StartOn(t, 1, client)
	watch.wait(t)
	killed := time.Now()
	serverCmd.Process.Kill()
	server.Wait() // its status is that of the signal
	a := p.Finish(t)
	if took := time.Since(killed); took > 15*time.Second {
		t.Errorf("noticed after %v", took)
	}
	a.Stdout = watch.String()
	if e := end(t, a); a.Status != 1 || e.OK || e.Error == nil {
		t.Errorf("status %d: %+v", a.Status, e)
	}
}

func TestBadNetworksLoseNothing(t *testing.T) {
	needHosts(t, 2)
	labtest.Host(t, 1).Netem("loss 1% duplicate 1% corrupt 0.1% reorder 5% delay 1ms")
	a, p := runBoth(t, 8300, "-v -d 8 -T 3 --warmup 1 --json")
	e := end(t, a)
	t.Logf("active %d, passive %d: %+v", a.Status, p.Status, e.Faults)
	if a.Status != 0 || p.Status != 0 || !e.OK || e.RequestsSent == 0 {
		t.Errorf("%+v\n%s%s", e, a.Stderr, p.Stderr)
	}
}

func TestWhatCannotBeTriedIsSaid(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for _, tt := range []struct {
		name, args, want string
	}{
		{"both at one address", "-r 127.0.0.1 -s 127.0.0.1", "ports collide"},
		{"TOS on loop", "-r 127.0.0.1 -s 127.0.0.2 -Q 3", "loopback"},
		{"nobody listens", "-r 127.0.0.1 -s 127.0.0.2 -p 9999", "connect(127.0.0.2:9999) failed"},
		{"an operand", "host", "is no option"},
		{"too small", "-r 127.0.0.1 -s 127.0.0.2 -q 10", "req size must be at least 63 bytes"},
		{"too deep", "-s 127.0.0.2 -d 70000", "out of range"},
		{"async on mainline", "-s 127.0.0.2 --async", "sendto() failed, errno: 22 (Invalid argument)"},
		{"reset on mainline", "-r 127.0.0.1 -s 127.0.0.2 --reset", "RDS_CONN_RESET failed, errno: 95"},
		{"too much memory", "-r 127.0.0.1 -s 127.0.0.2 -t 1024 -d 65535", "more than --max-memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := labtest.RunOn(t, 0, strings.Fields(tt.args)...)
			if r.Status != 2 || !strings.Contains(r.Stderr, tt.want) {
				t.Errorf("status %d, stderr %q, want %q", r.Status, r.Stderr, tt.want)
			}
		})
	}
}

// A watch keeps what a command prints and tells when a text is in it.
type watch struct {
	mu   sync.Mutex
	out  bytes.Buffer
	text string
	seen chan struct{}
}

func newWatch(cmd *exec.Cmd, text string) *watch {
	w := &watch{text: text, seen: make(chan struct{})}
	cmd.Stdout = w
	return w
}

func (w *watch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Write(b)
	if w.text != "" && strings.Contains(w.out.String(), w.text) {
		w.text = ""
		close(w.seen)
	}
	return len(b), nil
}

func (w *watch) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()
}

func (w *watch) wait(t *testing.T) {
	t.Helper()
	select {
	case <-w.seen:
	case <-time.After(50 * time.Second):
		t.Fatalf("no %s in %q", w.text, w.String())
	}
}
