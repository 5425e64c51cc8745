package transport

import "github.com/rdskit/rdskit/internal/sys"

// niceness of the threads that load the machine, so that those that report on them run in time. C has the same.
const niceness = 5

// Nice has the calling thread leave others before.
func Nice() error { return sys.SetNice(niceness) }

// Realtime gives the calling thread the scheduling policy SCHED_RR with the lowest priority.
func Realtime() error { return sys.SetRoundRobin(1) }
