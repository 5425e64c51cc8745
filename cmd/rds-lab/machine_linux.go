package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/lab"
	"github.com/rdskit/rdskit/internal/lab/call"
	"github.com/rdskit/rdskit/internal/lab/job"
)

// machineCommands are those that work in a lab of several machines.
func machineCommands() []*cli.Command {
	none := func(do func() error) func(*cli.Context) error {
		return func(c *cli.Context) error {
			if c.NArg() > 0 {
				return &cli.UsageError{Reason: fmt.Sprintf("%s takes no argument such as %q", c.Command.Name, c.Args().First())}
			}
			return inLab(do())
		}
	}
	one := func(do func(machine int) error) func(*cli.Context) error {
		return func(c *cli.Context) error {
			if c.NArg() != 1 {
				return &cli.UsageError{Reason: "want the name of one machine, such as m2"}
			}
			n, err := job.ParseMachine(c.Args().First())
			if err != nil {
				return &cli.UsageError{Reason: err.Error()}
			}
			return inLab(do(n))
		}
	}
	return []*cli.Command{
		{Name: "on", Usage: "in a lab of machines: run a command on another one", ArgsUsage: "MACHINE [--] COMMAND [ARGUMENT ...]", Action: runOn},
		{Name: "kill", Usage: "in a lab of machines: kill another one", ArgsUsage: "MACHINE", Action: one(call.Kill)},
		{Name: "boot", Usage: "in a lab of machines: boot one that was killed", ArgsUsage: "MACHINE", Action: one(call.Boot)},
		{Name: "cut", Usage: "in a lab of machines: cut the cable between them", ArgsUsage: " ", Action: none(call.Cut)},
		{Name: "mend", Usage: "in a lab of machines: mend the cable", ArgsUsage: " ", Action: none(call.Mend)},
	}
}

// inLab gives an error of the lab around this process its exit status.
func inLab(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, call.ErrNoMachines):
		return &cli.ExitError{Status: cli.CannotTry, Err: err}
	}
	if _, ok := errors.AsType[*call.NotFoundError](err); ok {
		return &cli.ExitError{Status: lab.ExitNotFound, Err: err}
	}
	return &cli.ExitError{Status: lab.ExitNoResult, Err: err}
}

func runOn(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 {
		return &cli.UsageError{Reason: "want the name of a machine, such as m2, and a command"}
	}
	n, err := job.ParseMachine(args[0])
	if err != nil {
		return &cli.UsageError{Reason: err.Error()}
	}
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return &cli.UsageError{Reason: "no command given"}
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	status, err := (&call.Command{
		Machine: n, Args: args, Dir: dir, Env: os.Environ(),
		Stdin: lab.Stdin(os.Stdin), Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals,
	}).Run()
	if err != nil {
		return inLab(err)
	}
	if status != 0 {
		return &cli.ExitError{Status: status}
	}
	return nil
}
