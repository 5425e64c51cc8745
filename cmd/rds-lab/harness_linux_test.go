package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// program is the rds-lab under test: built as users build it, since the test
// binary itself may be linked to the C library or to the race detector, neither
// of which is an init for every kernel.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rds-lab.test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Ordinary users, too, run it.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	program = filepath.Join(dir, "rds-lab")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build rds-lab:", err)
		return 1
	}
	return m.Run()
}

// needProfile skips the test on a machine that has no kernel for the profile.
func needProfile(t *testing.T, p kernel.Profile) {
	t.Helper()
	_, err := kernel.Find(p, "", kernel.Roots()...)
	if err == nil && p == kernel.QEMU {
		_, err = kernel.FindQEMU(kernel.Roots()...)
	}
	if err != nil {
		t.Skipf("%v: 'rds-lab setup --profile %s' gets what is missing", err, p)
	}
}

// long skips a test in quick runs. Each machine takes a second or two of a
// processor to boot: a quick run boots one of each kind.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("left to the long runs")
	}
}

// A run is one rds-lab and how it ended.
type run struct {
	t      *testing.T
	args   []string
	dir    string // working directory; "" is a scratch directory
	env    []string
	stdin  io.Reader
	cred   *syscall.Credential
	status int
	stdout string
	stderr string
}

// nobody is the user that owns nothing, as Debian has it.
var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// patience is how long a lab may take: on a busy machine a multiple of what it
// takes otherwise.
const patience = 3 * time.Minute

func (r *run) command(ctx context.Context) *exec.Cmd {
	r.t.Helper()
	if r.dir == "" {
		r.dir = r.t.TempDir()
	}
	cmd := exec.CommandContext(ctx, program, r.args...)
	cmd.Dir, cmd.Stdin = r.dir, r.stdin
	cmd.Env = append(append(os.Environ(), "PWD="+r.dir), r.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: r.cred}
	return cmd
}

// do runs it to its end.
func (r *run) do() *run {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := r.command(ctx)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		r.t.Fatalf("rds-lab %q: %v\nstderr: %s", r.args, errors.Join(err, ctx.Err()), &stderr)
	}
	r.status = exitStatus(cmd.ProcessState)
	r.stdout, r.stderr = stdout.String(), stderr.String()
	return r
}

// exitStatus is the status as the shell has it.
func exitStatus(s *os.ProcessState) int {
	if ws := s.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

// want checks how it ended.
func (r *run) want(status int, stdout string) *run {
	r.t.Helper()
	if r.status != status || r.stdout != stdout {
		r.t.Fatalf("rds-lab %q: status %d, stdout %.2000q; want %d and %.2000q\nstderr: %s", r.args, r.status, r.stdout, status, stdout, r.stderr)
	}
	return r
}

// wantStderr checks that stderr has each of the texts.
func (r *run) wantStderr(texts ...string) *run {
	r.t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			r.t.Errorf("rds-lab %q: no %q on stderr:\n%s", r.args, text, r.stderr)
		}
	}
	return r
}

// rdsLab runs rds-lab on User-Mode Linux. The first argument is the command.
func rdsLab(t *testing.T, args ...string) *run {
	t.Helper()
	needProfile(t, kernel.UML)
	return (&run{t: t, args: args}).do()
}

// script runs a shell script on h1, after options for rds-lab run.
func script(t *testing.T, text string, options ...string) *run {
	t.Helper()
	return rdsLab(t, append(append([]string{"run"}, options...), "--", "sh", "-c", text)...)
}
