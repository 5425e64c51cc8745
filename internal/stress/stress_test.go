package stress

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

func TestProcessorTimeComesFromProcStat(t *testing.T) {
	const stat = "cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 12345 1 2 3\nctxt 99\n"
	got, err := parseProcessors(strings.NewReader(stat))
	if err != nil {
		t.Fatal(err)
	}
	want := Processors{User: 10, Nice: 20, System: 30, Idle: 400, IOWait: 50, IRQ: 6, SoftIRQ: 7, Steal: 8, Interrupts: 12345}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	later := want
	later.User += 30
	later.Idle += 70
	later.IOWait -= 5 // this counter may go back
	if busy := later.Since(want).Busy(); busy != 30 {
		t.Errorf("busy %v%%, want 30%%", busy)
	}
	if busy := (Processors{}).Busy(); busy != 0 {
		t.Errorf("busy %v%% in no time", busy)
	}
	for _, bad := range []string{"", "intr 5\n", "cpu x 1\n", "cpu 1 2\nintr -3\n"} {
		if p, err := parseProcessors(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken as %+v", bad, p)
		}
	}
}

func TestAGapLastsUntilARequestSentInItIsAnswered(t *testing.T) {
	const ms = time.Millisecond
	g := gapMeter{last: 0}
	if d := g.until(pause); d != 0 {
		t.Errorf("a gap of %v", d)
	}
	if d := g.until(900 * ms); d != 900*ms || g.longest != 0 {
		t.Errorf("a gap of 900 ms is under way, and not %v: %+v", d, g)
	}
	g.progress(50 * ms)
	g.answered(50*ms, 40*ms)
	if g.longest != 0 || g.recovery != 0 {
		t.Fatalf("%+v: nothing stopped", g)
	}
	g.progress(1050 * ms) // nothing for a second
	g.answered(1050*ms, 49*ms)
	if g.recovery != 0 {
		t.Errorf("recovered by the answer to an old request: %+v", g)
	}
	g.progress(1100 * ms)
	g.answered(1100*ms, 1060*ms)
	if g.longest != time.Second || g.recovery != 1050*ms {
		t.Errorf("gap %v, recovery %v", g.longest, g.recovery)
	}
}

func TestACPeerThatEndsTooEarlyOrTooLateIsNoticed(t *testing.T) {
	for _, tt := range []struct {
		ago, until  time.Duration
		early, late bool
	}{
		{time.Second, 0, false, false},
		{time.Hour, 0, false, false},
		{time.Second, 5 * time.Second, true, false},
		{4 * time.Second, 5 * time.Second, false, false},
		{12 * time.Second, 5 * time.Second, false, false},
		{16 * time.Second, 5 * time.Second, false, true},
	} {
		s := &session{began: time.Now().Add(-tt.ago), plan: Plan{until: tt.until}}
		if err := s.stuck(); s.early() != tt.early || (err != nil) != tt.late {
			t.Errorf("%v after it began, the run of %v is early %v, and late: %v", tt.ago, tt.until, s.early(), err)
		}
		s.peer = true
		if err := s.stuck(); err != nil {
			t.Errorf("rdskit says itself that it is there: %v", err)
		}
	}
}

func TestRoundTripsFallIntoPowersOfTwo(t *testing.T) {
	var s Stats
	for _, d := range []time.Duration{0, 500, time.Microsecond, 2 * time.Microsecond, 3 * time.Microsecond, 80 * time.Millisecond, time.Hour * 1000} {
		s.recordRTT(d)
	}
	want := map[int]uint64{0: 3, 1: 2, 16: 1, Buckets - 1: 1}
	for i, n := range s.RTTs {
		if n != want[i] {
			t.Errorf("bucket %d has %d, want %d", i, n, want[i])
		}
	}
}

func TestRunsThatAreTooLargeAreRefused(t *testing.T) {
	config := func(port uint16, tasks, depth int) Config {
		return Config{Port: port, Tasks: tasks, Shape: flow.Shape{Layout: wire.Async, Depth: depth, ReqSize: 1024, AckSize: 63}}
	}
	for _, tt := range []struct {
		name string
		Config
		ok bool
	}{
		{"an ordinary one", config(4000, 8, 64), true},
		{"the deepest", config(4000, 1, MaxDepth), true},
		{"no tasks", config(4000, 0, 1), false},
		{"too many tasks", config(4000, MaxTasks+1, 1), false},
		{"no depth", config(4000, 1, 0), false},
		{"too deep", config(4000, 1, MaxDepth+1), false},
		{"the last port", config(65534, 1, 1), true},
		{"no port left", config(65534, 2, 1), false},
	} {
		err := tt.Check()
		var limit *LimitError
		if (err == nil) != tt.ok || err != nil && !errors.As(err, &limit) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	deep := config(4000, 1, 40000)
	if m := deep.Memory(); m > 64<<20 {
		t.Errorf("depth 40,000 needs %d MiB", m>>20)
	}
	wide := config(4000, 64, 64)
	if m := wide.Memory(); m > 256<<20 {
		t.Errorf("64 tasks need %d MiB", m>>20)
	}
}

func TestPeerVersionsDecideTheForm(t *testing.T) {
	for _, tt := range []struct {
		in         string
		ipv6, long bool
		form       wire.Form
		layout     wire.Layout
	}{
		{"2.0.7", false, false, wire.Short, wire.Async},
		{"2.0.7", false, true, wire.Long, wire.Async},
		{"2.3.11,mainline", false, true, wire.LongMainline, wire.Basic},
		{"2.3.11", true, false, wire.IPv6, wire.Async6},
		{"2.3.11,mainline", true, true, wire.IPv6Mainline, wire.Basic6},
	} {
		p, err := ParsePeerVersion(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if f, l := p.form(tt.ipv6, tt.long), p.Layout(tt.ipv6); f != tt.form || l != tt.layout || p.String() != tt.in {
			t.Errorf("%s: %v form, header of %d, %q", tt.in, f, l, p)
		}
	}
	for _, bad := range []string{"", "two", "2.3.11,uek", "1234567890123456"} {
		if p, err := ParsePeerVersion(bad); err == nil {
			t.Errorf("%q is %+v", bad, p)
		}
	}
}

func TestTasksChangeOverTogether(t *testing.T) {
	b := &bursts{workers: 2}
	b.ready()
	if b.rounds() != 0 {
		t.Error("one of two is enough")
	}
	b.ready()
	if b.rounds() != 1 {
		t.Error("both are ready, and nothing changes")
	}
}
