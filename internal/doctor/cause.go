package doctor

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdskit/rdskit/rdsinfo"
)

// why says what keeps a peer from being reached, and what to do. It goes from what is nearest
// outwards; the first that is wrong is the cause.
func (f *Facts) why(p rdsinfo.Peer, transport string) (cause string, do remedy) {
	switch cause, do = f.whyNoWay(p); {
	case cause != "":
		return cause, do
	case transport != "tcp":
		return noCause, toLookAtBoth(p)
	}
	return f.whyTCP(p)
}

const noCause = "no cause shows on this host"

// whyNoWay looks at address, route, link and neighbor.
func (f *Facts) whyNoWay(p rdsinfo.Peer) (cause string, do remedy) {
	if p.Local.IsValid() && !f.isLocal(p.Local) {
		return fmt.Sprintf("%v is not an address of this host any more", p.Local), f.toHave(p.Local)
	}
	if on, ok := onLink(f.Last.Namespace.Addresses, p.Remote); ok && p.RouteError != "" {
		if l, ok := f.link(on.Device); ok && !l.Up {
			return fmt.Sprintf("%s, which has %v in the network of %v, is down", l.Name, on.Addr, p.Remote), f.toGetUp(l.Name)
		}
	}
	if p.RouteError != "" {
		return p.RouteError, f.toGetARoute(p)
	}
	if l, ok := f.link(p.Device); ok {
		switch {
		case !l.Up:
			return l.Name + " is down", f.toGetUp(l.Name)
		case !l.Running:
			return l.Name + " has no carrier", f.toGetCarrier(l.Name)
		}
	}
	switch p.Neighbor {
	case "failed", "incomplete":
		next := p.Remote
		if p.Gateway.IsValid() {
			next = p.Gateway
		}
		return fmt.Sprintf("%v does not answer on %s (ip neighbour: %s): it is down, its link is, or it is not in this network", next, p.Device, strings.ToUpper(p.Neighbor)),
			remedy{f.here("ping -c 3 -I", p.Device, next.String()), fmt.Sprintf("look at %v: is it up, is its link, has it this address", next)}
	}
	return "", none
}

// toGetARoute is the remedy where there is none.
func (f *Facts) toGetARoute(p rdsinfo.Peer) remedy {
	if p.Local.IsValid() && p.Local.IsLoopback() {
		return remedy{again(f.NetNS, p.Remote.String()), "without --local, or with an address that is not a loopback one"}
	}
	if p.Remote.Is6() && p.Remote.IsLinkLocalUnicast() {
		return remedy{f.here("ip -brief link"), fmt.Sprintf("lists the interfaces: rds-info doctor %v%%INTERFACE", p.Remote.WithZone(""))}
	}
	show := "ip route show"
	if p.Remote.Is6() {
		show = "ip -6 route show"
	}
	return remedy{f.here(show), fmt.Sprintf("lists those that there are; to add one: ip route add %v via GATEWAY", p.Remote)}
}

// whyTCP looks at the TCP sockets to the peer.
func (f *Facts) whyTCP(p rdsinfo.Peer) (cause string, do remedy) {
	const rules = "'nft list ruleset; iptables-save'"
	firewall := remedy{
		f.here("sh -c "+rules) + "; " + there(p.Remote, rules),
		fmt.Sprintf("lists the rules: let TCP port %d through, here and on %v, in both directions", rdsinfo.TCPPort, p.Remote),
	}
	alive := fmt.Sprintf("a firewall drops it, or %v is down", p.Remote)
	if p.Neighbor == "reachable" && !p.Gateway.IsValid() {
		alive = fmt.Sprintf("a firewall drops it, since %v answers on %s", p.Remote, p.Device)
	}
	for _, e := range f.endpointsTo(p) {
		switch {
		case e.State == "SYN-SENT" && (e.Retransmits > 0 || f.stillConnecting(e)):
			return fmt.Sprintf("nothing answers at TCP port %d of %v: %s", rdsinfo.TCPPort, p.Remote, alive), firewall
		case e.State == "ESTAB" && e.Unacked > 0 && e.Retransmits > 0:
			firewall.advice += fmt.Sprintf("; if nothing drops it: ping %v", p.Remote)
			return fmt.Sprintf("%v acknowledges nothing over TCP (%d bytes, sent %d times): %s, or the link between is cut", p.Remote, e.Unacked, e.Retransmits+1, alive), firewall
		}
	}
	if f.refused() {
		return fmt.Sprintf("%v refuses TCP port %d: there is no RDS over TCP (%d attempts were refused meanwhile)",
			p.Remote, rdsinfo.TCPPort, f.Last.TCP.AttemptsFailed-f.First.TCP.AttemptsFailed), remedy{command: there(p.Remote, "modprobe rds_tcp")}
	}
	if p.Local.IsValid() && p.Local.Compare(p.Remote) > 0 {
		return fmt.Sprintf("the kernel waits for %v, which has the smaller address, to connect again", p.Remote),
			remedy{f.here("rds-ping -c 1 -I", p.Local.String(), p.Remote.String()), fmt.Sprintf("a message makes this host connect, too; if it gets no answer: rds-info doctor on %v", p.Remote)}
	}
	return noCause, toLookAtBoth(p)
}

// endpointsTo are the TCP sockets between the two addresses.
func (f *Facts) endpointsTo(p rdsinfo.Peer) []rdsinfo.TCPEndpoint {
	var to []rdsinfo.TCPEndpoint
	for _, e := range f.Last.TCP.Endpoints {
		if same(e.Remote.Addr(), p.Remote) && same(e.Local.Addr(), p.Local) {
			to = append(to, e)
		}
	}
	return to
}

// stillConnecting reports whether the first look saw the same attempt.
func (f *Facts) stillConnecting(e rdsinfo.TCPEndpoint) bool {
	if !f.moved() {
		return false
	}
	for _, was := range f.First.TCP.Endpoints {
		if was.State == e.State && was.Local == e.Local && was.Remote == e.Remote {
			return true
		}
	}
	return false
}

// peer is the way to the far end of a connection.
func (f *Facts) peer(local, remote netip.Addr) rdsinfo.Peer {
	for _, p := range f.Last.Peers {
		if same(p.Local, local) && same(p.Remote, remote) {
			return p
		}
	}
	if f.Host != nil && same(f.Host.Way.Remote, remote) && same(f.Host.Way.Local, local) {
		return f.Host.Way
	}
	return rdsinfo.Peer{Local: local, Remote: remote}
}
