package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdskit/rdskit/rdsinfo"
)

func checkConnections(f *Facts, r *report) {
	delta := rdsinfo.Compare(f.First.Snapshot, f.Last.Snapshot)
	up, foreign := 0, 0
	for _, d := range delta.Connections {
		switch {
		case !f.isLocal(d.Local) && f.isForeign(d.Local):
			foreign++
		case d.After.Known:
			up += f.checkConnection(r, d)
		}
	}
	switch {
	case f.Last.SocketError != "":
		r.skip("", "without RDS there are none")
	case up > 0:
		r.ok("", "%d up", up)
	case len(r.findings) == 0:
		r.info("", "there is none: the kernel makes one when a program first sends to a host")
	}
	if foreign > 0 {
		r.info("", "%d more are of other network namespaces, which this kernel shows as well", foreign)
	}
}

// isForeign reports whether an address that is not here is, or may be, of another namespace.
func (f *Facts) isForeign(a netip.Addr) bool {
	return len(f.elsewhere(a)) > 0 || f.Last.UnseenProcesses > 0
}

// checkConnection judges one and returns 1 if nothing is wrong with it.
func (f *Facts) checkConnection(r *report, d rdsinfo.ConnectionDelta) int {
	subject := connectionName(d.Local, d.Remote, d.TOS, d.Transport)
	p := f.peer(d.Local, d.Remote)
	waiting := ""
	if d.Waiting.Messages > 0 {
		waiting = fmt.Sprintf("; %d messages of %d bytes wait for it", d.Waiting.Messages, d.Waiting.Bytes)
	}
	state := d.After.Value
	if times := f.renewed(d); times != "" {
		cause, remedy := f.whyFlapping(p)
		r.warn(subject, remedy, "it is flapping: %s%s%s", times, cause, waiting)
		return 0
	}
	switch {
	case state == rdsinfo.StateUp && d.Stuck && f.moved():
		cause, remedy := f.why(p, d.Transport)
		r.fail(subject, remedy, "it is up and stuck: nothing was acknowledged in %v%s: %s", seconds(f), waiting, cause)
	case state == rdsinfo.StateUp && !f.isLocal(d.Local):
		r.warn(subject, fmt.Sprintf("ip address add %v/BITS dev DEVICE", d.Local), "it is up, but %v is not an address of this host any more", d.Local)
	case state == rdsinfo.StateUp:
		return 1
	case state == rdsinfo.StateConnecting:
		cause, remedy := f.why(p, d.Transport)
		since := ""
		if d.Before.Known && d.Before.Value != rdsinfo.StateUp && f.moved() {
			since = fmt.Sprintf(" for at least %v", seconds(f))
		}
		r.fail(subject, remedy, "the kernel is trying to connect%s, in vain: %s%s", since, cause, waiting)
	default:
		cause, remedy := f.why(p, d.Transport)
		v := Warn
		if d.Waiting.Messages > 0 || state == rdsinfo.StateError {
			v = Fail
		}
		r.add(v, subject, remedy, "it is %v: %s%s", state, cause, waiting)
	}
	return 0
}

func seconds(f *Facts) string { return fmt.Sprintf("%.1f s", f.elapsed().Seconds()) }

// renewed says how a connection that was or is up was lost between the looks, and is empty if it was not.
func (f *Facts) renewed(d rdsinfo.ConnectionDelta) string {
	if !f.moved() || !d.Before.Known {
		return ""
	}
	was, is := d.Before.Value == rdsinfo.StateUp, d.After.Value == rdsinfo.StateUp
	resets := f.counterMoved("conn_reset")
	switch {
	case was && !is:
		return fmt.Sprintf("it was up %s ago and is %v", seconds(f), d.After.Value)
	case was && is && f.portsChanged(d):
		return fmt.Sprintf("all its TCP sockets were replaced within %s, and connections reset %d times", seconds(f), resets)
	case !was && is && resets > 0 && d.Before.Value != rdsinfo.StateConnecting:
		return fmt.Sprintf("it was %v %s ago and is up", d.Before.Value, seconds(f))
	}
	return ""
}

// portsChanged reports whether no TCP socket of the connection lasted.
func (f *Facts) portsChanged(d rdsinfo.ConnectionDelta) bool {
	before, after := tcpSockets(f.First, d), tcpSockets(f.Last, d)
	if len(before) == 0 || len(after) == 0 {
		return false
	}
	return !slices.ContainsFunc(after, func(s [2]netip.AddrPort) bool { return slices.Contains(before, s) })
}

func tcpSockets(b *rdsinfo.Bundle, d rdsinfo.ConnectionDelta) [][2]netip.AddrPort {
	all, _ := b.Snapshot.TCPSockets()
	var of [][2]netip.AddrPort
	for _, s := range all {
		if s.Local.Addr() == d.Local && s.Remote.Addr() == d.Remote {
			of = append(of, [2]netip.AddrPort{s.Local, s.Remote})
		}
	}
	return of
}

func (f *Facts) whyFlapping(p rdsinfo.Peer) (cause, remedy string) {
	if cause, remedy := f.whyNoWay(p); cause != "" {
		return "; " + cause, remedy
	}
	return "", fmt.Sprintf("look at what resets it: dmesg here and on %v, the link (ip -s link show dev %s), writes to net.rds.tcp.*, programs that kill sockets (ss -K)", p.Remote, p.Device)
}

// counterMoved returns by how much a counter grew.
func (f *Facts) counterMoved(name string) uint64 {
	for _, c := range rdsinfo.Compare(f.First.Snapshot, f.Last.Snapshot).Counters {
		if c.Name == name {
			return c.Moved.Value
		}
	}
	return 0
}

func connectionName(local, remote netip.Addr, tos rdsinfo.Optional[uint8], transport string) string {
	name := fmt.Sprintf("%v to %v", local, remote)
	if tos.Known && tos.Value != 0 {
		name += fmt.Sprintf(", TOS %d", tos.Value)
	}
	return strings.TrimSuffix(name+", "+transport, ", ")
}

// A backlog is what a socket has not read.
type backlog struct {
	messages int
	bytes    uint64
	oldest   rdsinfo.Message
}

func unread(b *rdsinfo.Bundle) map[netip.AddrPort]backlog {
	all := make(map[netip.AddrPort]backlog)
	queue, _ := b.Snapshot.Queue(rdsinfo.ReceiveQueue)
	for _, m := range queue {
		q := all[m.Local]
		if q.messages == 0 {
			q.oldest = m
		}
		q.messages++
		q.bytes += uint64(m.Bytes)
		all[m.Local] = q
	}
	return all
}

// checkReceivers looks for sockets that hold so much unread that peers may send
// them no more (net/rds/recv.c:rds_recv_rcvbuf_delta).
func checkReceivers(f *Facts, r *report) {
	sockets, err := f.Last.Snapshot.Sockets()
	if err != nil {
		return
	}
	before, now := unread(f.First), unread(f.Last)
	checked := 0
	for _, s := range sockets {
		if !s.Bound.Addr().IsValid() || !f.isLocal(s.Bound.Addr()) {
			continue
		}
		checked++
		q := now[s.Bound]
		if q.bytes <= uint64(s.ReceiveBuffer) {
			continue
		}
		reads := fmt.Sprintf("and reads nothing (for at least %s)", seconds(f))
		v := Fail
		switch {
		case !f.moved():
			v, reads = Warn, "at the time"
		case before[s.Bound].oldest != q.oldest:
			v, reads = Warn, "and reads too slowly"
		}
		r.add(v, s.Bound.String(), fmt.Sprintf("look at the program: is it stopped, blocked or overloaded; should it ask for a larger buffer (SO_RCVBUF, up to net.core.rmem_max=%s)", or(f.Last.Sysctls["net.core.rmem_max"], "?")),
			"the receiver is congested: %s has %d messages of %d bytes waiting, its buffer is %d, %s; senders to it have to wait",
			f.owner(s.Inode), q.messages, q.bytes, s.ReceiveBuffer, reads)
	}
	if len(r.findings) == 0 && checked > 0 {
		r.ok("", "none of %d sockets is congested", checked)
	}
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
