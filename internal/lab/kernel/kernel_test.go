package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReleasesAreOrderedByTheirNumbers(t *testing.T) {
	want := []string{"5.10.0-9-amd64", "6.1.0-9-amd64", "6.1.0-31-amd64", "6.1.0-31-cloud-amd64", "6.1.176", "6.12.0", "6.12.0-rc1", "10.0"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareReleases)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// makeTree makes a module tree that has the modules.
func makeTree(t *testing.T, dir string, modules []string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range modules {
		fmt.Fprintf(&b, "kernel/%s.ko:\n", m)
	}
	if err := os.WriteFile(filepath.Join(dir, "modules.dep"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func makeFile(t *testing.T, name, text string, perm os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
}

func TestFindTakesTheNewestKernelThatHasAllItNeeds(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, k := range []struct {
		root, release, tree string
		modules             []string
	}{
		{first, "6.1.0-9-amd64", "lib/modules", needed[QEMU]},
		{first, "6.1.0-31-amd64", "usr/lib/modules", needed[QEMU]},
		{first, "6.9.0-cloud-amd64", "lib/modules", []string{"overlay"}},
		{second, "6.12.0-amd64", "lib/modules", needed[QEMU]},
	} {
		makeFile(t, filepath.Join(k.root, "boot/vmlinuz-"+k.release), "", 0o644)
		makeTree(t, filepath.Join(k.root, k.tree, k.release), k.modules)
	}
	image, err := Find(QEMU, "", first, second)
	want := Image{filepath.Join(first, "boot/vmlinuz-6.1.0-31-amd64"), filepath.Join(first, "usr/lib/modules/6.1.0-31-amd64"), "6.1.0-31-amd64"}
	if err != nil || image != want {
		t.Errorf("%+v, %v; want %+v", image, err, want)
	}
	if _, err := Find(QEMU, "", t.TempDir()); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
}

func TestAReleaseHasTheVersionsThatItBeginsWith(t *testing.T) {
	for _, test := range []struct {
		release, version string
		want             bool
	}{
		{"6.1.0-57-amd64", "6.1", true},
		{"6.1.0-57-amd64", "6.1.0-57", true},
		{"6.1.0-57-amd64", "6", true},
		{"6.1.0-57-amd64", "", true},
		{"6.1.0-57-amd64", "6.1.0-5", false},
		{"6.12.117+deb12-amd64", "6.12.117", true},
		{"6.12.117+deb12-amd64", "6.1", false},
		{"6.1", "6.1", true},
		{"6.1", "6.1.0", false},
	} {
		if got := HasVersion(test.release, test.version); got != test.want {
			t.Errorf("HasVersion(%q, %q) is %t", test.release, test.version, got)
		}
	}
}

func TestAVersionIsNoPath(t *testing.T) {
	for s, want := range map[string]bool{"6": true, "6.12": true, "6.1.0-57-amd64": true, "6.12/vmlinuz": false, "./6.12": false, "vmlinuz": false, "": false, "6.": false} {
		if got := IsVersion(s); got != want {
			t.Errorf("IsVersion(%q) is %t", s, got)
		}
	}
}

func TestFindTakesAVersion(t *testing.T) {
	root := t.TempDir()
	for _, release := range []string{"6.1.0-9-amd64", "6.1.0-31-amd64", "6.12.0-amd64"} {
		makeFile(t, filepath.Join(root, "boot/vmlinuz-"+release), "", 0o644)
		makeTree(t, filepath.Join(root, "lib/modules", release), needed[QEMU])
	}
	if image, err := Find(QEMU, "6.1", root); err != nil || image.Release != "6.1.0-31-amd64" {
		t.Errorf("%+v, %v", image, err)
	}
	_, err := Find(QEMU, "6.7", root)
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "version 6.7, only 6.12.0-amd64, 6.1.0-31-amd64") {
		t.Errorf("error %v, want ErrNotFound and what there is", err)
	}
}

// An RPM package has the image in the module tree, and no index.
func TestAnUnpackedRPMIsAKernel(t *testing.T) {
	root := t.TempDir()
	tree := filepath.Join(root, "lib/modules/5.15.0-uek")
	makeFile(t, filepath.Join(tree, "vmlinuz"), string(makeImage(nil)), 0o644)
	makeFile(t, filepath.Join(tree, "kernel/net/rds/rds.ko.xz"), "", 0o644)
	want := Image{filepath.Join(tree, "vmlinuz"), tree, "5.15.0-uek"}
	for _, path := range []string{root, want.Path} {
		image, err := Given(QEMU, path, "")
		if err != nil || image != want {
			t.Errorf("%s: %+v, %v; want %+v", path, image, err, want)
		}
		if err := image.Check(QEMU); !errors.Is(err, ErrNoIndex) {
			t.Errorf("error %v, want that there is no index", err)
		}
	}
	makeTree(t, tree, needed[QEMU])
	if image, err := Find(QEMU, "", root); err != nil || image != want {
		t.Errorf("%+v, %v; want %+v", image, err, want)
	}
	makeFile(t, filepath.Join(root, "text"), "no kernel", 0o644)
	if _, err := Given(QEMU, filepath.Join(root, "text"), tree); err == nil || !strings.Contains(err.Error(), "neither a Linux boot image") {
		t.Errorf("a text: error %v, want that it is no kernel", err)
	}
	if _, err := Given(QEMU, t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "boot/vmlinuz-VERSION") {
		t.Errorf("an empty directory: error %v, want what is looked for", err)
	}
}

func TestFindSaysWhatAKernelLacks(t *testing.T) {
	root := t.TempDir()
	makeFile(t, filepath.Join(root, "usr/bin/linux.uml"), "#!/bin/sh\necho 6.1.99\n", 0o755)
	tree := filepath.Join(root, "usr/lib/uml/modules/6.1.99")
	if _, err := Find(UML, "", root); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), tree) {
		t.Errorf("error %v, want ErrNotFound that names %s", err, tree)
	}
	makeTree(t, tree, []string{"overlay", "ipv6", "veth", "bridge", "rds"})
	if _, err := Find(UML, "", root); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "lacks sch_netem, rds_tcp") {
		t.Errorf("error %v, want ErrNotFound and what is missing", err)
	}
	makeTree(t, tree, needed[UML])
	if image, err := Find(UML, "", root); err != nil || image.Release != "6.1.99" {
		t.Errorf("%+v, %v", image, err)
	}
}

func TestAProgramThatIsNoKernelIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"#!/bin/sh\necho coreutils 9.1\n": "not the release of a kernel",
		"#!/bin/sh\nexit 3\n":             "exit status 3",
		"no program":                      "exec format error",
	} {
		path := filepath.Join(t.TempDir(), "linux")
		makeFile(t, path, text, 0o755)
		if _, err := Given(UML, path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestQEMURunsFromWhereItWasUnpacked(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("LD_LIBRARY_PATH", "/mine")
	root := t.TempDir()
	if p, err := FindQEMU(root); err == nil {
		t.Fatalf("%+v in an empty directory", p)
	}
	makeFile(t, filepath.Join(root, "usr/bin/qemu-system-x86_64"), "", 0o755)
	makeFile(t, filepath.Join(root, "usr/lib/x86_64-linux-gnu/qemu/module.so"), "", 0o644)
	p, err := FindQEMU(t.TempDir(), root)
	if err != nil {
		t.Fatal(err)
	}
	want := Program{
		Path: root + "/usr/bin/qemu-system-x86_64",
		Args: []string{"-L", root + "/usr/share/qemu", "-L", root + "/usr/share/seabios"},
		Env:  []string{"LD_LIBRARY_PATH=" + root + "/usr/lib/x86_64-linux-gnu:/mine", "QEMU_MODULE_DIR=" + root + "/usr/lib/x86_64-linux-gnu/qemu"},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestProfilesHaveNames(t *testing.T) {
	for _, p := range Profiles() {
		if got, err := ParseProfile(p.String()); got != p || err != nil {
			t.Errorf("%s is %s, %v", p, got, err)
		}
	}
	if s := Profile(7).String(); s != "Profile(7)" {
		t.Error(s)
	}
}
