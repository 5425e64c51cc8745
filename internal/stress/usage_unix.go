//go:build unix

package stress

import (
	"syscall"
	"time"
)

func processUsage() Usage {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return Usage{}
	}
	return Usage{
		User: time.Duration(r.Utime.Nano()), System: time.Duration(r.Stime.Nano()),
		VoluntarySw: uint64(r.Nvcsw), InvoluntarySw: uint64(r.Nivcsw),
	}
}
