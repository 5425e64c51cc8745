package doctor

import (
	"slices"
	"strings"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/diagnose"
	"github.com/rdskit/rdskit/rdsinfo"
)

func checkSocket(f *Facts, r *report) {
	switch {
	case f.Last.SocketError == "":
		r.ok("", "an RDS socket can be made")
	case !f.Loaded("rds"):
		m := diagnose.Find(f, "rds")
		r.fail("", toLoad(m), "no RDS socket can be made, since the module rds is not loaded%s", m.Because())
	default:
		r.fail("", remedy{command: kernelLog}, "no RDS socket can be made, though rds is loaded: %s", f.Last.SocketError)
	}
}

func checkModules(f *Facts, r *report) {
	for _, name := range []string{"rds", "rds_tcp", "rds_rdma"} {
		if f.Loaded(name) {
			loadedModule(f, r, name)
		} else {
			missingModule(f, r, diagnose.Find(f, name))
		}
	}
}

func loadedModule(f *Facts, r *report, name string) {
	if m := diagnose.Find(f, name); m.Blocked() {
		command, advice := m.Lift()
		r.warn(name, remedy{command, advice},
			"it is loaded, but will not be after a reboot: %v keeps it from being loaded", m.Rule)
		return
	}
	r.ok(name, "it is loaded")
}

func missingModule(f *Facts, r *report, m diagnose.Missing) {
	rdma := len(f.Last.RDMAPorts) > 0
	switch {
	case m.Module == "rds":
		r.fail(m.Module, toLoad(m), "it is not loaded%s: nothing of RDS works without", m.Because())
	case m.Module == "rds_rdma" && rdma:
		r.warn(m.Module, toLoad(m), "it is not loaded%s, so that RDS does not use the RDMA devices of this host", m.Because())
	case m.Module == "rds_rdma":
		r.info(m.Module, "it is not loaded%s; without an RDMA device nothing needs it", m.Because())
	case f.Loaded("rds_rdma"):
		r.info(m.Module, "it is not loaded%s; hosts are reached over InfiniBand or RoCE only", m.Because())
	default:
		r.fail(m.Module, toLoad(m), "it is not loaded%s, and neither is rds_rdma: without a transport no other host can be reached", m.Because())
	}
}

func checkKernel(f *Facts, r *report) {
	kind := "mainline"
	if f.Last.Snapshot.Dialect == cmsg.UEK {
		kind = "Oracle UEK"
	}
	var versions []string
	for _, m := range f.Last.Modules {
		if m.Version != "" {
			versions = append(versions, ", "+m.Name+" "+m.Version)
		}
	}
	if f.Last.SocketError != "" {
		kind = "unknown"
	}
	r.info("", "Linux %s, numbering of RDS: %s%s (distributions mend old versions, so that the number says little)",
		f.Last.Release, kind, strings.Join(versions, ""))
}

func checkNamespace(f *Facts, r *report) {
	n := &f.Last.Namespace
	name := namespaceName(n)
	switch {
	case n.Initial:
		r.ok(name, "it is the initial network namespace")
	case f.Loaded("rds"):
		r.info(name, "it is not the initial network namespace: it has no transport infiniband and no net.rds parameters but those of tcp")
	}
	if slices.ContainsFunc(n.Addresses, func(a rdsinfo.Address) bool { return !a.Addr.IsLoopback() && !a.Addr.IsLinkLocalUnicast() }) {
		return
	}
	for i := range f.Last.Others {
		o := &f.Last.Others[i]
		for _, a := range o.Addresses {
			if !a.Addr.IsLoopback() && !a.Addr.IsLinkLocalUnicast() {
				v, why := Info, "it has no address of its own; others have"
				if f.Host != nil || f.Local.IsValid() {
					v = Warn
				}
				r.add(v, name, toGoTo(o), "%s: %s has %v, for one", why, namespaceName(o), a.Addr)
				return
			}
		}
	}
	r.warn(name, remedy{f.here("ip -brief address"), "to add one: ip address add ADDRESS/BITS dev DEVICE"}, "it has no address but loopback ones: no other host can be reached")
}
