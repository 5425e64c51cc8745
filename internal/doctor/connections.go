package doctor

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/rdsinfo"
)

func checkConnections(f *Facts, r *report) {
	delta := rdsinfo.Compare(f.First.Snapshot, f.Last.Snapshot)
	looks := f.looks()
	up, foreign := 0, 0
	for _, d := range delta.Connections {
		switch {
		case !f.isLocal(d.Local) && f.isForeign(d.Local):
			foreign++
		case d.After.Known:
			up += f.checkConnection(r, d, losses(looks, d))
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
	switch {
	case foreign == 1:
		r.info("", "1 more is of another network namespace, which this kernel shows as well")
	case foreign > 1:
		r.info("", "%d more are of other network namespaces, which this kernel shows as well", foreign)
	}
}

// isForeign reports whether an address that is not here is, or may be, of another namespace.
func (f *Facts) isForeign(a netip.Addr) bool {
	return len(f.elsewhere(a)) > 0 || f.Last.UnseenProcesses > 0
}

// checkConnection judges one, which was lost so many times, and returns 1 if nothing is wrong with it.
func (f *Facts) checkConnection(r *report, d rdsinfo.ConnectionDelta, losses int) int {
	subject := connectionName(d.Local, d.Remote, d.TOS, d.Transport)
	p := f.peer(d.Local, d.Remote)
	waiting := ""
	if d.Waiting.Messages > 0 {
		waiting = fmt.Sprintf("; waiting for it: %s of %d bytes in all", count(d.Waiting.Messages, "message"), d.Waiting.Bytes)
	}
	state := d.After.Value
	if losses > 1 || losses == 1 && state == rdsinfo.StateUp {
		cause, do := f.whyFlapping(p)
		r.warn(subject, do, "it is flapping: lost %s within %s, and %v now%s%s", times(uint64(losses)), seconds(f), state, cause, waiting)
		return 0
	}
	switch {
	case state == rdsinfo.StateUp && !f.isLocal(d.Local):
		r.warn(subject, f.toHave(d.Local), "it is up, but %v is not an address of this host any more", d.Local)
		return 0
	case state == rdsinfo.StateUp && d.Stuck && f.moved():
		cause, do := f.why(p, d.Transport)
		r.fail(subject, do, "it is up and stuck: nothing was acknowledged in %s: %s%s", seconds(f), cause, waiting)
		return 0
	case state == rdsinfo.StateUp:
		return 1
	}
	cause, do := f.why(p, d.Transport)
	what := fmt.Sprintf("it is %v", state)
	if f.moved() && d.Before.Known {
		what += fmt.Sprintf(", and was %v %s ago", d.Before.Value, seconds(f))
	}
	v := Fail
	if state == rdsinfo.StateDown && d.Waiting.Messages == 0 {
		v = Warn
	}
	r.add(v, subject, do, "%s: %s%s", what, cause, waiting)
	return 0
}

func seconds(f *Facts) string { return fmt.Sprintf("%.1f s", f.elapsed().Seconds()) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A look is what one snapshot shows of the connections.
type look struct {
	up  map[connectionKey]bool
	tcp map[ends][]tcpPair
}

type connectionKey struct {
	ends
	tos       rdsinfo.Optional[uint8]
	transport string
}

type ends struct{ local, remote netip.Addr }

// A tcpPair is the two ends of a TCP socket.
type tcpPair struct{ local, remote netip.AddrPort }

// looks are those of all snapshots, in order.
func (f *Facts) looks() []look {
	snapshots := []*rdsinfo.Snapshot{f.First.Snapshot}
	if f.moved() {
		snapshots = append(append(snapshots, f.Between...), f.Last.Snapshot)
	}
	looks := make([]look, len(snapshots))
	for i, s := range snapshots {
		looks[i] = look{make(map[connectionKey]bool), make(map[ends][]tcpPair)}
		connections, _ := s.Connections()
		for _, c := range connections {
			if c.State() == rdsinfo.StateUp {
				looks[i].up[connectionKey{ends{c.Local, c.Remote}, c.TOS, c.Transport}] = true
			}
		}
		sockets, _ := s.TCPSockets()
		for _, t := range sockets {
			e := ends{t.Local.Addr(), t.Remote.Addr()}
			looks[i].tcp[e] = append(looks[i].tcp[e], tcpPair{t.Local, t.Remote})
		}
	}
	return looks
}

// losses counts how often the connection was seen to be lost: it was up and is not, or none of its TCP
// sockets is the same.
func losses(looks []look, d rdsinfo.ConnectionDelta) int {
	key := connectionKey{ends{d.Local, d.Remote}, d.TOS, d.Transport}
	n := 0
	wasUp := false
	var before []tcpPair
	for _, l := range looks {
		up, now := l.up[key], l.tcp[key.ends]
		if wasUp && (!up || replaced(before, now)) {
			n++
		}
		wasUp = up
		if len(now) > 0 {
			before = now
		}
	}
	return n
}

// replaced reports whether there were and are sockets, and none of them lasted.
func replaced(before, after []tcpPair) bool {
	return len(before) > 0 && len(after) > 0 &&
		!slices.ContainsFunc(after, func(p tcpPair) bool { return slices.Contains(before, p) })
}

func (f *Facts) whyFlapping(p rdsinfo.Peer) (cause string, do remedy) {
	if cause, do := f.whyNoWay(p); cause != "" {
		return "; " + cause, do
	}
	do = toLookAtBoth(p)
	do.advice += "; what resets it may be the link, writes to net.rds.tcp.*, or a program that kills sockets (ss -K)"
	if p.Device != "" {
		do.command = f.here("ip -s link show dev", p.Device) + "; " + do.command
	}
	return "", do
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
		r.add(v, s.Bound.String(), f.toRead(s),
			"the receiver is congested: %s has %s of %d bytes waiting, its buffer is %d, %s; senders to it have to wait",
			f.owner(s.Inode), count(q.messages, "message"), q.bytes, s.ReceiveBuffer, reads)
	}
	if len(r.findings) == 0 && checked > 0 {
		r.ok("", "none of %d sockets is congested", checked)
	}
}

// toRead is the remedy for a socket that nobody reads from.
func (f *Facts) toRead(s rdsinfo.Socket) remedy {
	do := remedy{advice: fmt.Sprintf("look at the program: is it stopped, blocked or overloaded; should it ask for a larger buffer (SO_RCVBUF, up to net.core.rmem_max=%s)", cmp.Or(f.Last.Sysctls["net.core.rmem_max"], "?"))}
	var pids []string
	for _, p := range f.Processes[s.Inode] {
		pids = append(pids, strconv.Itoa(p.PID))
	}
	if len(pids) > 0 {
		do.command = "ps -o pid,stat,wchan:24,args -p " + strings.Join(pids, ",")
	} else {
		do.command = f.here(fmt.Sprintf("rds-info -ak --procs --filter local=%v,port=%d", s.Bound.Addr(), s.Bound.Port()))
	}
	return do
}
