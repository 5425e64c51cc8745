// Package kernel finds the kernels that a lab boots: installed ones, and those
// that package setup unpacked into the user's cache directory.
package kernel

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
// "/", that has all it needs. Roots are tried in order. With a version, such as
// "6.12", only kernels whose release begins with it count.
func Find(p Profile, version string, roots ...string) (Image, error) {
	var reasons, others []string
	for _, root := range roots {
		for _, image := range candidates(p, root) {
			if !HasVersion(image.Release, version) {
				others = append(others, image.Release)
				continue
			}
			err := image.Check(p)
			if err == nil {
				return image, nil
			}
			reasons = append(reasons, err.Error())
		}
	}
	err := fmt.Errorf("%w for the profile %s", ErrNotFound, p)
	if version != "" {
		err = fmt.Errorf("%w that has the version %s", err, version)
	}
	switch {
	case len(reasons) > 0:
		err = fmt.Errorf("%w: %s", err, strings.Join(reasons, "; "))
	case len(others) > 0:
		err = fmt.Errorf("%w, only %s", err, strings.Join(others, ", "))
	}
	return Image{}, err
}

// HasVersion tells whether a release is of the version, all of it or the numbers that it
// begins with: 6.1.0-57-amd64 has the version 6.1, and 6.12.0 has not. Any release
// has the version "".
func HasVersion(release, version string) bool {
	rest, ok := strings.CutPrefix(release, version)
	return ok && (version == "" || rest == "" || strings.ContainsRune(".-+", rune(rest[0])))
}

// IsVersion tells whether s, which names a kernel, is a version and no path.
func IsVersion(s string) bool { return versionPattern.MatchString(s) }

var versionPattern = regexp.MustCompile(`^[0-9]+(\.[0-9][^/\s]*)?$`)

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
		paths, _ := filepath.Glob(filepath.Join(root, "boot", compressed+"*"))
		for _, path := range paths {
			release := strings.TrimPrefix(filepath.Base(path), compressed)
			images = append(images, Image{preferUncompressed(path), modulesOf(root, release), release})
		}
		// As RPM packages have it.
		for _, dir := range moduleDirs {
			paths, _ := filepath.Glob(filepath.Join(root, dir, "*", vmlinuz))
			for _, path := range paths {
				tree := filepath.Dir(path)
				images = append(images, Image{path, tree, filepath.Base(tree)})
			}
		}
	}
	slices.SortStableFunc(images, func(a, b Image) int { return CompareReleases(b.Release, a.Release) })
	return images
}

// The names of kernel images: in /boot, before the release, and in a module tree.
const (
	compressed = "vmlinuz-"
	vmlinuz    = "vmlinuz"
)

// moduleDirs are where module trees are. Distributions that merged /usr have them
// there, and a package may have been unpacked with either path.
var moduleDirs = []string{"lib/modules", "usr/lib/modules"}

// modulesOf is the module tree of a release.
func modulesOf(root, release string) string {
	for _, dir := range moduleDirs {
		tree := filepath.Join(root, dir, release)
		if _, err := os.Stat(tree); err == nil {
			return tree
		}
	}
	return filepath.Join(root, moduleDirs[0], release)
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

// Modules are the modules without which a kernel is no lab of the profile.
func Modules(p Profile) []string { return slices.Clone(needed[p]) }

// TransportModules are the modules that a guest of the profile needs before it
// sees the host's files.
func TransportModules(p Profile) []string {
	if p == QEMU {
		return slices.Clone(transportModules)
	}
	return nil
}

// ErrNoIndex is the error of [Image.Check] for a module tree as a package brings it, before
// depmod(8) has made its index.
var ErrNoIndex = errors.New("it has no modules.dep, which depmod(8) and 'rds-lab setup' make")

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
	if errors.Is(err, fs.ErrNotExist) && isTree(i.Modules) {
		return fmt.Errorf("module tree %s of %s: %w", i.Modules, i.Path, ErrNoIndex)
	}
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

// Given is a kernel that the user names, with its module tree: by its file, or by
// a directory that a package with both was unpacked into. A file that lies in its
// module tree, as RPM packages have it, brings the tree along. Whether it has what a
// lab needs is left to [Image.Check].
func Given(p Profile, path, modules string) (Image, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Image{}, err
	}
	image := Image{Path: path, Modules: modules}
	switch dir := filepath.Dir(path); {
	case info.IsDir():
		found := candidates(p, path)
		if len(found) == 0 {
			return Image{}, fmt.Errorf("no kernel for the profile %s is in the directory: want its file, or a directory with boot/vmlinuz-VERSION or lib/modules/VERSION/vmlinuz", p)
		}
		image = found[0]
		if modules != "" {
			image.Modules = modules
		}
	case modules == "" && filepath.Base(path) == vmlinuz && isTree(dir):
		image.Modules = dir
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
	if image.Modules != "" {
		image.Release = filepath.Base(image.Modules)
	}
	if p == QEMU && !isKernel(image.Path) {
		return Image{}, fmt.Errorf("%s is neither a Linux boot image for x86 nor an ELF file", image.Path)
	}
	if p == UML {
		release, err := umlRelease(image.Path)
		if err != nil {
			return Image{}, fmt.Errorf("not a User-Mode Linux: --version: %w", err)
		}
		image.Release = release
	}
	return image, nil
}

// isKernel tells whether a file begins as the kernels that a PC boots.
func isKernel(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, magicAt+len(magic))
	n, _ := io.ReadFull(f, b)
	return string(b[magicAt:]) == magic || n >= 4 && string(b[:4]) == elf.ELFMAG
}

// isTree tells whether a directory is a module tree, with an index or without.
func isTree(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "kernel"))
	return err == nil && info.IsDir()
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
