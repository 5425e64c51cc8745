package cmsg

import "github.com/rdskit/rdskit/internal/abi"

// CongestionMask is a set of port classes, of which there are 64: bit b stands
// for the ports p with p % 64 == b.
type CongestionMask uint64

// CongestionMaskOf returns the class of one port.
func CongestionMaskOf(port uint16) CongestionMask { return 1 << abi.CongBit(port) }

// Contains reports whether the port's class is in the set.
func (m CongestionMask) Contains(port uint16) bool { return m&CongestionMaskOf(port) != 0 }

// AppendCongestionUpdate appends an RDS_CMSG_CONG_UPDATE, which only the
// kernel sends.
func (e Encoder) AppendCongestionUpdate(b []byte, m CongestionMask) []byte {
	b = e.begin(b, abi.RDS_CMSG_CONG_UPDATE, abi.SizeofCongUpdate)
	return e.layout.AppendUint64(b, uint64(m))
}

// CongestionUpdate decodes an RDS_CMSG_CONG_UPDATE: destinations to ports of
// these classes, to which the socket failed to send, may take messages again.
// They may also not: over TCP any change of the peer's congestion map reports
// every class that waits (rds_tcp_cong_recv in net/rds/tcp_recv.c). A class is
// reported once; the next failed send arms it anew.
func (m Message) CongestionUpdate() (CongestionMask, error) {
	b, err := m.data(KindCongestionUpdate, abi.SizeofCongUpdate)
	if err != nil {
		return 0, err
	}
	return CongestionMask(m.layout.Uint64(b)), nil
}
