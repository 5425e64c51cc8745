package stress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/rdskit/rdskit/internal/stress/control"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

// An Active is the side that says what a run is to be.
type Active struct {
	Config Config
	Plan   Plan
	// Options are what the passive side is to do besides: the fields that Config has, too, are
	// filled in from it.
	Options wire.Options
	// Peer names a C release on the other side. The zero Peer stands for rdskit, and for any release
	// as long as the options fit the short form.
	Peer PeerVersion
	// Retries is how often to connect again while the peer is not there.
	Retries int
	Notify  func(Event)
	// Version is what this side calls itself.
	Version string
	// Conn is the connection to the peer if there is one already.
	Conn *control.Conn
}

// A PeerVersion is a release of the C rds-stress, as it calls itself. It takes long options from
// its like alone.
type PeerVersion struct {
	Version string
	// Mainline says that it was built for mainline kernels: its header is shorter and it knows no
	// async flag.
	Mainline bool
}

// ParsePeerVersion parses VERSION or VERSION,mainline.
func ParsePeerVersion(s string) (PeerVersion, error) {
	version, build, has := strings.Cut(s, ",")
	switch {
	case version == "" || len(version) > wire.MaxVersion || version[0] < '0' || version[0] > '9':
		return PeerVersion{}, errors.New("not a version: want one such as 2.0.7, as rds-stress -h says it")
	case has && build != "mainline":
		return PeerVersion{}, fmt.Errorf("%q is no build: only mainline differs", build)
	}
	return PeerVersion{version, has}, nil
}

func (p PeerVersion) String() string {
	if p.Mainline {
		return p.Version + ",mainline"
	}
	return p.Version
}

// form is the layout of the options for such a peer.
func (p PeerVersion) form(ipv6, long bool) wire.Form {
	switch {
	case p.Version == "":
		return wire.Short
	case ipv6 && p.Mainline:
		return wire.IPv6Mainline
	case ipv6:
		return wire.IPv6
	case long && p.Mainline:
		return wire.LongMainline
	case long:
		return wire.Long
	}
	return wire.Short
}

// json says that such a peer exchanges options as JSON if it is asked to: 2.3.9 and later do.
func (p PeerVersion) json() bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(p.Version, "%d.%d.%d", &major, &minor, &patch); n < 2 {
		return false
	}
	return cmp.Or(cmp.Compare(major, 2), cmp.Compare(minor, 3), cmp.Compare(patch, 9)) >= 0
}

// Layout is the header of such a peer.
func (p PeerVersion) Layout(ipv6 bool) wire.Layout {
	switch {
	case ipv6 && p.Mainline:
		return wire.Basic6
	case ipv6:
		return wire.Async6
	case p.Mainline:
		return wire.Basic
	}
	return wire.Async
}

// NeedsRDSKit says which of the things asked for only rdskit on the other side can do; empty if none.
func (a *Active) NeedsRDSKit() []string {
	c := &a.Config
	var needs []string
	add := func(need bool, what string) {
		if need {
			needs = append(needs, what)
		}
	}
	plain := a.Peer.Version == ""
	add(plain && c.TOS != 0, "a type of service (-Q)")
	add(plain && c.Peer.Is6(), "IPv6")
	add(c.MinReqSize < c.Shape.ReqSize, "requests of several sizes (--size-range)")
	add(c.Shape.CRC, "checksums (--crc)")
	// That of C then registers memory for each request, and frees none.
	add(c.RDMA.Cache && !c.RDMA.GetMR, "regions that are kept (--rdma-cache-mrs) without --rdma-use-get-mr")
	return needs
}

// errNotRDSKit says that a C peer was asked for what it cannot do.
var errNotRDSKit = errors.New("the peer is not rdskit's rds-stress")

// Run goes through a run. The summary is nil if it did not come to one.
func (a *Active) Run(ctx context.Context) (*Summary, error) {
	cfg := &a.Config
	a.Plan.patience, a.Plan.asks = cfg.GiveUp, !a.Options.Simplex
	s := &session{cfg: cfg, plan: a.Plan, active: true, notify: a.Notify, conn: a.Conn}
	if s.conn == nil {
		if err := a.connect(ctx, s); err != nil {
			return nil, err
		}
	}
	sum, err := a.run(ctx, s)
	if err != nil {
		s.conn.Close()
		if s.run != nil {
			s.run.Close()
		}
	}
	return sum, err
}

func (a *Active) connect(ctx context.Context, s *session) error {
	cfg := &a.Config
	if needs := a.NeedsRDSKit(); len(needs) > 0 {
		s.note("%s: the peer has to be rdskit's rds-stress too (or a C one that --peer-version names, for -Q and IPv6); a C server would end without a run", strings.Join(needs, ", "))
	}
	to := netip.AddrPortFrom(cfg.Peer, cfg.Port)
	s.tell(Event{Kind: Connecting, Addr: to})
	d := control.Dialer{Local: cfg.Local, NetNS: cfg.NetNS, Retries: a.Retries, Retrying: func(err error) {
		s.tell(Event{Kind: Retrying, Addr: to, Err: err})
	}}
	conn, err := d.Dial(ctx, to)
	if err != nil {
		s.tell(Event{Kind: NotConnected, Addr: to, Err: err})
		return &ConnectError{To: to, Err: err}
	}
	s.conn = conn
	s.tell(Event{Kind: Connected, Addr: to})
	return nil
}

// A ConnectError is that no connection to the peer came about. Its text begins as C's does.
type ConnectError struct {
	To  netip.AddrPort
	Err error
}

func (e *ConnectError) Error() string {
	cause := e.Err
	var call *os.SyscallError
	if errors.As(cause, &call) {
		cause = call.Err
	}
	text := fmt.Sprintf("connect(%v) failed: port %d: %v", e.To.Addr(), e.To.Port(), cause)
	if errors.Is(cause, syscall.ECONNREFUSED) {
		text += ": rds-stress has to wait there first, or --connect-retries to wait for it"
	}
	return text
}

// Unwrap returns Err.
func (e *ConnectError) Unwrap() error { return e.Err }

// options are what goes over the wire.
func (a *Active) options() *wire.Options {
	cfg, o := &a.Config, a.Options
	o.Depth, o.ReqSize, o.AckSize = uint32(cfg.Shape.Depth), uint32(cfg.Shape.ReqSize), uint32(cfg.Shape.AckSize)
	o.SendAddr, o.RecvAddr = cfg.Peer.WithZone(""), cfg.Local.WithZone("")
	o.Port, o.Tasks = cfg.Port, uint16(cfg.Tasks)
	o.Verify, o.CongMonitor, o.TOS = cfg.Shape.Verify, !cfg.NoCongMonitor, cfg.TOS
	cfg.RDMA.put(&o)
	o.Sender = wire.SenderRDSKit
	o.Version = a.Peer.Version
	o.Bursty, o.SyncBursty = cfg.Bursty, cfg.SyncBursty
	// C exchanges JSON for what no other form has, and only then.
	o.WantsJSON = a.Peer.json() && (o.Bursty || o.SyncBursty || o.NoINQ)
	return &o
}

func (a *Active) run(ctx context.Context, s *session) (*Summary, error) {
	cfg := &a.Config
	// A release that nobody named may have been built for mainline kernels, and shows it if it sends requests.
	cfg.DetectLayout = a.Peer.Version == "" && cfg.Peer.Is4() && cfg.Shape.Verify && !a.Options.Simplex
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	rdskit, err := a.negotiate(s.conn, func() error { return a.open(ctx, s) })
	if err == nil && rdskit {
		err = a.agree(s)
	}
	switch {
	case !stop():
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	s.run.Agree(rdskit)
	s.tell(Event{Kind: Negotiated, Transport: s.run.Transport()})
	return s.main(ctx), nil
}

// negotiate tells the peer what the run is to be, and returns when both are ready. open opens the sockets. A
// C peer sends its first message before this side knows whether it is rdskit, and they have to be there.
func (a *Active) negotiate(conn *control.Conn, open func() error) (rdskit bool, err error) {
	o := a.options()
	if err := conn.SendOptions(o, a.Peer.form(a.Config.Peer.Is6(), o.TOS != 0 || o.WantsJSON)); err != nil {
		return false, err
	}
	if err := open(); err != nil {
		return false, err
	}
	rdskit, json, err := conn.Go(a.Config.Tasks)
	switch {
	case err != nil || rdskit:
		return rdskit, err
	case len(a.NeedsRDSKit()) > 0:
		return false, fmt.Errorf("%w, which %s needs", errNotRDSKit, strings.Join(a.NeedsRDSKit(), ", "))
	case json != o.WantsJSON:
		return false, fmt.Errorf("%w, nor the C one that --peer-version %v names: that would have answered otherwise", errNotRDSKit, a.Peer)
	case !json:
		return false, nil
	}
	back, err := conn.ExchangeJSON(o)
	if err != nil {
		return false, err
	}
	if back.Bursty != o.Bursty || back.SyncBursty != o.SyncBursty {
		return false, errors.New("the peer does not take --always-bursty or --sync-always-bursty")
	}
	_, _, err = conn.Go(a.Config.Tasks)
	return false, err
}

// open opens and warms the sockets.
func (a *Active) open(ctx context.Context, s *session) (err error) {
	if s.run, err = Open(&a.Config); err != nil {
		return err
	}
	if !s.run.Warm(ctx) && ctx.Err() == nil {
		s.note("no answer to RDS pings from %v: is RDS there, and its transport? (rds-info doctor %v says more)", a.Config.Peer, a.Config.Peer)
	}
	return nil
}

// agree goes on with a peer of rdskit.
func (a *Active) agree(s *session) error {
	s.peer = true
	tell := sync.OnceFunc(func() { s.note("the peer is busy with the run of another: this one waits for its turn") })
	h, err := exchange(s.conn, a.hello(), tell)
	if err != nil {
		return err
	}
	s.summary.PeerVersion = string(h.Version)
	return meet(s.conn)
}

func (a *Active) hello() *hello {
	c := &a.Config
	return &hello{
		Version: Said(a.Version), Address: c.Local.WithZone(""), TOS: c.TOS, MinReqSize: c.MinReqSize, CRC: c.Shape.CRC,
		Bursty: c.Bursty, SyncBursty: c.SyncBursty, RXPath: c.RXPath, Rate: c.Rate, GiveUpNs: int64(c.GiveUp),
		WarmUpNs: int64(a.Plan.WarmUp), IntervalNs: int64(a.Plan.Interval), Seed: c.Seed, Strict: c.StopOnFinding,
	}
}
