package rdsinfo

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// An RDMAPort is a port of an RDMA device, as /sys/class/infiniband shows it.
type RDMAPort struct {
	Device    string `json:"device"`
	Port      int    `json:"port"`
	State     string `json:"state"`      // ACTIVE, or why it carries nothing: DOWN, INIT, ARMED
	LinkLayer string `json:"link_layer"` // InfiniBand or Ethernet
	GIDs      []GID  `json:"gids,omitempty"`
}

// A GID is an address of an RDMA port. IPv4 addresses are IPv4-mapped in it.
type GID struct {
	Index  int        `json:"index"` // in the port's table
	GID    netip.Addr `json:"gid"`
	Type   string     `json:"type,omitempty"`   // such as RoCE v2
	Device string     `json:"netdev,omitempty"` // the network interface that it is of
}

// RDMAPorts lists the ports of the RDMA devices, with their GIDs.
func RDMAPorts() []RDMAPort { return readRDMAPorts("/sys/class/infiniband") }

// FindGID finds the port that has a GID, such as that of an IBConnection or, over RoCE, a local
// address. An active port goes before one that is not.
func FindGID(ports []RDMAPort, gid netip.Addr) (port RDMAPort, entry GID, ok bool) {
	gid = gid.Unmap().WithZone("")
	for _, p := range ports {
		if ok && p.State != "ACTIVE" {
			continue
		}
		if i := slices.IndexFunc(p.GIDs, func(g GID) bool { return g.GID.Unmap() == gid }); i >= 0 {
			if p.State == "ACTIVE" {
				return p, p.GIDs[i], true
			}
			port, entry, ok = p, p.GIDs[i], true
		}
	}
	return port, entry, ok
}

func readRDMAPorts(root string) []RDMAPort {
	dirs, _ := filepath.Glob(filepath.Join(root, "*/ports/*"))
	var ports []RDMAPort
	for _, dir := range dirs {
		n, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		p := RDMAPort{
			Device:    filepath.Base(filepath.Dir(filepath.Dir(dir))),
			Port:      n,
			State:     readLine(filepath.Join(dir, "state")),
			LinkLayer: readLine(filepath.Join(dir, "link_layer")),
		}
		if _, name, ok := strings.Cut(p.State, ": "); ok { // "4: ACTIVE"
			p.State = name
		}
		gids, _ := filepath.Glob(filepath.Join(dir, "gids/*"))
		for _, file := range gids {
			name := filepath.Base(file)
			index, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			gid, err := netip.ParseAddr(readLine(file))
			if err != nil || gid.IsUnspecified() {
				continue
			}
			p.GIDs = append(p.GIDs, GID{
				Index:  index,
				GID:    gid,
				Type:   readLine(filepath.Join(dir, "gid_attrs/types", name)),
				Device: readLine(filepath.Join(dir, "gid_attrs/ndevs", name)),
			})
		}
		slices.SortFunc(p.GIDs, func(a, b GID) int { return a.Index - b.Index })
		ports = append(ports, p)
	}
	return ports
}
