package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/rdskit/rdskit/internal/lab/pty"
	"github.com/rdskit/rdskit/internal/labtest"
)

// A watching is rds-info watch on a terminal.
type watching struct {
	*labtest.Process
	t             *testing.T
	master, slave *os.File
	before        term.State

	mu   sync.Mutex
	text bytes.Buffer
}

// The control sequences that take a terminal and give it back, as the terminal sees them.
const (
	taken     = "\x1b[?1049h\x1b[?25l"
	givenBack = "\x1b[?25h\x1b[?1049l"
)

// watchOn starts it, and waits for a screen.
func watchOn(t *testing.T, rows, columns uint16, args ...string) *watching {
	t.Helper()
	w := &watching{t: t}
	var err error
	if w.master, w.slave, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.master.Close(); w.slave.Close() })
	w.resize(rows, columns)
	w.before = w.state()
	cmd := labtest.Command(t, append([]string{"watch"}, args...)...)
	cmd.Stdin, cmd.Stdout = w.slave, w.slave
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	w.Process = labtest.StartOn(t, 0, cmd)
	t.Cleanup(func() { cmd.Process.Kill() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := w.master.Read(buf)
			if err != nil {
				return
			}
			w.mu.Lock()
			w.text.Write(buf[:n])
			w.mu.Unlock()
		}
	}()
	w.expect(taken)
	return w
}

func (w *watching) resize(rows, columns uint16) {
	w.t.Helper()
	if err := pty.Resize(w.master, rows, columns); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watching) state() term.State {
	w.t.Helper()
	s, err := term.GetState(int(w.slave.Fd()))
	if err != nil {
		w.t.Fatal(err)
	}
	return *s
}

func (w *watching) typeIn(keys string) {
	w.t.Helper()
	if _, err := w.master.WriteString(keys); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watching) signal(s os.Signal) {
	w.t.Helper()
	if err := w.Cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// until waits for something to be so.
func (w *watching) until(what string, is func() bool) {
	w.t.Helper()
	for began := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.t.Fatalf("no %s; the rest of what the terminal got is %q", what, w.text.String())
		}
	}
}

// expect waits for a text, and forgets all up to it.
func (w *watching) expect(want string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%q", want), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		i := bytes.Index(w.text.Bytes(), []byte(want))
		if i >= 0 {
			w.text.Next(i + len(want))
		}
		return i >= 0
	})
}

// stopped waits until the process is.
func (w *watching) stopped() {
	w.t.Helper()
	w.until("stop", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Cmd.Process.Pid))
		if err != nil {
			w.t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(rest, "T")
	})
}

// asItWas fails the test if the terminal is not.
func (w *watching) asItWas() {
	w.t.Helper()
	w.expect(givenBack)
	w.mu.Lock()
	if rest := w.text.String(); rest != "" {
		w.t.Errorf("the terminal got %q afterwards", rest)
	}
	w.mu.Unlock()
	if after := w.state(); after != w.before {
		w.t.Errorf("the terminal is in the state %+v, and was in %+v", after, w.before)
	}
}

func TestWatchEndsAndLeavesTheTerminalAsItWas(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	for _, tt := range []struct {
		name   string
		end    func(w *watching)
		status int
	}{
		{"by the key q", func(w *watching) { w.typeIn("xq") }, 0},
		{"by Ctrl-C", func(w *watching) { w.typeIn("\x03") }, 0},
		{"by SIGTERM", func(w *watching) { w.signal(syscall.SIGTERM) }, 0},
		{"by SIGHUP", func(w *watching) { w.signal(syscall.SIGHUP) }, -1},
		{"by the key q, after Ctrl-Z and fg", func(w *watching) {
			w.typeIn("\x1a")
			w.stopped()
			w.asItWas()
			w.signal(syscall.SIGCONT)
			w.expect(taken)
			w.expect("rds-info watch")
			// After SIGSTOP the terminal is in the hands of the shell, which does not know what to give back.
			w.signal(syscall.SIGSTOP)
			w.stopped()
			if err := term.Restore(int(w.slave.Fd()), &w.before); err != nil {
				w.t.Fatal(err)
			}
			w.signal(syscall.SIGCONT)
			w.expect("rds-info watch")
			w.typeIn("q")
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := watchOn(t, 24, 80, "3600")
			if w.state() == w.before {
				t.Error("the terminal keeps what is typed until the end of a line")
			}
			w.expect("rds-info watch")
			tt.end(w)
			if r := w.Finish(t); r.Status != tt.status || r.Stderr != "" {
				t.Errorf("%+v, want status %d", r, tt.status)
			}
			w.asItWas()
		})
	}
}

func TestWatchFitsItsTerminal(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	w := watchOn(t, 1, 1, "3600")
	w.expect("\x1b[H.\x1b[K\x1b[J") // the first character of "... 9 more lines"
	w.resize(24, 80)
	w.expect("\x1b[Hrds-info watch  ")
	w.expect("LocalAddr")
	w.resize(2, 8)
	w.expect("\x1b[Hrds-info\x1b[K\r\n... ")
	w.typeIn("q")
	w.Finish(t)
	w.asItWas()
}
