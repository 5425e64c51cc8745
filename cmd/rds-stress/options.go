package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/stress"
	"github.com/rdskit/rdskit/internal/stress/wire"
	"github.com/rdskit/rdskit/rdssock"
)

const description = `Without -s, wait for a peer that says what to do; with -s, be that peer. Both
sides are rds-stress, this one or that of rds-tools.

An N may end in k, m or g. A TIME is in seconds, or ends in ms, msec, us or usec.

  recv$ rds-stress
  send$ rds-stress -s recv -q 4096 -t 2 -d 2

Exit status: 0 every message arrived as it was sent, 1 one did not or the run
broke off, 2 it could not be tried.`

// options are what the command line says.
type options struct {
	recv, send  string
	port        cli.Number
	tasks       cli.Number
	reqSize     cli.Number
	ackSize     cli.Number
	depth       cli.Number
	time        cli.Number
	simplex     bool
	rdmaSize    cli.Number
	rdmaVector  cli.Number
	rdmaMode    cli.Number
	tos         cli.Number
	cpu         bool
	summaryOnly bool
	realtime    bool
	verify      bool
	trace       bool

	useOnce, useGetMR, useFence, useNotify, cacheMRs cli.Number
	alignment                                        cli.Number
	keyOMeter                                        bool

	showParams, perfdata, histogram bool
	outliers                        cli.Number
	connectRetries                  cli.Number
	congMonitor                     cli.Number
	reset, async, cancelSentTo      bool
	abortAfter                      cli.Number
	disableINQ                      bool
	bursty, syncBursty              bool

	rate        rateValue
	sizes       sizeRange
	serve, self bool
	allow       prefixList
	transport   transportValue
	ipv4, ipv6  bool
	netns       string
	load        bool
	warmup      cli.Interval
	interval    cli.Interval
	seed        cli.Number
	rxPath      bool
	crc, strict bool
	giveUp      cli.Interval
	peer        peerValue
	memory      cli.Number
	json, csv   bool
	hdrLog      string
	percentiles bool

	stdout *cli.Output
	stderr io.Writer
}

func newOptions(stdout, stderr io.Writer) *options {
	flag := func(n uint64) cli.Number { return cli.Number{Value: n, Max: 1} }
	u32 := uint64(math.MaxUint32)
	return &options{
		port:           cli.Number{Value: wire.DefaultPort, Min: 1, Max: 65534},
		tasks:          cli.Number{Value: 1, Min: 1, Max: stress.MaxTasks},
		reqSize:        cli.Number{Value: 1024, Min: 1, Max: stress.MaxMessage},
		ackSize:        cli.Number{Max: stress.MaxMessage},
		depth:          cli.Number{Value: 1, Min: 1, Max: stress.MaxDepth},
		time:           cli.Number{Max: u32},
		rdmaSize:       cli.Number{Max: u32},
		rdmaVector:     cli.Number{Value: 1, Min: 1, Max: stress.MaxVector},
		rdmaMode:       cli.Number{Max: 2},
		tos:            cli.Number{Max: 255},
		useOnce:        flag(0),
		useGetMR:       flag(0),
		useFence:       flag(1),
		useNotify:      flag(0),
		cacheMRs:       flag(0),
		alignment:      cli.Number{Max: stress.MaxAlignment - 1},
		outliers:       cli.Number{Max: u32},
		connectRetries: cli.Number{Max: u32},
		congMonitor:    flag(1),
		abortAfter:     cli.Number{Max: u32},
		interval:       cli.Interval{Duration: stress.DefaultInterval, Min: stress.MinInterval},
		warmup:         cli.Interval{Duration: stress.DefaultWarmUp, Max: stress.MaxWarmUp, Zero: true},
		giveUp:         cli.Interval{Duration: stress.DefaultGiveUp, Zero: true},
		memory:         cli.Number{Value: stress.DefaultMemory, Min: 1 << 20, Max: math.MaxInt64},
		stdout:         cli.NewOutput(stdout),
		stderr:         stderr,
	}
}

func (o *options) app() *cli.App {
	number := func(v *cli.Number, usage string, name string, aliases ...string) cli.Flag {
		return &cli.GenericFlag{Name: name, Aliases: aliases, Value: v, Usage: usage}
	}
	text := func(v *string, usage, name string, aliases ...string) cli.Flag {
		return &cli.StringFlag{Name: name, Aliases: aliases, Destination: v, Usage: usage}
	}
	flag := func(v *bool, usage, name string, aliases ...string) cli.Flag {
		return &cli.BoolFlag{Name: name, Aliases: aliases, Destination: v, Usage: usage}
	}
	span := func(v *cli.Interval, usage, name string) cli.Flag {
		return &cli.GenericFlag{Name: name, Value: v, Usage: usage}
	}
	return &cli.App{
		Name:      "rds-stress",
		Usage:     "Load RDS between two hosts, check every message, and measure.",
		Version:   cli.Version(),
		Writer:    o.stdout,
		ErrWriter: o.stderr,
		Flags: append([]cli.Flag{
			text(&o.recv, "use this `ADDRESS` of the host", "recv-addr", "r"),
			text(&o.send, "send to `HOST`, which waits", "send-addr", "s"),
			number(&o.port, "TCP `PORT`; task N has the RDS port PORT+1+N", "port", "p"),
			number(&o.reqSize, "requests of `N` bytes", "req-bytes", "q"),
			number(&o.ackSize, "answers of `N` bytes (default: the header alone)", "ack-bytes", "a"),
			number(&o.depth, "leave `N` requests of each flow unanswered", "depth", "d"),
			number(&o.tasks, "`N` tasks on each side, each of which talks to all of the other's", "tasks", "t"),
			number(&o.time, "end after `N` seconds; 0 has no end", "time", "T"),
			flag(&o.simplex, "send requests from this side only", "one-way", "o"),
			number(&o.tos, "use type of service `N`", "tos", "Q"),
			flag(&o.verify, "check the payload of every message", "verify", "v"),
			flag(&o.cpu, "report processor time", "report-cpu", "c"),
			flag(&o.summaryOnly, "print the summary only", "report-summary", "z"),
			flag(&o.realtime, "report by the real-time policy SCHED_RR, on both sides", "rtprio", "R"),
			flag(&o.trace, "trace RDMA operations", "trace", "V"),
			flag(&o.showParams, "print the sizes at the start", "show-params"),
			flag(&o.perfdata, "print lines for programs, which begin with ::", "show-perfdata"),
			flag(&o.histogram, "print how round trips were distributed", "show-histogram"),
			number(&o.outliers, "report each round trip above `N` us on stderr", "show-outliers"),
			number(&o.connectRetries, "try `N` times more to connect, once a second", "connect-retries"),
			number(&o.congMonitor, "1 has the kernel tell when a destination is no longer congested, 0 not", "use-cong-monitor"),
			flag(&o.reset, "have the kernel make the connection anew, and end", "reset"),
			flag(&o.async, "have the kernel report each message (UEK)", "async"),
			flag(&o.cancelSentTo, "drop what is queued at the end", "cancel-sent-to"),
			number(&o.abortAfter, "break off after `N` seconds, without a word to the peer", "abort-after"),
			flag(&o.bursty, "send until no more may be unanswered, then receive all answers", "always-bursty"),
			flag(&o.syncBursty, "the same, all tasks together", "sync-always-bursty"),
			flag(&o.disableINQ, "do not ask how much is unread (UEK)", "disable-inq"),

			number(&o.rdmaSize, "RDMA: operations with buffers of `N` bytes", "rdma-bytes", "D"),
			number(&o.rdmaVector, "RDMA: `N` buffers for each operation", "rdma-buffers", "I"),
			number(&o.rdmaMode, "RDMA: `N` is 0 for reads and writes, 1 for reads, 2 for writes", "rdma-mode", "M"),
			number(&o.useOnce, "RDMA: `1` has a registration end with its first use", "rdma-use-once"),
			number(&o.useGetMR, "RDMA: `1` registers memory before the message", "rdma-use-get-mr"),
			number(&o.useFence, "RDMA: `0` has this side, not the device, answer after the read", "rdma-use-fence"),
			number(&o.useNotify, "accepted and ignored", "rdma-use-notify"),
			number(&o.cacheMRs, "RDMA: `1` keeps registrations for further requests", "rdma-cache-mrs"),
			number(&o.alignment, "RDMA: begin memory `N` bytes into a page", "rdma-alignment"),
			flag(&o.keyOMeter, "RDMA: report how soon keys come again", "rdma-key-o-meter"),
		}, cli.Added(
			flag(&o.percentiles, "print percentiles of round trips, and what the run cost", "percentiles"),
			&cli.GenericFlag{Name: "rate", Value: &o.rate, Usage: "send `RATE` requests a second on each side, late or not"},
			&cli.GenericFlag{Name: "size-range", Value: &o.sizes, Usage: "requests of `MIN-MAX` bytes, at random"},
			flag(&o.crc, "give each message a checksum", "crc"),
			flag(&o.strict, "end at the first fault", "strict"),
			flag(&o.serve, "wait for the next peer after a run", "serve"),
			&cli.GenericFlag{Name: "allow", Value: &o.allow, Usage: "take connections from `NETWORK` only, an address or prefix; may be given again"},
			flag(&o.self, "be both sides: the other is at the address of -s", "self"),
			&cli.GenericFlag{Name: "transport", Value: &o.transport, Usage: "insist on `TRANSPORT`: tcp or infiniband"},
			flag(&o.ipv4, "take IPv4 addresses of names only", "ipv4", "4"),
			flag(&o.ipv6, "take IPv6 addresses of names only", "ipv6", "6"),
			text(&o.netns, "run in the network namespace `NAME`: a name, the number of a process, or a path", "netns"),
			flag(&o.load, "let the kernel load RDS modules that are missing", "load"),
			span(&o.warmup, "count after `TIME` only, 0 at once; requests start at half of it", "warmup"),
			span(&o.interval, "report each `TIME`", "interval"),
			number(&o.seed, "draw sizes by `N`", "seed"),
			flag(&o.rxPath, "report where received messages spend their time in the kernel", "rx-path"),
			span(&o.giveUp, "count a request as lost after `TIME` without an answer, 0 never", "give-up"),
			&cli.GenericFlag{Name: "peer-version", Value: &o.peer, Usage: "the peer is the C rds-stress `VERSION`, such as 2.0.7 or 2.3.11,mainline"},
			number(&o.memory, "refuse runs that need more than `N` bytes", "max-memory"),
			flag(&o.json, "print JSON, one object a line", "json"),
			flag(&o.csv, "print comma-separated values", "csv"),
			text(&o.hdrLog, "write all round trips to `FILE`, as an HdrHistogram log", "histogram-log"),
		)...),
		Description: description,
		Action:      o.run,
	}
}

// check refuses options that do not go together.
func (o *options) check(operands []string) error {
	usage := func(option, reason string) error { return &cli.UsageError{Option: option, Reason: reason} }
	active := o.send != ""
	switch {
	case len(operands) > 0:
		return &cli.UsageError{Reason: fmt.Sprintf("%q is no option: the peer goes after -s", operands[0])}
	case o.ipv4 && o.ipv6:
		return &cli.UsageError{Reason: "-4 and -6 exclude each other"}
	case o.json && o.csv || o.json && o.perfdata || o.csv && o.perfdata:
		return &cli.UsageError{Reason: "--json, --csv and --show-perfdata exclude each other"}
	case o.reqSize.IsSet() && o.sizes.max.IsSet():
		return &cli.UsageError{Reason: "-q and --size-range exclude each other"}
	case o.self && (!active || o.recv == ""):
		return usage("--self", "needs two addresses of this host: -r and -s")
	case o.self && o.serve:
		return &cli.UsageError{Reason: "--self and --serve exclude each other"}
	case o.serve && active:
		return usage("--serve", "is for the side that waits: without -s")
	case len(o.allow) > 0 && active:
		return usage("--allow", "is for the side that waits: without -s")
	case o.reset && (!active || o.recv == ""):
		return usage("--reset", "needs both ends of the connection: -r and -s")
	case o.cacheMRs.Value == 1 && o.useOnce.Value == 1:
		return &cli.UsageError{Reason: "option --rdma-cache-mrs conflicts with --rdma-use-once"}
	case o.cacheMRs.Value == 1 && o.useGetMR.IsSet() && o.useGetMR.Value == 0:
		return &cli.UsageError{Reason: "option --rdma-cache-mrs conflicts with --rdma-use-get-mr=0"}
	}
	return nil
}

// A rateValue is --rate.
type rateValue float64

func (v *rateValue) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= stress.MinRate && f <= stress.MaxRate) {
		return errors.New("not a rate: want a number of requests a second, from 0.001 to 1e9")
	}
	*v = rateValue(f)
	return nil
}

func (v *rateValue) String() string {
	if v == nil || *v == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*v), 'g', -1, 64)
}

// A sizeRange is --size-range, in bytes.
type sizeRange struct{ min, max cli.Number }

func (v *sizeRange) Set(s string) error {
	low, high, ok := strings.Cut(s, "-")
	r := sizeRange{cli.Number{Min: 1, Max: stress.MaxMessage}, cli.Number{Min: 1, Max: stress.MaxMessage}}
	if !ok || r.min.Set(low) != nil || r.max.Set(high) != nil {
		return errors.New("not a range of sizes: want one such as 64-8k, up to 1m")
	}
	if r.min.Value > r.max.Value {
		return fmt.Errorf("runs backwards: want %s-%s", high, low)
	}
	*v = r
	return nil
}

func (v *sizeRange) String() string {
	if v == nil || !v.max.IsSet() {
		return ""
	}
	return v.min.String() + "-" + v.max.String()
}

// A prefixList is --allow.
type prefixList []netip.Prefix

func (l *prefixList) Set(s string) error {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap()
		*l = append(*l, netip.PrefixFrom(a, a.BitLen()))
		return nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return errors.New("not a network: want an address such as 10.0.0.1, or a prefix such as 10.0.0.0/24")
	}
	if a, bits := p.Addr(), p.Bits()-96; a.Is4In6() && bits >= 0 {
		p = netip.PrefixFrom(a.Unmap(), bits)
	}
	*l = append(*l, p.Masked())
	return nil
}

func (l *prefixList) String() string {
	if l == nil {
		return ""
	}
	var parts []string
	for _, p := range *l {
		parts = append(parts, p.String())
	}
	return strings.Join(parts, ",")
}

// A transportValue is --transport.
type transportValue rdssock.Transport

func (v *transportValue) Set(s string) error {
	switch s {
	case "tcp":
		*v = transportValue(rdssock.TransportTCP)
	case "infiniband", "ib":
		*v = transportValue(rdssock.TransportInfiniBand)
	default:
		return errors.New("not a transport to choose: want tcp or infiniband")
	}
	return nil
}

func (v *transportValue) String() string {
	if v == nil || *v == 0 {
		return ""
	}
	return rdssock.Transport(*v).String()
}

// A peerValue is --peer-version.
type peerValue stress.PeerVersion

func (v *peerValue) Set(s string) error {
	p, err := stress.ParsePeerVersion(s)
	*v = peerValue(p)
	return err
}

func (v *peerValue) String() string {
	if v == nil || v.Version == "" {
		return ""
	}
	return stress.PeerVersion(*v).String()
}
