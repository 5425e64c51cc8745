package rdsinfo

import (
	"context"
	"net/netip"

	"github.com/rdskit/rdskit/internal/rdmadev"
)

// An RDMAConnection is what the RDMA subsystem knows of one end of an IBConnection. Of two
// connections between the same addresses, with different types of service, it does not tell which is which.
type RDMAConnection struct {
	Device string     `json:"device"`
	Port   int        `json:"port"`
	Local  netip.Addr `json:"local_address"`
	Remote netip.Addr `json:"remote_address"`
	// State is how far the connection manager is: CONNECT while it connects and when it has, or such
	// as ADDR_QUERY, ROUTE_RESOLVED and DISCONNECT.
	State string `json:"state"`
	// QueuePair is the number of the queue pair that sends and receives, 0 if there is none yet, or no more.
	// It works in state RTS.
	QueuePair       uint32 `json:"queue_pair"`
	RemoteQueuePair uint32 `json:"remote_queue_pair"`
	QueuePairState  string `json:"queue_pair_state,omitempty"`
}

// Works reports whether messages can go through it.
func (c *RDMAConnection) Works() bool { return c.QueuePairState == rdmadev.RTS.String() }

// RDMAConnections lists the connections of RDS on the RDMA devices, which are those of the initial
// network namespace. A connection within this host has two, one for each end. Without
// RDMA in the kernel there are none.
func RDMAConnections(ctx context.Context) ([]RDMAConnection, error) {
	all, err := askRDMA(ctx, (*rdmadev.Client).Connections)
	if err != nil {
		return nil, err
	}
	connections := make([]RDMAConnection, len(all))
	for i, id := range all {
		connections[i] = RDMAConnection{
			Device: id.Device, Port: int(id.Port), Local: id.Local.Addr().Unmap(), Remote: id.Remote.Addr().Unmap(),
			State: id.State.String(), QueuePair: id.QueuePair,
		}
		if id.QP.Number != 0 {
			connections[i].RemoteQueuePair, connections[i].QueuePairState = id.QP.Remote, id.QP.State.String()
		}
	}
	return connections, nil
}
