package packages

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A system is what the programs of the package system do in a test: scripts that
// log what they are called with.
type system struct {
	t   *testing.T
	dir string
	apt Apt
	log bytes.Buffer
}

func newSystem(t *testing.T, scripts map[string]string) *system {
	s := &system{t: t, dir: t.TempDir()}
	s.apt = Apt{Talk: &s.log, Private: filepath.Join(s.dir, "private")}
	for name, text := range scripts {
		text = "#!/bin/sh\nfor last; do :; done\necho " + name + " \"$*\" >> " + s.dir + "/calls\n" + text
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", s.dir+":"+os.Getenv("PATH"))
	return s
}

// calls lists what was called, without options.
func (s *system) calls() []string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var calls []string
	for line := range strings.Lines(string(b)) {
		calls = append(calls, regexp.MustCompile(` --\S+`).ReplaceAllString(strings.TrimSpace(line), ""))
	}
	return calls
}

// policy answers apt-cache once a package is known.
const policy = `echo "$last:
  Installed: (none)
  Candidate: 1:2.0-3
  Version table:"
`

func TestInstallUpdatesTheListsOnlyIfItMust(t *testing.T) {
	s := newSystem(t, map[string]string{"apt-cache": policy, "apt-get": ""})
	if err := s.apt.Install(t.Context(), "linux"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"apt-cache policy linux", "apt-get install linux"}, s.calls()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !strings.Contains(s.log.String(), "installing linux 1:2.0-3\n") {
		t.Errorf("it says %q, not what it does", &s.log)
	}

	s = newSystem(t, map[string]string{
		"apt-cache": `test -e "$0.updated" || exit 0` + "\n" + policy,
		"apt-get":   `case "$*" in *update) touch "$(dirname "$0")/apt-cache.updated";; esac`,
	})
	if err := s.apt.Install(t.Context(), "linux"); err != nil {
		t.Fatal(err)
	}
	want := []string{"apt-cache policy linux", "apt-get update", "apt-cache policy linux", "apt-get install linux"}
	if diff := cmp.Diff(want, s.calls()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAMissingPackageIsNamed(t *testing.T) {
	for name, script := range map[string]string{"unknown": "", "without a candidate": `echo "linux:
  Candidate: (none)"`} {
		s := newSystem(t, map[string]string{"apt-cache": script, "apt-get": ""})
		err := s.apt.Install(t.Context(), "linux")
		missing, ok := errors.AsType[*Missing](err)
		if !ok || missing.Package != "linux" || !strings.Contains(err.Error(), "no package linux") {
			t.Errorf("%s: error %v, want that the package is missing", name, err)
		}
	}
}

func TestAFailureNamesTheProgram(t *testing.T) {
	s := newSystem(t, map[string]string{"apt-cache": policy, "apt-get": `case "$*" in *install*) echo "E: no network" >&2; exit 100;; esac`})
	err := s.apt.Install(t.Context(), "linux")
	if err == nil || !strings.Contains(err.Error(), "apt-get install: exit status 100") || !strings.Contains(s.log.String(), "E: no network") {
		t.Errorf("error %v, and it said %q", err, &s.log)
	}
}

func TestUnpackLeavesAllOrNothing(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skipf("%v: it makes the package of this test", err)
	}
	debs := t.TempDir()
	for _, name := range []string{"linux", "library"} {
		root := filepath.Join(debs, name)
		if err := os.MkdirAll(filepath.Join(root, "DEBIAN"), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{
			"DEBIAN/control": "Package: " + name + "\nVersion: 1\nArchitecture: all\nMaintainer: me <me@example.com>\nDescription: a test\n",
			name:             "file of " + name,
		} {
			if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command("dpkg-deb", "--build", root).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	s := newSystem(t, map[string]string{
		"apt-cache": policy,
		"apt-get": `case "$*" in
*simulate*) echo "Inst library (4-5 Debian:12 [amd64])
Inst linux [1.0-1] (1:2.0-3 Debian:12 [amd64])
Conf linux (1:2.0-3 Debian:12 [amd64])";;
*download*) cp ` + debs + `/*.deb .;;
esac`,
	})
	dir := filepath.Join(s.dir, "cache", "linux")
	broken := errors.New("broken")
	if err := s.apt.Unpack(t.Context(), dir, true, func(string) error { return broken }, "linux"); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "cache", "*")); len(left) > 0 {
		t.Errorf("a failure left %v", left)
	}
	for range 2 { // again is no error
		if err := s.apt.Unpack(t.Context(), dir, true, nil, "linux"); err != nil {
			t.Fatal(err)
		}
	}
	if calls := s.calls(); calls[len(calls)-1] != "apt-get download linux=1:2.0-3 library=4-5" {
		t.Errorf("it called %q", calls)
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "cache", "*", "*"))
	if diff := cmp.Diff([]string{dir + "/library", dir + "/linux"}, files); err != nil || diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if hidden, _ := filepath.Glob(filepath.Join(s.dir, "cache", ".*")); len(hidden) > 0 {
		t.Errorf("it left %v", hidden)
	}
}

func TestResolveFindsWhatAMetaPackageStandsFor(t *testing.T) {
	s := newSystem(t, map[string]string{"apt-get": "", "apt-cache": `case "$*" in
*depends*) echo "linux-image-amd64
  Depends: initramfs-tools
  Depends: linux-image-6.1.0-31-amd64";;
*) ` + policy + `;;
esac`})
	got, err := s.apt.Resolve(t.Context(), "linux-image-amd64", regexp.MustCompile(`^linux-image-[0-9]`))
	if err != nil || got != "linux-image-6.1.0-31-amd64" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := s.apt.Resolve(t.Context(), "linux-image-amd64", regexp.MustCompile(`^nothing`)); err == nil || !strings.Contains(err.Error(), "^nothing") {
		t.Errorf("error %v", err)
	}
}
