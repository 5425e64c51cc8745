package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// write makes files with their directories; the texts are their contents.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func wantFile(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

func wantNoFile(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Lstat(name); !os.IsNotExist(err) {
		t.Errorf("%s is there: the write was real", name)
	}
}

func TestTheJobSeesTheHostsFilesAndWritesWhereItMay(t *testing.T) {
	needProfile(t, kernel.UML)
	top := t.TempDir() // below the directory for temporary files
	work := filepath.Join(top, "a place with  spaces", "grüße")
	elsewhere, given := filepath.Join(top, "elsewhere"), filepath.Join(top, "given")
	write(t, map[string]string{
		filepath.Join(work, "in"):           "working directory",
		filepath.Join(elsewhere, "in"):      "elsewhere",
		filepath.Join(elsewhere, "changed"): "before",
		filepath.Join(given, "in"):          "given",
		filepath.Join(top, "file"):          "before",
	})
	if err := os.Symlink(given, filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(elsewhere, "changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(os.Getenv("HOME"), ".rds-lab.test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	write(t, map[string]string{filepath.Join(home, "in"): "home"})

	const text = `
set -e
top=$1 home=$2
pwd
cat in ../../elsewhere/in "$home/in" link/in
# Real writes: the working directory, and what --write names.
echo real > out
mkdir -p deep/er
echo real > deep/er/out
mv in moved
ln -s moved symbolic
ln moved hard
chmod 640 moved
echo real > link/out
echo real > "$top/file"
# All others vanish.
for dir in "$top/elsewhere" "$home" /etc /usr/bin /var/tmp /tmp "$HOME" /dev/shm /run; do
	echo scratch > "$dir/rds-lab.test-scratch"
	test "$(cat "$dir/rds-lab.test-scratch")" = scratch
done
echo scratch > "$top/elsewhere/changed"
cat "$top/elsewhere/changed"
rm -r "$home"
! test -e "$home/in"
`
	r := &run{t: t, dir: work, args: []string{
		"run", "--write", "../../given", "--write", filepath.Join(top, "file"),
		"--", "sh", "-c", text, "sh", top, home,
	}}
	r.do().want(0, work+"\nworking directoryelsewherehomegivenscratch\n")

	for name, want := range map[string]string{
		"out": "real\n", "deep/er/out": "real\n", "moved": "working directory", "hard": "working directory",
		"symbolic": "working directory", "link/out": "real\n", "../../file": "real\n",
		"../../elsewhere/changed": "before",
	} {
		wantFile(t, filepath.Join(work, name), want)
	}
	wantNoFile(t, filepath.Join(work, "in"))
	wantFile(t, filepath.Join(home, "in"), "home")
	if info, err := os.Stat(filepath.Join(work, "moved")); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v; want what the job set", info.Mode(), err)
	}
	for _, dir := range []string{elsewhere, home, "/etc", "/usr/bin", "/var/tmp", "/tmp", os.Getenv("HOME"), "/dev/shm", "/run"} {
		wantNoFile(t, filepath.Join(dir, "rds-lab.test-scratch"))
	}
}

func TestTheWorkingDirectoryMayBeASymbolicLink(t *testing.T) {
	needProfile(t, kernel.UML)
	top := t.TempDir()
	real, link := filepath.Join(top, "real"), filepath.Join(top, "link")
	if err := os.Mkdir(real, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, dir: link, args: []string{"run", "--", "sh", "-c", "pwd; echo real > out"}}
	r.do().want(0, link+"\n")
	wantFile(t, filepath.Join(real, "out"), "real\n")
}

func TestADirectoryMayBeAnotherUsersAndReadOnly(t *testing.T) {
	needProfile(t, kernel.UML)
	if os.Geteuid() != 0 {
		t.Skip("only root can make a directory that is another user's: run it as root")
	}
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, map[string]string{filepath.Join(top, "file"): "root's"})
	secret := filepath.Join(top, "secret")
	if err := os.Mkdir(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, dir: top, cred: nobody, env: []string{"HOME=/nonexistent", "TMPDIR="}, args: []string{"run", "--", "sh", "-c",
		"cat file; id -u; { echo x > new; } 2>/dev/null && exit 1; { echo x > file; } 2>/dev/null && exit 2; ls secret 2>/dev/null && exit 3; echo x > /etc/new || exit 4; ip netns exec h2 ping -qc1 h1 > /dev/null"}}
	r.do().want(0, "root's0\n")
	wantFile(t, filepath.Join(top, "file"), "root's")
	wantNoFile(t, filepath.Join(top, "new"))
}

func TestTheRootAsWorkingDirectoryIsNotWritten(t *testing.T) {
	needProfile(t, kernel.UML)
	long(t)
	r := &run{t: t, dir: "/", args: []string{"run", "--", "sh", "-c", "pwd; echo scratch > rds-lab.test-scratch"}}
	r.do().want(0, "/\n")
	wantNoFile(t, "/rds-lab.test-scratch")
}

func TestAPathThatCannotBeWrittenIsRefused(t *testing.T) {
	for path, reason := range map[string]string{
		"/no/such/place": "no such file or directory",
		"/proc/self":     "belongs to the lab's own kernel",
		"/dev/null":      "belongs to the lab's own kernel",
		"":               "no such file or directory",
	} {
		rdsLab(t, "run", "--write", path, "--", "true").want(2, "").wantStderr(reason, strings.TrimRight(path, "/"))
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
