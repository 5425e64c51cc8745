package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/info"
	"github.com/rdskit/rdskit/internal/netns"
	"github.com/rdskit/rdskit/rdsinfo"
)

// tableLetters are the options for tables, in the order in which they are printed
// whatever the order on the command line, as in C.
var tableLetters = []struct {
	letter string
	table  rdsinfo.Table
	usage  string
}{
	{"I", rdsinfo.IBConnections, "InfiniBand connections"},
	{"T", rdsinfo.TCPSockets, "TCP sockets"},
	{"c", rdsinfo.Counters, "counters"},
	{"k", rdsinfo.Sockets, "sockets"},
	{"n", rdsinfo.Connections, "connections"},
	{"p", rdsinfo.ConnectionPaths, "paths of connections (Oracle UEK kernels)"},
	{"r", rdsinfo.ReceiveQueue, "messages received and not read"},
	{"s", rdsinfo.SendQueue, "messages not sent yet"},
	{"t", rdsinfo.RetransmitQueue, "messages sent and not acknowledged"},
}

func app(stdout, stderr *os.File) *cli.App {
	out := newOutput(stdout)
	o := &options{stdout: out, stderr: stderr}
	return &cli.App{
		Name:        "rds-info",
		Usage:       "Show what the kernel's Reliable Datagram Sockets (RDS) know.",
		ArgsUsage:   "[COMMAND ...]",
		Version:     cli.Version(),
		Writer:      stdout,
		ErrWriter:   stderr,
		Description: "Without a table all are shown.",
		Flags:       o.flags(),
		Action:      o.run,
		Commands:    []*cli.Command{checkCommand(out), doctorCommand(out), snapshotCommand(), diffCommand(out), watchCommand(stdout, out)},
		Metadata:    map[string]any{"check": int(info.VerdictUnknown)},
	}
}

// options are those of the tables.
type options struct {
	tables  []bool // by tableLetters
	all     bool
	verbose bool
	fields  fieldList
	layout  layoutValue
	json    bool
	filter  filterValue
	everyNS bool
	joins   joinOptions
	source

	stdout *output
	stderr io.Writer
}

func (o *options) flags() []cli.Flag {
	o.tables = make([]bool, len(tableLetters))
	var flags []cli.Flag
	for i, t := range tableLetters {
		flags = append(flags, &cli.BoolFlag{Name: t.letter, Destination: &o.tables[i], Usage: t.usage})
	}
	flags = append(flags,
		&cli.BoolFlag{Name: "all-families", Aliases: []string{"a"}, Destination: &o.all, Usage: "IPv6 as well as IPv4, in wider columns"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Destination: &o.verbose, Usage: "more fields of InfiniBand connections"},
		&cli.GenericFlag{Name: "fields", Aliases: []string{"o"}, Value: &o.fields, Usage: "of the fields that -v adds with --layout 2.3 only those in `LIST`, separated by commas"},
		&cli.GenericFlag{Name: "layout", Value: &o.layout, Usage: "print columns as `RELEASE` of the C tools does, 2.0 or 2.3"},
		&cli.BoolFlag{Name: "json", Destination: &o.json, Usage: "print JSON, one object a line, of both families"},
		&cli.GenericFlag{Name: "filter", Value: &o.filter, Usage: "only rows with each of `KEY=VALUE,...`: local, peer, port, tos, transport, state; may be given again"},
		&cli.BoolFlag{Name: "every-netns", Aliases: []string{"N"}, Destination: &o.everyNS, Usage: "of every network namespace, one after the other"},
	)
	flags = append(flags, o.joins.flags()...)
	return append(flags, o.source.flags()...)
}

// asked returns the tables to print, and whether they were asked for.
func (o *options) asked(l info.Layout) (tables []rdsinfo.Table, asked bool) {
	for i, t := range tableLetters {
		if o.tables[i] {
			tables = append(tables, t.table)
		}
	}
	if len(tables) > 0 {
		return tables, true
	}
	for _, t := range tableLetters {
		// C releases before 2.3 do not know the paths.
		if t.table != rdsinfo.ConnectionPaths || l == info.Layout23 {
			tables = append(tables, t.table)
		}
	}
	return tables, false
}

// check refuses options that do not go together.
func (o *options) check() error {
	switch {
	case o.from != "" && (o.netns != "" || o.everyNS || o.joins.procs):
		return &cli.UsageError{Option: "--from", Value: string(o.from), Reason: "a bundle has one namespace and no processes: leave out --netns, -N and --procs"}
	case o.netns != "" && o.everyNS:
		return &cli.UsageError{Reason: "--netns and -N exclude each other"}
	}
	return nil
}

func (o *options) run(c *cli.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	err := o.print(c.Context)
	if ferr := o.stdout.flush(); err == nil {
		err = ferr
	}
	return err
}

func (o *options) print(ctx context.Context) error {
	switch {
	case o.from != "":
		b, err := readTables(string(o.from))
		if err != nil {
			return err
		}
		tables, _ := o.asked(o.layout.of(b.Snapshot))
		joins, err := o.joins.stored(ctx, b, tables)
		if err != nil {
			return fmt.Errorf("%s: %w", o.from, err)
		}
		return o.printSnapshot(b.Snapshot, joins, "")
	case o.everyNS:
		return o.printEveryNamespace(ctx)
	}
	return o.with(func(cfg *rdsinfo.Config) error { return o.readAndPrint(ctx, cfg, nil) })
}

// printEveryNamespace prints the tables of each namespace below its heading, as C
// does. It names those that it may not enter.
func (o *options) printEveryNamespace(ctx context.Context) error {
	if err := o.allowed(); err != nil {
		return err
	}
	all, unseen, err := netns.All()
	if err != nil {
		return err
	}
	defer func() {
		for _, ns := range all {
			ns.File.Close()
		}
	}()
	if unseen > 0 {
		fmt.Fprintf(o.stderr, "rds-info: the network namespaces of at least %d processes cannot be seen: run it as root\n", unseen)
	}
	for i := range all {
		ns := &all[i]
		cfg := &rdsinfo.Config{}
		if !ns.Own { // to enter its own takes the right to enter others
			cfg.NetNS = int(ns.File.Fd())
		}
		err := o.readAndPrint(ctx, cfg, ns)
		switch {
		case isSetNS(err):
			fmt.Fprintf(o.stderr, "rds-info: %v\n", explainNetNS(nameOf(ns), err))
		case err != nil:
			return fmt.Errorf("network namespace %s: %w", nameOf(ns), err)
		}
	}
	return nil
}

// nameOf is the name of a namespace, or its inode for one without.
func nameOf(ns *netns.Namespace) string {
	if ns.Name == "" {
		return fmt.Sprint(ns.Inode)
	}
	return ns.Name
}

// readAndPrint prints the tables of a namespace, below a heading if it is one of several.
func (o *options) readAndPrint(ctx context.Context, cfg *rdsinfo.Config, ns *netns.Namespace) error {
	cfg.IPv4Only = !o.all && !o.json
	// The paths of connections are among the tables or not, depending on the
	// kernel: asking for them costs nothing.
	tables, _ := o.asked(info.Layout23)
	s, err := rdsinfo.Read(cfg, tables...)
	if err != nil {
		return explainSocket(err)
	}
	tables, _ = o.asked(o.layout.of(s))
	joins, err := o.joins.of(ctx, cfg, s, tables, o.stderr)
	if err != nil {
		return err
	}
	name := ""
	if ns != nil {
		name = nameOf(ns)
		o.printHeading(ns)
	}
	return o.printSnapshot(s, joins, name)
}

func (o *options) printHeading(ns *netns.Namespace) {
	if o.json {
		return
	}
	home := ""
	if ns.Own {
		home = " (home namespace)"
	}
	fmt.Fprintf(o.stdout, "\n##################################################\n#\n# Network namespace %d%s\n#\n", ns.Inode, home)
}

func (o *options) printSnapshot(s *rdsinfo.Snapshot, joins info.Joins, netNS string) error {
	layout := o.layout.of(s)
	if layout == info.Layout20 && len(o.fields.names) > 0 && !o.json {
		return &cli.UsageError{Option: "--fields", Value: o.fields.String(), Reason: "layout 2.0 has no such columns: add --layout 2.3"}
	}
	tables, asked := o.asked(layout)
	table := o.textTable(s, layout, joins)
	if o.json {
		table = o.jsonTable(s, netNS, joins)
	}
	printed := 0
	var absent error
	for _, t := range tables {
		err := table(t)
		if err == nil {
			printed++
			continue
		}
		if werr := o.stdout.Err(); werr != nil {
			return werr
		}
		// Its place among the others is lost in a pipe, but for a terminal it should be
		// where the table would be.
		if ferr := o.stdout.flush(); ferr != nil {
			return ferr
		}
		o.reportAbsent(layout, t, err, asked && len(tables) == 1)
		absent = err
	}
	switch {
	case !asked || printed > 0:
		return nil
	case len(tables) > 1:
		absent = errors.New("none of the tables can be had")
	}
	return &cli.ExitError{Status: cli.CannotTry, Err: absent}
}

func (o *options) textTable(s *rdsinfo.Snapshot, l info.Layout, joins info.Joins) func(rdsinfo.Table) error {
	x := &info.Text{Layout: l, IPv6: o.all, Verbose: o.verbose, Fields: o.fields.names, Filter: o.filter.Filter, Joins: joins}
	return func(t rdsinfo.Table) error { return x.Print(o.stdout, s, t) }
}

func (o *options) jsonTable(s *rdsinfo.Snapshot, netNS string, joins info.Joins) func(rdsinfo.Table) error {
	j := &info.JSON{Filter: o.filter.Filter, NetNS: netNS, Joins: joins}
	lines := cli.NewJSONLines(o.stdout)
	return func(t rdsinfo.Table) error {
		var werr error
		err := j.Each(s, t, func(record any) {
			if werr == nil {
				werr = lines.Write(record)
			}
		})
		if werr != nil {
			return werr
		}
		return err
	}
}

// cNames are what the C tools call the tables in their complaints.
var cNames = map[rdsinfo.Table]string{
	rdsinfo.Counters:        "statistic counters",
	rdsinfo.Connections:     "connections",
	rdsinfo.Sockets:         "sockets",
	rdsinfo.SendQueue:       "send queue messages",
	rdsinfo.RetransmitQueue: "retransmit queue messages",
	rdsinfo.ReceiveQueue:    "recv queue messages",
	rdsinfo.TCPSockets:      "TCP transport sockets",
	rdsinfo.IBConnections:   "IB transport connections",
	rdsinfo.ConnectionPaths: "paths",
}

// reportAbsent says that a table cannot be had: in the words of the C tools, which
// scripts may look for, and then why, unless that is how the command is going to fail.
func (o *options) reportAbsent(l info.Layout, t rdsinfo.Table, err error, fails bool) {
	if isNoTable(err) {
		if l == info.Layout23 {
			fmt.Fprintf(o.stderr, "rds-info: Unable to get statistics to process the %q info request: Protocol not available\n", cNames[t])
		} else {
			fmt.Fprintln(o.stderr, "rds-info: Unable get statistics: Protocol not available")
		}
	}
	if !fails {
		fmt.Fprintf(o.stderr, "rds-info: %v\n", err)
	}
}
