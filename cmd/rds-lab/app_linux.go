package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/lab"
	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/kernel"
	"github.com/rdskit/rdskit/internal/lab/netem"
)

func app() *cli.App {
	return &cli.App{
		Name:        "rds-lab",
		Usage:       "Run a command in a small kernel with RDS, in a virtual machine.",
		Version:     cli.Version(),
		Description: exitStatuses,
		Commands:    append([]*cli.Command{runCommand(), execCommand(), shellCommand(), setupCommand()}, machineCommands()...),
	}
}

const exitStatuses = `Exit status: the command's; 124 it ran too long, 125 the machine failed,
126 the kernel warned or panicked although the command passed, 127 the command
could not be started, 2 usage.`

func runCommand() *cli.Command {
	o := &options{hosts: cli.Number{Value: 2, Max: 250}, timeoutSignal: syscall.SIGTERM}
	return &cli.Command{
		Name:      "run",
		Usage:     "run a command on one of the lab's hosts",
		ArgsUsage: "[--] COMMAND [ARGUMENT ...]",
		Flags:     o.flags(),
		Action:    o.run,
	}
}

func execCommand() *cli.Command {
	o := &options{hosts: cli.Number{Value: 3, Max: 250}, test: true, timeoutSignal: syscall.SIGQUIT}
	return &cli.Command{
		Name:      "exec",
		Usage:     "run a test binary beside the lab's hosts: go test -exec 'rds-lab exec --'",
		ArgsUsage: "[--] TESTBINARY [ARGUMENT ...]",
		Flags:     o.flags(),
		Action:    o.run,
	}
}

// options are those of run and exec.
type options struct {
	profile       profileValue
	kernel        string
	moduleTree    string
	hosts         cli.Number
	rdma          bool
	machines      cli.Number
	on            string
	netem         netemValue
	modules       moduleList
	sysctls       sysctlList
	write         pathList
	memory        cli.Number // MiB
	smp           cli.Number
	deterministic bool
	timeout       cli.Interval
	verbose       bool

	test          bool // run a test binary
	timeoutSignal os.Signal
}

func (o *options) flags() []cli.Flag {
	o.modules.names = lab.DefaultModules()
	o.memory.Min, o.memory.Max = 128, 1<<20
	o.smp.Min, o.smp.Max = 1, 64
	o.machines = cli.Number{Value: 1, Min: 1, Max: job.MaxMachines}
	return []cli.Flag{
		&cli.GenericFlag{Name: "profile", Value: &o.profile, Usage: "kind of `MACHINE`: uml or qemu"},
		&cli.GenericFlag{Name: "hosts", Value: &o.hosts, Usage: "make `N` hosts, network namespaces h1 to hN"},
		&cli.BoolFlag{Name: "rdma", Destination: &o.rdma, Usage: "make a soft RoCE device with two addresses, in the initial namespace (qemu)"},
		&cli.GenericFlag{Name: "machines", Value: &o.machines, Usage: "boot `N` machines, 2 are joined by a cable and RDMA hosts both (qemu)"},
		&cli.StringFlag{Name: "on", Destination: &o.on, Usage: "run on `HOST`, in the initial namespace: init, or on a machine: m2"},
		&cli.GenericFlag{Name: "netem", Value: &o.netem, Usage: "disturb what each host sends by `SPEC`, as tc-netem(8) has it: \"loss 1% delay 5ms\""},
		&cli.GenericFlag{Name: "modules", Value: &o.modules, Usage: "load the modules of `LIST`, separated by commas, or none"},
		&cli.GenericFlag{Name: "sysctl", Value: &o.sysctls, Usage: "set a kernel parameter, `KEY=VALUE`; may be given again"},
		&cli.GenericFlag{Name: "write", Value: &o.write, Usage: "let writes below `PATH` be real; may be given again"},
		&cli.GenericFlag{Name: "timeout", Value: &o.timeout, Usage: "end the command after `TIME`, with status 124"},
		&cli.GenericFlag{Name: "memory", Value: &o.memory, Usage: "give the machine `MIB` of memory (default 1024, qemu 2048)"},
		&cli.GenericFlag{Name: "smp", Value: &o.smp, Usage: "give the machine `N` processors (qemu)"},
		&cli.BoolFlag{Name: "deterministic", Destination: &o.deterministic, Usage: "let time count instructions (qemu)"},
		&cli.StringFlag{Name: "kernel", Destination: &o.kernel, Usage: "boot `KERNEL`: a version, such as 6.12, or the file of an image"},
		&cli.StringFlag{Name: "modules-dir", Destination: &o.moduleTree, Usage: "with the module tree `DIR`, which holds modules.dep"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Destination: &o.verbose, Usage: "say which kernel it is and how long it took to boot"},
	}
}

func (o *options) run(c *cli.Context) error {
	config, err := o.config(c.Args().Slice())
	if err != nil {
		return err
	}
	return boot(c.Context, config)
}

// boot runs the lab.
func boot(ctx context.Context, config *lab.Config) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	defer signal.Stop(signals)
	config.Signals = signals
	report, err := lab.Run(ctx, config)
	if err != nil {
		return exitError(err)
	}
	if report.Status != 0 {
		return &cli.ExitError{Status: report.Status}
	}
	return nil
}

// exitError gives the error of a lab its exit status.
func exitError(err error) error {
	if _, ok := errors.AsType[*lab.ConfigError](err); ok {
		return &cli.UsageError{Reason: err.Error()}
	}
	status := lab.ExitNoResult
	if e, ok := errors.AsType[*lab.Failure](err); ok {
		status = e.Status
	}
	return &cli.ExitError{Status: status, Err: err}
}

func (o *options) config(args []string) (*lab.Config, error) {
	if len(args) == 0 {
		return nil, &cli.UsageError{Reason: "no command given"}
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	image, version, err := namedKernel(o.profile.Profile, o.kernel, o.moduleTree)
	if err != nil {
		return nil, err
	}
	if image.Path != "" {
		if err := image.Check(o.profile.Profile); err != nil {
			return nil, &cli.UsageError{Option: "--kernel", Value: o.kernel, Reason: err.Error()}
		}
	}
	c := &lab.Config{
		Profile: o.profile.Profile, Kernel: image, KernelVersion: version,
		Args: args, Dir: dir, Env: os.Environ(),
		Writable:  slices.Clone(o.write),
		Hosts:     int(o.hosts.Value),
		RDMA:      o.rdma,
		Machines:  int(o.machines.Value),
		On:        o.host(),
		Netem:     o.netem.spec,
		Modules:   o.modules.names,
		Sysctls:   o.sysctls,
		MemoryMiB: int(o.memory.Value), Processors: int(o.smp.Value), Deterministic: o.deterministic,
		Timeout: o.timeout.Duration, TimeoutSignal: o.timeoutSignal,
		Stdin: lab.Stdin(os.Stdin), Stdout: os.Stdout, Stderr: os.Stderr,
	}
	if o.test {
		paths, err := lab.TestWritable(args, os.Getenv("GOCOVERDIR"))
		if err != nil {
			return nil, err
		}
		c.Writable = append(c.Writable, paths...)
	} else if d := os.Getenv("GOCOVERDIR"); d != "" {
		c.Writable = append(c.Writable, d)
	}
	if o.verbose {
		c.Started = func(r *lab.Report) {
			fmt.Fprintf(os.Stderr, "rds-lab: %s, kernel %s: the command starts after %.2f s\n", c.Profile, r.Kernel, r.Boot.Seconds())
		}
	}
	return c, nil
}

// host is where the command runs: where the lab's RDS is, unless told otherwise.
func (o *options) host() string {
	switch {
	case o.on != "":
		return o.on
	case o.test || o.rdma || o.machines.Value > 1:
		return job.InitialNamespace
	}
	return hosts.Host{N: 1}.Name()
}

type profileValue struct{ kernel.Profile }

func (v *profileValue) Set(s string) (err error) {
	v.Profile, err = kernel.ParseProfile(s)
	return err
}

// Completions are the profiles.
func (v *profileValue) Completions() []string {
	return []string{kernel.UML.String(), kernel.QEMU.String()}
}

type netemValue struct{ spec string }

func (v *netemValue) Set(s string) error {
	_, err := netem.Parse(s)
	v.spec = s
	return err
}

func (v *netemValue) String() string { return v.spec }

// moduleList is a list separated by commas; "none" is an empty one.
type moduleList struct{ names []string }

func (v *moduleList) Set(s string) error {
	v.names = nil
	if s == "none" {
		return nil
	}
	for name := range strings.SplitSeq(s, ",") {
		if name == "" || strings.ContainsAny(name, "/ ") {
			return fmt.Errorf("%q is not the name of a module; want a list such as rds,rds_tcp, or none", name)
		}
		v.names = append(v.names, name)
	}
	return nil
}

func (v *moduleList) String() string { return strings.Join(v.names, ",") }

type sysctlList []job.Sysctl

func (v *sysctlList) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return errors.New("want KEY=VALUE, such as net.core.wmem_max=4194304")
	}
	*v = append(*v, job.Sysctl{Key: key, Value: value})
	return nil
}

func (v *sysctlList) String() string {
	var all []string
	for _, s := range *v {
		all = append(all, s.Key+"="+s.Value)
	}
	return strings.Join(all, " ")
}

// pathList takes each path as it is, commas too.
type pathList []string

func (v *pathList) Set(s string) error {
	if _, err := os.Stat(s); err != nil {
		return err
	}
	*v = append(*v, s)
	return nil
}

func (v *pathList) String() string { return strings.Join(*v, " ") }
