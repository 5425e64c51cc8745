package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// A launched lab runs a command that does not end.
type launched struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer
	tmp    string // the lab's directory for temporary files
}

// launch starts a lab and waits until its command runs, which prints a line
// then.
func launch(t *testing.T, p kernel.Profile, script string) *launched {
	t.Helper()
	needProfile(t, p)
	l := &launched{t: t, tmp: t.TempDir()}
	r := &run{t: t, env: []string{"TMPDIR=" + l.tmp}, args: []string{"run", "--profile", p.String(), "--", "sh", "-c", script}}
	l.cmd = r.command(t.Context())
	l.cmd.Stderr = &l.stderr
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.cmd.Process.Kill() })
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the command does not run: %v\n%s", err, &l.stderr)
	}
	return l
}

// keeper is the process id of the lab's keeper, the launcher's only child and
// the leader of the session of all others.
func (l *launched) keeper() int {
	l.t.Helper()
	for _, p := range processes(l.t) {
		if p.parent == l.cmd.Process.Pid {
			return p.id
		}
	}
	l.t.Fatal("the launcher has no child")
	return 0
}

type process struct {
	id, parent, session int
	name                string
}

func processes(t *testing.T) []process {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var all []process
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name is in parentheses, and may hold anything.
		begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
		p := process{name: string(b[begin+1 : end])}
		var state string
		var group int
		if _, err := fmt.Sscan(string(b[end+1:]), &state, &p.parent, &group, &p.session); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		p.id, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		all = append(all, p)
	}
	return all
}

// wantNothingLeft checks that all processes of the session, and the files of
// the lab, are gone or go within a moment.
func (l *launched) wantNothingLeft(session int, within time.Duration) {
	l.t.Helper()
	var left []string
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left = nil
		for _, p := range processes(l.t) {
			if p.session == session {
				left = append(left, fmt.Sprintf("process %d (%s)", p.id, p.name))
			}
		}
		left = append(left, l.files()...)
		if len(left) == 0 {
			return
		}
		if time.Since(began) > within {
			l.t.Fatalf("left behind: %s", strings.Join(left, ", "))
		}
	}
}

func (l *launched) files() []string {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.tmp, "*"))
	if err != nil {
		l.t.Fatal(err)
	}
	return files
}

func TestAKilledLauncherLeavesNothingBehind(t *testing.T) {
	const waits = "echo runs; sleep 1000"
	for _, test := range []struct {
		name    string
		long    bool
		profile kernel.Profile
		script  string
		signal  syscall.Signal
		status  int
		within  time.Duration
	}{
		{"SIGINT", true, kernel.UML, waits, syscall.SIGINT, 128 + 2, 0},
		{"SIGTERM", false, kernel.UML, waits, syscall.SIGTERM, 128 + 15, 0},
		{"SIGHUP", true, kernel.UML, waits, syscall.SIGHUP, 128 + 1, 0},
		{"SIGKILL", false, kernel.UML, waits, syscall.SIGKILL, 128 + 9, 30 * time.Second},
		{"SIGKILL while the machine is busy", true, kernel.UML, "echo runs; while :; do /bin/true; done", syscall.SIGKILL, 128 + 9, 30 * time.Second},
		{"SIGKILL of QEMU's", true, kernel.QEMU, waits, syscall.SIGKILL, 128 + 9, 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long {
				long(t)
			}
			t.Parallel()
			l := launch(t, test.profile, test.script)
			session := l.keeper()
			if err := l.cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			l.cmd.Wait()
			if status := exitStatus(l.cmd.ProcessState); status != test.status {
				t.Errorf("status %d, want %d; stderr:\n%s", status, test.status, &l.stderr)
			}
			l.wantNothingLeft(session, test.within)
		})
	}
}

func TestALauncherKilledDuringTheBootLeavesNothingBehind(t *testing.T) {
	needProfile(t, kernel.UML)
	l := &launched{t: t, tmp: t.TempDir()}
	r := &run{t: t, env: []string{"TMPDIR=" + l.tmp}, args: []string{"run", "--", "true"}}
	l.cmd = r.command(t.Context())
	l.cmd.Stderr = &l.stderr
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); len(l.files()) == 0 && time.Since(began) < patience; {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	session := l.keeper()
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	l.cmd.Wait()
	if status := exitStatus(l.cmd.ProcessState); status != 128+15 || !strings.Contains(l.stderr.String(), "ended by signal: terminated") {
		t.Errorf("status %d, stderr %q", status, &l.stderr)
	}
	l.wantNothingLeft(session, 0)
}

func TestAMachineWithoutLauncherAndKeeperEndsAndTheNextRunCleansUp(t *testing.T) {
	l := launch(t, kernel.UML, "echo runs; sleep 1000")
	session := l.keeper()
	// A keeper that is gone is no reason to live on for the machine either.
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(session, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.cmd.Wait()
	stale := l.files()
	if len(stale) == 0 {
		t.Fatal("the keeper was too fast: there is nothing to clean up")
	}
	tmp := l.tmp
	l.tmp = t.TempDir() // only the processes are of interest yet
	l.wantNothingLeft(session, 30*time.Second)

	(&run{t: t, env: []string{"TMPDIR=" + tmp}, args: []string{"run", "--", "true"}}).do().want(0, "")
	l.tmp = tmp
	if left := l.files(); len(left) > 0 {
		t.Errorf("after the next run there still is %v", left)
	}
}

func TestTwoLabsRunSideBySide(t *testing.T) {
	needProfile(t, kernel.UML)
	dir, tmp := t.TempDir(), t.TempDir()
	// Each waits for the other, in the directory that they share.
	const text = `
hostname $1 && ip addr add 10.9.1.1/24 dev eth0 && mkdir /tmp/same || exit 1
echo > $1
for i in $(seq 600); do test -e $2 && break; sleep 0.1; done
test -e $2 && ping -qc1 10.9.0.2 > /dev/null && hostname
`
	ends := make(chan *run)
	for _, names := range [][2]string{{"one", "two"}, {"two", "one"}} {
		go func() {
			r := &run{t: t, dir: dir, env: []string{"TMPDIR=" + tmp}, args: []string{"run", "--", "sh", "-c", text, "sh", names[0], names[1]}}
			cmd := r.command(t.Context())
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			cmd.Run()
			r.status, r.stdout, r.stderr = exitStatus(cmd.ProcessState), stdout.String(), stderr.String()
			ends <- r
		}()
	}
	for range 2 {
		r := <-ends
		if want := r.args[len(r.args)-2] + "\n"; r.status != 0 || r.stdout != want {
			t.Errorf("status %d, stdout %q; want 0 and %q; stderr:\n%s", r.status, r.stdout, want, r.stderr)
		}
	}
}
