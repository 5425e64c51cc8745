package sys

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// InNetNS calls f on a thread that is in the network namespace that netns, a
// descriptor, refers to; 0 is the namespace of the calling thread. Sockets that f
// makes stay in that namespace. f must not hand the work to another goroutine.
//
// The thread goes back before InNetNS returns; one that cannot is ended, not
// reused.
func InNetNS(netns int, f func() error) error {
	if netns == 0 {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			return
		}
		defer home.Close()
		if err = os.NewSyscallError("setns", unix.Setns(netns, unix.CLONE_NEWNET)); err == nil {
			err = f()
		}
		// Without the unlock the thread ends together with the goroutine.
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return <-done
}
