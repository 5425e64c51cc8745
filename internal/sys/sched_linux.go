package sys

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// SetTimerSlack is prctl(2) PR_SET_TIMERSLACK, for the calling thread.
func SetTimerSlack(d time.Duration) error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0))
}

// SetRoundRobin is sched_setattr(2) of the calling thread to SCHED_RR; undo, on the same thread, gives it back the policy that it had.
func SetRoundRobin(priority int) (undo func() error, err error) {
	const schedRR = 2
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return nil, os.NewSyscallError("sched_getattr", err)
	}
	undo = func() error { return setScheduling(before) }
	return undo, setScheduling(&unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedRR, Priority: uint32(priority)})
}

// SetBatch is sched_setattr(2) of the calling thread to SCHED_BATCH, with the niceness that it has.
func SetBatch() error {
	const schedBatch = 3
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return os.NewSyscallError("sched_getattr", err)
	}
	attr.Policy = schedBatch
	return setScheduling(attr)
}

func setScheduling(attr *unix.SchedAttr) error {
	return os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, attr, 0))
}
