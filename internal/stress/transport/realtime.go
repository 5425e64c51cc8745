package transport

import "github.com/rdskit/rdskit/internal/sys"

// Realtime gives the calling thread the scheduling policy SCHED_RR with the lowest priority.
func Realtime() error { return sys.SetRoundRobin(1) }
