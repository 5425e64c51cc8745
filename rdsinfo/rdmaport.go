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
	GID    netip.Addr `json:"gid"`
	Type   string     `json:"type,omitempty"`   // such as RoCE v2
	Device string     `json:"netdev,omitempty"` // the network interface that it is of
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
		slices.SortFunc(gids, func(a, b string) int { return len(a) - len(b) })
		for _, file := range gids {
			gid, err := netip.ParseAddr(readLine(file))
			if err != nil || gid.IsUnspecified() {
				continue
			}
			index := filepath.Base(file)
			p.GIDs = append(p.GIDs, GID{
				GID:    gid,
				Type:   readLine(filepath.Join(dir, "gid_attrs/types", index)),
				Device: readLine(filepath.Join(dir, "gid_attrs/ndevs", index)),
			})
		}
		ports = append(ports, p)
	}
	return ports
}
