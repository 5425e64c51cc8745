package doctor

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdskit/rdskit/internal/shell"
	"github.com/rdskit/rdskit/rdsinfo"
)

func checkHost(f *Facts, r *report) {
	if f.Host == nil {
		return
	}
	if f.Host.Err != nil {
		do := remedy{"getent ahosts " + shell.Quote(f.Host.Name), "tells what the name stands for"}
		if _, err := netip.ParseAddr(f.Host.Name); err == nil {
			do = remedy{advice: "give the address of one host, and of the family of --local"}
		}
		r.fail(f.Host.Name, do, "it has no address to try: %v", f.Host.Err)
		return
	}
	text := fmt.Sprintf("its address is %v", f.Host.Way.Remote)
	if len(f.Host.Others) > 0 {
		text += "; not tried: " + strings.Trim(fmt.Sprint(f.Host.Others), "[]")
	}
	r.info(f.Host.Name, "%s", text)
}

// asked are the arguments by which the host was asked for, and a further one.
func (f *Facts) asked(option string) []string {
	args := []string{option}
	if f.Local.IsValid() {
		args = append(args, "--local", f.Local.String())
	}
	return append(args, f.Host.Name)
}

func (f *Facts) hasAddress() bool { return f.Host != nil && f.Host.Err == nil }

func checkRoute(f *Facts, r *report) {
	if !f.hasAddress() {
		return
	}
	w := f.Host.Way
	subject := w.Remote.String()
	if w.RouteError == "" {
		gateway := ""
		if w.Gateway.IsValid() {
			gateway = fmt.Sprintf(" by %v", w.Gateway)
		}
		r.ok(subject, "%s%s, from %v, with an MTU of %d bytes", w.Device, gateway, w.Local, w.MTU)
		return
	}
	_, here := onLink(f.Last.Namespace.Addresses, w.Remote)
	if ns, with := f.near(w.Remote); ns != nil && !here {
		r.fail(subject, toGoTo(ns, f.Host.Name),
			"%s; wrong network namespace: %s has %v, in its network", w.RouteError, namespaceName(ns), with)
		return
	}
	cause, do := f.whyNoWay(w)
	r.fail(subject, do, "%s", cause)
}

func checkNeighbor(f *Facts, r *report) {
	if !f.hasAddress() || f.Host.Way.RouteError != "" {
		return
	}
	w := f.Host.Way
	next := w.Remote
	if w.Gateway.IsValid() {
		next = w.Gateway
	}
	if l, ok := f.link(w.Device); ok && l.Loopback {
		r.skip(next.String(), "it is this host")
		return
	}
	switch w.Neighbor {
	case "failed", "incomplete":
		cause, do := f.whyNoWay(w)
		r.fail(next.String(), do, "%s", cause)
	case "":
		r.info(next.String(), "the kernel did not look for it on %s lately", w.Device)
	default:
		r.ok(next.String(), "%s on %s", strings.ToUpper(w.Neighbor), w.Device)
	}
}

func checkPings(f *Facts, r *report) {
	if !f.hasAddress() {
		return
	}
	h := f.Host
	switch {
	case h.PingErr != nil:
		r.fail(h.Way.Remote.String(), none, "no ping can be tried: %v", h.PingErr)
		return
	case len(h.Pings) == 0 && h.Way.RouteError != "":
		r.skip(h.Way.Remote.String(), "there is no route")
		return
	case len(h.Pings) == 0:
		r.add(Skip, h.Way.Remote.String(), remedy{command: again(f.NetNS, f.asked("--probe")...)},
			"there is no connection to it, and a ping would make one, which stays: --probe permits that")
		return
	}
	for _, p := range h.Pings {
		f.checkPing(r, p)
	}
}

func (f *Facts) checkPing(r *report, p Ping) {
	subject := connectionName(p.Local, p.Remote, rdsinfo.Optional[uint8]{Value: p.TOS, Known: true}, p.Transport)
	if !hasConnection(f.First, p) && hasConnection(f.Last, p) {
		r.info(subject, "the ping created this connection: it stays until the module of its transport is unloaded")
	}
	switch {
	case p.Received > 0:
		r.ok(subject, "%d of %d pings answered, the fastest in %v", p.Received, p.Sent, p.RTT.Round(1000))
	case p.Sent == 0 && p.Err != nil:
		r.fail(subject, none, "no ping could be sent: %v", p.Err)
	default:
		cause, do := f.whyNoPong(p)
		r.fail(subject, do, "none of %d pings was answered: %s", p.Sent, cause)
	}
}

// whyNoPong says why pings got no answer.
func (f *Facts) whyNoPong(p Ping) (cause string, do remedy) {
	peer := f.peer(p.Local, p.Remote)
	cause, do = f.why(peer, p.Transport)
	// The state is that of the first path: pings that take another may be refused meanwhile.
	if c, ok := connection(f.Last, p); ok && c.State() == rdsinfo.StateUp && f.tcpHealthy(peer) && !f.refused() {
		if noWay, _ := f.whyNoWay(peer); noWay == "" {
			return fmt.Sprintf("the connection is up, so that the kernel of %v has them, but it answers no pings: %s is 0 there", p.Remote, pingEnable),
				remedy{command: there(p.Remote, "sysctl -w "+pingEnable+"=1")}
		}
	}
	return cause, do
}

// refused reports whether attempts to connect over TCP were refused between the two looks.
func (f *Facts) refused() bool { return f.Last.TCP.AttemptsFailed > f.First.TCP.AttemptsFailed }

// tcpHealthy reports whether TCP gets what it sends acknowledged.
func (f *Facts) tcpHealthy(p rdsinfo.Peer) bool {
	for _, e := range f.endpointsTo(p) {
		if e.Retransmits > 0 || e.State == "SYN-SENT" {
			return false
		}
	}
	return true
}

func connection(b *rdsinfo.Bundle, p Ping) (rdsinfo.Connection, bool) {
	all, _ := b.Snapshot.Connections()
	for _, c := range all {
		if same(c.Local, p.Local) && same(c.Remote, p.Remote) && (!c.TOS.Known || c.TOS.Value == p.TOS || p.Transport == "tcp") {
			return c, true
		}
	}
	return rdsinfo.Connection{}, false
}

func hasConnection(b *rdsinfo.Bundle, p Ping) bool {
	_, ok := connection(b, p)
	return ok
}
