package rdmadev

import (
	"fmt"

	"github.com/mdlayher/netlink"
)

// A QueuePair is a queue pair, one end of a connection.
type QueuePair struct {
	Device     string
	Port       uint32 // 0 where the kernel does not tell
	Number     uint32 // local QPN
	Remote     uint32 // QPN of the peer; 0 while there is none
	Type       QueuePairType
	State      QueuePairState
	SendPSN    uint32
	ReceivePSN uint32
	Owner      Owner
}

// A QueuePairType is the service of a queue pair: enum ib_qp_type. RDS uses reliable connections.
type QueuePairType uint8

// ReliableConnection is the type of RDS' queue pairs.
const ReliableConnection QueuePairType = 2

var queuePairTypes = []string{"SMI", "GSI", "RC", "UC", "UD", "RAW_IPV6", "RAW_ETHERTYPE", "", "RAW_PACKET", "XRC_INI", "XRC_TGT"}

// String is the type's name as rdma(8) has it.
func (t QueuePairType) String() string {
	if t == 0xff {
		return "DRIVER"
	}
	if n := name(queuePairTypes, t); n != "" {
		return n
	}
	return fmt.Sprintf("QueuePairType(%d)", uint8(t))
}

// A QueuePairState is that of enum ib_qp_state.
type QueuePairState uint8

// The states of a queue pair. It sends in RTS, "ready to send".
const (
	Reset QueuePairState = iota
	Init
	RTR
	RTS
	SQD
	SQE
	Err
)

var queuePairStates = []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// String is the state's name as rdma(8) has it.
func (s QueuePairState) String() string {
	if n := name(queuePairStates, s); n != "" {
		return n
	}
	return fmt.Sprintf("QueuePairState(%d)", uint8(s))
}

// QueuePairs lists the queue pairs of all devices. The kernel keeps those of RDS in the
// name of rdma_cm, which made them: [Client.Connections] knows which they are.
func (c *Client) QueuePairs() ([]QueuePair, error) {
	return list(c, "queue pairs", cmdResQPGet, decodeQueuePairs)
}

// decodeQueuePairs decodes an answer to RDMA_NLDEV_CMD_RES_QP_GET (fill_res_qp_entry of nldev.c).
func decodeQueuePairs(b []byte) ([]QueuePair, error) {
	return decodeTable(b, attrResQP, attrResQPEntry, func(q *QueuePair, device string, ad *netlink.AttributeDecoder) {
		q.Device = device
		switch ad.Type() {
		case attrPortIndex:
			q.Port = ad.Uint32()
		case attrResLQPN:
			q.Number = ad.Uint32()
		case attrResRQPN:
			q.Remote = ad.Uint32()
		case attrResRQPSN:
			q.ReceivePSN = ad.Uint32()
		case attrResSQPSN:
			q.SendPSN = ad.Uint32()
		case attrResType:
			q.Type = QueuePairType(ad.Uint8())
		case attrResState:
			q.State = QueuePairState(ad.Uint8())
		default:
			q.Owner.decode(ad)
		}
	})
}
