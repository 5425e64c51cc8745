package labtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// EnvTally is a variable that names a file to which [Main] appends one line:
// the name of the test binary, the lab's profile or "-", and how many tests ran in the lab and how many
// were skipped for want of one.
const EnvTally = "RDS_LAB_TALLY"

// Main runs a package's tests for TestMain and does not return. After tests that
// passed it looks for goroutines and file descriptors that they
// left behind; any are printed and fail the package.
func Main(m *testing.M) {
	descriptors := openDescriptors()
	status := m.Run()
	if status == 0 {
		if err := errors.Join(goleak.Find(), leakedDescriptors(descriptors), foreignThreads()); err != nil {
			fmt.Fprintf(os.Stderr, "FAIL: the tests left something behind:\n%v\n", err)
			status = 1
		}
	}
	if err := report(os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "labtest: %v\n", err)
		status = 1
	}
	os.Exit(status)
}

// report says how many tests ran in the lab.
func report(w io.Writer) error {
	ran, skipped := tally.result()
	lab := Lab()
	if lab == "" {
		lab = "-"
	}
	if ran+skipped > 0 {
		fmt.Fprintf(w, "labtest: %d tests ran in the lab (%s), %d were skipped\n", ran, lab, skipped)
	}
	name := os.Getenv(EnvTally)
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s %d %d\n", filepath.Base(os.Args[0]), lab, ran, skipped)
	return errors.Join(err, f.Close())
}

const fdDir = "/proc/self/fd"

// openDescriptors lists the process's open files by descriptor.
func openDescriptors() map[string]string {
	entries, err := os.ReadDir(fdDir)
	if err != nil {
		return nil // no Linux
	}
	open := map[string]string{}
	for _, e := range entries {
		// The directory's own descriptor is closed by now.
		if link, err := os.Readlink(filepath.Join(fdDir, e.Name())); err == nil {
			open[e.Name()] = link
		}
	}
	return open
}

// leakedDescriptors names the descriptors that are open now and were not
// before.
func leakedDescriptors(before map[string]string) error {
	var leaked []string
	// What a goroutine closes on its way out takes a moment.
	for range 50 {
		leaked = nil
		for fd, link := range openDescriptors() {
			if before[fd] != link && !runtimeOwns(link) {
				leaked = append(leaked, fmt.Sprintf("file descriptor %s: %s", fd, link))
			}
		}
		if len(leaked) == 0 {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	slices.Sort(leaked)
	return errors.New(strings.Join(leaked, "\n"))
}

// runtimeOwns tells whether the Go runtime opens such a file for its poller.
func runtimeOwns(link string) bool {
	return link == "anon_inode:[eventpoll]" || link == "anon_inode:[eventfd]"
}

// foreignThreads finds threads that stayed in a network namespace that is not
// the process's: goroutines on them would open sockets there.
func foreignThreads() error {
	if runtime.GOOS != "linux" {
		return nil
	}
	var err error
	for range 50 {
		if err = findForeignThreads(); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

func findForeignThreads() error {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		ns, err := os.Readlink(filepath.Join(task, "ns/net"))
		if err == nil && ns != own {
			return fmt.Errorf("thread %s is in network namespace %s, the process in %s", filepath.Base(task), ns, own)
		}
	}
	return nil
}
