package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/kernel"
	"github.com/rdskit/rdskit/internal/lab/kmod"
	"github.com/rdskit/rdskit/internal/lab/packages"
)

// A Setup gets what a profile needs and this machine does not have.
type Setup struct {
	Profile kernel.Profile
	Kernel  kernel.Image // zero: find or get one
	Unpack  bool         // install nothing, even as root
	Talk    io.Writer    // takes what is done, and what the package system says
}

// The packages that a profile needs.
const (
	umlPackage    = "user-mode-linux"
	qemuPackage   = "qemu-system-x86"
	kernelPackage = "linux-image-amd64" // a meta-package
)

// kernelPattern are the names of the packages that kernelPackage stands for.
var kernelPattern = regexp.MustCompile(`^linux-image-[0-9].*-amd64$`)

// Run gets what is missing, boots the machine once, and tells which kernel it
// was and how long it took.
func (s *Setup) Run(ctx context.Context) (*Report, error) {
	if err := s.get(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Profile, err)
	}
	report, err := s.boot(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the machine was set up and does not boot: %w", s.Profile, err)
	}
	return report, nil
}

func (s *Setup) get(ctx context.Context) error {
	if s.Profile == kernel.QEMU {
		if _, err := kernel.FindQEMU(kernel.Roots()...); err != nil {
			if err := s.getPackage(ctx, qemuPackage); err != nil {
				return err
			}
			if _, err := kernel.FindQEMU(kernel.Roots()...); err != nil {
				return fmt.Errorf("package %s: %w", qemuPackage, err)
			}
		}
	}
	if s.Kernel.Path != "" {
		return nil
	}
	_, err := kernel.Find(s.Profile, kernel.Roots()...)
	if !errors.Is(err, kernel.ErrNotFound) {
		return err
	}
	name := umlPackage
	if s.Profile == kernel.QEMU {
		name, err = s.getKernel(ctx)
	} else {
		err = s.getPackage(ctx, name)
	}
	if err != nil {
		return err
	}
	if _, err := kernel.Find(s.Profile, kernel.Roots()...); err != nil {
		return fmt.Errorf("package %s: %w", name, err)
	}
	return nil
}

// getPackage installs a package, or unpacks it if that is not allowed.
func (s *Setup) getPackage(ctx context.Context, name string) error {
	apt, cache, err := s.apt(name)
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 && !s.Unpack {
		return apt.Install(ctx, name)
	}
	return apt.Unpack(ctx, filepath.Join(cache, name), true, nil, name)
}

// getKernel unpacks the distribution's kernel. It is not installed: this
// machine is not to boot it.
func (s *Setup) getKernel(ctx context.Context) (string, error) {
	apt, cache, err := s.apt(kernelPackage)
	if err != nil {
		return "", err
	}
	name, err := apt.Resolve(ctx, kernelPackage, kernelPattern)
	if err != nil {
		return "", err
	}
	return name, apt.Unpack(ctx, filepath.Join(cache, name), false, s.index, name)
}

func (s *Setup) apt(want string) (*packages.Apt, string, error) {
	if runtime.GOARCH != "amd64" {
		return nil, "", fmt.Errorf("the packages for the lab are those of amd64, and this is %s: give a kernel of your own with --kernel and --modules-dir", runtime.GOARCH)
	}
	if err := packages.Available(); err != nil {
		return nil, "", fmt.Errorf("%s is missing, and %w: install what it holds some other way, or give a kernel of your own with --kernel and --modules-dir", want, err)
	}
	cache, err := kernel.CacheDir()
	if err != nil {
		return nil, "", fmt.Errorf("directory to unpack packages into: %w", err)
	}
	return &packages.Apt{Talk: s.Talk, Private: filepath.Join(cache, ".apt")}, cache, nil
}

// index makes the index of the module trees of a package just unpacked, which the
// package's script would make when it is installed.
func (s *Setup) index(root string) error {
	trees, err := filepath.Glob(filepath.Join(root, "lib/modules/*"))
	if err == nil && len(trees) == 0 {
		trees, err = filepath.Glob(filepath.Join(root, "usr/lib/modules/*"))
	}
	if err != nil {
		return err
	}
	for _, tree := range trees {
		fmt.Fprintf(s.Talk, "indexing the modules of %s\n", filepath.Base(tree))
		// With depmod modprobe works in the lab, too; it takes the tree's root.
		base := filepath.Dir(filepath.Dir(filepath.Dir(tree)))
		if depmod := findDepmod(); depmod != "" && base == root {
			cmd := exec.Command(depmod, "--basedir", base, filepath.Base(tree))
			cmd.Stdout, cmd.Stderr = s.Talk, s.Talk
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("depmod: %w", err)
			}
			continue
		}
		if err := kmod.WriteIndex(tree); err != nil {
			return err
		}
	}
	return nil
}

// findDepmod finds depmod, which is not in the PATH of an ordinary user.
func findDepmod() string {
	if path, err := exec.LookPath("depmod"); err == nil {
		return path
	}
	for _, path := range []string{"/usr/sbin/depmod", "/sbin/depmod"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// boot boots the machine once, with the modules that a lab has, for a command that
// does next to nothing.
func (s *Setup) boot(ctx context.Context) (*Report, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.Talk, "booting the machine %s\n", s.Profile)
	report, err := Run(ctx, &Config{
		Profile: s.Profile, Kernel: s.Kernel,
		Args: []string{program, "--version"}, Dir: "/", Env: os.Environ(),
		Hosts: 2, On: job.InitialNamespace, Modules: DefaultModules(),
		Timeout: time.Minute,
		Stdout:  io.Discard, Stderr: s.Talk,
	})
	if err == nil && report.Status != 0 {
		err = fmt.Errorf("%s --version ended with status %d in it", program, report.Status)
	}
	return report, err
}
