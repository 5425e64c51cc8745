package netns

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestANamespaceIsFoundByWhatPeopleCallIt(t *testing.T) {
	own, err := os.Stat("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/proc/self/ns/net", strconv.Itoa(os.Getpid())} {
		f, err := Open(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if info, err := f.Stat(); err != nil || !os.SameFile(own, info) || !IsOwn(f) {
			t.Errorf("%q is another file: %v", name, err)
		}
		f.Close()
	}
}

func TestWhatIsNoNamespaceIsRefusedWithTheWayOut(t *testing.T) {
	for name, want := range map[string]string{
		"":           "an empty name is no network namespace",
		"nowhere":    `no network namespace "nowhere": want a name (ip netns list), the number of a process, or a path`,
		"2147483647": `no network namespace "2147483647": want a name (ip netns list), the number of a process, or a path`,
		"./nowhere":  `no network namespace "./nowhere": want`,
		"/dev/null":  "/dev/null is not a network namespace",
	} {
		f, err := Open(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
		if strings.Contains(want, "nowhere") && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v is not fs.ErrNotExist", name, err)
		}
		if f != nil {
			f.Close()
		}
	}
}

// Opening a FIFO would wait for somebody to write to it.
func TestAFIFOHoldsNobodyUp(t *testing.T) {
	name := t.TempDir() + "/fifo"
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(name); err == nil {
		f.Close()
	}
}

func TestAllListsEachNamespaceOnceAndItsOwnFirst(t *testing.T) {
	all, _, err := All()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for i, ns := range all {
		if ns.Own != (i == 0) || seen[ns.Inode] {
			t.Errorf("%d: %+v", i, ns)
		}
		seen[ns.Inode] = true
		if ns.PID == os.Getpid() {
			t.Errorf("%+v is found by this process, which is going to end", ns)
		}
		info, err := ns.File.Stat()
		if err != nil || info.Sys().(*syscall.Stat_t).Ino != ns.Inode {
			t.Errorf("%+v: %v", ns, err)
		}
		ns.File.Close()
	}
	if len(all) == 0 {
		t.Error("there is none")
	}
}
