package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rdskit/rdskit/internal/module"
	"github.com/rdskit/rdskit/rdsinfo"
)

// Facts are what the checks judge.
type Facts struct {
	// First and Last are two looks at the same host, some time apart. With one look
	// only they are the same, and nothing can be said about what moves.
	First, Last *rdsinfo.Bundle
	// Between are looks at connections and TCP sockets in the meantime.
	Between []*rdsinfo.Snapshot
	// Processes are those that have sockets open, by the sockets' inodes; nil if
	// they were not looked for.
	Processes map[uint64][]rdsinfo.Process
	// Local is the address to look at among those of this host, invalid for all.
	Local netip.Addr
	// NetNS is what the user calls the network namespace, empty for that of the program: a name, the
	// number of a process, or a path.
	NetNS string
	// Host is the host that was asked for, if any.
	Host *Host
}

// A Host is one that this host is to reach.
type Host struct {
	Name string
	// Err is why the name has no address to try.
	Err error
	// Way is the way to the address that was tried; Others are the name's further ones.
	Way    rdsinfo.Peer
	Others []netip.Addr
	// Pings are what became of the pings. There are none without a connection,
	// unless Probed permits to make one.
	Pings  []Ping
	Probed bool
	// PingErr is why no ping could be tried.
	PingErr error
}

// A Ping sums up the pings along one connection.
type Ping struct {
	Local, Remote  netip.Addr
	TOS            uint8
	Transport      string
	Sent, Received uint64
	RTT            time.Duration // the shortest
	Err            error         // of sending, the last
}

// moved reports whether there are two looks to compare.
func (f *Facts) moved() bool { return f.First != f.Last }

func (f *Facts) elapsed() time.Duration { return f.Last.Snapshot.Time.Sub(f.First.Snapshot.Time) }

// Loaded reports whether a module is loaded.
func (f *Facts) Loaded(name string) bool { return f.Last.Loaded(name) }

// Blocked returns the line that keeps a module away.
func (f *Facts) Blocked(name string, _ ...string) (module.Rule, bool) {
	for _, r := range f.Last.ModuleRules {
		if r.Module == name {
			return module.Rule{File: r.File, Line: r.Line, Text: r.Text}, true
		}
	}
	return module.Rule{}, false
}

// Absent reports whether the kernel is known to come without a module.
func (f *Facts) Absent(name string) bool { return slices.Contains(f.Last.AbsentModules, name) }

// isLocal reports whether the namespace has the address.
func (f *Facts) isLocal(a netip.Addr) bool { return f.Last.Namespace.HasAddress(a) }

// same compares addresses but for the zone, which the tables of the kernel do not have.
func same(a, b netip.Addr) bool { return a.WithZone("") == b.WithZone("") }

// elsewhere returns the other namespaces that have the address.
func (f *Facts) elsewhere(a netip.Addr) []*rdsinfo.Namespace {
	var all []*rdsinfo.Namespace
	for i := range f.Last.Others {
		if f.Last.Others[i].HasAddress(a) {
			all = append(all, &f.Last.Others[i])
		}
	}
	return all
}

// near returns another namespace that has an address in the same network as a, and that address.
func (f *Facts) near(a netip.Addr) (ns *rdsinfo.Namespace, with netip.Addr) {
	for i := range f.Last.Others {
		if on, ok := onLink(f.Last.Others[i].Addresses, a); ok {
			return &f.Last.Others[i], on.Addr
		}
	}
	return nil, netip.Addr{}
}

// onLink returns the address whose network has a.
func onLink(addresses []rdsinfo.Address, a netip.Addr) (rdsinfo.Address, bool) {
	i := slices.IndexFunc(addresses, func(on rdsinfo.Address) bool {
		return !on.Addr.IsLoopback() && !on.Addr.IsLinkLocalUnicast() &&
			netip.PrefixFrom(on.Addr.WithZone(""), on.Bits).Contains(a)
	})
	if i < 0 {
		return rdsinfo.Address{}, false
	}
	return addresses[i], true
}

func namespaceName(n *rdsinfo.Namespace) string {
	if n.Name != "" {
		return n.Name
	}
	return fmt.Sprintf("net:[%d]", n.Inode)
}

// link returns an interface by its name.
func (f *Facts) link(name string) (rdsinfo.Link, bool) {
	i := slices.IndexFunc(f.Last.Links, func(l rdsinfo.Link) bool { return l.Name == name })
	if i < 0 {
		return rdsinfo.Link{}, false
	}
	return f.Last.Links[i], true
}

// owner names the programs that have a socket open.
func (f *Facts) owner(inode uint64) string {
	ps := f.Processes[inode]
	if len(ps) == 0 {
		return "some program"
	}
	text := fmt.Sprintf("%s (process %d)", ps[0].Command, ps[0].PID)
	if len(ps) > 1 {
		text += fmt.Sprintf(" and %d more", len(ps)-1)
	}
	return text
}
