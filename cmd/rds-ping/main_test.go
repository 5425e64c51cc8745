package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
)

// envCommand makes the test binary be rds-ping itself.
const envCommand = "RDS_PING_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(envCommand) != "" {
		main()
	}
	labtest.Main(m)
}

// A result is what a run of the command left behind.
type result struct {
	stdout, stderr string
	status         int // -1 if a signal ended it
	took           time.Duration
}

// commandTimeout ends a run that hangs.
const commandTimeout = 60 * time.Second

// command is rds-ping with these arguments.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), envCommand+"=1")
	return cmd
}

// runOn runs rds-ping on the lab's n-th host; 0 is where the test runs.
func runOn(t *testing.T, n int, args ...string) result {
	t.Helper()
	return finish(t, start(t, n, command(t, args...)))
}

// A process is a run that has not ended.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	began          time.Time
}

func start(t *testing.T, n int, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.stdout
	}
	cmd.Stderr = &p.stderr
	p.began = time.Now()
	err := error(nil)
	if n == 0 {
		err = cmd.Start()
	} else {
		err = labtest.Host(t, n).Start(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func finish(t *testing.T, p *process) result {
	t.Helper()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", p.Args[1:], err)
	}
	r := result{p.stdout.String(), p.stderr.String(), p.ProcessState.ExitCode(), time.Since(p.began)}
	if s, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGKILL {
		t.Fatalf("%q did not end in %v; stdout %q, stderr %q", p.Args[1:], commandTimeout, r.stdout, r.stderr)
	}
	return r
}

func (r result) lines() []string {
	return strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
}
