package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/latency"
	"github.com/rdskit/rdskit/internal/strerror"
	"github.com/rdskit/rdskit/internal/stress"
	"github.com/rdskit/rdskit/internal/stress/flow"
)

// A reporter tells of a run.
type reporter interface{ event(stress.Event) }

// reporter returns who tells of everything, and who tells people.
func (o *options) reporter() (reporter, *textWriter) {
	text := &textWriter{o: o, stdout: o.stdout, talk: o.stderr}
	switch {
	case o.json:
		text.stdout = io.Discard
		return &both{text, newJSONWriter(o)}, text
	case o.csv:
		text.stdout = io.Discard
		return &both{text, &csvWriter{out: o.stdout}}, text
	}
	return text, text
}

// both has people told on stderr while a program reads stdout.
type both struct{ talk, data reporter }

func (b *both) event(e stress.Event) {
	b.talk.event(e)
	b.data.event(e)
}

// A textWriter prints what the C rds-stress prints on stdout, as it prints it.
// All else goes to talk.
type textWriter struct {
	o            *options
	stdout, talk io.Writer
	retrying     bool
	starting     bool // on an unfinished line
	perf         perfdata
	soFar        stress.Sample
}

func (w *textWriter) event(e stress.Event) {
	switch e.Kind {
	case stress.Listening:
		fmt.Fprintf(w.stdout, "waiting for incoming connection on %v:%d\n", e.Addr.Addr(), e.Addr.Port())
	case stress.Dropped:
		fmt.Fprintf(w.talk, "rds-stress: connection from %v dropped: %v\n", e.Addr, w.o.explain(e.Err))
	case stress.Accepted:
		fmt.Fprintf(w.stdout, "accepted connection from %v:%d", e.Addr.Addr(), e.Addr.Port())
		if w.o.recv == "" {
			fmt.Fprintf(w.stdout, " on %v:%d", e.Local.Addr(), e.Local.Port())
		}
		fmt.Fprintln(w.stdout)
	case stress.Connecting:
		w.params(e.Config)
		fmt.Fprintf(w.stdout, "connecting to %v:%d", e.Addr.Addr(), e.Addr.Port())
	case stress.Retrying:
		if !w.retrying {
			w.retrying = true
			fmt.Fprintf(w.stdout, ": %s - retrying", errnoText(e.Err))
		}
		fmt.Fprint(w.stdout, ".")
	case stress.NotConnected:
		if !w.retrying {
			fmt.Fprintf(w.stdout, ": %s", errnoText(e.Err))
		}
		fmt.Fprintln(w.stdout)
	case stress.Connected:
		fmt.Fprintln(w.stdout)
	case stress.Note:
		fmt.Fprintf(w.talk, "rds-stress: %s\n", e.Text)
	case stress.Negotiated:
		if w.o.self {
			w.params(e.Config)
		}
		fmt.Fprint(w.stdout, "negotiated options, tasks will start in 2 seconds\n")
	case stress.Starting:
		w.starting, w.soFar = true, stress.Sample{}
		fmt.Fprint(w.stdout, "Starting up")
	case stress.StartingUp:
		fmt.Fprint(w.stdout, ".")
	case stress.Started:
		w.started()
		if w.perfdata(e.Config) {
			w.perf = perfdata{}
			w.perf.header(w.stdout)
			return
		}
		fmt.Fprintf(w.stdout, "%4s %6s %6s %10s %10s %10s %7s %8s %5s\n",
			"tsks", "tx/s", "rx/s", "tx+rx K/s", "mbi K/s", "mbo K/s", "tx us/c", "rtt us", "cpu %")
	case stress.Interval:
		w.soFar.Total = e.Sample.Total
		w.soFar.Stats.Add(&e.Sample.Stats)
		switch {
		case w.summaryOnly(e.Config):
		case w.perfdata(e.Config):
			w.perf.row(w.stdout, e.Config, e.Sample)
		default:
			w.row(e.Sample)
		}
		w.keys(e.Sample.Keys)
	case stress.Found:
		io.WriteString(w.stdout, mismatch(e.Finding.Mismatch))
		fmt.Fprintf(w.talk, "rds-stress: %v\n", e.Finding)
	case stress.Outlier:
		fmt.Fprintf(w.talk, "Found RTT = %#x\n", e.RTT.Microseconds())
	case stress.Canceled:
		c := e.Canceled
		fmt.Fprintf(w.stdout, "RDS_CANCEL_SENT_TO(%v:%d)[%d] took %d msec\n", c.To.Addr(), c.To.Port(), os.Getpid(), c.Took.Milliseconds())
	case stress.End:
		w.end(e)
	}
}

// summaryOnly and perfdata are -z and --show-perfdata, of this side or, as in C, of the other.
func (w *textWriter) summaryOnly(c *stress.Config) bool { return w.o.summaryOnly || c.SummaryOnly }

func (w *textWriter) perfdata(c *stress.Config) bool { return w.o.perfdata || c.Perfdata }

// mismatch is what C prints of a message that is not as it expected it.
func mismatch(m *flow.Mismatch) string {
	if m == nil {
		return ""
	}
	if m.Wrong > 0 {
		return fmt.Sprintf("An incoming message has a corrupted payload at offset %d; %d out of %d bytes corrupted\n", m.Offset, m.Wrong, m.Total)
	}
	retry, width := "", 15
	if m.Got.Retry {
		retry = "RETRY"
	}
	if m.Want.From.Addr().Is6() {
		width = 37
	}
	text := fmt.Sprintf("An incoming message had a %s header which\ndidn't contain the fields we expected:\n    member %*s eq %*s\n", retry, width, "expected", width, "got")
	for _, f := range []struct {
		name      string
		want, got any
	}{
		{"seq", m.Want.Seq, m.Got.Seq},
		{"from_addr", m.Want.From.Addr(), m.Got.From.Addr()}, {"from_port", m.Want.From.Port(), m.Got.From.Port()},
		{"to_addr", m.Want.To.Addr(), m.Got.To.Addr()}, {"to_port", m.Want.To.Port(), m.Got.To.Port()},
		{"index", m.Want.Index, m.Got.Index}, {"op", uint8(m.Want.Op), uint8(m.Got.Op)},
	} {
		eq := "!="
		if f.want == f.got {
			eq = " ="
		}
		text += fmt.Sprintf("%10s %*v %s %*v\n", f.name, width, f.want, eq, width, f.got)
	}
	return text
}

// keys is --rdma-key-o-meter.
func (w *textWriter) keys(k *stress.KeyReuse) {
	if k != nil && k.Again > 0 {
		fmt.Fprintf(w.stdout, " *** %d R_Keys were re-issued; min distance=%f sec, avg distance=%f sec\n", k.Again, k.Min.Seconds(), k.Mean.Seconds())
	}
}

// errnoText is what strerror says of the cause.
func errnoText(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return strerror.Text(errno)
	}
	return err.Error()
}

// params is --show-params.
func (w *textWriter) params(c *stress.Config) {
	if !w.o.showParams {
		return
	}
	fmt.Fprintf(w.stdout, "Options:\n  %-10s %-7d\n  %-10s %-7d\n  %-10s %-7d\n  %-10s %-7d\n  %-10s",
		"Tasks", c.Tasks, "Req size", c.Shape.ReqSize, "ACK size", c.Shape.AckSize, "RDMA size", c.RDMA.Size, "RDMA opts")
	given := ""
	for _, o := range []struct {
		on   bool
		name string
	}{
		{c.RDMA.UseOnce, " use_once"}, {c.RDMA.GetMR, " use_get_mr"},
		{!c.RDMA.NoFence, " use_fence"}, {c.RDMA.Cache, " cache_mrs"},
		{c.RDMA.Alignment > 0, fmt.Sprintf(" align=%d", c.RDMA.Alignment)},
	} {
		if o.on {
			given += o.name
		}
	}
	if given == "" {
		given = " (defaults)"
	}
	fmt.Fprintf(w.stdout, "%s\n\n", given)
}

const kib = 1024

// row is one line of the table. Counts are those of the interval and rates are per second, as C has them.
func (w *textWriter) row(s *stress.Sample) {
	per := 1 / max(s.Elapsed.Seconds(), 1e-9)
	cpu := -1.0
	if s.Processors != nil {
		cpu = s.Processors.Busy()
	}
	fmt.Fprintf(w.stdout, "%4d %6d %6d %10.2f %10.2f %10.2f %7.2f %8.2f %5.2f\n", s.Tasks, s.RequestsSent, s.RequestsReceived,
		per*float64(s.Bytes())/kib, per*float64(s.RDMAInBytes)/kib, per*float64(s.RDMAOutBytes)/kib,
		usec(s.MeanSendTime()), usec(s.MeanRTT()), cpu)
}

func usec(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// started ends the line of dots.
func (w *textWriter) started() {
	if w.starting {
		w.starting = false
		fmt.Fprintln(w.stdout)
	}
}

// interim says how far the run has come, at the last sample.
func (w *textWriter) interim() {
	s := &w.soFar
	fmt.Fprintf(w.talk, "after %s: %d requests sent and %d received, round trips of %.2f us in the mean\n", seconds3(s.Total), s.RequestsSent, s.RequestsReceived, usec(s.MeanRTT()))
	if n := s.Faults(); n > 0 {
		fmt.Fprintf(w.talk, "%d faults found\n", n)
	}
}

func (w *textWriter) end(e stress.Event) {
	sum := e.Summary
	w.started()
	if !w.summaryOnly(e.Config) {
		fmt.Fprintln(w.stdout, "---------------------------------------------")
	}
	m := &sum.Measured
	per := 0.0
	if m.Total > 0 {
		per = 1 / m.Total.Seconds()
	}
	cpu := -1.0
	if m.Processors != nil {
		cpu = m.Processors.Busy()
	}
	fmt.Fprintf(w.stdout, "%4d %6.0f %6.0f %10.2f %10.2f %10.2f %7.2f %8.2f %5.2f  (average)\n", e.Config.Tasks,
		per*float64(m.RequestsSent), per*float64(m.RequestsReceived),
		per*float64(m.Bytes())/kib, per*float64(m.RDMAInBytes)/kib, per*float64(m.RDMAOutBytes)/kib,
		usec(m.MeanSendTime()), usec(m.MeanRTT()), cpu)
	if w.o.histogram {
		io.WriteString(w.stdout, histogram(&sum.Whole))
	}
	io.WriteString(w.talk, verdict(e))
	if w.o.percentiles || w.o.rxPath {
		io.WriteString(w.talk, details(e))
	}
}

// cBuckets is how many powers of two C prints; longer round trips are in lines that follow.
const cBuckets = 16

// histogram is --show-histogram, with percentages as C has them from 2.3.9 on.
func histogram(s *stress.Stats) string {
	last, total := cBuckets, uint64(0)
	for i, n := range s.RTTs {
		if n > 0 {
			last = max(last, i+1)
		}
		total += n
	}
	var b strings.Builder
	b.WriteString("\nRTT histogram\nRTT (us)        \t\t    Count\n")
	for i, n := range s.RTTs[:last] {
		fmt.Fprintf(&b, "[%6d - %6d] \t\t %8d \t\t (%.2f%%)\n", uint64(1)<<i, uint64(1)<<(i+1), n, 100*float64(n)/float64(max(total, 1)))
	}
	return b.String()
}

// verdict says in words what the run came to.
func verdict(e stress.Event) string {
	sum := e.Summary
	var b strings.Builder
	who := "passive"
	if e.Active {
		who = "active"
	}
	w := &sum.Whole
	fmt.Fprintf(&b, "%s side, by %v: %s", who, e.Transport, account(w, sum.Lost, sum.Undelivered))
	if sum.Unanswered > 0 {
		fmt.Fprintf(&b, "; %d requests without an answer", sum.Unanswered)
	}
	b.WriteByte('\n')
	if sum.Canceled > 0 {
		fmt.Fprintf(&b, "%d messages were queued, and canceled\n", sum.Canceled)
	}
	if p := sum.Peer; p != nil {
		fmt.Fprintf(&b, "its peer: %s\n", account(&p.Stats, p.Lost, p.Undelivered))
		if p.Error != "" {
			fmt.Fprintf(&b, "its peer says: %s\n", p.Error)
		}
	}
	if sum.Gap > 0 {
		fmt.Fprintf(&b, "nothing arrived for up to %s", seconds3(sum.Gap))
		if sum.Recovery > 0 {
			fmt.Fprintf(&b, "; answers came again after %s", seconds3(sum.Recovery))
		}
		b.WriteByte('\n')
	}
	if sum.Err != nil {
		fmt.Fprintf(&b, "rds-stress: the run broke off: %v\n", sum.Err)
		for _, o := range sum.Outstanding {
			fmt.Fprintf(&b, "outstanding: %d requests of task %d to %v\n", o.Requests, o.Task, o.To)
		}
	}
	return b.String()
}

func account(s *stress.Stats, lost, undelivered uint64) string {
	text := fmt.Sprintf("%d messages received", s.RequestsReceived+s.AcksReceived)
	faults := false
	for _, f := range []struct {
		n    uint64
		what string
	}{
		{lost, "lost"}, {s.Duplicated, "doubled"}, {s.Reordered, "reordered"}, {s.Damaged, "damaged"},
		{s.Foreign, "foreign"}, {s.GivenUp - min(s.Late, s.GivenUp), "requests given up"},
		{s.RDMAFailed, "RDMA operations failed"}, {s.RDMADamaged, "RDMA operations moved wrong data"},
	} {
		if f.n > 0 {
			faults = true
			text += fmt.Sprintf(", %d %s", f.n, f.what)
		}
	}
	if !faults {
		text += ", none lost, doubled, reordered or damaged"
	}
	if s.Late > 0 {
		text += fmt.Sprintf("; %d answers came after --give-up", s.Late)
	}
	if undelivered > 0 {
		text += fmt.Sprintf("; %d not waited for", undelivered)
	}
	if s.RDMAReads+s.RDMAWrites > 0 {
		text += fmt.Sprintf("; %d RDMA reads and %d writes done", s.RDMAReads, s.RDMAWrites)
	}
	return text
}

func seconds3(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// quantiles are those that are reported.
var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}, {"max", 1}}

// rdmaLatencies name stress.Latencies.RDMA.
var rdmaLatencies = [...]struct{ text, name string }{
	stress.RDMARead:      {"read, from request to verified data", "read"},
	stress.RDMAWrite:     {"write, from request to verified data", "write"},
	stress.RDMAOperation: {"operation, from start to completion", "operation"},
}

// details are percentiles and costs.
func details(e stress.Event) string {
	var b strings.Builder
	m := &e.Summary.Measured
	line := func(name string, h *latency.Histogram) {
		if h.Count() == 0 {
			return
		}
		fmt.Fprintf(&b, "%s:", name)
		for _, q := range quantiles {
			fmt.Fprintf(&b, " %s %.1f us", q.name, usec(h.Quantile(q.q)))
		}
		b.WriteByte('\n')
	}
	line("round trip", &m.Latencies.RTT)
	for i, name := range rdmaLatencies {
		line("RDMA "+name.text, &m.Latencies.RDMA[i])
	}
	for i, p := range stress.RXPath {
		line("receive path, "+p.String(), &m.Latencies.Receive[i])
	}
	if n := m.RequestsSent + m.RequestsReceived + m.AcksSent + m.AcksReceived; n > 0 {
		u := m.Usage
		fmt.Fprintf(&b, "per message: %.2f us of processor time, %.3f context switches, %.4f allocations; %d collections of garbage, %s\n",
			usec(u.User+u.System)/float64(n), float64(u.VoluntarySw+u.InvoluntarySw)/float64(n), float64(u.Allocations)/float64(n),
			u.Collections, seconds3(u.CollectionPause))
	}
	return b.String()
}
