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
	"slices"
	"strings"
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
	Version string       // of the kernel to find or get; empty: any, the distribution's own
	Unpack  bool         // install nothing, even as root
	Talk    io.Writer    // takes what is done, and what the package system says
}

// The packages that a profile needs.
const (
	umlPackage    = "user-mode-linux"
	qemuPackage   = "qemu-system-x86"
	kernelPackage = "linux-image-amd64" // a meta-package
)

// kernelPattern are the names of the packages with a kernel, and its release: the plain
// builds, which have the modules, and no meta-packages, whose versions have two numbers.
var kernelPattern = regexp.MustCompile(`^linux-image-([0-9]+\.[0-9]+\.[0-9]+[0-9.+~-]*(?:\+deb[0-9.]+)?-amd64)$`)

// shortVersion are the numbers of a release that tell kernels from their updates.
var shortVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+`)

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
		return s.checkGiven()
	}
	found, err := kernel.Find(s.Profile, s.Version, kernel.Roots()...)
	if err == nil {
		s.uncompress(found.Path)
		return nil
	}
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
	if _, err := kernel.Find(s.Profile, s.Version, kernel.Roots()...); err != nil {
		return fmt.Errorf("package %s: %w", name, err)
	}
	return nil
}

// checkGiven refuses a kernel of the user's that cannot be a lab. A module tree
// without an index gets one.
func (s *Setup) checkGiven() error {
	err := s.Kernel.Check(s.Profile)
	if !errors.Is(err, kernel.ErrNoIndex) {
		return err
	}
	if err := s.index(s.Kernel.Modules); err != nil {
		return err
	}
	return s.Kernel.Check(s.Profile)
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

// getKernel unpacks a kernel of the distribution: its own, or the newest of a version. It
// is not installed: this machine is not to boot it.
func (s *Setup) getKernel(ctx context.Context) (string, error) {
	apt, cache, err := s.apt(kernelPackage)
	if err != nil {
		return "", err
	}
	var name string
	if s.Version == "" {
		name, err = apt.Resolve(ctx, kernelPackage, kernelPattern)
	} else {
		name, err = s.findKernel(ctx, apt)
	}
	if err != nil {
		return "", err
	}
	return name, apt.Unpack(ctx, filepath.Join(cache, name), false, s.finishKernel, name)
}

// findKernel finds the package with the newest kernel of the version.
func (s *Setup) findKernel(ctx context.Context, apt *packages.Apt) (string, error) {
	release := func(name string) string { return kernelPattern.FindStringSubmatch(name)[1] }
	return apt.Search(ctx, "linux-image-", func(names []string) (string, error) {
		var known []string
		best := ""
		for _, name := range names {
			if !kernelPattern.MatchString(name) {
				continue
			}
			known = append(known, shortVersion.FindString(release(name)))
			if kernel.HasVersion(release(name), s.Version) && (best == "" || kernel.CompareReleases(release(name), release(best)) > 0) {
				best = name
			}
		}
		if best == "" {
			slices.SortFunc(known, kernel.CompareReleases)
			return "", fmt.Errorf("no kernel %s in the lists of this system's package sources, only %s", s.Version, strings.Join(slices.Compact(known), ", "))
		}
		return best, nil
	})
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

// finishKernel does for a package just unpacked below root what its script would do when
// it is installed, the index of the module tree, and lets it boot faster.
func (s *Setup) finishKernel(root string) error {
	for _, pattern := range []string{"lib/modules/*", "usr/lib/modules/*"} {
		trees, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, tree := range trees {
			if err := s.finishTree(tree); err != nil {
				return err
			}
		}
	}
	images, err := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	if err != nil {
		return err
	}
	for _, image := range images {
		s.uncompress(image)
	}
	return nil
}

// finishTree makes the index of a module tree, and uncompresses the modules that labs load,
// which the guest would do far slower.
func (s *Setup) finishTree(tree string) error {
	if err := s.index(tree); err != nil {
		return err
	}
	t, err := kmod.Open(os.DirFS(tree))
	if err != nil {
		return err
	}
	names := slices.Concat(kernel.Modules(s.Profile), labModules, DefaultModules(),
		[]string{dummyModule, virtioModule, checksums, adapterModule, rdmaModule})
	changed, err := t.Uncompress(tree, slices.DeleteFunc(names, func(name string) bool { return !t.Has(name) })...)
	if err != nil || !changed {
		return err
	}
	return s.index(tree)
}

// index makes the index of a module tree.
func (s *Setup) index(tree string) error {
	fmt.Fprintf(s.Talk, "indexing the modules of %s\n", filepath.Base(tree))
	// With depmod modprobe works in the lab, too. It finds trees by their release below
	// a root, if they are where it looks.
	if depmod := findDepmod(); depmod != "" && filepath.Base(filepath.Dir(tree)) == "modules" {
		cmd := exec.Command(depmod, "--basedir", filepath.Join(tree, "../../.."), filepath.Base(tree))
		cmd.Stdout, cmd.Stderr = s.Talk, s.Talk
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("depmod: %w", err)
		}
		if _, err := os.Stat(filepath.Join(tree, "modules.dep")); err == nil {
			return nil
		}
	}
	return kmod.WriteIndex(tree)
}

// uncompress uncompresses a kernel image that setup unpacked. It boots without it, too.
func (s *Setup) uncompress(image string) {
	cache, err := kernel.CacheDir()
	if err != nil || s.Profile != kernel.QEMU || !inside(image, cache) {
		return
	}
	if err := kernel.Uncompress(image); err != nil {
		fmt.Fprintf(s.Talk, "the kernel stays compressed and boots slower: %v\n", err)
	}
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
		Profile: s.Profile, Kernel: s.Kernel, KernelVersion: s.Version,
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
