package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// SetRoundRobin is sched_setattr(2) of the calling thread to SCHED_RR.
func SetRoundRobin(priority int) error {
	const schedRR = 2
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedRR, Priority: uint32(priority)}
	return os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, attr, 0))
}

// SetBatch is sched_setattr(2) of the calling thread to SCHED_BATCH, with a niceness, which threads have each their own.
func SetBatch(nice int) error {
	const schedBatch = 3
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedBatch, Nice: int32(nice)}
	return os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, attr, 0))
}
