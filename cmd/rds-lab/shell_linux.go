package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/lab"
	"github.com/rdskit/rdskit/internal/lab/job"
	"golang.org/x/term"
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
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	if !term.IsTerminal(in) || !term.IsTerminal(out) {
		return &cli.UsageError{Reason: "stdin and stdout are not a terminal: use rds-lab run"}
	}
	args := c.Args().Slice()
	if len(args) == 0 {
		args = []string{shellProgram()}
	}
	config, err := o.config(args)
	if err != nil {
		return err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	config.Terminal = &lab.Terminal{Resized: resized, Size: func() (job.WindowSize, error) {
		columns, rows, err := term.GetSize(out)
		return job.WindowSize{Rows: uint16(rows), Columns: uint16(columns)}, err
	}}
	// What is typed is for the guest, Ctrl-C too, once there is somebody to take it.
	state, err := term.GetState(in)
	if err != nil {
		return err
	}
	defer term.Restore(in, state)
	started := config.Started
	config.Started = func(r *lab.Report) {
		if started != nil {
			started(r)
		}
		fmt.Fprintf(os.Stderr, "rds-lab: this is %s, kernel %s; the end of %s is that of the lab\n", config.On, r.Kernel.Release, args[0])
		term.MakeRaw(in)
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
