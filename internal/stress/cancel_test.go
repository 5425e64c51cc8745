package stress

import (
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/stress/flow"
)

// fillQueues runs until depth requests of each flow are queued.
func fillQueues(t *testing.T, port uint16, tasks, depth int) *Run {
	t.Helper()
	run := openToNobody(t, Config{Port: port, Tasks: tasks, Requests: true, Shape: flow.Shape{Depth: depth}})
	run.Begin()
	want := tasks * tasks * depth
	for deadline := time.Now().Add(30 * time.Second); queued(t, run) != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages are queued, want %d", queued(t, run), want)
		}
	}
	return run
}

func queued(t *testing.T, run *Run) int {
	t.Helper()
	n, err := run.Queued()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCancelEmptiesTheQueuesOfTheRunAlone(t *testing.T) {
	run, other := fillQueues(t, 7000, 2, 5), fillQueues(t, 7100, 1, 3)
	run.Quiet()
	all, err := run.Cancel()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 4 {
		t.Errorf("%d destinations of 2 tasks that talk to 2: %v", len(all), all)
	}
	if n := queued(t, run); n != 0 {
		t.Errorf("%d messages are still queued", n)
	}
	if n := queued(t, other); n != 3 {
		t.Errorf("of another run, %d messages of 3 are queued", n)
	}
}
