package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rdskit/rdskit/internal/lab"
	"github.com/urfave/cli/v2"
)

func run(args []string) int {
	status := 0
	app := &cli.App{
		Name:  "rds-lab",
		Usage: "run a command in a kernel with RDS",
		Commands: []*cli.Command{
			{Name: "run", Flags: flags(2, "h1"), Action: func(c *cli.Context) error { var err error; status, err = boot(c, false); return err }},
			{Name: "exec", Flags: flags(3, "init"), Action: func(c *cli.Context) error { var err error; status, err = boot(c, true); return err }},
		},
	}
	if err := app.Run(args); err != nil {
		fmt.Fprintf(os.Stderr, "rds-lab: %v\n", err)
		var f *lab.Failure
		if errors.As(err, &f) {
			return f.Status
		}
		return lab.ExitNoResult
	}
	return status
}

func flags(hosts int, on string) []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "hosts", Value: hosts, Usage: "number of hosts"},
		&cli.StringFlag{Name: "on", Value: on, Usage: "host to run on, or init"},
		&cli.StringFlag{Name: "netem"},
		&cli.DurationFlag{Name: "timeout"},
		&cli.StringSliceFlag{Name: "write"},
		&cli.BoolFlag{Name: "v"},
	}
}

func boot(c *cli.Context, test bool) (int, error) {
	if c.NArg() == 0 {
		return 0, errors.New("no command")
	}
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	cfg := &lab.Config{
		Profile: lab.UML,
		Args:    c.Args().Slice(), Dir: dir, Env: os.Environ(),
		Hosts: c.Int("hosts"), On: c.String("on"), Netem: c.String("netem"),
		Timeout:   c.Duration("timeout"),
		Writable:  append(c.StringSlice("write"), dir),
		MemoryMiB: 1024,
		Stdout:    os.Stdout, Stderr: os.Stderr,
	}
	if test {
		if bin, err := filepath.Abs(c.Args().First()); err == nil && strings.Contains(c.Args().First(), "/") {
			cfg.Writable = append(cfg.Writable, filepath.Dir(bin))
		}
		for _, a := range c.Args().Slice() {
			if d, ok := strings.CutPrefix(a, "-test.gocoverdir="); ok {
				cfg.Writable = append(cfg.Writable, d)
			}
		}
	}
	sig := make(chan os.Signal, 8)
	signal.Notify(sig, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	cfg.Signals = sig
	report, err := lab.Run(context.Background(), cfg)
	if err != nil {
		return 0, err
	}
	if c.Bool("v") {
		fmt.Fprintf(os.Stderr, "rds-lab: %s, boot to command %s\n", report.Kernel, report.Boot)
	}
	return report.Status, nil
}
