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

// SetNice is setpriority(2) of the calling thread, which on Linux has a niceness of its own.
func SetNice(nice int) error {
	return os.NewSyscallError("setpriority", unix.Setpriority(unix.PRIO_PROCESS, 0, nice))
}
