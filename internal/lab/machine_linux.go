package lab

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/keeper"
	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// A monitor is the program that is the virtual machine: it differs by profile.
type monitor interface {
	// command is the machine for the job in dir, alone or the n-th of several. It finds its
	// console at descriptor 3, the lines, in the order of job.Lines, at 4 and up, and the
	// end of the wire between machines after them.
	command(c *Config, k kernel.Image, dir *jobDir, n int) (*exec.Cmd, error)
	// panicked tells whether a machine that ended with the status did
	// so because its kernel panicked.
	panicked(status int) bool
}

const (
	consoleFD = 3
	lineFD    = 4
	wireFD    = lineFD + int(job.NumLines)
)

func monitorOf(p kernel.Profile) monitor {
	if p == kernel.QEMU {
		return qemu{}
	}
	return uml{}
}

// A machine is a running virtual machine and the lines to it.
type machine struct {
	monitor monitor
	dir     *jobDir
	keeper  *keeper.Keeper
	started time.Time

	console  *console
	lines    [job.NumLines]*os.File
	messages chan job.Message // what comes on the control line; closed when it ends
	wire     *os.File         // to the other machine; nil if it is alone
}

// startMachine starts the machine for the job in dir, alone if n is 0, or the n-th of several.
func startMachine(c *Config, k kernel.Image, dir *jobDir, n int) (_ *machine, err error) {
	m := &machine{
		monitor: monitorOf(c.Profile), dir: dir, started: time.Now(),
		messages: make(chan job.Message),
	}
	cmd, err := m.monitor.command(c, k, dir, n)
	if err != nil {
		return nil, err
	}
	consoleIn, consoleOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	m.console = readConsole(consoleIn)
	cmd.Stderr = consoleOut
	cmd.ExtraFiles = []*os.File{consoleOut}
	// The machine's ends are of no use here once it has them.
	defer func() {
		for _, f := range cmd.ExtraFiles {
			f.Close()
		}
		if err != nil {
			m.closeLines()
		}
	}()
	for i := range m.lines {
		ours, theirs, err := socketPair()
		if err != nil {
			return nil, err
		}
		m.lines[i] = ours
		cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	}
	if n != 0 {
		ours, theirs, err := socketPair()
		if err != nil {
			return nil, err
		}
		m.wire = ours
		cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	}
	if m.keeper, err = keeper.Start(cmd, dir.path, dir.lock); err != nil {
		return nil, err
	}
	go m.receive()
	return m, nil
}

// socketPair is one line: a stream of bytes each way.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	// Our end goes to the runtime's poller, which gives it deadlines. What
	// theirs is to be is the machine's affair.
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		syscall.Close(fds[0])
		syscall.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "line"), os.NewFile(uintptr(fds[1]), "line"), nil
}

// receive reads the control line until it ends.
func (m *machine) receive() {
	defer close(m.messages)
	dec := json.NewDecoder(m.lines[job.Control])
	for {
		var msg job.Message
		if err := dec.Decode(&msg); err != nil {
			return
		}
		m.messages <- msg
	}
}

// send tells the guest something.
func (m *machine) send(msg job.Message) error {
	b, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	control := m.lines[job.Control]
	if err := control.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	_, err = control.Write(append(b, '\n'))
	return err
}

// stop kills the machine and waits until nothing is left of it.
func (m *machine) stop() error {
	m.keeper.Stop()
	m.closeLines()
	for range m.messages {
	}
	select {
	case <-m.keeper.Exited():
		return nil
	case <-time.After(killTimeout):
		return errors.New("the machine does not go away")
	}
}

// remove stops the machine and removes its files.
func (m *machine) remove() error { return errors.Join(m.stop(), m.dir.remove()) }

func (m *machine) closeLines() {
	for _, f := range append(m.lines[:], m.wire) {
		if f != nil {
			f.Close()
		}
	}
}

// failure is a lab without a result: why, and the end of the console.
func (m *machine) failure(reason string) *Failure {
	return &Failure{Status: ExitNoResult, Reason: reason, Console: m.console.tail()}
}

// poweredDown tells from the end of the console whether the kernel went down in order. On a busy host a
// User-Mode Linux may abort even so, when it is about to end.
func poweredDown(console []string) bool {
	return slices.ContainsFunc(console, func(line string) bool { return strings.Contains(line, "reboot: Power down") })
}

// lost is the failure of a machine whose control line ended before it had
// said that it was done.
func (m *machine) lost(started bool) error {
	select {
	case <-m.keeper.Exited():
	case <-time.After(killTimeout):
		return m.failure("the machine stopped talking")
	}
	// An init that could not begin leaves a result too.
	if r, err := m.dir.result(); err == nil && r.Error != "" {
		return notStarted(r)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m.failure(err.Error())
	}
	if !started {
		f := m.failure("the machine ended before the command started")
		f.early = true
		return f
	}
	f := m.failure("the machine ended without a result")
	if m.monitor.panicked(m.keeper.Status()) && !poweredDown(f.Console) {
		f.Status, f.Reason = ExitTainted, "the kernel panicked"
	}
	return f
}
