package labtest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/rdskit/rdskit/internal/lab/call"
	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
)

// A PeerMachine is the other machine of a lab of two, in the hands of one test. Its
// embedded HCA has its addresses. The network of the test's own machine is that of [Own].
type PeerMachine struct {
	hosts.HCA
	t testing.TB
}

// Peer is the other machine. The test needs [Machines] then.
func Peer(t testing.TB) *PeerMachine {
	t.Helper()
	return &PeerMachine{hosts.HCA{N: 3 - Own(t).N}, t}
}

// Own is the machine that the test runs on. The test needs [Machines] then.
func Own(t testing.TB) hosts.HCA {
	t.Helper()
	Need(t, Machines)
	n, err := job.ParseMachine(os.Getenv(job.EnvMachine))
	if err != nil {
		t.Fatal(err)
	}
	return hosts.HCA{N: n}
}

// Move makes a command run on the machine: with its arguments, environment, working directory and
// streams, and with the signals that are sent to it, other than SIGKILL. It is killed there if it
// is killed here, or the test ends. The files that it sees are those of the host of the lab, not
// what the test writes to directories that are not real.
func (p *PeerMachine) Move(cmd *exec.Cmd) *exec.Cmd {
	args := append([]string{cmd.Path}, cmd.Args[1:]...)
	// The program of process 1 is rds-lab.
	const launcher = "/proc/1/exe"
	cmd.Path, cmd.Args, cmd.Err = launcher, append([]string{"rds-lab", "on", p.machine(), "--"}, args...), nil
	return cmd
}

func (p *PeerMachine) machine() string { return job.MachineName(p.N) }

// Run runs a command on the machine and returns what it prints. It fails the test if the
// command fails.
func (p *PeerMachine) Run(name string, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), name, args...)
	cmd.Stderr = os.Stderr
	out, err := p.Move(cmd).Output()
	if err != nil {
		p.t.Fatalf("on machine %s: %q %q: %v", p.machine(), name, args, err)
	}
	return string(out)
}

// Kill kills the machine, as if its power were cut, until [PeerMachine.Boot] or the end of the test.
func (p *PeerMachine) Kill() {
	p.t.Helper()
	p.must(call.Kill(p.N))
	p.t.Cleanup(func() {
		p.t.Helper()
		// After Boot it runs already.
		if !p.runs() {
			p.Boot()
		}
	})
}

// runs tells whether the machine takes commands.
func (p *PeerMachine) runs() bool {
	return p.Move(exec.Command("true")).Run() == nil
}

// Boot boots the machine again, and returns when it is ready.
func (p *PeerMachine) Boot() {
	p.t.Helper()
	p.must(call.Boot(p.N))
}

// Cut cuts the cable between the machines until [PeerMachine.Mend] or the end of the test. What they
// send is lost; neither sees that.
func (p *PeerMachine) Cut() {
	p.t.Helper()
	p.must(call.Cut())
	p.t.Cleanup(p.Mend)
}

// Mend ends what [PeerMachine.Cut] began.
func (p *PeerMachine) Mend() {
	p.t.Helper()
	p.must(call.Mend())
}

func (p *PeerMachine) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}
