// Package lab boots a small kernel with RDS in a virtual machine and runs a
// command in it that sees the host's files at their own paths.
//
// Three processes share the work, all of the same program: the launcher ([Run]),
// the keeper between it and the virtual machine (package keeper), and process
// 1 of the guest (package guest). Launcher and guest share a job directory,
// for the job description and the result, and four lines: control, stdin,
// stdout and stderr.
package lab

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/kernel"
	"github.com/rdskit/rdskit/internal/lab/kmod"
	"github.com/rdskit/rdskit/internal/lab/netem"
)

// Exit statuses of a lab beyond those of its command.
const (
	ExitTimeout  = 124 // the command ran for longer than Config.Timeout
	ExitNoResult = 125 // the machine did not boot, or ended without a result
	ExitTainted  = 126 // the kernel warned or broke while the command ran
	ExitNotFound = 127 // the command could not be started
)

// A Config says which machine to boot and what to run in it.
type Config struct {
	Profile kernel.Profile
	Kernel  kernel.Image // zero: find one for the profile
	// KernelVersion is that of the kernel to find, such as 6.12; empty: any.
	KernelVersion string

	Args []string // the command and its arguments
	Dir  string   // working directory, absolute; writes below it are real
	Env  []string
	// Writable are further paths below which writes are real. See [TestWritable].
	Writable []string

	Hosts int  // network namespaces h1 to hN
	RDMA  bool // QEMU: a soft RoCE device in the initial namespace, with two addresses
	// Machines is how many machines to boot, 0 is one; of two each is an RDMA host.
	Machines int
	On       string // where the command runs: a host or machine, or job.InitialNamespace
	Netem    string // what disturbs the sending of each host, as tc-netem(8) has it
	Modules  []string
	Sysctls  []job.Sysctl

	MemoryMiB     int  // 0: 1024, or 2048 for QEMU
	Processors    int  // 0: 1
	Deterministic bool // QEMU: time counts instructions

	// Timeout bounds the command, not the boot; 0 is no bound. When it has
	// passed the command gets TimeoutSignal, and five seconds to end.
	Timeout       time.Duration
	TimeoutSignal os.Signal

	Stdin          io.Reader // nil is the null device
	Stdout, Stderr io.Writer
	Terminal       *Terminal        // if not nil: Stdin and Stdout are it, and the command has one of its own
	Signals        <-chan os.Signal // are passed on to the command
	Started        func(*Report)    // called when the command starts; may be nil
}

// DefaultModules are the modules that a lab loads unless told otherwise.
func DefaultModules() []string { return []string{"rds", "rds_tcp"} }

// A Report is how a lab went.
type Report struct {
	Status int           // of the command; 128 plus the signal's number if one ended it
	Boot   time.Duration // from the start of the machine to that of the command
	Kernel kernel.Image
}

// A Failure is a lab that did not end with its command's own status.
type Failure struct {
	Status  int
	Reason  string
	Console []string // the end of the machine's console or of the kernel's log

	early bool // the machine ended by itself before the command started
}

func (f *Failure) Error() string {
	if len(f.Console) == 0 {
		return f.Reason
	}
	return fmt.Sprintf("%s; the kernel said last:\n  %s", f.Reason, strings.Join(f.Console, "\n  "))
}

// A ConfigError says what no machine can do.
type ConfigError struct{ err error }

func (e *ConfigError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.err }

// check refuses what no machine can do.
func (c *Config) check() error {
	if len(c.Args) == 0 {
		return fmt.Errorf("no command given")
	}
	if c.Hosts < 0 || c.Hosts > hosts.Max {
		return fmt.Errorf("%d hosts: a lab has 0 to %d", c.Hosts, hosts.Max)
	}
	if c.Machines < 0 || c.Machines > job.MaxMachines {
		return fmt.Errorf("%d machines: a lab has 1 or %d", c.Machines, job.MaxMachines)
	}
	if on, err := job.ParseMachine(c.On); err == nil {
		if c.Machines < 2 {
			return fmt.Errorf("the command is to run on %s, and the lab has one machine: it needs two", job.MachineName(on))
		}
	} else if c.On != job.InitialNamespace {
		h, err := hosts.Parse(c.On)
		if err != nil {
			return err
		}
		if h.N > c.Hosts {
			return fmt.Errorf("the command is to run on %s, and the lab has %d hosts: it needs more, or %q for the initial namespace", h, c.Hosts, job.InitialNamespace)
		}
	}
	if _, err := netem.Parse(c.Netem); err != nil {
		return fmt.Errorf("netem %q: %w", c.Netem, err)
	}
	if c.Profile == kernel.UML {
		if c.Processors > 1 {
			return fmt.Errorf("%d processors: User-Mode Linux has one; use the profile %s", c.Processors, kernel.QEMU)
		}
		if c.RDMA || c.Machines > 1 {
			return fmt.Errorf("User-Mode Linux has no InfiniBand: for RDMA use the profile %s", kernel.QEMU)
		}
		if c.Deterministic {
			return fmt.Errorf("User-Mode Linux does not count instructions: for a deterministic lab use the profile %s", kernel.QEMU)
		}
	}
	if c.Deterministic && c.Machines > 1 {
		return fmt.Errorf("a deterministic lab has one machine: the time of two is not the same")
	}
	if c.Deterministic && c.Processors > 1 {
		return fmt.Errorf("a deterministic lab has one processor, not %d", c.Processors)
	}
	return nil
}

// labModules are loaded in every lab, all but the first for its hosts.
var labModules = []string{"ipv6", "veth", "bridge", "sch_netem"}

// primary is the number of the machine where the command runs, 0 if there is one.
func (c *Config) primary() int {
	if c.Machines < 2 {
		return 0
	}
	if n, err := job.ParseMachine(c.On); err == nil {
		return n
	}
	return 1
}

// job is the job description for the guest of machine n.
func (c *Config) job(k kernel.Image, n int) (*job.Job, error) {
	writable, err := resolveWritable(append([]string{c.Dir}, c.Writable...))
	if err != nil {
		return nil, &ConfigError{err}
	}
	// Those of a lab around this one, if any, are not true in this one.
	env := slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == job.EnvMachine || name == job.EnvLab || name == job.EnvHosts || name == job.EnvPromise
	})
	env = append(env,
		job.EnvLab+"="+c.Profile.String(),
		fmt.Sprintf("%s=%d", job.EnvHosts, c.Hosts),
		job.EnvPromise+"="+strings.Join(c.promise(), ","),
	)
	on := c.On
	if n != 0 {
		env = append(env, job.EnvMachine+"="+job.MachineName(n))
		if _, err := job.ParseMachine(on); err == nil {
			on = job.InitialNamespace
		}
	}
	var terminal *job.WindowSize
	if c.Terminal != nil {
		size := c.Terminal.size()
		terminal = &size
	}
	j := &job.Job{
		Profile:    c.Profile.String(),
		Args:       c.Args,
		Dir:        c.Dir,
		Env:        env,
		Hosts:      c.Hosts,
		RDMA:       c.RDMA,
		Machine:    n,
		Idle:       n != c.primary(),
		On:         on,
		Netem:      c.Netem,
		ModuleTree: k.Modules,
		Sysctls:    c.Sysctls,
		Writable:   writable,
		Stdin:      c.Stdin != nil,
		Terminal:   terminal,
	}
	if j.Idle {
		j.Hosts, j.Netem, j.Terminal = 0, "", nil
	}
	if err := c.modules(j); err != nil {
		return nil, &ConfigError{err}
	}
	return j, nil
}

// The modules that make RDMA hosts.
const (
	dummyModule   = "dummy"         // the device for a lab of one machine
	virtioModule  = "virtio_net"    // the device of one of several
	checksums     = "crc32_generic" // rdma_rxe finds it only if it was loaded before
	adapterModule = "rdma_rxe"
	rdmaModule    = "rds_rdma"
)

// modules fills in what the guest loads, looked up here, where that takes less time. Modules
// that the tree does not have are refused; without a tree all must be built in.
func (c *Config) modules(j *job.Job) error {
	if j.ModuleTree == "" {
		return nil
	}
	t, err := kmod.Open(os.DirFS(j.ModuleTree))
	if err != nil {
		return fmt.Errorf("module tree %s: %w", j.ModuleTree, err)
	}
	names := slices.Concat(labModules, c.Modules, c.rdmaModules(t.Has(checksums)))
	if j.Idle {
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(labModules[1:], name) })
	}
	for _, name := range names {
		if !t.Has(name) {
			return fmt.Errorf("module %s is not in the module tree %s", name, j.ModuleTree)
		}
	}
	if j.RootFiles, err = t.Load("overlay"); err != nil {
		return fmt.Errorf("%s: %w", j.ModuleTree, err)
	}
	if j.Files, err = t.Load(names...); err != nil {
		return fmt.Errorf("%s: %w", j.ModuleTree, err)
	}
	return nil
}

// rdmaModules lists the modules for RDMA, if it is asked for. Newer kernels have the
// checksums in their library.
func (c *Config) rdmaModules(withChecksums bool) []string {
	var names []string
	switch {
	case c.Machines > 1:
		names = []string{virtioModule}
	case c.RDMA:
		names = []string{dummyModule}
	default:
		return nil
	}
	if withChecksums {
		names = append(names, checksums)
	}
	return append(names, adapterModule, rdmaModule)
}

// promise lists the features that the tests in the lab may count on, in the
// words of package labtest.
func (c *Config) promise() []string {
	p := []string{"root", "ipv6", "netem"}
	for _, m := range c.Modules {
		switch m {
		case "rds":
			p = append(p, "rds")
		case "rds_tcp":
			p = append(p, "tcp")
		}
	}
	switch {
	case c.Machines > 1:
		p = append(p, "machines")
	case c.RDMA:
		p = append(p, "rdma")
	}
	if c.Processors > 1 {
		p = append(p, "smp")
	}
	return p
}
