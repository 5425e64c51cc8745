package stress

import (
	"runtime"
	"time"
)

// Usage is what the process used in some time.
type Usage struct {
	User, System    time.Duration
	VoluntarySw     uint64 // context switches to wait for something
	InvoluntarySw   uint64 // context switches by the scheduler
	Allocations     uint64
	AllocatedBytes  uint64
	Collections     uint64 // of garbage
	CollectionPause time.Duration
}

// usageNow is the use since the process began.
func usageNow() Usage {
	u := processUsage()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Allocations, u.AllocatedBytes = m.Mallocs, m.TotalAlloc
	u.Collections, u.CollectionPause = uint64(m.NumGC), time.Duration(m.PauseTotalNs)
	return u
}

// Since is the use from before until u.
func (u Usage) Since(before Usage) Usage {
	return Usage{
		User: u.User - before.User, System: u.System - before.System,
		VoluntarySw: u.VoluntarySw - before.VoluntarySw, InvoluntarySw: u.InvoluntarySw - before.InvoluntarySw,
		Allocations: u.Allocations - before.Allocations, AllocatedBytes: u.AllocatedBytes - before.AllocatedBytes,
		Collections: u.Collections - before.Collections, CollectionPause: u.CollectionPause - before.CollectionPause,
	}
}
