package transport

import "github.com/rdskit/rdskit/internal/sys"

// niceness of the threads that load the machine, so that those that report on them run in time. C has the same.
const niceness = 5

// Batch has the calling thread leave others before, and not take the processor from them when it wakes: two sides on one processor
// would otherwise change places for each message.
func Batch() error { return sys.SetBatch(niceness) }

// Realtime gives all threads of the process the scheduling policy SCHED_RR with the lowest priority, until undo is called: the
// threads that load the machine leave it by Batch.
func Realtime() (undo func() error, err error) { return sys.SetRoundRobin(1) }
