package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWritablePlacesAreRealAndNotInEachOther(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"a/b/c", "a-b", "d"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a/b", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	got, err := resolveWritable([]string{"link/c", "a", "a-b", "/", dir + "/a/b", "d/../d", "d"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{dir + "/a", dir + "/a-b", dir + "/d"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for path, want := range map[string]string{"nosuch": "no such file", "/proc/sys": "own kernel", "/dev": "own kernel", "/sys": "own kernel", "/dev/shm": "own kernel"} {
		if _, err := resolveWritable([]string{path}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

func TestATestWritesWhereItsFlagsSay(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, nil},
		{[]string{"ls"}, nil},
		{[]string{in("b001/pkg.test"), "-test.v", "-test.run=X"}, []string{in("b001")}},
		{[]string{"./pkg.test", "-test.cpuprofile=cpu"}, []string{"."}},
		{[]string{"p.test", "-test.coverprofile=" + in("cover"), "--test.gocoverdir", in("new/dir"), "-test.trace"}, []string{in("cover"), in("new/dir")}},
		{[]string{"p.test", "-test.run", "X", "-test.memprofile", in("mem"), "-cpuprofile=" + in("other"), "test.trace=" + in("operand")}, []string{in("mem")}},
	} {
		got, err := TestWritable(test.args, "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", test.args, diff)
		}
	}
	for name, isDir := range map[string]bool{"cover": false, "new/dir": true, "mem": false} {
		if info, err := os.Stat(in(name)); err != nil || info.IsDir() != isDir {
			t.Errorf("%s was not made: %v", name, err)
		}
	}
	for _, name := range []string{"other", "operand"} {
		if _, err := os.Stat(in(name)); err == nil {
			t.Errorf("%s was made, which is not a flag of the test", name)
		}
	}
	if _, err := TestWritable([]string{"p.test", "-test.trace=" + in("no/such/dir")}, ""); err == nil || !strings.Contains(err.Error(), "-test.trace") {
		t.Errorf("error %v, want one that names the flag", err)
	}
}
