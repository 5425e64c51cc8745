package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/netns"
	"github.com/rdskit/rdskit/internal/ping"
	"github.com/rdskit/rdskit/internal/target"
)

const description = `A TIME is in seconds, or ends in ms, msec, us or usec. An N may end in k, m or g.
A ping makes the kernel connect to the host. The connection stays when
rds-ping has ended, and shows with --all from then on.

SIGQUIT (Ctrl-\) prints a summary of what was so far.
Exit status: 0 every host answered, 1 one did not, 2 one could not be tried.`

// options are what the command line says.
type options struct {
	count       cli.Number
	interval    cli.Interval
	timeout     cli.Interval
	deadline    cli.Interval
	outstanding cli.Number
	tos         cli.TOSList
	source      string
	netns       string

	ipv4, ipv6, all, load bool
	flood, waiting        bool
	quiet, stamps         bool
	json, summary         bool
	stdout                *cli.Output
	stderr                io.Writer
	stdoutIsTerminal      bool
}

// newOptions are the defaults. terminal says that people read stdout.
func newOptions(stdout, stderr io.Writer, terminal bool) *options {
	return &options{
		interval:         cli.Interval{Duration: ping.DefaultInterval},
		outstanding:      cli.Number{Value: ping.DefaultOutstanding, Min: 1, Max: ping.MaxOutstanding},
		stdout:           cli.NewOutput(stdout),
		stderr:           stderr,
		stdoutIsTerminal: terminal,
	}
}

func (o *options) app() *cli.App {
	return &cli.App{
		Name:      "rds-ping",
		Usage:     "Send RDS pings to hosts and measure how long the answers take.",
		ArgsUsage: "HOST ...",
		Version:   cli.Version(),
		Writer:    o.stdout,
		ErrWriter: o.stderr,
		Flags: []cli.Flag{
			&cli.GenericFlag{Name: "count", Aliases: []string{"c"}, Value: &o.count, Usage: "send `N` pings to each host, then end; 0 has no end"},
			&cli.GenericFlag{Name: "interval", Aliases: []string{"i"}, Value: &o.interval, Usage: "send one each `TIME`; the last one waits as long for its answer"},
			&cli.StringFlag{Name: "interface", Aliases: []string{"I"}, Destination: &o.source, Usage: "ping from `SOURCE`, an address or an interface"},
			&cli.GenericFlag{Name: "tos", Aliases: []string{"Q"}, Value: &o.tos, Usage: "with each type of service in `LIST`, such as 0,3 or 0-7"},
			&cli.GenericFlag{Name: "outstanding", Aliases: []string{"n"}, Value: &o.outstanding, Usage: "leave at most `N` pings to a host unanswered"},
			&cli.GenericFlag{Name: "timeout", Aliases: []string{"W"}, Value: &o.timeout, Usage: "count a ping as lost after `TIME` without an answer"},
			&cli.GenericFlag{Name: "deadline", Aliases: []string{"w"}, Value: &o.deadline, Usage: "end after `TIME`"},
			&cli.BoolFlag{Name: "flood", Aliases: []string{"f"}, Destination: &o.flood, Usage: "send as soon as there are answers; needs -c or -w"},
			&cli.BoolFlag{Name: "ipv4", Aliases: []string{"4"}, Destination: &o.ipv4, Usage: "take IPv4 addresses of names only"},
			&cli.BoolFlag{Name: "ipv6", Aliases: []string{"6"}, Destination: &o.ipv6, Usage: "take IPv6 addresses of names only"},
			&cli.BoolFlag{Name: "all", Destination: &o.all, Usage: "ping along every connection that the kernel has"},
			&cli.StringFlag{Name: "netns", Destination: &o.netns, Usage: "ping from the network namespace `NAME`: a name, the number of a process, or a path"},
			&cli.BoolFlag{Name: "load", Destination: &o.load, Usage: "let the kernel load RDS modules that are missing"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Destination: &o.quiet, Usage: "print the summary only"},
			&cli.BoolFlag{Name: "timestamps", Aliases: []string{"D"}, Destination: &o.stamps, Usage: "begin lines with the time, in seconds since 1970"},
			&cli.BoolFlag{Name: "report-outstanding", Aliases: []string{"O"}, Destination: &o.waiting, Usage: "tell of pings without an answer when the next is sent"},
			&cli.BoolFlag{Name: "summary", Destination: &o.summary, Usage: "print summary and losses on stdout even if it is no terminal"},
			&cli.BoolFlag{Name: "json", Destination: &o.json, Usage: "print JSON, one object a line"},
		},
		Description: description,
		Action:      o.run,
	}
}

// check refuses options that do not go together.
func (o *options) check(hosts []string) error {
	switch {
	case o.ipv4 && o.ipv6:
		return &cli.UsageError{Reason: "-4 and -6 exclude each other"}
	case o.flood && o.count.Value == 0 && o.deadline.Duration == 0:
		return &cli.UsageError{Option: "-f", Reason: "needs an end: give -c or -w as well"}
	case o.all && len(hosts) > 0:
		return &cli.UsageError{Reason: "--all takes no HOST: it pings all that the kernel has connections to"}
	case o.all && (o.source != "" || len(o.tos) > 0):
		return &cli.UsageError{Reason: "--all pings from the source and with the type of service of each connection: it takes neither -I nor -Q"}
	case len(hosts) == 0 && !o.all:
		return &cli.UsageError{Reason: "Missing destination address: want at least one HOST"}
	}
	return nil
}

func (o *options) run(c *cli.Context) error {
	hosts := c.Args().Slice()
	if err := o.check(hosts); err != nil {
		return err
	}
	finder := &target.Finder{Network: o.network(), Source: o.source, TOS: o.tos, Load: o.load}
	cfg := &ping.Config{
		Count: o.count.Value, Interval: o.interval.Duration,
		Timeout: o.timeout.Duration, Deadline: o.deadline.Duration,
		Flood: o.flood, Outstanding: int(o.outstanding.Value), ReportWaiting: o.waiting,
	}
	if o.netns != "" {
		f, err := netns.Open(o.netns)
		if err != nil {
			return fmt.Errorf("--netns: %w", err)
		}
		defer f.Close()
		finder.NetNS = int(f.Fd())
		cfg.NetNS = finder.NetNS
	}
	ctx, interim, stop := cli.Signals(c.Context)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg.Interim = interim

	targets, failures, err := o.find(ctx, finder, hosts)
	if err != nil {
		return err
	}
	cfg.Targets = targets
	write := o.writer(cfg, len(targets)+len(failures) > 1)
	notify := func(e ping.Event) {
		write(e)
		if o.stdout.Err() != nil {
			cancel() // nobody hears of the rest
		}
	}
	for _, e := range failures {
		notify(e)
	}
	var reports []ping.Report
	if len(targets) > 0 {
		if reports, err = ping.Run(ctx, cfg, notify); err != nil {
			return err
		}
	}
	if err := o.stdout.Err(); err != nil {
		return err
	}
	return exit(reports, len(failures))
}

// find returns whom to ping, and an event for each host that cannot be.
func (o *options) find(ctx context.Context, finder *target.Finder, hosts []string) (targets []target.Target, failures []ping.Event, err error) {
	if o.all {
		targets, err = finder.FindAll(ctx)
		if err == nil && len(targets) == 0 {
			err = errors.New("--all: the kernel knows no RDS connection to ping (rds-info -n lists them)")
		}
		return targets, nil, err
	}
	for _, h := range hosts {
		ts, err := finder.Find(ctx, h)
		if err != nil {
			failures = append(failures, ping.Event{
				Kind: ping.Failed, Time: time.Now(), Target: &target.Target{Name: h}, Err: err,
			})
		}
		targets = append(targets, ts...)
	}
	return targets, failures, nil
}

// writer returns what prints the events.
func (o *options) writer(cfg *ping.Config, several bool) func(ping.Event) {
	text := &textWriter{stdout: o.stdout, talk: o.stderr, errors: o.stderr, several: several, quiet: o.quiet, stamps: o.stamps}
	if o.summary || o.stdoutIsTerminal {
		text.talk = o.stdout
	}
	if !o.json {
		return text.write
	}
	w := &jsonWriter{out: cli.NewJSONLines(o.stdout), cfg: cfg, quiet: o.quiet}
	return func(e ping.Event) {
		w.write(e)
		if e.Kind == ping.Failed && e.Seq == 0 {
			text.write(e) // people want to know, too
		}
	}
}

// exit is the exit status: whether every host answered.
func exit(reports []ping.Report, failures int) error {
	status := cli.OK
	if failures > 0 {
		status = cli.CannotTry
	}
	for _, r := range reports {
		switch {
		case r.Sent == 0 && r.Errors > 0:
			status = cli.CannotTry
		case r.Received == 0 && status == cli.OK:
			status = cli.Failed
		}
	}
	if status == cli.OK {
		return nil
	}
	return &cli.ExitError{Status: status}
}

func (o *options) network() string {
	switch {
	case o.ipv4:
		return "ip4"
	case o.ipv6:
		return "ip6"
	}
	return "ip"
}
