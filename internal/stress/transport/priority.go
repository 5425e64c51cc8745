package transport

import (
	"runtime"

	"github.com/rdskit/rdskit/internal/sys"
)

// Batch has the calling thread not take the processor from others when it wakes: two sides on one processor would otherwise
// change places for each message.
func Batch() error { return sys.SetBatch() }

// Punctual has the calling thread wait for as long as it said: the kernel may otherwise add 50 us (prctl(2), PR_SET_TIMERSLACK).
func Punctual() error { return sys.SetTimerSlack(1) }

// Realtime gives the calling goroutine a thread of its own with the scheduling policy SCHED_RR of the lowest priority, until it calls
// undo. One thread only: those of the runtime spin for each other, and of that priority would keep a processor from those that they
// wait for.
func Realtime() (undo func() error, err error) {
	runtime.LockOSThread()
	ordinary, err := sys.SetRoundRobin(1)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() error {
		defer runtime.UnlockOSThread()
		return ordinary()
	}, nil
}
