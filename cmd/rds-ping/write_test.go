package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/latency"
	"github.com/rdskit/rdskit/internal/ping"
	"github.com/rdskit/rdskit/internal/target"
	"github.com/rdskit/rdskit/rdssock"
)

// sampleEvents has each kind of event, about t.
func sampleEvents(t *target.Target) []ping.Event {
	const us, ms = time.Microsecond, time.Millisecond
	other := netip.MustParseAddr("2001:db8::9")
	send := &os.SyscallError{Syscall: "sendmsg", Err: syscall.EINVAL}
	report := &ping.Report{
		Sent: 2001, Received: 1999, Lost: 1, Late: 1, Outstanding: 1, Duplicates: 3, Errors: 4, Elapsed: 2500 * ms,
		HasRTT: true, RTT: latency.Summary{Count: 2000, Min: 60 * us, Mean: 70 * us, P50: 65 * us, P99: 90 * us, Max: 12345 * us, Mdev: 1},
	}
	events := []ping.Event{
		{Kind: ping.Start},
		{Kind: ping.Reply, Seq: 1, RTT: 54593*us + 999, From: t.Addr},
		{Kind: ping.Reply, Seq: 1000, RTT: 60 * us, From: other},
		{Kind: ping.Late, Seq: 2, RTT: 3700 * ms, From: t.Addr},
		{Kind: ping.Duplicate, Seq: 3, RTT: 70 * us, From: other},
		{Kind: ping.Lost, Seq: 4, Wait: 1600 * ms},
		{Kind: ping.Waiting, Seq: 5, Wait: 200 * ms},
		{Kind: ping.Delayed, Seq: 13, Wait: 400 * ms},
		{Kind: ping.Failed, Seq: 6, Err: send},
		{Kind: ping.Failed, Seq: 7, Err: send},
		{Kind: ping.Failed, Seq: 8, Err: errors.New("no socket")},
		{Kind: ping.Interim, Report: report},
		{Kind: ping.Summary, Report: &ping.Report{}},
	}
	for i := range events {
		events[i].Target = t
		events[i].Time = time.Unix(1_700_000_000, 123_456_789)
	}
	return append(events, ping.Event{Kind: ping.Failed, Target: &target.Target{Name: "nosuch"}, Err: errors.New("no such host")})
}

func sampleTarget(addr string) *target.Target {
	return &target.Target{Name: addr, Addr: netip.MustParseAddr(addr), Source: netip.MustParseAddr(addr).Next(), Transport: rdssock.TransportTCP}
}

func TestTextForOneHost(t *testing.T) {
	var stdout, talk, errs bytes.Buffer
	w := &textWriter{stdout: &stdout, talk: &talk, errors: &errs}
	for _, e := range sampleEvents(sampleTarget("10.9.0.2")) {
		w.write(e)
	}
	// As rds-ping.c:report_packet prints them.
	const wantStdout = `   1: 54593 usec
 1000: 60 usec (2001:db8::9)
   2: 3700000 usec
   3: 70 usec (2001:db8::9) DUP!
   6: ERROR: Invalid argument
      Maybe your kernel does not support rds ping yet
   7: ERROR: Invalid argument
`
	const wantTalk = `rds-ping to 10.9.0.2 from 10.9.0.3 by tcp
ping 4 to 10.9.0.2 lost: no answer in 1.600 s
ping 5 to 10.9.0.2 has no answer yet, after 0.200 s
ping 13 to 10.9.0.2 delayed by 0.400 s: too many are unanswered (-n)
ping 6 to 10.9.0.2 failed: sendmsg: invalid argument
ping 7 to 10.9.0.2 failed: sendmsg: invalid argument
ping 8 to 10.9.0.2 failed: no socket
--- 10.9.0.2 rds-ping statistics ---
2001 sent, 1999 received, 1 late, 0.1% lost, 1 outstanding, 3 duplicates, 4 errors, time 2.500 s
rtt min/avg/p50/p99/max/mdev = 0.060/0.070/0.065/0.090/12.345/0.000 ms
--- 10.9.0.2 rds-ping statistics ---
0 sent, 0 received, 0 late, 0% lost, time 0.000 s
`
	if diff := cmp.Diff(wantStdout, stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantTalk, talk.String()); diff != "" {
		t.Errorf("talk (-want +got):\n%s", diff)
	}
	if got, want := errs.String(), "rds-ping: nosuch: no such host\n"; got != want {
		t.Errorf("errors: got %q, want %q", got, want)
	}
}

// Scripts that read what the C rds-ping prints must not take anything else for it.
func TestLinesThatCDoesNotPrintLookDifferent(t *testing.T) {
	likeC := regexp.MustCompile(`^ *\d+:| usec`)
	for _, addr := range []string{"10.9.0.2", "2001:db8::2", "::1"} {
		var stdout, other bytes.Buffer
		target := sampleTarget(addr)
		target.TOS = 3
		target.Others = []netip.Addr{netip.MustParseAddr("2001:db8::3")}
		one := &textWriter{stdout: &stdout, talk: &other, errors: &other}
		several := &textWriter{stdout: &other, talk: &other, errors: &other, several: true}
		for _, e := range sampleEvents(target) {
			one.write(e)
			several.write(e)
		}
		if other.Len() == 0 {
			t.Fatal("nothing printed")
		}
		for line := range strings.Lines(other.String()) {
			if likeC.MatchString(line) {
				t.Errorf("%q looks like a line of C", line)
			}
		}
	}
}

func TestQuietPrintsTheSummaryOnly(t *testing.T) {
	var stdout, talk, errs bytes.Buffer
	w := &textWriter{stdout: &stdout, talk: &talk, errors: &errs, quiet: true}
	for _, e := range sampleEvents(sampleTarget("10.9.0.2")) {
		w.write(e)
	}
	if stdout.Len() > 0 || strings.Contains(talk.String(), "ping 4") || !strings.Contains(talk.String(), "2001 sent") || errs.Len() == 0 {
		t.Errorf("got stdout %q, talk %q, errors %q", &stdout, &talk, &errs)
	}
}

func TestTimestampsBeginTheLines(t *testing.T) {
	var stdout bytes.Buffer
	w := &textWriter{stdout: &stdout, talk: &stdout, errors: &stdout, stamps: true}
	w.write(sampleEvents(sampleTarget("10.9.0.2"))[1])
	if got, want := stdout.String(), "[1700000000.123456]    1: 54593 usec\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPercentNeverRoundsToNoneOrAll(t *testing.T) {
	for p, want := range map[float64]string{0: "0%", 0.01: "under 0.1%", 0.1: "0.1%", 50: "50%", 33.333: "33.3%", 99.99: "over 99.9%", 100: "100%"} {
		if got := percent(p); got != want {
			t.Errorf("%v: got %s, want %s", p, got, want)
		}
	}
}

func TestJSONObjects(t *testing.T) {
	var b bytes.Buffer
	target := sampleTarget("10.9.0.2")
	target.Name, target.Others = "h2", []netip.Addr{netip.MustParseAddr("fd00::2")}
	cfg := &ping.Config{Count: 10, Interval: time.Second, Timeout: 2 * time.Second, Outstanding: 8}
	w := &jsonWriter{out: cli.NewJSONLines(&b), cfg: cfg}
	for _, e := range sampleEvents(target) {
		w.write(e)
	}
	const about = `"time":"2023-11-14T22:13:20.123456789Z","host":"h2","destination":"10.9.0.2","source":"10.9.0.3","tos":0,`
	want := strings.ReplaceAll(`{"type":"start",ABOUT"other_addresses":["fd00::2"],"transport":"tcp","count":10,"interval_ns":1000000000,"timeout_ns":2000000000,"deadline_ns":null,"flood":false,"max_outstanding":8}
{"type":"reply",ABOUT"seq":1,"rtt_ns":54593999,"from":"10.9.0.2"}
{"type":"reply",ABOUT"seq":1000,"rtt_ns":60000,"from":"2001:db8::9"}
{"type":"late",ABOUT"seq":2,"rtt_ns":3700000000,"from":"10.9.0.2"}
{"type":"duplicate",ABOUT"seq":3,"rtt_ns":70000,"from":"2001:db8::9"}
{"type":"lost",ABOUT"seq":4,"waited_ns":1600000000}
{"type":"waiting",ABOUT"seq":5,"waited_ns":200000000}
{"type":"delayed",ABOUT"seq":13,"delay_ns":400000000}
{"type":"error",ABOUT"seq":6,"errno":22,"error":"sendmsg: invalid argument"}
{"type":"error",ABOUT"seq":7,"errno":22,"error":"sendmsg: invalid argument"}
{"type":"error",ABOUT"seq":8,"errno":null,"error":"no socket"}
{"type":"interim",ABOUT"sent":2001,"received":1999,"lost":1,"late":1,"outstanding":1,"duplicates":3,"errors":4,"loss_percent":0.05,"elapsed_ns":2500000000,"rtt_min_ns":60000,"rtt_avg_ns":70000,"rtt_p50_ns":65000,"rtt_p99_ns":90000,"rtt_max_ns":12345000,"rtt_mdev_ns":1}
{"type":"summary",ABOUT"sent":0,"received":0,"lost":0,"late":0,"outstanding":0,"duplicates":0,"errors":0,"loss_percent":0,"elapsed_ns":0,"rtt_min_ns":null,"rtt_avg_ns":null,"rtt_p50_ns":null,"rtt_p99_ns":null,"rtt_max_ns":null,"rtt_mdev_ns":null}
{"type":"error","time":"0001-01-01T00:00:00Z","host":"nosuch","destination":null,"source":null,"tos":0,"seq":null,"errno":null,"error":"no such host"}
`, "ABOUT", about)
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for line := range strings.Lines(b.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is no JSON", line)
		}
	}
}

func TestQuietJSONHasStartErrorAndSummary(t *testing.T) {
	var b bytes.Buffer
	w := &jsonWriter{out: cli.NewJSONLines(&b), cfg: &ping.Config{}, quiet: true}
	for _, e := range sampleEvents(sampleTarget("10.9.0.2")) {
		w.write(e)
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		var o struct{ Type string }
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Type)
	}
	if diff := cmp.Diff([]string{"start", "interim", "summary", "error"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatNobodyAnswersNamesTheNextStep(t *testing.T) {
	const next = "rds-info doctor 10.9.0.2 may tell why\n"
	for _, tt := range []struct {
		report ping.Report
		want   bool
	}{
		{ping.Report{Sent: 4}, true},
		{ping.Report{}, false},
		{ping.Report{Sent: 4, Received: 1}, false},
		{ping.Report{Sent: 4, Late: 1}, false},
	} {
		text := summaryText(ping.Event{Target: sampleTarget("10.9.0.2"), Report: &tt.report})
		if strings.Contains(text, next) != tt.want {
			t.Errorf("%+v: %s", tt.report, text)
		}
	}
}
