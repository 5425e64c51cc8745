package main

import (
	"fmt"
	"os"
	"syscall"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/module"
	"github.com/rdskit/rdskit/internal/netns"
	"github.com/rdskit/rdskit/internal/plain"
	"github.com/rdskit/rdskit/rdsinfo"
)

// A source is where snapshots come from.
type source struct {
	netns, from nameValue
	load        bool
}

func (s *source) flags() []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "netns", Value: &s.netns, Usage: "of the network namespace `NAME`, or of that of a process by its number"},
		&cli.BoolFlag{Name: "load", Destination: &s.load, Usage: "let the kernel load the module rds if it is missing"},
		&cli.GenericFlag{Name: "from", Value: &s.from, Usage: "of the bundle `FILE` instead of this host"},
	}
}

// errNoRDS is that of socket(2) without the module.
var errNoRDS = os.NewSyscallError("socket", syscall.EAFNOSUPPORT)

// allowed refuses to make a socket that would make the kernel load a module, as some do.
func (s *source) allowed() error {
	if s.load || (module.System{}).Loaded("rds") {
		return nil
	}
	return explainSocket(errNoRDS)
}

// with calls f with what to read, unless it is a bundle.
func (s *source) with(f func(*rdsinfo.Config) error) error {
	if err := s.allowed(); err != nil {
		return err
	}
	return s.enter(f)
}

// enter calls f with what to read, though the module may be missing.
func (s *source) enter(f func(*rdsinfo.Config) error) error {
	cfg := &rdsinfo.Config{}
	if s.netns != "" {
		ns, err := netns.Open(string(s.netns))
		if err != nil {
			return err
		}
		defer ns.Close()
		if !netns.IsOwn(ns) { // to enter its own takes the right to enter others
			cfg.NetNS = int(ns.Fd())
		}
	}
	return explainNetNS(string(s.netns), f(cfg))
}

// snapshot takes tables, or has those of the bundle.
func (s *source) snapshot(tables ...rdsinfo.Table) (snapshot *rdsinfo.Snapshot, err error) {
	if s.from != "" {
		b, err := readTables(string(s.from))
		if err != nil {
			return nil, err
		}
		return b.Snapshot, nil
	}
	err = s.with(func(cfg *rdsinfo.Config) error {
		snapshot, err = rdsinfo.Read(cfg, tables...)
		return explainSocket(err)
	})
	return snapshot, err
}

func readBundle(name string) (*rdsinfo.Bundle, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := rdsinfo.ReadBundle(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// readTables reads a bundle that has tables.
func readTables(name string) (*rdsinfo.Bundle, error) {
	b, err := readBundle(name)
	if err == nil && b.SocketError != "" {
		return nil, fmt.Errorf("%s: it has no tables, since no RDS socket could be made: %s; rds-info doctor --from tells more", name, plain.Text(b.SocketError))
	}
	return b, err
}

func noOperands(c *cli.Context) error {
	if c.Args().Present() {
		return &cli.UsageError{Reason: fmt.Sprintf("extra argument %q", c.Args().First())}
	}
	return nil
}
