package hosts

import (
	"fmt"
	"os"

	"github.com/florianl/go-tc"
	"github.com/florianl/go-tc/core"
	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/rdskit/rdskit/internal/lab/netem"
	"golang.org/x/sys/unix"
)

// SetNetem disturbs what the host sends, in place of what disturbed it before.
func (h Host) SetNetem(s netem.Spec) error {
	return h.qdisc("set netem", func(q *tc.Qdisc, link rtnetlink.LinkMessage) error {
		return q.Replace(netemQdisc(link, s))
	})
}

// ClearNetem leaves in peace what the host sends.
func (h Host) ClearNetem() error {
	return h.qdisc("clear netem", func(q *tc.Qdisc, link rtnetlink.LinkMessage) error {
		if link.Attributes.QueueDisc != kind {
			return nil
		}
		return q.Delete(netemQdisc(link, netem.Spec{}))
	})
}

const kind = "netem"

func netemQdisc(link rtnetlink.LinkMessage, s netem.Spec) *tc.Object {
	return &tc.Object{
		Msg: tc.Msg{
			Family:  unix.AF_UNSPEC,
			Ifindex: link.Index,
			Handle:  core.BuildHandle(1, 0),
			Parent:  tc.HandleRoot,
		},
		Attribute: tc.Attribute{Kind: kind, Netem: s.Kernel()},
	}
}

func (h Host) qdisc(what string, f func(*tc.Qdisc, rtnetlink.LinkMessage) error) error {
	err := h.onDevice(func(_ *rtnetlink.Conn, link rtnetlink.LinkMessage) error {
		ns, err := os.Open(h.NetNS())
		if err != nil {
			return err
		}
		defer ns.Close()
		conn, err := tc.Open(&tc.Config{NetNS: int(ns.Fd())})
		if err != nil {
			return err
		}
		defer conn.Close()
		return f(conn.Qdisc(), link)
	})
	if err != nil {
		return fmt.Errorf("host %s: %s: %w", h, what, err)
	}
	return nil
}
