package info

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/internal/plain"
	"github.com/rdskit/rdskit/rdsinfo"
)

// Joins are what is looked up for rows beyond the kernel's tables, each only if asked
// for. One that is nil was not.
type Joins struct {
	// Processes are those that have a socket open, by its inode.
	Processes map[uint64][]rdsinfo.Process
	// TCP is how TCP fares below connections.
	TCP *TCPJoin
	// Routes are the ways to the peers.
	Routes *RouteJoin
	// RDMA are the ports below connections.
	RDMA *RDMAJoin
	// Names are those of remote addresses.
	Names map[netip.Addr]string
}

// ends are what a row is joined by. Those that its table does not have are the zero value.
type ends struct {
	local, remote netip.AddrPort
	transport     string
	gid           netip.Addr // of the local end of an InfiniBand connection that is up
}

func connectionEnds(c *rdsinfo.Connection) ends {
	return ends{local: netip.AddrPortFrom(c.Local, 0), remote: netip.AddrPortFrom(c.Remote, 0), transport: c.Transport}
}

func ibEnds(c *rdsinfo.IBConnection) ends {
	return ends{local: netip.AddrPortFrom(c.Local, 0), remote: netip.AddrPortFrom(c.Remote, 0), transport: "infiniband", gid: c.LocalGID}
}

// A TCPJoin finds how TCP fares with a TCP socket, or with all of a connection's.
type TCPJoin struct {
	sockets     map[[2]netip.AddrPort]rdsinfo.TCPHealth
	connections map[[2]netip.Addr][]rdsinfo.TCPHealth
}

// NewTCPJoin returns the join of these TCP sockets.
func NewTCPJoin(all []rdsinfo.TCPHealth) *TCPJoin {
	j := &TCPJoin{make(map[[2]netip.AddrPort]rdsinfo.TCPHealth), make(map[[2]netip.Addr][]rdsinfo.TCPHealth)}
	for _, h := range all {
		j.sockets[[2]netip.AddrPort{h.Local, h.Remote}] = h
		k := [2]netip.Addr{h.Local.Addr(), h.Remote.Addr()}
		j.connections[k] = append(j.connections[k], h)
	}
	return j
}

func (j *TCPJoin) socket(e ends) (rdsinfo.TCPHealth, bool) {
	h, ok := j.sockets[[2]netip.AddrPort{e.local, e.remote}]
	return h, ok
}

func (j *TCPJoin) connection(e ends) []rdsinfo.TCPHealth {
	if e.transport != "tcp" {
		return nil
	}
	return j.connections[[2]netip.Addr{e.local.Addr(), e.remote.Addr()}]
}

// A RouteJoin finds the way from a local address to a peer.
type RouteJoin struct {
	peers map[[2]netip.Addr]rdsinfo.Peer
}

// NewRouteJoin returns the join of these peers.
func NewRouteJoin(peers []rdsinfo.Peer) *RouteJoin {
	j := &RouteJoin{make(map[[2]netip.Addr]rdsinfo.Peer, len(peers))}
	for _, p := range peers {
		j.peers[[2]netip.Addr{p.Local, p.Remote}] = p
	}
	return j
}

func (j *RouteJoin) find(e ends) (rdsinfo.Peer, bool) {
	p, ok := j.peers[[2]netip.Addr{e.local.Addr(), e.remote.Addr()}]
	return p, ok
}

// RDMAAddresses are the local addresses of InfiniBand connections, each once.
func RDMAAddresses(s *rdsinfo.Snapshot) []netip.Addr {
	var addrs []netip.Addr
	// Whichever of the tables was read.
	connections, _ := s.Connections()
	for i := range connections {
		if connections[i].Transport == "infiniband" {
			addrs = append(addrs, connections[i].Local)
		}
	}
	ib, _ := s.IBConnections()
	for i := range ib {
		addrs = append(addrs, ib[i].Local)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

// An RDMAJoin finds the port of an RDMA device below a connection, and its queue pair.
type RDMAJoin struct {
	ports       []rdsinfo.RDMAPort
	connections map[[2]netip.Addr][]rdsinfo.RDMAConnection
}

// NewRDMAJoin returns the join of these ports, and of what the devices have of the connections.
func NewRDMAJoin(ports []rdsinfo.RDMAPort, connections []rdsinfo.RDMAConnection) *RDMAJoin {
	j := &RDMAJoin{ports, make(map[[2]netip.Addr][]rdsinfo.RDMAConnection)}
	for _, c := range connections {
		k := [2]netip.Addr{c.Local, c.Remote}
		j.connections[k] = append(j.connections[k], c)
	}
	return j
}

// queuePairs are those of the connection: more than one if it has several types of service, or is
// within one address.
func (j *RDMAJoin) queuePairs(e ends) []rdsinfo.RDMAConnection {
	if e.transport != "infiniband" {
		return nil
	}
	return j.connections[[2]netip.Addr{e.local.Addr(), e.remote.Addr()}]
}

func (j *RDMAJoin) find(e ends) (rdsinfo.RDMAPort, rdsinfo.GID, bool) {
	if e.transport != "infiniband" {
		return rdsinfo.RDMAPort{}, rdsinfo.GID{}, false
	}
	if p, g, ok := rdsinfo.FindGID(j.ports, e.local.Addr()); ok {
		return p, g, ok
	}
	return rdsinfo.FindGID(j.ports, e.gid)
}

// A column is one that a join appends to the rows of a table.
type column struct {
	title string
	width int
	cell  func(ends) string
}

// columns are those that the joins append to a table.
func (j *Joins) columns(t rdsinfo.Table) []column {
	var all []column
	if j.TCP != nil {
		switch t {
		case rdsinfo.TCPSockets:
			all = append(all, j.TCP.socketColumns()...)
		case rdsinfo.Connections:
			all = append(all, j.TCP.connectionColumns()...)
		}
	}
	if j.Routes != nil && t == rdsinfo.Connections {
		all = append(all, j.Routes.columns()...)
	}
	if j.RDMA != nil && (t == rdsinfo.Connections || t == rdsinfo.IBConnections) {
		all = append(all, j.RDMA.columns()...)
	}
	if j.Names != nil {
		title := "RemoteName"
		if t == rdsinfo.Sockets {
			title = "ConnName"
		}
		all = append(all, column{title, 24, func(e ends) string { return orDash(j.Names[e.remote.Addr()]) }})
	}
	return all
}

func (j *TCPJoin) socketColumns() []column {
	cell := func(f func(*rdsinfo.TCPHealth) string) func(ends) string {
		return func(e ends) string {
			h, ok := j.socket(e)
			if !ok {
				return "-"
			}
			return f(&h)
		}
	}
	number := func(title string, width int, f func(*rdsinfo.TCPHealth) uint64) column {
		return column{title, width, cell(func(h *rdsinfo.TCPHealth) string { return strconv.FormatUint(f(h), 10) })}
	}
	return []column{
		{"State", 10, cell(func(h *rdsinfo.TCPHealth) string { return h.State })},
		number("RttUsec", 10, func(h *rdsinfo.TCPHealth) uint64 { return h.RTTMicros }),
		number("Retrans", 8, func(h *rdsinfo.TCPHealth) uint64 { return uint64(h.Retransmits) }),
		number("Unacked", 8, func(h *rdsinfo.TCPHealth) uint64 { return uint64(h.Unacked) }),
		number("Cwnd", 8, func(h *rdsinfo.TCPHealth) uint64 { return uint64(h.Cwnd) }),
	}
}

// connectionColumns sum up the TCP sockets of a connection: the worst round trip and window,
// and all that was sent again or is on its way.
func (j *TCPJoin) connectionColumns() []column {
	number := func(title string, width int, f func([]rdsinfo.TCPHealth) uint64) column {
		return column{title, width, func(e ends) string {
			all := j.connection(e)
			if len(all) == 0 {
				return "-"
			}
			return strconv.FormatUint(f(all), 10)
		}}
	}
	sum := func(f func(*rdsinfo.TCPHealth) uint32) func([]rdsinfo.TCPHealth) uint64 {
		return func(all []rdsinfo.TCPHealth) (n uint64) {
			for i := range all {
				n += uint64(f(&all[i]))
			}
			return n
		}
	}
	return []column{
		number("TcpSocks", 8, func(all []rdsinfo.TCPHealth) uint64 { return uint64(len(all)) }),
		number("RttUsec", 10, func(all []rdsinfo.TCPHealth) (worst uint64) {
			for _, h := range all {
				worst = max(worst, h.RTTMicros)
			}
			return worst
		}),
		number("Retrans", 8, sum(func(h *rdsinfo.TCPHealth) uint32 { return h.Retransmits })),
		number("Unacked", 8, sum(func(h *rdsinfo.TCPHealth) uint32 { return h.Unacked })),
		number("Cwnd", 8, func(all []rdsinfo.TCPHealth) uint64 {
			least := all[0].Cwnd
			for _, h := range all {
				least = min(least, h.Cwnd)
			}
			return uint64(least)
		}),
	}
}

func (j *RouteJoin) columns() []column {
	cell := func(f func(rdsinfo.Peer) string) func(ends) string {
		return func(e ends) string {
			p, ok := j.find(e)
			if !ok {
				return "-"
			}
			return orDash(f(p))
		}
	}
	return []column{
		{"Device", 15, cell(func(p rdsinfo.Peer) string { return p.Device })},
		{"Gateway", 15, cell(func(p rdsinfo.Peer) string {
			if !p.Gateway.IsValid() {
				return ""
			}
			return p.Gateway.String()
		})},
		{"Mtu", 5, cell(func(p rdsinfo.Peer) string {
			if p.MTU == 0 {
				return ""
			}
			return strconv.Itoa(p.MTU)
		})},
		{"Neighbor", 10, cell(func(p rdsinfo.Peer) string {
			if p.RouteError != "" {
				return "no-route"
			}
			return p.Neighbor
		})},
	}
}

func (j *RDMAJoin) columns() []column {
	cell := func(f func(rdsinfo.RDMAPort, rdsinfo.GID) string) func(ends) string {
		return func(e ends) string {
			p, g, ok := j.find(e)
			if !ok {
				return "-"
			}
			return orDash(f(p, g))
		}
	}
	pairs := func(f func(*rdsinfo.RDMAConnection) string) func(ends) string {
		return func(e ends) string {
			all := j.queuePairs(e)
			cells := make([]string, len(all))
			for i := range all {
				cells[i] = orDash(f(&all[i]))
			}
			return orDash(strings.Join(cells, ","))
		}
	}
	number := func(n uint32) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(uint64(n), 10)
	}
	return []column{
		{"RdmaDev", 15, cell(func(p rdsinfo.RDMAPort, _ rdsinfo.GID) string { return p.Device })},
		{"Port", 4, cell(func(p rdsinfo.RDMAPort, _ rdsinfo.GID) string { return strconv.Itoa(p.Port) })},
		{"GidIdx", 6, cell(func(_ rdsinfo.RDMAPort, g rdsinfo.GID) string { return strconv.Itoa(g.Index) })},
		{"Netdev", 15, cell(func(_ rdsinfo.RDMAPort, g rdsinfo.GID) string { return g.NetDev })},
		{"PortState", 9, cell(func(p rdsinfo.RDMAPort, _ rdsinfo.GID) string { return p.State })},
		{"Qpn", 8, pairs(func(c *rdsinfo.RDMAConnection) string { return number(c.QueuePair) })},
		{"RemQpn", 8, pairs(func(c *rdsinfo.RDMAConnection) string { return number(c.RemoteQueuePair) })},
		{"QpState", 7, pairs(func(c *rdsinfo.RDMAConnection) string { return c.QueuePairState })},
	}
}

// orDash keeps a cell from being empty, or more than one word on a line.
func orDash(text string) string {
	text = strings.ReplaceAll(plain.Text(text), " ", "?")
	if text == "" {
		return "-"
	}
	return text
}
