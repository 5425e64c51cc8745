package ping

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/latency"
	"github.com/rdskit/rdskit/internal/target"
)

const ms = time.Millisecond

func TestPingsKeepTheirSchedule(t *testing.T) {
	n := &fakeNetwork{answer: within(3 * ms)}
	r, events := simulate(t, Config{Count: 5, Interval: 200 * ms}, n)
	want := []time.Duration{0, 200 * ms, 400 * ms, 600 * ms, 800 * ms}
	if diff := cmp.Diff(want, n.sentAt); diff != "" {
		t.Errorf("sent at (-want +got):\n%s", diff)
	}
	var replies []record
	for i, at := range want {
		replies = append(replies, record{Reply, uint64(i + 1), at + 3*ms, 3 * ms})
	}
	if diff := cmp.Diff(replies, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Report{
		Sent: 5, Received: 5, Elapsed: 803 * ms, HasRTT: true,
		RTT: latency.Summary{Count: 5, Min: 3 * ms, Mean: 3 * ms, P50: 3 * ms, P99: 3 * ms, Max: 3 * ms},
	}, r); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestAnswersThatAreThereAtOnceTakeNoTime(t *testing.T) {
	n := &fakeNetwork{answer: within(0)}
	r, _ := simulate(t, Config{Count: 3, Interval: ms}, n)
	if r.Received != 3 || r.RTT.Max != 0 || r.Elapsed != 2*ms {
		t.Errorf("got %+v", r)
	}
}

func TestASlowNotifyShiftsNoPingAndBurstsNone(t *testing.T) {
	n := &fakeNetwork{answer: within(ms)}
	simulate(t, Config{Count: 6, Interval: 100 * ms}, n, func(_ context.CancelFunc, e Event) {
		switch e.Seq {
		case 2:
			time.Sleep(30 * ms) // less than an interval
		case 3:
			time.Sleep(5 * time.Second) // many
		}
	})
	want := []time.Duration{0, 100 * ms, 200 * ms, 5201 * ms, 5300 * ms, 5400 * ms}
	if diff := cmp.Diff(want, n.sentAt); diff != "" {
		t.Errorf("sent at (-want +got):\n%s", diff)
	}
}

func TestTheRunEndsInTime(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     Config
		answer  func(int) []time.Duration
		elapsed time.Duration
		lost    uint64
	}{
		{"an interval after the last ping", Config{Count: 1, Interval: 4 * time.Second}, never, 4 * time.Second, 1},
		{"with the last answer", Config{Count: 1, Interval: 4 * time.Second}, within(7 * ms), 7 * ms, 0},
		{"when the timeout is over, if that is sooner", Config{Count: 2, Interval: 4 * time.Second, Timeout: time.Second}, never, 5 * time.Second, 2},
		{"when the timeout is over, if that is later", Config{Count: 2, Interval: time.Second, Timeout: 3 * time.Second}, never, 4 * time.Second, 2},
		{"by the deadline, without a count", Config{Interval: time.Second, Deadline: 2500 * ms}, never, 2500 * ms, 3},
		{"by the deadline, before the count", Config{Count: 100, Interval: time.Second, Deadline: 2500 * ms}, within(ms), 2500 * ms, 0},
		{"by the count, before the deadline", Config{Count: 1, Deadline: time.Hour}, within(ms), ms, 0},
		{"with a dead host, at its pace", Config{Count: 20, Interval: 200 * ms}, never, 4 * time.Second, 20},
		{"with a dead host and one socket", Config{Count: 3, Interval: 200 * ms, Outstanding: 1}, never, 2200 * ms, 3},
		{"with a dead host, in a flood", Config{Count: 20, Flood: true}, never, 3 * time.Second, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, events := simulate(t, tt.cfg, &fakeNetwork{answer: tt.answer})
			if r.Elapsed != tt.elapsed || r.Lost != tt.lost {
				t.Errorf("it took %v and lost %d, want %v and %d", r.Elapsed, r.Lost, tt.elapsed, tt.lost)
			}
			if n := count(events, Lost); n != int(tt.lost) {
				t.Errorf("%d events for %d losses", n, tt.lost)
			}
		})
	}
}

func TestADeadHostLosesPingsWhenTheirSocketIsNeeded(t *testing.T) {
	n := &fakeNetwork{answer: never}
	_, events := simulate(t, Config{Count: 4, Interval: time.Second, Outstanding: 2}, n)
	want := []record{
		{Lost, 1, 2 * time.Second, 2 * time.Second},
		{Lost, 2, 3 * time.Second, 2 * time.Second},
		{Lost, 3, 4 * time.Second, 2 * time.Second},
		{Lost, 4, 4 * time.Second, time.Second},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n.opens != 4 || n.maxOpen != 2 {
		t.Errorf("%d sockets, %d at a time; want a new one for each of 4 pings, 2 at a time", n.opens, n.maxOpen)
	}
}

func TestAPingThatFindsNoSocketWaitsAndSaysSo(t *testing.T) {
	n := &fakeNetwork{answer: never}
	_, events := simulate(t, Config{Count: 5, Interval: 10 * ms, Outstanding: 2}, n)
	want := []record{
		{Lost, 1, 1000 * ms, 1000 * ms}, {Delayed, 3, 1000 * ms, 980 * ms},
		{Lost, 2, 1010 * ms, 1000 * ms},
		{Lost, 3, 2000 * ms, 1000 * ms}, {Delayed, 5, 2000 * ms, 980 * ms},
		{Lost, 4, 2010 * ms, 1000 * ms},
		{Lost, 5, 2010 * ms, 10 * ms},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnAnswerFreesTheSocketThatAPingWaitsFor(t *testing.T) {
	n := &fakeNetwork{answer: within(500 * ms)}
	r, events := simulate(t, Config{Count: 3, Interval: 100 * ms, Timeout: time.Second, Outstanding: 1}, n)
	want := []time.Duration{0, 500 * ms, 1000 * ms}
	if diff := cmp.Diff(want, n.sentAt); diff != "" {
		t.Errorf("sent at (-want +got):\n%s", diff)
	}
	if r.Received != 3 || count(events, Delayed) != 2 {
		t.Errorf("got %+v, %v", r, events)
	}
}

func TestTheTimeoutLosesPingsAndLateAnswersKeepTheirNumber(t *testing.T) {
	n := &fakeNetwork{answer: func(n int) []time.Duration {
		if n == 2 {
			return []time.Duration{2500 * ms}
		}
		return []time.Duration{ms}
	}}
	r, events := simulate(t, Config{Count: 5, Interval: time.Second, Timeout: 500 * ms}, n)
	want := []record{
		{Reply, 1, ms, ms},
		{Lost, 2, 1500 * ms, 500 * ms},
		{Reply, 3, 2001 * ms, ms},
		{Reply, 4, 3001 * ms, ms},
		{Late, 2, 3500 * ms, 2500 * ms},
		{Reply, 5, 4001 * ms, ms},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Received != 4 || r.Lost != 1 || r.Late != 1 || r.RTT.Count != 5 || r.RTT.Max != 2500*ms {
		t.Errorf("got %+v", r)
	}
}

// After a cut, the kernel delivers what it kept, all at once.
func TestACutCreditsNoPingToAnother(t *testing.T) {
	const cut, mended = 2 * time.Second, 7 * time.Second
	for _, cfg := range []Config{
		{Count: 50, Interval: 200 * ms},
		{Count: 200, Interval: 50 * ms},
		{Count: 50, Interval: 200 * ms, Timeout: time.Second},
		{Count: 50, Interval: 200 * ms, Outstanding: 64},
		{Count: 500, Interval: 10 * ms, Outstanding: 3, Timeout: 100 * ms},
		{Count: 5000, Flood: true},
	} {
		n := &fakeNetwork{}
		n.answer = func(int) []time.Duration {
			now := time.Since(n.start)
			switch {
			case now < cut || now >= mended:
				return []time.Duration{ms}
			}
			// Retransmitted to a peer that forgot what it had answered: twice.
			return []time.Duration{mended - now, mended - now + ms}
		}
		r, events := simulate(t, cfg, n)
		for _, e := range events {
			if e.Kind != Reply && e.Kind != Late && e.Kind != Duplicate {
				continue
			}
			sent := n.sentAt[e.Seq-1]
			want := ms
			if sent >= cut && sent < mended {
				want = mended - sent
			}
			if e.D != want && (e.Kind != Duplicate || e.D != want+ms) {
				t.Fatalf("%+v: %v of ping %d, sent at %v, took %v, want %v", cfg, e.Kind, e.Seq, sent, e.D, want)
			}
		}
		if r.Received == 0 || r.Received+r.Lost != r.Sent {
			t.Errorf("%+v: got %+v", cfg, r)
		}
	}
}

func TestDuplicatesAreCountedApart(t *testing.T) {
	n := &fakeNetwork{answer: func(int) []time.Duration { return []time.Duration{ms, 2 * ms} }}
	r, events := simulate(t, Config{Count: 3, Interval: 10 * ms, Outstanding: 1}, n)
	want := []record{
		{Reply, 1, ms, ms}, {Duplicate, 1, 2 * ms, 2 * ms},
		{Reply, 2, 11 * ms, ms}, {Duplicate, 2, 12 * ms, 2 * ms},
		{Reply, 3, 21 * ms, ms},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Received != 3 || r.Duplicates != 2 || r.LossPercent() != 0 || r.RTT.Count != 3 {
		t.Errorf("got %+v", r)
	}
	if n.opens != 3 {
		t.Errorf("%d sockets; want a new one after each duplicate", n.opens)
	}
}

func TestSocketsAreReusedWhileAllIsWell(t *testing.T) {
	n := &fakeNetwork{answer: within(ms)}
	simulate(t, Config{Count: 100, Interval: 10 * ms}, n)
	if n.opens != DefaultOutstanding {
		t.Errorf("%d sockets were opened for 100 answered pings, want %d", n.opens, DefaultOutstanding)
	}
}

func TestInterruption(t *testing.T) {
	stopAt := func(at time.Duration) (*fakeNetwork, func(context.CancelFunc, Event)) {
		n := &fakeNetwork{answer: never}
		return n, func(cancel context.CancelFunc, e Event) {
			if e.Kind == Start {
				time.AfterFunc(at, cancel)
			}
		}
	}
	for _, tt := range []struct {
		name                    string
		at                      time.Duration
		sent, lost, outstanding uint64
	}{
		{"loses what had its time, and counts the rest as outstanding", 2500 * ms, 3, 2, 1},
		{"at once finds one outstanding", 1, 1, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, during := stopAt(tt.at)
			r, _ := simulate(t, Config{}, n, during)
			if r.Sent != tt.sent || r.Lost != tt.lost || r.Outstanding != tt.outstanding || r.Elapsed != tt.at {
				t.Errorf("got %+v", r)
			}
		})
	}
	t.Run("before the first ping gives an empty report", func(t *testing.T) {
		n := &fakeNetwork{answer: never}
		r, events := simulate(t, Config{}, n, func(cancel context.CancelFunc, _ Event) { cancel() })
		if r != (Report{}) || r.LossPercent() != 0 || len(events) != 0 {
			t.Errorf("got %+v, %v", r, events)
		}
	})
}

func TestErrorsOfSendingAreCountedAndTheRunEnds(t *testing.T) {
	fail := errors.New("no")
	n := &fakeNetwork{answer: within(ms), sendErr: func(n int) error {
		if n%2 == 0 {
			return fail
		}
		return nil
	}}
	r, events := simulate(t, Config{Count: 4, Interval: 10 * ms}, n)
	if r.Sent != 2 || r.Received != 2 || r.Errors != 2 {
		t.Errorf("got %+v", r)
	}
	if diff := cmp.Diff([]record{{Reply, 1, ms, ms}, {Failed, 2, 10 * ms, 0}, {Reply, 3, 21 * ms, ms}, {Failed, 4, 30 * ms, 0}}, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASocketThatCannotBeOpenedIsAnError(t *testing.T) {
	n := &fakeNetwork{answer: never, openErr: func(int) error { return syscall.EADDRNOTAVAIL }}
	r, events := simulate(t, Config{Count: 3, Interval: 10 * ms}, n)
	if r.Sent != 0 || r.Errors != 3 || r.Lost != 0 || count(events, Failed) != 3 {
		t.Errorf("got %+v, %v", r, events)
	}
}

func TestAnErrorOfReceivingLosesThePing(t *testing.T) {
	n := &fakeNetwork{answer: never}
	r, events := simulate(t, Config{Count: 1}, n, func(_ context.CancelFunc, e Event) {
		if e.Kind == Start {
			time.AfterFunc(ms, func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.sockets[0].deliver(answer{err: syscall.EFAULT})
			})
		}
	})
	want := []record{{Failed, 1, ms, 0}, {Lost, 1, time.Second, time.Second}}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Lost != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestAnAnswerFromElsewhereSaysSo(t *testing.T) {
	other := netip.MustParseAddr("10.9.0.3")
	n := &fakeNetwork{answer: within(ms), from: other}
	var from netip.Addr
	simulate(t, Config{Count: 1}, n, func(_ context.CancelFunc, e Event) {
		if e.Kind == Reply {
			from = e.From
		}
	})
	if from != other {
		t.Errorf("got %v", from)
	}
}

func TestWaitingIsReportedOncePerPing(t *testing.T) {
	n := &fakeNetwork{answer: within(2500 * ms)}
	_, events := simulate(t, Config{Count: 3, ReportWaiting: true}, n)
	want := []record{
		{Waiting, 1, time.Second, time.Second},
		{Waiting, 2, 2 * time.Second, time.Second},
		{Reply, 1, 2500 * ms, 2500 * ms},
		{Lost, 2, 3 * time.Second, 2 * time.Second},
		{Lost, 3, 3 * time.Second, time.Second},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFloodKeepsAllSocketsBusy(t *testing.T) {
	n := &fakeNetwork{answer: within(10 * ms)}
	r, events := simulate(t, Config{Count: 800, Flood: true}, n)
	if r.Received != 800 || r.Elapsed != time.Second || count(events, Delayed) != 0 || n.maxOpen != DefaultOutstanding {
		t.Errorf("got %+v, %d sockets", r, n.maxOpen)
	}
}

func TestInterimSummary(t *testing.T) {
	var got []Report
	synctest.Test(t, func(t *testing.T) {
		interim := make(chan os.Signal, 1)
		time.AfterFunc(1500*ms, func() { interim <- syscall.SIGQUIT })
		n := &fakeNetwork{answer: within(ms), start: time.Now()}
		cfg := &Config{Targets: []target.Target{{Addr: peer}}, Count: 4, Interval: time.Second, Interim: interim}
		if _, err := run(t.Context(), cfg, n, func(e Event) {
			if e.Kind == Interim {
				got = append(got, *e.Report)
			}
		}); err != nil {
			t.Error(err)
		}
	})
	if len(got) != 1 || got[0].Sent != 2 || got[0].Received != 2 || got[0].Elapsed != 1500*ms {
		t.Errorf("got %+v", got)
	}
}

func TestMemoryStaysFlatOver200001Pings(t *testing.T) {
	n := &fakeNetwork{forget: true, answer: func(n int) []time.Duration {
		if n%1000 == 0 {
			return nil
		}
		return []time.Duration{time.Duration(n%977) * time.Microsecond}
	}}
	var early, late runtime.MemStats
	r := Report{}
	synctest.Test(t, func(t *testing.T) {
		cfg := &Config{Targets: []target.Target{{Addr: peer}}, Count: 200_001, Interval: ms, Timeout: 500 * ms}
		reports, err := run(t.Context(), cfg, n, func(e Event) {
			switch e.Seq {
			case 20_001:
				runtime.GC()
				runtime.ReadMemStats(&early)
			case 200_001:
				runtime.GC()
				runtime.ReadMemStats(&late)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		r = reports[0]
	})
	if r.Sent != 200_001 || r.Lost != 200 || r.Received != 199_801 {
		t.Errorf("got %+v", r)
	}
	if early.HeapAlloc == 0 || late.HeapAlloc > early.HeapAlloc+64<<10 {
		t.Errorf("the heap grew from %d to %d bytes", early.HeapAlloc, late.HeapAlloc)
	}
}

func TestSeveralTargetsAreIndependentAndReportedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNetwork{answer: within(ms), start: time.Now()}
		cfg := &Config{Count: 2, Interval: 30 * ms}
		for i := range 3 {
			cfg.Targets = append(cfg.Targets, target.Target{Addr: peer, TOS: uint8(i)})
		}
		var order []Kind
		reports, err := run(t.Context(), cfg, n, func(e Event) { order = append(order, e.Kind) })
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range reports {
			if r.Received != 2 {
				t.Errorf("target %d: %+v", i, r)
			}
		}
		want := []Kind{Start, Start, Start, Reply, Reply, Reply, Reply, Reply, Reply, Summary, Summary, Summary}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{0, 10 * ms, 20 * ms}, n.sentAt[:3]); diff != "" {
			t.Errorf("first pings (-want +got):\n%s", diff)
		}
	})
}

func TestBadConfigs(t *testing.T) {
	targets := []target.Target{{Addr: peer}}
	for name, cfg := range map[string]Config{
		"no target":               {},
		"a negative interval":     {Targets: targets, Interval: -1},
		"a flood without an end":  {Targets: targets, Flood: true},
		"too many sockets":        {Targets: targets, Outstanding: MaxOutstanding + 1},
		"a negative number of it": {Targets: targets, Outstanding: -1},
	} {
		if _, err := run(t.Context(), &cfg, &fakeNetwork{}, func(Event) {}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPortsComeBackAsLateAsPossible(t *testing.T) {
	c := newPortCycle()
	seen := make(map[uint16]bool)
	for range portCount {
		p := c.next()
		if p < firstPort || seen[p] {
			t.Fatalf("port %d after %d others", p, len(seen))
		}
		seen[p] = true
	}
	if p := c.next(); !seen[p] {
		t.Errorf("port %d is none", p)
	}
}

func TestLossPercent(t *testing.T) {
	for _, tt := range []struct {
		received, lost uint64
		want           float64
	}{{0, 0, 0}, {999, 1, 0.1}, {0, 5, 100}, {5, 0, 0}} {
		r := Report{Received: tt.received, Lost: tt.lost}
		if got := r.LossPercent(); got != tt.want {
			t.Errorf("%d received, %d lost: %v%%, want %v%%", tt.received, tt.lost, got, tt.want)
		}
	}
}
