package sys_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/sys"
)

const ownNetNS = "/proc/thread-self/ns/net"

func readlink(t testing.TB, path string) string {
	t.Helper()
	link, err := os.Readlink(path)
	if err != nil {
		t.Error(err)
	}
	return link
}

func TestInNetNSRunsInTheNamespaceAndLeavesNoThreadThere(t *testing.T) {
	needHosts(t, 2)
	home := readlink(t, ownNetNS)
	f, err := os.Open(hosts.Host{N: 1}.NetNS())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	failed := errors.New("failed")
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			err := sys.InNetNS(int(f.Fd()), func() error {
				if got := readlink(t, ownNetNS); got == home {
					t.Errorf("ran in %s", got)
				}
				if i%2 == 1 {
					return failed
				}
				return nil
			})
			if err != nil != (i%2 == 1) || err != nil && err != failed {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("%d threads: %v", len(tasks), err)
	}
	for _, task := range tasks {
		// A thread may have ended meanwhile.
		if ns, err := os.Readlink(task); err == nil && ns != home {
			t.Errorf("%s is %s", task, ns)
		}
	}
}

func TestInNetNSOfNoNamespace(t *testing.T) {
	needHosts(t, 2)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	ran := false
	err = sys.InNetNS(int(null.Fd()), func() error { ran = true; return nil })
	if !errors.Is(err, unix.EINVAL) || ran {
		t.Errorf("ran %t: %v", ran, err)
	}
	home := readlink(t, ownNetNS)
	if err := sys.InNetNS(0, func() error {
		if got := readlink(t, ownNetNS); got != home {
			t.Errorf("ran in %s", got)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
