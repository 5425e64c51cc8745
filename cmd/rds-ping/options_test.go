package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/ping"
)

func TestUsageErrors(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string // in the one line on stderr
	}{
		{nil, "Missing destination address"},
		{[]string{"--bogus", "h"}, "--bogus is not an option"},
		{[]string{"--cuont", "3", "h"}, "did you mean --count"},
		{[]string{"-c", "-1", "h"}, `-c "-1": out of range`},
		{[]string{"-c", "", "h"}, `-c "": not a whole number`},
		{[]string{"-c", "2x", "h"}, `-c "2x": not a whole number`},
		{[]string{"-c", "99999999999999999999", "h"}, "out of range"},
		{[]string{"-i", "-1", "h"}, `-i "-1": too short`},
		{[]string{"-i", "0", "h"}, `-i "0": too short`},
		{[]string{"-i", "nan", "h"}, `-i "nan"`},
		{[]string{"-i", "inf", "h"}, `-i "inf": too long`},
		{[]string{"-i", "1e30", "h"}, `-i "1e30": too long`},
		{[]string{"-i", "", "h"}, `-i "": not a time`},
		{[]string{"-i", "0,2", "h"}, `-i "0,2": not a time`},
		{[]string{"-i", "1m", "h"}, `-i "1m": not a time`},
		{[]string{"-n", "0", "h"}, `-n "0": out of range`},
		{[]string{"-Q", "300", "h"}, `-Q "300"`},
		{[]string{"-f", "h"}, "-f needs an end"},
		{[]string{"-4", "-6", "h"}, "exclude each other"},
		{[]string{"--all", "h"}, "--all takes no HOST"},
		{[]string{"--all", "-Q1"}, "neither -I nor -Q"},
	} {
		var stdout, stderr bytes.Buffer
		app := newOptions(&stdout, &stderr, false).app()
		status := cli.Run(t.Context(), app, cli.Permute, append([]string{"rds-ping"}, tt.args...))
		if status != cli.CannotTry || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q: got status %d, stdout %q, stderr %q; want 2 and one line with %q", tt.args, status, &stdout, &stderr, tt.want)
		}
	}
}

func TestValuesAreTakenAsGetoptAndTheCToolTakeThem(t *testing.T) {
	type values struct {
		count       uint64
		interval    string
		outstanding uint64
		tos         string
		source      string
		hosts       []string
	}
	defaults := values{interval: "1 s", outstanding: 8}
	for _, tt := range []struct {
		args []string
		want func(*values)
	}{
		{[]string{"h"}, func(v *values) { v.hosts = []string{"h"} }},
		{[]string{"-c1", "-i", "4", "h"}, func(v *values) { v.count, v.interval, v.hosts = 1, "4 s", []string{"h"} }},
		{[]string{"h", "-c", "2", "-Q", "3"}, func(v *values) { v.count, v.tos, v.hosts = 2, "3", []string{"h"} }},
		{[]string{"-c", "010", "-I", "a", "--", "-h"}, func(v *values) { v.count, v.source, v.hosts = 8, "a", []string{"-h"} }},
		{[]string{"-c", "0x10", "-i", "10msec", "h"}, func(v *values) { v.count, v.interval, v.hosts = 16, "10 ms", []string{"h"} }},
		{[]string{"-c1k", "-i.5", "h", "i"}, func(v *values) { v.count, v.interval, v.hosts = 1024, "500 ms", []string{"h", "i"} }},
		{[]string{"-c", "4294967296", "-i", "900us", "-n16", "h"}, func(v *values) {
			v.count, v.interval, v.outstanding, v.hosts = 1<<32, "900 us", 16, []string{"h"}
		}},
		{[]string{"-Q0-2,8", "-i", "20usec", "h"}, func(v *values) { v.interval, v.tos, v.hosts = "20 us", "0,1,2,8", []string{"h"} }},
	} {
		o := newOptions(io.Discard, io.Discard, false)
		app := o.app()
		got := values{}
		app.Action = func(c *cli.Context) error {
			got = values{o.count.Value, cli.IntervalText(o.interval.Duration), o.outstanding.Value, o.tos.String(), o.source, c.Args().Slice()}
			return nil
		}
		if status := cli.Run(t.Context(), app, cli.Permute, append([]string{"rds-ping"}, tt.args...)); status != cli.OK {
			t.Errorf("%q: status %d", tt.args, status)
			continue
		}
		want := defaults
		tt.want(&want)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(values{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestExitStatus(t *testing.T) {
	answered := ping.Report{Sent: 2, Received: 1, Lost: 1}
	silent := ping.Report{Sent: 2, Lost: 2}
	late := ping.Report{Sent: 2, Lost: 2, Late: 2}
	untried := ping.Report{Errors: 2}
	for _, tt := range []struct {
		name     string
		reports  []ping.Report
		failures int
		want     int
	}{
		{"every host answered", []ping.Report{answered, answered}, 0, cli.OK},
		{"one did not", []ping.Report{silent, answered}, 0, cli.Failed},
		{"one was late", []ping.Report{late}, 0, cli.Failed},
		{"one could not be tried", []ping.Report{answered, untried, silent}, 0, cli.CannotTry},
		{"one was not found", []ping.Report{silent}, 1, cli.CannotTry},
		{"none was found", nil, 1, cli.CannotTry},
		{"interrupted before the first ping", []ping.Report{{}}, 0, cli.Failed},
	} {
		status := cli.OK
		if err, ok := exit(tt.reports, tt.failures).(*cli.ExitError); ok {
			status = err.Status
		}
		if status != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, status, tt.want)
		}
	}
}
