// Package kernel finds the kernels that a lab boots: installed ones, and those
// that package setup unpacked into the user's cache directory.
package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdskit/rdskit/internal/lab/kmod"
)

// A Profile is a kind of virtual machine.
type Profile int

// The profiles.
const (
	UML  Profile = iota // User-Mode Linux: a process, one processor, RDS over TCP
	QEMU                // a whole PC, with a kernel as distributions ship it
)

var profileNames = [...]string{UML: "uml", QEMU: "qemu"}

// Profiles lists all profiles.
func Profiles() []Profile { return []Profile{UML, QEMU} }

// String is the profile's name.
func (p Profile) String() string {
	if p < 0 || int(p) >= len(profileNames) {
		return fmt.Sprintf("Profile(%d)", int(p))
	}
	return profileNames[p]
}

// ParseProfile finds a profile by its name.
func ParseProfile(name string) (Profile, error) {
	i := slices.Index(profileNames[:], name)
	if i < 0 {
		return 0, fmt.Errorf("no profile %q: want one of %s", name, strings.Join(profileNames[:], ", "))
	}
	return Profile(i), nil
}

// An Image is a kernel with its modules.
type Image struct {
	Path    string
	Modules string // directory with modules.dep; empty if all is built in
	Release string // as uname -r prints it; empty if unknown
}

// String names the kernel for people.
func (i Image) String() string {
	if i.Release == "" {
		return i.Path
	}
	return fmt.Sprintf("%s (%s)", i.Release, i.Path)
}

// ErrNotFound is the error of Find when the machine has no kernel for the
// profile.
var ErrNotFound = errors.New("no kernel found")

// Find finds the newest kernel for the profile below the given roots, such as
// "/", that has all it needs. Roots are tried in order.
func Find(p Profile, roots ...string) (Image, error) {
	var reasons []string
	for _, root := range roots {
		for _, image := range candidates(p, root) {
			err := image.Check(p)
			if err == nil {
				return image, nil
			}
			reasons = append(reasons, err.Error())
		}
	}
	if len(reasons) > 0 {
		return Image{}, fmt.Errorf("%w for the profile %s: %s", ErrNotFound, p, strings.Join(reasons, "; "))
	}
	return Image{}, fmt.Errorf("%w for the profile %s", ErrNotFound, p)
}

// candidates lists the kernels below a root, newest first.
func candidates(p Profile, root string) []Image {
	var images []Image
	switch p {
	case UML:
		path := filepath.Join(root, "usr/bin/linux.uml")
		release, err := umlRelease(path)
		if err != nil {
			return nil
		}
		images = append(images, Image{path, filepath.Join(root, "usr/lib/uml/modules", release), release})
	case QEMU:
		// A pattern without a star in the wrong place has no error.
		paths, _ := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
		for _, path := range paths {
			release := strings.TrimPrefix(filepath.Base(path), "vmlinuz-")
			images = append(images, Image{path, modulesOf(root, release), release})
		}
	}
	slices.SortFunc(images, func(a, b Image) int { return CompareReleases(b.Release, a.Release) })
	return images
}

// modulesOf is the module tree of a release. Distributions that merged /usr
// have it there, and a package may have been unpacked with either path.
func modulesOf(root, release string) string {
	for _, dir := range []string{"lib/modules", "usr/lib/modules"} {
		tree := filepath.Join(root, dir, release)
		if _, err := os.Stat(tree); err == nil {
			return tree
		}
	}
	return filepath.Join(root, "lib/modules", release)
}

// releasePattern is what a kernel's release begins with.
var releasePattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\S*$`)

// umlRelease asks a User-Mode Linux for its release.
func umlRelease(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", err
	}
	release := strings.TrimSpace(string(out))
	if !releasePattern.MatchString(release) {
		return "", fmt.Errorf("%.40q is not the release of a kernel", release)
	}
	return release, nil
}

// needed are the modules without which a lab is none.
var needed = map[Profile][]string{
	UML:  {"overlay", "ipv6", "veth", "bridge", "sch_netem", "rds", "rds_tcp"},
	QEMU: append(slices.Clone(transportModules), "overlay", "ipv6", "veth", "bridge", "sch_netem", "rds", "rds_tcp"),
}

// transportModules bring the guest of a PC its files and its lines.
var transportModules = []string{"virtio_pci", "virtio_console", "9p", "9pnet_virtio"}

// TransportModules are the modules that a guest of the profile needs before it
// sees the host's files.
func TransportModules(p Profile) []string {
	if p == QEMU {
		return slices.Clone(transportModules)
	}
	return nil
}

// Check tells what the kernel lacks for the profile.
func (i Image) Check(p Profile) error {
	f, err := os.Open(i.Path)
	if err != nil {
		return err
	}
	f.Close()
	if i.Modules == "" {
		return nil // nothing to look at
	}
	tree, err := kmod.Open(os.DirFS(i.Modules))
	if err != nil {
		return fmt.Errorf("module tree %s of %s: %w", i.Modules, i.Path, err)
	}
	var missing []string
	for _, m := range needed[p] {
		if !tree.Has(m) {
			missing = append(missing, m)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("module tree %s of %s lacks %s", i.Modules, i.Path, strings.Join(missing, ", "))
	}
	return nil
}

// Given is a kernel that the user names.
func Given(p Profile, path, modules string) (Image, error) {
	image := Image{Path: path, Modules: modules}
	if modules != "" {
		image.Release = filepath.Base(modules)
	}
	for _, s := range []*string{&image.Path, &image.Modules} {
		if *s == "" {
			continue
		}
		abs, err := filepath.Abs(*s)
		if err != nil {
			return Image{}, err
		}
		// The guest looks it up in a tree of its own.
		if *s, err = filepath.EvalSymlinks(abs); err != nil {
			return Image{}, err
		}
	}
	if p == UML {
		release, err := umlRelease(image.Path)
		if err != nil {
			return Image{}, fmt.Errorf("not a User-Mode Linux: --version: %w", err)
		}
		image.Release = release
	}
	return image, image.Check(p)
}

// CompareReleases orders kernel releases: numbers by value, the rest by
// letters.
func CompareReleases(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a = run(a)
		y, b = run(b)
		n, errN := strconv.ParseUint(x, 10, 64)
		m, errM := strconv.ParseUint(y, 10, 64)
		c := strings.Compare(x, y)
		if errN == nil && errM == nil {
			c = cmp.Compare(n, m)
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// run splits off the digits, or the other characters, that a string begins
// with.
func run(s string) (first, rest string) {
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	i := 1
	for i < len(s) && digit(s[i]) == digit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}
