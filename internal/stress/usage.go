package stress

import (
	"runtime/debug"
	"runtime/metrics"
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

// usageNow is the use since the process began. It stops no thread, as runtime.ReadMemStats would: that takes
// as long as the slowest of many needs to be scheduled.
func usageNow() Usage {
	u := processUsage()
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(heap)
	u.Allocations, u.AllocatedBytes = heap[0].Value.Uint64(), heap[1].Value.Uint64()
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.Collections, u.CollectionPause = uint64(gc.NumGC), gc.PauseTotal
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
