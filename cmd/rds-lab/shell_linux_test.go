package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/lab/kernel"
	"github.com/rdskit/rdskit/internal/lab/pty"
	"golang.org/x/term"
)

// A console is a terminal with rds-lab shell on it.
type console struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	cmd    *exec.Cmd
	before *term.State

	mu   sync.Mutex
	text bytes.Buffer
}

// openConsole starts rds-lab shell and waits for what it says when it has begun.
func openConsole(t *testing.T, args ...string) *console {
	t.Helper()
	c := &console{t: t}
	var err error
	if c.master, c.slave, err = pty.Open(); err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { c.master.Close(); c.slave.Close() })
	c.resize(30, 100)
	if c.before, err = term.GetState(int(c.slave.Fd())); err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.CommandContext(t.Context(), program, append([]string{"shell"}, args...)...)
	c.cmd.Dir = t.TempDir()
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = c.slave, c.slave, c.slave
	c.cmd.Env = append(os.Environ(), "SHELL=/bin/sh", "PS1=ready> ", "ENV=", "HISTFILE=")
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.cmd.Process.Kill() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := c.master.Read(buf)
			if err != nil {
				return
			}
			c.mu.Lock()
			c.text.Write(buf[:n])
			c.mu.Unlock()
		}
	}()
	c.expect("ready> ")
	return c
}

func (c *console) resize(rows, columns uint16) {
	c.t.Helper()
	if err := pty.Resize(c.master, rows, columns); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) typeIn(s string) {
	c.t.Helper()
	if _, err := c.master.WriteString(s); err != nil {
		c.t.Fatal(err)
	}
}

// expect waits for a text, and forgets all up to it.
func (c *console) expect(want string) {
	c.t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		c.mu.Lock()
		i := bytes.Index(c.text.Bytes(), []byte(want))
		if i >= 0 {
			c.text.Next(i + len(want))
		}
		c.mu.Unlock()
		if i >= 0 {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.Fatalf("no %q on the terminal, only %q", want, c.text.String())
}

// end waits for the end of rds-lab, and looks at the terminal.
func (c *console) end(status int) {
	c.t.Helper()
	defer time.AfterFunc(patience, func() { c.cmd.Process.Kill() }).Stop()
	c.cmd.Wait()
	if got := exitStatus(c.cmd.ProcessState); got != status {
		c.t.Errorf("rds-lab ended with status %d, want %d; the terminal: %q", got, status, c.text.String())
	}
	after, err := term.GetState(int(c.slave.Fd()))
	if err != nil {
		c.t.Fatal(err)
	}
	if *after != *c.before {
		c.t.Errorf("the terminal is in the state %+v, and was in %+v", after, c.before)
	}
}

// run types a command, and waits for its echo.
func (c *console) run(command string) {
	c.t.Helper()
	c.typeIn(command + "\n")
	c.expect(command + "\r\n")
}

func testShell(t *testing.T, address string, args ...string) {
	c := openConsole(t, args...)
	c.run("echo $((6*7)); tty; stty size")
	c.expect("42\r\n/dev/pts/0\r\n30 100\r\nready> ")
	c.run("ip -o -4 addr show scope global")
	c.expect(address)
	c.expect("ready> ")
	c.resize(50, 132)
	c.run("sleep 0.5; stty size")
	c.expect("50 132\r\nready> ")
	// Ctrl-C ends the program, and not the shell.
	c.run("echo begun; sleep 1000")
	c.expect("begun\r\n")
	time.Sleep(300 * time.Millisecond) // until it sleeps
	c.typeIn("\x03")
	c.expect("ready> ")
	c.run("echo status $?")
	c.expect("status 130\r\nready> ")
	c.run("exit 6")
	c.end(6)
}

func TestAShellOnAHostOfUserModeLinux(t *testing.T) {
	needProfile(t, kernel.UML)
	needPrograms(t, "ip", "stty")
	testShell(t, "10.9.0.2", "--on", "h2")
}

func TestAShellOnAHostOfQEMU(t *testing.T) {
	needQEMU(t)
	needPrograms(t, "ip", "stty")
	testShell(t, "10.9.0.1", "--profile", "qemu")
}

func TestTheTerminalIsRestoredAfterASignal(t *testing.T) {
	needProfile(t, kernel.UML)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if sig == syscall.SIGHUP {
				long(t)
			}
			c := openConsole(t)
			if err := c.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			c.end(128 + int(syscall.SIGHUP))
		})
	}
}

func TestAProgramOnTheTerminalSeesItsBytes(t *testing.T) {
	needProfile(t, kernel.UML)
	long(t)
	c := openConsole(t, "--", "sh", "-c", `stty raw -echo; printf 'ready> '; head -c 4 | od -An -tx1; printf 'end\n'; exit 3`)
	c.typeIn("\x03\x04\x1a\x00")
	c.expect("03 04 1a 00")
	c.expect("end\n")
	c.end(3)
}

func TestAShellNeedsATerminal(t *testing.T) {
	r := rdsLab(t, "shell").want(2, "").wantStderr("not a terminal", "rds-lab run")
	if strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("stderr is %q, want one line", r.stderr)
	}
}
