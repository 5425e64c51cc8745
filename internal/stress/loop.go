package stress

import (
	"errors"
	"os"
	"runtime"

	"github.com/rdskit/rdskit/internal/stress/transport"
)

// A loop is a thread that drives some of the workers. There are no more of them than processors: threads
// beyond those would take turns by the kernel's clock, and not when they have something to do.
type loop struct {
	run     *Run
	workers []*worker
	poller  *transport.Poller
	asked   asked
}

// newLoops shares the workers out.
func newLoops(r *Run) []*loop {
	loops := make([]*loop, min(len(r.workers), runtime.NumCPU()))
	for i := range loops {
		loops[i] = &loop{run: r}
	}
	for i, w := range r.workers {
		l := loops[i%len(loops)]
		l.workers = append(l.workers, w)
		w.asked = &l.asked
	}
	for _, l := range loops {
		if len(l.workers) == 1 {
			l.workers[0].single = r.cfg.oneAtATime()
		}
		var sockets []*transport.Socket
		for _, w := range l.workers {
			sockets = append(sockets, w.sock)
		}
		l.poller = transport.NewPoller(sockets)
	}
	return loops
}

// main works until the run has ended.
func (l *loop) main() {
	runtime.LockOSThread() // never unlocked: the thread ends with the loop
	defer l.asked.close()
	if err := errors.Join(transport.Batch(), transport.Punctual()); err != nil {
		l.run.failed(err)
		return
	}
	err := l.poller.Run(func() {
		for _, w := range l.workers {
			w.begin()
		}
		for l.turn() {
		}
	})
	if err != nil {
		l.run.failed(err)
	}
}

// turn gives each worker one, and waits if none had anything to do. It reports whether to go on.
func (l *loop) turn() bool {
	// An answer about what was sent is final if the phase was one that sends nothing when it was asked for.
	l.asked.answer()
	phase := l.run.phase()
	if phase == ended {
		return false
	}
	wait := idle
	for _, w := range l.workers {
		if w.err == nil {
			wait = min(wait, w.turn(phase))
		}
	}
	if w := l.workers[0]; len(l.workers) == 1 && w.err == nil {
		// To receive at once, or to wait for a while by it, costs less than to ask first.
		patient := wait == idle && !w.full && !w.vain
		if wait == 0 || patient {
			w.readable, w.wait = true, patient
			return true
		}
	}
	for i, w := range l.workers {
		l.poller.Want(i, w.full)
	}
	if errno := l.poller.Wait(wait); errno != 0 {
		l.run.failed(os.NewSyscallError("ppoll", errno))
		return false
	}
	for i, w := range l.workers {
		w.look()
		readable, writable := l.poller.Ready(i)
		w.readable = w.readable || readable
		w.full = w.full && !writable
	}
	return true
}
