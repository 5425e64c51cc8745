package stress

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/route"
	"github.com/rdskit/rdskit/internal/stress/control"
	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/wire"
	"github.com/rdskit/rdskit/rdssock"
)

// A Passive is the side that waits for the other to say what a run is to be.
type Passive struct {
	// Local is the address of the RDS sockets; an invalid one stands for that which the peer connects to.
	Local netip.Addr
	Port  uint16
	// Allow says who may connect; empty is everybody.
	Allow []netip.Prefix
	NetNS int

	// Patience is how long nothing may arrive of a C peer before the run breaks off; 0 is for ever. One of rdskit says
	// itself that it is there.
	Patience time.Duration

	Transport    rdssock.Transport
	Processors   bool
	Latencies    bool
	OutlierAbove time.Duration
	MaxFindings  int
	CancelSentTo bool
	Trace        func(string) // see Config; used if the peer asks for it
	AbortAfter   time.Duration
	// MaxMemory bounds what a peer can make this side allocate, in bytes; 0 is DefaultMemory.
	MaxMemory int64
	// Serve goes on after a run.
	Serve bool
	// Version is what this side calls itself.
	Version string
	Notify  func(Event)
}

// DefaultMemory is Passive.MaxMemory, in bytes.
const DefaultMemory = 4 << 30

// Run serves one run, or with Serve one after the other until ctx is done. It returns the summary of the
// last, nil if there was none.
func (p *Passive) Run(ctx context.Context) (*Summary, error) {
	dropped := func(from netip.AddrPort, why error) {
		p.Notify(Event{Kind: Dropped, Time: time.Now(), Addr: from, Err: why})
	}
	waiting := func(peer *control.Conn) error { return peer.Send(frame{Type: frameWait}) }
	l, err := control.ListenConfig{NetNS: p.NetNS, Allow: p.Allow, Dropped: dropped, Waiting: waiting}.Listen(ctx, p.Local, p.Port)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	local := p.Local
	if !local.IsValid() {
		local = netip.IPv4Unspecified()
	}
	p.Notify(Event{Kind: Listening, Time: time.Now(), Addr: netip.AddrPortFrom(local, p.Port)})
	for {
		offer, err := l.Accept(ctx)
		if err != nil {
			return nil, err
		}
		sum, err := p.serve(ctx, offer, func() {
			if !p.Serve {
				l.Close() // a port that does not answer tells others that the run is taken
			}
		})
		switch {
		case ctx.Err() != nil && err != nil:
			offer.Close()
			return nil, err
		case err != nil:
			// What this peer asks for another may not, and anybody can ask.
			l.Drop(offer, err)
		case !p.Serve || ctx.Err() != nil:
			return sum, nil
		}
	}
}

// serve goes through the run that the offer is about. ready is called when nothing keeps it from starting.
func (p *Passive) serve(ctx context.Context, offer *control.Offer, ready func()) (*Summary, error) {
	s := &session{conn: offer.Conn, notify: p.Notify, peer: offer.Options.Sender == wire.SenderRDSKit}
	s.tell(Event{Kind: Accepted, Addr: offer.RemoteAddr(), Local: offer.LocalAddr()})
	if err := p.prepare(ctx, s, offer); err != nil {
		if s.run != nil {
			s.run.Close()
		}
		return nil, err
	}
	ready()
	s.tell(Event{Kind: Negotiated, Transport: s.run.Transport()})
	return s.main(ctx), nil
}

func (p *Passive) prepare(ctx context.Context, s *session, offer *control.Offer) error {
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	err := p.agree(ctx, s, offer)
	if !stop() {
		return ctx.Err()
	}
	return err
}

func (p *Passive) agree(ctx context.Context, s *session, offer *control.Offer) error {
	s.plan = Plan{WarmUp: DefaultWarmUp, Interval: DefaultInterval, Processors: p.Processors || offer.Options.ShowPerfdata, Latencies: p.Latencies, AbortAfter: p.AbortAfter}
	if s.peer {
		return p.agreeWithRDSKit(ctx, s, offer)
	}
	open := func(cfg *Config) (err error) {
		s.cfg = cfg
		if err := p.findPeer(ctx, cfg); err != nil {
			return err
		}
		s.run, err = Open(cfg)
		return err
	}
	s.plan.patience, s.plan.asks = p.Patience, true
	if o := &offer.Options; o.Time > 0 {
		s.plan.until = DefaultWarmUp + time.Duration(o.Time)*time.Second
	}
	return p.negotiate(offer, open, func() {
		s.run.Warm(ctx)
		s.run.Agree(false)
	})
}

// negotiate hears from a C peer what the run is to be, opens the sockets, and when the peer is ready, warms them
// and tells it so.
func (p *Passive) negotiate(offer *control.Offer, open func(*Config) error, warm func()) error {
	o := &offer.Options
	if o.WantsJSON {
		_, err := offer.WaitGo(0)
		if err == nil {
			err = offer.TakeJSON(o)
		}
		if err != nil {
			return err
		}
	}
	cfg, err := p.config(offer)
	if err != nil {
		return err
	}
	if err := open(cfg); err != nil {
		return err
	}
	if o.WantsJSON {
		if err := offer.GiveJSON(o); err != nil {
			return err
		}
	}
	sent, err := offer.WaitGo(cfg.Tasks)
	if err != nil {
		return err
	}
	warm()
	if err := offer.Ready(sent, false); err != nil {
		return err
	}
	return nil
}

func (p *Passive) agreeWithRDSKit(ctx context.Context, s *session, offer *control.Offer) error {
	cfg, err := p.config(offer)
	if err != nil {
		return err
	}
	s.cfg = cfg
	h, err := receiveHello(s.conn, nil)
	if err == nil {
		err = h.check(&offer.Options)
	}
	if err != nil {
		return err
	}
	s.summary.PeerVersion = string(h.Version)
	cfg.Peer, cfg.TOS, cfg.MinReqSize = h.Address, h.TOS, h.MinReqSize
	if zone := offer.RemoteAddr().Addr().Zone(); zone != "" {
		cfg.Peer = cfg.Peer.WithZone(zone)
	}
	cfg.Shape.CRC, cfg.Bursty, cfg.SyncBursty, cfg.RXPath = h.CRC, h.Bursty, h.SyncBursty, h.RXPath
	cfg.Rate, cfg.GiveUp, cfg.Seed, cfg.StopOnFinding = h.Rate, time.Duration(h.GiveUpNs), h.Seed+1, h.Strict
	s.plan.WarmUp, s.plan.Interval = time.Duration(h.WarmUpNs), time.Duration(h.IntervalNs)
	fail := func(err error) error {
		// The peer hears why, if it still listens.
		_ = s.conn.Send(frame{Type: frameHello, Error: Said(err.Error())})
		return err
	}
	if err := cfg.Check(); err != nil {
		return fail(err)
	}
	if cfg.Peer.Is4() != cfg.Local.Is4() {
		return fail(fmt.Errorf("%v and %v are not of one address family", cfg.Local, cfg.Peer))
	}
	if err := p.findPeer(ctx, cfg); err != nil {
		return fail(err)
	}
	if s.run, err = Open(cfg); err != nil {
		return fail(err)
	}
	if err := s.conn.Send(frame{Type: frameHello, Hello: &hello{Version: Said(p.Version), Address: cfg.Local.WithZone("")}}); err != nil {
		return err
	}
	s.run.Warm(ctx)
	s.run.Agree(true)
	return meet(s.conn)
}

// config is what the peer asks for, as far as that can be.
func (p *Passive) config(offer *control.Offer) (*Config, error) {
	o := &offer.Options
	local := p.Local
	if !local.IsValid() {
		local = offer.LocalAddr().Addr()
	}
	peer := o.RecvAddr.Unmap()
	if !peer.IsValid() || peer.IsUnspecified() {
		peer = offer.RemoteAddr().Addr()
	}
	cfg := &Config{
		Local: local, Peer: peer, Port: o.Port, Tasks: int(o.Tasks),
		Requests: !o.Simplex, Bursty: o.Bursty || o.SyncBursty, SyncBursty: o.SyncBursty, NoCongMonitor: !o.CongMonitor, TOS: o.TOS, NetNS: p.NetNS, Realtime: o.RTPrio,
		SummaryOnly: o.SummaryOnly, Perfdata: o.ShowPerfdata,
		Transport: p.Transport, OutlierAbove: p.OutlierAbove, MaxFindings: p.MaxFindings, CancelSentTo: p.CancelSentTo,
	}
	cfg.Shape = flow.Shape{Depth: int(o.Depth), ReqSize: int(o.ReqSize), AckSize: int(o.AckSize), Verify: o.Verify}
	ipv6 := local.Is6()
	switch l, ok := wire.LayoutOfAck(o.AckSize); {
	case ok && l.IPv6() == ipv6:
		cfg.Shape.Layout = l
	case offer.Form == wire.LongMainline:
		cfg.Shape.Layout = wire.Basic
	case offer.Form == wire.IPv6Mainline:
		cfg.Shape.Layout = wire.Basic6
	case ipv6:
		cfg.Shape.Layout = wire.Async6
	default:
		cfg.Shape.Layout = wire.Async
		cfg.DetectLayout = offer.Form == wire.Short && o.Verify && o.Sender != wire.SenderRDSKit
	}
	cfg.MinReqSize = cfg.Shape.ReqSize
	cfg.RDMA = rdmaOf(o)
	cfg.Shape.RDMA = cfg.RDMA.Size > 0
	if o.Trace {
		cfg.Trace = p.Trace
	}
	return cfg, p.check(o, cfg)
}

// findPeer finds out whether the peer is on this host.
func (p *Passive) findPeer(ctx context.Context, cfg *Config) (err error) {
	cfg.LocalPeer, err = route.IsLocal(ctx, cfg.Peer, &route.Config{NetNS: cfg.NetNS})
	return err
}

// check refuses what no peer in its right mind asks for.
func (p *Passive) check(o *wire.Options, cfg *Config) error {
	memory := p.MaxMemory
	if memory == 0 {
		memory = DefaultMemory
	}
	switch {
	case o.Async:
		return fmt.Errorf("--async: %w: mainline kernels have no RDS_CMSG_ASYNC_SEND", syscall.EINVAL)
	case o.ReqSize > MaxMessage:
		return &LimitError{"a request size of", uint64(o.ReqSize), MaxMessage, ""}
	case o.AckSize > MaxMessage:
		return &LimitError{"an ack size of", uint64(o.AckSize), MaxMessage, ""}
	case o.ReqSize < uint32(cfg.Shape.Layout) || o.AckSize < uint32(cfg.Shape.Layout):
		return fmt.Errorf("messages of %d and %d bytes have no room for the header of %d", o.ReqSize, o.AckSize, cfg.Shape.Layout)
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	if m := cfg.Memory(); m > memory {
		return &LimitError{"memory in bytes: a run that needs", uint64(m), uint64(memory), "less depth or fewer tasks need less"}
	}
	return nil
}
