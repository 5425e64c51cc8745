package rdsinfo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeProc makes a /proc of processes that have sockets open.
func fakeProc(t *testing.T, comm map[string]string, sockets map[string][]string) string {
	t.Helper()
	proc := t.TempDir()
	for pid, name := range comm {
		fd := filepath.Join(proc, pid, "fd")
		if err := os.MkdirAll(fd, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "comm"), []byte(name+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		for n, target := range sockets[pid] {
			if err := os.Symlink(target, filepath.Join(fd, string('0'+rune(n)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return proc
}

func TestProcessesAreFoundByTheInodesOfTheirSockets(t *testing.T) {
	proc := fakeProc(t, map[string]string{"1": "init", "20": "db", "9": "db helper"}, map[string][]string{
		"20": {"socket:[77]", "pipe:[78]", "socket:[77]", "/dev/null"},
		"9":  {"socket:[77]", "socket:[x]", "socket:[79]"},
	})
	got, unseen, err := processes(proc)
	want := map[uint64][]Process{77: {{9, "db helper"}, {20, "db"}}, 79: {{9, "db helper"}}}
	if diff := cmp.Diff(want, got); err != nil || unseen != 0 || diff != "" {
		t.Errorf("unseen %d, %v (-want +got):\n%s", unseen, err, diff)
	}
}

// With hidepid=invisible there is no process of others, not even process 1.
func TestProcessesThatProcHidesAreTold(t *testing.T) {
	proc := fakeProc(t, map[string]string{"20": "db"}, map[string][]string{"20": {"socket:[77]"}})
	got, unseen, err := processes(proc)
	if err != nil || unseen == 0 || len(got) != 1 {
		t.Errorf("%v, unseen %d, %v", got, unseen, err)
	}
}

func TestProcessesThatMayNotBeLookedIntoAreCounted(t *testing.T) {
	proc := fakeProc(t, map[string]string{"1": "init", "20": "db"}, nil)
	if err := os.Chmod(filepath.Join(proc, "20", "fd"), 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		t.Skip("root may look into all")
	}
	if _, unseen, err := processes(proc); err != nil || unseen != 1 {
		t.Errorf("unseen %d, %v", unseen, err)
	}
}
