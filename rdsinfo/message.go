package rdsinfo

import (
	"net/netip"

	"github.com/rdskit/rdskit/internal/abi"
)

// A Message is a message in one of the kernel's queues. Local is the end on
// this host: the sender of what is in the send and retransmit queues, the receiver of
// what is in the receive queue.
type Message struct {
	Local, Remote netip.AddrPort
	TOS           Optional[uint8]
	Seq           uint64 // of its connection
	Bytes         uint32 // of payload
	// Millis is a time in milliseconds that UEK reports. Not yet seen on a kernel.
	Millis Optional[uint64]
}

// The records of kernels of the 4 series end before the type of service.
const (
	sizeofMessage  = abi.SizeofMessageInfo - 1
	sizeofMessage6 = abi.SizeofMessageInfo6 - 1
)

func parseMessage(r record) Message {
	m, _ := abi.ParseMessageInfo(r.b, r.layout)
	return message(m, len(r.b) >= abi.SizeofMessageInfo, len(r.b) >= abi.UEK_SizeofMessageInfo)
}

func parseMessage6(r record) Message {
	m, _ := abi.ParseMessageInfo6(r.b, r.layout)
	return message(m, len(r.b) >= abi.SizeofMessageInfo6, len(r.b) >= abi.UEK_SizeofMessageInfo6)
}

func message(m abi.MessageInfo, tos, millis bool) Message {
	return Message{
		Local:  m.Local,
		Remote: m.Remote,
		TOS:    Optional[uint8]{m.TOS, tos},
		Seq:    m.Seq,
		Bytes:  m.Len,
		Millis: Optional[uint64]{m.Millis, millis},
	}
}

// Queue returns the messages in the table SendQueue, RetransmitQueue or
// ReceiveQueue. Messages with local port 1 or remote port 0 are the kernel's own: probes and pings.
func (s *Snapshot) Queue(t Table) ([]Message, error) {
	if t != SendQueue && t != RetransmitQueue && t != ReceiveQueue {
		return nil, &TableError{Table: t, Err: errNoQueue}
	}
	return decodeBoth(s, t,
		sizeofMessage, parseMessage,
		sizeofMessage6, parseMessage6,
		func(m Message) bool { return m.Local.Addr().Is4() })
}
