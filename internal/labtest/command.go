package labtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envCommand makes a test binary be the command that it tests.
const envCommand = "RDS_LABTEST_COMMAND"

// MainOf is [Main] for the tests of a command, whose function main is given.
// [Command] runs it.
func MainOf(m *testing.M, main func()) {
	if os.Getenv(envCommand) != "" {
		main()
		os.Exit(0)
	}
	Main(m)
}

// patience ends a command that hangs.
const patience = 2 * time.Minute

// Command is the command of [MainOf] with these arguments. It is killed if it does
// not end in time.
func Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), envCommand+"=1")
	return cmd
}

// A Process is a command that has not ended.
type Process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	began          time.Time
}

// StartOn starts a command on the lab's n-th host; 0 is where the test runs.
// Its stdout and stderr are kept for the Result unless it has its own.
func StartOn(t testing.TB, n int, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.stderr
	}
	p.began = time.Now()
	start := cmd.Start
	if n != 0 {
		start = func() error { return Host(t, n).Start(cmd) }
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// A Result is what a command left behind.
type Result struct {
	Stdout, Stderr string
	Status         int // -1 if a signal ended it
	Took           time.Duration
}

// killPatience is how long a killed command may take to end. One whose thread waits in
// the kernel for what never comes does not.
const killPatience = 10 * time.Second

// Finish waits for the command to end. It fails the test if it had to be killed.
func (p *Process) Finish(t testing.TB) Result {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(patience + killPatience):
		t.Fatalf("%q cannot be killed; its threads are at\n%s", p.Args[1:], stacks(p.Process.Pid))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", p.Args[1:], err)
	}
	r := Result{p.stdout.String(), p.stderr.String(), p.ProcessState.ExitCode(), time.Since(p.began)}
	if s, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGKILL {
		t.Fatalf("%q did not end in %v; stdout %q, stderr %q", p.Args[1:], patience, r.Stdout, r.Stderr)
	}
	return r
}

// stacks is where in the kernel the threads of a process are.
func stacks(pid int) string {
	var b strings.Builder
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stack", pid))
	for _, file := range files {
		stack, err := os.ReadFile(file)
		fmt.Fprintf(&b, "%s:\n%s", file, stack)
		if err != nil {
			fmt.Fprintln(&b, err)
		}
	}
	return b.String()
}

// RunOn runs the command of [MainOf] on the lab's n-th host; 0 is where the test runs.
func RunOn(t testing.TB, n int, args ...string) Result {
	t.Helper()
	return StartOn(t, n, Command(t, args...)).Finish(t)
}

// Lines are the lines of stdout.
func (r Result) Lines() []string {
	return strings.Split(strings.TrimSuffix(r.Stdout, "\n"), "\n")
}
