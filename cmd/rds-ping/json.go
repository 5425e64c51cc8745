package main

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/ping"
	"github.com/rdskit/rdskit/internal/target"
)

// A jsonWriter prints events as JSON, one object a line.
type jsonWriter struct {
	out   *cli.JSONLines
	cfg   *ping.Config
	quiet bool
}

// jsonHead is what all objects begin with.
type jsonHead struct {
	Type        string    `json:"type"`
	Time        time.Time `json:"time"`
	Host        string    `json:"host"`
	Destination addr      `json:"destination"` // null if the host was not found
	Source      addr      `json:"source"`
	TOS         uint8     `json:"tos"`
}

// An addr is a string, or null if it is invalid.
type addr struct{ netip.Addr }

func (a addr) MarshalJSON() ([]byte, error) {
	if !a.IsValid() {
		return []byte("null"), nil
	}
	return []byte(`"` + a.String() + `"`), nil
}

type jsonStart struct {
	jsonHead
	Others      []netip.Addr `json:"other_addresses"`
	Transport   string       `json:"transport"`
	Count       uint64       `json:"count"` // 0 has no end
	Interval    int64        `json:"interval_ns"`
	Timeout     *int64       `json:"timeout_ns"`
	Deadline    *int64       `json:"deadline_ns"`
	Flood       bool         `json:"flood"`
	Outstanding int          `json:"max_outstanding"`
}

type jsonAnswer struct {
	jsonHead
	Seq  uint64 `json:"seq"`
	RTT  int64  `json:"rtt_ns"`
	From addr   `json:"from"`
}

type jsonWait struct {
	jsonHead
	Seq    uint64 `json:"seq"`
	Waited int64  `json:"waited_ns"`
}

type jsonDelay struct {
	jsonHead
	Seq   uint64 `json:"seq"`
	Delay int64  `json:"delay_ns"`
}

type jsonError struct {
	jsonHead
	Seq   *uint64 `json:"seq"`   // null if no ping was tried
	Errno *int    `json:"errno"` // null if no system call failed
	Error string  `json:"error"`
}

type jsonSummary struct {
	jsonHead
	Sent        uint64  `json:"sent"`
	Received    uint64  `json:"received"`
	Lost        uint64  `json:"lost"`
	Late        uint64  `json:"late"`
	Outstanding uint64  `json:"outstanding"`
	Duplicates  uint64  `json:"duplicates"`
	Errors      uint64  `json:"errors"`
	LossPercent float64 `json:"loss_percent"`
	Elapsed     int64   `json:"elapsed_ns"`
	Min         *int64  `json:"rtt_min_ns"`
	Avg         *int64  `json:"rtt_avg_ns"`
	P50         *int64  `json:"rtt_p50_ns"`
	P99         *int64  `json:"rtt_p99_ns"`
	Max         *int64  `json:"rtt_max_ns"`
	Mdev        *int64  `json:"rtt_mdev_ns"`
}

// write prints one event. Whether that succeeded is known to the output.
func (w *jsonWriter) write(e ping.Event) {
	head := jsonHead{
		Type: e.Kind.String(), Time: e.Time.UTC(),
		Host: e.Target.Name, Destination: addr{e.Target.Addr}, Source: addr{e.Target.Source}, TOS: e.Target.TOS,
	}
	switch e.Kind {
	case ping.Start:
		_ = w.out.Write(w.start(head, e.Target))
		return
	case ping.Interim, ping.Summary:
		_ = w.out.Write(summary(head, e.Report))
		return
	case ping.Failed:
		if e.Seq == 0 || !w.quiet {
			_ = w.out.Write(failure(head, e))
		}
		return
	}
	if w.quiet {
		return
	}
	switch e.Kind {
	case ping.Reply, ping.Late, ping.Duplicate:
		_ = w.out.Write(jsonAnswer{head, e.Seq, int64(e.RTT), addr{e.From}})
	case ping.Lost, ping.Waiting:
		_ = w.out.Write(jsonWait{head, e.Seq, int64(e.Wait)})
	case ping.Delayed:
		_ = w.out.Write(jsonDelay{head, e.Seq, int64(e.Wait)})
	}
}

func (w *jsonWriter) start(head jsonHead, t *target.Target) jsonStart {
	c := w.cfg
	return jsonStart{
		jsonHead: head, Others: append([]netip.Addr{}, t.Others...), Transport: t.Transport.String(),
		Count: c.Count, Interval: int64(c.Interval), Timeout: some(c.Timeout), Deadline: some(c.Deadline),
		Flood: c.Flood, Outstanding: c.Outstanding,
	}
}

// some is the time, or null if it was not given.
func some(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return (*int64)(&d)
}

func failure(head jsonHead, e ping.Event) jsonError {
	r := jsonError{jsonHead: head, Error: e.Err.Error()}
	if e.Seq > 0 {
		r.Seq = &e.Seq
	}
	var errno syscall.Errno
	if errors.As(e.Err, &errno) {
		n := int(errno)
		r.Errno = &n
	}
	return r
}

func summary(head jsonHead, r *ping.Report) jsonSummary {
	s := jsonSummary{
		jsonHead: head,
		Sent:     r.Sent, Received: r.Received, Lost: r.Lost, Late: r.Late, Outstanding: r.Outstanding,
		Duplicates: r.Duplicates, Errors: r.Errors,
		LossPercent: r.LossPercent(), Elapsed: int64(r.Elapsed),
	}
	if r.HasRTT {
		t := &r.RTT
		s.Min, s.Avg, s.P50 = (*int64)(&t.Min), (*int64)(&t.Mean), (*int64)(&t.P50)
		s.P99, s.Max, s.Mdev = (*int64)(&t.P99), (*int64)(&t.Max), (*int64)(&t.Mdev)
	}
	return s
}
