package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/lab"
)

func shellCommand() *cli.Command {
	o := &options{hosts: cli.Number{Value: 2, Max: 250}, timeoutSignal: syscall.SIGHUP}
	return &cli.Command{
		Name:      "shell",
		Usage:     "run a shell, or another command, on one of the lab's hosts, on the terminal",
		ArgsUsage: "[--] [COMMAND [ARGUMENT ...]]",
		Flags:     o.flags(),
		Action:    o.shell,
	}
}

func (o *options) shell(c *cli.Context) error {
	terminal, err := lab.OpenTerminal(os.Stdin, os.Stdout)
	if errors.Is(err, lab.ErrNoTerminal) {
		return &cli.UsageError{Reason: err.Error() + ": use rds-lab run"}
	}
	if err != nil {
		return err
	}
	defer terminal.Close()
	args := c.Args().Slice()
	if len(args) == 0 {
		args = []string{shellProgram()}
	}
	config, err := o.config(args)
	if err != nil {
		return err
	}
	config.Terminal = terminal
	started := config.Started
	config.Started = func(r *lab.Report) {
		if started != nil {
			started(r)
		}
		fmt.Fprintf(os.Stderr, "rds-lab: this is %s, kernel %s; the end of %s is that of the lab\n", config.On, r.Kernel, args[0])
	}
	return boot(c.Context, config)
}

// shellProgram is the user's shell.
func shellProgram() string {
	if sh := os.Getenv("SHELL"); sh != "" {
		return sh
	}
	return "/bin/sh"
}
