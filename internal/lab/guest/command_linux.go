package guest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
	"golang.org/x/sys/unix"
)

// execute runs the job's command and fills in the result.
func execute(j *job.Job, l *lines, children *reaper, result *job.Result) *job.Done {
	done := new(job.Done)
	fail := func(err error) *job.Done {
		result.Error = err.Error()
		return done
	}
	var err error
	if result.TaintBefore, err = taint(); err != nil {
		return fail(err)
	}
	log := kernelLog()
	if j.Idle {
		if err := l.send(job.Message{Started: true}); err != nil {
			return fail(err)
		}
		<-l.stop
		if err := compareTaint(result, log); err != nil {
			return fail(err)
		}
		return done
	}
	c, p := new(command), &process{args: j.Args, dir: j.Dir, env: j.Env, on: j.On}
	start := func() error { return c.start(p, j.Stdin, children) }
	if j.Terminal != nil {
		start = func() error { return c.startOnTerminal(p, *j.Terminal, l.resized, children) }
	}
	if err := start(); err != nil {
		result.NotFound = true
		return fail(err)
	}
	if err := l.send(job.Message{Started: true}); err != nil {
		return fail(err)
	}
	go c.obey(l)
	if c.stdin != nil {
		go c.feed(l)
	}

	var copied sync.WaitGroup
	copied.Go(func() { done.Stdout = c.stdout.copyTo(l.files[job.Stdout]) })
	if c.stderr != nil {
		copied.Go(func() { done.Stderr = c.stderr.copyTo(l.files[job.Stderr]) })
	}
	state := <-c.ended
	c.stdout.end()
	if c.stderr != nil {
		c.stderr.end()
	}
	copied.Wait()

	if state.Signaled() {
		result.Signal = int(state.Signal())
	} else {
		result.ExitCode = state.ExitStatus()
	}
	if err := compareTaint(result, log); err != nil {
		return fail(err)
	}
	return done
}

// compareTaint fills in the kernel's taint, and what it logged meanwhile if that changed.
func compareTaint(result *job.Result, log string) (err error) {
	result.TaintAfter, err = taint()
	if err == nil && result.TaintAfter != result.TaintBefore {
		result.KernelLog = newLines(log, kernelLog())
	}
	return err
}

type command struct {
	pid            int
	ended          <-chan syscall.WaitStatus
	stdin          *os.File // nil if the command reads the null device
	stdout, stderr *output  // no stderr on a terminal
}

// start starts the process with pipes for its streams, or with the null device for stdin.
func (c *command) start(p *process, stdin bool, children *reaper) error {
	var childStdin, childOut, childErr *os.File
	var err error
	if stdin {
		childStdin, c.stdin, err = os.Pipe()
	} else {
		childStdin, err = os.Open(os.DevNull)
	}
	if err != nil {
		return err
	}
	defer childStdin.Close()
	if c.stdout, childOut, err = newOutput(); err != nil {
		return err
	}
	defer childOut.Close()
	if c.stderr, childErr, err = newOutput(); err != nil {
		return err
	}
	defer childErr.Close()
	p.files = []*os.File{childStdin, childOut, childErr}
	c.pid, c.ended, err = children.start(p)
	return err
}

// reason is what the errors of os and os/exec say beside the name of the
// command.
func reason(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err
}

// inNamespaceOf runs f as ip-netns(8) exec runs a command: in the host's
// network namespace, with a /sys that shows the host's devices.
func inNamespaceOf(name string, f func() error) error {
	h, err := hosts.Parse(name)
	if err != nil {
		return err
	}
	errc := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: there is no way back from other mounts
		errc <- func() error {
			if err := h.Enter(); err != nil {
				return err
			}
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return fmt.Errorf("unshare mounts: %w", err)
			}
			if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
				return fmt.Errorf("make mounts slaves: %w", err)
			}
			if err := unix.Unmount("/sys", unix.MNT_DETACH); err != nil {
				return fmt.Errorf("unmount /sys: %w", err)
			}
			if err := unix.Mount(name, "/sys", "sysfs", 0, ""); err != nil {
				return fmt.Errorf("mount /sys: %w", err)
			}
			return f()
		}()
	}()
	return <-errc
}

// obey sends the signals that the launcher passes on to the command's process
// group, as a terminal does.
func (c *command) obey(l *lines) {
	acks := 0
	for sig := range l.signals {
		syscall.Kill(-c.pid, sig)
		acks++
		l.send(job.Message{Ack: acks})
	}
}

// feed copies the stdin line to the command until the launcher has said
// how many bytes there are and all of them came, or nobody reads any more.
func (c *command) feed(l *lines) {
	defer c.stdin.Close()
	data := make(chan []byte)
	go func() {
		defer close(data)
		for {
			b := make([]byte, 32<<10)
			n, err := l.files[job.Stdin].Read(b)
			if err != nil {
				return
			}
			data <- b[:n]
		}
	}()
	// What nobody reads any more is still taken off the line.
	var werr error
	for n, total := int64(0), int64(-1); n != total; {
		select {
		case total = <-l.stdinEOF:
		case b, ok := <-data:
			if !ok {
				return
			}
			n += int64(len(b))
			if werr == nil {
				_, werr = c.stdin.Write(b)
			}
		}
	}
}

// An output is the pipe that the command writes to.
type output struct {
	r     *os.File
	grace time.Duration // for what was written and is still on its way
}

func newOutput() (*output, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &output{r: r}, w, nil
}

// copyTo copies the pipe to the line until every writer has closed it or end
// was called, and tells how many bytes it wrote.
func (o *output) copyTo(line io.Writer) int64 {
	var n int64
	buf := make([]byte, 64<<10)
	for {
		nr, err := o.r.Read(buf)
		if nr > 0 {
			nw, werr := line.Write(buf[:nr])
			n += int64(nw)
			if werr != nil {
				console("copy output: %v", werr)
				return n
			}
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return n + o.drain(line, buf)
		case err != nil:
			return n
		}
	}
}

// end makes copyTo return as soon as it has what the command wrote before it
// ended, even if a process that it left behind holds the pipe open.
func (o *output) end() { o.r.SetReadDeadline(time.Now().Add(o.grace)) }

// drain copies what is in the pipe at this moment. The deadline has
// passed, so that only the bare system call still reads.
func (o *output) drain(line io.Writer, buf []byte) (n int64) {
	conn, err := o.r.SyscallConn()
	if err != nil {
		return 0
	}
	conn.Control(func(fd uintptr) {
		left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		for err == nil && left > 0 {
			var nr, nw int
			nr, err = unix.Read(int(fd), buf[:min(left, len(buf))])
			if err != nil || nr == 0 {
				return
			}
			nw, err = line.Write(buf[:nr])
			left -= nr
			n += int64(nw)
		}
	})
	return n
}
