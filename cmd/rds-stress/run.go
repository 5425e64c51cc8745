package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/latency"
	"github.com/rdskit/rdskit/internal/netns"
	"github.com/rdskit/rdskit/internal/route"
	"github.com/rdskit/rdskit/internal/strerror"
	"github.com/rdskit/rdskit/internal/stress"
	"github.com/rdskit/rdskit/internal/stress/wire"
	"github.com/rdskit/rdskit/internal/target"
	"github.com/rdskit/rdskit/rdssock"
)

// maxFindings is how many faults are told one by one.
const maxFindings = 20

func (o *options) run(c *cli.Context) error {
	for _, name := range []string{"send-addr", "recv-addr", "netns", "histogram-log"} {
		if c.IsSet(name) && c.String(name) == "" {
			return &cli.UsageError{Option: "--" + name, Reason: "needs a value that is not empty"}
		}
	}
	if err := o.check(c.Args().Slice()); err != nil {
		return err
	}
	if err := o.refuse(); err != nil {
		return err
	}
	if err := checkAddressSpace(); err != nil {
		return err
	}
	namespace := 0
	if o.netns != "" {
		f, err := netns.Open(o.netns)
		if err != nil {
			return fmt.Errorf("--netns: %w", err)
		}
		defer f.Close()
		namespace = int(f.Fd())
	}
	log, err := o.createLog()
	if err != nil {
		return fmt.Errorf("--histogram-log: %w", err)
	}
	defer log.close()
	ctx, interim, stop := cli.Signals(c.Context)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	report, people := o.reporter()
	failed := false
	var mu sync.Mutex // a connection may be dropped while another's run goes on
	notify := func(e stress.Event) {
		mu.Lock()
		defer mu.Unlock()
		report.event(e)
		if e.Kind == stress.End {
			failed = failed || o.failed(e.Summary)
			log.add(e.Time, e.Summary)
		}
		if o.stdout.Err() != nil {
			cancel() // nobody hears of the rest
		}
	}
	go func() {
		for {
			select {
			case <-interim:
				mu.Lock()
				people.interim()
				mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	}()
	var sum *stress.Summary
	switch {
	case o.send == "":
		o.tellIdle(c)
		sum, err = o.wait(ctx, namespace, notify)
	case o.reset:
		return o.resetConnection(ctx, namespace)
	default:
		sum, err = o.active(ctx, namespace, notify)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
		if o.send != "" && sum == nil {
			err = errors.New("interrupted before the run began")
		}
	}
	if lerr := log.close(); lerr != nil && err == nil {
		err = fmt.Errorf("--histogram-log: %w", lerr)
	}
	switch werr := o.stdout.Err(); {
	case werr != nil:
		return werr
	case err != nil:
		return o.explain(err)
	case failed:
		return &cli.ExitError{Status: cli.Failed}
	}
	return nil
}

// failed says whether a run makes the exit status 1. Peers of a server may come and go.
func (o *options) failed(sum *stress.Summary) bool {
	left := errors.Is(sum.Err, stress.ErrPeerGone) || errors.Is(sum.Err, stress.ErrPeerEnded)
	return sum.Faulty() || sum.Err != nil && !(o.serve && left)
}

// refuse names what the kernel or this release cannot do, first as C says it.
func (o *options) refuse() error {
	if o.async {
		// What C prints when the kernel refuses the control message.
		err := &stress.SendError{Errno: syscall.EINVAL}
		return fmt.Errorf("%w\n--async needs a UEK kernel: mainline has no RDS_CMSG_ASYNC_SEND", err)
	}
	return nil
}

// explain puts what C says about an error first.
func (o *options) explain(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("bind() failed, errno: %d (Address already in use)\n%w: another rds-stress runs there, or -p names other ports", int(syscall.EADDRINUSE), err)
	}
	if errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("%w: each task has sockets of its own, so that fewer (-t) or a higher limit of open files (ulimit -n) is the way out", err)
	}
	var peer *stress.PeerError
	if errors.As(err, &peer) || errors.Is(err, stress.ErrPeerGone) {
		return &cli.ExitError{Status: cli.Failed, Err: err}
	}
	return err
}

// tellIdle names options that have no effect without -s. Those that C has are taken in silence, as by C: scripts give both sides
// the same.
func (o *options) tellIdle(c *cli.Context) {
	var idle []string
	for _, name := range []string{"rate", "size-range", "crc", "strict", "warmup", "interval", "seed", "rx-path", "peer-version"} {
		if c.IsSet(name) {
			idle = append(idle, "--"+name)
		}
	}
	if len(idle) > 0 {
		fmt.Fprintf(o.stderr, "rds-stress: without effect here, since the side with -s says what a run is to be: %s\n", strings.Join(idle, ", "))
	}
}

// wait is the passive side.
func (o *options) wait(ctx context.Context, namespace int, notify func(stress.Event)) (*stress.Summary, error) {
	p := &stress.Passive{
		Port: uint16(o.port.Value), Allow: o.allow, NetNS: namespace, Patience: o.giveUp.Duration, Transport: rdssock.Transport(o.transport),
		Processors: o.cpu || o.perfdata, Latencies: o.json || o.csv, OutlierAbove: o.outlierAbove(), MaxFindings: maxFindings, CancelSentTo: o.cancelSentTo,
		AbortAfter: seconds(o.abortAfter), MaxMemory: int64(o.memory.Value), Trace: o.tell, Serve: o.serve, Version: version(), Notify: notify,
	}
	if a, err := netip.ParseAddr(o.recv); o.recv == "" || err == nil && a.IsUnspecified() {
		if err := o.checkModule(); err != nil {
			return nil, err
		}
		return p.Run(ctx)
	}
	// As its own source, an address has to be of this host.
	t, err := o.find(ctx, namespace, o.recv, o.recv)
	if err != nil {
		return nil, err
	}
	if err := o.checkTransport(t); err != nil {
		return nil, err
	}
	p.Local = t.Addr
	return p.Run(ctx)
}

// active is the side that says what is to be done; with --self it is both.
func (o *options) active(ctx context.Context, namespace int, notify func(stress.Event)) (*stress.Summary, error) {
	t, err := o.find(ctx, namespace, o.send, o.recv)
	if err != nil {
		return nil, err
	}
	a, err := o.config(t, namespace)
	if err != nil {
		return nil, err
	}
	infiniband := t.Transport == rdssock.TransportInfiniBand
	if a.Config.RDMA.Size > 0 && !infiniband {
		return nil, &stress.NoRDMAError{Local: t.Source, Transport: t.Transport}
	}
	a.Notify = notify
	if a.Config.LocalPeer, err = route.IsLocal(ctx, t.Addr, &route.Config{NetNS: namespace}); err != nil {
		return nil, err
	}
	if t.Source == t.Addr {
		return nil, fmt.Errorf("both sides would be at %v, where their ports collide: give -r another address of this host (of IPv4, 127.0.0.2 is one)", t.Addr)
	}
	if err := o.checkTransport(t); err != nil {
		return nil, err
	}
	if a.Config.LocalPeer && !infiniband && a.Config.TOS != 0 {
		return nil, &cli.UsageError{Option: "-Q", Reason: fmt.Sprintf("is not for the loopback transport, which carries messages to %v: it takes no type of service but 0", t.Addr)}
	}
	if o.self {
		return stress.Self(ctx, a)
	}
	return a.Run(ctx)
}

// checkTransport is --transport.
func (o *options) checkTransport(t *target.Target) error {
	if want := rdssock.Transport(o.transport); want != 0 && t.Transport != want {
		return &cli.UsageError{Option: "--transport", Reason: fmt.Sprintf("wants %v, and messages from %v go by %v", want, t.Source, t.Transport)}
	}
	return nil
}

// version is what this side calls itself.
func version() string { return "rdskit " + cli.Version() }

// find resolves a host, and sees that RDS can be used from source.
func (o *options) find(ctx context.Context, namespace int, host, source string) (*target.Target, error) {
	f := &target.Finder{Network: "ip", Source: source, NetNS: namespace, Load: o.load, Unknown: "invalid host name or address '%s'"}
	switch {
	case o.ipv4:
		f.Network = "ip4"
	case o.ipv6:
		f.Network = "ip6"
	}
	ts, err := f.Find(ctx, host)
	if err != nil {
		return nil, err
	}
	return &ts[0], nil
}

// checkModule sees that the side that waits does not find out only when a peer comes.
func (o *options) checkModule() error {
	return (&target.Finder{Load: o.load}).CheckModule()
}

func (o *options) outlierAbove() time.Duration {
	if !o.outliers.IsSet() {
		return 0
	}
	// Above 0 is all that takes any time.
	return max(time.Duration(o.outliers.Value)*time.Microsecond, time.Nanosecond)
}

func seconds(n cli.Number) time.Duration { return time.Duration(n.Value) * time.Second }

// config is what the options say of a run with t.
func (o *options) config(t *target.Target, namespace int) (*stress.Active, error) {
	a := &stress.Active{
		Peer: stress.PeerVersion(o.peer), Retries: int(o.connectRetries.Value), Version: version(),
		Plan: stress.Plan{
			WarmUp: o.warmup.Duration, Duration: seconds(o.time), Interval: o.interval.Duration,
			AbortAfter: seconds(o.abortAfter), Processors: o.cpu || o.perfdata, Latencies: o.json || o.csv,
		},
		Config: stress.Config{
			Local: t.Source, Peer: t.Addr, Port: uint16(o.port.Value), Tasks: int(o.tasks.Value),
			Requests: true, Rate: float64(o.rate), Bursty: o.bursty || o.syncBursty, SyncBursty: o.syncBursty,
			GiveUp: o.giveUp.Duration, Seed: o.seed.Value, Transport: rdssock.Transport(o.transport),
			TOS: uint8(o.tos.Value), NetNS: namespace, NoCongMonitor: o.congMonitor.Value == 0,
			RXPath: o.rxPath, Realtime: o.realtime, OutlierAbove: o.outlierAbove(),
			CancelSentTo: o.cancelSentTo, MaxFindings: maxFindings, StopOnFinding: o.strict,
			SummaryOnly: o.summaryOnly, Perfdata: o.perfdata, RDMA: o.rdma(),
		},
		Options: wire.Options{
			Time: uint32(o.time.Value), SummaryOnly: o.summaryOnly, RTPrio: o.realtime, Trace: o.trace,
			ShowParams: o.showParams, ShowPerfdata: o.perfdata, Simplex: o.simplex,
			ConnectRetries: uint32(o.connectRetries.Value), NoINQ: o.disableINQ,
		},
	}
	if o.seed.Value == 0 && !o.seed.IsSet() {
		a.Config.Seed = uint64(time.Now().UnixNano())
	}
	if o.trace {
		a.Config.Trace = o.tell
	}
	s := &a.Config.Shape
	s.RDMA = a.Config.RDMA.Size > 0
	s.Layout = a.Peer.Layout(t.Addr.Is6())
	s.Depth, s.Verify, s.CRC = int(o.depth.Value), o.verify, o.crc
	s.ReqSize, s.AckSize = int(o.reqSize.Value), int(o.ackSize.Value)
	if s.AckSize == 0 {
		s.AckSize = int(s.Layout)
	}
	a.Config.MinReqSize = s.ReqSize
	if o.sizes.max.IsSet() {
		a.Config.MinReqSize, s.ReqSize = int(o.sizes.min.Value), int(o.sizes.max.Value)
	}
	header := int(s.Layout)
	switch {
	case a.Config.MinReqSize < header:
		return nil, &cli.UsageError{Reason: fmt.Sprintf("req size must be at least %d bytes, the length of the header: not %d", header, a.Config.MinReqSize)}
	case s.AckSize < header:
		return nil, &cli.UsageError{Reason: fmt.Sprintf("ack size must be at least %d bytes, the length of the header: not %d", header, s.AckSize)}
	}
	if err := a.Config.Check(); err != nil {
		return nil, &cli.UsageError{Reason: err.Error()}
	}
	if m := a.Config.Memory(); uint64(m) > o.memory.Value {
		return nil, fmt.Errorf("the run may need %d MiB of memory on each side, more than --max-memory permits (%d MiB): less depth (-d) or fewer tasks (-t) need less", m>>20, o.memory.Value>>20)
	}
	return a, nil
}

// rdma is what the options say of RDMA.
func (o *options) rdma() stress.RDMA {
	return stress.RDMA{
		Size: int(o.rdmaSize.Value), Vector: int(o.rdmaVector.Value), Mode: wire.RDMAMode(o.rdmaMode.Value),
		UseOnce: o.useOnce.Value == 1, GetMR: o.useGetMR.Value == 1, NoFence: o.useFence.Value == 0,
		Cache: o.cacheMRs.Value == 1, Alignment: int(o.alignment.Value), KeyMeter: o.keyOMeter,
	}
}

// tell prints a line of -V.
func (o *options) tell(text string) { fmt.Fprintln(o.stderr, text) }

// resetConnection is --reset.
func (o *options) resetConnection(ctx context.Context, namespace int) error {
	t, err := o.find(ctx, namespace, o.send, o.recv)
	if err != nil {
		return err
	}
	conn, err := rdssock.Listen(netip.AddrPortFrom(t.Source, uint16(o.port.Value)), &rdssock.Config{NetNS: namespace})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.ResetConnection(t.Addr, uint8(o.tos.Value)); err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		if errors.Is(err, rdssock.ErrNotSupported) {
			errno = syscall.EOPNOTSUPP // what mainline answers C, whose option it takes for SO_RDS_TRANSPORT
		}
		return fmt.Errorf("setsockopt RDS_CONN_RESET failed, errno: %d (%s)\n%w", int(errno), strerror.Text(errno), err)
	}
	return nil
}

// A logFile is --histogram-log; nil is none.
type logFile struct {
	f   *os.File
	log *latency.Log
	err error // the first
}

func (o *options) createLog() (*logFile, error) {
	if o.hdrLog == "" {
		return nil, nil
	}
	f, err := os.Create(o.hdrLog)
	if err != nil {
		return nil, err
	}
	log, err := latency.NewLog(f, time.Now())
	if err != nil {
		f.Close()
		return nil, err
	}
	return &logFile{f: f, log: log}, nil
}

// add writes the round trips of one run.
func (l *logFile) add(end time.Time, sum *stress.Summary) {
	if l != nil && l.err == nil {
		m := &sum.Measured
		l.err = l.log.Write(&m.Latencies.RTT, "rtt_ns", end.Add(-m.Total), end)
	}
}

// close returns what went wrong. It may be called again.
func (l *logFile) close() error {
	if l == nil {
		return nil
	}
	if err := l.f.Close(); l.err == nil && !errors.Is(err, os.ErrClosed) {
		l.err = err
	}
	return l.err
}
