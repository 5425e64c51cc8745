package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/info"
	"github.com/rdskit/rdskit/rdsinfo"
)

// watchOptions are those of the command watch.
type watchOptions struct {
	source
	filter filterValue
	count  cli.Number

	terminal *os.File
	stdout   *output
}

func watchCommand(terminal *os.File, out *output) *cli.Command {
	o := &watchOptions{terminal: terminal, stdout: out}
	return &cli.Command{
		Name:      "watch",
		Usage:     "show what moves, again and again",
		ArgsUsage: "[SECONDS]",
		Flags: append([]cli.Flag{
			&cli.GenericFlag{Name: "filter", Value: &o.filter, Usage: "only connections and sockets with each of `KEY=VALUE,...`"},
			&cli.GenericFlag{Name: "count", Value: &o.count, Usage: "end after `N` times; 0 has no end"},
		}, o.source.flags()[:2]...),
		Description: `Connections, unread messages and counters are sorted by what moves most; stuck
and congested ones are marked. If stdout is no terminal, each is a line.`,
		Action: o.run,
	}
}

func (o *watchOptions) run(c *cli.Context) error {
	interval := cli.Interval{Duration: time.Second, Max: time.Hour}
	if c.Args().Len() > 1 {
		return &cli.UsageError{Reason: fmt.Sprintf("extra argument %q", c.Args().Get(1))}
	}
	if c.Args().Present() {
		if err := interval.Set(c.Args().First()); err != nil {
			return &cli.UsageError{Option: "SECONDS", Value: c.Args().First(), Reason: err.Error()}
		}
	}
	ctx, redraw, stop := cli.Signals(c.Context)
	defer stop()
	return o.with(func(cfg *rdsinfo.Config) error {
		before, err := rdsinfo.Read(cfg, info.FrameTables()...)
		if err != nil {
			return explainSocket(err)
		}
		show, restore := o.display(ctx)
		defer restore()
		ticker := time.NewTicker(interval.Duration)
		defer ticker.Stop()
		portsBefore := o.ports(ctx)
		frame := info.NewFrame(before, before, o.filter.Filter)
		if err := show(frame, true); err != nil {
			return err
		}
		for shown := uint64(0); o.count.Value == 0 || shown < o.count.Value; {
			select {
			case <-ctx.Done():
				return nil
			case <-redraw:
				if err := show(frame, true); err != nil {
					return err
				}
				continue
			case <-ticker.C:
			}
			after, err := rdsinfo.Read(cfg, info.FrameTables()...)
			if err != nil {
				return explainSocket(err)
			}
			frame = info.NewFrame(before, after, o.filter.Filter)
			ports := o.ports(ctx)
			frame.ComparePorts(portsBefore, ports)
			before, portsBefore = after, ports
			if err := show(frame, false); err != nil {
				return err
			}
			shown++
		}
		return nil
	})
}

// ports are the counters of RDMA ports. Those that cannot be read are not worth an end.
func (o *watchOptions) ports(ctx context.Context) []rdsinfo.RDMACounter {
	counters, err := rdsinfo.RDMACounters(ctx)
	if err != nil {
		return nil
	}
	return counters
}

// display returns what shows a frame, for the first time or again, and what ends it.
func (o *watchOptions) display(ctx context.Context) (show func(f *info.Frame, again bool) error, restore func()) {
	if !cli.IsTerminal(o.terminal) || os.Getenv("TERM") == "dumb" {
		return o.lines, func() {}
	}
	screen := cli.OpenScreen(ctx, o.terminal)
	return func(f *info.Frame, _ bool) error {
		width, height := screen.Size()
		return screen.Show(f.Screen("rds-info watch", width, height))
	}, screen.Close
}

// lines prints a frame as lines, and none twice.
func (o *watchOptions) lines(f *info.Frame, again bool) error {
	if again {
		return nil
	}
	lines := f.Lines()
	if len(lines) == 0 {
		lines = []string{f.Time.Format(time.TimeOnly) + " nothing moved"}
	}
	fmt.Fprintln(o.stdout, strings.Join(lines, "\n"))
	return o.stdout.flush()
}
