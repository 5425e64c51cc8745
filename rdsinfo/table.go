package rdsinfo

import (
	"fmt"

	"github.com/rdskit/rdskit/internal/abi"
)

// A Table is one of the kernel's tables. For most, the kernel has an IPv4 and an
// RDS6 form; a Table stands for both.
type Table int

const (
	Counters        Table = iota // of the kernel, not of the namespace
	Connections                  // between this host's addresses and peers'
	Sockets                      // of all programs
	SendQueue                    // messages that were not sent yet
	RetransmitQueue              // messages that were sent and not acknowledged
	ReceiveQueue                 // messages that no program has read yet
	TCPSockets                   // below the connections of the transport tcp
	IBConnections                // below the connections of the transport infiniband
	ConnectionPaths              // of the connections, on UEK

	tables
)

// tableInfo is what is known about a Table.
type tableInfo struct {
	name string
	// v4 and v6 are the options that return it, 0 if there is none.
	v4, v6 int
	// provider is the module that registers it.
	provider string
}

var tableInfos = [tables]tableInfo{
	Counters:        {"counters", abi.RDS_INFO_COUNTERS, 0, "rds"},
	Connections:     {"connections", abi.RDS_INFO_CONNECTIONS, abi.RDS6_INFO_CONNECTIONS, "rds"},
	Sockets:         {"sockets", abi.RDS_INFO_SOCKETS, abi.RDS6_INFO_SOCKETS, "rds"},
	SendQueue:       {"send queue", abi.RDS_INFO_SEND_MESSAGES, abi.RDS6_INFO_SEND_MESSAGES, "rds"},
	RetransmitQueue: {"retransmit queue", abi.RDS_INFO_RETRANS_MESSAGES, abi.RDS6_INFO_RETRANS_MESSAGES, "rds"},
	ReceiveQueue:    {"receive queue", abi.RDS_INFO_RECV_MESSAGES, abi.RDS6_INFO_RECV_MESSAGES, "rds"},
	TCPSockets:      {"TCP sockets", abi.RDS_INFO_TCP_SOCKETS, abi.RDS6_INFO_TCP_SOCKETS, "rds_tcp"},
	IBConnections:   {"InfiniBand connections", abi.RDS_INFO_IB_CONNECTIONS, abi.RDS6_INFO_IB_CONNECTIONS, "rds_rdma"},
	ConnectionPaths: {"connection paths", abi.UEK_RDS_INFO_CONN_PATHS, abi.UEK_RDS6_INFO_CONN_PATHS, "rds of an Oracle UEK kernel"},
}

// AllTables returns every Table.
func AllTables() []Table {
	all := make([]Table, tables)
	for i := range all {
		all[i] = Table(i)
	}
	return all
}

// String returns the table's name, such as "send queue".
func (t Table) String() string {
	if t < 0 || t >= tables {
		return fmt.Sprintf("Table(%d)", int(t))
	}
	return tableInfos[t].name
}

// merges tells whether the IPv4 form is read beside the RDS6 form, since it tells more of
// IPv4 objects. That of sockets does not, and one that is bound or closed between the two would be in
// both, since the kernel takes its address for its family.
func (t Table) merges() bool { return t.right4() && t != Sockets }

// right4 tells whether the IPv4 form is right. That of the queues to peers is not:
// each of its records has the addresses 0.0.0.0, the first four bytes of IPv4-mapped
// ones (net/rds/connection.c:rds_conn_message_info_cmn).
func (t Table) right4() bool { return t != SendQueue && t != RetransmitQueue }
