package rdsinfo

import (
	"bufio"
	"context"
	"net/netip"
	"os"
	"strings"

	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/netns"
	"github.com/rdskit/rdskit/internal/route"
	"github.com/rdskit/rdskit/internal/sys"
)

// A Namespace is a network namespace and the addresses that it has.
type Namespace struct {
	Inode uint64 `json:"inode,omitempty"` // what tells it from others
	Name  string `json:"name,omitempty"`  // of ip-netns(8)
	PID   int    `json:"pid,omitempty"`   // of a process that was in it, if it has no name
	// Initial is whether it is known to be the one that the kernel started with, which alone has the
	// parameters of rds and the transport infiniband. That shows while rds is loaded.
	Initial   bool      `json:"initial,omitempty"`
	Addresses []Address `json:"addresses,omitempty"`
}

// An Address is one of a network namespace.
type Address struct {
	Addr   netip.Addr `json:"address"` // with a zone if it is link-local
	Bits   int        `json:"bits"`    // length of its network's prefix
	Device string     `json:"device"`
	// Usable is whether programs can bind to it: not while IPv6 looks for duplicates, or if
	// it found one.
	Usable bool `json:"usable"`
	// Transport is what the kernel chooses for a socket that is bound to the address.
	// It, and BindError, which is why none serves it, are not known of other namespaces.
	Transport string `json:"transport,omitempty"`
	BindError string `json:"bind_error,omitempty"`
}

// A Link is a network interface.
type Link struct {
	Name string `json:"name"`
	MTU  int    `json:"mtu"` // in bytes
	// Up is whether it is switched on, Running whether it has a carrier as well.
	Up       bool `json:"up"`
	Running  bool `json:"running"`
	Loopback bool `json:"loopback,omitempty"`
}

// A Peer is the far end of connections, and the way to it.
type Peer struct {
	Local  netip.Addr `json:"local"`
	Remote netip.Addr `json:"remote"`
	// RouteError is why there is no way. Without one, Device, Gateway (if there is
	// one) and MTU are those of the route.
	RouteError string     `json:"route_error,omitempty"`
	Device     string     `json:"device,omitempty"`
	Gateway    netip.Addr `json:"gateway,omitzero"`
	MTU        int        `json:"mtu,omitempty"`
	// Neighbor is the state of the peer or gateway on its link, as ip-neighbour(8) calls it, or
	// empty if the kernel did not look for it lately.
	Neighbor string `json:"neighbor,omitempty"`
}

// maxBinds bounds how many addresses are tried out.
const maxBinds = 256

// readNamespaces lists the network namespaces and their addresses.
func (b *Bundle) readNamespaces(ctx context.Context, cfg *Config) {
	all, unseen, _ := netns.All()
	b.UnseenProcesses = unseen
	own, _ := netns.Inode(cfg.NetNS)
	b.Namespace = Namespace{Inode: own, Addresses: readAddresses(ctx, cfg.NetNS)}
	for _, ns := range all {
		if ns.Inode == own {
			b.Namespace.Name, b.Namespace.PID = ns.Name, ns.PID
		} else {
			b.Others = append(b.Others, Namespace{Inode: ns.Inode, Name: ns.Name, PID: ns.PID, Addresses: readAddresses(ctx, int(ns.File.Fd()))})
		}
		ns.File.Close()
	}
}

func readAddresses(ctx context.Context, ns int) []Address {
	all, _ := route.Addresses(ctx, &route.Config{NetNS: ns})
	var addresses []Address
	for _, a := range all {
		addresses = append(addresses, Address{Addr: a.Addr(), Bits: a.Prefix.Bits(), Device: a.Device, Usable: a.Usable})
	}
	return addresses
}

// readNetwork finds the links, the transports of the addresses and the ways to the
// peers.
func (b *Bundle) readNetwork(ctx context.Context, cfg *Config) {
	links, _ := route.Links(ctx, &route.Config{NetNS: cfg.NetNS})
	indexes := make(map[string]int, len(links))
	for _, l := range links {
		b.Links = append(b.Links, Link{Name: l.Name, MTU: l.MTU, Up: l.Up, Running: l.Running, Loopback: l.Loopback})
		indexes[l.Name] = l.Index
	}
	if b.SocketError == "" {
		for i := range b.Namespace.Addresses[:min(len(b.Namespace.Addresses), maxBinds)] {
			b.Namespace.Addresses[i].tryBind(cfg.NetNS, indexes)
		}
	}
	b.readPeers(ctx, cfg)
}

// tryBind binds a socket to the address, on any port, to see what the kernel chooses.
func (a *Address) tryBind(ns int, indexes map[string]int) {
	transport, err := func() (abi.Transport, error) {
		s, err := sys.NewSocket(ns)
		if err != nil {
			return 0, err
		}
		defer s.Close()
		if err := s.Bind(netip.AddrPortFrom(a.Addr.WithZone(""), 0), uint32(indexes[a.Addr.Zone()])); err != nil {
			return 0, err
		}
		v, err := s.GetsockoptInt(abi.SOL_RDS, abi.SO_RDS_TRANSPORT)
		return abi.Transport(v), err
	}()
	if err != nil {
		a.BindError = err.Error()
		return
	}
	a.Transport = transport.String()
}

// HasAddress reports whether the namespace has the address. All of 127.0.0.0/8 is
// everybody's.
func (n *Namespace) HasAddress(addr netip.Addr) bool {
	if addr.Is4() && addr.IsLoopback() {
		return true
	}
	for _, a := range n.Addresses {
		if a.Addr == addr || a.Addr.WithZone("") == addr {
			return true
		}
	}
	return false
}

// zone is that of a link-local address of the namespace, empty for others.
func (n *Namespace) zone(addr netip.Addr) string {
	for _, a := range n.Addresses {
		if a.Addr.WithZone("") == addr {
			return a.Addr.Zone()
		}
	}
	return ""
}

// readPeers asks for the ways to the peers.
func (b *Bundle) readPeers(ctx context.Context, cfg *Config) {
	connections, _ := b.Snapshot.Connections()
	b.Peers = peersOf(ctx, cfg, &b.Namespace, connections)
}

// Peers asks for the ways to the peers of connections, such as those of [Snapshot.Connections], each once. It leaves out
// connections of the transport loopback, and those whose local address the network namespace does
// not have. It sends nothing.
func Peers(ctx context.Context, cfg *Config, connections []Connection) []Peer {
	if cfg == nil {
		cfg = &Config{}
	}
	return peersOf(ctx, cfg, &Namespace{Addresses: readAddresses(ctx, cfg.NetNS)}, connections)
}

func peersOf(ctx context.Context, cfg *Config, ns *Namespace, connections []Connection) []Peer {
	type ends struct{ local, remote netip.Addr }
	seen := make(map[ends]bool)
	var peers []Peer
	for _, c := range connections {
		k := ends{c.Local, c.Remote}
		if seen[k] || !ns.HasAddress(c.Local) || c.Transport == abi.RDS_TRANS_LOOP.String() {
			continue
		}
		seen[k] = true
		// The kernel's tables have no zones, and the route to a link-local address needs one.
		zone := ns.zone(c.Local)
		p := lookup(ctx, cfg, c.Local.WithZone(zone), c.Remote.WithZone(zone))
		p.Local, p.Remote = c.Local, c.Remote
		peers = append(peers, p)
	}
	if len(peers) > 0 {
		addNeighbors(ctx, cfg, peers)
	}
	return peers
}

// LookupPeer asks for the way to a host from a local address or, if that is invalid, from the one
// that the kernel chooses. It sends nothing. Without a way the Peer has a RouteError.
func LookupPeer(ctx context.Context, cfg *Config, local, remote netip.Addr) Peer {
	if cfg == nil {
		cfg = &Config{}
	}
	peers := []Peer{lookup(ctx, cfg, local, remote)}
	addNeighbors(ctx, cfg, peers)
	return peers[0]
}

func lookup(ctx context.Context, cfg *Config, local, remote netip.Addr) Peer {
	p := Peer{Local: local, Remote: remote}
	r, err := route.Lookup(ctx, remote, &route.Config{NetNS: cfg.NetNS, Source: local})
	if err != nil {
		p.RouteError = err.Error()
		return p
	}
	p.Device, p.Gateway, p.MTU = r.Device, r.Gateway, r.MTU
	if !local.IsValid() {
		p.Local = r.Source
		if r.Type == route.Local {
			// Between two addresses of a host the kernel answers no pings.
			p.Local = remote
		}
	}
	return p
}

// addNeighbors fills in whether the next hops answered of late.
func addNeighbors(ctx context.Context, cfg *Config, peers []Peer) {
	links, err := route.Links(ctx, &route.Config{NetNS: cfg.NetNS})
	if err != nil {
		return
	}
	neighbors, err := route.Neighbors(ctx, &route.Config{NetNS: cfg.NetNS})
	if err != nil {
		return
	}
	device := make(map[int]string, len(links))
	for _, l := range links {
		device[l.Index] = l.Name
	}
	type hop struct {
		addr   netip.Addr
		device string
	}
	states := make(map[hop]string, len(neighbors))
	for _, n := range neighbors {
		states[hop{n.Addr, device[n.Index]}] = n.State.String()
	}
	for i := range peers {
		p := &peers[i]
		next := p.Remote
		if p.Gateway.IsValid() {
			next = p.Gateway
		}
		p.Neighbor = states[hop{next.WithZone(""), p.Device}]
	}
}

// lockedMemory is the limit in a file such as /proc/self/limits.
func lockedMemory(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "Max locked memory"); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				return words[0]
			}
		}
	}
	return ""
}
