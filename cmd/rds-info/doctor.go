package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/doctor"
	"github.com/rdskit/rdskit/internal/plain"
	"github.com/rdskit/rdskit/rdsinfo"
)

// doctorOptions are those of the command doctor.
type doctorOptions struct {
	netns    nameValue
	from     bundleList
	local    addrValue
	probe    bool
	tos      cli.TOSList
	interval cli.Interval
	timeout  cli.Interval
	quiet    bool
	json     bool
	stdout   *output
}

func doctorCommand(out *output) *cli.Command {
	o := &doctorOptions{
		stdout:   out,
		interval: cli.Interval{Duration: time.Second, Max: time.Hour},
		timeout:  cli.Interval{Duration: 2 * time.Second, Max: time.Hour},
	}
	return &cli.Command{
		Name:      "doctor",
		Usage:     "say what is wrong with RDS here, or on the way to HOST, and what to do",
		ArgsUsage: "[HOST]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "probe", Destination: &o.probe, Usage: "permit making a connection to HOST, which stays"},
			&cli.GenericFlag{Name: "tos", Aliases: []string{"Q"}, Value: &o.tos, Usage: "with --probe, one for each type of service in `LIST`"},
			&cli.GenericFlag{Name: "local", Value: &o.local, Usage: "look at the local `ADDRESS` only, and reach HOST from it"},
			&cli.GenericFlag{Name: "interval", Aliases: []string{"i"}, Value: &o.interval, Usage: "look twice, `TIME` apart"},
			&cli.GenericFlag{Name: "timeout", Aliases: []string{"W"}, Value: &o.timeout, Usage: "wait `TIME` for the answer to a ping"},
			&cli.GenericFlag{Name: "netns", Value: &o.netns, Usage: "in the network namespace `NAME`, or in that of a process by its number"},
			&cli.GenericFlag{Name: "from", Value: &o.from, Usage: "judge the bundle `FILE` instead of this host; given again, a later one of the same host"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Destination: &o.quiet, Usage: "print only what is wrong"},
			&cli.BoolFlag{Name: "json", Destination: &o.json, Usage: "print JSON, one object a finding"},
		},
		Description: `Without HOST nothing is sent. With HOST it is pinged along the connections that
there are. It ends with 0 if nothing is wrong, 1 if a check warns or fails, 2
if the checks could not be made.`,
		Action: o.run,
	}
}

func (o *doctorOptions) run(c *cli.Context) error {
	host := c.Args().First()
	if err := o.check(c.Args().Slice()); err != nil {
		return err
	}
	facts, err := o.facts(c, host)
	if err != nil {
		return err
	}
	findings := doctor.Examine(facts)
	err = o.print(findings)
	if ferr := o.stdout.flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Verdict.Bad() {
			return &cli.ExitError{Status: cli.Failed}
		}
	}
	return nil
}

// check refuses options that do not go together.
func (o *doctorOptions) check(operands []string) error {
	switch {
	case len(operands) > 1:
		return &cli.UsageError{Reason: fmt.Sprintf("extra argument %q: want one host", operands[1])}
	case len(operands) == 1 && operands[0] == "":
		return &cli.UsageError{Reason: "the name of the host is empty"}
	case len(o.from) > 0 && (len(operands) > 0 || o.netns != "" || o.probe):
		return &cli.UsageError{Option: "--from", Value: o.from.String(), Reason: "a bundle can only be looked at: leave out HOST, --probe and --netns"}
	case o.probe && len(operands) == 0:
		return &cli.UsageError{Option: "--probe", Reason: "needs a HOST to probe"}
	case len(o.tos) > 0 && !o.probe:
		return &cli.UsageError{Option: "--tos", Value: o.tos.String(), Reason: "goes with --probe; connections that exist are pinged with their own"}
	}
	return nil
}

func (o *doctorOptions) facts(c *cli.Context, host string) (facts *doctor.Facts, err error) {
	if len(o.from) > 0 {
		return o.stored()
	}
	s := source{netns: o.netns}
	err = s.enter(func(cfg *rdsinfo.Config) error {
		facts, err = doctor.Look(c.Context, &doctor.Config{
			NetNS: cfg.NetNS, Local: o.local.Addr, Host: host, Probe: o.probe, TOS: o.tos,
			Interval: o.interval.Duration, Timeout: o.timeout.Duration,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	facts.NetNS = string(o.netns)
	return facts, nil
}

// stored has the facts of one or two bundles.
func (o *doctorOptions) stored() (*doctor.Facts, error) {
	var bundles []*rdsinfo.Bundle
	for _, name := range o.from {
		b, err := readBundle(name)
		if err != nil {
			return nil, err
		}
		bundles = append(bundles, b)
	}
	first, last := bundles[0], bundles[len(bundles)-1]
	if first.Host != last.Host {
		return nil, fmt.Errorf("%s is of the host %q and %s of %q: want two of one host", o.from[0], first.Host, o.from[1], last.Host)
	}
	if first.Snapshot.Time.After(last.Snapshot.Time) {
		first, last = last, first
	}
	return &doctor.Facts{First: first, Last: last, Local: o.local.Addr}, nil
}

// doctorRecord is a finding as JSON.
type doctorRecord struct {
	Type    string                   `json:"type"`
	Check   string                   `json:"check"`
	Subject rdsinfo.Optional[string] `json:"subject"`
	Verdict doctor.Verdict           `json:"verdict"`
	Reason  string                   `json:"reason"`
	Remedy  rdsinfo.Optional[string] `json:"remedy"`
	Advice  rdsinfo.Optional[string] `json:"advice"`
}

func newDoctorRecord(f doctor.Finding) doctorRecord {
	some := func(text string) rdsinfo.Optional[string] {
		return rdsinfo.Optional[string]{Value: text, Known: text != ""}
	}
	return doctorRecord{"finding", f.Check, some(f.Subject), f.Verdict, f.Reason, some(f.Remedy), some(f.Advice)}
}

func (o *doctorOptions) print(findings []doctor.Finding) error {
	lines := cli.NewJSONLines(o.stdout)
	for _, f := range findings {
		if o.quiet && !f.Verdict.Bad() {
			continue
		}
		if o.json {
			if err := lines.Write(newDoctorRecord(f)); err != nil {
				return err
			}
			continue
		}
		text := f.Reason
		if f.Subject != "" {
			text = f.Subject + ": " + text
		}
		fmt.Fprintf(o.stdout, "%-4s  %-10s  %s\n", f.Verdict, f.Check, plain.Text(text))
		if f.Remedy != "" {
			fmt.Fprintf(o.stdout, "%18stry: %s\n", "", plain.Text(f.Remedy))
		}
		if f.Advice != "" {
			fmt.Fprintf(o.stdout, "%23s%s\n", "", plain.Text(f.Advice))
		}
	}
	return nil
}

// bundleList is the value of --from, which may be given twice.
type bundleList []string

func (l *bundleList) Set(name string) error {
	if len(*l) == 2 {
		return fmt.Errorf("a third bundle: want one, or an earlier and a later one")
	}
	if name == "" {
		return errEmptyName
	}
	*l = append(*l, name)
	return nil
}

func (l *bundleList) String() string {
	if l == nil {
		return ""
	}
	return strings.Join(*l, ", ")
}

// addrValue is an address of this host.
type addrValue struct{ netip.Addr }

func (v *addrValue) Set(text string) error {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("not an IP address")
	}
	v.Addr = a.Unmap()
	return nil
}

func (v *addrValue) String() string {
	if v == nil || !v.IsValid() {
		return ""
	}
	return v.Addr.String()
}
