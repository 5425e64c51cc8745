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

	keyboard, terminal *os.File
	stdout             *output
}

func watchCommand(terminal *os.File, out *output) *cli.Command {
	o := &watchOptions{keyboard: os.Stdin, terminal: terminal, stdout: out}
	return &cli.Command{
		Name:      "watch",
		Usage:     "show what moves, again and again",
		ArgsUsage: "[SECONDS]",
		Flags: append([]cli.Flag{
			&cli.GenericFlag{Name: "filter", Value: &o.filter, Usage: "only connections and sockets with each of `KEY=VALUE,...`"},
			&cli.GenericFlag{Name: "count", Value: &o.count, Usage: "end after `N` times; 0 has no end"},
		}, o.source.flags()[:2]...),
		Description: `Connections, unread messages and counters are sorted by what moves most; stuck
and congested ones are marked. The key q ends it. If stdout is no terminal, each is a line.`,
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
		d := o.display(ctx)
		defer d.close()
		ticker := time.NewTicker(interval.Duration)
		defer ticker.Stop()
		portsBefore := o.ports(ctx)
		frame := info.NewFrame(before, before, o.filter.Filter)
		err = d.again(frame)
		for shown := uint64(0); err == nil && (o.count.Value == 0 || shown < o.count.Value); {
			select {
			case <-ctx.Done():
				return nil
			case key := <-d.keys:
				if key == 'q' {
					return nil
				}
			case <-redraw:
				err = d.again(frame)
			case <-d.lost:
				err = d.again(frame)
			case <-ticker.C:
				after, rerr := rdsinfo.Read(cfg, info.FrameTables()...)
				if rerr != nil {
					return explainSocket(rerr)
				}
				frame = info.NewFrame(before, after, o.filter.Filter)
				ports := o.ports(ctx)
				frame.ComparePorts(portsBefore, ports)
				before, portsBefore = after, ports
				err = d.show(frame)
				shown++
			}
		}
		return err
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

// A display is what shows frames.
type display struct {
	show  func(*info.Frame) error // a new one
	again func(*info.Frame) error // the same
	close func()
	keys  <-chan byte     // that were typed
	lost  <-chan struct{} // what was shown is to be shown again
}

func (o *watchOptions) display(ctx context.Context) display {
	if !cli.IsTerminal(o.terminal) || os.Getenv("TERM") == "dumb" {
		return display{show: o.lines, again: func(*info.Frame) error { return nil }, close: func() {}}
	}
	screen := cli.OpenScreen(ctx, o.keyboard, o.terminal)
	show := func(f *info.Frame) error {
		width, height := screen.Size()
		return screen.Show(f.Screen("rds-info watch", width, height))
	}
	return display{show: show, again: show, close: screen.Close, keys: screen.Keys(), lost: screen.Redraw()}
}

// lines prints a frame as lines.
func (o *watchOptions) lines(f *info.Frame) error {
	lines := f.Lines()
	if len(lines) == 0 {
		lines = []string{f.Time.Format(time.TimeOnly) + " nothing moved"}
	}
	fmt.Fprintln(o.stdout, strings.Join(lines, "\n"))
	return o.stdout.flush()
}
