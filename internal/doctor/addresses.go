package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdskit/rdskit/internal/diagnose"
	"github.com/rdskit/rdskit/rdsinfo"
)

func checkLinks(f *Facts, r *report) {
	used := f.usedDevices()
	var devices []string
	for _, a := range f.Last.Namespace.Addresses {
		if l, ok := f.link(a.Device); ok && !l.Loopback && !slices.Contains(devices, a.Device) {
			devices = append(devices, a.Device)
		}
	}
	for _, name := range devices {
		l, _ := f.link(name)
		v := Info
		switch {
		case used[name]:
			v = Fail
		case len(devices) == 1:
			v = Warn
		}
		switch {
		case !l.Up:
			r.add(v, name, f.toGetUp(name), "it is down, so that nothing is reached from its addresses (%s)", f.addressesOf(name))
		case !l.Running:
			r.add(v, name, f.toGetCarrier(name), "it is up but has no carrier")
		default:
			r.ok(name, "it is up, with an MTU of %d bytes", l.MTU)
		}
	}
}

// usedDevices are those that RDS, or the host asked for, has to do with.
func (f *Facts) usedDevices() map[string]bool {
	used := make(map[string]bool)
	for _, p := range f.Last.Peers {
		used[p.Device] = true
	}
	if f.Host != nil {
		used[f.Host.Way.Device] = true
		if a, ok := onLink(f.Last.Namespace.Addresses, f.Host.Way.Remote); ok {
			used[a.Device] = true
		}
	}
	var locals []netip.Addr
	sockets, _ := f.Last.Snapshot.Sockets()
	for _, s := range sockets {
		locals = append(locals, s.Bound.Addr())
	}
	for _, p := range f.Last.Peers {
		locals = append(locals, p.Local)
	}
	for _, a := range f.Last.Namespace.Addresses {
		if same(a.Addr, f.Local) || slices.ContainsFunc(locals, func(l netip.Addr) bool { return same(l, a.Addr) }) {
			used[a.Device] = true
		}
	}
	return used
}

func (f *Facts) addressesOf(device string) string {
	var all []string
	for _, a := range f.Last.Namespace.Addresses {
		if a.Device == device {
			all = append(all, a.Addr.String())
		}
	}
	return strings.Join(all, ", ")
}

func checkAddresses(f *Facts, r *report) {
	if f.Local.IsValid() && !f.isLocal(f.Local) {
		f.notLocal(r, f.Local, fmt.Sprintf("%v is not an address of this host", f.Local))
	}
	if f.Last.SocketError != "" {
		r.skip("", "which transport serves an address shows with a socket only")
	} else {
		for _, a := range f.Last.Namespace.Addresses {
			if !f.Local.IsValid() || same(a.Addr, f.Local) {
				f.checkAddress(r, a)
			}
		}
	}
	f.checkBoundAddresses(r)
}

func (f *Facts) checkAddress(r *report, a rdsinfo.Address) {
	subject := a.Addr.String()
	switch {
	case !a.Usable && a.Addr.IsLinkLocalUnicast():
		r.info(subject, "no socket can be bound to it yet: it is tentative, as after its interface came up, or another host has it too")
	case !a.Usable:
		r.warn(subject, remedy{f.here("ip -6 address show dev", a.Device), "tentative goes by itself; dadfailed means that another host has it"},
			"no socket can be bound to it: it is tentative, or another host has it too")
	case a.Transport == "loopback":
		r.ok(subject, "transport loopback, as for every loopback address: it reaches this host only")
	case a.Transport == "tcp":
		why := "rds_rdma is not loaded"
		switch {
		case f.Loaded("rds_rdma") && !f.Last.Namespace.Initial:
			why = "infiniband works in the initial network namespace only"
		case f.Loaded("rds_rdma"):
			why = "it is not the address of an RDMA device, which would go first"
		}
		r.ok(subject, "transport tcp, since rds_tcp serves every local address, and %s", why)
	case a.Transport != "":
		r.ok(subject, "transport %s, which goes before tcp", a.Transport)
	case a.BindError != "":
		m, missing := diagnose.Transport(f)
		switch {
		case missing && m.Module == "rds_tcp":
			r.fail(subject, toLoad(m), "no transport serves it: %s is not loaded%s", m.Module, m.Because())
		case missing && len(f.Last.RDMAPorts) > 0:
			r.fail(subject, toLoad(m), "rds_tcp does not serve it, and %s is not loaded%s", m.Module, m.Because())
		default:
			r.fail(subject, remedy{f.here("ip route get", subject), "should say local; an address of a VRF (ip vrf show) cannot be served"},
				"no transport serves it (%s): the kernel does not route it as its own here, as when %s belongs to a VRF", a.BindError, a.Device)
		}
	}
}

// notLocal says where an address is that is not here.
func (f *Facts) notLocal(r *report, a netip.Addr, what string) {
	if all := f.elsewhere(a); len(all) > 0 {
		names := make([]string, len(all))
		for i, ns := range all {
			names[i] = namespaceName(ns)
		}
		r.fail(a.String(), toGoTo(all[0]), "%s, but of the network namespace %s", what, strings.Join(names, ", "))
		return
	}
	r.fail(a.String(), f.toHave(a), "%s", what)
}

// checkBoundAddresses looks for sockets whose address went away under them. Kernels before
// 6.1.190 list those of other namespaces as well.
func (f *Facts) checkBoundAddresses(r *report) {
	sockets, err := f.Last.Snapshot.Sockets()
	if err != nil {
		return
	}
	gone := make(map[netip.Addr]rdsinfo.Socket)
	var order []netip.Addr
	for _, s := range sockets {
		a := s.Bound.Addr()
		if _, seen := gone[a]; seen || a.IsUnspecified() || f.isLocal(a) || len(f.elsewhere(a)) > 0 {
			continue
		}
		gone[a] = s
		order = append(order, a)
	}
	for _, a := range order {
		s := gone[a]
		if f.Last.UnseenProcesses > 0 {
			r.info(a.String(), "%s has a socket bound to it, and it is not an address of this namespace; it may be one of a namespace that only root can see", f.owner(s.Inode))
			continue
		}
		do := f.toHave(a)
		do.advice += "; or restart the program"
		r.warn(a.String(), do,
			"%s has a socket bound to it, but it is not an address of this host any more", f.owner(s.Inode))
	}
}

func checkListener(f *Facts, r *report) {
	subject := fmt.Sprintf("tcp port %d", rdsinfo.TCPPort)
	i := slices.IndexFunc(f.Last.TCP.Endpoints, func(e rdsinfo.TCPEndpoint) bool {
		return e.State == "LISTEN" && e.Local.Port() == rdsinfo.TCPPort
	})
	switch {
	case i >= 0 && f.Loaded("rds_tcp"):
		r.ok(subject, "rds_tcp listens at %v; firewalls have to let it through in both directions", f.Last.TCP.Endpoints[i].Local.Addr())
	case i >= 0:
		r.fail(subject, remedy{f.here(fmt.Sprintf("ss -ltnp 'sport = :%d'", rdsinfo.TCPPort)), "names the program: stop it, then modprobe rds_tcp"},
			"a program has it, so that rds_tcp cannot be loaded")
	case f.Loaded("rds_tcp"):
		r.fail(subject, remedy{"modprobe -r rds_tcp && modprobe rds_tcp", "once no program uses RDS"}, "rds_tcp is loaded, but nobody listens: peers cannot connect to this host")
	default:
		r.skip(subject, "rds_tcp is not loaded")
	}
}
