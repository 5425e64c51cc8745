package guest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
	"golang.org/x/sys/unix"
)

// execute runs the job's command and fills in the result.
func execute(j *job.Job, l *lines, result *job.Result) *job.Done {
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
	c, err := start(j)
	if err != nil {
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
	copied.Go(func() { done.Stderr = c.stderr.copyTo(l.files[job.Stderr]) })
	state := c.wait()
	c.stdout.end()
	c.stderr.end()
	copied.Wait()

	if state.Signaled() {
		result.Signal = int(state.Signal())
	} else {
		result.ExitCode = state.ExitStatus()
	}
	if result.TaintAfter, err = taint(); err != nil {
		return fail(err)
	}
	if result.TaintAfter != result.TaintBefore {
		result.KernelLog = newLines(log, kernelLog())
	}
	return done
}

type command struct {
	pid            int
	stdin          *os.File // nil if the command reads the null device
	stdout, stderr *output
}

// start starts the command in its namespace. Its process leads a process group
// of its own, to which signals are sent.
func start(j *job.Job) (*command, error) {
	c := new(command)
	// LookPath looks in this process's PATH.
	for _, kv := range j.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			os.Setenv("PATH", v)
		}
	}
	if err := os.Chdir(j.Dir); err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	path, err := exec.LookPath(j.Args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, fmt.Errorf("cannot run %q: %w", j.Args[0], reason(err))
	}
	var childStdin *os.File
	if j.Stdin {
		childStdin, c.stdin, err = os.Pipe()
	} else {
		childStdin, err = os.Open(os.DevNull)
	}
	if err != nil {
		return nil, err
	}
	defer childStdin.Close()
	var childOut, childErr *os.File
	if c.stdout, childOut, err = newOutput(); err != nil {
		return nil, err
	}
	defer childOut.Close()
	if c.stderr, childErr, err = newOutput(); err != nil {
		return nil, err
	}
	defer childErr.Close()

	attr := &os.ProcAttr{
		Dir:   j.Dir,
		Env:   j.Env,
		Files: []*os.File{childStdin, childOut, childErr},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	var p *os.Process
	spawn := func() error {
		var err error
		p, err = os.StartProcess(path, j.Args, attr)
		return err
	}
	if j.On == job.InitialNamespace {
		err = spawn()
	} else {
		err = inNamespaceOf(j.On, spawn)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot run %q: %w", j.Args[0], reason(err))
	}
	c.pid = p.Pid
	return c, p.Release()
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

// wait collects children, orphans too, as process 1 must, until the command
// has ended.
func (c *command) wait() syscall.WaitStatus {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == nil && pid == c.pid {
			return ws
		}
	}
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
	r *os.File
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
func (o *output) end() { o.r.SetReadDeadline(time.Unix(1, 0)) }

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
