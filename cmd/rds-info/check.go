package main

import (
	"fmt"
	"time"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/info"
	"github.com/rdskit/rdskit/rdsinfo"
)

// checkOptions are those of the command check.
type checkOptions struct {
	source
	counter, rate      nameValue
	down, stuck, queue bool
	warning, critical  thresholdValue
	filter             filterValue
	interval           cli.Interval
	stdout             *output
}

func checkCommand(out *output) *cli.Command {
	o := &checkOptions{stdout: out, interval: cli.Interval{Duration: time.Second, Max: time.Hour}}
	return &cli.Command{
		Name:  "check",
		Usage: "measure one thing and hold it to thresholds, as a monitoring plugin",
		Flags: append([]cli.Flag{
			&cli.GenericFlag{Name: "counter", Value: &o.counter, Usage: "the value of the counter `NAME`"},
			&cli.GenericFlag{Name: "rate", Value: &o.rate, Usage: "how much the counter `NAME` grows in a second"},
			&cli.BoolFlag{Name: "down", Destination: &o.down, Usage: "how many connections are not up"},
			&cli.BoolFlag{Name: "stuck", Destination: &o.stuck, Usage: "how many connections have messages waiting and got none acknowledged"},
			&cli.BoolFlag{Name: "queue-bytes", Destination: &o.queue, Usage: "how many bytes wait to be sent or acknowledged"},
			&cli.GenericFlag{Name: "warning", Aliases: []string{"w"}, Value: &o.warning, Usage: "warn outside `RANGE`: 10, 10:, ~:10, 10:20 or, for inside, @10:20"},
			&cli.GenericFlag{Name: "critical", Aliases: []string{"c"}, Value: &o.critical, Usage: "alert outside `RANGE`; 0 for --down and --stuck unless a range is given"},
			&cli.GenericFlag{Name: "filter", Value: &o.filter, Usage: "only connections and messages with each of `KEY=VALUE,...`"},
			&cli.GenericFlag{Name: "interval", Aliases: []string{"i"}, Value: &o.interval, Usage: "measure --rate and --stuck over `TIME`"},
		}, o.source.flags()...),
		Description: `It prints one line, TEXT|PERFORMANCE DATA, and ends with 0 for OK, 1 for
WARNING, 2 for CRITICAL and 3 for UNKNOWN, which is also what wrong usage is.`,
		Action: o.run,
	}
}

// metric is the one that was asked for.
func (o *checkOptions) metric() (info.Metric, error) {
	var asked []info.Metric
	for _, m := range []struct {
		given  bool
		metric info.Metric
	}{
		{o.counter != "", info.CounterMetric(string(o.counter))},
		{o.rate != "", info.RateMetric(string(o.rate))},
		{o.down, info.DownMetric()},
		{o.stuck, info.StuckMetric()},
		{o.queue, info.QueueBytesMetric()},
	} {
		if m.given {
			asked = append(asked, m.metric)
		}
	}
	if len(asked) != 1 {
		return info.Metric{}, &cli.UsageError{Reason: "want one of --counter, --rate, --down, --stuck and --queue-bytes"}
	}
	return asked[0], nil
}

func (o *checkOptions) run(c *cli.Context) error {
	if err := noOperands(c); err != nil {
		return err
	}
	metric, err := o.metric()
	if err != nil {
		return err
	}
	check := info.Check{Metric: metric, Warning: o.warning.Threshold, Critical: o.critical.Threshold, Filter: o.filter.Filter}
	if (o.down || o.stuck) && check.Warning == nil && check.Critical == nil {
		check.Critical, _ = info.ParseThreshold("0")
	}
	if f := o.filter.String(); f != "" && (o.counter != "" || o.rate != "") {
		return &cli.UsageError{Option: "--filter", Value: f, Reason: "counters are of the whole kernel, not of a connection or message"}
	}
	if o.from != "" && metric.Compares() {
		return &cli.UsageError{Option: "--from", Value: string(o.from), Reason: "--rate and --stuck take two snapshots; see rds-info diff"}
	}
	finding := o.find(c, &check)
	fmt.Fprintln(o.stdout, finding)
	if err := o.stdout.flush(); err != nil {
		return &cli.ExitError{Status: int(info.VerdictUnknown), Err: err}
	}
	if finding.Verdict != info.VerdictOK {
		return &cli.ExitError{Status: int(finding.Verdict)}
	}
	return nil
}

func (o *checkOptions) find(c *cli.Context, check *info.Check) info.Finding {
	var snapshots []*rdsinfo.Snapshot
	for {
		s, err := o.snapshot(check.Metric.Tables()...)
		if err != nil {
			return info.Unknown(err)
		}
		snapshots = append(snapshots, s)
		if !check.Metric.Compares() || len(snapshots) == 2 {
			return check.Run(snapshots[0], s)
		}
		select {
		case <-time.After(o.interval.Duration):
		case <-c.Context.Done():
			return info.Unknown(c.Context.Err())
		}
	}
}
