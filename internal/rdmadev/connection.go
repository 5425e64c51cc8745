package rdmadev

import (
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
)

// A ConnectionID is an id of the RDMA connection manager: a connection, one to be, or a
// listener.
type ConnectionID struct {
	Device    string
	Port      uint32 // 0 for a listener on all ports
	ID        uint32 // of the resource
	QueuePair uint32 // its number, in the table of the same device; 0 if there is none
	State     ConnectionState
	Space     PortSpace
	// The addresses; ports of RDS are 16385, and 18634 on IPv4.
	Local, Remote netip.AddrPort
	Owner         Owner
}

// A ConnectionState is how far a connection is: enum rdma_cm_state of drivers/infiniband/core/cma_priv.h.
type ConnectionState uint8

// The states of which the caller may want to know. Connect is both on the way and connected:
// the queue pair's state tells which.
const (
	AddrQuery  ConnectionState = 1
	Connect    ConnectionState = 5
	Disconnect ConnectionState = 6
	Listen     ConnectionState = 8
)

var connectionStates = []string{
	"IDLE", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED", "CONNECT", "DISCONNECT", "ADDR_BOUND", "LISTEN",
	"DEVICE_REMOVAL", "DESTROYING",
}

// String is the state's name as rdma(8) has it.
func (s ConnectionState) String() string {
	if n := name(connectionStates, s); n != "" {
		return n
	}
	return fmt.Sprintf("ConnectionState(%d)", uint8(s))
}

// A PortSpace is what the ports of a connection are counted in: enum rdma_ucm_port_space.
type PortSpace uint32

// The port spaces.
const (
	SpaceIPoIB PortSpace = 0x0002
	SpaceTCP   PortSpace = 0x0106
	SpaceUDP   PortSpace = 0x0111
	SpaceIB    PortSpace = 0x013f
)

// String is the space's name as rdma(8) has it.
func (s PortSpace) String() string {
	switch s {
	case SpaceIPoIB:
		return "IPoIB"
	case SpaceTCP:
		return "TCP"
	case SpaceUDP:
		return "UDP"
	case SpaceIB:
		return "IB"
	}
	return fmt.Sprintf("PortSpace(%#x)", uint32(s))
}

// ConnectionIDs lists the ids of the connection manager on all devices.
func (c *Client) ConnectionIDs() ([]ConnectionID, error) {
	return list(c, "connection ids", cmdResCMIDGet, decodeConnectionIDs)
}

// decodeConnectionIDs decodes an answer to RDMA_NLDEV_CMD_RES_CM_ID_GET
// (fill_res_cm_id_entry of nldev.c).
func decodeConnectionIDs(b []byte) ([]ConnectionID, error) {
	return decodeTable(b, attrResCMID, attrResCMIDEntry, func(id *ConnectionID, device string, ad *netlink.AttributeDecoder) {
		id.Device = device
		switch ad.Type() {
		case attrPortIndex:
			id.Port = ad.Uint32()
		case attrResCMIDN:
			id.ID = ad.Uint32()
		case attrResLQPN:
			id.QueuePair = ad.Uint32()
		case attrResState:
			id.State = ConnectionState(ad.Uint8())
		case attrResPS:
			id.Space = PortSpace(ad.Uint32())
		case attrResSrcAddr:
			id.Local = addrPort(ad.Bytes())
		case attrResDstAddr:
			id.Remote = addrPort(ad.Bytes())
		default:
			id.Owner.decode(ad)
		}
	})
}

// A Connection is an RDMA connection of the kernel's RDS.
type Connection struct {
	ConnectionID
	// QP is its queue pair, zero where it has none yet, or no more.
	QP QueuePair
}

// Connections lists the connections that RDS has, without its listeners. A connection
// between two addresses of this host has two entries, one of each end.
func (c *Client) Connections() ([]Connection, error) {
	ids, err := c.ConnectionIDs()
	if err != nil {
		return nil, err
	}
	pairs, err := c.QueuePairs()
	if err != nil {
		return nil, err
	}
	return join(ids, pairs), nil
}

func join(ids []ConnectionID, pairs []QueuePair) []Connection {
	type key struct {
		device string
		number uint32
	}
	byNumber := map[key]QueuePair{}
	for _, q := range pairs {
		byNumber[key{q.Device, q.Number}] = q
	}
	var all []Connection
	for _, id := range ids {
		if !id.Owner.RDS() || id.State == Listen {
			continue
		}
		conn := Connection{ConnectionID: id}
		if id.QueuePair != 0 {
			conn.QP = byNumber[key{id.Device, id.QueuePair}]
		}
		all = append(all, conn)
	}
	return all
}
