// Package packages gets packages of a Debian-like distribution: installs them, or
// unpacks them into a directory of the user's, which needs no rights.
package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// An Apt gets packages with apt-get(8).
type Apt struct {
	// Talk takes what apt-get says and what is done.
	Talk io.Writer
	// Private is a directory for package lists of the user's own, for
	// users who may not update those of the system and find them empty or
	// out of date.
	Private string

	private bool // the private lists are in use
}

// A Missing error names a package that the distribution does not have.
type Missing struct{ Package string }

func (e *Missing) Error() string {
	return fmt.Sprintf("no package %s in the lists of this system's package sources", e.Package)
}

// Available tells whether this system has apt-get and dpkg-deb.
func Available() error {
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("this system has no %s", program)
		}
	}
	return nil
}

// Install installs packages with what they depend on. It takes root.
func (a *Apt) Install(ctx context.Context, names ...string) error {
	return a.updating(ctx, func() error {
		for _, name := range names {
			version, err := a.candidate(ctx, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Talk, "installing %s %s\n", name, version)
		}
		args := append([]string{"install", "--yes", "--no-install-recommends"}, names...)
		return a.get(ctx, "", args...)
	})
}

// Unpack downloads packages and unpacks them into dir, which is there
// afterwards, whole, or not at all. With all, packages that they
// depend on and that are not installed come along. Nothing is installed and no script of a
// package runs.
func (a *Apt) Unpack(ctx context.Context, dir string, all bool, finish func(dir string) error, names ...string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// Beside its destination, so that it can be renamed there.
	staging, err := os.MkdirTemp(filepath.Dir(dir), ".unpacking-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	debs, tree := filepath.Join(staging, "debs"), filepath.Join(staging, "tree")
	for _, d := range []string{debs, tree} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if err := a.updating(ctx, func() error { return a.download(ctx, debs, all, names) }); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	for _, file := range files {
		fmt.Fprintf(a.Talk, "unpacking %s\n", filepath.Base(file))
		if err := a.run(ctx, "", "dpkg-deb", "--extract", file, tree); err != nil {
			return err
		}
	}
	if finish != nil {
		if err := finish(tree); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(tree, dir)
}

// download puts the files of packages into dir.
func (a *Apt) download(ctx context.Context, dir string, all bool, names []string) error {
	var want []string
	for _, name := range names {
		version, err := a.candidate(ctx, name)
		if err != nil {
			return err
		}
		want = append(want, name+"="+version)
	}
	if all {
		out, err := a.output(ctx, "apt-get", append([]string{"install", "--simulate", "--no-install-recommends"}, names...)...)
		if err != nil {
			return err
		}
		for _, p := range simulated(out) {
			if !slices.Contains(want, p) {
				want = append(want, p)
			}
		}
	}
	fmt.Fprintf(a.Talk, "downloading %s\n", strings.ReplaceAll(strings.Join(want, ", "), "=", " "))
	return a.get(ctx, dir, append([]string{"download"}, want...)...)
}

var instLine = regexp.MustCompile(`(?m)^Inst (\S+) (?:\[\S+\] )?\((\S+) `)

// simulated lists the packages that a simulated installation installs, as
// name=version.
func simulated(out []byte) []string {
	var all []string
	for _, m := range instLine.FindAllSubmatch(out, -1) {
		all = append(all, fmt.Sprintf("%s=%s", m[1], m[2]))
	}
	return all
}

// Resolve finds the package that a meta-package stands for: that of its
// dependencies whose name matches the pattern.
func (a *Apt) Resolve(ctx context.Context, meta string, pattern *regexp.Regexp) (string, error) {
	var found string
	err := a.updating(ctx, func() error {
		if _, err := a.candidate(ctx, meta); err != nil {
			return err
		}
		out, err := a.output(ctx, "apt-cache", "depends", "--important", meta)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(out)) {
			name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: ")
			if ok && pattern.MatchString(name) {
				found = name
				return nil
			}
		}
		return fmt.Errorf("package %s depends on none like %s", meta, pattern)
	})
	return found, err
}

// Search hands the names of all packages that begin with prefix to choose, and returns what
// that chooses among them. If there is nothing to choose the package lists are updated once.
func (a *Apt) Search(ctx context.Context, prefix string, choose func(names []string) (string, error)) (string, error) {
	var found string
	err := a.updating(ctx, func() error {
		out, err := a.output(ctx, "apt-cache", "pkgnames", prefix)
		if err != nil {
			return err
		}
		found, err = choose(strings.Fields(string(out)))
		return err
	})
	return found, err
}

var candidateLine = regexp.MustCompile(`(?m)^\s+Candidate: (\S+)$`)

// candidate is the version of a package that would be installed.
func (a *Apt) candidate(ctx context.Context, name string) (string, error) {
	out, err := a.output(ctx, "apt-cache", "policy", name)
	if err != nil {
		return "", err
	}
	m := candidateLine.FindSubmatch(out)
	if m == nil || string(m[1]) == "(none)" {
		return "", &Missing{name}
	}
	return string(m[1]), nil
}

// updating does something that needs the package lists, and if it fails once
// more after an update.
func (a *Apt) updating(ctx context.Context, do func() error) error {
	err := do()
	if err == nil || a.private || ctx.Err() != nil {
		return err
	}
	if uerr := a.update(ctx); uerr != nil {
		return errors.Join(err, uerr)
	}
	return do()
}

// update updates the package lists: those of the system if that is allowed,
// else private ones.
func (a *Apt) update(ctx context.Context) error {
	fmt.Fprintln(a.Talk, "updating the package lists")
	if os.Geteuid() != 0 {
		a.private = true
		for _, d := range []string{"lists/partial", "cache/archives/partial"} {
			if err := os.MkdirAll(filepath.Join(a.Private, d), 0o755); err != nil {
				return err
			}
		}
	}
	return a.get(ctx, "", "update")
}

// options puts apt's settings before the command.
func (a *Apt) options(command ...string) []string {
	options := []string{"--quiet", "--option=DPkg::Lock::Timeout=120", "--option=APT::Sandbox::User=root", "--option=Dpkg::Use-Pty=0"}
	if a.private {
		options = append(options,
			"--option=Dir::State::Lists="+filepath.Join(a.Private, "lists"),
			"--option=Dir::Cache="+filepath.Join(a.Private, "cache"),
		)
	}
	return append(options, command...)
}

func (a *Apt) get(ctx context.Context, dir string, args ...string) error {
	return a.run(ctx, dir, "apt-get", a.options(args...)...)
}

// run runs a program that talks.
func (a *Apt) run(ctx context.Context, dir, name string, args ...string) error {
	cmd := command(ctx, name, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = a.Talk, a.Talk
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, verb(args), err)
	}
	return nil
}

// output runs a program for what it prints.
func (a *Apt) output(ctx context.Context, name string, args ...string) ([]byte, error) {
	args = a.options(args...)
	cmd := command(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, verb(args), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// command is a program of the package system, in a language that can be parsed.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	return cmd
}

// verb is the command among the arguments of an apt program.
func verb(args []string) string {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			return arg
		}
	}
	return ""
}
