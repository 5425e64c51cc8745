package stress

import (
	"sync"
	"sync/atomic"
)

// asked has a loop answer questions between two turns: a lock that it held while it works would keep who
// asks waiting for as long as the kernel lets others run.
type asked struct {
	any atomic.Bool

	mu        sync.Mutex
	open      bool // the loop runs
	questions []func()
}

// begin is called before the loop runs.
func (a *asked) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = true
}

// do has the loop call f, and calls done after it. If the loop does not run, f is called at once.
func (a *asked) do(f, done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.open {
		f()
		done()
		return
	}
	a.questions = append(a.questions, func() { f(); done() })
	a.any.Store(true)
}

// answer is called by the loop.
func (a *asked) answer() {
	if !a.any.Load() {
		return
	}
	a.mu.Lock()
	questions := a.questions
	a.questions = nil
	a.any.Store(false)
	a.mu.Unlock()
	for _, f := range questions {
		f()
	}
}

// close is called when the loop has ended.
func (a *asked) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = false
	for _, f := range a.questions {
		f()
	}
	a.questions = nil
}

// ask asks all workers at once, and returns their answers in the order of the tasks.
func ask[T any](r *Run, f func(w *worker) T) []T {
	answers := make([]T, len(r.workers))
	var all sync.WaitGroup
	for i, w := range r.workers {
		all.Add(1)
		w.asked.do(func() { answers[i] = f(w) }, all.Done)
	}
	all.Wait()
	return answers
}
