package stress

import (
	"context"
	"errors"
	"time"

	"github.com/rdskit/rdskit/internal/stress/control"
	"github.com/rdskit/rdskit/internal/stress/flow"
)

// Self goes through a run with both sides in this process: the peer is another address of
// this host. It returns the summary of the active side.
func Self(ctx context.Context, a *Active) (*Summary, error) {
	here, there, err := socketPair()
	if err != nil {
		return nil, err
	}
	a.Conn = control.NewConn(here)
	c := a.Config
	other := &Config{
		Local: c.Peer, Peer: c.Local, Port: c.Port, Tasks: c.Tasks,
		Shape: flow.Shape{
			Layout: c.Shape.Layout, Depth: c.Shape.Depth, ReqSize: c.Shape.ReqSize, AckSize: c.Shape.AckSize,
			Verify: c.Shape.Verify, CRC: c.Shape.CRC, RDMA: c.Shape.RDMA,
		},
		RDMA:       c.RDMA,
		MinReqSize: c.MinReqSize, Requests: !a.Options.Simplex, Rate: c.Rate, Bursty: c.Bursty, SyncBursty: c.SyncBursty,
		GiveUp: c.GiveUp, Seed: c.Seed + 1, Transport: c.Transport, TOS: c.TOS, NetNS: c.NetNS,
		NoCongMonitor: c.NoCongMonitor, RXPath: c.RXPath, LocalPeer: c.LocalPeer,
		CancelSentTo: c.CancelSentTo, StopOnFinding: c.StopOnFinding,
	}
	passive := make(chan error, 1)
	go func() { passive <- serveSelf(ctx, control.NewConn(there), other, a.Plan, a.Version) }()
	sum, err := a.Run(ctx)
	a.Conn.Close()
	select {
	case perr := <-passive:
		// Why one side could not start says more than that the other saw it go.
		if err != nil && perr != nil && !errors.Is(perr, control.ErrClosed) {
			err = perr
		}
	case <-time.After(drainTime):
		err = errors.Join(err, errors.New("the passive side does not end"))
	}
	return sum, err
}

// serveSelf is the passive side of Self, which says nothing to people.
func serveSelf(ctx context.Context, conn *control.Conn, cfg *Config, plan Plan, version string) error {
	s := &session{cfg: cfg, conn: conn, peer: true, notify: func(Event) {}, plan: Plan{WarmUp: plan.WarmUp, Interval: plan.Interval}}
	defer conn.Close()
	if _, _, err := conn.ReceiveOptions(); err != nil {
		return err
	}
	if _, err := conn.WaitGo(cfg.Tasks); err != nil {
		return err
	}
	if err := conn.Ready(0, true); err != nil {
		return err
	}
	if _, err := receiveHello(conn, nil); err != nil {
		return err
	}
	var err error
	if s.run, err = Open(cfg); err != nil {
		_ = conn.Send(frame{Type: frameHello, Error: Said(err.Error())})
		return err
	}
	if err = conn.Send(frame{Type: frameHello, Hello: &hello{Version: Said(version), Address: cfg.Local}}); err == nil {
		s.run.Agree(true)
		err = meet(conn)
	}
	if err != nil {
		s.run.Close()
		return err
	}
	return s.main(context.WithoutCancel(ctx)).Err
}
