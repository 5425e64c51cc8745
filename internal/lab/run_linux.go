package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// Bounds of what a machine may take. A PC without hardware to help it needs
// some seconds to boot, on a busy machine a multiple of that.
const (
	bootTimeout   = 2 * time.Minute
	answerTimeout = 5 * time.Second // to deliver a signal
	endTimeout    = 5 * time.Second // of a command that was told to end
	killTimeout   = 5 * time.Second // of a machine that was killed
)

// bootTries is how many machines are started if each ends by itself before it takes the command.
// On a busy host QEMU without KVM sometimes runs what another processor of the machine has just
// written over. The kernel patches its own code, while it boots above all, meets a breakpoint that it has
// removed, and panics ("Oops: int3", arch/x86/kernel/alternative.c:text_poke_bp_batch).
const bootTries = 3

// Run boots the machines, runs the command in one of them and takes them down. Nothing
// is left of them when Run returns. The error is a [*ConfigError] if no machine
// could do what c asks for, a [*Failure] if the machine was started; any other
// says what this host lacks.
func Run(ctx context.Context, c *Config) (*Report, error) {
	if err := c.check(); err != nil {
		return nil, &ConfigError{err}
	}
	image := c.Kernel
	if image.Path == "" {
		var err error
		if image, err = kernel.Find(c.Profile, c.KernelVersion, kernel.Roots()...); err != nil {
			return nil, fmt.Errorf("%w: '%s' gets one", err, setupCommand(c))
		}
	}
	for try := 1; ; try++ {
		report, err := runOnce(ctx, c, image)
		if f, ok := errors.AsType[*Failure](err); !ok || !f.early || try == bootTries {
			return report, err
		}
	}
}

// runOnce is Run with the machines that it boots.
func runOnce(ctx context.Context, c *Config, image kernel.Image) (_ *Report, err error) {
	report := &Report{Kernel: image}
	s := &session{config: c, report: report}
	own, err := boot(c, image, c.primary())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, own.remove()) }()
	s.machine = own
	if c.Machines > 1 {
		s.group = newGroup(c, image, own)
		defer func() { err = errors.Join(err, s.group.stop()) }()
		if err := s.group.bootOthers(); err != nil {
			return nil, err
		}
	}
	return report, s.run(ctx)
}

// boot starts machine n, with a job directory of its own.
func boot(c *Config, k kernel.Image, n int) (_ *machine, err error) {
	dir, err := newJobDir()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.remove())
		}
	}()
	j, err := c.job(k, n)
	if err != nil {
		return nil, err
	}
	if err := j.Write(dir.path); err != nil {
		return nil, fmt.Errorf("job directory: %w", err)
	}
	return startMachine(c, k, dir, n)
}

// setupCommand is the command that gets the kernel which c asks for.
func setupCommand(c *Config) string {
	command := "rds-lab setup --profile " + c.Profile.String()
	if c.KernelVersion != "" {
		command += " --kernel " + c.KernelVersion
	}
	return command
}

// A session is what launcher and guest do together.
type session struct {
	*machine
	config *Config
	report *Report
	group  *group // of several machines; nil if there is one

	begun          bool             // the command was started
	timedOut       bool             // and told to end
	limit          <-chan time.Time // of the boot, then of the command
	answer         <-chan time.Time // limit of the answer to a signal
	sent, answered int              // signals
}

func (s *session) run(ctx context.Context) error {
	stdout := copyStream("stdout", s.lines[job.Stdout], s.config.Stdout)
	stderr := copyStream("stderr", s.lines[job.Stderr], s.config.Stderr)
	done, err := s.await(ctx)
	if err != nil {
		return err
	}
	if s.group != nil {
		s.group.finish()
	}
	stdout.end(done.Stdout)
	stderr.end(done.Stderr)
	for _, st := range []*stream{stdout, stderr} {
		select {
		case <-st.done:
		case sig := <-s.config.Signals: // whoever reads the output may never do so
			return interrupted(sig)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := st.check(); err != nil {
			return &Failure{Status: ExitNoResult, Reason: err.Error()}
		}
	}
	return s.judge()
}

// await follows the guest until the command has ended.
func (s *session) await(ctx context.Context) (*job.Done, error) {
	s.limit = time.After(bootTimeout)
	for {
		select {
		case msg, ok := <-s.messages:
			if !ok {
				return nil, s.lost(s.begun)
			}
			if msg.Done != nil {
				return msg.Done, nil
			}
			if s.group != nil && s.group.heed(msg) {
				continue
			}
			if err := s.heed(msg); err != nil {
				return nil, err
			}
		case ev := <-s.group.others():
			if err := s.group.take(ev); err != nil {
				return nil, err
			}
		case sig := <-s.config.Signals:
			if err := s.pass(sig); err != nil {
				return nil, err
			}
		case <-s.config.resized():
			if size := s.config.Terminal.size(); s.begun {
				s.send(job.Message{WindowSize: &size})
			}
		case <-s.answer:
			return nil, s.failure(fmt.Sprintf("the machine does not answer: no word for %s", answerTimeout))
		case <-s.limit:
			if err := s.expire(); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// heed does what a message of the guest, other than the last, asks for.
func (s *session) heed(msg job.Message) error {
	switch {
	case msg.Started:
		s.begun = true
		s.report.Boot = time.Since(s.started)
		s.limit = nil
		if s.config.Timeout > 0 {
			s.limit = time.After(s.config.Timeout)
		}
		if s.config.Started != nil {
			s.config.Started(s.report)
		}
		if s.config.Terminal != nil {
			if err := s.config.Terminal.makeRaw(); err != nil {
				return fmt.Errorf("terminal: %w", err)
			}
		}
		if s.config.Stdin != nil {
			go s.feed(s.config.Stdin)
		}
	case msg.Ack > 0:
		if s.answered = msg.Ack; s.answered == s.sent {
			s.answer = nil
		}
	}
	return nil
}

// resized tells when the terminal may have another size; nil if there is none.
func (c *Config) resized() <-chan os.Signal {
	if c.Terminal == nil {
		return nil
	}
	return c.Terminal.resized
}

// pass passes a signal on to the command. Before there is one it ends the lab.
func (s *session) pass(sig os.Signal) error {
	if !s.begun {
		return interrupted(sig)
	}
	n, ok := sig.(syscall.Signal)
	if !ok {
		return nil
	}
	if n == syscall.SIGTERM && s.config.Terminal != nil {
		n = syscall.SIGHUP // shells on a terminal ignore SIGTERM
	}
	s.sent++
	s.answer = time.After(answerTimeout)
	if err := s.send(job.Message{Signal: int(n)}); err != nil {
		return s.failure(fmt.Sprintf("the machine takes no signal: %v", err))
	}
	return nil
}

// interrupted is the end of a lab by a signal to the launcher.
func interrupted(sig os.Signal) error {
	status := ExitNoResult
	if n, ok := sig.(syscall.Signal); ok {
		status = 128 + int(n)
	}
	return &Failure{Status: status, Reason: "ended by signal: " + sig.String()}
}

// expire ends what took too long: the boot at once, the command with notice.
func (s *session) expire() error {
	if !s.begun {
		return s.failure(fmt.Sprintf("the command did not start within %s", bootTimeout))
	}
	if s.timedOut {
		return s.timeout()
	}
	s.timedOut = true
	s.limit = time.After(endTimeout)
	if s.config.TimeoutSignal == nil {
		return s.pass(syscall.SIGTERM)
	}
	return s.pass(s.config.TimeoutSignal)
}

func (s *session) timeout() *Failure {
	return &Failure{Status: ExitTimeout, Reason: fmt.Sprintf("the command ran for longer than %s", s.config.Timeout)}
}

// judge reads the result and fills in the report.
func (s *session) judge() error {
	r, err := s.readResult()
	if err != nil {
		return err
	}
	s.report.Status = r.Status()
	failure := new(Failure)
	if s.timedOut {
		failure = s.timeout()
	}
	if r.TaintAfter != r.TaintBefore {
		failure = tainted(r, failure.Status)
	}
	if s.group != nil && failure.Status == 0 {
		failure = s.group.judge(s.report.Status)
	}
	if failure.Status == 0 {
		return nil
	}
	return failure
}

// readResult reads the result of a machine that began its job.
func (m *machine) readResult() (*job.Result, error) {
	r, err := m.dir.result()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, m.failure("the machine left no result")
	}
	if err != nil {
		return nil, m.failure(err.Error())
	}
	if r.Error != "" {
		return nil, notStarted(r)
	}
	return r, nil
}

// notStarted is the failure of a guest that says why it did not start the
// command.
func notStarted(r *job.Result) *Failure {
	f := &Failure{Status: ExitNoResult, Reason: r.Error, Console: r.KernelLog}
	if r.NotFound {
		f.Status = ExitNotFound
	}
	return f
}

// tainted is the failure of a kernel that warned or broke. A command that
// failed keeps its status, since that may be the cause or the effect, and is
// the nearer one.
func tainted(r *job.Result, status int) *Failure {
	if status == 0 {
		status = r.Status()
	}
	if status == 0 {
		status = ExitTainted
	}
	return &Failure{
		Status: status,
		Reason: fmt.Sprintf("the kernel's taint went from %#x to %#x while the command ran, which ended with status %d",
			r.TaintBefore, r.TaintAfter, r.Status()),
		Console: r.KernelLog,
	}
}

// feed copies stdin to its line, and says how much it was.
func (s *session) feed(stdin io.Reader) {
	// The guest waits for no more than this tells it of, so that an error
	// of reading is an end like another, as it is outside.
	n, err := io.Copy(struct{ io.Writer }{s.lines[job.Stdin]}, stdin)
	if errors.Is(err, os.ErrClosed) {
		return
	}
	s.send(job.Message{StdinEOF: &n})
}
