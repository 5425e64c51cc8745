package doctor

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdskit/rdskit/rdsinfo"
)

// why says what keeps a peer from being reached, and what to do. It goes from what is nearest
// outwards; the first that is wrong is the cause.
func (f *Facts) why(p rdsinfo.Peer, transport string) (cause, remedy string) {
	switch cause, remedy = f.whyNoWay(p); {
	case cause != "":
		return cause, remedy
	case transport != "tcp":
		return "no cause shows on this host", "look at the kernel's log, here and there: dmesg; rds-info doctor on " + p.Remote.String()
	}
	return f.whyTCP(p)
}

// whyNoWay looks at address, route, link and neighbor.
func (f *Facts) whyNoWay(p rdsinfo.Peer) (cause, remedy string) {
	if p.Local.IsValid() && !f.isLocal(p.Local) {
		return fmt.Sprintf("%v is not an address of this host any more", p.Local),
			fmt.Sprintf("ip address add %v/BITS dev DEVICE", p.Local)
	}
	if on, ok := onLink(f.Last.Namespace.Addresses, p.Remote); ok && p.RouteError != "" {
		if l, ok := f.link(on.Device); ok && !l.Up {
			return fmt.Sprintf("%s, which has %v in the network of %v, is down", l.Name, on.Addr, p.Remote), "ip link set " + l.Name + " up"
		}
	}
	if p.RouteError != "" {
		return p.RouteError, f.toGetARoute(p)
	}
	if l, ok := f.link(p.Device); ok {
		switch {
		case !l.Up:
			return l.Name + " is down", "ip link set " + l.Name + " up"
		case !l.Running:
			return l.Name + " has no carrier", "look at the cable, the switch port and the far end: ethtool " + l.Name
		}
	}
	switch p.Neighbor {
	case "failed", "incomplete":
		next := p.Remote
		if p.Gateway.IsValid() {
			next = p.Gateway
		}
		return fmt.Sprintf("%v does not answer on %s (ip neighbour: %s): it is down, its link is, or it is not in this network", next, p.Device, strings.ToUpper(p.Neighbor)),
			fmt.Sprintf("look at %v: is it up, is its link, has it this address", next)
	}
	return "", ""
}

// toGetARoute is the remedy where there is none.
func (f *Facts) toGetARoute(p rdsinfo.Peer) string {
	if p.Local.IsValid() && p.Local.IsLoopback() {
		return fmt.Sprintf("rds-info doctor %v, without --local or with an address that is not a loopback one", p.Remote)
	}
	if p.Remote.Is6() && p.Remote.IsLinkLocalUnicast() {
		return fmt.Sprintf("rds-info doctor %v%%INTERFACE; ip link lists them", p.Remote.WithZone(""))
	}
	return fmt.Sprintf("ip route add %v via GATEWAY", p.Remote)
}

// whyTCP looks at the TCP sockets to the peer.
func (f *Facts) whyTCP(p rdsinfo.Peer) (cause, remedy string) {
	firewall := fmt.Sprintf("let TCP port %d through, here and on %v: nft list ruleset, iptables -L -n", rdsinfo.TCPPort, p.Remote)
	alive := fmt.Sprintf("a firewall drops it, or %v is down", p.Remote)
	if p.Neighbor == "reachable" && !p.Gateway.IsValid() {
		alive = fmt.Sprintf("a firewall drops it, since %v answers on %s", p.Remote, p.Device)
	}
	for _, e := range f.endpointsTo(p) {
		switch {
		case e.State == "SYN-SENT" && (e.Retransmits > 0 || f.stillConnecting(e)):
			return fmt.Sprintf("nothing answers at TCP port %d of %v: %s", rdsinfo.TCPPort, p.Remote, alive), firewall
		case e.State == "ESTAB" && e.Unacked > 0 && e.Retransmits > 0:
			return fmt.Sprintf("%v acknowledges nothing over TCP (%d bytes, sent %d times): %s, or the link between is cut", p.Remote, e.Unacked, e.Retransmits+1, alive),
				firewall + "; ping " + p.Remote.String()
		}
	}
	if f.refused() {
		return fmt.Sprintf("%v refuses TCP port %d: there is no RDS over TCP (%d attempts were refused meanwhile)",
				p.Remote, rdsinfo.TCPPort, f.Last.TCP.AttemptsFailed-f.First.TCP.AttemptsFailed),
			fmt.Sprintf("on %v: modprobe rds_tcp", p.Remote)
	}
	if p.Local.IsValid() && p.Local.Compare(p.Remote) > 0 {
		return fmt.Sprintf("the kernel waits for %v, which has the smaller address, to connect again", p.Remote),
			fmt.Sprintf("rds-info doctor on %v; a message to it makes this host connect, too", p.Remote)
	}
	return "no cause shows on this host", fmt.Sprintf("look at the kernel's log, here and there: dmesg; rds-info doctor on %v", p.Remote)
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
