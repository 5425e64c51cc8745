package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/ping"
	"github.com/rdskit/rdskit/internal/strerror"
	"github.com/rdskit/rdskit/internal/target"
)

// A textWriter prints events for people. What the C rds-ping prints goes to
// stdout, as it prints it; what it does not print goes to talk, and looks
// different: scripts read the former.
type textWriter struct {
	stdout, talk io.Writer
	errors       io.Writer // what could not be tried
	several      bool      // targets: lines must say which
	quiet        bool
	stamps       bool // each line begins with the time

	hinted bool // that the kernel may not know pings
}

// write prints one event, each line with a single Write.
func (w *textWriter) write(e ping.Event) {
	switch e.Kind {
	case ping.Start:
		w.line(w.talk, e, startText(e.Target))
	case ping.Reply, ping.Late, ping.Duplicate:
		if !w.quiet {
			w.line(w.stdout, e, w.answer(e))
		}
	case ping.Failed:
		w.failed(e)
	case ping.Lost:
		w.about(e, "lost: no answer in "+seconds(e.Wait))
	case ping.Waiting:
		w.about(e, "has no answer yet, after "+seconds(e.Wait))
	case ping.Delayed:
		w.about(e, "delayed by "+seconds(e.Wait)+": too many are unanswered (-n)")
	case ping.Interim, ping.Summary:
		io.WriteString(w.talk, summaryText(e))
	}
}

func (w *textWriter) line(to io.Writer, e ping.Event, text string) {
	if w.stamps {
		text = "[" + stamp(e.Time) + "] " + text
	}
	io.WriteString(to, text+"\n")
}

// stamp is the time in seconds, as ping(8) -D has it.
func stamp(t time.Time) string {
	return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000)
}

// answer is the line for an answer: with one target that of the C rds-ping.
func (w *textWriter) answer(e ping.Event) string {
	var b strings.Builder
	usec := e.RTT.Microseconds()
	if w.several {
		fmt.Fprintf(&b, "reply %d from %s: %d us", e.Seq, targetText(e.Target), usec)
	} else {
		fmt.Fprintf(&b, " %3d: %d usec", e.Seq, usec)
	}
	if e.From != e.Target.Addr {
		fmt.Fprintf(&b, " (%v)", e.From)
	}
	if e.Kind == ping.Duplicate {
		b.WriteString(" DUP!")
	}
	return b.String()
}

// failed reports a host that cannot be tried, or a ping that was not sent, as C does, and
// why.
func (w *textWriter) failed(e ping.Event) {
	if e.Seq == 0 {
		fmt.Fprintf(w.errors, "rds-ping: %s: %v\n", e.Target.Name, e.Err)
		return
	}
	var errno syscall.Errno
	if errors.As(e.Err, &errno) && !w.quiet {
		text := fmt.Sprintf(" %3d: ERROR: %s", e.Seq, strerror.Text(errno))
		if w.several {
			text = fmt.Sprintf("error %d to %s: %s", e.Seq, targetText(e.Target), strerror.Text(errno))
		}
		w.line(w.stdout, e, text)
		if errno == syscall.EINVAL && !w.hinted {
			w.hinted = true
			w.line(w.stdout, e, "      Maybe your kernel does not support rds ping yet")
		}
	}
	w.about(e, "failed: "+e.Err.Error())
}

// about prints a line on what became of a ping that was not answered.
func (w *textWriter) about(e ping.Event, what string) {
	if !w.quiet {
		w.line(w.talk, e, fmt.Sprintf("ping %d to %s %s", e.Seq, targetText(e.Target), what))
	}
}

// hostText is a target's name and address.
func hostText(t *target.Target) string {
	if t.Name == "" || t.Name == t.Addr.String() {
		return t.Addr.String()
	}
	return fmt.Sprintf("%s (%v)", t.Name, t.Addr)
}

// targetText is a target as lines name it.
func targetText(t *target.Target) string {
	if t.TOS == 0 {
		return hostText(t)
	}
	return fmt.Sprintf("%s tos %d", hostText(t), t.TOS)
}

func startText(t *target.Target) string {
	text := fmt.Sprintf("rds-ping to %s from %v by %v", targetText(t), t.Source, t.Transport)
	if len(t.Others) > 0 {
		text += "; not pinged:"
		for _, a := range t.Others {
			text += " " + a.String()
		}
	}
	return text
}

func summaryText(e ping.Event) string {
	var b strings.Builder
	r := e.Report
	fmt.Fprintf(&b, "--- %s rds-ping statistics ---\n", targetText(e.Target))
	fmt.Fprintf(&b, "%d sent, %d received, %d late, %s lost", r.Sent, r.Received, r.Late, percent(r.LossPercent()))
	if r.Outstanding > 0 {
		fmt.Fprintf(&b, ", %d outstanding", r.Outstanding)
	}
	if r.Duplicates > 0 {
		fmt.Fprintf(&b, ", %d duplicates", r.Duplicates)
	}
	if r.Errors > 0 {
		fmt.Fprintf(&b, ", %d errors", r.Errors)
	}
	fmt.Fprintf(&b, ", time %s\n", seconds(r.Elapsed))
	if r.Sent > 0 && r.Received+r.Late == 0 {
		fmt.Fprintf(&b, "rds-info doctor %v may tell why\n", e.Target.Addr)
	}
	if s := r.RTT; r.HasRTT {
		fmt.Fprintf(&b, "rtt min/avg/p50/p99/max/mdev = %s/%s/%s/%s/%s/%s ms\n",
			ms(s.Min), ms(s.Mean), ms(s.P50), ms(s.P99), ms(s.Max), ms(s.Mdev))
	}
	return b.String()
}

// percent never rounds to none or all what is neither.
func percent(p float64) string {
	text := strconv.FormatFloat(p, 'f', 1, 64)
	switch {
	case p > 0 && text == "0.0":
		text = "under 0.1"
	case p < 100 && text == "100.0":
		text = "over 99.9"
	}
	return strings.TrimSuffix(text, ".0") + "%"
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + " s"
}

func ms(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds()*1000, 'f', 3, 64)
}
