package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/lab"
	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// setup holds the options of the command setup.
type setup struct {
	profiles   profileList
	unpack     bool
	kernel     string
	moduleTree string
}

func setupCommand() *cli.Command {
	s := &setup{profiles: profileList{kernel.UML}}
	return &cli.Command{
		Name:  "setup",
		Usage: "get what the lab needs from the distribution's packages, and try it",
		Flags: []cli.Flag{
			&cli.GenericFlag{Name: "profile", Value: &s.profiles, Usage: "for the machines of `LIST`: uml, qemu, or both separated by a comma"},
			&cli.BoolFlag{Name: "unpack", Destination: &s.unpack, Usage: "unpack packages into the cache directory even as root, who installs them"},
			&cli.StringFlag{Name: "kernel", Destination: &s.kernel, Usage: "get `KERNEL`, a version such as 6.12, or try that of a file"},
			&cli.StringFlag{Name: "modules-dir", Destination: &s.moduleTree, Usage: "with the module tree `DIR`, which holds modules.dep"},
		},
		Action: s.run,
	}
}

func (s *setup) run(c *cli.Context) error {
	if c.NArg() > 0 {
		return &cli.UsageError{Reason: fmt.Sprintf("setup takes no argument such as %q", c.Args().First())}
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	for _, p := range s.profiles {
		if err := s.profile(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *setup) profile(ctx context.Context, p kernel.Profile) error {
	image, version, err := namedKernel(p, s.kernel, s.moduleTree)
	if err != nil {
		return err
	}
	report, err := (&lab.Setup{Profile: p, Kernel: image, Version: version, Unpack: s.unpack, Talk: os.Stderr}).Run(ctx)
	if err != nil {
		return exitError(err)
	}
	_, err = fmt.Printf("%s: ready, kernel %s boots in %.1f s\n", p, report.Kernel, report.Boot.Seconds())
	return err
}

// namedKernel is what the options --kernel and --modules-dir name: a kernel, the version of
// one, or nothing.
func namedKernel(p kernel.Profile, name, moduleTree string) (kernel.Image, string, error) {
	if name == "" && moduleTree == "" {
		return kernel.Image{}, "", nil
	}
	if name == "" || moduleTree != "" && kernel.IsVersion(name) {
		return kernel.Image{}, "", &cli.UsageError{Option: "--modules-dir", Value: moduleTree, Reason: "needs the file of a kernel, --kernel"}
	}
	if kernel.IsVersion(name) {
		return kernel.Image{}, name, nil
	}
	image, err := kernel.Given(p, name, moduleTree)
	if err != nil {
		return kernel.Image{}, "", &cli.UsageError{Option: "--kernel", Value: name, Reason: err.Error()}
	}
	return image, "", nil
}

type profileList []kernel.Profile

func (v *profileList) Set(s string) error {
	*v = nil
	for name := range strings.SplitSeq(s, ",") {
		p, err := kernel.ParseProfile(name)
		if err != nil {
			return err
		}
		*v = append(*v, p)
	}
	return nil
}

func (v *profileList) String() string {
	var names []string
	for _, p := range *v {
		names = append(names, p.String())
	}
	return strings.Join(names, ",")
}
