package doctor

import (
	"fmt"
	"slices"

	"github.com/rdskit/rdskit/rdsinfo"
)

func checkRDMA(f *Facts, r *report) {
	if len(f.Last.RDMAPorts) == 0 {
		r.skip("", "this host has no RDMA device")
		return
	}
	for _, p := range f.Last.RDMAPorts {
		subject := fmt.Sprintf("%s port %d", p.Device, p.Port)
		if p.State != "ACTIVE" {
			remedy := "look at the cable and the subnet manager: ibstat " + p.Device
			if p.LinkLayer == "Ethernet" {
				remedy = "look at its network interface: rdma link show"
			}
			r.warn(subject, remedy, "its state is %s, not ACTIVE: it carries nothing", p.State)
			continue
		}
		r.ok(subject, "it is active, on %s, with %d GIDs", p.LinkLayer, len(p.GIDs))
	}
	for _, a := range f.Last.Namespace.Addresses {
		if a.Transport != "infiniband" {
			continue
		}
		p, gid, ok := f.activeGID(a)
		if !ok {
			r.warn(a.Addr.String(), "rdma link show; ls /sys/class/infiniband/*/ports/*/gids",
				"infiniband serves it, but no active port has a GID for it or its interface %s", a.Device)
			continue
		}
		r.ok(a.Addr.String(), "GID %v of %s port %d", gid.GID, p.Device, p.Port)
	}
}

// activeGID finds a GID of an active port for an address.
func (f *Facts) activeGID(a rdsinfo.Address) (rdsinfo.RDMAPort, rdsinfo.GID, bool) {
	active := slices.DeleteFunc(slices.Clone(f.Last.RDMAPorts), func(p rdsinfo.RDMAPort) bool { return p.State != "ACTIVE" })
	return rdsinfo.FindGID(active, a.Addr)
}
