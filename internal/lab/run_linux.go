package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/keeper"
)

// Bounds of what a machine may take.
const (
	bootTimeout = 60 * time.Second
	ackTimeout  = 3 * time.Second // to deliver a signal
	endTimeout  = 5 * time.Second // of a command that was told to end
	exitTimeout = 5 * time.Second // of a machine that was killed
)

// Run boots a machine, runs the command in it and takes the machine down. The
// error is a [*Failure], or says what is wrong with the configuration.
func Run(ctx context.Context, c *Config) (*Report, error) {
	kernel, err := findUML()
	if err != nil {
		return nil, err
	}
	dir, err := makeJobDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := writeJob(c, kernel, dir); err != nil {
		return nil, err
	}
	m, err := startMachine(c, kernel, dir)
	if err != nil {
		return nil, err
	}
	defer m.stop()
	return m.run(ctx, c)
}

// makeJobDir makes the private directory of one run. Its path goes on the
// kernel's command line.
func makeJobDir() (string, error) {
	dir, err := os.MkdirTemp("", "rds-lab-")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

func writeJob(c *Config, k kernelImage, dir string) error {
	if err := copyFile(filepath.Join(dir, "init"), "/proc/self/exe", 0o700); err != nil {
		return fmt.Errorf("copy init: %w", err)
	}
	j := &job.Job{
		Profile: string(c.Profile),
		Args:    c.Args, Dir: c.Dir,
		Env:   append(c.Env, job.EnvLab+"="+string(c.Profile), fmt.Sprintf("%s=%d", job.EnvHosts, c.Hosts), job.EnvPromise+"=rds,tcp,ipv6,netem,root"),
		Hosts: c.Hosts, On: c.On, Netem: c.Netem,
		Modules:    append([]string{"ipv6", "veth", "bridge", "sch_netem", "rds", "rds_tcp"}, c.Modules...),
		ModuleTree: k.Modules,
		Sysctls:    c.Sysctls,
		Writable:   c.Writable,
		Stdin:      c.Stdin != nil,
	}
	return j.Write(dir)
}

func copyFile(to, from string, perm os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// A machine is a running virtual machine and the lines to it.
type machine struct {
	dir     string
	kernel  kernelImage
	keeper  *exec.Cmd
	life    io.Closer // closing it kills the machine
	started time.Time

	console                        *console
	control, stdin, stdout, stderr *os.File
	messages                       chan job.Message // closed when the line is
	exited                         chan struct{}    // closed when the machine is gone
}

func startMachine(c *Config, k kernelImage, dir string) (*machine, error) {
	m := &machine{
		dir: dir, kernel: k, started: time.Now(),
		messages: make(chan job.Message), exited: make(chan struct{}),
	}
	consoleIn, consoleOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	theirs := []*os.File{consoleOut}
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	for _, f := range []**os.File{&m.control, &m.stdin, &m.stdout, &m.stderr} {
		var their *os.File
		if *f, their, err = socketPair(); err != nil {
			return nil, err
		}
		theirs = append(theirs, their)
	}
	cmd := umlCommand(k, c, dir, "/dev/shm")
	cmd.ExtraFiles = theirs
	cmd.Stderr = consoleOut
	m.keeper = keeper.Command(cmd, dir)
	if m.life, err = m.keeper.StdinPipe(); err != nil {
		return nil, err
	}
	if err := m.keeper.Start(); err != nil {
		return nil, err
	}
	m.console = readConsole(consoleIn)
	go func() {
		m.keeper.Wait()
		close(m.exited)
	}()
	go m.receive()
	return m, nil
}

// socketPair is one line: a two-way stream of bytes.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "line"), os.NewFile(uintptr(fds[1]), "line"), nil
}

// receive reads the control line until it ends.
func (m *machine) receive() {
	defer close(m.messages)
	dec := json.NewDecoder(m.control)
	for {
		var msg job.Message
		if err := dec.Decode(&msg); err != nil {
			return
		}
		m.messages <- msg
	}
}

func (m *machine) send(msg job.Message) error {
	b, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	m.control.SetWriteDeadline(time.Now().Add(ackTimeout))
	_, err = m.control.Write(append(b, '\n'))
	return err
}

// stop kills the machine and waits until nothing is left of it.
func (m *machine) stop() {
	m.life.Close()
	select {
	case <-m.exited:
	case <-time.After(exitTimeout):
	}
	for _, f := range []*os.File{m.control, m.stdin, m.stdout, m.stderr} {
		f.Close()
	}
	for range m.messages {
	}
}

func (m *machine) run(ctx context.Context, c *Config) (*Report, error) {
	var copied sync.WaitGroup
	stdout, stderr := newStream(m.stdout, c.Stdout), newStream(m.stderr, c.Stderr)
	copied.Go(stdout.copy)
	copied.Go(stderr.copy)

	report := &Report{Kernel: m.kernel.Release}
	var done *job.Done
	limit := time.After(bootTimeout)
	timeoutReason := fmt.Sprintf("the command did not start within %s", bootTimeout)
	timeoutStatus := ExitNoResult
	var ack <-chan time.Time
	signals, acks := 0, 0
loop:
	for done == nil {
		select {
		case msg, ok := <-m.messages:
			switch {
			case !ok:
				break loop
			case msg.Started:
				report.Boot = time.Since(m.started)
				limit = nil
				if c.Timeout > 0 {
					limit = time.After(c.Timeout)
					timeoutStatus, timeoutReason = ExitTimeout, fmt.Sprintf("the command did not end within %s", c.Timeout)
				}
				if c.Stdin != nil {
					go m.feed(c.Stdin)
				}
			case msg.Ack > 0:
				if acks = msg.Ack; acks == signals {
					ack = nil
				}
			case msg.Done != nil:
				done = msg.Done
			}
		case sig := <-c.Signals:
			s, _ := sig.(syscall.Signal)
			if report.Boot == 0 {
				return report, &Failure{Status: 128 + int(s), Reason: s.String()}
			}
			signals++
			if err := m.send(job.Message{Signal: int(s)}); err != nil {
				return report, m.failure("the machine takes no signal: " + err.Error())
			}
			ack = time.After(ackTimeout)
		case <-ack:
			return report, m.failure("the machine does not answer")
		case <-limit:
			f := m.failure(timeoutReason)
			f.Status = timeoutStatus
			return report, f
		case <-ctx.Done():
			return report, context.Cause(ctx)
		}
	}
	if done == nil {
		select {
		case <-m.exited:
		case <-time.After(exitTimeout):
		}
		return report, m.failure("the machine ended without a result")
	}
	stdout.expect(done.Stdout)
	stderr.expect(done.Stderr)
	copied.Wait()
	m.send(job.Message{Bye: true})
	return m.judge(report)
}

// judge reads the result.
func (m *machine) judge(report *Report) (*Report, error) {
	r, err := job.ReadResult(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return report, m.failure("the machine ended without a result")
	}
	if err != nil {
		return report, m.failure(err.Error())
	}
	switch {
	case r.NotFound:
		return report, &Failure{Status: ExitNotFound, Reason: r.Error}
	case r.Error != "":
		return report, m.failure(r.Error)
	}
	report.Status = r.Status()
	if r.TaintAfter != r.TaintBefore {
		return report, &Failure{
			Status:  ExitTainted,
			Reason:  fmt.Sprintf("the kernel is tainted: %#x before the command, %#x after it, which ended with status %d", r.TaintBefore, r.TaintAfter, r.Status()),
			Console: r.KernelLog,
		}
	}
	return report, nil
}

// failure is a lab without a result, with the end of the console.
func (m *machine) failure(reason string) *Failure {
	return &Failure{Status: ExitNoResult, Reason: reason, Console: m.console.tail()}
}

// feed copies stdin to the command.
func (m *machine) feed(stdin io.Reader) {
	n, err := io.Copy(struct{ io.Writer }{m.stdin}, stdin)
	if err == nil || n >= 0 {
		m.send(job.Message{StdinEOF: &n})
	}
}

// A stream copies one of the command's outputs.
type stream struct {
	from *os.File
	to   io.Writer

	mu    sync.Mutex
	n     int64
	total int64
	known bool
}

func newStream(from *os.File, to io.Writer) *stream { return &stream{from: from, to: to} }

// copy copies until all that [stream.expect] announced has come.
func (s *stream) copy() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.from.Read(buf)
		if n > 0 {
			s.to.Write(buf[:n])
		}
		s.mu.Lock()
		s.n += int64(n)
		complete := s.known && s.n >= s.total
		known := s.known
		s.mu.Unlock()
		if complete || err != nil && !(errors.Is(err, os.ErrDeadlineExceeded) && known) {
			return
		}
	}
}

// expect tells how many bytes come in all.
func (s *stream) expect(total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total, s.known = total, true
	if s.n >= total {
		s.from.SetReadDeadline(time.Unix(1, 0)) // wake copy
	}
}

// A console keeps the end of what the machine's kernel says.
type console struct {
	mu    sync.Mutex
	lines []string
	eof   chan struct{}
}

func readConsole(r io.ReadCloser) *console {
	c := &console{eof: make(chan struct{})}
	go func() {
		defer close(c.eof)
		defer r.Close()
		s := bufio.NewScanner(r)
		for s.Scan() {
			c.mu.Lock()
			c.lines = append(c.lines[max(0, len(c.lines)-100):], s.Text())
			c.mu.Unlock()
		}
	}()
	return c
}

func (c *console) tail() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.lines[max(0, len(c.lines)-40):]...)
}

type kernelImage struct {
	Image   string
	Modules string
	Release string
}

func findUML() (kernelImage, error) {
	image, err := exec.LookPath("linux.uml")
	if err != nil {
		return kernelImage{}, fmt.Errorf("no User-Mode Linux found (%w): run 'rds-lab setup'", err)
	}
	trees, err := filepath.Glob("/usr/lib/uml/modules/*")
	if err != nil || len(trees) == 0 {
		return kernelImage{}, errors.New("no modules")
	}
	t := trees[len(trees)-1]
	return kernelImage{image, t, filepath.Base(t)}, nil
}
