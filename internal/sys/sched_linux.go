package sys

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// SetBatch is sched_setattr(2) of the calling thread to SCHED_BATCH, with a niceness, which threads have each their own.
func SetBatch(nice int) error {
	const schedBatch = 3
	return setScheduling(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedBatch, Nice: int32(nice)})
}

// SetRoundRobin is sched_setattr(2) of all threads of the process to SCHED_RR; those that they start inherit it. undo gives all
// threads the policy that the calling one had.
func SetRoundRobin(priority int) (undo func() error, err error) {
	const schedRR = 2
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return nil, os.NewSyscallError("sched_getattr", err)
	}
	undo = func() error { return eachThread(before) }
	if err := eachThread(&unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedRR, Priority: uint32(priority)}); err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// eachThread sets the scheduling of all threads, and of those that were started meanwhile.
func eachThread(attr *unix.SchedAttr) error {
	done := map[string]bool{}
	for {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		again := false
		for _, t := range threads {
			if done[t.Name()] {
				continue
			}
			again, done[t.Name()] = true, true
			tid, err := strconv.Atoi(t.Name())
			if err == nil {
				err = setScheduling(tid, attr)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
				return err
			}
		}
		if !again {
			return nil
		}
	}
}

func setScheduling(tid int, attr *unix.SchedAttr) error {
	return os.NewSyscallError("sched_setattr", unix.SchedSetAttr(tid, attr, 0))
}
